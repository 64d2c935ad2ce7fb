#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::foreign(ralph::config::ImportedFile::Ralphex, bytes));
