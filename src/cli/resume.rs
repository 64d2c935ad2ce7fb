//! `ralph run --continue`: resumes a run. Its state is restored from the journal, its settings from `run.json`.

use std::time::Duration;

use jiff::Timestamp;

use crate::config::Origin;
use crate::engine::RestoredRun;
use crate::event::{FORMAT_VERSION, RunHeader, RunOutcome};
use crate::process::stop_by_env;
use crate::run::{Beginning, Host, SavedRun, SettingChange};
use crate::store::{LATEST, RestoredRecord, Run, restore_records};
use crate::trust::Consent;
use crate::ui::{Confirmed, FrontEnd, Terminal};

use super::agent_mode;
use super::args::RunArguments;
use super::consent;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::front_end;
use super::run_plan::{RunPlan, RunStart};

/// Time for leftover agent processes to exit before they are killed.
const GRACE: Duration = Duration::from_secs(2);

/// Resumes the run named `given`, or the newest.
pub(super) fn resume(
    arguments: &RunArguments,
    given: Option<&str>,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let context = Context::here(host)?;
    let now = Timestamp::now();
    let run = Run::reopen(&context.project()?, given.unwrap_or(LATEST), now)?;
    let id = run.id().to_owned();
    let mut restored = restore(&run)?;
    if let Some(RunOutcome::Complete { .. }) = restored.outcome() {
        let text = format!("Run {id} is already complete.\n");
        terminal.print(&text).map_err(CliError::Output)?;
        return Ok(Exit::Success);
    }
    let journaled = || restored.header().cloned().map(SavedRun::from_journal);
    let saved: SavedRun = run
        .read_header()
        .or_else(journaled)
        .ok_or_else(|| CliError::HeaderMissing { id: id.clone() })?;
    refuse_newer(&id, &restored, &saved)?;
    let flags = saved.merged_flags(&arguments.overrides()?);
    let mut loaded = context.load(flags.clone(), arguments.choice.config.as_ref())?;
    let changes = saved.changes(&loaded.settings);
    let given_flags = serde_json::to_value(arguments.overrides()?).unwrap_or_default();
    let unexpected: Vec<&SettingChange> = changes
        .iter()
        // Changes from this command line need no confirmation.
        .filter(|change| loaded.origin(&change.key) != Origin::Flag || !is_set(&given_flags, &change.key))
        .collect();
    confirm_changes(&unexpected, arguments, terminal)?;
    consent::require(&context, &loaded, Consent::of(arguments.choice.trust), terminal)?;
    let stopped = stop_by_env("RALPH_RUN_ID", &id, GRACE);
    if stopped > 0 {
        let text = format!("stopped leftover processes of the run ({stopped})");
        terminal.warn(&text).map_err(CliError::Output)?;
    }
    agent_mode::fall_back_to_autonomous(&mut loaded.settings, &arguments.show, terminal)?;
    let hook_directory = context.command_directory(&loaded, "hooks");
    let mut plan = RunPlan::new(&context, loaded.settings)?;
    plan.hook_directory = Some(hook_directory);
    plan.show_warnings(terminal)?;
    plan.flags = flags;
    plan.asking = arguments.asking();
    let mut changed: Vec<String> = changes.iter().map(ToString::to_string).collect();
    changed.extend(agent_change(&saved.header, &plan));
    restored.set_min_attempt(run.first_free_attempt(restored.iteration()));
    let beginning = Beginning::Resumed {
        elapsed: restored.elapsed(),
        seq: restored.seq(),
        changed,
    };
    let show = agent_mode::force_line_output(&plan.settings, arguments.show.clone());
    let mut front_ends = front_end::front_ends_for(&show, &context.host, terminal)?;
    backfill(front_ends.visible.as_mut(), &run)?;
    let start = RunStart {
        run,
        now,
        beginning,
        restored: Some(restored),
    };
    plan.execute_from(start, &context, front_ends)
}

/// Refuses a run that a newer ralph started or resumed, because its files may mean something else.
fn refuse_newer(id: &str, restored: &RestoredRun, saved: &SavedRun) -> Result<(), CliError> {
    let versions = [restored.header(), Some(&saved.header)].into_iter().flatten();
    match versions.map(|header| header.version).max() {
        Some(version) if version > FORMAT_VERSION => Err(CliError::NewerRun {
            id: id.to_owned(),
            version,
        }),
        _ => Ok(()),
    }
}

/// Passes the earlier records to the front end.
fn backfill(front_end: &mut dyn FrontEnd, run: &Run) -> Result<(), CliError> {
    let journal = run.journal_path();
    if journal.exists() {
        restore_records(&journal, |restored_record| {
            if let RestoredRecord::Parsed(record) = restored_record {
                front_end.backfill(&record);
            }
        })?;
    }
    Ok(())
}

fn restore(run: &Run) -> Result<RestoredRun, CliError> {
    let mut restored = RestoredRun::default();
    let journal = run.journal_path();
    if journal.exists() {
        restore_records(&journal, |restored_record| match restored_record {
            RestoredRecord::Parsed(record) => restored.fold(&record),
            RestoredRecord::Skipped { seq, at } => restored.skip(seq, at),
        })?;
    }
    Ok(restored)
}

fn is_set(flags: &serde_json::Value, key: &str) -> bool {
    let pointer = format!("/{}", key.replace('.', "/"));
    flags.pointer(&pointer).is_some_and(|value| !value.is_null())
}

/// Asks for confirmation if the settings have changed.
fn confirm_changes(
    changes: &[&SettingChange],
    arguments: &RunArguments,
    terminal: &Terminal,
) -> Result<(), CliError> {
    if changes.is_empty() || arguments.yes {
        return Ok(());
    }
    let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
    let question = format!(
        "The configuration has changed since this run started:\n  {}\nResume with the new configuration? [y/N] ",
        lines.join("\n  ")
    );
    match terminal.confirm(&question).map_err(CliError::Output)? {
        Confirmed::Yes => Ok(()),
        Confirmed::No | Confirmed::NoTerminal => Err(CliError::SettingsChanged { changes: lines }),
    }
}

/// With `backend: auto`, another agent may be found if one was installed or removed.
fn agent_change(before: &RunHeader, plan: &RunPlan) -> Option<String> {
    let agent = &plan.agent().name;
    (before.agent != *agent).then(|| format!("agent: {} → {agent}", before.agent))
}
