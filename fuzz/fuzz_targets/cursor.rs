//! Fuzzes the transcript format `cursor`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::transcript("cursor", bytes));
