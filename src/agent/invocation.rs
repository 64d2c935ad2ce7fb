//! How the selected agent is called with one prompt: arguments, stdin, terminal, environment.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{PromptMode, Settings};

use super::driven::adapter_name;
use super::driver::Driver;
use super::interactive::FirstPrompt;
use super::{
    Agent, AgentError, CUSTOM, Delivery, GENERAL_LIMITS, LongPrompt, PromptLimit, PromptQuirk, Resume,
    ShortPrompt, Terminal,
};

/// Prompts up to this many characters go as an argument, as the agents' own documentation shows.
const SMALL_PROMPT: usize = 7000;
/// What an agent used, beside its prompt, where it is asked to write that down.
const USAGE_FILE: &str = "usage.json";
/// The kernel refuses a single argument of this many bytes or more.
const LONGEST_ARGUMENT: usize = 131_072;

/// The agent that works in this run, and everything about it that does not depend on the prompt.
#[derive(Debug, Clone)]
pub struct ResolvedAgent {
    pub name: String,
    pub display_name: String,
    pub program: PathBuf,
    pub version: Option<String>,
    /// The transcript format in which it speaks.
    pub format: String,
    pub terminal: Terminal,
    pub auth_hint: String,
    /// How its message of a usage limit begins.
    pub limits: Vec<&'static str>,
    /// Set in its environment.
    pub environment: Vec<(String, String)>,
    /// The jq filter that says what of its output is to be read.
    pub filter: Option<FilterCode>,
    /// What the user should be told about it, though it stops nothing.
    pub warnings: Vec<String>,
    /// How its sessions are taken up again, where that is known.
    pub resume: Option<Resume>,
    pub(super) args: Vec<String>,
    pub(super) usage_flag: Option<&'static str>,
    pub(super) delivery: PromptDelivery,
    pub(super) misreads: PromptQuirk,
    pub(super) prompt_limit: Option<PromptLimit>,
}

/// A jq filter, not yet compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterCode {
    /// The user's own: a mistake in it is an error.
    User(String),
    /// A driver's: a mistake in it is told, and the raw lines are shown.
    Driver { code: String, place: String },
}

/// How prompts reach it.
#[derive(Debug, Clone)]
pub(super) enum PromptDelivery {
    Builtin(Delivery),
    /// The user's own command, told by the configuration.
    CustomArgument {
        flag: Option<String>,
    },
    CustomStdin,
    /// In claude's place: `-p PROMPT`, and no other way.
    Provider,
    /// A script makes the whole command line.
    Driver(Arc<Driver>),
    /// On the agent's own screen.
    Interactive(FirstPrompt),
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub stdin: StdinSource,
    pub terminal: Terminal,
    /// Where the agent will have written what it used, when it has ended.
    pub usage_file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StdinSource {
    Null,
    PromptFile(PathBuf),
    /// What the user types.
    Screen,
}

impl ResolvedAgent {
    pub fn builtin(
        agent: &'static Agent,
        program: PathBuf,
        version: Option<String>,
        settings: &Settings,
    ) -> Self {
        let wants_plain = settings.cli.transcript.as_deref() == Some("plain");
        let structured = agent.structured.as_ref().filter(|_| !wants_plain);
        let mut args: Vec<String> = agent.headless.iter().map(ToString::to_string).collect();
        args.extend(
            structured
                .iter()
                .flat_map(|structured| structured.flags)
                .map(ToString::to_string),
        );
        args.extend(wishes(agent, settings));
        let own_format = structured.map_or("plain", |structured| structured.format);
        Self {
            name: agent.name.to_owned(),
            display_name: agent.display_name.to_owned(),
            program,
            version,
            format: settings
                .cli
                .transcript
                .clone()
                .unwrap_or_else(|| own_format.to_owned()),
            terminal: terminal(agent.terminal, settings),
            auth_hint: agent.auth_hint.to_owned(),
            limits: agent.limits.iter().chain(GENERAL_LIMITS).copied().collect(),
            environment: environment(agent, User::current()),
            filter: None,
            warnings: Vec::new(),
            args,
            usage_flag: structured.and(agent.usage_flag),
            delivery: PromptDelivery::Builtin(agent.prompt),
            resume: agent.resume,
            misreads: agent.misreads,
            prompt_limit: agent.prompt_limit,
        }
    }

    pub(super) fn custom(program: PathBuf, settings: &Settings) -> Self {
        let cli = &settings.cli;
        let adapter = settings.adapters.get(CUSTOM);
        let own = adapter.iter().flat_map(|adapter| adapter.args.iter());
        let name = program
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        Self {
            name: CUSTOM.to_owned(),
            display_name: name.unwrap_or_else(|| CUSTOM.to_owned()),
            version: None,
            format: cli.transcript.clone().unwrap_or_else(|| "plain".to_owned()),
            terminal: terminal(Terminal::Pipe, settings),
            auth_hint: String::new(),
            limits: GENERAL_LIMITS.to_vec(),
            environment: Vec::new(),
            filter: None,
            warnings: Vec::new(),
            args: cli
                .args
                .iter()
                .chain(own)
                .chain(&cli.extra_args)
                .cloned()
                .collect(),
            usage_flag: None,
            delivery: match cli.prompt_mode {
                PromptMode::Arg => PromptDelivery::CustomArgument {
                    flag: cli.prompt_flag.clone(),
                },
                PromptMode::Stdin => PromptDelivery::CustomStdin,
            },
            resume: None,
            misreads: PromptQuirk::Nothing,
            prompt_limit: None,
            program,
        }
    }

    /// The prompt as this agent must be given it for its model to read what the user wrote.
    pub fn escape_prompt<'a>(&self, prompt: &'a str) -> Cow<'a, str> {
        match self.misreads {
            PromptQuirk::FirstSlash if prompt.starts_with('/') => format!("\n{prompt}").into(),
            PromptQuirk::AtSign if prompt.contains('@') => prompt.replace('@', "\\@").into(),
            PromptQuirk::Nothing | PromptQuirk::FirstSlash | PromptQuirk::AtSign => prompt.into(),
        }
    }

    /// The call for one prompt, as `escape_prompt` gave it, which is also (or will be) in `prompt_file`; a driver's
    /// file must be there.
    pub fn invocation(&self, prompt: &str, prompt_file: &Path) -> Result<Invocation, AgentError> {
        self.resuming(prompt, prompt_file, None)
    }

    /// The same, in a session that an earlier iteration left.
    pub fn resuming(
        &self,
        prompt: &str,
        prompt_file: &Path,
        session: Option<&str>,
    ) -> Result<Invocation, AgentError> {
        self.check_length(prompt)?;
        let file = || StdinSource::PromptFile(prompt_file.to_owned());
        let (tail, stdin) = match &self.delivery {
            PromptDelivery::Builtin(delivery) => match (delivery.small, delivery.large) {
                (ShortPrompt::Flag(flag), _) if is_small_and_safe(prompt) => {
                    (vec![flag.to_owned(), prompt.to_owned()], StdinSource::Null)
                }
                // A single word in this place may be the name of a subcommand.
                (ShortPrompt::Positional, _) if is_small_and_safe(prompt) && prompt.contains(' ') => {
                    (vec![prompt.to_owned()], StdinSource::Null)
                }
                (_, LongPrompt::Stdin(args)) => (args.iter().map(ToString::to_string).collect(), file()),
                (small, LongPrompt::ReadFile) => {
                    let flag = match small {
                        ShortPrompt::Flag(flag) => Some(flag.to_owned()),
                        ShortPrompt::Positional | ShortPrompt::AsLarge => None,
                    };
                    (
                        flag.into_iter().chain([read_the_file(prompt_file)]).collect(),
                        StdinSource::Null,
                    )
                }
            },
            PromptDelivery::CustomArgument { flag } => {
                let argument = self.custom_argument(prompt)?;
                let stdin = match self.terminal {
                    Terminal::Pipe | Terminal::Pty => StdinSource::Null,
                    Terminal::Screen => StdinSource::Screen,
                };
                (flag.iter().cloned().chain([argument]).collect(), stdin)
            }
            PromptDelivery::CustomStdin => (Vec::new(), file()),
            PromptDelivery::Interactive(way) => self.first_prompt(*way, prompt, prompt_file),
            PromptDelivery::Provider => (vec!["-p".to_owned(), self.fitting(prompt)?], StdinSource::Null),
            PromptDelivery::Driver(driver) => return self.driven(driver, prompt_file, session),
        };
        let session = self.resume.zip(session).map(|(resume, id)| resume.args(id));
        let usage_file = self.usage_flag.map(|_| prompt_file.with_file_name(USAGE_FILE));
        let usage = self
            .usage_flag
            .map(OsString::from)
            .into_iter()
            .chain(usage_file.clone().map(OsString::from));
        let args = self.args.iter().cloned().chain(session.into_iter().flatten());
        let args = args
            .map(OsString::from)
            .chain(usage)
            .chain(tail.into_iter().map(OsString::from));
        Ok(Invocation {
            program: self.program.clone(),
            args: args.collect(),
            stdin,
            terminal: self.terminal,
            usage_file,
        })
    }

    /// The same agent, given its prompts on stdin; only of the user's own, for which that is a guess like any other.
    pub fn on_stdin(&self) -> Option<Self> {
        match &self.delivery {
            PromptDelivery::CustomArgument { .. } => Some(Self {
                delivery: PromptDelivery::CustomStdin,
                ..self.clone()
            }),
            PromptDelivery::Builtin(_)
            | PromptDelivery::CustomStdin
            | PromptDelivery::Provider
            | PromptDelivery::Interactive(_)
            | PromptDelivery::Driver(_) => None,
        }
    }

    /// The driver, where there is one.
    pub fn driver(&self) -> Option<&Driver> {
        match &self.delivery {
            PromptDelivery::Driver(driver) => Some(driver),
            PromptDelivery::Builtin(_)
            | PromptDelivery::CustomArgument { .. }
            | PromptDelivery::CustomStdin
            | PromptDelivery::Provider
            | PromptDelivery::Interactive(_) => None,
        }
    }

    /// Under which name its settings are in `adapters`.
    pub fn adapter(&self) -> &str {
        match self.driver() {
            Some(driver) => adapter_name(driver),
            None => &self.name,
        }
    }

    fn driven(
        &self,
        driver: &Driver,
        prompt_file: &Path,
        session: Option<&str>,
    ) -> Result<Invocation, AgentError> {
        let mut argv = driver
            .command(prompt_file, session.unwrap_or_default())?
            .into_iter();
        let program = argv.next().unwrap_or_default().into();
        let args: Vec<OsString> = argv.chain(self.args.iter().map(OsString::from)).collect();
        if let Some(long) = args.iter().find(|argument| argument.len() >= LONGEST_ARGUMENT) {
            return Err(self.too_long(long.len()));
        }
        Ok(Invocation {
            program,
            args,
            stdin: StdinSource::Null,
            terminal: self.terminal,
            usage_file: None,
        })
    }

    fn check_length(&self, prompt: &str) -> Result<(), AgentError> {
        let (size, limit, unit) = match self.prompt_limit {
            None => return Ok(()),
            Some(PromptLimit::Bytes(limit)) => (prompt.len(), limit, "bytes"),
            Some(PromptLimit::Characters(limit)) => (prompt.chars().count(), limit, "characters"),
        };
        if size <= limit {
            return Ok(());
        }
        let agent = self.display_name.clone();
        let (size, limit) = (format!("{size} {unit}"), format!("{limit} {unit}"));
        Err(AgentError::PromptTooLong { agent, size, limit })
    }

    /// A prompt that begins with a dash would be read as an option; a line break before it is not.
    fn custom_argument(&self, prompt: &str) -> Result<String, AgentError> {
        if prompt.starts_with('-') {
            self.fitting(&format!("\n{prompt}"))
        } else {
            self.fitting(prompt)
        }
    }

    /// The prompt, if the kernel can carry it as one argument.
    fn fitting(&self, prompt: &str) -> Result<String, AgentError> {
        if prompt.contains('\0') {
            return Err(AgentError::NulInPrompt);
        }
        if prompt.len() < LONGEST_ARGUMENT {
            return Ok(prompt.to_owned());
        }
        Err(self.too_long(prompt.len()))
    }

    fn too_long(&self, bytes: usize) -> AgentError {
        AgentError::PromptTooLong {
            agent: format!("{}, which takes it as one argument", self.display_name),
            size: format!("{bytes} bytes"),
            limit: format!("{} bytes", LONGEST_ARGUMENT - 1),
        }
    }
}

/// What the user wants of an agent, as its arguments: a model, and words of one's own.
pub(super) fn wishes(agent: &Agent, settings: &Settings) -> Vec<String> {
    let adapter = settings.adapters.get(agent.name);
    let model = settings
        .cli
        .model
        .as_ref()
        .or(adapter.and_then(|adapter| adapter.model.as_ref()));
    let model = agent.model_flag.zip(model);
    let mut args: Vec<String> = model
        .into_iter()
        .flat_map(|(flag, model)| [flag.to_owned(), model.clone()])
        .collect();
    args.extend(adapter.iter().flat_map(|adapter| adapter.args.iter().cloned()));
    args.extend(settings.cli.extra_args.iter().cloned());
    args
}

/// For whom the agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    Root,
    Ordinary,
}

impl User {
    fn current() -> Self {
        if rustix::process::geteuid().is_root() {
            Self::Root
        } else {
            Self::Ordinary
        }
    }
}

fn environment(agent: &Agent, user: User) -> Vec<(String, String)> {
    let of_root = match user {
        User::Root => agent.environment_of_root,
        User::Ordinary => &[],
    };
    let set = agent.environment.iter().chain(of_root);
    set.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// An agent's own need for a terminal stands, whatever `pty_mode` says.
fn terminal(own: Terminal, settings: &Settings) -> Terminal {
    if settings.cli.pty_mode { Terminal::Pty } else { own }
}

/// Short, and without a first character that a CLI may take for something else.
pub(super) fn is_small_and_safe(prompt: &str) -> bool {
    let small = prompt.len() <= 4 * SMALL_PROMPT && prompt.chars().count() <= SMALL_PROMPT;
    small
        && !prompt.trim_start().starts_with(['-', '/', '@'])
        && !prompt.contains('\0')
        && !prompt.trim().is_empty()
}

pub(super) fn read_the_file(path: &Path) -> String {
    format!(
        "Read the file {} and do what it says; it is your whole task.",
        path.display()
    )
}
