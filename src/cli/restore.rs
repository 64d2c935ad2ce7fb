//! `ralph restore`: writes the files of a snapshot back to the project.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use crate::config::PartialSettings;
use crate::run::Host;
use crate::snapshot::{
    RESTORE_SUFFIX, RestorePlan, RestoreReport, RestoreRequest, Restorer, SnapshotId, SnapshotStore,
};
use crate::store::Project;
use crate::ui::clean::clean;
use crate::ui::{Confirmed, Terminal, pretty_json, units};

use super::args::RestoreArguments;
use super::common::ignore_broken_pipe;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::snapshots::{IterationName, RunSnapshots, project_store, rules};
use super::undo_error::UndoError;

/// How many files of a plan are listed.
const MAX_LISTED: usize = 50;

#[derive(Serialize)]
struct RestoreOutput {
    /// The snapshot that undoes the restore.
    undo: String,
    written: usize,
    removed: usize,
}

pub(super) fn restore(
    arguments: &RestoreArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let context = Context::here(host)?;
    let (project, store) = project_store(host)?;
    let settings = context.load(PartialSettings::default(), None)?.settings;
    // No loop may run in this project meanwhile.
    let now = Timestamp::now();
    let _lock = project.lock(now)?;
    let name = format!("{}{RESTORE_SUFFIX}", now.strftime("%Y%m%d-%H%M%S"));
    let rules = rules(&project, &settings.snapshots);
    let mut restorer = Restorer::new(store.clone(), &name, project.root(), rules);
    if arguments.resume {
        let report = restorer.resume()?.ok_or(UndoError::NothingToContinue)?;
        return print_report(&report, arguments, terminal);
    }
    if store.has_pending_restore() {
        return Err(UndoError::RestoreInterrupted.into());
    }
    let what = arguments.what.as_deref().unwrap_or_default();
    let (target, recorded) = target(what, &store, host)?;
    let request = RestoreRequest {
        target,
        recorded,
        paths: scopes(&arguments.paths, &context.cwd, &project)?,
    };
    let plan = restorer.plan(request)?;
    if arguments.dry_run {
        let text = list(&plan);
        return terminal
            .print(&text)
            .map(|()| Exit::Success)
            .or_else(ignore_broken_pipe);
    }
    if !arguments.yes && !plan.unrecorded.is_empty() && !confirmed(&plan, terminal)? {
        let files = names(&plan.unrecorded);
        return Err(UndoError::Unrecorded { files }.into());
    }
    let report = restorer.carry_out(plan)?;
    print_report(&report, arguments, terminal)
}

/// The snapshot that an argument names, and the snapshots whose content can be overwritten.
fn target(what: &str, store: &SnapshotStore, host: &Host) -> Result<(SnapshotId, Vec<SnapshotId>), CliError> {
    if let Some(name) = IterationName::parse(what) {
        let snapshots = RunSnapshots::of(Some(&name.run), host)?;
        let target = snapshots.after(name.iteration)?;
        if snapshots.store.directory() != store.directory() {
            // A fork, or another run elsewhere.
            store.adopt_objects(&snapshots.store)?;
        }
        let newest = RunSnapshots::of(None, host)?.last();
        let recorded = [snapshots.last()?].into_iter().chain(newest);
        return Ok((target, recorded.collect()));
    }
    let target = store.find(what)?.ok_or_else(|| UndoError::UnknownSnapshot {
        name: what.to_owned(),
    })?;
    let newest = RunSnapshots::of(None, host).and_then(|snapshots| snapshots.last());
    Ok((target, newest.into_iter().collect()))
}

/// Paths relative to the project root.
fn scopes(paths: &[PathBuf], cwd: &Path, project: &Project) -> Result<Vec<Vec<u8>>, CliError> {
    let outside = |path: &Path| UndoError::OutsideProject {
        path: path.to_owned(),
        root: project.root().to_owned(),
    };
    let cwd = std::fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
    let mut scopes = Vec::new();
    for path in paths {
        let mut full = PathBuf::new();
        for component in cwd.join(path).components() {
            match component {
                Component::ParentDir => drop(full.pop()),
                Component::CurDir => {}
                other => full.push(other),
            }
        }
        let below = full.strip_prefix(project.root()).map_err(|_| outside(path))?;
        if below.as_os_str().is_empty() {
            return Ok(Vec::new());
        }
        scopes.push(below.as_os_str().as_bytes().to_vec());
    }
    Ok(scopes)
}

fn confirmed(plan: &RestorePlan, terminal: &Terminal) -> Result<bool, CliError> {
    if !terminal.can_ask() {
        return Ok(false);
    }
    let text = format!(
        "These files were changed since the last snapshot of the run:\n{}",
        listed(&plan.unrecorded, "  ")
    );
    terminal.print(&text).map_err(CliError::Output)?;
    let question = "Overwrite them? Their content is recorded first. [y/N] ";
    let answer = terminal.confirm(question).map_err(CliError::Output)?;
    Ok(answer == Confirmed::Yes)
}

fn list(plan: &RestorePlan) -> String {
    if plan.written.is_empty() && plan.removed.is_empty() {
        return "Nothing to restore: the files are the same.\n".to_owned();
    }
    listed(&plan.written, "write   ") + &listed(&plan.removed, "remove  ")
}

fn listed(paths: &[Vec<u8>], prefix: &str) -> String {
    let mut text = String::new();
    for name in names(paths).iter().take(MAX_LISTED) {
        text.push_str(&format!("{prefix}{name}\n"));
    }
    if let more @ 1.. = paths.len().saturating_sub(MAX_LISTED) {
        text.push_str(&format!("{prefix}… and {more} more\n"));
    }
    text
}

fn names(paths: &[Vec<u8>]) -> Vec<String> {
    paths
        .iter()
        .map(|path| {
            clean(&OsString::from(String::from_utf8_lossy(path).into_owned()).to_string_lossy()).into()
        })
        .collect()
}

fn print_report(
    report: &RestoreReport,
    arguments: &RestoreArguments,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let undo = report.before.short();
    let text = match (arguments.json, report.written + report.removed) {
        (true, _) => pretty_json(&RestoreOutput {
            undo: report.before.to_string(),
            written: report.written,
            removed: report.removed,
        }),
        (false, 0) => "Nothing to restore: the files are the same.\n".to_owned(),
        (false, _) => {
            let written = units::count(report.written as u64, "file");
            format!(
                "Restored {written}, removed {}.\nto undo: ralph restore {undo}\n",
                report.removed
            )
        }
    };
    terminal
        .print(&text)
        .map(|()| Exit::Success)
        .or_else(ignore_broken_pipe)
}
