//! Fuzzes the transcript format `plain`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::transcript("plain", bytes));
