//! What the user can do about what went wrong.

use std::io;

use crate::agent::driver::{DriverError, EMBEDDED};
use crate::agent::{AGENTS, AgentError, Checked};
use crate::config::ConfigError;
use crate::engine::HatError;
use crate::store::StoreError;
use crate::transcript;

use super::error::CliError;

impl CliError {
    /// What the user can do about it, a line each.
    pub(super) fn hints(&self) -> Vec<String> {
        match self {
            Self::Agent(error) => agent_hints(error),
            Self::WorkingDirectory { .. } => {
                vec!["change to a directory that exists, and that you may enter".into()]
            }
            Self::Task(error) => error.hints(),
            Self::Bench(error) => error.hints(),
            Self::Untrusted { allow, .. } => vec![
                "they can come from somebody else, so nothing of it was started".into(),
                format!("to allow it, until one byte of it changes: {allow}"),
                "for one call, or in CI: --trust, or RALPH_TRUST=1".into(),
            ],
            Self::RunCompleted { .. } => {
                vec!["begin a new run with it: ralph run -p TEXT, or write it into the prompt file".into()]
            }
            Self::Store(error) => store_hints(error),
            Self::SettingsChanged { .. } => vec![
                "to go on with the new configuration: add --yes".into(),
                "to keep the old one: undo the change, or begin a new run with ralph run".into(),
            ],
            Self::HeaderMissing { .. } => vec!["begin a new run: ralph run".into()],
            Self::TerminalRequired => vec!["leave it out where no one is there to answer".into()],
            Self::EmptyCommand => {
                vec!["ralph tell \"use the new API\", or --pause, --resume, --wake, --stop-iteration".into()]
            }
            Self::CannotConfirm { .. }
            | Self::AlreadyExists { .. }
            | Self::NoIteration { .. }
            | Self::SpeedWithoutTimes { .. }
            | Self::TranscriptOfRun { .. } => self.run_hints(),
            Self::Unwritable { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                vec!["it is left as it is: remove it first, or choose another name".into()]
            }
            Self::Unwritable { .. } => {
                vec!["check the path, free space and permissions".into()]
            }
            Self::Run(_) => vec![CHECK_DISK.into()],
            Self::UnknownTranscript { .. } => vec![known_formats()],
            Self::NothingToConvert { from } => vec![format!("name it: ralph init --from-{from} FILE")],
            Self::AsClaude(_) => vec!["usage: ralph as-claude --agent NAME [-p PROMPT]".into()],
            Self::Hats(error) => hat_hints(error),
            Self::UnknownName { what, known, .. } if known.is_empty() => {
                vec![format!("ralph.yml configures none: they go under `{what}s:`")]
            }
            Self::UnknownName { known, .. } => vec![format!("there are: {}", known.join(", "))],
            Self::SessionInInteractiveMode => vec!["say `session: fresh`, or --mode autonomous".into()],
            Self::ResumeUnsupported { .. } => vec!["remove it, or say `session: fresh`".into()],
            Self::NoTerminal { .. } => vec!["line by line: --no-tui; a recorded run: ralph replay".into()],
            Self::Config(error) => config_hints(error),
            Self::Filter(_)
            | Self::Ledger(_)
            | Self::Unreadable { .. }
            | Self::InputUnreadable { .. }
            | Self::AgentCommand(_)
            | Self::Demo(_)
            | Self::Output(_) => self.file_hints(),
        }
    }
}

/// What helps with files and words that cannot be read or written.
impl CliError {
    fn file_hints(&self) -> Vec<String> {
        match self {
            Self::Filter(_) => vec!["a filter that works: --jq-filter '.text // empty'".into()],
            Self::Ledger(_) => vec![
                "check free space and permissions of your own directories".into(),
                "for one call: --trust, or RALPH_TRUST=1".into(),
            ],
            Self::Unreadable { .. } | Self::InputUnreadable { .. } => {
                vec!["check the path, and that you may read it".into()]
            }
            Self::AgentCommand(_) => {
                vec!["quote it as for a shell: --agent-cmd 'my-agent --system \"be brief\"'".into()]
            }
            Self::Demo(_) => {
                vec!["check free space and permissions where temporary files go (TMPDIR)".into()]
            }
            Self::Output(_) => vec!["check that there is space, and somebody who reads".into()],
            _ => Vec::new(),
        }
    }
}

/// What helps with runs that were.
impl CliError {
    fn run_hints(&self) -> Vec<String> {
        match self {
            Self::CannotConfirm { .. } => vec![
                "to see which: ralph clean --dry-run".into(),
                "to remove them without a question: add --yes".into(),
            ],
            Self::AlreadyExists { .. } => vec!["choose another name, or overwrite it with --force".into()],
            Self::NoIteration { id, iterations, .. } => vec![match iterations {
                0 => format!("it has not begun any; to see what it did: ralph show {id}"),
                last => format!("its last one is {last}; to see all: ralph show {id}"),
            }],
            Self::SpeedWithoutTimes { .. } => vec!["leave it out: raw output is shown at once".into()],
            Self::TranscriptOfRun { .. } => {
                vec!["leave it out, or name raw output: …/iterations/0001/stdout.raw".into()]
            }
            _ => Vec::new(),
        }
    }
}

/// Of runs that are called alike, the newest so many are named.
const MOST_CANDIDATES: usize = 10;

const CHECK_DISK: &str = "check free space and permissions; what was written before is still there";

fn store_hints(error: &StoreError) -> Vec<String> {
    match error {
        StoreError::Locked { .. } => {
            vec!["wait for it, stop it, or work in another directory (a git worktree, for example)".into()]
        }
        StoreError::NoRuns { .. } => vec![
            "call ralph where the run was started, or name the run's directory".into(),
            "a file of raw output is named by its path".into(),
        ],
        StoreError::UnknownRun { name, newest } => vec![
            format!("the newest run is {newest}; `latest` stands for it"),
            format!("and there is no file `{name}` either"),
        ],
        StoreError::NoBenches { .. } => vec!["begin one: ralph bench run tasks.yml".into()],
        StoreError::UnknownBench { newest, .. } => {
            vec![format!("the newest bench is {newest}; `latest` stands for it")]
        }
        StoreError::CopyIntoItself { .. } => vec!["keep the bench elsewhere: --dir DIR".into()],
        StoreError::NotABench { .. } => vec!["to see the benches: ralph bench list".into()],
        StoreError::AmbiguousRun { candidates, .. } | StoreError::AmbiguousBench { candidates, .. } => {
            let mut hints = vec!["say more of it; these begin so:".to_owned()];
            let newest = candidates.iter().rev().take(MOST_CANDIDATES);
            hints.extend(newest.map(|id| format!("  {id}")));
            if let more @ 1.. = candidates.len().saturating_sub(MOST_CANDIDATES) {
                hints.push(format!("  and {more} more"));
            }
            hints
        }
        StoreError::NotARun { .. } => vec!["to see the runs of this directory: ralph runs".into()],
        StoreError::LeadsElsewhere { .. } => {
            vec!["nothing was removed; go to where it leads, and remove old runs there by hand".into()]
        }
        StoreError::Io { .. } => vec![CHECK_DISK.into()],
    }
}

fn known_formats() -> String {
    let names: Vec<&str> = transcript::names().collect();
    format!("known formats: auto, {}", names.join(", "))
}

/// A mistake that brings its own help needs no other.
fn config_hints(error: &ConfigError) -> Vec<String> {
    match error {
        ConfigError::Missing { .. } => {
            vec!["check its path, or leave it out".into()]
        }
        ConfigError::Unreadable { .. } => vec!["check that it is a file that you may read".into()],
        ConfigError::TooLarge { .. } => vec!["is it the right file? --config names another".into()],
        ConfigError::Diagnostic(mistake) if mistake.help.is_some() => Vec::new(),
        ConfigError::Diagnostic(_) => {
            vec!["correct the line; what every key takes: ralph schema config".into()]
        }
        ConfigError::Variable { variable, .. } => vec![format!("correct it, or: unset {variable}")],
        ConfigError::Flag { complaint } if complaint.help.is_some() => Vec::new(),
        ConfigError::Flag { .. } => vec!["what every option takes: ralph run --help".into()],
    }
}

fn hat_hints(error: &HatError) -> Vec<String> {
    match error {
        HatError::ClaimedTwice { first, second, .. } => vec![
            format!("keep it in one of hats.{first}.triggers and hats.{second}.triggers"),
            "ralph hats validate shows all that is wrong".into(),
        ],
        HatError::NoDefault => vec!["add `task.start` to the triggers of the hat that begins".into()],
    }
}

fn agent_hints(error: &AgentError) -> Vec<String> {
    match error {
        AgentError::NoneFound { checked } => {
            let width = checked
                .iter()
                .map(|checked| checked.agent.name.len())
                .max()
                .unwrap_or(0);
            let mut hints = vec!["these were looked for:".to_owned()];
            hints.extend(checked.iter().map(|checked| why_not(checked, width)));
            hints.push(
                "install one of them, or bring your own: ralph run --agent-cmd 'my-agent --headless'".into(),
            );
            hints.push("to see ralph work without any agent: ralph demo".into());
            hints
        }
        AgentError::NotInstalled { agent, .. } => vec![
            format!("install it: {}", agent.install),
            "or use another agent: ralph agents lists what is there".into(),
        ],
        AgentError::Disabled { name } => {
            vec![format!(
                "remove `enabled: false` from adapters.{name}, or choose another agent"
            )]
        }
        AgentError::Unknown { nearest, .. } => {
            let known = AGENTS
                .iter()
                .map(|agent| agent.name)
                .collect::<Vec<_>>()
                .join(", ");
            let meant = nearest.map(|nearest| format!("did you mean `{nearest}`?"));
            meant
                .into_iter()
                .chain([format!("known agents: auto, {known}, custom")])
                .collect()
        }
        AgentError::CustomWithoutCommand => vec![
            "name it in ralph.yml: cli.command".into(),
            "or on the command line: --agent-cmd 'my-agent --headless'".into(),
        ],
        AgentError::CustomNotFound { command } => vec![missing_program_hint(command).into()],
        AgentError::PromptTooLong { .. } => {
            vec!["shorten it: put the details in files, and let the prompt name them".into()]
        }
        AgentError::ProviderNotFound { .. } => {
            vec!["check its spelling, or give its full path; is it executable?".into()]
        }
        AgentError::ProviderArguments { .. } => {
            vec!["close the quote; \"\" means no arguments at all".into()]
        }
        AgentError::NoFilter => vec![
            "give one: --jq-filter '.text // empty'".into(),
            "or in ralph.yml: cli.jq_filter".into(),
        ],
        AgentError::Driver(error) => driver_hints(error),
        AgentError::NoScreen { .. } => {
            vec!["say --mode autonomous, or choose an agent with a screen of its own (docs/agents.md)".into()]
        }
        AgentError::NulInPrompt => vec!["take it out: no command line can carry one".into()],
    }
}

/// What helps with a program that is not there.
fn missing_program_hint(command: &str) -> &'static str {
    match command.starts_with('~') {
        true => "`~` is the shell's, and no shell reads this: write the full path",
        false => "check its spelling, or give its full path",
    }
}

fn why_not(checked: &Checked, width: usize) -> String {
    let why = match &checked.answer {
        Ok(version) => version.clone(),
        Err(why) => why.to_string(),
    };
    format!(
        "  {:width$}  {why}  ({})",
        checked.agent.name, checked.agent.install
    )
}

pub(super) fn driver_hints(error: &DriverError) -> Vec<String> {
    match error {
        DriverError::NoBash | DriverError::NotBash { .. } => {
            vec!["install bash (3.2 or newer), or use a built-in agent: ralph agents".into()]
        }
        DriverError::NotFound { looked, .. } => {
            let looked = looked
                .iter()
                .map(|path| format!("  looked in {}", path.display()));
            let known: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).collect();
            looked
                .chain([
                    format!("drivers that come with ralph: {}", known.join(", ")),
                    "to write one: ralph drivers new NAME".into(),
                ])
                .collect()
        }
        DriverError::Outside { .. } => vec!["copy the file into the directory instead of linking it".into()],
        DriverError::WorldWritable { path } => vec![format!("chmod o-w {}", path.display())],
        DriverError::Missing { .. } | DriverError::NoCommand { .. } | DriverError::Silent { .. } => {
            vec!["a skeleton that has them all: ralph drivers new NAME".into()]
        }
        DriverError::NoProgram { .. } => vec!["install it, or use another agent: ralph agents".into()],
        DriverError::UnknownTool { valid, .. } => vec![format!("known to it: {}", valid.join(", "))],
        DriverError::Exited { .. } | DriverError::Hook { .. } => {
            vec![
                "a hook tells success and failure with `return`; to see all of it: ralph drivers check NAME"
                    .into(),
            ]
        }
        DriverError::TimedOut { .. } | DriverError::TooMuch { .. } => {
            vec!["mend the hook; to try it: ralph drivers check NAME".into()]
        }
        DriverError::BadName { .. } => {
            vec!["give the name of the file without its .sh; to see them: ralph drivers list".into()]
        }
        DriverError::NotAFile { .. } | DriverError::Unreadable { .. } => {
            vec!["check what is there, and that you may read it; to see all: ralph drivers list".into()]
        }
        DriverError::Unpack { .. } | DriverError::Process(_) => {
            vec!["check free space and permissions where temporary files go (TMPDIR)".into()]
        }
    }
}
