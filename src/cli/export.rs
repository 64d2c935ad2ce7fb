//! `ralph export`: exports a run as Markdown, HTML or JSON.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::event::{Secrets, Sink};
use crate::files::{self, ReadRule};
use crate::run::{Host, RunDetails, facts};
use crate::snapshot::{SnapshotId, SnapshotStore};
use crate::store::Journal;
use crate::ui::export::{ExportHeader, Html, Markdown, Otlp};
use crate::ui::{AttemptSummary, Terminal};

use super::args::{ExportArguments, ExportFormat};
use super::common::{Overwrite, ignore_broken_pipe, write_private_file};
use super::error::CliError;
use super::exit::Exit;

use super::run_lookup::resolve_run;

/// The version of the JSON document.
const VERSION: u32 = 1;
/// The part of each iteration's changes that is exported.
const MAX_PATCH_BYTES: usize = 256 * 1024;

pub(super) fn export(
    arguments: &ExportArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let run = resolve_run(arguments.run.as_deref())?;
    let details = RunDetails::at(&run)?;
    let format = format(arguments);
    let Some(path) = &arguments.output else {
        let written = write(&details, format, host, &mut terminal.writer())?;
        return written.map(|()| Exit::Success).or_else(ignore_broken_pipe);
    };
    write_private_file(path, Overwrite::from_flag(arguments.force), |file| {
        write(&details, format, host, file)
    })?;
    let text = format!("Wrote {}\n", path.display());
    terminal
        .print(&text)
        .map(|()| Exit::Success)
        .or_else(ignore_broken_pipe)
}

/// The format that the user names, or that the extension of the file implies.
fn format(arguments: &ExportArguments) -> ExportFormat {
    let extension = arguments.output.as_deref().and_then(Path::extension);
    arguments
        .format
        .unwrap_or_else(|| match extension.and_then(|extension| extension.to_str()) {
            Some("html" | "htm") => ExportFormat::Html,
            Some("json") => ExportFormat::Json,
            Some("otlp") => ExportFormat::Otlp,
            Some(_) | None => ExportFormat::Md,
        })
}

/// The outer result reports errors of the run's files, the inner one errors of the writer.
fn write(
    details: &RunDetails,
    format: ExportFormat,
    host: &Host,
    writer: &mut dyn Write,
) -> Result<io::Result<()>, CliError> {
    let prompt = prompt(&details.directory);
    let records = Journal::read(&details.directory.join("events.jsonl"))?;
    let mut writer = BufWriter::with_capacity(1 << 16, writer);
    let cover = ExportHeader {
        id: &details.id,
        verdict: details.verdict(),
        facts: facts(details),
        prompt: prompt.as_deref(),
        attempts: &details.summary.attempts,
        final_message: &details.summary.final_message,
        patches: match format {
            ExportFormat::Html => patches(details, host),
            ExportFormat::Md | ExportFormat::Otlp | ExportFormat::Json => Vec::new(),
        },
    };
    Ok(match format {
        ExportFormat::Html => Html::begin(writer, &cover).and_then(|mut html| {
            records.into_iter().try_for_each(|record| html.accept(&record))?;
            html.end()
        }),
        ExportFormat::Md => Markdown::begin(writer, &cover).and_then(|mut markdown| {
            records
                .into_iter()
                .try_for_each(|record| markdown.accept(&record))?;
            markdown.end()
        }),
        ExportFormat::Otlp => {
            let mut otlp = Otlp::begin(writer, &cover);
            records
                .into_iter()
                .try_for_each(|record| otlp.accept(&record))
                .and_then(|()| otlp.end())
        }
        ExportFormat::Json => {
            let write = || -> io::Result<()> {
                let run = serde_json::to_string(details)?;
                let prompt = serde_json::to_string(&prompt)?;
                write!(
                    writer,
                    "{{\"version\":{VERSION},\"run\":{run},\"prompt\":{prompt},\"records\":["
                )?;
                for (index, record) in records.enumerate() {
                    writer.write_all(if index == 0 { b"\n" } else { b",\n" })?;
                    serde_json::to_writer(&mut writer, &record)?;
                }
                writer.write_all(b"\n]}\n")?;
                writer.flush()
            };
            write()
        }
    })
}

/// The changes of each attempt as patches, redacted, as far as their snapshots still exist.
fn patches(details: &RunDetails, host: &Host) -> Vec<((u64, u64), String)> {
    // A run's directory is `projects/NAME/runs/ID`.
    let Some(project) = details.directory.ancestors().nth(2) else {
        return Vec::new();
    };
    let store = SnapshotStore::at(project.join("snapshots.git"), host.supervisors());
    let secrets = Secrets::from_env(std::env::vars_os());
    let patch = |attempt: &AttemptSummary| {
        let changes = attempt.changes.as_ref().filter(|changes| changes.files > 0)?;
        let (from, to) = changes.snapshots.as_ref()?;
        let ids = SnapshotId::parse(from).zip(SnapshotId::parse(to))?;
        let patch = crate::ok_or_log!(
            store.diff(ids.0, ids.1, &[]),
            "cannot read the changes of an iteration"
        )?;
        let mut text = String::from_utf8_lossy(&patch).into_owned();
        if text.len() > MAX_PATCH_BYTES {
            text.truncate(text.floor_char_boundary(MAX_PATCH_BYTES));
            text.push_str("\n… the rest is not shown; see ralph diff\n");
        }
        Some(((attempt.iteration, attempt.attempt), secrets.redact_text(text)))
    };
    details.summary.attempts.iter().filter_map(patch).collect()
}

/// The first prompt, redacted: unlike the journal, prompt.md is stored unredacted.
fn prompt(run: &Path) -> Option<String> {
    let bytes = files::read(&run.join("iterations/0001/prompt.md"), ReadRule::PROMPT).ok()?;
    let prompt = String::from_utf8_lossy(&bytes).into_owned();
    Some(Secrets::from_env(std::env::vars_os()).redact_text(prompt))
}
