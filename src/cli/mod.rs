//! The command line: parses arguments, runs a subcommand, prints errors with hints and returns the exit code.

mod agent_mode;
mod agents;
mod agents_report;
mod agents_test;
mod all_runs;
mod args;
mod as_claude;
mod attach;
mod bench;
mod capture;
mod clean;
mod common;
mod completions;
mod config;
mod consent;
mod context;
mod convert;
mod demo;
mod diff;
mod docs;
mod doctor;
mod doctor_bundle;
mod driver_check;
mod drivers;
mod dry_run;
mod emit;
mod emit_error;
mod error;
mod exit;
mod export;
mod fleet;
mod fleet_error;
mod fork;
mod fork_setup;
mod front_end;
mod gates;
mod hats;
mod hints;
mod init;
mod lifeline;
mod logs;
mod man;
mod outcome;
mod plan;
mod policy;
mod prompt;
mod quota;
mod race;
mod receipt;
mod receipt_check;
mod replay;
mod restore;
mod resume;
mod review;
mod review_error;
mod review_report;
mod review_subject;
mod roles;
mod run;
mod run_files;
mod run_lookup;
mod run_plan;
mod run_request;
mod run_rows;
mod runs;
mod schema;
#[cfg(feature = "serve")]
mod serve;
mod setting_text;
mod show;
mod snapshots;
mod ssh_signature;
mod suggest;
mod tell;
mod tools;
mod top;
mod transcript;
mod transcript_format;
mod trust;
mod understand;
mod undo_error;
mod verify;
mod viewer;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::debug_log::{DebugLog, LogStart};
use crate::failpoint;
use crate::process;
use crate::run::Host;
use crate::ui::{ColorChoice, Terminal, tui};

use args::{
    AgentsCommand, Arguments, CliCommand, ColorArgument, shorten_if_requested, with_command_groups,
    with_examples, without_agent_options,
};
use error::CliError;
use exit::Exit;

/// Runs the program and returns its exit code.
pub fn main() -> ExitCode {
    let host = Host::of_program();
    let run = std::panic::AssertUnwindSafe(|| run_command(&host));
    match std::panic::catch_unwind(run) {
        Ok(code) if host.panics().first_panic().is_none() => code,
        Ok(_) | Err(_) => ExitCode::from(Exit::Failed),
    }
}

fn run_command(host: &Host) -> ExitCode {
    let handled = process::supervise_if_requested(host.panics())
        .or_else(tui::run_guard_if_requested)
        .or_else(demo::run_agent_if_requested)
        .or_else(|| completions::complete_if_requested(host))
        .or_else(|| fleet::start_if_requested(host))
        .or_else(|| print_version_if_requested(host));
    if let Some(code) = handled {
        return code;
    }
    let arguments = match parse(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(error) => {
            let is_help_or_version = !error.use_stderr();
            // If printing fails, only the exit code can report it.
            let printed = error.print().is_ok();
            return ExitCode::from(if is_help_or_version && printed {
                Exit::Success
            } else {
                Exit::Usage
            });
        }
    };
    let color = match arguments.color {
        ColorArgument::Auto => ColorChoice::Auto,
        ColorArgument::Always => ColorChoice::Always,
        ColorArgument::Never => ColorChoice::Never,
    };
    let terminal = Terminal::new(color, host.ui());
    let exit = execute(&arguments.command, &terminal, host).unwrap_or_else(|error| {
        // The panic hook has already reported a panic.
        if host.panics().first_panic().is_none() {
            // If printing fails, only the exit code can report it.
            let _ = terminal.print_error(&error, &error.hints());
        }
        error.exit()
    });
    ExitCode::from(exit)
}

/// Runs the command with the log that `RALPH_LOG` asks for.
fn execute(command: &CliCommand, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let host = host.with_log(log_start(command))?;
    let _log = host.log().map(DebugLog::enter);
    let result = dispatch(command, terminal, &host);
    if let Some(log) = host.log() {
        log.print_kept();
    }
    result
}

/// Where the command's log begins. A command that may use the whole terminal does not print lines in between.
fn log_start(command: &CliCommand) -> LogStart {
    let may_use_terminal = matches!(
        command,
        CliCommand::Run(_)
            | CliCommand::Understand(_)
            | CliCommand::Demo(_)
            | CliCommand::Bench(_)
            | CliCommand::Fork(_)
            | CliCommand::Attach(_)
            | CliCommand::Top(_)
            | CliCommand::Replay(_)
    );
    match may_use_terminal {
        true => LogStart::Memory,
        false => LogStart::Stderr,
    }
}

fn dispatch(command: &CliCommand, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    failpoint!(host.panics(), Cli);
    match command {
        CliCommand::Run(arguments) => run::run(arguments, terminal, host),
        CliCommand::Understand(arguments) => understand::understand(arguments, terminal, host),
        CliCommand::Init(arguments) => init::init(arguments, terminal, host),
        CliCommand::Tell(arguments) => tell::tell(arguments, terminal),
        CliCommand::Emit(arguments) => emit::emit(arguments, terminal),
        CliCommand::Wave(arguments) => emit::wave(arguments, terminal),
        CliCommand::Tools(arguments) => tools::tools(arguments, terminal),
        CliCommand::Runs(arguments) => runs::runs(arguments, terminal),
        CliCommand::Show(arguments) => show::show(arguments, terminal),
        CliCommand::Diff(arguments) => diff::diff(arguments, terminal, host),
        CliCommand::Review(arguments) => review::review(arguments, terminal, host),
        CliCommand::Restore(arguments) => restore::restore(arguments, terminal, host),
        CliCommand::Fork(arguments) => fork::fork(arguments, terminal, host),
        CliCommand::Race(arguments) => race::race(arguments, terminal, host),
        CliCommand::Logs(arguments) => logs::logs(arguments, terminal, host),
        CliCommand::Receipt(arguments) => receipt::receipt(arguments, terminal, host),
        CliCommand::Verify(arguments) => verify::verify(arguments, terminal, host),
        CliCommand::Clean(arguments) => clean::clean(arguments, terminal, host),
        CliCommand::Export(arguments) => export::export(arguments, terminal, host),
        CliCommand::Agents(arguments) => match &arguments.command {
            Some(AgentsCommand::Test(arguments)) => agents_test::test(arguments, terminal, host),
            Some(AgentsCommand::Report(arguments)) => agents_report::report(arguments, terminal),
            None => agents::agents(&arguments.list, terminal, host),
        },
        CliCommand::Doctor(arguments) => doctor::doctor(arguments, terminal, host),
        CliCommand::Drivers(arguments) => drivers::drivers(arguments, terminal, host),
        CliCommand::Config(arguments) => config::config(arguments, terminal, host),
        CliCommand::Quota(arguments) => quota::quota(arguments, terminal),
        CliCommand::AsClaude(arguments) => as_claude::as_claude(arguments, terminal, host),
        CliCommand::Trust(arguments) => trust::trust(arguments, terminal, host),
        CliCommand::Hats(arguments) => hats::hats(arguments, terminal),
        CliCommand::Gates(arguments) => gates::gates(arguments, terminal, host),
        CliCommand::Bench(arguments) => bench::bench(arguments, terminal, host),
        CliCommand::Worker(arguments) => fleet::worker(&arguments.words),
        CliCommand::Fleet(arguments) => fleet::fleet(&arguments.words),
        CliCommand::Plan(arguments) => plan::plan(arguments, terminal, host),
        CliCommand::Demo(arguments) => demo::demo(arguments, terminal, host),
        CliCommand::Attach(arguments) => attach::attach(arguments, terminal, host),
        CliCommand::Top(arguments) => top::top(arguments, terminal, host),
        CliCommand::Transcript(arguments) => transcript::transcript(arguments, terminal),
        CliCommand::Replay(arguments) => replay::replay(arguments, terminal, host),
        #[cfg(feature = "serve")]
        CliCommand::Serve(arguments) => serve::serve(arguments, terminal, host),
        CliCommand::Schema { of } => schema::schema(*of, terminal),
        CliCommand::Completions { shell } => completions::completions(*shell, terminal),
        CliCommand::Man(arguments) => man::man(arguments, terminal),
        CliCommand::Docs(arguments) => docs::docs(arguments, terminal),
    }
}

/// Returns the clap command tree, for help, manual pages, completion and tests.
pub fn command() -> clap::Command {
    with_command_groups(with_examples(Arguments::command()))
}

fn parse(words: Vec<OsString>) -> Result<Arguments, clap::Error> {
    let mut command = shorten_if_requested(without_agent_options(command()), &words);
    let words = fleet::with_own_help(with_default_command(words));
    let mut matches = command
        .try_get_matches_from_mut(words)
        .map_err(|error| suggest::improve(error, &command))?;
    let mut arguments =
        Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
    if let CliCommand::Run(run) = &mut arguments.command
        && let Err(message) = run.take_task()
    {
        return Err(command.error(clap::error::ErrorKind::TooManyValues, message));
    }
    let conflict = match &arguments.command {
        CliCommand::Run(run) => run.conflict_with_json(),
        CliCommand::Understand(understand) => understand.show.conflict_with_json(),
        CliCommand::Fork(fork) => fork.run.show.conflict_with_json(),
        _ => None,
    };
    match conflict {
        None => Ok(arguments),
        Some(flag) => {
            let message = format!("'--json' cannot be used with '{flag}'; '--json=FILE' can");
            Err(command.error(clap::error::ErrorKind::ArgumentConflict, message))
        }
    }
}

const VERSION: &str = concat!("ralph ", env!("CARGO_PKG_VERSION"), "\n");

/// Fast path for `ralph --version`, which scripts call often: does not build the command tree.
fn print_version_if_requested(host: &Host) -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let (word, None) = (words.next()?, words.next()) else {
        return None;
    };
    if word != "--version" && word != "-V" {
        return None;
    }
    let printed = Terminal::new(ColorChoice::Never, host.ui()).print(VERSION);
    Some(ExitCode::from(if printed.is_ok() {
        Exit::Success
    } else {
        Exit::Usage
    }))
}

/// `ralph -p …` means `ralph run -p …`. Global options may precede the command.
fn with_default_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    const TOP_LEVEL: [&str; 4] = ["-h", "--help", "-V", "--version"];
    let word = |index: usize| arguments.get(index).and_then(|word| word.to_str());
    let mut index = 1;
    while let Some(option) = word(index) {
        match option {
            "--color" => index += 2,
            option if option.starts_with("--color=") => index += 1,
            _ => break,
        }
    }
    if word(index).is_some_and(|first| first.starts_with('-') && !TOP_LEVEL.contains(&first)) {
        arguments.insert(index, "run".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    #[cfg(debug_assertions)]
    mod several_runs;

    use super::*;

    #[test]
    fn command_tree_passes_clap_assertions() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn version_fast_path_matches_clap() {
        assert_eq!(Arguments::command().render_version(), VERSION);
    }

    #[test]
    fn run_is_the_default_when_only_flags_are_given() {
        let parse = |line: &str| {
            super::parse(line.split(' ').map(OsString::from).collect()).map(|arguments| arguments.command)
        };
        assert!(matches!(parse("ralph -p hello"), Ok(CliCommand::Run(_))));
        assert!(matches!(parse("ralph --dry-run"), Ok(CliCommand::Run(_))));
        assert!(matches!(parse("ralph demo --keep"), Ok(CliCommand::Demo(_))));
        assert!(parse("ralph --version").is_err_and(|error| !error.use_stderr()));
        assert!(parse("ralph").is_err());
        assert!(matches!(
            parse("ralph --color never runs"),
            Ok(CliCommand::Runs(_))
        ));
        assert!(matches!(
            parse("ralph --color=never -p x"),
            Ok(CliCommand::Run(_))
        ));
    }

    #[test]
    fn task_is_one_argument() {
        let parse = |words: &[&str]| {
            super::parse(words.iter().map(OsString::from).collect()).map(|arguments| arguments.command)
        };
        let run = parse(&["ralph", "run", "make the tests pass", "-n", "3"]);
        assert!(
            matches!(&run, Ok(CliCommand::Run(run)) if run.prompt.as_deref() == Some("make the tests pass")),
            "{run:?}"
        );
        let several = parse(&["ralph", "run", "make", "tests", "pass"]).map(drop);
        let message = several.expect_err("three arguments").to_string();
        assert!(
            message.contains("put it in quotes: ralph run \"make tests pass\""),
            "{message}"
        );
        assert!(parse(&["ralph", "run", "a", "-p", "b"]).is_err());
    }
}
