//! Builds the command line of an agent for one prompt: arguments, stdin, terminal, environment.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{PromptMode, Settings};
use crate::event::UsageMeaning;

use super::driver::Driver;
use super::driver_agent::adapter_name;
use super::interactive::FirstPrompt;
use super::{
    Agent, AgentError, CUSTOM, Delivery, GENERAL_LIMIT_PHRASES, LongPrompt, PromptLimit, PromptQuirk, Resume,
    ShortPrompt, Terminal,
};

/// Longest prompt, in characters, that is passed as an argument.
const SHORT_PROMPT_CHARS: usize = 7000;
/// Name of the file, next to the prompt file, to which an agent with a `usage_flag` writes its usage.
const USAGE_FILE: &str = "usage.json";
/// The kernel rejects a single argument of this many bytes or more (`MAX_ARG_STRLEN`).
const ARGUMENT_BYTE_LIMIT: usize = 131_072;

/// The agent selected for a run, with everything that does not depend on the prompt.
#[derive(Debug, Clone)]
pub struct ResolvedAgent {
    pub name: String,
    pub display_name: String,
    pub program: PathBuf,
    pub version: Option<String>,
    /// The transcript format of its output.
    pub format: String,
    pub terminal: Terminal,
    pub auth_hint: String,
    /// Beginnings of its usage-limit messages.
    pub limit_phrases: Vec<&'static str>,
    /// Variables set in its environment.
    pub environment: Vec<(String, String)>,
    /// The jq filter that extracts text from its output.
    pub filter: Option<FilterCode>,
    /// Non-fatal problems to report to the user.
    pub warnings: Vec<String>,
    /// How to resume a session, if known.
    pub resume: Option<Resume>,
    pub(super) args: Vec<String>,
    pub(super) usage_flag: Option<&'static str>,
    pub(super) delivery: PromptDelivery,
    pub(super) prompt_quirk: PromptQuirk,
    pub(super) prompt_limit: Option<PromptLimit>,
}

/// A jq filter, not yet compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterCode {
    /// From the user's configuration. A filter that does not compile is an error.
    User(String),
    /// From a driver script. A filter that does not compile is reported as a warning, and raw lines are shown.
    Driver { code: String, script: String },
}

/// How the resolved agent receives its prompts.
#[derive(Debug, Clone)]
pub(super) enum PromptDelivery {
    Builtin(Delivery),
    /// A custom command that takes the prompt as an argument.
    CustomArgument {
        flag: Option<String>,
    },
    CustomStdin,
    /// A Claude-compatible wrapper: always `-p PROMPT`.
    Wrapper,
    /// A driver script builds the whole command line.
    Driver(Arc<Driver>),
    /// The agent's own TUI.
    Interactive(FirstPrompt),
    /// In a message of the Agent Client Protocol.
    Acp {
        usage: UsageMeaning,
    },
}

/// The command line of one agent process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub stdin: StdinSource,
    pub terminal: Terminal,
    /// The file to which the agent writes its usage when it exits.
    pub usage_file: Option<PathBuf>,
}

/// What the agent's stdin is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StdinSource {
    Null,
    PromptFile(PathBuf),
    /// The pseudo-terminal that the user types into.
    Terminal,
    /// Messages of the Agent Client Protocol.
    Protocol,
}

impl ResolvedAgent {
    pub fn builtin(
        agent: &'static Agent,
        program: PathBuf,
        version: Option<String>,
        settings: &Settings,
    ) -> Self {
        let is_plain = settings.cli.transcript.as_deref() == Some("plain");
        let structured = agent.structured.as_ref().filter(|_| !is_plain);
        let mut args: Vec<String> = agent.headless.iter().map(ToString::to_string).collect();
        args.extend(
            structured
                .iter()
                .flat_map(|structured| structured.flags)
                .map(ToString::to_string),
        );
        args.extend(user_args(agent, settings));
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
            limit_phrases: agent
                .limit_phrases
                .iter()
                .chain(GENERAL_LIMIT_PHRASES)
                .copied()
                .collect(),
            environment: environment_of(agent),
            filter: None,
            warnings: Vec::new(),
            args,
            usage_flag: structured.and(agent.usage_flag),
            delivery: PromptDelivery::Builtin(agent.prompt),
            resume: agent.resume,
            prompt_quirk: agent.prompt_quirk,
            prompt_limit: agent.prompt_limit,
        }
    }

    pub(super) fn custom(program: PathBuf, settings: &Settings) -> Self {
        let cli = &settings.cli;
        let adapter = settings.adapters.get(CUSTOM);
        let adapter_args = adapter.iter().flat_map(|adapter| adapter.args.iter());
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
            limit_phrases: GENERAL_LIMIT_PHRASES.to_vec(),
            environment: Vec::new(),
            filter: None,
            warnings: Vec::new(),
            args: cli
                .args
                .iter()
                .chain(adapter_args)
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
            prompt_quirk: PromptQuirk::Nothing,
            prompt_limit: None,
            program,
        }
    }

    /// The arguments of every call.
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// Escapes the prompt so that the model receives the user's text unchanged.
    pub fn escape_prompt<'a>(&self, prompt: &'a str) -> Cow<'a, str> {
        match self.prompt_quirk {
            PromptQuirk::FirstSlash if prompt.starts_with('/') => format!("\n{prompt}").into(),
            PromptQuirk::AtSign if prompt.contains('@') => prompt.replace('@', "\\@").into(),
            PromptQuirk::FirstSlashAndAtSign if prompt.starts_with('/') || prompt.contains('@') => {
                let line_break = if prompt.starts_with('/') { "\n" } else { "" };
                format!("{line_break}{}", prompt.replace('@', "\\@")).into()
            }
            PromptQuirk::Nothing
            | PromptQuirk::FirstSlash
            | PromptQuirk::AtSign
            | PromptQuirk::FirstSlashAndAtSign => prompt.into(),
        }
    }

    /// The command line for one prompt. `prompt` is the result of `escape_prompt`; `prompt_file` has the same
    /// content. Drivers read `prompt_file` immediately, so it must exist by then.
    pub fn invocation(&self, prompt: &str, prompt_file: &Path) -> Result<Invocation, AgentError> {
        self.invocation_in_session(prompt, prompt_file, None)
    }

    /// Like `invocation`, but resumes the session of an earlier iteration.
    pub fn invocation_in_session(
        &self,
        prompt: &str,
        prompt_file: &Path,
        session: Option<&str>,
    ) -> Result<Invocation, AgentError> {
        self.check_length(prompt)?;
        let file = || StdinSource::PromptFile(prompt_file.to_owned());
        let (tail, stdin) = match &self.delivery {
            PromptDelivery::Builtin(delivery) => match (delivery.short, delivery.long) {
                (ShortPrompt::Flag(flag), _) if is_safe_argument(prompt) => {
                    (vec![flag.to_owned(), prompt.to_owned()], StdinSource::Null)
                }
                // A single positional word could be parsed as a subcommand.
                (ShortPrompt::Positional, _) if is_safe_argument(prompt) && prompt.contains(' ') => {
                    (vec![prompt.to_owned()], StdinSource::Null)
                }
                (_, LongPrompt::Stdin(args)) => (args.iter().map(ToString::to_string).collect(), file()),
                (short, LongPrompt::ReadFile) => {
                    let flag = match short {
                        ShortPrompt::Flag(flag) => Some(flag.to_owned()),
                        ShortPrompt::Positional | ShortPrompt::AsLong => None,
                    };
                    (
                        flag.into_iter()
                            .chain([read_file_instruction(prompt_file)])
                            .collect(),
                        StdinSource::Null,
                    )
                }
            },
            PromptDelivery::CustomArgument { flag } => {
                let argument = self.custom_argument(prompt)?;
                let stdin = match self.terminal {
                    Terminal::Pipe | Terminal::Pty => StdinSource::Null,
                    Terminal::Interactive => StdinSource::Terminal,
                };
                (flag.iter().cloned().chain([argument]).collect(), stdin)
            }
            PromptDelivery::CustomStdin => (Vec::new(), file()),
            PromptDelivery::Interactive(first) => self.first_prompt(*first, prompt, prompt_file),
            PromptDelivery::Acp { .. } => (Vec::new(), StdinSource::Protocol),
            PromptDelivery::Wrapper => (
                vec!["-p".to_owned(), self.as_argument(prompt)?],
                StdinSource::Null,
            ),
            PromptDelivery::Driver(driver) => return self.driver_invocation(driver, prompt_file, session),
        };
        let session = self.resume.zip(session).map(|(resume, id)| resume.args(id));
        let usage_file = self.usage_file(prompt_file);
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

    /// The file beside the prompt to which the agent writes its usage, if it does.
    pub fn usage_file(&self, prompt_file: &Path) -> Option<PathBuf> {
        self.usage_flag.map(|_| prompt_file.with_file_name(USAGE_FILE))
    }

    /// This custom command with prompts on stdin instead of as an argument. `None` for all other agents, whose
    /// delivery is known.
    pub fn with_stdin_prompt(&self) -> Option<Self> {
        match &self.delivery {
            PromptDelivery::CustomArgument { .. } => Some(Self {
                delivery: PromptDelivery::CustomStdin,
                ..self.clone()
            }),
            PromptDelivery::Builtin(_)
            | PromptDelivery::CustomStdin
            | PromptDelivery::Wrapper
            | PromptDelivery::Interactive(_)
            | PromptDelivery::Acp { .. }
            | PromptDelivery::Driver(_) => None,
        }
    }

    /// The driver script that builds the command line, if any.
    pub fn driver(&self) -> Option<&Driver> {
        match &self.delivery {
            PromptDelivery::Driver(driver) => Some(driver),
            PromptDelivery::Builtin(_)
            | PromptDelivery::CustomArgument { .. }
            | PromptDelivery::CustomStdin
            | PromptDelivery::Wrapper
            | PromptDelivery::Acp { .. }
            | PromptDelivery::Interactive(_) => None,
        }
    }

    /// The name of its settings under `adapters`.
    pub fn adapter(&self) -> &str {
        match self.driver() {
            Some(driver) => adapter_name(driver),
            None => &self.name,
        }
    }

    fn driver_invocation(
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
        if let Some(long) = args.iter().find(|argument| argument.len() >= ARGUMENT_BYTE_LIMIT) {
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

    /// Prepends a line break to a prompt that starts with a dash, so that it is not parsed as an option.
    fn custom_argument(&self, prompt: &str) -> Result<String, AgentError> {
        if prompt.starts_with('-') {
            self.as_argument(&format!("\n{prompt}"))
        } else {
            self.as_argument(prompt)
        }
    }

    /// The prompt as a single argument, if the kernel accepts it.
    fn as_argument(&self, prompt: &str) -> Result<String, AgentError> {
        if prompt.contains('\0') {
            return Err(AgentError::NulInPrompt);
        }
        if prompt.len() < ARGUMENT_BYTE_LIMIT {
            return Ok(prompt.to_owned());
        }
        Err(self.too_long(prompt.len()))
    }

    fn too_long(&self, bytes: usize) -> AgentError {
        AgentError::PromptTooLong {
            agent: format!("{} (passed as a single argument)", self.display_name),
            size: format!("{bytes} bytes"),
            limit: format!("{} bytes", ARGUMENT_BYTE_LIMIT - 1),
        }
    }
}

/// Arguments from the user's settings: the model, `adapters.NAME.args`, and the arguments after `--`.
pub(super) fn user_args(agent: &Agent, settings: &Settings) -> Vec<String> {
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

/// Whether ralph runs as root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UserKind {
    Root,
    Ordinary,
}

impl UserKind {
    fn current() -> Self {
        if rustix::process::geteuid().is_root() {
            Self::Root
        } else {
            Self::Ordinary
        }
    }
}

fn environment(agent: &Agent, user: UserKind) -> Vec<(String, String)> {
    let root_only = match user {
        UserKind::Root => agent.root_environment,
        UserKind::Ordinary => &[],
    };
    let set = agent.environment.iter().chain(root_only);
    set.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// The variables of a built-in agent, for this user.
pub(super) fn environment_of(agent: &Agent) -> Vec<(String, String)> {
    environment(agent, UserKind::current())
}

/// `pty_mode` can add a terminal but never removes one that the agent needs.
fn terminal(default: Terminal, settings: &Settings) -> Terminal {
    if settings.cli.pty_mode {
        Terminal::Pty
    } else {
        default
    }
}

/// True for a short prompt whose first character has no special meaning for a CLI.
pub(super) fn is_safe_argument(prompt: &str) -> bool {
    let short = prompt.len() <= 4 * SHORT_PROMPT_CHARS && prompt.chars().count() <= SHORT_PROMPT_CHARS;
    short
        && !prompt.trim_start().starts_with(['-', '/', '@'])
        && !prompt.contains('\0')
        && !prompt.trim().is_empty()
}

/// The prompt argument that refers to the prompt file.
pub(super) fn read_file_instruction(path: &Path) -> String {
    format!(
        "Read the file {} and do what it says; it is your whole task.",
        path.display()
    )
}
