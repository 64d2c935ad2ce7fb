//! The door: arguments in, exit code out; errors become sentences with a remedy. One file per subcommand.

mod agent_mode;
mod agents;
mod agents_test;
mod args;
mod as_claude;
mod attach;
mod bench;
mod clean;
mod completions;
mod config;
mod context;
mod demo;
mod doctor;
mod drivers;
mod dry_run;
mod error;
mod exit;
mod export;
mod front_end;
mod gates;
mod hats;
mod hints;
mod init;
mod logs;
mod man;
mod policy;
mod prompt;
mod replay;
mod resume;
mod run;
mod run_files;
mod run_header;
mod runs;
mod schema;
mod show;
mod tell;
mod transcript;
mod transcript_format;
mod trust;
mod understand;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::panic_hook;
use crate::process;
use crate::ui::{ColourChoice, Terminal, tui};

use args::{AgentsCommand, Arguments, ColorArgument, Command, shorten_if_requested, with_examples};
use error::CliError;
use exit::Exit;

/// The whole program.
pub fn main() -> ExitCode {
    panic_hook::install();
    match std::panic::catch_unwind(run_command) {
        Ok(code) if panic_hook::first_panic().is_none() => code,
        Ok(_) | Err(_) => ExitCode::from(Exit::Failed),
    }
}

fn run_command() -> ExitCode {
    let asked = process::keep_if_asked()
        .or_else(tui::guard_if_asked)
        .or_else(demo::play_if_asked)
        .or_else(completions::complete_if_requested)
        .or_else(print_version_if_requested);
    if let Some(code) = asked {
        return code;
    }
    let arguments = match parse(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(error) => {
            let asked_for = !error.use_stderr();
            // When even that cannot be printed, the exit code is all that is left to say it.
            let printed = error.print().is_ok();
            return ExitCode::from(if asked_for && printed {
                Exit::Success
            } else {
                Exit::Usage
            });
        }
    };
    let terminal = Terminal::new(match arguments.color {
        ColorArgument::Auto => ColourChoice::Auto,
        ColorArgument::Always => ColourChoice::Always,
        ColorArgument::Never => ColourChoice::Never,
    });
    let exit = dispatch(&arguments.command, &terminal).unwrap_or_else(|error| {
        // A mistake of our own has been told.
        if panic_hook::first_panic().is_none() {
            // As above: nothing better can be done about a terminal that takes no text.
            let _ = terminal.fail(&error, &error.hints());
        }
        error.exit()
    });
    ExitCode::from(exit)
}

fn dispatch(command: &Command, terminal: &Terminal) -> Result<Exit, CliError> {
    panic_hook::failpoint("cli");
    match command {
        Command::Run(arguments) => run::run(arguments, terminal),
        Command::Understand(arguments) => understand::understand(arguments, terminal),
        Command::Init(arguments) => init::init(arguments, terminal),
        Command::Tell(arguments) => tell::tell(arguments, terminal),
        Command::Runs(arguments) => runs::runs(arguments, terminal),
        Command::Show(arguments) => show::show(arguments, terminal),
        Command::Logs(arguments) => logs::logs(arguments, terminal),
        Command::Clean(arguments) => clean::clean(arguments, terminal),
        Command::Export(arguments) => export::export(arguments, terminal),
        Command::Agents(arguments) => match &arguments.command {
            Some(AgentsCommand::Test(arguments)) => agents_test::test(arguments, terminal),
            None => agents::agents(&arguments.list, terminal),
        },
        Command::Doctor(arguments) => doctor::doctor(arguments, terminal),
        Command::Drivers(arguments) => drivers::drivers(arguments, terminal),
        Command::Config(arguments) => config::config(arguments, terminal),
        Command::AsClaude(arguments) => as_claude::as_claude(arguments, terminal),
        Command::Trust(arguments) => trust::trust(arguments, terminal),
        Command::Hats(arguments) => hats::hats(arguments, terminal),
        Command::Gates(arguments) => gates::gates(arguments, terminal),
        Command::Bench(arguments) => bench::bench(arguments, terminal),
        Command::Demo(arguments) => demo::demo(arguments, terminal),
        Command::Attach(arguments) => attach::attach(arguments, terminal),
        Command::Transcript(arguments) => transcript::transcript(arguments, terminal),
        Command::Replay(arguments) => replay::replay(arguments, terminal),
        Command::Schema { of } => schema::schema(*of, terminal),
        Command::Completions { shell } => completions::completions(*shell, terminal),
        Command::Man(arguments) => man::man(arguments, terminal),
    }
}

/// The whole command line, as a tree: for the help, the manual's pages, completion, and whoever checks them.
pub fn command() -> clap::Command {
    with_examples(Arguments::command())
}

fn parse(words: Vec<OsString>) -> Result<Arguments, clap::Error> {
    let mut command = shorten_if_requested(command(), &words);
    let mut matches = command.try_get_matches_from_mut(with_default_command(words))?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

const VERSION: &str = concat!("ralph ", env!("CARGO_PKG_VERSION"), "\n");

/// Scripts ask for it again and again, and it takes nothing of all the rest.
fn print_version_if_requested() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let (word, None) = (words.next()?, words.next()) else {
        return None;
    };
    if word != "--version" && word != "-V" {
        return None;
    }
    let printed = Terminal::new(ColourChoice::Never).print(VERSION);
    Some(ExitCode::from(if printed.is_ok() {
        Exit::Success
    } else {
        Exit::Usage
    }))
}

/// `ralph -p …` means `ralph run -p …`.
fn with_default_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    const ABOUT_RALPH: [&str; 4] = ["-h", "--help", "-V", "--version"];
    let first = arguments.get(1).and_then(|first| first.to_str());
    if first.is_some_and(|first| first.starts_with('-') && !ABOUT_RALPH.contains(&first)) {
        arguments.insert(1, "run".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_version_is_the_one_that_the_command_line_knows() {
        assert_eq!(Arguments::command().render_version(), VERSION);
    }

    #[test]
    fn run_is_the_default_when_only_flags_are_given() {
        let parse = |line: &str| {
            super::parse(line.split(' ').map(OsString::from).collect()).map(|arguments| arguments.command)
        };
        assert!(matches!(parse("ralph -p hello"), Ok(Command::Run(_))));
        assert!(matches!(parse("ralph --dry-run"), Ok(Command::Run(_))));
        assert!(matches!(parse("ralph demo --keep"), Ok(Command::Demo(_))));
        assert!(parse("ralph --version").is_err_and(|error| !error.use_stderr()));
        assert!(parse("ralph").is_err());
    }
}
