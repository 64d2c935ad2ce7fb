//! `ralph run --continue`: a run that ended, in whatever way, goes on. What it had come to is in its journal; what it
//! was begun with, in its `run.json`.

use std::time::Duration;

use jiff::Timestamp;

use crate::config::Origin;
use crate::engine::RestoredRun;
use crate::event::{RunHeader, RunOutcome};
use crate::process::stop_marked;
use crate::run::Beginning;
use crate::store::{LATEST, RestoredRecord, Run, recall};
use crate::ui::{Confirmed, FrontEnd, Terminal};

use super::agent_mode;
use super::args::RunArguments;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::front_end;
use super::run::{Plan, RunStart};
use super::run_header::{Change, SavedRun};
use super::trust::{self, Consent};

/// What a dead run's agent has to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// `given` is the run's name, or nothing for the newest.
pub(super) fn resume(
    arguments: &RunArguments,
    given: Option<&str>,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let now = Timestamp::now();
    let run = Run::reopen(&context.cwd, given.unwrap_or(LATEST), now)?;
    let id = run.id().to_owned();
    let mut restored = restore(&run)?;
    if let Some(RunOutcome::Complete { .. }) = restored.outcome() {
        let text = format!("Run {id} is complete; there is nothing left to do.\n");
        terminal.print(&text).map_err(CliError::Output)?;
        return Ok(Exit::Success);
    }
    let journaled = || restored.header().cloned().map(SavedRun::from_journal);
    let saved: SavedRun = run
        .read_header()
        .or_else(journaled)
        .ok_or_else(|| CliError::HeaderMissing { id: id.clone() })?;
    let flags = saved.flags_under(&arguments.overrides()?);
    let mut loaded = context.load(flags.clone(), arguments.choice.config.as_ref())?;
    let changes = saved.changes(&loaded.settings);
    let said_now = serde_json::to_value(arguments.overrides()?).unwrap_or_default();
    let unasked: Vec<&Change> = changes
        .iter()
        // What was said on this very command line is no surprise.
        .filter(|change| loaded.origin(&change.key) != Origin::Flag || !says(&said_now, &change.key))
        .collect();
    accept(&unasked, arguments, terminal)?;
    trust::require(&context, &loaded, Consent::of(arguments.choice.trust), terminal)?;
    let stopped = stop_marked("RALPH_RUN_ID", &id, GRACE);
    if stopped > 0 {
        let text = format!("stopped what the run had left behind ({stopped} processes)");
        terminal.warn(&text).map_err(CliError::Output)?;
    }
    agent_mode::fall_back_to_autonomous(&mut loaded.settings, arguments.show, terminal)?;
    let mut plan = Plan::make(&context, loaded.settings)?;
    plan.show_warnings(terminal)?;
    plan.flags = flags;
    plan.asking = arguments.asking();
    let mut changed: Vec<String> = changes.iter().map(ToString::to_string).collect();
    changed.extend(other_agent(&saved.header, &plan));
    restored.first_free_attempt(run.first_free_attempt(restored.iteration()));
    let beginning = Beginning::Resumed {
        elapsed: restored.elapsed(),
        seq: restored.seq(),
        received: restored.received().to_vec(),
        changed,
    };
    let show = agent_mode::force_line_output(&plan.settings, arguments.show);
    let mut front_end = front_end::front_end_for(show, &context.cwd, terminal)?;
    remind(front_end.as_mut(), &run)?;
    let start = RunStart {
        run,
        now,
        beginning,
        restored: Some(restored),
    };
    plan.execute_on(start, &context, front_end.as_mut())
}

/// Shows what the run did before, to a face that can look back.
fn remind(front_end: &mut dyn FrontEnd, run: &Run) -> Result<(), CliError> {
    let journal = run.journal_path();
    if journal.exists() {
        recall(&journal, |recalled| {
            if let RestoredRecord::Whole(record) = recalled {
                front_end.recall(&record);
            }
        })?;
    }
    Ok(())
}

fn restore(run: &Run) -> Result<RestoredRun, CliError> {
    let mut restored = RestoredRun::default();
    let journal = run.journal_path();
    if journal.exists() {
        recall(&journal, |recalled| match recalled {
            RestoredRecord::Whole(record) => restored.fold(&record),
            RestoredRecord::Passed { seq, at } => restored.seen(seq, at),
        })?;
    }
    Ok(restored)
}

fn says(said: &serde_json::Value, key: &str) -> bool {
    let pointer = format!("/{}", key.replace('.', "/"));
    said.pointer(&pointer).is_some_and(|value| !value.is_null())
}

/// A run that goes on under other settings than it was begun with must be wanted.
fn accept(changes: &[&Change], arguments: &RunArguments, terminal: &Terminal) -> Result<(), CliError> {
    if changes.is_empty() || arguments.yes {
        return Ok(());
    }
    let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
    let question = format!(
        "The configuration has changed since this run began:\n  {}\nGo on with the new one? [y/N] ",
        lines.join("\n  ")
    );
    match terminal.confirm(&question).map_err(CliError::Output)? {
        Confirmed::Yes => Ok(()),
        Confirmed::No | Confirmed::NobodyToAsk => Err(CliError::SettingsChanged { changes: lines }),
    }
}

/// The same settings can find another agent: one was installed, or removed.
fn other_agent(before: &RunHeader, plan: &Plan) -> Option<String> {
    (before.agent != plan.agent.name).then(|| format!("agent: {} → {}", before.agent, plan.agent.name))
}
