//! Fuzzes the transcript format `opencode`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::transcript("opencode", bytes));
