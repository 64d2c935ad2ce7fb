//! Fuzzes `ralph.yml`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::config(bytes));
