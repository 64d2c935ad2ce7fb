//! Converts an imported file to an equivalent `ralph.yml`.

use std::path::Path;

use serde_json::Value;

use super::{ImportContext, ImportedFile, ImportedSettings, orchestrator, read};
use crate::config::PartialSettings;
use crate::config::diagnostic::{ConfigError, Problem};
use crate::config::yaml::Document;

/// The file to convert, and the location of the resulting `ralph.yml`.
#[derive(Debug, Clone, Copy)]
pub struct ImportSource<'a> {
    pub format: ImportedFile,
    /// The path from which `text` was read.
    pub path: &'a Path,
    pub text: &'a str,
    /// The names of the built-in agents.
    pub agents: &'a [&'a str],
    /// The directory of the `ralph.yml`.
    pub base: &'a Path,
}

/// Converts the file to a `ralph.yml`. Comments list the settings that cannot be converted.
pub fn convert_to_yaml(source: &ImportSource<'_>) -> String {
    let ImportSource { path, agents, .. } = *source;
    let context = ImportContext {
        path,
        environment: &[],
        agents,
    };
    let imported = read(source.format, source.text, &context);
    write(imported, path, source.base)
}

/// Converts a `ralph.yml` of ralph-orchestrator to one of this program.
pub fn convert_orchestrator(
    path: &Path,
    text: &str,
    agents: &[&str],
    base: &Path,
) -> Result<String, ConfigError> {
    let document = Document::new(path, text);
    let values: Value = document.read_values().map_err(ConfigError::Diagnostic)?;
    let problems = |problems: Vec<Problem>| {
        ConfigError::of_problems(problems.into_iter().map(|problem| document.diagnostic(problem)))
    };
    let imported = orchestrator::read(path, &values, document.spans(), agents).map_err(problems)?;
    Ok(write(imported, path, base))
}

fn write(imported: ImportedSettings, path: &Path, base: &Path) -> String {
    let mut settings = imported.settings;
    if let Some(prompt) = &mut settings.event_loop.prompt_file
        && let Ok(relative) = prompt.strip_prefix(base)
    {
        *prompt = relative.to_owned();
    }
    let mut yaml = format!("# Converted from {}.\n", path.display());
    for warning in imported.refusals.iter().chain(&imported.warnings) {
        yaml.push_str(&format!("# Not converted: {}\n", warning.replace('\n', " ")));
    }
    yaml.push_str(&to_yaml(&settings));
    yaml
}

/// Serializes settings as a `ralph.yml`.
pub fn to_yaml(settings: &PartialSettings) -> String {
    let mut yaml = String::new();
    let settings = serde_json::to_value(settings).unwrap_or(Value::Null);
    write_members(&settings, 0, &mut yaml);
    yaml
}

/// Scalars and lists are written as JSON, which is valid YAML.
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
