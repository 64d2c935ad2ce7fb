//! Fuzzes markers and topics in answers.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::claims(bytes));
