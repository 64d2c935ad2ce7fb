//! The files of other Ralphs, read as layers below every `ralph.yml`: `.ralphrc` (bash assignments, never executed) and
//! ralphex's `config` (INI). What they say that ralph has no word for is told, not obeyed.

mod convert;
mod ralphex;
mod ralphrc;

pub use convert::{Theirs, as_yaml, equivalent_yaml};

use std::path::{Path, PathBuf};

use super::partial::Partial;

/// Where one of their settings stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// From 1.
    Line(usize),
    Variable(String),
}

/// What one of their files says, in our words.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) wishes: Partial,
    /// Our key, and where they say it.
    pub(super) places: Vec<(String, Place)>,
    pub(super) warnings: Vec<String>,
}

/// Whose file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportedFile {
    Ralphrc,
    Ralphex,
}

/// What is around a file.
pub(super) struct Scene<'a> {
    pub(super) path: &'a Path,
    pub(super) environment: &'a [(String, String)],
    /// The names of the built-in agents.
    pub(super) agents: &'a [&'a str],
}

/// Their files for a directory, those that win last.
pub(super) fn find(cwd: &Path, user_dir: Option<&Path>) -> Vec<(ImportedFile, PathBuf)> {
    let beside_ours = user_dir
        .and_then(Path::parent)
        .map(|base| base.join("ralphex/config"));
    let nearest = |names: &[&str]| {
        cwd.ancestors()
            .flat_map(|directory| names.iter().map(move |name| directory.join(name)))
            .find(|path| path.is_file())
    };
    let users = beside_ours.filter(|path| path.is_file());
    let projects = nearest(&[".ralphex/config"]);
    // Older layouts have it in the root, newer ones beside the other files.
    let ralphrc = nearest(&[".ralph/.ralphrc", ".ralphrc"]);
    users
        .into_iter()
        .chain(projects)
        .map(|path| (ImportedFile::Ralphex, path))
        .chain(ralphrc.map(|path| (ImportedFile::Ralphrc, path)))
        .collect()
}

/// The file of theirs that counts most for a directory.
pub fn nearest_foreign(whose: ImportedFile, cwd: &Path, user_dir: Option<&Path>) -> Option<PathBuf> {
    let found = find(cwd, user_dir).into_iter();
    let mut theirs = found.filter(|(of, _)| *of == whose).map(|(_, path)| path);
    theirs.next_back()
}

pub(super) fn read(whose: ImportedFile, text: &str, scene: &Scene<'_>) -> Said {
    match whose {
        ImportedFile::Ralphrc => ralphrc::read(text, scene),
        ImportedFile::Ralphex => ralphex::read(text, scene),
    }
}

impl Said {
    fn place(&mut self, key: &str, place: &Place) {
        self.places.push((key.to_owned(), place.clone()));
    }

    /// One sentence for all that has no counterpart.
    fn tell_unheard(&mut self, scene: &Scene<'_>, unheard: &[String]) {
        if !unheard.is_empty() {
            let (verb, it) = if unheard.len() == 1 {
                ("has", "is")
            } else {
                ("have", "are")
            };
            self.warnings.push(format!(
                "{}: {} {verb} no counterpart in ralph and {it} ignored",
                scene.path.display(),
                unheard.join(", ")
            ));
        }
    }
}
