//! Fuzzes the transcript format `amp`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::transcript("amp", bytes));
