//! `ralph receipt`: prints the receipt of a run, copies it and signs it.

use std::io::Write;
use std::path::Path;

use crate::run::{Host, Receipt, snapshots_of};
use crate::snapshot::SnapshotStore;
use crate::store::{id_from_path, is_running, receipt_of, verify_chain};
use crate::ui::clean::clean;
use crate::ui::{PassedGates, Terminal, Tone, gate_failure, pretty_json, run_verdict, units};

use super::args::ReceiptArguments;
use super::common::{Overwrite, ignore_broken_pipe, write_private_file};
use super::error::CliError;
use super::exit::Exit;
use super::run_lookup::resolve_run;
use super::ssh_signature::{sign, signature_of};
use super::undo_error::UndoError;

pub(super) fn receipt(
    arguments: &ReceiptArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let directory = resolve_run(arguments.run.as_deref())?;
    if is_running(&directory) {
        let id = id_from_path(&directory);
        return Err(UndoError::RunActive { id }.into());
    }
    let (receipt, text) = read_or_create(&directory, host)?;
    let stored = receipt_of(&directory);
    if let Some(key) = &arguments.sign {
        let signature = sign(text.as_bytes(), key, host).map_err(|why| UndoError::Unsigned { why })?;
        write(&signature_of(&stored), Overwrite::Yes, &signature)?;
    }
    if let Some(output) = &arguments.output {
        write(output, Overwrite::No, text.as_bytes())?;
        if let Ok(signature) = std::fs::read(signature_of(&stored)) {
            write(&signature_of(output), Overwrite::Yes, &signature)?;
        }
    }
    let file = arguments.output.as_deref().unwrap_or(&stored);
    let text = match arguments.json {
        true => text,
        false => summary(&receipt, file, terminal),
    };
    terminal
        .print(&text)
        .map(|()| Exit::Success)
        .or_else(ignore_broken_pipe)
}

/// The stored receipt, or a new one if the journal has changed since or there is none.
fn read_or_create(directory: &Path, host: &Host) -> Result<(Receipt, String), CliError> {
    let path = receipt_of(directory);
    let head = verify_chain(&directory.join("events.jsonl"), None)?.head;
    if let Ok(text) = std::fs::read_to_string(&path)
        && let Some(receipt) = Receipt::parse(text.as_bytes())
        && receipt.journal.head == head
        && receipt.is_unchanged(text.as_bytes())
    {
        return Ok((receipt, text));
    }
    let store = SnapshotStore::at(snapshots_of(directory), host.supervisors());
    let receipt = Receipt::of_run(directory, &store, None, Some(&head)).map_err(UndoError::Receipt)?;
    let text = pretty_json(&receipt);
    write(&path, Overwrite::Yes, text.as_bytes())?;
    Ok((receipt, text))
}

fn write(path: &Path, overwrite: Overwrite, bytes: &[u8]) -> Result<(), CliError> {
    write_private_file(path, overwrite, |file| Ok(file.write_all(bytes)))
}

fn summary(receipt: &Receipt, file: &Path, terminal: &Terminal) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text.push_str(&format!("  {name:<9} {}\n", clean(value)));
    let gates = PassedGates::new(
        receipt
            .gates
            .iter()
            .filter(|gate| receipt.verified && gate.result.is_some_and(|result| result.passed()))
            .map(|gate| gate.definition.name.clone())
            .collect(),
    );
    let (mark, tone, sentence) = match &receipt.outcome {
        Some(outcome) => {
            let verdict = run_verdict(outcome, &gates);
            (verdict.mark, verdict.tone, verdict.sentence)
        }
        None => ("!", Tone::Warning, "The run has not ended.".to_owned()),
    };
    let agents = receipt.agents.iter().map(|agent| {
        let details = [agent.version.as_deref(), agent.model.as_deref()];
        let details: Vec<&str> = details.into_iter().flatten().collect();
        format!("{} {}", agent.name, details.join(" "))
            .trim_end()
            .to_owned()
    });
    line("agent", &agents.collect::<Vec<_>>().join(", "));
    if let Some(origin) = &receipt.forked_from {
        line("forked", &format!("from {}@{}", origin.run, origin.iteration));
    }
    if let Some(tree) = &receipt.tree {
        let files = units::count(tree.files, "file");
        let (tree, snapshot) = (short(&tree.content_sha256), short(&tree.snapshot));
        line("tree", &format!("{tree} ({files}), snapshot {snapshot}"));
    }
    for gate in &receipt.gates {
        let name = &gate.definition.name;
        let result = match gate.result {
            None => "did not run in the last check".to_owned(),
            Some(result) if result.passed() => "passed".to_owned(),
            Some(result) => gate_failure(result).unwrap_or_default(),
        };
        line("gate", &format!("{name}: {result}"));
    }
    if let Some(tokens) = receipt.usage.tokens() {
        line("tokens", &units::grouped(tokens));
    }
    if let Some(cost) = receipt.usage.cost_usd {
        line("cost", &units::dollars(cost));
    }
    line(
        "journal",
        &format!(
            "{} records, sha256:{}",
            units::grouped(receipt.journal.records),
            short(&receipt.journal.head)
        ),
    );
    line("file", &file.display().to_string());
    let mark = terminal.styled(mark, tone);
    format!("{mark} {}: {}\n{text}", clean(&receipt.run), clean(&sentence))
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
