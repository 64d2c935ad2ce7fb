//! `ralph as-claude --agent NAME [-p PROMPT]`: runs any agent and prints what it says as claude's stream of JSON, so that
//! a tool which expects claude can use it. Claude's own flags are accepted and ignored.

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
use crate::config::{Loaded, Partial, PartialCli, Settings};
use crate::event::StreamName;
use crate::process::{Child, ChildEvent, Environment, LineSplitter, ProcessSpec, Stdin, Transport};
use crate::transcript::{Opening, jq};
use crate::ui::Terminal;

use super::args::AsClaudeArguments;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::prompt::PromptError;
use super::transcript_format::resolve_format;
use super::trust::{self, Consent};
use args::Arguments;
use codex::Codex;
use translate::{Events, Speech, Translate};

/// Tells an inner call of ourselves that it is one.
const INSIDE: &str = "RALPH_AS_CLAUDE";
/// Of what went to stderr, this much of the end is kept for the error.
const STDERR_KEPT: usize = 2000;

pub(super) fn as_claude(arguments: &AsClaudeArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let started = Instant::now();
    let speech = Speech::new(terminal);
    let result = Arguments::read(&arguments.words).and_then(|words| run(&words, terminal, &speech));
    let verdict = match result {
        Ok(verdict) => verdict,
        Err(error @ CliError::Output(_)) => return Err(error),
        Err(error) => {
            // The caller reads stdout, the person stderr; both are told.
            speech.fail(&error.to_string(), started.elapsed())?;
            return Err(error);
        }
    };
    speech.conclude(&verdict, started.elapsed())?;
    Ok(if verdict.failure.is_none() {
        Exit::Success
    } else {
        Exit::Failed
    })
}

fn run(words: &Arguments, terminal: &Terminal, speech: &Speech<'_>) -> Result<translate::Verdict, CliError> {
    if std::env::var(INSIDE).is_ok_and(|agent| agent == words.agent) {
        let text = format!(
            "{} was asked to run itself; is claude_command set to `ralph as-claude`?",
            words.agent
        );
        return Err(CliError::AsClaude(text));
    }
    let context = Context::here()?;
    let loaded = load(&context, words)?;
    trust::require(&context, &loaded, Consent::of(words.trust), terminal)?;
    let prompt = prompt(words)?;
    let directory = crate::process::scratch("ralph-").map_err(temporary)?;
    let file = directory.path().join("prompt.md");
    std::fs::write(&file, &prompt).map_err(temporary)?;
    let (call, environment, mut translate) = if words.agent == codex::NAME {
        let (program, settings) = (context.probe().find(codex::NAME), &loaded.settings);
        let program = program.ok_or_else(|| missing(codex::NAME))?;
        let translate: Box<dyn Translate> = Box::new(Codex::new());
        (codex::call(program, settings, &file), Vec::new(), translate)
    } else {
        let mut selected = agent::resolve(&loaded.settings, &context.probe())?;
        let call = selected.invocation(&prompt, &file)?;
        let translate = events(&mut selected, &prompt)?;
        (call, selected.environment, translate)
    };
    let spec = spec(call, environment, &context.cwd, &words.agent);
    follow(&context, &spec, translate.as_mut(), speech)
}

fn load(context: &Context, words: &Arguments) -> Result<Loaded, CliError> {
    let overrides = Partial {
        cli: PartialCli {
            backend: Some(words.agent.clone()),
            model: words.model.clone(),
            ..PartialCli::default()
        },
        ..Partial::default()
    };
    let mut loaded = context.load(overrides, words.config.as_ref())?;
    // Whoever asks for claude here means claude, not what stands in for it (which may be this very call).
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

/// From the flag, or else from stdin.
fn prompt(words: &Arguments) -> Result<String, CliError> {
    let prompt = match &words.prompt {
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

fn events(selected: &mut ResolvedAgent, prompt: &str) -> Result<Box<dyn Translate>, CliError> {
    let (format, filter) = resolve_format(selected)?;
    let adapter = jq::read(format, filter.as_ref(), &Opening { prompt });
    Ok(Box::new(Events::new(format, adapter)))
}

fn spec(call: Invocation, environment: Vec<(String, String)>, cwd: &Path, agent: &str) -> ProcessSpec {
    let own = environment
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()));
    let inside: (OsString, OsString) = (INSIDE.into(), agent.into());
    ProcessSpec {
        program: call.program,
        args: call.args,
        environment: Environment {
            remove: NESTED_SESSION.iter().map(OsString::from).collect(),
            set: own.chain([inside]).collect(),
        },
        cwd: cwd.to_owned(),
        stdin: match call.stdin {
            // Nobody sits in front of it.
            StdinSource::Null | StdinSource::Screen => Stdin::Null,
            StdinSource::PromptFile(path) => Stdin::File(path),
        },
        stdout: match call.terminal {
            AgentTerminal::Pipe | AgentTerminal::Screen => Transport::Pipe,
            AgentTerminal::Pty => Transport::Pty {
                rows: 50,
                columns: 500,
            },
        },
    }
}

/// Runs the agent to its end. When this program is stopped, the agent's keeper stops the agent.
fn follow(
    context: &Context,
    spec: &ProcessSpec,
    translate: &mut dyn Translate,
    speech: &Speech<'_>,
) -> Result<translate::Verdict, CliError> {
    let (sender, reports) = mpsc::channel();
    let child = Child::spawn(&context.supervisors, spec, move |report| {
        drop(sender.send(report))
    });
    let _child = child.map_err(|error| CliError::AsClaude(error.to_string()))?;
    let mut lines = LineSplitter::new(256 << 20);
    let mut stderr = Vec::new();
    loop {
        let Ok(report) = reports.recv() else {
            return Err(CliError::AsClaude("the agent was lost".to_owned()));
        };
        match report {
            ChildEvent::Output {
                stream: StreamName::Stdout,
                chunk,
            } => {
                let mut texts = Vec::new();
                lines.feed(&chunk, |line| {
                    translate.line(&String::from_utf8_lossy(line.bytes), &mut texts)
                });
                texts.iter().try_for_each(|text| speech.say(text))?;
            }
            ChildEvent::Output {
                stream: StreamName::Stderr,
                chunk,
            } => {
                let _ = stderr.write_all(&chunk);
                let from = stderr.len().saturating_sub(STDERR_KEPT);
                stderr.drain(..from);
            }
            ChildEvent::Ended(ended) => {
                let mut texts = Vec::new();
                lines.finish(|line| translate.line(&String::from_utf8_lossy(line.bytes), &mut texts));
                let verdict = translate.end(ended.end, String::from_utf8_lossy(&stderr).trim(), &mut texts);
                texts.iter().try_for_each(|text| speech.say(text))?;
                return Ok(verdict);
            }
        }
    }
}

/// The model that was asked for, by whatever name.
fn model_of(settings: &Settings, agent: &str) -> Option<String> {
    let adapter = settings
        .adapters
        .get(agent)
        .and_then(|adapter| adapter.model.clone());
    settings.cli.model.clone().or(adapter)
}
