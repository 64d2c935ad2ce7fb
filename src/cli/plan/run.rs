//! `ralph plan run`: runs the tasks of a plan in place, or in parallel in worktrees.

use std::sync::Arc;

use crate::cli::args::PlanRunArguments;
use crate::cli::consent::{self, TrustRequest};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::config::LoadedConfig;
use crate::plan::{
    NewGates, PlanEnd, PlanRequest, PlanScreen, PlanStart, PlanText, Source, StoredPlan, read_plan,
};
use crate::run::Host;
use crate::trust::Consent;
use crate::ui::Terminal;

use super::task_run::TaskRuns;

pub(super) fn run(arguments: &PlanRunArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let context = Context::here(host)?;
    let stored = match arguments.resume {
        true => Some(StoredPlan::find(&context.project()?, arguments.plan.as_deref())?),
        false => None,
    };
    let given = arguments.plan.clone();
    let name = given
        .or_else(|| stored.as_ref()?.source().map(str::to_owned))
        .unwrap_or_default();
    let source = Source::of(&name, &context.cwd);
    let flags = arguments.choice.overrides()?;
    let loaded = context.load(flags, arguments.choice.config.as_ref())?;
    loaded
        .warnings
        .iter()
        .try_for_each(|warning| terminal.warn(warning))
        .map_err(CliError::Output)?;
    let consent = Consent::of(arguments.choice.trust);
    consent::require(&context, &loaded, consent, terminal)?;
    let text = read_plan(&source, host.supervisors(), &context.cwd)?;
    require_gates(&context, &source, &name, &text, (consent, terminal))?;
    warn_without_gates(&loaded, &text, terminal)?;
    let request = PlanRequest {
        new_gates: match consent {
            Consent::Given => NewGates::Allowed,
            Consent::Required => NewGates::Refused,
        },
        shown_source: name,
        ..request(arguments, stored.as_ref(), (source, text), (&context, loaded))?
    };
    let screen = if arguments.json {
        PlanScreen::json(terminal)
    } else {
        PlanScreen::lines(terminal)
    };
    let end = request.run(host, screen)?;
    if !arguments.json {
        show_end(&end, terminal)?;
    }
    Ok(exit_of(&end))
}

fn request(
    arguments: &PlanRunArguments,
    stored: Option<&StoredPlan>,
    (source, text): (Source, PlanText),
    (context, loaded): (&Context, LoadedConfig),
) -> Result<PlanRequest, CliError> {
    let limits = stored.map(StoredPlan::limits).unwrap_or_default();
    let jobs = jobs(arguments, stored);
    Ok(PlanRequest {
        project: context.project()?,
        workspace: context.cwd.clone(),
        jobs,
        only: if arguments.only.is_empty() {
            limits.0
        } else {
            arguments.only.clone()
        },
        max_cost_usd: arguments.max_cost.or(limits.1),
        start: if arguments.resume {
            PlanStart::Resume
        } else {
            PlanStart::New
        },
        new_gates: NewGates::Refused,
        close: arguments.close,
        merge: arguments.merge,
        gates: loaded.settings.gates.clone(),
        worktree: loaded.settings.worktree.clone(),
        git: context.probe().find("git"),
        run_task: Arc::new(TaskRuns {
            hook_directory: context.command_directory(&loaded, "hooks"),
            settings: loaded.settings,
            flags: arguments.choice.overrides()?,
            workspace: context.cwd.clone(),
            repository: jobs.and_then(|_| context.repository()),
        }),
        source,
        text,
        shown_source: String::new(),
    })
}

/// A resumed plan stays where it is: in place, or in worktrees.
fn jobs(arguments: &PlanRunArguments, stored: Option<&StoredPlan>) -> Option<usize> {
    let given = arguments.jobs.and_then(|jobs| usize::try_from(jobs).ok());
    match stored {
        None => given,
        Some(stored) => stored.jobs().map(|jobs| given.unwrap_or(jobs)),
    }
}

/// Checks that the gates in the plan may run. The marks of tasks are not part of what is allowed.
fn require_gates(
    context: &Context,
    source: &Source,
    name: &str,
    text: &PlanText,
    (consent, terminal): (Consent, &Terminal),
) -> Result<(), CliError> {
    let commands: Vec<String> = text
        .tasks()
        .flat_map(|(task, ..)| {
            task.gates
                .iter()
                .map(|gate| format!("gate of {}: {gate}", task.id))
        })
        .collect();
    if commands.is_empty() {
        return Ok(());
    }
    let file = match source {
        Source::File(path) => path.clone(),
        // The output of a command is judged like a file of the project.
        Source::Command(_) => context.cwd.join(name),
    };
    let request = TrustRequest {
        commands: vec![crate::config::FileCommands {
            file,
            text: Some(commands.join("\n")),
            commands,
        }],
        allow: format!("ralph plan run {name} --trust (after reviewing it)"),
    };
    consent::require_all(context, request, consent, terminal)
}

fn warn_without_gates(loaded: &LoadedConfig, text: &PlanText, terminal: &Terminal) -> Result<(), CliError> {
    let unverified = text.tasks().filter(|(task, ..)| task.gates.is_empty()).count();
    if unverified == 0 || !loaded.settings.gates.is_empty() {
        return Ok(());
    }
    let tasks = crate::ui::units::count(unverified as u64, "task");
    let text = format!(
        "{tasks} without a gate: what their agents report as done is not verified\n  add `gate: COMMAND` to a task, or `gates` to ralph.yml"
    );
    terminal.warn(&text).map_err(CliError::Output)
}

fn show_end(end: &PlanEnd, terminal: &Terminal) -> Result<(), CliError> {
    let Some(text) = end.next_step() else {
        return Ok(());
    };
    terminal.print(&format!("{text}\n")).map_err(CliError::Output)
}

fn exit_of(end: &PlanEnd) -> Exit {
    if end.is_complete() {
        Exit::Success
    } else if end.is_out_of_budget() {
        Exit::Limit
    } else {
        end.interrupt().map_or(Exit::Failed, Exit::from)
    }
}
