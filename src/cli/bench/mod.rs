//! `ralph bench`: tasks, agents, repeats; each try in a workspace of its own, by the real loop, judged by the task's own
//! command. Everything is kept, and what was cut off can be gone on with.

mod budget;
mod cell;
mod children;
mod error;
mod layout;
mod list;
mod log;
mod plan;
mod report;
mod results;
mod scheduler;
mod stats;

pub(super) use error::BenchError;

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::config::FileCommands;
use crate::store::{BenchFiles, LATEST};
use crate::ui::{Terminal, Tone, units};

use super::args::{BenchArguments, BenchCommand, BenchPlace, BenchReportArguments, BenchRunArguments};
use super::context::{Context, state_directory};
use super::error::CliError;
use super::exit::Exit;
use super::trust::{self, Consent};
use plan::Plan;
use report::Report;
use results::History;
use scheduler::{Halt, Scheduler};

pub(super) fn bench(arguments: &BenchArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    match &arguments.command {
        BenchCommand::Run(arguments) => run(arguments, terminal),
        BenchCommand::Report(arguments) => report(arguments, terminal),
        BenchCommand::List(arguments) => list::list(arguments, terminal),
    }
}

/// What a tasks file would have run, for `ralph trust`.
pub(super) fn executes(named: &Path, cwd: &Path) -> Result<Vec<FileCommands>, CliError> {
    plan::executes(&plan::found(named, cwd)?)
}

fn run(arguments: &BenchRunArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let benches = place(&arguments.place, &context.cwd)?;
    let consent = Consent::of(arguments.trust);
    let (files, plan) = match &arguments.resume {
        None => begin(arguments, &context, consent, &benches, terminal)?,
        Some(named) => go_on(arguments, named.as_deref(), &context, &benches, terminal)?,
    };
    let _lock = files.lock(Timestamp::now())?;
    files.write_plan(&plan)?;
    let history = History::of(files.entries()?);
    let before = spent(&history, &files);
    let board = terminal.board();
    let mut scheduler = Scheduler::new(&plan, &files, &history, before, board);
    announce(&plan, &history, &files, terminal)?;
    let halt = scheduler.work()?;
    let history = History::of(files.entries()?);
    let spent = spent(&history, &files);
    let report = Report::of(&plan, files.directory(), &history, spent);
    tell(&report, arguments.json, terminal)?;
    Ok(match halt {
        Halt::Interrupted(by) => Exit::from(by),
        Halt::OutOfBudget => {
            say_out_of_budget(&plan, spent, terminal)?;
            Exit::Limit
        }
        Halt::Done if report.stats().broken() > 0 => Exit::Failed,
        Halt::Done => Exit::Success,
    })
}

/// A new bench.
fn begin(
    arguments: &BenchRunArguments,
    context: &Context,
    consent: Consent,
    benches: &Path,
    terminal: &Terminal,
) -> Result<(BenchFiles, Plan), CliError> {
    let named = arguments.tasks.clone().unwrap_or_default();
    let file = plan::found(&named, &context.cwd)?;
    let asked = trust::Asked {
        executes: plan::executes(&file)?,
        allow: format!("ralph trust --tasks {}", named.display()),
    };
    trust::require_all(context, asked, consent, terminal)?;
    let plan = Plan::make(arguments, &file, context)?;
    Ok((BenchFiles::create(benches, plan.began)?, plan))
}

/// A bench that was begun before.
fn go_on(
    arguments: &BenchRunArguments,
    named: Option<&str>,
    context: &Context,
    benches: &Path,
    terminal: &Terminal,
) -> Result<(BenchFiles, Plan), CliError> {
    // `--continue tasks.yml` reads as if the file were the name of a bench.
    let (named, tasks) = match named {
        Some(file) if Path::new(file).is_file() => (None, Some(PathBuf::from(file))),
        named => (named, arguments.tasks.clone()),
    };
    let files = match (named, tasks) {
        (None, Some(tasks)) => newest_of(&plan::found(&tasks, &context.cwd)?, benches)?,
        (named, _) => BenchFiles::find(benches, named.unwrap_or(LATEST))?,
    };
    let mut plan = saved(&files)?;
    // A plan that came with a repository is somebody else's as much as a tasks file is.
    let asked = trust::Asked {
        executes: vec![FileCommands {
            file: files.plan_path(),
            commands: plan.tasks.iter().map(|task| task.verify.clone()).collect(),
        }],
        allow: "ralph bench run --continue --trust, once you have read it".to_owned(),
    };
    trust::require_all(context, asked, Consent::of(arguments.trust), terminal)?;
    plan.amend(arguments);
    Ok((files, plan))
}

fn newest_of(tasks: &Path, benches: &Path) -> Result<BenchFiles, CliError> {
    let mut all = BenchFiles::all(benches).into_iter().rev();
    let found = all.find(|files| files.read_plan().is_ok_and(|plan: Plan| plan.tasks_file == tasks));
    found.ok_or_else(|| {
        let path = tasks.to_owned();
        BenchError::NeverBenched { path }.into()
    })
}

fn saved(files: &BenchFiles) -> Result<Plan, CliError> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: u32,
    }

    let Versioned { version } = files.read_plan()?;
    if version > plan::VERSION {
        let id = files.id();
        return Err(BenchError::TooNew { id, version }.into());
    }
    Ok(files.read_plan()?)
}

fn report(arguments: &BenchReportArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let files = BenchFiles::find(&place(&arguments.place, &context.cwd)?, &arguments.bench)?;
    let plan = saved(&files)?;
    let history = History::of(files.entries()?);
    let spent = spent(&history, &files);
    let report = Report::of(&plan, files.directory(), &history, spent);
    tell(&report, arguments.json, terminal)?;
    Ok(Exit::Success)
}

fn tell(report: &Report<'_>, as_json: bool, terminal: &Terminal) -> Result<(), CliError> {
    let text = if as_json {
        report.json()
    } else {
        report.text(terminal)
    };
    terminal.print(&text).map_err(CliError::Output)
}

/// What was spent before: by what has ended, and by what was cut off and has left a journal.
fn spent(history: &History, files: &BenchFiles) -> f64 {
    let cut = history.cut.iter();
    let by_cut = cut.filter_map(|started| layout::spent_in(&files.directory().join(&started.directory)));
    history.spent + by_cut.sum::<f64>()
}

fn announce(plan: &Plan, history: &History, files: &BenchFiles, terminal: &Terminal) -> Result<(), CliError> {
    let agents: Vec<&str> = plan.agents.iter().map(|agent| agent.name.as_str()).collect();
    let all = plan.cells();
    let settled = all.iter().filter(|cell| history.is_settled(cell)).count();
    let done = if settled > 0 {
        format!("; {settled} of {} are done already", all.len())
    } else {
        String::new()
    };
    let line = format!(
        "Bench {}: {} × {} ({}) × {}{done}",
        files.id(),
        units::count(plan.tasks.len() as u64, "task"),
        units::count(plan.agents.len() as u64, "agent"),
        agents.join(", "),
        units::count(plan.repeat, "repeat"),
    );
    let mut board = terminal.board();
    board.say("▸", Tone::Accent, &line).map_err(CliError::Output)
}

fn say_out_of_budget(plan: &Plan, spent: f64, terminal: &Terminal) -> Result<(), CliError> {
    let limit = plan.max_cost_usd.unwrap_or(0.0);
    let text = format!(
        "stopped: {} of {} are spent\n  to go on with more: ralph bench run --continue --max-cost {}",
        units::dollars(spent),
        units::dollars(limit),
        limit * 2.0
    );
    terminal.warn(&text).map_err(CliError::Output)
}

/// Outside of any project: what lies above a workspace must be nothing to an agent.
fn place(wish: &BenchPlace, cwd: &Path) -> Result<PathBuf, CliError> {
    let usual = || state_directory().map(|state| state.join("bench"));
    let named = wish.dir.as_ref().map(|dir| cwd.join(dir));
    named.or_else(usual).ok_or_else(|| BenchError::NoPlace.into())
}
