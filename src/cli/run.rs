//! `ralph run`: from wishes to a driven loop, or to a description of what it would do.

use std::path::Path;

use jiff::Timestamp;

use crate::agent::{self, Invocation, Selected};
use crate::config::Settings;
use crate::engine::{Engine, compose_first};
use crate::event::{FORMAT_VERSION, RunHeader};
use crate::run::{self, PromptSource, Setup};
use crate::store::Run;
use crate::transcript::{self, Format};
use crate::ui::tui::{OnEnd, Role};
use crate::ui::{Face, Terminal, Verbosity};

use super::args::RunArguments;
use super::context::{Context, refuse_what_is_not_there_yet};
use super::dry_run;
use super::error::CliError;
use super::exit::Exit;
use super::policy::policy;
use super::shelf::RunShelf;

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
    let takes_all = match (arguments.screen.tui, arguments.screen.no_tui) {
        (true, _) if !terminal.can_be_taken() => return Err(CliError::NoTerminal { what: "--tui" }),
        (true, _) => true,
        (false, true) => false,
        (false, false) => !arguments.json && verbosity == Verbosity::Normal && terminal.can_be_taken(),
    };
    let mut face = if arguments.json {
        terminal.json_face()
    } else if takes_all {
        let shelf = RunShelf::of_workspace(&context.cwd);
        let tui = terminal.tui(Role::Driver, OnEnd::Leave, shelf);
        Box::new(tui.map_err(CliError::Output)?)
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
        let plan = Self {
            settings,
            agent,
            format,
            prompt,
        };
        // What no iteration could send is refused now, not after the first failure.
        plan.first_call(Path::new("prompt.md"))?;
        Ok(plan)
    }

    /// The first iteration's prompt, and the call that it leads to.
    pub(super) fn first_call(&self, prompt_file: &Path) -> Result<(String, Invocation), CliError> {
        let task = self.prompt.read().unwrap_or_default();
        let prompt = compose_first(&task, &policy(self, Timestamp::UNIX_EPOCH));
        let invocation = self.agent.invocation(&prompt, prompt_file)?;
        Ok((prompt, invocation))
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
            engine: Engine::new(policy(&self, now)),
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
        face.farewell();
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
    let (empty, what) = match &source {
        PromptSource::Text(text) => (text.trim().is_empty(), "the prompt".to_owned()),
        PromptSource::File(path) => {
            let text = std::fs::read(path).map_err(|source| CliError::PromptFile {
                path: path.clone(),
                source,
            })?;
            (
                text.trim_ascii().is_empty(),
                format!("the prompt file {}", path.display()),
            )
        }
    };
    if empty {
        Err(CliError::EmptyPrompt { what })
    } else {
        Ok(source)
    }
}
