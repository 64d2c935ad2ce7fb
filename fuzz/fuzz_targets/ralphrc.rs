//! Fuzzes the conversion of `.ralphrc` files.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ralph_fuzz::imported_config(
    ralph::config::ImportedFile::Ralphrc,
    bytes
));
