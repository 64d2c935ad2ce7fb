//! Everything that can go wrong, as the user meets it: what happened, a remedy, an exit code.

use std::io;
use std::path::PathBuf;

use crate::agent::{AGENTS, AgentError, Checked};
use crate::config::{ConfigError, SplitError};
use crate::run::RunError;
use crate::store::StoreError;
use crate::transcript;

use super::exit::Exit;

#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error("the working directory {} is not accessible: {source}", path.display())]
    WorkingDirectory { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("--agent-cmd {0}")]
    AgentCommand(#[from] SplitError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error("there is no prompt")]
    NoPrompt,
    #[error("{what} is empty")]
    EmptyPrompt { what: String },
    #[error("cannot read the prompt file {}: {source}", path.display())]
    PromptFile { path: PathBuf, source: io::Error },
    #[error("unknown transcript format `{name}`")]
    UnknownTranscript { name: String },
    #[error("`{what}` is not supported by this version of ralph")]
    NotYet { what: &'static str },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Run(RunError),
    #[error("the demo cannot be set up: {0}")]
    Demo(String),
    #[error("{what} needs a terminal, in the foreground, for input and output")]
    NoTerminal { what: &'static str },
    #[error("there is no run {} here", wanted.as_ref().map_or(String::new(), |wanted| format!("that `{wanted}` names")))]
    NoRun { wanted: Option<String> },
    #[error("cannot read the journal {}: {source}", path.display())]
    Journal { path: PathBuf, source: io::Error },
    #[error("cannot write to the terminal: {0}")]
    Output(#[source] io::Error),
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Store(error) => Self::Store(error),
            error => Self::Run(error),
        }
    }
}

impl CliError {
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Agent(error) => match error {
                AgentError::NoneFound { .. }
                | AgentError::NotInstalled { .. }
                | AgentError::CustomNotFound { .. } => Exit::NoAgent,
                AgentError::Disabled { .. }
                | AgentError::Unknown { .. }
                | AgentError::CustomWithoutCommand
                | AgentError::NotYet { .. }
                | AgentError::PromptTooLong { .. }
                | AgentError::NulInPrompt => Exit::Usage,
            },
            Self::Config(_)
            | Self::AgentCommand(_)
            | Self::NoPrompt
            | Self::EmptyPrompt { .. }
            | Self::PromptFile { .. }
            | Self::UnknownTranscript { .. }
            | Self::NoTerminal { .. }
            | Self::NoRun { .. }
            | Self::NotYet { .. } => Exit::Usage,
            Self::Store(StoreError::Locked { .. }) => Exit::Busy,
            Self::WorkingDirectory { .. }
            | Self::Store(StoreError::Io { .. })
            | Self::Run(_)
            | Self::Demo(_)
            | Self::Journal { .. }
            | Self::Output(_) => Exit::Failed,
        }
    }

    /// What the user can do about it, a line each.
    pub(super) fn hints(&self) -> Vec<String> {
        match self {
            Self::Agent(error) => agent_hints(error),
            Self::WorkingDirectory { .. } => {
                vec!["change to a directory that exists, and that you may enter".into()]
            }
            Self::NoPrompt => vec![
                "give it on the command line: ralph run -p \"make the tests pass\"".into(),
                "or in a file: write PROMPT.md here, or name one with -P FILE".into(),
                "or in ralph.yml: event_loop.prompt, event_loop.prompt_file".into(),
            ],
            Self::EmptyPrompt { .. } => vec!["say what the agent is to do".into()],
            Self::PromptFile { .. } => vec!["check the path, or give the prompt with -p TEXT".into()],
            Self::Store(StoreError::Locked { .. }) => {
                vec![
                    "wait for it, stop it, or work in another directory (a git worktree, for example)".into(),
                ]
            }
            Self::Store(StoreError::Io { .. }) | Self::Run(_) => {
                vec!["check free space and permissions; what was written before is still there".into()]
            }
            Self::UnknownTranscript { .. } => {
                vec![format!(
                    "known formats: auto, {}",
                    transcript::names().collect::<Vec<_>>().join(", ")
                )]
            }
            Self::NoTerminal { .. } => {
                vec!["leave it out (or --no-tui) to have the run told line by line".into()]
            }
            Self::NoRun { .. } => {
                vec!["runs are in .agent/runs of the directory in which ralph was started".into()]
            }
            Self::Config(_)
            | Self::Journal { .. }
            | Self::AgentCommand(_)
            | Self::NotYet { .. }
            | Self::Demo(_)
            | Self::Output(_) => Vec::new(),
        }
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
        AgentError::CustomNotFound { .. } => vec!["check its spelling, or give its full path".into()],
        AgentError::PromptTooLong { .. } => {
            vec!["shorten it: put the details in files, and let the prompt name them".into()]
        }
        AgentError::NotYet { .. } | AgentError::NulInPrompt => Vec::new(),
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
