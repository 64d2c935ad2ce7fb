//! Types of the built-in agent table: one `Agent` row and the enums of its columns.

use super::access::AgentAccess;
use super::interactive::Interactive;
use crate::event::UsageMeaning;

/// One row of the table: how to call a coding agent's command line.
#[derive(Debug)]
pub struct Agent {
    pub name: &'static str,
    pub display_name: &'static str,
    /// Looked up in PATH; the first one found is used.
    pub programs: &'static [&'static str],
    /// Arguments for an unattended run: subcommand and auto-approval.
    pub headless: &'static [&'static str],
    /// Arguments that select structured output, and the transcript format of that output.
    pub structured: Option<StructuredOutput>,
    /// Flag that makes the agent write its usage to a file when it exits, if its output does not contain the usage.
    pub usage_flag: Option<&'static str>,
    pub prompt: Delivery,
    /// How to start the agent's own TUI with a first prompt, if it has one.
    pub interactive: Option<Interactive>,
    /// How to resume a session. These arguments come right before the prompt.
    pub resume: Option<Resume>,
    /// How to start the agent as a server of the Agent Client Protocol, if it can be one.
    pub acp: Option<AcpServer>,
    pub prompt_quirk: PromptQuirk,
    pub terminal: Terminal,
    pub model_flag: Option<&'static str>,
    /// Longest prompt that the program accepts.
    pub prompt_limit: Option<PromptLimit>,
    /// Variables set in the agent's environment.
    pub environment: &'static [(&'static str, &'static str)],
    /// Additional variables for root. Some agents refuse to run unattended as root without them.
    pub root_environment: &'static [(&'static str, &'static str)],
    /// What a sandbox grants the agent.
    pub access: AgentAccess,
    pub auth_hint: &'static str,
    /// Beginnings of the usage-limit messages that the agent prints as plain text. After a phrase that ends in a
    /// space, any text may follow; any other phrase must be a complete statement.
    pub limit_phrases: &'static [&'static str],
    pub install: &'static str,
    /// How this row was verified.
    pub tested_with: Evidence,
    /// The oldest version that this row is known to work with.
    pub min_version: Option<&'static str>,
}

impl Agent {
    /// True if the output of `--version` (`tool 1.2.3 (build)`) names a version older than `min_version`.
    pub fn is_outdated(&self, output: &str) -> bool {
        let Some(min_version) = self
            .min_version
            .and_then(|version| semver::Version::parse(version).ok())
        else {
            return false;
        };
        let mut words = output.split(|c: char| c.is_whitespace() || c == ',');
        let found = words.find_map(|word| semver::Version::parse(word.trim_start_matches('v')).ok());
        found.is_some_and(|found| found < min_version)
    }
}

/// Arguments that select structured output, and its transcript format.
#[derive(Debug)]
pub struct StructuredOutput {
    pub flags: &'static [&'static str],
    pub format: &'static str,
}

/// How prompts are passed to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    pub short: ShortPrompt,
    pub long: LongPrompt,
}

/// How a short prompt is passed if it cannot be mistaken for an option or a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShortPrompt {
    /// `-p PROMPT`
    Flag(&'static str),
    Positional,
    /// Like a long prompt, because the agent changes prompts passed as an argument.
    AsLong,
}

/// How any other prompt is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongPrompt {
    /// On stdin, from the prompt file, with these arguments.
    Stdin(&'static [&'static str]),
    /// As an argument that refers the agent to the prompt file.
    ReadFile,
}

/// How an agent is started as a server of the Agent Client Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcpServer {
    /// The agent's own program, or an adapter.
    pub program: &'static str,
    pub args: &'static [&'static str],
    pub usage: UsageMeaning,
}

/// The arguments that resume a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// `--resume ID`; also a subcommand: `resume ID`.
    Before(&'static str),
    /// `--resume=ID`
    Joined(&'static str),
    /// By a message instead of an argument.
    InProtocol,
}

impl Resume {
    pub fn args(self, session: &str) -> Vec<String> {
        match self {
            Self::Before(word) => vec![word.to_owned(), session.to_owned()],
            Self::Joined(flag) => vec![format!("{flag}{session}")],
            Self::InProtocol => Vec::new(),
        }
    }
}

/// Prompt text that a program interprets as its own syntax, however the prompt is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptQuirk {
    Nothing,
    /// A leading `/` is a command that never reaches the model. After a line break it is plain text.
    FirstSlash,
    /// `@name` includes a file; `\@name` is plain text.
    AtSign,
    FirstSlashAndAtSign,
}

/// What the agent's stdout is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    Pipe,
    /// A raw pseudo-terminal.
    Pty,
    /// A pseudo-terminal that the user sees and types into; also used for stderr.
    Interactive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptLimit {
    Bytes(usize),
    Characters(usize),
}

/// How a table row was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The suite runs ralph with this version of the program.
    Version(&'static str),
    /// The output of this version was captured, and its parser is tested with it; ralph was not run with the program.
    Captured(&'static str),
    /// Taken from the agent's documentation only.
    Documentation,
}
