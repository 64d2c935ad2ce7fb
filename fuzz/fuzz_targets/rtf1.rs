//! Fuzzes the transcript format `rtf1`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::transcript("rtf1", bytes));
