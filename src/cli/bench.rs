//! `ralph bench`: runs each task with each agent, prints the report of a bench, and lists the benches.

use std::path::{Path, PathBuf};

use crate::bench::{
    Bench, BenchEnd, BenchOptions, StopReason, Workspaces, bench_rows, bench_table, commands_to_run,
    default_directory, find_tasks_file,
};
use crate::run::Host;
use crate::store::LATEST;
use crate::trust::Consent;
use crate::ui::{Terminal, pretty_json, units};

use super::args::{
    BenchArguments, BenchCommand, BenchListArguments, BenchLocation, BenchReportArguments, BenchRunArguments,
};
use super::consent::{self, TrustRequest};
use super::context::{Context, working_directory};
use super::error::CliError;
use super::exit::Exit;

pub(super) fn bench(arguments: &BenchArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    match &arguments.command {
        BenchCommand::Run(arguments) => run(arguments, terminal, host),
        BenchCommand::Report(arguments) => report(arguments, terminal),
        BenchCommand::List(arguments) => list(arguments, terminal),
    }
}

fn run(arguments: &BenchRunArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let context = Context::here(host)?;
    let benches = bench_directory(&arguments.location, &context.cwd)?;
    let bench = match &arguments.resume {
        None => new_bench(arguments, &context, &benches, terminal)?,
        Some(name) => resume_bench(arguments, name.as_deref(), &context, &benches, terminal)?,
    };
    let BenchEnd { stop_reason, history } = bench.run(host, terminal)?;
    let report = bench.report(&history);
    print_report(&report, arguments.json, terminal)?;
    Ok(match stop_reason {
        StopReason::Interrupted(by) => Exit::from(by),
        StopReason::OutOfBudget => {
            warn_out_of_budget(report.spent_usd(), bench.max_cost(), terminal)?;
            Exit::Limit
        }
        StopReason::Done if report.stats().broken() > 0 => Exit::Failed,
        StopReason::Done => Exit::Success,
    })
}

fn options(arguments: &BenchRunArguments) -> BenchOptions {
    BenchOptions {
        agents: arguments.agent.clone(),
        only: arguments.only.clone(),
        repeat: arguments.repeat,
        jobs: arguments.jobs,
        max_cost_usd: arguments.max_cost,
        workspaces: arguments.discard.then_some(Workspaces::Discard),
    }
}

/// Creates a new bench.
fn new_bench(
    arguments: &BenchRunArguments,
    context: &Context,
    benches: &Path,
    terminal: &Terminal,
) -> Result<Bench, CliError> {
    let path = arguments.tasks.clone().unwrap_or_default();
    let file = find_tasks_file(&path, &context.cwd)?;
    let request = TrustRequest {
        commands: commands_to_run(&file)?,
        allow: format!("ralph trust --tasks {}", path.display()),
    };
    consent::require_all(context, request, Consent::of(arguments.trust), terminal)?;
    Ok(Bench::create(
        &options(arguments),
        &file,
        benches,
        &context.probe(),
    )?)
}

/// Opens an existing bench.
fn resume_bench(
    arguments: &BenchRunArguments,
    name: Option<&str>,
    context: &Context,
    benches: &Path,
    terminal: &Terminal,
) -> Result<Bench, CliError> {
    // clap parses `tasks.yml` in `--continue tasks.yml` as the name of the bench.
    let (name, tasks) = match name {
        Some(file) if Path::new(file).is_file() => (None, Some(PathBuf::from(file))),
        name => (name, arguments.tasks.clone()),
    };
    let mut bench = match (name, tasks) {
        (None, Some(tasks)) => Bench::newest_of(&find_tasks_file(&tasks, &context.cwd)?, benches)?,
        (name, _) => Bench::open(benches, name.unwrap_or(LATEST))?,
    };
    // A plan in a repository may come from other people, like a tasks file.
    let request = TrustRequest {
        commands: vec![bench.commands_to_run()],
        allow: "ralph bench run --continue --trust (after reviewing it)".to_owned(),
    };
    consent::require_all(context, request, Consent::of(arguments.trust), terminal)?;
    bench.override_with(&options(arguments));
    Ok(bench)
}

fn report(arguments: &BenchReportArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let cwd = working_directory()?;
    let benches = bench_directory(&arguments.location, &cwd)?;
    let bench = Bench::open(&benches, &arguments.bench)?;
    let history = bench.history()?;
    print_report(&bench.report(&history), arguments.json, terminal)?;
    Ok(Exit::Success)
}

fn list(arguments: &BenchListArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let cwd = working_directory()?;
    let rows = bench_rows(&bench_directory(&arguments.location, &cwd)?);
    let text = match (arguments.json, rows.is_empty()) {
        (true, _) => pretty_json(&rows),
        (false, true) => "No benches yet. To start one: ralph bench run tasks.yml\n".to_owned(),
        (false, false) => bench_table(&rows, terminal),
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

fn print_report(
    report: &crate::bench::BenchReport<'_>,
    as_json: bool,
    terminal: &Terminal,
) -> Result<(), CliError> {
    let text = if as_json {
        pretty_json(report)
    } else {
        report.text(terminal)
    };
    terminal.print(&text).map_err(CliError::Output)
}

fn warn_out_of_budget(spent: f64, limit: f64, terminal: &Terminal) -> Result<(), CliError> {
    let text = format!(
        "stopped: {} of {} spent\n  to resume with a higher limit: ralph bench run --continue --max-cost {}",
        units::dollars(spent),
        units::dollars(limit),
        limit * 2.0
    );
    terminal.warn(&text).map_err(CliError::Output)
}

fn bench_directory(location: &BenchLocation, cwd: &Path) -> Result<PathBuf, CliError> {
    match &location.dir {
        Some(dir) => Ok(cwd.join(dir)),
        None => Ok(default_directory()?),
    }
}
