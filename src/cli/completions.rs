//! `ralph completions`: prints a completion script, and completes for it. The script calls `ralph` with RALPH_COMPLETE
//! set on each Tab, so that runs, agents and hats are always current.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::{Arg, Command};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{EnvCompleter, Shells};

use crate::agent::{self, AGENTS, CUSTOM, DRIVER};
use crate::config::{LoadedConfig, PartialSettings};
use crate::run::Host;
use crate::store::{RunIndex, is_running};
use crate::transcript;
use crate::ui::{ColorChoice, Terminal};

use super::context::{current_project, load, working_directory};
use super::error::CliError;
use super::exit::Exit;

/// Contains the shell's name when a completion script calls ralph.
const VARIABLE: &str = "RALPH_COMPLETE";
/// Active runs are searched for among this many of the newest runs.
const MAX_PROBED: usize = 1000;

/// The kind of values that complete an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Completion {
    Runs,
    ActiveRuns,
    RunsAndFiles,
    Agents,
    Hats,
    Gates,
    Drivers,
    Formats,
}

/// Rows of command path (`*` matches any), argument and kind of values.
const COMPLETIONS: &[(&str, &str, Completion)] = &[
    ("show", "run", Completion::Runs),
    ("diff", "selection", Completion::Runs),
    ("review", "selection", Completion::Runs),
    ("review", "gate", Completion::Gates),
    ("restore", "what", Completion::Runs),
    ("fork", "what", Completion::Runs),
    ("race", "what", Completion::Runs),
    ("receipt", "run", Completion::Runs),
    ("verify", "run", Completion::RunsAndFiles),
    ("logs", "run", Completion::Runs),
    ("attach", "run", Completion::Runs),
    ("export", "run", Completion::Runs),
    ("run", "resume", Completion::Runs),
    ("replay", "what", Completion::RunsAndFiles),
    ("tell", "words", Completion::ActiveRuns),
    ("agents test", "name", Completion::Agents),
    ("agents report", "run", Completion::Runs),
    ("hats show", "name", Completion::Hats),
    ("gates run", "name", Completion::Gates),
    ("drivers check", "name", Completion::Drivers),
    ("*", "agent", Completion::Agents),
    ("*", "transcript", Completion::Formats),
];

pub(super) fn completions(shell: Shell, terminal: &Terminal) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    if let Some(writer) = Shells::builtins().completer(&shell.to_string()) {
        // Use the name instead of the path, because packages are built with a binary in another directory.
        writer
            .write_registration(VARIABLE, "ralph", "ralph", "ralph", &mut script)
            .map_err(CliError::Output)?;
    }
    let script = String::from_utf8_lossy(&script);
    terminal
        .print(&format!("{}\n", script.trim()))
        .map_err(CliError::Output)?;
    Ok(Exit::Success)
}

/// Completes a command line if a script requests it: `RALPH_COMPLETE=bash ralph -- ralph show 2026`.
pub(super) fn complete_if_requested(host: &Host) -> Option<ExitCode> {
    let shell = std::env::var_os(VARIABLE)?.into_string().ok()?;
    let mut words = std::env::args_os().skip(1);
    if words.next()? != "--" {
        return None;
    }
    let shells = Shells::builtins();
    let output = shells
        .completer(&shell)
        .and_then(|shell| complete(shell, words.collect()));
    let printed = output.is_some_and(|output| {
        Terminal::new(ColorChoice::Never, host.ui())
            .print(&output)
            .is_ok()
    });
    Some(ExitCode::from(if printed { Exit::Success } else { Exit::Failed }))
}

fn complete(shell: &dyn EnvCompleter, words: Vec<OsString>) -> Option<String> {
    if words.is_empty() {
        return None;
    }
    let mut command = with_completions("", super::command());
    command.build();
    let mut output = Vec::new();
    shell
        .write_complete(&mut command, words, None, &mut output)
        .ok()?;
    Some(String::from_utf8_lossy(&output).into_owned())
}

/// Adds a completer to each argument in the table.
fn with_completions(path: &str, command: Command) -> Command {
    let command = command.mut_args(|argument| match completion_of(path, &argument) {
        Some(kind) => argument.add(ArgValueCompleter::new(kind)),
        None => argument,
    });
    command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        with_completions(path.trim_start(), inner)
    })
}

fn completion_of(path: &str, argument: &Arg) -> Option<Completion> {
    let matches =
        |(of, id, _): &&(&str, &str, Completion)| (*of == "*" || *of == path) && argument.get_id() == *id;
    COMPLETIONS.iter().find(matches).map(|(_, _, kind)| *kind)
}

impl ValueCompleter for Completion {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let prefix = current.to_string_lossy();
        let matches_prefix = |word: &String| word.starts_with(&*prefix);
        let words = self.values().into_iter().filter(matches_prefix).enumerate();
        let mut found: Vec<CompletionCandidate> = words
            .map(|(index, word)| CompletionCandidate::new(word).display_order(Some(index)))
            .collect();
        match self {
            Self::RunsAndFiles => found.extend(PathCompleter::any().complete(current)),
            Self::Runs
            | Self::ActiveRuns
            | Self::Agents
            | Self::Hats
            | Self::Gates
            | Self::Drivers
            | Self::Formats => {}
        }
        found
    }
}

impl Completion {
    /// Returns all values in display order; empty if they cannot be determined.
    fn values(self) -> Vec<String> {
        match self {
            Self::Runs | Self::RunsAndFiles => runs(),
            Self::ActiveRuns => active_runs(),
            Self::Agents => {
                let built_in = AGENTS.iter().map(|agent| agent.name.to_owned());
                let drivers = drivers().into_iter().map(|name| format!("{DRIVER}{name}"));
                let others = ["auto".to_owned(), CUSTOM.to_owned()];
                built_in.chain(others).chain(drivers).collect()
            }
            Self::Hats => {
                let hats = |loaded: LoadedConfig| loaded.settings.hats.into_keys().collect();
                loaded().map(hats).unwrap_or_default()
            }
            Self::Gates => {
                let gates =
                    |loaded: LoadedConfig| loaded.settings.gates.into_iter().map(|gate| gate.name).collect();
                loaded().map(gates).unwrap_or_default()
            }
            Self::Drivers => drivers(),
            Self::Formats => {
                let formats = transcript::names().map(str::to_owned);
                std::iter::once("auto".to_owned()).chain(formats).collect()
            }
        }
    }
}

fn runs() -> Vec<String> {
    let Some(index) = index() else {
        return Vec::new();
    };
    let ids = index.newest_first().map(str::to_owned);
    ids.chain((!index.is_empty()).then(|| "latest".to_owned()))
        .collect()
}

fn active_runs() -> Vec<String> {
    let Some(index) = index() else {
        return Vec::new();
    };
    let active = index
        .newest_first()
        .take(MAX_PROBED)
        .filter(|id| is_running(&index.directory(id)));
    active.map(str::to_owned).collect()
}

fn index() -> Option<RunIndex> {
    let project = current_project().ok()?;
    Some(RunIndex::load(&project))
}

fn loaded() -> Option<LoadedConfig> {
    load(&working_directory().ok()?, PartialSettings::default(), None).ok()
}

fn drivers() -> Vec<String> {
    let (Ok(cwd), Some(loaded)) = (working_directory(), loaded()) else {
        return Vec::new();
    };
    let all = agent::driver_dirs(&loaded.settings, &cwd).all();
    all.into_iter().map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_refers_to_an_argument() {
        for (path, id, _) in COMPLETIONS.iter().filter(|(path, ..)| *path != "*") {
            let root = crate::cli::command();
            let mut command = &root;
            for word in path.split_whitespace() {
                command = command.find_subcommand(word).unwrap_or_else(|| panic!("{path}"));
            }
            let mut arguments = command.get_arguments();
            assert!(arguments.any(|argument| argument.get_id() == *id), "{path} {id}");
        }
    }

    #[test]
    fn every_argument_that_names_a_run_or_an_agent_is_completed() {
        fn walk(path: &str, command: &Command) {
            let arguments = command.get_arguments();
            for argument in arguments.filter(|argument| argument.get_action().takes_values()) {
                let names = argument.get_value_names().unwrap_or_default();
                let needs_completion = names.iter().any(|name| name.as_str().contains("RUN"))
                    || matches!(argument.get_id().as_str(), "agent" | "transcript");
                assert!(
                    !needs_completion || completion_of(path, argument).is_some(),
                    "{path}: {}",
                    argument.get_id()
                );
            }
            for inner in command.get_subcommands() {
                walk(format!("{path} {}", inner.get_name()).trim_start(), inner);
            }
        }
        walk("", &crate::cli::command());
    }
}
