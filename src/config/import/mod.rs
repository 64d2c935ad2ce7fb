//! Imports configuration files of similar tools as layers below every `ralph.yml`: `.ralphrc` (bash assignments,
//! parsed and never executed), ralphex's `config` (INI) and `kstrl.toml`. A `ralph.yml` of ralph-orchestrator is imported in
//! the place of ralph's own. Unsupported settings produce warnings.

mod builder;
mod convert;
mod kstrl;
pub(super) mod orchestrator;
mod ralphex;
mod ralphrc;

pub use convert::{ImportSource, convert_orchestrator, convert_to_yaml, to_yaml};

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
    /// Settings that must be honored and cannot be: the file is not used.
    pub(super) refusals: Vec<String>,
}

/// The kinds of files that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportedFile {
    Ralphrc,
    Ralphex,
    Kstrl,
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
    let kstrl = nearest(&[
        "kstrl.toml",
        "ralph.toml",
        "scripts/kstrl/prompt.md",
        "scripts/ralph/prompt.md",
    ]);
    let kstrl = kstrl.into_iter().map(|path| (ImportedFile::Kstrl, path));
    let ralphex_files = user_file
        .into_iter()
        .chain(project_file)
        .map(|path| (ImportedFile::Ralphex, path));
    kstrl
        .chain(ralphex_files)
        .chain(ralphrc.map(|path| (ImportedFile::Ralphrc, path)))
        .collect()
}

/// The file of this kind with the highest precedence for a directory.
pub fn nearest_import(format: ImportedFile, cwd: &Path, user_dir: Option<&Path>) -> Option<PathBuf> {
    let found = find(cwd, user_dir).into_iter();
    let mut matching = found.filter(|(found, _)| *found == format).map(|(_, path)| path);
    matching.next_back()
}

/// The directory to which the paths of an imported file are relative.
pub(super) fn base_of(format: ImportedFile, path: &Path) -> &Path {
    let directory = path.parent().unwrap_or(path);
    match format {
        ImportedFile::Kstrl => kstrl::root_of(path),
        // `.ralphex/config` belongs to the directory that contains `.ralphex`.
        ImportedFile::Ralphex if directory.ends_with(".ralphex") => directory.parent().unwrap_or(directory),
        ImportedFile::Ralphex | ImportedFile::Ralphrc => directory,
    }
}

pub(super) fn read(format: ImportedFile, text: &str, context: &ImportContext<'_>) -> ImportedSettings {
    match format {
        ImportedFile::Ralphrc => ralphrc::read(text, context),
        ImportedFile::Ralphex => ralphex::read(text, context),
        ImportedFile::Kstrl => kstrl::read(text, context),
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
