//! Fuzzes the readers of journals.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::journal(bytes));
