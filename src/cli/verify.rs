//! `ralph verify`: checks the hash chain of a run's journal, or a receipt.

use serde::Serialize;

use crate::run::Host;
use crate::store::{ChainReport, ChainState, id_from_path, verify_chain};
use crate::ui::clean::clean;
use crate::ui::{Terminal, Tone, pretty_json, units};

use super::args::VerifyArguments;
use super::common::ignore_broken_pipe;
use super::error::CliError;
use super::exit::Exit;
use super::receipt_check::{ReceiptCheck, Step, StepState, read_receipt};
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

/// The result of checking a receipt.
#[derive(Debug, Serialize)]
struct ReceiptVerification<'a> {
    id: &'a str,
    verified: bool,
    steps: &'a [Step],
}

pub(super) fn verify(
    arguments: &VerifyArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let path = arguments.run.as_deref();
    if let Some((path, receipt)) = path.and_then(|path| Some((path, read_receipt(path)?))) {
        let mut check = ReceiptCheck::new(receipt, path, arguments, host)?;
        check.verify(terminal)?;
        return print_receipt(&check, arguments, terminal);
    }
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

fn print_receipt(
    check: &ReceiptCheck<'_>,
    arguments: &VerifyArguments,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let verification = ReceiptVerification {
        id: check.run_id(),
        verified: !check.failed(),
        steps: &check.steps,
    };
    let (mark, tone, sentence, exit) = match verification.verified {
        true => ("✓", Tone::Good, "Verified.", Exit::Success),
        false => ("✗", Tone::Bad, "Not verified.", Exit::Failed),
    };
    let text = match arguments.json {
        true => pretty_json(&verification),
        false => {
            let steps: String = check.steps.iter().map(|step| line(step, terminal)).collect();
            let mark = terminal.styled(mark, tone);
            format!("{mark} {}: {sentence}\n{steps}", clean(check.run_id()))
        }
    };
    terminal.print(&text).map(|()| exit).or_else(ignore_broken_pipe)
}

fn line(step: &Step, terminal: &Terminal) -> String {
    let (mark, tone) = match step.state {
        StepState::Passed => ("✓", Tone::Good),
        StepState::Failed => ("✗", Tone::Bad),
        StepState::Skipped => ("–", Tone::Faint),
    };
    let text = clean(&step.text).replace('\n', "\n    ");
    format!(
        "  {} {}: {text}\n",
        terminal.styled(mark, tone),
        clean(&step.what)
    )
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
