//! The `ralph.yml` that says what another Ralph's file says.

use std::path::Path;

use serde_json::Value;

use super::{ImportedFile, Scene, read};
use crate::config::Partial;

/// A file of another Ralph, and the place of the `ralph.yml` that is to say the same.
#[derive(Debug, Clone, Copy)]
pub struct Theirs<'a> {
    pub whose: ImportedFile,
    /// Where the text was read.
    pub path: &'a Path,
    pub text: &'a str,
    /// The names of the built-in agents.
    pub agents: &'a [&'a str],
    /// The directory of the `ralph.yml`.
    pub base: &'a Path,
}

/// A commented `ralph.yml` with the same meaning.
pub fn equivalent_yaml(theirs: &Theirs<'_>) -> String {
    let Theirs { path, agents, .. } = *theirs;
    let scene = Scene {
        path,
        environment: &[],
        agents,
    };
    let said = read(theirs.whose, theirs.text, &scene);
    let mut wishes = said.wishes;
    if let Some(prompt) = &mut wishes.event_loop.prompt_file
        && let Ok(relative) = prompt.strip_prefix(theirs.base)
    {
        *prompt = relative.to_owned();
    }
    let mut yaml = format!("# What {} says, in ralph's words.\n", path.display());
    for warning in &said.warnings {
        yaml.push_str(&format!("# Not carried over: {}\n", warning.replace('\n', " ")));
    }
    yaml.push_str(&as_yaml(&wishes));
    yaml
}

/// The `ralph.yml` that says just this.
pub fn as_yaml(wishes: &Partial) -> String {
    let mut yaml = String::new();
    let wishes = serde_json::to_value(wishes).unwrap_or(Value::Null);
    write_members(&wishes, 0, &mut yaml);
    yaml
}

/// Texts are written as JSON writes them, which YAML reads as they are.
fn write_members(value: &Value, depth: usize, yaml: &mut String) {
    for (key, member) in value.as_object().into_iter().flatten() {
        let indent = "  ".repeat(depth);
        match member {
            Value::Null => {}
            Value::Object(_) => {
                let mut inner = String::new();
                write_members(member, depth + 1, &mut inner);
                if !inner.is_empty() {
                    yaml.push_str(&format!("{indent}{key}:\n{inner}"));
                }
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                yaml.push_str(&format!("{indent}{key}: {member}\n"));
            }
        }
    }
}
