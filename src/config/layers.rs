//! The layers of the configuration: finds and reads files, merges layers, and records the origin of each value.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::files::{self, FileError, ReadRule};

use super::checks::{KnownNames, check};
use super::diagnostic::{ConfigError, Diagnostic};
use super::environment::{EnvironmentLayer, variable_of};
use super::import::{self, ImportedFile, ImportedFrom, orchestrator};
use super::settings::PartialSettings;
use super::spans::Spans;
use super::yaml::Document;
use super::{LoadRequest, LoadedConfig, Origin};

pub(super) const FILE_NAME: &str = "ralph.yml";

/// A merged layer, kept to answer where a value came from.
#[derive(Debug)]
pub(super) struct Layer {
    source: LayerSource,
    /// The layer's values in the structure of `ralph.yml`; `null` for keys that it does not set.
    values: Value,
}

#[derive(Debug)]
enum LayerSource {
    File {
        path: PathBuf,
        /// What was parsed. The trust check hashes it, so that the file cannot change in between.
        text: String,
        spans: Spans,
    },
    Environment {
        set_by: Vec<(&'static str, &'static str)>,
    },
    Flags,
    /// A configuration file of another tool.
    ImportedFile {
        path: PathBuf,
        text: String,
        origins: Vec<(String, ImportedFrom)>,
    },
}

impl Layer {
    /// The origin of the key, if this layer sets it.
    pub(super) fn origin(&self, key: &str) -> Option<Origin> {
        if !is_set(&self.values, key) {
            return None;
        }
        Some(match &self.source {
            LayerSource::File { path, spans, .. } => Origin::File {
                path: path.clone(),
                line: spans.nearest(key).map_or(1, |entry| entry.line),
            },
            LayerSource::Environment { set_by } => Origin::Environment {
                variable: variable_of(set_by, key).unwrap_or_default().to_owned(),
            },
            LayerSource::Flags => Origin::Flag,
            LayerSource::ImportedFile { path, origins, .. } => {
                let origin = origins
                    .iter()
                    .find(|(known, _)| known == key || known.starts_with(key));
                match origin.map(|(_, origin)| origin) {
                    Some(ImportedFrom::Variable(variable)) => Origin::Environment {
                        variable: variable.clone(),
                    },
                    Some(ImportedFrom::Line(line)) => Origin::File {
                        path: path.clone(),
                        line: *line,
                    },
                    None => Origin::File {
                        path: path.clone(),
                        line: 1,
                    },
                }
            }
        })
    }

    /// The path, the text and the values of a file layer.
    pub(super) fn file(&self) -> Option<(&Path, &str, &Value)> {
        match &self.source {
            LayerSource::File { path, text, .. } | LayerSource::ImportedFile { path, text, .. } => {
                Some((path, text, &self.values))
            }
            LayerSource::Environment { .. } | LayerSource::Flags => None,
        }
    }

    /// Clears the prompt and the prompt file, because a later layer replaces them.
    fn clear_prompt(&mut self) {
        for key in ["/event_loop/prompt", "/event_loop/prompt_file"] {
            if let Some(value) = self.values.pointer_mut(key) {
                *value = Value::Null;
            }
        }
    }
}

/// Names chosen by the user may contain dots, so every way to split the key is tried.
fn is_set(values: &Value, key: &str) -> bool {
    let Some(members) = values.as_object() else {
        return false;
    };
    if let Some(value) = members.get(key) {
        return match value {
            Value::Null => false,
            Value::Object(members) => members.values().any(|member| !member.is_null()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => true,
        };
    }
    key.match_indices('.').any(|(dot, _)| {
        members
            .get(&key[..dot])
            .is_some_and(|inner| is_set(inner, &key[dot + 1..]))
    })
}

impl LoadedConfig {
    /// Merges a `ralph.yml`.
    pub(super) fn add_file(&mut self, path: &Path, known: KnownNames<'_>) -> Result<(), ConfigError> {
        let text = read_text(path)?;
        let document = Document::new(path, &text);
        if orchestrator::is_recognized(document.spans()) {
            return self.add_orchestrator_file(path, &document, known);
        }
        let mut settings = read_settings(&document, known)?;
        settings.make_paths_absolute(path.parent().unwrap_or(path));
        let spans = document.into_spans();
        self.files.push(path.to_owned());
        self.add_layer(
            settings,
            LayerSource::File {
                path: path.to_owned(),
                text,
                spans,
            },
        );
        Ok(())
    }

    /// Merges a `ralph.yml` that was written for ralph-orchestrator.
    fn add_orchestrator_file(
        &mut self,
        path: &Path,
        document: &Document<'_>,
        known: KnownNames<'_>,
    ) -> Result<(), ConfigError> {
        let values: Value = document.read_values().map_err(ConfigError::Diagnostic)?;
        let diagnostic = |problem| document.diagnostic(problem);
        let mut imported = orchestrator::read(path, &values, document.spans(), known.agents)
            .map_err(|problems| ConfigError::of_problems(problems.into_iter().map(diagnostic)))?;
        check(&imported.settings, known)
            .map_err(|problem| ConfigError::of_problems([diagnostic(problem)]))?;
        imported
            .settings
            .make_paths_absolute(path.parent().unwrap_or(path));
        self.warnings.append(&mut imported.warnings);
        self.files.push(path.to_owned());
        let (path, text, origins) = (path.to_owned(), document.text().to_owned(), imported.origins);
        let source = LayerSource::ImportedFile { path, text, origins };
        self.add_layer(imported.settings, source);
        Ok(())
    }

    /// Merges a configuration file of another tool. Its errors become warnings.
    pub(super) fn add_imported_file(
        &mut self,
        format: ImportedFile,
        path: &Path,
        request: &LoadRequest<'_>,
    ) -> Result<(), ConfigError> {
        let text = read_text(path)?;
        let context = import::ImportContext {
            path,
            environment: request.environment,
            agents: request.agents,
        };
        let mut imported = import::read(format, &text, &context);
        if !imported.refusals.is_empty() {
            return Err(ConfigError::Refused {
                reason: imported.refusals.join("\n"),
            });
        }
        imported
            .settings
            .make_paths_absolute(import::base_of(format, path));
        self.warnings.append(&mut imported.warnings);
        self.files.push(path.to_owned());
        let (path, origins) = (path.to_owned(), imported.origins);
        self.add_layer(
            imported.settings,
            LayerSource::ImportedFile { path, text, origins },
        );
        Ok(())
    }

    pub(super) fn add_environment(
        &mut self,
        mut environment: EnvironmentLayer,
        known: KnownNames<'_>,
        cwd: &Path,
    ) -> Result<(), ConfigError> {
        check(&environment.settings, known).map_err(|problem| environment.error(problem))?;
        environment.settings.make_paths_absolute(cwd);
        self.warnings.append(&mut environment.warnings);
        self.add_layer(
            environment.settings,
            LayerSource::Environment {
                set_by: environment.set_by,
            },
        );
        Ok(())
    }

    pub(super) fn add_flags(
        &mut self,
        mut flags: PartialSettings,
        known: KnownNames<'_>,
        cwd: &Path,
    ) -> Result<(), ConfigError> {
        check(&flags, known).map_err(|problem| ConfigError::Flag { problem })?;
        flags.make_paths_absolute(cwd);
        self.add_layer(flags, LayerSource::Flags);
        Ok(())
    }

    fn add_layer(&mut self, settings: PartialSettings, source: LayerSource) {
        // A layer contains only types that JSON can represent, so serialization cannot fail.
        let values = serde_json::to_value(&settings).unwrap_or(Value::Null);
        if settings.event_loop.prompt.is_some() || settings.event_loop.prompt_file.is_some() {
            self.layers.iter_mut().for_each(Layer::clear_prompt);
        }
        settings.apply_to(&mut self.settings);
        self.layers.push(Layer { source, values });
    }
}

/// The settings of a `ralph.yml`, or all of its problems.
fn read_settings(document: &Document<'_>, known: KnownNames<'_>) -> Result<PartialSettings, ConfigError> {
    let read = |document: &Document<'_>| -> Result<PartialSettings, Box<Diagnostic>> {
        let settings = document.read()?;
        check(&settings, known).map_err(|problem| Box::new(document.diagnostic(problem)))?;
        Ok(settings)
    };
    read(document).map_err(|first| ConfigError::of_problems(document.all_problems(*first, read)))
}

/// Reads a whole file, up to the size limit.
pub(super) fn read_text(path: &Path) -> Result<String, ConfigError> {
    let bytes = files::read(path, ReadRule::CONFIG).map_err(|error| match error {
        FileError::TooLarge { max_bytes } => ConfigError::TooLarge {
            path: path.to_owned(),
            max_bytes,
        },
        other => ConfigError::Unreadable {
            path: path.to_owned(),
            source: other.into_io(),
        },
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let start = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        let diagnostic = Diagnostic::new(path, &text, start..start + 1, "invalid UTF-8")
            .with_help(Some("save the file as UTF-8".to_owned()));
        ConfigError::Diagnostic(Box::new(diagnostic))
    })
}

/// The nearest `ralph.yml` in a directory or its parents.
pub(super) fn find_project_file(cwd: &Path, warnings: &mut Vec<String>) -> Option<PathBuf> {
    for directory in cwd.ancestors() {
        let path = directory.join(FILE_NAME);
        if entry_exists(&path) {
            return Some(path);
        }
        let other = directory.join("ralph.yaml");
        if entry_exists(&other) {
            warnings.push(format!(
                "ignoring {}: the file must be named {FILE_NAME}",
                other.display()
            ));
        }
    }
    None
}

/// True also for a dangling link, so that reading it fails instead of being skipped.
pub(super) fn entry_exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
