//! Fuzzes the conversion of ralphex configurations.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::imported_config(
    ralph::config::ImportedFile::Ralphex,
    bytes
));
