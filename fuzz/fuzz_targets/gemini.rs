//! Fuzzes the transcript format `gemini`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::transcript("gemini", bytes));
