//! Fuzzes the transcript format `copilot`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::transcript("copilot", bytes));
