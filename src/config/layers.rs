//! Where wishes come from: finding and reading the files, laying the layers over one another, and remembering who
//! said what.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::checks::{Known, check};
use super::diagnostic::{ConfigError, Diagnostic};
use super::environment::{Environment, origin_of};
use super::import::{self, ImportedFile, Place};
use super::partial::Partial;
use super::spans::Spans;
use super::yaml::Document;
use super::{Loaded, Origin, Request};

pub(super) const FILE_NAME: &str = "ralph.yml";

/// No configuration that a person wrote is larger; what is larger is something else.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// One layer, after it was applied: enough to say what it had said.
#[derive(Debug)]
pub(super) struct Layer {
    source: Source,
    /// The layer in the shape of the file; `null` is what it did not say.
    said: Value,
}

#[derive(Debug)]
enum Source {
    File {
        path: PathBuf,
        outline: Spans,
    },
    Environment {
        set_by: Vec<(&'static str, &'static str)>,
    },
    Flags,
    /// A file of another Ralph.
    ImportedFile {
        path: PathBuf,
        places: Vec<(String, Place)>,
    },
}

impl Layer {
    /// Where this layer says the key, if it does.
    pub(super) fn origin(&self, key: &str) -> Option<Origin> {
        if !says(&self.said, key) {
            return None;
        }
        Some(match &self.source {
            Source::File { path, outline } => Origin::File {
                path: path.clone(),
                line: outline.nearest(key).map_or(1, |entry| entry.line),
            },
            Source::Environment { set_by } => Origin::Environment {
                variable: origin_of(set_by, key).unwrap_or_default().to_owned(),
            },
            Source::Flags => Origin::Flag,
            Source::ImportedFile { path, places } => {
                let place = places
                    .iter()
                    .find(|(placed, _)| placed == key || placed.starts_with(key));
                match place.map(|(_, place)| place) {
                    Some(Place::Variable(variable)) => Origin::Environment {
                        variable: variable.clone(),
                    },
                    Some(Place::Line(line)) => Origin::File {
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

    /// The file that this layer is, and what it says.
    pub(super) fn file(&self) -> Option<(&Path, &Value)> {
        match &self.source {
            Source::File { path, .. } | Source::ImportedFile { path, .. } => Some((path, &self.said)),
            Source::Environment { .. } | Source::Flags => None,
        }
    }

    /// A later layer gave the prompt, in one way or the other: what this one said about it decides nothing.
    fn take_back_prompt(&mut self) {
        for key in ["/event_loop/prompt", "/event_loop/prompt_file"] {
            if let Some(said) = self.said.pointer_mut(key) {
                *said = Value::Null;
            }
        }
    }
}

/// A name chosen by the user may itself hold dots, so every way to cut the key is tried.
fn says(said: &Value, key: &str) -> bool {
    let Some(members) = said.as_object() else {
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
            .is_some_and(|inner| says(inner, &key[dot + 1..]))
    })
}

impl Loaded {
    /// Lays one file over what there is.
    pub(super) fn lay_file(&mut self, path: &Path, known: Known<'_>) -> Result<(), ConfigError> {
        let text = read_text(path)?;
        let document = Document::new(path, &text);
        let mut wishes: Partial = document.read().map_err(ConfigError::Diagnostic)?;
        check(&wishes, known)
            .map_err(|complaint| ConfigError::Diagnostic(Box::new(document.mistake(complaint))))?;
        wishes.anchor_paths(path.parent().unwrap_or(path));
        let outline = document.into_outline();
        self.files.push(path.to_owned());
        self.lay(
            wishes,
            Source::File {
                path: path.to_owned(),
                outline,
            },
        );
        Ok(())
    }

    /// Lays a file of another Ralph over what there is. What it says wrongly was told as a warning.
    pub(super) fn lay_foreign(
        &mut self,
        whose: ImportedFile,
        path: &Path,
        request: &Request<'_>,
    ) -> Result<(), ConfigError> {
        let text = read_text(path)?;
        let scene = import::Scene {
            path,
            environment: request.environment,
            agents: request.agents,
        };
        let mut said = import::read(whose, &text, &scene);
        said.wishes.anchor_paths(path.parent().unwrap_or(path));
        self.warnings.append(&mut said.warnings);
        self.files.push(path.to_owned());
        let (path, places) = (path.to_owned(), said.places);
        self.lay(said.wishes, Source::ImportedFile { path, places });
        Ok(())
    }

    pub(super) fn lay_environment(
        &mut self,
        mut environment: Environment,
        known: Known<'_>,
        cwd: &Path,
    ) -> Result<(), ConfigError> {
        check(&environment.wishes, known).map_err(|complaint| environment.blame(complaint))?;
        environment.wishes.anchor_paths(cwd);
        self.warnings.append(&mut environment.warnings);
        self.lay(
            environment.wishes,
            Source::Environment {
                set_by: environment.set_by,
            },
        );
        Ok(())
    }

    pub(super) fn lay_flags(
        &mut self,
        mut flags: Partial,
        known: Known<'_>,
        cwd: &Path,
    ) -> Result<(), ConfigError> {
        check(&flags, known).map_err(|complaint| ConfigError::Flag { complaint })?;
        flags.anchor_paths(cwd);
        self.lay(flags, Source::Flags);
        Ok(())
    }

    fn lay(&mut self, wishes: Partial, source: Source) {
        // Only text, numbers and lists: there is nothing in a layer that JSON could refuse.
        let said = serde_json::to_value(&wishes).unwrap_or(Value::Null);
        if wishes.event_loop.prompt.is_some() || wishes.event_loop.prompt_file.is_some() {
            self.layers.iter_mut().for_each(Layer::take_back_prompt);
        }
        wishes.apply_to(&mut self.settings);
        self.layers.push(Layer { source, said });
    }
}

/// Reads a file whole, if it is one that a person could have written.
pub(super) fn read_text(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(ConfigError::TooLarge {
            path: path.to_owned(),
            max_bytes: MAX_FILE_BYTES,
        });
    }
    String::from_utf8(bytes).map_err(|error| {
        let start = error.utf8_error().valid_up_to();
        let shown = String::from_utf8_lossy(error.as_bytes());
        let mistake = Diagnostic::new(path, &shown, start..start + 1, "the file is not UTF-8 text")
            .with_help(Some("save it as UTF-8; other encodings are not read".to_owned()));
        ConfigError::Diagnostic(Box::new(mistake))
    })
}

/// The nearest `ralph.yml` at or above a directory.
pub(super) fn find_project_file(cwd: &Path, warnings: &mut Vec<String>) -> Option<PathBuf> {
    for directory in cwd.ancestors() {
        let path = directory.join(FILE_NAME);
        if is_there(&path) {
            return Some(path);
        }
        let other = directory.join("ralph.yaml");
        if is_there(&other) {
            warnings.push(format!(
                "{} is not read; the name is {FILE_NAME}",
                other.display()
            ));
        }
    }
    None
}

/// A link that leads nowhere is there, too: reading it must fail, not be skipped.
pub(super) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
