//! `ralph diff`: prints what a run or one of its iterations changed.

use serde::Serialize;

use crate::run::Host;
use crate::snapshot::{ChangeKind, FileChange, SnapshotId};
use crate::ui::clean::clean;
use crate::ui::{Cell, Table, Terminal, Tone, pretty_json, units};

use super::args::DiffArguments;
use super::common::ignore_broken_pipe;
use super::error::CliError;
use super::exit::Exit;
use super::snapshots::{RunSnapshots, compared_snapshots, parse_selection};

#[derive(Serialize)]
struct DiffReport {
    run: String,
    from: String,
    to: String,
    added: u64,
    removed: u64,
    files: Vec<ChangeRow>,
}

#[derive(Serialize)]
struct ChangeRow {
    path: String,
    change: &'static str,
    added: Option<u64>,
    removed: Option<u64>,
}

pub(super) fn diff(arguments: &DiffArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let (run, range) = parse_selection(&arguments.selection)?;
    let snapshots = RunSnapshots::of(run.as_deref(), host)?;
    let (from, to) = compared_snapshots(&snapshots, range)?;
    let changes = snapshots.store.changed_paths(from, to)?;
    let report = report(&snapshots.id, (from, to), &changes);
    let printed = if arguments.json {
        terminal.print(&pretty_json(&report))
    } else if arguments.stat {
        terminal.page(&stat(&report, terminal))
    } else {
        let patch = snapshots.store.diff(from, to, &[])?;
        terminal.page(&colored(&String::from_utf8_lossy(&patch), terminal))
    };
    printed.map(|()| Exit::Success).or_else(ignore_broken_pipe)
}

fn report(run: &str, (from, to): (SnapshotId, SnapshotId), changes: &[FileChange]) -> DiffReport {
    let lines =
        |count: fn((u64, u64)) -> u64| changes.iter().filter_map(|change| change.lines).map(count).sum();
    let row = |change: &FileChange| ChangeRow {
        path: String::from_utf8_lossy(&change.path).into_owned(),
        change: match change.kind {
            ChangeKind::Added => "added",
            ChangeKind::Removed => "deleted",
            ChangeKind::Modified => "modified",
        },
        added: change.lines.map(|(added, _)| added),
        removed: change.lines.map(|(_, removed)| removed),
    };
    DiffReport {
        run: run.to_owned(),
        from: from.to_string(),
        to: to.to_string(),
        added: lines(|(added, _)| added),
        removed: lines(|(_, removed)| removed),
        files: changes.iter().map(row).collect(),
    }
}

fn stat(report: &DiffReport, terminal: &Terminal) -> String {
    if report.files.is_empty() {
        return "No changes.\n".to_owned();
    }
    let mut table = Table::new(["FILE", "CHANGE", "+", "−"]);
    for file in &report.files {
        let tone = match file.change {
            "added" => Tone::Good,
            "deleted" => Tone::Bad,
            _ => Tone::Plain,
        };
        let lines = |count: Option<u64>| count.map_or_else(|| "binary".to_owned(), units::grouped);
        table.row([
            Cell::new(&clean(&file.path), Tone::Plain),
            Cell::new(file.change, tone),
            Cell::new(&lines(file.added), Tone::Good),
            Cell::new(&lines(file.removed), Tone::Bad),
        ]);
    }
    let files = units::count(report.files.len() as u64, "file");
    let summary = format!("{files} changed, +{} −{}\n", report.added, report.removed);
    terminal.render(&table) + &summary
}

/// A patch in color, without anything that a terminal would interpret.
fn colored(patch: &str, terminal: &Terminal) -> String {
    if patch.is_empty() {
        return "No changes.\n".to_owned();
    }
    let mut text = String::with_capacity(patch.len());
    // Lines that look like a header count as one only before the first hunk of a file.
    let mut in_header = true;
    for line in patch.lines() {
        if line.starts_with("diff --git ") {
            in_header = true;
        }
        let tone = match line.as_bytes().first() {
            Some(b'@') => {
                in_header = false;
                Tone::Accent
            }
            _ if in_header => Tone::Strong,
            Some(b'+') => Tone::Good,
            Some(b'-') => Tone::Bad,
            _ => Tone::Plain,
        };
        let line = clean(line);
        match tone {
            Tone::Plain => text.push_str(&line),
            tone => text.push_str(&terminal.styled(&line, tone)),
        }
        text.push('\n');
    }
    text
}
