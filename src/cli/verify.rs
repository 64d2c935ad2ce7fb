//! `ralph verify`: checks the hash chain of a run's journal.

use serde::Serialize;

use crate::store::{ChainReport, ChainState, id_from_path, verify_chain};
use crate::ui::clean::clean;
use crate::ui::{Terminal, Tone, pretty_json, units};

use super::args::VerifyArguments;
use super::common::ignore_broken_pipe;
use super::error::CliError;
use super::exit::Exit;
use super::run_lookup::resolve_run;

#[derive(Debug, Serialize)]
struct Verification {
    id: String,
    verified: bool,
    records: u64,
    /// SHA-256 of the journal.
    head: String,
    /// Absent if the journal was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(super) fn verify(arguments: &VerifyArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let directory = resolve_run(arguments.run.as_deref())?;
    let journal = directory.join("events.jsonl");
    let report = verify_chain(&journal, arguments.head.as_deref())?;
    let problem = problem(&report, arguments.head.as_deref());
    let verification = Verification {
        id: id_from_path(&directory),
        verified: problem.is_none(),
        records: report.records,
        head: report.head,
        problem,
    };
    let text = match arguments.json {
        true => pretty_json(&verification),
        false => text(&verification, terminal),
    };
    let exit = match verification.verified {
        true => Exit::Success,
        false => Exit::Failed,
    };
    terminal.print(&text).map(|()| exit).or_else(ignore_broken_pipe)
}

fn problem(report: &ChainReport, head: Option<&str>) -> Option<String> {
    match &report.state {
        ChainState::Broken(broken) => Some(broken.to_string()),
        ChainState::Unchained => {
            Some("an earlier ralph wrote the journal, so changes cannot be detected".to_owned())
        }
        ChainState::Intact if head.is_some() && !report.contains_head => {
            Some("the journal never had the given hash: it was replaced or cut".to_owned())
        }
        ChainState::Intact => None,
    }
}

fn text(verification: &Verification, terminal: &Terminal) -> String {
    let (mark, tone, sentence) = match &verification.problem {
        None => ("✓", Tone::Good, "The journal is what ralph wrote.".to_owned()),
        Some(problem) => ("✗", Tone::Bad, format!("Not verified: {problem}.")),
    };
    format!(
        "{} {}: {sentence}\n  records  {}\n  head     sha256:{}\n",
        terminal.styled(mark, tone),
        clean(&verification.id),
        units::grouped(verification.records),
        verification.head
    )
}
