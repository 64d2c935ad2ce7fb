//! Output and error handling that several subcommands share.

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
