//! `ralph as-claude --agent NAME [-p PROMPT]`: runs any agent and prints its output as claude's stream-json, for tools
//! that expect claude. Other claude flags are ignored.

mod args;
mod codex;
mod translate;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Instant;

use crate::agent::{self, driver::DriverError};
use crate::agent::{Invocation, NESTED_SESSION, ResolvedAgent, StdinSource, Terminal as AgentTerminal};
use crate::config::{LoadedConfig, PartialCli, PartialSettings, Settings};
use crate::event::StreamName;
use crate::process::{Child, ChildEvent, Environment, LineSplitter, ProcessSpec, Stdin, Transport};
use crate::run::Host;
use crate::transcript::{AdapterContext, jq};
use crate::trust::Consent;
use crate::ui::Terminal;

use super::args::AsClaudeArguments;
use super::consent;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::prompt::PromptError;
use super::transcript_format::resolve_format;
use args::AsClaudeOptions;
use codex::CodexTranslator;
use translate::{ClaudeWriter, EventTranslator, SessionResult, Translator};

/// Set for the agent, to detect recursion.
const NESTED: &str = "RALPH_AS_CLAUDE";
/// Number of bytes of stderr to keep for the error message.
const STDERR_TAIL: usize = 2000;

pub(super) fn as_claude(
    arguments: &AsClaudeArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let started = Instant::now();
    let writer = ClaudeWriter::new(terminal);
    let result =
        AsClaudeOptions::parse(&arguments.words).and_then(|options| run(&options, terminal, &writer, host));
    let session = match result {
        Ok(session) => session,
        Err(error @ CliError::Output(_)) => return Err(error),
        Err(error) => {
            // The calling tool reads stdout, the user stderr; report to both.
            writer.write_failure(&error.to_string(), started.elapsed())?;
            return Err(error);
        }
    };
    writer.write_result(&session, started.elapsed())?;
    Ok(if session.failure.is_none() {
        Exit::Success
    } else {
        Exit::Failed
    })
}

fn run(
    options: &AsClaudeOptions,
    terminal: &Terminal,
    writer: &ClaudeWriter<'_>,
    host: &Host,
) -> Result<SessionResult, CliError> {
    if std::env::var(NESTED).is_ok_and(|agent| agent == options.agent) {
        let text = format!(
            "{} would run itself; check whether claude_command is set to `ralph as-claude`",
            options.agent
        );
        return Err(CliError::AsClaude(text));
    }
    let context = Context::here(host)?;
    let loaded = load(&context, options)?;
    consent::require(&context, &loaded, Consent::of(options.trust), terminal)?;
    let prompt = prompt(options)?;
    let directory = crate::process::scratch("ralph-").map_err(temporary)?;
    let file = directory.path().join("prompt.md");
    std::fs::write(&file, &prompt).map_err(temporary)?;
    let (call, environment, mut translator) = if options.agent == codex::NAME {
        let (program, settings) = (context.probe().find(codex::NAME), &loaded.settings);
        let program = program.ok_or_else(|| missing(codex::NAME))?;
        let translator: Box<dyn Translator> = Box::new(CodexTranslator::new());
        (codex::call(program, settings, &file), Vec::new(), translator)
    } else {
        let mut selected = agent::resolve(&loaded.settings, &context.probe())?;
        let call = selected.invocation(&prompt, &file)?;
        let translator = event_translator(&mut selected, &prompt)?;
        (call, selected.environment, translator)
    };
    let spec = spec(call, environment, &context.cwd, &options.agent);
    run_agent(&context, &spec, translator.as_mut(), writer)
}

fn load(context: &Context, options: &AsClaudeOptions) -> Result<LoadedConfig, CliError> {
    let overrides = PartialSettings {
        cli: PartialCli {
            backend: Some(options.agent.clone()),
            model: options.model.clone(),
            ..PartialCli::default()
        },
        ..PartialSettings::default()
    };
    let mut loaded = context.load(overrides, options.config.as_ref())?;
    // `--agent claude` means claude itself, not a wrapper, which may be this very command.
    loaded.settings.cli.claude_command = None;
    loaded.settings.cli.claude_args = None;
    Ok(loaded)
}

fn missing(name: &str) -> CliError {
    let error = DriverError::NoProgram {
        name: "as-claude".to_owned(),
        binary: name.to_owned(),
    };
    CliError::Agent(error.into())
}

fn temporary(source: io::Error) -> CliError {
    CliError::Unwritable {
        path: std::env::temp_dir(),
        source,
    }
}

/// Returns the prompt from the flag, otherwise from stdin.
fn prompt(options: &AsClaudeOptions) -> Result<String, CliError> {
    let prompt = match &options.prompt {
        Some(prompt) => prompt.clone(),
        None if io::stdin().is_terminal() => String::new(),
        None => {
            let mut bytes = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|source| CliError::Unreadable {
                path: PathBuf::from("stdin"),
                source,
            })?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    if prompt.trim().is_empty() {
        return Err(PromptError::None.into());
    }
    Ok(prompt)
}

fn event_translator(selected: &mut ResolvedAgent, prompt: &str) -> Result<Box<dyn Translator>, CliError> {
    let (format, filter) = resolve_format(selected)?;
    let adapter = jq::open_adapter(format, filter.as_ref(), &AdapterContext::new(prompt));
    Ok(Box::new(EventTranslator::new(format, adapter)))
}

fn spec(call: Invocation, environment: Vec<(String, String)>, cwd: &Path, agent: &str) -> ProcessSpec {
    let own = environment
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()));
    let nested: (OsString, OsString) = (NESTED.into(), agent.into());
    ProcessSpec {
        program: call.program,
        args: call.args,
        environment: Environment {
            remove: NESTED_SESSION.iter().map(OsString::from).collect(),
            set: own.chain([nested]).collect(),
        },
        cwd: cwd.to_owned(),
        stdin: match call.stdin {
            // There is no user to type into the agent.
            StdinSource::Null | StdinSource::Terminal | StdinSource::Protocol => Stdin::Null,
            StdinSource::PromptFile(path) => Stdin::File(path),
        },
        stdout: match call.terminal {
            AgentTerminal::Pipe | AgentTerminal::Interactive => Transport::Pipe,
            AgentTerminal::Pty => Transport::Pty {
                rows: 50,
                columns: 500,
            },
        },
        confinement: None,
    }
}

/// Runs the agent until it exits. If ralph is killed, the agent's supervisor stops the agent.
fn run_agent(
    context: &Context,
    spec: &ProcessSpec,
    translator: &mut dyn Translator,
    writer: &ClaudeWriter<'_>,
) -> Result<SessionResult, CliError> {
    let (sender, events) = mpsc::channel();
    let child = Child::spawn(context.host.supervisors(), spec, move |event| {
        drop(sender.send(event))
    });
    let _child = child.map_err(|error| CliError::AsClaude(error.to_string()))?;
    let mut lines = LineSplitter::new(256 << 20);
    let mut stderr = Vec::new();
    loop {
        let Ok(event) = events.recv() else {
            return Err(CliError::AsClaude("the agent's supervisor died".to_owned()));
        };
        match event {
            ChildEvent::Output {
                stream: StreamName::Stdout,
                chunk,
            } => {
                let mut texts = Vec::new();
                lines.feed(&chunk, |line| {
                    translator.line(&String::from_utf8_lossy(line.bytes), &mut texts)
                });
                texts.iter().try_for_each(|text| writer.write_text(text))?;
            }
            ChildEvent::Output {
                stream: StreamName::Stderr,
                chunk,
            } => {
                let _ = stderr.write_all(&chunk);
                let from = stderr.len().saturating_sub(STDERR_TAIL);
                stderr.drain(..from);
            }
            ChildEvent::Ended(ended) => {
                let mut texts = Vec::new();
                lines.finish(|line| translator.line(&String::from_utf8_lossy(line.bytes), &mut texts));
                let session = translator.end(ended.end, String::from_utf8_lossy(&stderr).trim(), &mut texts);
                texts.iter().try_for_each(|text| writer.write_text(text))?;
                return Ok(session);
            }
        }
    }
}

/// Returns the configured model.
fn model_of(settings: &Settings, agent: &str) -> Option<String> {
    let adapter = settings
        .adapters
        .get(agent)
        .and_then(|adapter| adapter.model.clone());
    settings.cli.model.clone().or(adapter)
}
