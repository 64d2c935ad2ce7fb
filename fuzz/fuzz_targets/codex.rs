//! Fuzzes the transcript format `codex`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::transcript("codex", bytes));
