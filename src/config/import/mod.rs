//! Imports configuration files of similar tools as layers below every `ralph.yml`: `.ralphrc` (bash assignments,
//! parsed and never executed) and ralphex's `config` (INI). Unsupported settings produce warnings.

mod convert;
mod ralphex;
mod ralphrc;

pub use convert::{ImportSource, convert_to_yaml, to_yaml};

use std::path::{Path, PathBuf};

use super::settings::PartialSettings;

/// The source of an imported setting: a line of the file, 1-based, or an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ImportedFrom {
    Line(usize),
    Variable(String),
}

/// The settings of an imported file.
#[derive(Debug, Default)]
pub(super) struct ImportedSettings {
    pub(super) settings: PartialSettings,
    /// The source of each key of `ralph.yml`.
    pub(super) origins: Vec<(String, ImportedFrom)>,
    pub(super) warnings: Vec<String>,
}

/// The kinds of files that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportedFile {
    Ralphrc,
    Ralphex,
}

/// The path of an imported file and what is needed to interpret it.
pub(super) struct ImportContext<'a> {
    pub(super) path: &'a Path,
    pub(super) environment: &'a [(String, String)],
    /// The names of the built-in agents.
    pub(super) agents: &'a [&'a str],
}

/// The files to import for a directory, in ascending precedence.
pub(super) fn find(cwd: &Path, user_dir: Option<&Path>) -> Vec<(ImportedFile, PathBuf)> {
    let user_file = user_dir
        .and_then(Path::parent)
        .map(|base| base.join("ralphex/config"));
    let nearest = |names: &[&str]| {
        cwd.ancestors()
            .flat_map(|directory| names.iter().map(move |name| directory.join(name)))
            .find(|path| path.is_file())
    };
    let user_file = user_file.filter(|path| path.is_file());
    let project_file = nearest(&[".ralphex/config"]);
    // Newer layouts use `.ralph/`, older ones the project root.
    let ralphrc = nearest(&[".ralph/.ralphrc", ".ralphrc"]);
    user_file
        .into_iter()
        .chain(project_file)
        .map(|path| (ImportedFile::Ralphex, path))
        .chain(ralphrc.map(|path| (ImportedFile::Ralphrc, path)))
        .collect()
}

/// The file of this kind with the highest precedence for a directory.
pub fn nearest_import(format: ImportedFile, cwd: &Path, user_dir: Option<&Path>) -> Option<PathBuf> {
    let found = find(cwd, user_dir).into_iter();
    let mut matching = found.filter(|(found, _)| *found == format).map(|(_, path)| path);
    matching.next_back()
}

pub(super) fn read(format: ImportedFile, text: &str, context: &ImportContext<'_>) -> ImportedSettings {
    match format {
        ImportedFile::Ralphrc => ralphrc::read(text, context),
        ImportedFile::Ralphex => ralphex::read(text, context),
    }
}

impl ImportedSettings {
    fn set_origin(&mut self, key: &str, origin: &ImportedFrom) {
        self.origins.push((key.to_owned(), origin.clone()));
    }

    /// Adds one warning for all unsupported settings.
    fn warn_unsupported(&mut self, context: &ImportContext<'_>, unsupported: &[String]) {
        if !unsupported.is_empty() {
            self.warnings.push(format!(
                "{}: ignoring unsupported settings: {}",
                context.path.display(),
                unsupported.join(", ")
            ));
        }
    }
}
