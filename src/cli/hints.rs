//! Hints: what the user can do about each error.

use std::io;

use crate::agent::driver::{DriverError, EMBEDDED};
use crate::agent::{AGENTS, AgentCheck, AgentError};
use crate::config::ConfigError;
use crate::engine::HatError;
#[cfg(feature = "serve")]
use crate::serve::ServeError;
use crate::store::StoreError;
use crate::transcript;
use crate::trust::TrustError;

use super::error::CliError;

impl CliError {
    /// Returns the hints for this error, one per line.
    pub(super) fn hints(&self) -> Vec<String> {
        match self {
            Self::Agent(error) => agent_hints(error),
            Self::Prompt(error) => error.hints(),
            Self::Bench(error) => error.hints(),
            Self::Plan(error) => error.hints(),
            Self::Fleet(error) => error.hints(),
            Self::Undo(error) => error.hints(),
            Self::Emit(error) => vec![error.hint().into()],
            #[cfg(feature = "serve")]
            Self::Serve(error) => serve_hints(error),
            Self::Untrusted { allow, .. } => untrusted_hints(allow),
            Self::Store(error) => store_hints(error),
            Self::SettingsChanged { .. } => settings_changed_hints(),
            Self::CannotConfirm { .. }
            | Self::AlreadyExists { .. }
            | Self::NoIteration { .. }
            | Self::SpeedWithoutTimes { .. }
            | Self::EmptyCommand
            | Self::WorkingDirectory { .. }
            | Self::RunCompleted { .. }
            | Self::RunInactive { .. }
            | Self::JournalDamaged { .. }
            | Self::SettingsFileChanged { .. }
            | Self::HeaderMissing { .. }
            | Self::NewerRun { .. }
            | Self::TranscriptOfRun { .. } => self.run_hints(),
            Self::Run(_) => vec![CHECK_DISK.into()],
            Self::UnknownTranscript { .. } => vec![known_formats()],
            Self::NothingToConvert { from } => vec![format!("pass its path: ralph init --from-{from} FILE")],
            Self::AsClaude(_) => vec!["usage: ralph as-claude --agent NAME [-p PROMPT]".into()],
            Self::Hats(error) => hat_hints(error),
            Self::UnknownName { what, known, .. } if known.is_empty() => {
                vec![format!("ralph.yml defines none; add them under `{what}s:`")]
            }
            Self::UnknownName { what, known, .. } => vec![format!("known {what}s: {}", known.join(", "))],
            Self::SessionInInteractiveMode => vec!["set `session: fresh`, or pass --mode autonomous".into()],
            Self::RoleWithoutModel { key, .. } => vec![format!("select it with {key}.args")],
            Self::ResumeUnsupported { .. } => vec!["set `session: fresh`".into()],
            Self::Config(error) => config_hints(error),
            Self::Review(error) => error.hints(),
            Self::Filter(_)
            | Self::LogLevels(_)
            | Self::Trust(_)
            | Self::Unreadable { .. }
            | Self::Unwritable { .. }
            | Self::InputUnreadable { .. }
            | Self::AgentCommand(_)
            | Self::Demo(_)
            | Self::ToolsNotReported { .. }
            | Self::TerminalRequired
            | Self::Lifeline { .. }
            | Self::GatesRequired
            | Self::SnapshotsRequired { .. }
            | Self::RestoreNeedsSnapshots
            | Self::Sandbox(_)
            | Self::NoTerminal { .. }
            | Self::Output(_) => self.file_hints(),
        }
    }
}

fn settings_changed_hints() -> Vec<String> {
    vec![
        "to resume with the new configuration, add --yes".into(),
        "to keep the old configuration, undo the change; to start over: ralph run".into(),
    ]
}

fn untrusted_hints(allow: &str) -> Vec<String> {
    vec![
        "other people may have written these files; nothing was started".into(),
        format!("to allow them until they change: {allow}"),
        "to allow them once, or in CI: --trust or RALPH_TRUST=1".into(),
    ]
}

/// Hints for unreadable or unwritable files and invalid arguments.
impl CliError {
    fn file_hints(&self) -> Vec<String> {
        match self {
            Self::Filter(_) => vec!["an example of a valid filter: --jq-filter '.text // empty'".into()],
            Self::Trust(TrustError::Store(_)) => vec![
                "check disk space and the permissions of the state directory (RALPH_STATE_DIR, or ~/.local/state/ralph)".into(),
                "to allow once: --trust or RALPH_TRUST=1".into(),
            ],
            Self::Trust(TrustError::InsideRun { .. }) => vec!["run it in a terminal of your own".into()],
            Self::Trust(TrustError::WorldWritable { path }) => vec![format!("chmod o-w {}", path.display())],
            Self::Trust(TrustError::Unreadable { .. })
            | Self::Unreadable { .. }
            | Self::InputUnreadable { .. } => {
                vec!["check the path and its permissions".into()]
            }
            Self::AgentCommand(_) => {
                vec!["quote it as in a shell: --agent-cmd 'my-agent --system \"be brief\"'".into()]
            }
            Self::Unwritable { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                vec!["remove it first, or choose another name".into()]
            }
            Self::Unwritable { .. } => {
                vec!["check the path, disk space and permissions".into()]
            }
            Self::RestoreNeedsSnapshots => {
                vec!["remove `snapshots: off`, or set `on_rejected: keep`".into()]
            }
            Self::Sandbox(_) => vec![
                "to see what this machine can enforce and how to enable the rest: ralph doctor".into(),
                "to run without a sandbox: --sandbox off".into(),
            ],
            Self::SnapshotsRequired { .. } => {
                vec!["remove `snapshots: off`, or `in: clean` and `protect` of the gate".into()]
            }
            Self::GatesRequired => {
                vec!["add gates to ralph.yml, or pass --gate COMMAND (see docs/gates.md)".into()]
            }
            Self::NoTerminal { .. } => {
                vec!["for plain text, pass --no-tui; to replay a recorded run: ralph replay".into()]
            }
            Self::Lifeline { .. } => vec!["pass the read end of a pipe: ralph run --while-open 3 3<pipe".into()],
            Self::TerminalRequired => vec!["remove --interactive when no one can answer".into()],
            Self::ToolsNotReported { .. } => {
                vec!["choose an agent with structured output, or remove the key: ralph agents".into()]
            }
            Self::LogLevels(_) => vec!["for example: RALPH_LOG=debug, or RALPH_LOG=warn,engine=trace".into()],
            Self::Demo(_) => {
                vec!["check disk space and permissions of the temporary directory (TMPDIR)".into()]
            }
            Self::Output(_) => vec!["check disk space and that the reader is still running".into()],
            _ => Vec::new(),
        }
    }
}

/// Hints for past runs.
impl CliError {
    fn run_hints(&self) -> Vec<String> {
        match self {
            Self::CannotConfirm { .. } => vec![
                "pass --yes to delete them".into(),
                "to list them first: ralph clean --dry-run".into(),
            ],
            Self::AlreadyExists { .. } => vec!["choose another name, or pass --force to overwrite it".into()],
            Self::NoIteration { id, iterations, .. } => vec![match iterations {
                0 => format!("it has no iterations yet; for details: ralph show {id}"),
                last => format!("the last iteration is {last}; to list all: ralph show {id}"),
            }],
            Self::WorkingDirectory { .. } => {
                vec!["change to an existing directory that you may enter".into()]
            }
            Self::EmptyCommand => vec!["pass a text (ralph tell \"use the new API\") or a flag".into()],
            Self::RunCompleted { .. } => {
                vec!["start a new run: ralph run -p TEXT".into()]
            }
            Self::RunInactive { .. } => vec!["to resume the run: ralph run --continue".into()],
            Self::JournalDamaged { id, .. } => vec![
                format!("for details: ralph verify {id}"),
                format!("to resume with what is left: ralph run --continue {id} --accept-damage"),
            ],
            Self::SettingsFileChanged { id } => vec![
                "its settings and flags decide what runs, so they are not used".into(),
                format!("to read the run: ralph show {id}; to start over: ralph run"),
            ],
            Self::HeaderMissing { .. } | Self::NewerRun { .. } => vec!["start a new run: ralph run".into()],
            Self::SpeedWithoutTimes { .. } => vec!["remove --speed; raw output has no timing".into()],
            Self::TranscriptOfRun { .. } => {
                vec!["remove --transcript, or pass a file of raw output: …/iterations/0001/stdout.raw".into()]
            }
            _ => Vec::new(),
        }
    }
}

/// Maximum number of matching ids to list, newest first.
const MAX_CANDIDATES: usize = 10;

const CHECK_DISK: &str = "check disk space and permissions; everything written so far is intact";

fn store_hints(error: &StoreError) -> Vec<String> {
    match error {
        StoreError::Locked { .. } => {
            vec!["wait for it, stop it, or use another directory (a git worktree, for example)".into()]
        }
        StoreError::StateUnusable { .. } | StoreError::NoState | StoreError::RelativeState { .. } => {
            vec![
                "to store runs elsewhere, set RALPH_STATE_DIR to the absolute path of a writable directory"
                    .into(),
            ]
        }
        StoreError::RunExists { id } => vec![format!("to resume it: ralph run --continue {id}")],
        StoreError::OtherProject { id, root } => {
            vec![format!(
                "resume it there: cd {} && ralph run --continue {id}",
                root.display()
            )]
        }
        StoreError::LegacyRun { id } => vec![
            "start a new run: ralph run".into(),
            format!("to read it: ralph show {id}"),
        ],
        StoreError::Refused { .. } => vec!["replace it with a regular file or directory of your own".into()],
        StoreError::NoRuns { .. } => vec![
            "to list the runs of all projects: ralph runs --all".into(),
            "to use a file of raw output, pass its path".into(),
        ],
        StoreError::UnknownRun { name, newest } => vec![
            format!("the newest run is {newest} (alias: latest)"),
            format!("no file named `{name}` exists either"),
        ],
        StoreError::NoBenches { .. } => vec!["start one: ralph bench run tasks.yml".into()],
        StoreError::UnknownBench { newest, .. } => {
            vec![format!("the newest bench is {newest} (alias: latest)")]
        }
        StoreError::CopyIntoItself { .. } => vec!["store the bench in another directory: --dir DIR".into()],
        StoreError::NotABench { .. } => vec!["to list the benches: ralph bench list".into()],
        StoreError::AmbiguousRun { candidates, .. } => candidate_hints("runs", candidates),
        StoreError::AmbiguousBench { candidates, .. } => candidate_hints("benches", candidates),
        StoreError::NotARun { .. } => vec!["to list the runs of this project: ralph runs".into()],
        StoreError::Symlink { .. } => {
            vec!["replace the link with a regular file or directory".into()]
        }
        StoreError::Io { .. } => vec![CHECK_DISK.into()],
    }
}

/// Lists the ids that an abbreviated id matches.
fn candidate_hints(what: &str, candidates: &[String]) -> Vec<String> {
    let mut hints = vec![format!("ambiguous; matching {what}:")];
    let newest = candidates.iter().rev().take(MAX_CANDIDATES);
    hints.extend(newest.map(|id| format!("  {id}")));
    if let more @ 1.. = candidates.len().saturating_sub(MAX_CANDIDATES) {
        hints.push(format!("  and {more} more"));
    }
    hints
}

fn known_formats() -> String {
    let names: Vec<&str> = transcript::names().collect();
    format!("known formats: auto, {}", names.join(", "))
}

/// Diagnostics with their own help text get no hint.
fn config_hints(error: &ConfigError) -> Vec<String> {
    match error {
        ConfigError::Missing { .. } => {
            vec!["check the path, or remove the option".into()]
        }
        ConfigError::Unreadable { .. } => vec!["check that it is a readable file".into()],
        ConfigError::TooLarge { .. } => {
            vec!["check that it is the right file; --config selects another".into()]
        }
        ConfigError::Diagnostic(diagnostic) if diagnostic.help.is_some() => Vec::new(),
        ConfigError::Diagnostics(_) | ConfigError::Refused { .. } => Vec::new(),
        ConfigError::Diagnostic(_) => {
            vec!["fix the line; for all keys and values: ralph schema config".into()]
        }
        ConfigError::Variable { variable, .. } => vec![format!("fix it, or: unset {variable}")],
        ConfigError::Flag { problem } if problem.help.is_some() => Vec::new(),
        ConfigError::Flag { .. } => vec!["for all options and values: ralph run --help".into()],
    }
}

fn hat_hints(error: &HatError) -> Vec<String> {
    match error {
        HatError::DuplicateTrigger { first, second, .. } => vec![
            format!("keep it in either hats.{first}.triggers or hats.{second}.triggers"),
            "to list all problems: ralph hats validate".into(),
        ],
        HatError::NoDefaultHat { start_topic } => vec![
            format!("add `{start_topic}` to the triggers of the first hat"),
            "or name the first topic: event_loop.starting_event".into(),
        ],
    }
}

fn agent_hints(error: &AgentError) -> Vec<String> {
    match error {
        AgentError::NoneFound { checked } => no_agent_hints(checked),
        AgentError::NotInstalled { agent, .. } => vec![
            format!("install it: {}", agent.install),
            "to list other agents: ralph agents".into(),
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
            let suggestion = nearest.map(|nearest| format!("did you mean `{nearest}`?"));
            suggestion
                .into_iter()
                .chain([format!("known agents: auto, {known}, custom, acp")])
                .collect()
        }
        AgentError::CustomWithoutCommand => {
            vec!["set cli.command in ralph.yml, or pass it: --agent-cmd 'my-agent --headless'".into()]
        }
        AgentError::AcpWithoutCommand => {
            vec!["set cli.command in ralph.yml, or pass it: --agent 'acp:my-agent --acp'".into()]
        }
        AgentError::CustomNotFound { command } => vec![missing_program_hint(command).into()],
        AgentError::PromptTooLong { .. } => {
            vec!["shorten it: move details to files, and refer to them in the prompt".into()]
        }
        AgentError::WrapperNotFound { .. } => {
            vec!["check the spelling and that it is executable, or use its full path".into()]
        }
        AgentError::WrapperArguments { .. } | AgentError::AcpArguments { .. } => {
            vec!["close the quote; \"\" means no arguments".into()]
        }
        AgentError::NoFilter => {
            vec!["set cli.jq_filter in ralph.yml, or pass it: --jq-filter '.text // empty'".into()]
        }
        AgentError::Driver(error) => driver_hints(error),
        AgentError::NotInteractive { .. } => {
            vec!["pass --mode autonomous, or choose an agent with its own TUI (docs/agents.md)".into()]
        }
        AgentError::NulInPrompt => {
            vec!["remove the NUL byte: command-line arguments cannot contain it".into()]
        }
    }
}

/// Lists the agents that were checked, and the alternatives.
fn no_agent_hints(checked: &[AgentCheck]) -> Vec<String> {
    let width = checked
        .iter()
        .map(|checked| checked.agent.name.len())
        .max()
        .unwrap_or(0);
    let mut hints: Vec<_> = checked
        .iter()
        .map(|checked| checked_line(checked, width))
        .collect();
    hints.push("install one of them, or use your own: ralph run --agent-cmd 'my-agent --headless'".into());
    hints.push("to try ralph without an agent: ralph demo".into());
    hints
}

/// Returns the hint for a program that was not found.
fn missing_program_hint(command: &str) -> &'static str {
    match command.starts_with('~') {
        true => "`~` is not expanded here; use the full path",
        false => "check the spelling, or use its full path",
    }
}

fn checked_line(checked: &AgentCheck, width: usize) -> String {
    let why = match &checked.version {
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
        DriverError::NotFound { searched, .. } => {
            let searched = searched
                .iter()
                .map(|path| format!("  searched {}", path.display()));
            let known: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).collect();
            searched
                .chain([
                    format!("built-in drivers: {}", known.join(", ")),
                    "to create one: ralph drivers new NAME".into(),
                ])
                .collect()
        }
        DriverError::OutsideDirectory { .. } => {
            vec!["copy the file into the directory instead of linking to it".into()]
        }
        DriverError::WorldWritable { path } => vec![format!("chmod o-w {}", path.display())],
        DriverError::Missing { .. } | DriverError::NoCommand { .. } | DriverError::EmptyOutput { .. } => {
            vec!["to create a complete skeleton: ralph drivers new NAME".into()]
        }
        DriverError::NoProgram { .. } => vec!["install it, or use another agent: ralph agents".into()],
        DriverError::Exited { .. } | DriverError::Hook { .. } => {
            vec![
                "hooks report success or failure with `return`; for details: ralph drivers check NAME".into(),
            ]
        }
        DriverError::TimedOut { .. } | DriverError::OutputTooLarge { .. } => {
            vec!["fix the hook; to test it: ralph drivers check NAME".into()]
        }
        DriverError::BadName { .. } => {
            vec!["use the file name without .sh; to list all: ralph drivers list".into()]
        }
        DriverError::NotAFile { .. } | DriverError::Unreadable { .. } => {
            vec!["check the file and its permissions; to list all: ralph drivers list".into()]
        }
        DriverError::Unpack { .. } | DriverError::Process(_) => {
            vec!["check disk space and permissions of the temporary directory (TMPDIR)".into()]
        }
    }
}

#[cfg(feature = "serve")]
fn serve_hints(error: &ServeError) -> Vec<String> {
    match error {
        ServeError::Listen { .. } => vec!["choose another port: ralph serve --port 0".into()],
        ServeError::NotASocket { .. } | ServeError::SocketInUse { .. } => {
            vec!["choose another path for --socket".into()]
        }
        ServeError::Store(error) => store_hints(error),
        ServeError::Tls(_) => vec!["give files in PEM format: --tls-cert FILE --tls-key FILE".to_owned()],
        ServeError::Random(_) | ServeError::Runtime(_) => Vec::new(),
    }
}
