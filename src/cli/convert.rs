//! Converts another Ralph's configuration, for `ralph init` and `ralph config convert`.

use std::path::Path;

use crate::agent;
use crate::config::{
    ImportSource, ImportedFile, convert_orchestrator, convert_to_yaml, nearest_import, user_directory,
};
use crate::files::{self, ReadRule};

use super::args::ImportArgument;
use super::context::Context;
use super::error::CliError;

/// Converts another Ralph's configuration to `ralph.yml`.
pub(super) fn convert(
    context: &Context,
    from: ImportArgument,
    file: Option<&Path>,
) -> Result<String, CliError> {
    let format = match from {
        ImportArgument::Ralphrc => Some(ImportedFile::Ralphrc),
        ImportArgument::Ralphex => Some(ImportedFile::Ralphex),
        ImportArgument::Kstrl => Some(ImportedFile::Kstrl),
        ImportArgument::Orchestrator => None,
    };
    let default_file = || match format {
        Some(format) => nearest_import(format, &context.cwd, user_directory().as_deref()),
        None => Some(context.cwd.join("ralph.yml")).filter(|path| path.is_file()),
    };
    let path = match file {
        Some(file) => context.cwd.join(file),
        None => default_file().ok_or(CliError::NothingToConvert { from })?,
    };
    let text = files::read(&path, ReadRule::CONFIG).map_err(|error| CliError::Unreadable {
        path: path.clone(),
        source: error.into_io(),
    })?;
    let text = &String::from_utf8_lossy(&text);
    let Some(format) = format else {
        return Ok(convert_orchestrator(&path, text, &agent::names(), &context.cwd)?);
    };
    Ok(convert_to_yaml(&ImportSource {
        format,
        path: &path,
        text,
        agents: &agent::names(),
        base: &context.cwd,
    }))
}
