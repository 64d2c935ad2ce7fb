//! Snapshots of configuration error messages.

mod invalid_values;
mod keys;
mod layers;
mod types;
mod values;
mod yaml;

use std::fs;
use std::path::PathBuf;

use super::{ConfigFixture, error_for};
use crate::config::ConfigError;

#[test]
fn diagnostic_has_line_column_and_help() {
    let fixture = ConfigFixture::new().write("project/ralph.yml", "cli:\n  modle: x\n");
    let Err(ConfigError::Diagnostic(diagnostic)) = fixture.load() else {
        panic!("{}", fixture.error());
    };
    assert_eq!((diagnostic.line, diagnostic.column), (2, 3));
    assert_eq!(diagnostic.file, fixture.path("project/ralph.yml"));
    assert_eq!(diagnostic.help.as_deref(), Some("did you mean `model`?"));
}

proptest::proptest! {
    /// Any text results in settings or an error.
    #[test]
    fn parsing_never_panics(text in r#"([a-z_]{1,4}|cli|gates|event_loop|max_iterations|[:\-\[\]{}&*!|>"'#%@,?]|\n|\t|  | |é|漢|[0-9]){0,40}"#) {
        let document = crate::config::yaml::Document::new(std::path::Path::new("ralph.yml"), &text);
        if let Err(diagnostic) = document.read::<crate::config::PartialSettings>() {
            proptest::prop_assert!(diagnostic.to_string().contains(" --> ralph.yml:"));
        }
    }
}
