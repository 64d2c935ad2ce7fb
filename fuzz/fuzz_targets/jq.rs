//! Fuzzes jq filters.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::jq_filter(bytes));
