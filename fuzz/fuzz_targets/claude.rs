//! Fuzzes the transcript format `claude`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::transcript("claude", bytes));
