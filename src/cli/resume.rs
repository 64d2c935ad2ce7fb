//! `ralph run --continue`: resumes a run. Its state is restored from the journal, its settings from `run.json`.

use std::time::Duration;

use jiff::Timestamp;

use crate::config::Origin;
use crate::engine::RestoredRun;
use crate::event::{FORMAT_VERSION, RunHeader, RunOutcome};
use crate::process::stop_by_env;
use crate::run::{Beginning, Host, Recovery, SandboxSetup, SavedRun, SettingChange, restore_run};
use crate::store::{
    ChainReport, ChainState, LATEST, RestoredRecord, Run, SettingsFile, StoreError, restore_records,
};
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
    resume_in(&Context::here(host)?, arguments, given, terminal)
}

/// Resumes a run of the project in the context's directory.
pub(super) fn resume_in(
    context: &Context,
    arguments: &RunArguments,
    given: Option<&str>,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let now = Timestamp::now();
    let run = Run::reopen(&context.project()?, given.unwrap_or(LATEST), now)?;
    let id = run.id().to_owned();
    let (chain, restored) = verify_and_restore(&run);
    check_chain(chain?, &run, arguments, terminal)?;
    let Recovery {
        run: mut restored,
        recovered,
    } = restored?;
    if let Some(RunOutcome::Complete { .. }) = restored.outcome() {
        let text = format!("Run {id} is already complete.\n");
        terminal.print(&text).map_err(CliError::Output)?;
        return Ok(Exit::Success);
    }
    let saved = read_saved(&run, &restored)?;
    restored.continue_as(saved.header.forked_from.as_ref());
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
    consent::require(context, &loaded, Consent::of(arguments.choice.trust), terminal)?;
    // Processes that the user started with the run's id, such as a shell, have no iteration.
    let of_agents = [("RALPH_RUN_ID", Some(id.as_str())), ("RALPH_ITERATION", None)];
    let stopped = stop_by_env(&of_agents, GRACE);
    if stopped > 0 {
        let text = format!("stopped leftover processes of the run ({stopped})");
        terminal.warn(&text).map_err(CliError::Output)?;
    }
    agent_mode::fall_back_to_autonomous(&mut loaded.settings, &arguments.show, terminal)?;
    let hook_directory = context.command_directory(&loaded, "hooks");
    let mut plan = RunPlan::new(context, loaded.settings)?;
    plan.hook_directory = Some(hook_directory);
    plan.show_warnings(terminal)?;
    plan.flags = flags;
    plan.forked_from.clone_from(&saved.header.forked_from);
    plan.asking = arguments.asking();
    let mut changed: Vec<String> = changes.iter().map(ToString::to_string).collect();
    changed.extend(agent_change(&saved.header, &plan));
    changed.extend(report_recovered(&recovered, terminal)?);
    restored.set_min_attempt(run.first_free_attempt(restored.iteration()));
    let beginning = Beginning::Resumed {
        elapsed: restored.elapsed(),
        seq: restored.seq(),
        changed,
    };
    let show = agent_mode::force_line_output(&plan.settings, arguments.show.clone());
    let mut front_ends = front_end::front_ends_for(&show, &plan.settings, &context.host, terminal)?;
    backfill(front_ends.visible.as_mut(), &run)?;
    let start = RunStart {
        sandbox: SandboxSetup::resolve(&plan.settings, &context.host)?,
        run,
        now,
        beginning,
        restored: Some(restored),
    };
    plan.execute_from(start, context, front_ends)
}

/// Reads `run.json`, whose hash must be in the journal.
fn read_saved(run: &Run, restored: &RestoredRun) -> Result<SavedRun, CliError> {
    let id = run.id().to_owned();
    let settings_file = run.read_settings();
    let parsed: Option<SavedRun> = settings_file.as_ref().and_then(SettingsFile::parse);
    let journaled = || restored.header().cloned().map(SavedRun::from_journal);
    let saved = parsed
        .or_else(journaled)
        .ok_or_else(|| CliError::HeaderMissing { id: id.clone() })?;
    refuse_newer(&id, restored, &saved)?;
    match settings_file {
        Some(file) if !restored.knows_settings(&file.sha256()) => Err(CliError::SettingsFileChanged { id }),
        Some(_) | None => Ok(saved),
    }
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

/// Reads the journal for both purposes at the same time: a long one takes a second.
fn verify_and_restore(run: &Run) -> (Result<ChainReport, StoreError>, Result<Recovery, StoreError>) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("chain".into());
        let chain = thread.spawn_scoped(scope, || run.verify_chain());
        let restored = restore_run(run);
        let chain = match chain {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => run.verify_chain(),
        };
        (chain, restored)
    })
}

/// Refuses a journal that another program changed, unless the user accepts that.
fn check_chain(
    chain: ChainReport,
    run: &Run,
    arguments: &RunArguments,
    terminal: &Terminal,
) -> Result<(), CliError> {
    let text = match chain.state {
        ChainState::Intact => return Ok(()),
        ChainState::Unchained => {
            "an earlier ralph wrote this journal, so changes to it cannot be detected".to_owned()
        }
        ChainState::Broken(broken) if arguments.accept_damage => {
            format!("resuming although the journal is damaged: {broken}")
        }
        ChainState::Broken(broken) => {
            let id = run.id().to_owned();
            return Err(CliError::JournalDamaged { id, broken });
        }
    };
    terminal.warn(&text).map_err(CliError::Output)
}

/// Reports the attempts whose end is not in the journal.
fn report_recovered(recovered: &[(u64, u64)], terminal: &Terminal) -> Result<Option<String>, CliError> {
    if recovered.is_empty() {
        return Ok(None);
    }
    let iterations: Vec<String> = recovered
        .iter()
        .map(|(iteration, _)| iteration.to_string())
        .collect();
    let text = format!(
        "the journal has lost the end of iteration {}; restored from outcome.json",
        iterations.join(", ")
    );
    terminal.warn(&text).map_err(CliError::Output)?;
    Ok(Some(text))
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
