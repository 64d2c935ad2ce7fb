//! `ralph run`: from wishes to a driven loop, or to a description of what it would do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use crate::agent::{self, Selected};
use crate::config::{CompletionMatch, OnFailure, Settings};
use crate::engine::{
    Ending, Engine, GateRule, Limits, Markers, Messages, OnDeclaredFailure, Placement, Policy, Reading,
    Timing,
};
use crate::event::{FORMAT_VERSION, RunHeader};
use crate::run::{self, PromptSource, Setup};
use crate::store::Run;
use crate::transcript::{self, Format};
use crate::ui::{Face, Terminal, Verbosity};

use super::args::RunArguments;
use super::context::{Context, refuse_what_is_not_there_yet};
use super::dry_run;
use super::error::CliError;
use super::exit::Exit;

/// Silence that is too long: for structured streams, for plain text, while a tool runs.
const IDLE_STRUCTURED: Duration = Duration::from_secs(600);
const IDLE_PLAIN: Duration = Duration::from_secs(1800);
const IDLE_IN_TOOL: Duration = Duration::from_secs(3600);

pub(super) fn run(arguments: &RunArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let loaded = context.load(arguments.wishes()?, arguments.choice.config.as_ref())?;
    loaded
        .warnings
        .iter()
        .try_for_each(|warning| terminal.warn(warning))
        .map_err(CliError::Output)?;
    let plan = Plan::make(&context, loaded.settings)?;
    if arguments.dry_run {
        return dry_run::show(&plan, &context.cwd, arguments.json, terminal);
    }
    let verbosity = match (arguments.quiet, arguments.verbose) {
        (true, _) => Verbosity::Quiet,
        (false, true) => Verbosity::Verbose,
        (false, false) => Verbosity::Normal,
    };
    let mut face = if arguments.json {
        terminal.json_face()
    } else {
        terminal.plain_face(verbosity)
    };
    plan.carry_out(&context, face.as_mut())
}

/// All that is decided before the first agent starts.
pub(super) struct Plan {
    pub(super) settings: Settings,
    pub(super) agent: Selected,
    pub(super) format: &'static Format,
    pub(super) prompt: PromptSource,
}

impl Plan {
    pub(super) fn make(context: &Context, settings: Settings) -> Result<Self, CliError> {
        refuse_what_is_not_there_yet(&settings)?;
        let prompt = find_prompt(&settings, &context.cwd)?;
        let agent = agent::resolve(&settings, &context.probe())?;
        let unknown = || CliError::UnknownTranscript {
            name: agent.format.clone(),
        };
        let format = transcript::find(&agent.format).ok_or_else(unknown)?;
        Ok(Self {
            settings,
            agent,
            format,
            prompt,
        })
    }

    pub(super) fn policy(&self, started_at: Timestamp) -> Policy {
        let Settings {
            event_loop,
            gates,
            adapters,
            ..
        } = &self.settings;
        let adapter = adapters.get(&self.agent.name).cloned().unwrap_or_default();
        let capabilities = self.format.capabilities;
        let idle = if capabilities.terminal_event {
            IDLE_STRUCTURED
        } else {
            IDLE_PLAIN
        };
        let told = adapter
            .idle_timeout
            .map(|seconds| (seconds > 0).then(|| Duration::from_secs(seconds)));
        Policy {
            started_at,
            seed: fastrand::u64(..),
            limits: Limits {
                iterations: event_loop.max_iterations,
                runtime: Duration::from_secs(event_loop.max_runtime_seconds),
                cost_usd: event_loop.max_cost_usd,
                tokens: event_loop.max_tokens,
                consecutive_failures: event_loop.max_consecutive_failures,
            },
            timing: Timing {
                wall: adapter.timeout.map(Duration::from_secs),
                idle: told.unwrap_or(Some(idle)),
                idle_in_tool: told.unwrap_or(Some(IDLE_IN_TOOL)),
                after_result: Duration::from_secs(event_loop.result_grace_seconds),
                stop_grace: Duration::from_secs(event_loop.stop_grace_seconds),
                cooldown: Duration::from_secs(event_loop.cooldown_seconds),
            },
            markers: Markers::new(
                event_loop.completion_promise.clone(),
                match event_loop.completion_match {
                    CompletionMatch::Line => Placement::Line,
                    CompletionMatch::Anywhere => Placement::Anywhere,
                },
            ),
            gates: gates
                .iter()
                .map(|gate| GateRule {
                    name: gate.name.clone(),
                    command: gate.run.clone(),
                    timeout: Duration::from_secs(gate.timeout),
                })
                .collect(),
            reading: Reading {
                messages: if capabilities.messages {
                    Messages::Delimited
                } else {
                    Messages::Absent
                },
                ending: if capabilities.terminal_event {
                    Ending::TerminalEvent
                } else {
                    Ending::ExitOnly
                },
            },
            auth_hint: self.agent.auth_hint.clone(),
            on_declared_failure: match event_loop.on_declared_failure {
                OnFailure::Stop => OnDeclaredFailure::Stop,
                OnFailure::Retry => OnDeclaredFailure::Retry,
            },
        }
    }

    pub(super) fn carry_out(self, context: &Context, face: &mut dyn Face) -> Result<Exit, CliError> {
        let now = Timestamp::now();
        let run = Run::create(&context.cwd, now)?;
        let header = RunHeader {
            version: FORMAT_VERSION,
            run_id: run.id().to_owned(),
            ralph: env!("CARGO_PKG_VERSION").to_owned(),
            agent: self.agent.name.clone(),
            agent_version: self.agent.version.clone(),
            transcript: self.format.name.to_owned(),
            workspace: context.cwd.display().to_string(),
            max_iterations: self.settings.event_loop.max_iterations,
            max_cost_usd: self.settings.event_loop.max_cost_usd,
        };
        let setup = Setup {
            engine: Engine::new(self.policy(now)),
            header,
            run,
            agent: self.agent,
            format: self.format,
            prompt: self.prompt,
            workspace: context.cwd.clone(),
            keeper: context.keeper.clone(),
            max_line_bytes: usize::try_from(self.settings.event_loop.max_line_bytes).unwrap_or(usize::MAX),
        };
        let outcome = run::drive(setup, face)?;
        Ok(Exit::from(&outcome))
    }
}

/// The flag or the configuration, else `PROMPT.md` where we are. Read once now, so that a mistake shows at once.
fn find_prompt(settings: &Settings, cwd: &Path) -> Result<PromptSource, CliError> {
    let written = settings.event_loop.prompt.clone().map(PromptSource::Text);
    let named = || settings.event_loop.prompt_file.clone().map(PromptSource::File);
    let usual = || {
        Some(cwd.join("PROMPT.md"))
            .filter(|path| path.exists())
            .map(PromptSource::File)
    };
    let source = written.or_else(named).or_else(usual).ok_or(CliError::NoPrompt)?;
    let empty = match &source {
        PromptSource::Text(text) => text.trim().is_empty(),
        PromptSource::File(path) => read(path)?.trim_ascii().is_empty(),
    };
    if empty {
        Err(CliError::EmptyPrompt)
    } else {
        Ok(source)
    }
}

fn read(path: &PathBuf) -> Result<Vec<u8>, CliError> {
    std::fs::read(path).map_err(|source| CliError::PromptFile {
        path: path.clone(),
        source,
    })
}
