//! One picture for each mistake that people make.

mod keys;
mod kinds;
mod places;
mod sense;
mod values;
mod yaml;

use std::fs;
use std::path::PathBuf;

use super::{Place, complaint_about};
use crate::config::ConfigError;

#[test]
fn a_mistake_can_be_read_by_a_program() {
    let place = Place::new().write("project/ralph.yml", "cli:\n  modle: x\n");
    let Err(ConfigError::Diagnostic(mistake)) = place.load() else {
        panic!("{}", place.complaint());
    };
    assert_eq!((mistake.line, mistake.column), (2, 3));
    assert_eq!(mistake.file, place.path("project/ralph.yml"));
    assert_eq!(mistake.help.as_deref(), Some("did you mean `model`?"));
}

proptest::proptest! {
    /// Whatever a file holds, the answer is settings or a message.
    #[test]
    fn no_text_makes_it_panic(text in r#"([a-z_]{1,4}|cli|gates|event_loop|max_iterations|[:\-\[\]{}&*!|>"'#%@,?]|\n|\t|  | |é|漢|[0-9]){0,40}"#) {
        let document = crate::config::yaml::Document::new(std::path::Path::new("ralph.yml"), &text);
        if let Err(mistake) = document.read::<crate::config::Partial>() {
            proptest::prop_assert!(mistake.to_string().contains(" --> ralph.yml:"));
        }
    }
}
