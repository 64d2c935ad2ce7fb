//! `ralph verify RECEIPT`: compares a receipt with the journal, the signature and the files, and runs its gates again.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::config::{LoadedConfig, PartialSettings};
use crate::policy::Gate;
use crate::process::scratch;
use crate::run::{
    Host, RECEIPT_VERSION, Receipt, ReceiptGate, ReceiptTree, Rerun, RerunEnd, RerunGate, snapshots_of,
};
use crate::snapshot::{SnapshotId, SnapshotStore, SnapshotTaker};
use crate::store::{ChainState, Project, verify_chain};
use crate::trust::Consent;
use crate::ui::{Terminal, gate_failure, units};

use super::args::VerifyArguments;
use super::consent;
use super::context::Context;
use super::error::CliError;
use super::snapshots::rules;
use super::ssh_signature::{Signer, check, signature_of};
use super::undo_error::UndoError;

/// How many differences are listed.
const MAX_LISTED: usize = 10;

/// One part of the verification.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    pub(super) what: String,
    pub(super) state: StepState,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StepState {
    Passed,
    Failed,
    /// Nothing to compare with.
    Skipped,
}

/// A receipt that is being verified.
pub(super) struct ReceiptCheck<'a> {
    receipt: Receipt,
    text: Vec<u8>,
    path: &'a Path,
    arguments: &'a VerifyArguments,
    context: Context,
    project: Project,
    pub(super) steps: Vec<Step>,
}

/// The files on which the gates run.
struct CheckedFiles {
    store: SnapshotStore,
    tree: SnapshotId,
    first: Option<SnapshotId>,
    _temporary: Option<TempDir>,
}

/// Reads a receipt; `None` if the file is something else.
pub(super) fn read_receipt(path: &Path) -> Option<(Receipt, Vec<u8>)> {
    if !path.is_file() {
        return None;
    }
    let text = std::fs::read(path).ok()?;
    Some((Receipt::parse(&text)?, text))
}

impl<'a> ReceiptCheck<'a> {
    pub(super) fn new(
        (receipt, text): (Receipt, Vec<u8>),
        path: &'a Path,
        arguments: &'a VerifyArguments,
        host: &Host,
    ) -> Result<Self, CliError> {
        if receipt.receipt > RECEIPT_VERSION {
            let version = receipt.receipt;
            return Err(UndoError::NewerReceipt { version }.into());
        }
        let context = Context::here(host)?;
        Ok(Self {
            project: context.project()?,
            receipt,
            text,
            path,
            arguments,
            context,
            steps: Vec::new(),
        })
    }

    pub(super) fn run_id(&self) -> &str {
        &self.receipt.run
    }

    pub(super) fn failed(&self) -> bool {
        self.steps.iter().any(|step| step.state == StepState::Failed)
    }

    fn add(&mut self, what: impl Into<String>, state: StepState, text: impl Into<String>) {
        self.steps.push(Step {
            what: what.into(),
            state,
            text: text.into(),
        });
    }

    /// Verifies everything, and stops before the gates if something differs.
    pub(super) fn verify(&mut self, terminal: &Terminal) -> Result<(), CliError> {
        self.check_text();
        let run = self.find_run();
        let known = self.check_journal(run.as_deref())?;
        let signed = self.check_signature();
        if self.failed() {
            return Ok(());
        }
        if !self.receipt.verified || self.receipt.gates.is_empty() {
            self.add(
                "verdict",
                StepState::Failed,
                "the receipt does not say that gates passed",
            );
            return Ok(());
        }
        // A journal that came with the receipt confirms no commands: both could be forged.
        let own = run.as_deref().filter(|run| known && self.is_own(run));
        let confirmed = own.is_some() || signed;
        let Some(files) = self.files(own)? else {
            return Ok(());
        };
        let Some(gates) = self.gates(confirmed, terminal)? else {
            return Ok(());
        };
        self.run_gates(files, gates)
    }

    fn check_text(&mut self) {
        match self.receipt.is_unchanged(&self.text) {
            true => self.add("receipt", StepState::Passed, "unchanged since it was written"),
            false => self.add("receipt", StepState::Failed, "changed since it was written"),
        }
    }

    /// The directory of the run, if it is on this machine.
    fn find_run(&self) -> Option<PathBuf> {
        let beside = self
            .path
            .parent()
            .map(|parent| match parent.as_os_str().is_empty() {
                true => Path::new("."),
                false => parent,
            });
        let beside = beside.filter(|directory| directory.join("events.jsonl").is_file());
        let beside = beside.and_then(|directory| std::fs::canonicalize(directory).ok());
        beside.or_else(|| self.project.find_run(&self.receipt.run).ok())
    }

    /// Whether the run is in the state directory of this project.
    fn is_own(&self, run: &Path) -> bool {
        let own = self.project.directory();
        let own = std::fs::canonicalize(own).unwrap_or_else(|_| own.to_owned());
        std::fs::canonicalize(run).is_ok_and(|run| run.starts_with(own))
    }

    /// Whether the journal confirms the receipt.
    fn check_journal(&mut self, run: Option<&Path>) -> Result<bool, CliError> {
        const WHAT: &str = "journal";
        let Some(run) = run else {
            self.add(WHAT, StepState::Skipped, "not on this machine");
            return Ok(false);
        };
        let head = self.receipt.journal.head.clone();
        let report = verify_chain(&run.join("events.jsonl"), Some(&head))?;
        let problem = match report.state {
            ChainState::Broken(broken) => Some(broken.to_string()),
            ChainState::Unchained => Some("an earlier ralph wrote it, without hashes".to_owned()),
            ChainState::Intact if !report.contains_head => {
                Some("it never had the hash in the receipt: one of them was changed".to_owned())
            }
            ChainState::Intact => None,
        };
        if let Some(problem) = problem {
            self.add(WHAT, StepState::Failed, problem);
            return Ok(false);
        }
        let store = SnapshotStore::at(snapshots_of(run), self.context.host.supervisors());
        let records = Some(self.receipt.journal.records);
        let rebuilt = Receipt::of_run(run, &store, records, Some(&head)).map_err(UndoError::Receipt)?;
        let differences = differences(&self.receipt, &rebuilt);
        if differences.is_empty() {
            let records = units::count(self.receipt.journal.records, "record");
            self.add(WHAT, StepState::Passed, format!("{records}, as the receipt says"));
            return Ok(true);
        }
        let text = format!("it differs from the receipt:\n{}", listed(&differences));
        self.add(WHAT, StepState::Failed, text);
        Ok(false)
    }

    /// Whether an allowed signer signed the receipt.
    fn check_signature(&mut self) -> bool {
        const WHAT: &str = "signature";
        let signature = signature_of(self.path);
        let signers = self.arguments.signers.as_deref();
        if !signature.is_file() {
            let state = match signers {
                Some(_) => StepState::Failed,
                None => StepState::Skipped,
            };
            self.add(WHAT, state, "not signed");
            return false;
        }
        match check(&self.text, &signature, signers, &self.context.host) {
            Ok(Signer::Allowed(identity)) => {
                self.add(WHAT, StepState::Passed, format!("signed by {identity}"));
                true
            }
            Ok(Signer::Unknown(description)) => {
                let text = format!("{description}; pass --signers FILE to check who owns the key");
                self.add(WHAT, StepState::Skipped, text);
                false
            }
            Err(problem) => {
                self.add(WHAT, StepState::Failed, problem);
                false
            }
        }
    }

    /// The gates to run, if all of them may run: the journal or a signer confirms them, the project configures the same
    /// ones, or the user allows those that it does not configure.
    fn gates(&mut self, confirmed: bool, terminal: &Terminal) -> Result<Option<Vec<RerunGate>>, CliError> {
        let root = self.project.root().to_owned();
        let consent = Consent::of(self.arguments.trust);
        let loaded = self.context.load(PartialSettings::default(), None);
        let loaded = match confirmed {
            // The configuration may have changed since then.
            true => loaded.ok(),
            false => Some(loaded?),
        };
        let (mut gates, mut is_configured) = (Vec::new(), false);
        for gate in self.receipt.gates.clone() {
            if gate.definition.is_review() {
                let what = format!("gate {}", gate.definition.name);
                self.add(what, StepState::Skipped, "a review, which is not repeated");
                continue;
            }
            let own = gate.gate(&root);
            let found = match (own, &loaded) {
                (Some(own), _) if confirmed => Ok(own),
                (own, Some(loaded)) => match configured(&gate, loaded, &root) {
                    None => own.filter(|_| consent == Consent::Given).ok_or_else(|| {
                        let command = &gate.definition.run;
                        format!(
                            "it is not configured here; to run it nevertheless, pass --trust\n  {command}"
                        )
                    }),
                    Some(found) => {
                        is_configured = true;
                        found
                    }
                },
                (_, None) => Err("the configuration with its command cannot be read".to_owned()),
            };
            match found {
                Ok(own) => gates.push(RerunGate {
                    gate: own,
                    protected_changes: gate.protected_changes,
                }),
                Err(why) => self.add(format!("gate {}", gate.definition.name), StepState::Failed, why),
            }
        }
        if gates.is_empty() && !self.failed() {
            self.add("verdict", StepState::Failed, "no gate can be repeated");
        }
        if self.failed() {
            return Ok(None);
        }
        if let Some(loaded) = loaded.filter(|_| is_configured) {
            consent::require(&self.context, &loaded, consent, terminal)?;
        }
        Ok(Some(gates))
    }

    /// The files that the receipt names: from the snapshots of this run, or those of this directory if they are the same.
    fn files(&mut self, run: Option<&Path>) -> Result<Option<CheckedFiles>, CliError> {
        const WHAT: &str = "tree";
        let Some(expected) = self.receipt.tree.clone() else {
            let text = "the run took no snapshots, so the verified files are unknown";
            self.add(WHAT, StepState::Failed, text);
            return Ok(None);
        };
        let parse = |text: &str| SnapshotId::parse(text);
        if let (Some(run), Some(tree)) = (run, parse(&expected.snapshot)) {
            let store = SnapshotStore::at(snapshots_of(run), self.context.host.supervisors());
            let first = self.receipt.snapshots.first();
            let first = first.and_then(|first| parse(&first.id));
            let text = format!("{}, from the snapshots of the run", described(&expected));
            self.add(WHAT, StepState::Passed, text);
            return Ok(Some(CheckedFiles {
                store,
                tree,
                first,
                _temporary: None,
            }));
        }
        let temporary = scratch("ralph-verify-").map_err(CliError::Output)?;
        let store = SnapshotStore::at(
            temporary.path().join("snapshots.git"),
            self.context.host.supervisors(),
        );
        let settings = self.context.load(PartialSettings::default(), None)?.settings;
        let mut rules = rules(&self.project, &settings.snapshots);
        let path = std::fs::canonicalize(self.path).unwrap_or_else(|_| self.path.to_owned());
        rules.excluded.extend([signature_of(&path), path]);
        let mut taker = SnapshotTaker::new(store.clone(), "verify", self.project.root(), rules);
        let tree = taker.take()?.id;
        let found = ReceiptTree::of(tree, &taker.tree());
        if found.content_sha256 == expected.content_sha256 {
            let text = format!(
                "{}, as in {}",
                described(&expected),
                self.project.root().display()
            );
            self.add(WHAT, StepState::Passed, text);
            return Ok(Some(CheckedFiles {
                store,
                tree,
                first: None,
                _temporary: Some(temporary),
            }));
        }
        let mut text = format!("the files in {} differ from it", self.project.root().display());
        match expected.differences(&found) {
            differences if differences.is_empty() => {}
            differences => text = format!("{text}:\n{}", listed(&differences)),
        }
        self.add(WHAT, StepState::Failed, text);
        Ok(None)
    }

    fn run_gates(&mut self, files: CheckedFiles, gates: Vec<RerunGate>) -> Result<(), CliError> {
        let rerun = Rerun {
            store: files.store.clone(),
            tree: files.tree,
            first: files.first,
            root: self.project.root().to_owned(),
            gates,
        };
        let host = self.context.host.clone();
        let ran = rerun.run(&host, |gate, end| {
            let what = format!("gate {}", gate.gate.name);
            let state = match end.passed() {
                true => StepState::Passed,
                false => StepState::Failed,
            };
            let text = match end {
                RerunEnd::Impossible(why) => why,
                RerunEnd::Ran(report) => {
                    let took = units::duration(report.took);
                    let tests = report.tests.as_ref().map(|tests| format!(", {tests}"));
                    let result = gate_failure(report.result).unwrap_or_else(|| "passed".to_owned());
                    format!("{result} in {took}{}", tests.unwrap_or_default())
                }
            };
            self.steps.push(Step { what, state, text });
        });
        ran.map_err(CliError::Output)
    }
}

/// The gate of the same name in the configuration, if it is the same gate; `None` if there is none.
fn configured(gate: &ReceiptGate, loaded: &LoadedConfig, root: &Path) -> Option<Result<Gate, String>> {
    let name = &gate.definition.name;
    let found = loaded.settings.gates.iter().find(|own| own.name == *name)?;
    let own = ReceiptGate::of(found, root);
    if own.definition_sha256 == gate.definition_sha256 {
        return Some(Ok(found.clone()));
    }
    Some(Err(match differences(&gate.definition, &own.definition) {
        differences if differences.is_empty() => {
            "its variables, or its hidden command, differ from the configuration here".to_owned()
        }
        differences => format!("it is configured differently here:\n{}", listed(&differences)),
    }))
}

fn described(tree: &ReceiptTree) -> String {
    let hash = tree.content_sha256.get(..12).unwrap_or_default();
    format!("{hash}, {}", units::count(tree.files, "file"))
}

fn listed(lines: &[String]) -> String {
    let mut text: Vec<String> = lines
        .iter()
        .take(MAX_LISTED)
        .map(|line| format!("  {line}"))
        .collect();
    if let more @ 1.. = lines.len().saturating_sub(MAX_LISTED) {
        text.push(format!("  … and {more} more"));
    }
    text.join("\n")
}

/// The values that differ, each with its path.
fn differences(one: &impl Serialize, other: &impl Serialize) -> Vec<String> {
    let value = |result: serde_json::Result<Value>| result.unwrap_or_default();
    let (one, other) = (
        value(serde_json::to_value(one)),
        value(serde_json::to_value(other)),
    );
    let mut found = Vec::new();
    collect("", &one, &other, &mut found);
    found
}

fn collect(path: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    let null = Value::Null;
    match (one, other) {
        (one, other) if one == other => {}
        (Value::Object(members), Value::Object(others)) => {
            let mut names: Vec<&String> = members.keys().chain(others.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let dot = if path.is_empty() { "" } else { "." };
                let (one, other) = (members.get(name), others.get(name));
                let path = format!("{path}{dot}{name}");
                collect(&path, one.unwrap_or(&null), other.unwrap_or(&null), found);
            }
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            for (index, (one, other)) in items.iter().zip(others).enumerate() {
                collect(&format!("{path}[{index}]"), one, other, found);
            }
        }
        // The hash of the whole follows from the other differences.
        (_, _) if path == "sha256" => {}
        (one, other) => found.push(format!(
            "{path}: {} in the receipt, {} here",
            short(one),
            short(other)
        )),
    }
}

fn short(value: &Value) -> String {
    const MAX_CHARS: usize = 80;
    let text = match value {
        Value::Null => "nothing".to_owned(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_name_the_path_and_both_values() {
        let one = json!({"gates": [{"run": "cargo test"}], "sha256": "a", "verified": true});
        let other = json!({"gates": [{"run": "true"}], "sha256": "b", "verified": true, "more": 1});
        assert_eq!(
            differences(&one, &other),
            [
                "gates[0].run: \"cargo test\" in the receipt, \"true\" here",
                "more: nothing in the receipt, 1 here",
            ]
        );
        assert!(differences(&one, &one).is_empty());
    }
}
