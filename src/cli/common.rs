//! Output and error handling that several subcommands share.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::doctor::{Finding, FindingState};
use crate::run::LeftOut;
use crate::ui::{Terminal, Tone, clean, units};

use super::error::CliError;
use super::exit::Exit;

/// Treats a closed pipe as success: the reader needs no more output.
pub(super) fn ignore_broken_pipe(error: io::Error) -> Result<Exit, CliError> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Ok(Exit::Success)
    } else {
        Err(CliError::Output(error))
    }
}

/// What happens if a file exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overwrite {
    Yes,
    No,
}

impl Overwrite {
    pub(super) fn from_flag(force: bool) -> Self {
        if force { Self::Yes } else { Self::No }
    }
}

/// Writes a file that only the user can read. It is written under a temporary name and renamed, so it is complete or absent.
pub(super) fn write_private_file(
    path: &Path,
    overwrite: Overwrite,
    write: impl FnOnce(&mut File) -> Result<io::Result<()>, CliError>,
) -> Result<(), CliError> {
    let unwritable = |source| CliError::Unwritable {
        path: path.to_owned(),
        source,
    };
    if path.symlink_metadata().is_ok() && overwrite == Overwrite::No {
        let path = path.to_owned();
        return Err(CliError::AlreadyExists { path });
    }
    let directory = path
        .parent()
        .filter(|parent| *parent != Path::new(""))
        .unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".ralph-new-")
        .tempfile_in(directory)
        // The error names the temporary file.
        .map_err(|error| unwritable(error.kind().into()))?;
    write(file.as_file_mut())?.map_err(unwritable)?;
    let persisted = match overwrite {
        Overwrite::Yes => file.persist(path),
        Overwrite::No => file.persist_noclobber(path),
    };
    persisted.map(drop).map_err(|error| unwritable(error.error))
}

/// Lists what a replay of a journal had to leave out.
pub(super) fn replay_warnings(left_out: &LeftOut, journal: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    if left_out.empty {
        warnings.push(format!("{} contains no records", journal.display()));
    }
    if let Some(version) = left_out.later_version {
        warnings.push(format!(
            "the journal was written by a newer ralph (format {version}); some records may be shown incorrectly"
        ));
    }
    if left_out.unknown > 0 {
        let kinds: Vec<&str> = left_out.kinds.iter().map(String::as_str).take(10).collect();
        warnings.push(format!(
            "skipped {} of unknown types: {}",
            records(left_out.unknown),
            kinds.join(", ")
        ));
    }
    if left_out.damaged > 0 {
        let damaged = records(left_out.damaged);
        warnings.push(format!(
            "skipped {damaged} that cannot be read: the journal is damaged"
        ));
    }
    warnings
}

fn records(count: u64) -> String {
    units::count(count, "record")
}

/// Renders findings, grouped by area, with a remedy for each problem.
pub(super) fn findings_text(findings: &[Finding], terminal: &Terminal) -> String {
    let mut text = String::new();
    let mut area = "";
    for finding in findings {
        if finding.area != area {
            area = finding.area;
            text.push_str(&format!("{}{area}\n", if text.is_empty() { "" } else { "\n" }));
        }
        let (mark, tone) = match finding.state {
            FindingState::Good => ("✓", Tone::Good),
            FindingState::Absent => ("·", Tone::Faint),
            FindingState::Warning => ("!", Tone::Warning),
            FindingState::Broken => ("✗", Tone::Bad),
        };
        let detail = clean::clean(&finding.detail).replace('\n', "\n      ");
        text.push_str(&format!(
            "  {} {:<16} {detail}\n",
            terminal.styled(mark, tone),
            clean::clean(&finding.subject)
        ));
        if let Some(remedy) = &finding.remedy
            && matches!(finding.state, FindingState::Warning | FindingState::Broken)
        {
            text.push_str(&format!("    {:<16} → {remedy}\n", ""));
        }
    }
    text
}
