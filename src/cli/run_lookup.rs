//! Finds the run that an argument names.

use std::path::{Path, PathBuf};

use crate::store::{LATEST, StoreError, journal_at};

use super::context::current_project;
use super::error::CliError;

/// Returns the directory of a run given by name; `None` for a path.
pub(super) fn named_run(what: &Path) -> Result<Option<PathBuf>, CliError> {
    let name = what.to_string_lossy();
    let is_path = name == "-" || name.contains('/') || (name != LATEST && what.exists());
    if is_path {
        return Ok(None);
    }
    Ok(Some(current_project()?.find_run(&name)?))
}

/// Returns the directory of a run given by name or path; by default the newest.
pub(super) fn resolve_run(run: Option<&Path>) -> Result<PathBuf, CliError> {
    let what = run.unwrap_or(Path::new(LATEST));
    let path = named_run(what)?.unwrap_or_else(|| what.to_owned());
    let not_a_run = || StoreError::NotARun { path: path.clone() };
    let journal = journal_at(&path)?.ok_or_else(not_a_run)?;
    let journal = std::fs::canonicalize(&journal).unwrap_or(journal);
    Ok(journal.parent().unwrap_or(Path::new(".")).to_owned())
}
