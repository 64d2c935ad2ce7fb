//! What the table of built-in agents can say of one.

use super::interactive::Interactive;

/// A coding agent's command line, as it is today.
#[derive(Debug)]
pub struct Agent {
    pub name: &'static str,
    pub display_name: &'static str,
    /// Looked up in PATH; the first one found is used.
    pub programs: &'static [&'static str],
    /// What makes it work without a person: subcommand, auto-approval.
    pub headless: &'static [&'static str],
    /// What makes it say in structure what it does, and the format in which it then speaks.
    pub structured: Option<Structured>,
    /// With which flag it writes to a file, at its end, what it used; where it does not say so in its output.
    pub usage_flag: Option<&'static str>,
    pub prompt: Delivery,
    /// How its own screen is opened with a first prompt, where it has one.
    pub interactive: Option<Interactive>,
    /// How a session of its own is taken up again; these arguments come last before the prompt.
    pub resume: Option<Resume>,
    pub misreads: PromptQuirk,
    pub terminal: Terminal,
    pub model_flag: Option<&'static str>,
    /// Longest prompt that the program itself takes.
    pub prompt_limit: Option<PromptLimit>,
    /// Set in the agent's environment.
    pub environment: &'static [(&'static str, &'static str)],
    /// Also set when the user is root, for whom some agents refuse to work unattended without it.
    pub environment_of_root: &'static [(&'static str, &'static str)],
    pub auth_hint: &'static str,
    /// How its own message of a usage limit begins, where it says it in words only. A phrase that ends in a blank
    /// may go on in any way; any other is the whole thought.
    pub limits: &'static [&'static str],
    pub install: &'static str,
    /// The version that this row was checked against.
    pub tested_with: Evidence,
    /// The oldest version that the row is known to be true of.
    pub oldest: Option<&'static str>,
}

impl Agent {
    /// Whether what a program says of itself (`tool 1.2.3 (build)`) is older than the row is true of.
    pub fn is_outdated(&self, answer: &str) -> bool {
        let Some(oldest) = self
            .oldest
            .and_then(|version| semver::Version::parse(version).ok())
        else {
            return false;
        };
        let mut words = answer.split(|c: char| c.is_whitespace() || c == ',');
        let found = words.find_map(|word| semver::Version::parse(word.trim_start_matches('v')).ok());
        found.is_some_and(|found| found < oldest)
    }
}

#[derive(Debug)]
pub struct Structured {
    pub flags: &'static [&'static str],
    pub format: &'static str,
}

/// How a prompt reaches an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    pub small: ShortPrompt,
    pub large: LongPrompt,
}

/// The way of a short and harmless prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShortPrompt {
    /// `-p PROMPT`
    Flag(&'static str),
    Positional,
    /// As the large ones: this agent does not take an argument byte for byte.
    AsLarge,
}

/// The way of any other prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongPrompt {
    /// On stdin, from the prompt's file, with these arguments.
    Stdin(&'static [&'static str]),
    /// The argument asks the agent to read the prompt's file.
    ReadFile,
}

/// How an agent is told which of its sessions to go on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// `--resume ID`; also a subcommand: `resume ID`.
    Before(&'static str),
    /// `--resume=ID`
    Joined(&'static str),
}

impl Resume {
    pub fn args(self, session: &str) -> Vec<String> {
        match self {
            Self::Before(word) => vec![word.to_owned(), session.to_owned()],
            Self::Joined(flag) => vec![format!("{flag}{session}")],
        }
    }
}

/// What a program takes for a command of its own in a prompt, however the prompt reaches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptQuirk {
    Nothing,
    /// A first `/` is a command, and no model is asked; after a line break it is text.
    FirstSlash,
    /// `@name` is a file whose content it adds, and whose name it rewrites; `\@name` is text.
    AtSign,
}

/// What the agent's stdout is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    Pipe,
    /// A raw pseudo-terminal.
    Pty,
    /// One that is shown to the user, who types into it; its stderr too.
    Screen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptLimit {
    Bytes(usize),
    Characters(usize),
}

/// How a row came to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// This version was run.
    Version(&'static str),
    /// From its documentation only.
    Documentation,
}
