//! `ralph run`: loads the configuration, then runs the loop or prints what it would do.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use crate::agent::{self, Invocation, ResolvedAgent};
use crate::config::{self, Partial, PriceList, Session, Settings};
use crate::engine::{Asking, Engine, Hats, RestoredRun, compose_first};
use crate::event::{FORMAT_VERSION, RunHeader};
use crate::run::{self, Beginning, Hooks, Progress, PromptSource, Setup, Watched};
use crate::store::Run;
use crate::transcript::Format;
use crate::transcript::jq::Filter;
use crate::ui::{FrontEnd, Terminal};

use super::agent_mode;
use super::args::{DisplayArguments, RunArguments};
use super::context::Context;
use super::dry_run;
use super::error::CliError;
use super::exit::Exit;
use super::front_end;
use super::hats;
use super::policy::policy;
use super::prompt;
use super::resume;
use super::run_header::SavedRun;
use super::transcript_format::resolve_format;
use super::trust::{self, Consent};

pub(super) fn run(arguments: &RunArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    if arguments.interactive && !terminal.can_ask() {
        return Err(CliError::TerminalRequired);
    }
    if let Some(given) = &arguments.resume {
        return resume::resume(arguments, given.as_deref(), terminal);
    }
    let request = Request {
        flags: arguments.overrides()?,
        config: arguments.choice.config.as_ref(),
        consent: Consent::of(arguments.choice.trust),
        asking: arguments.asking(),
        dry_run_mode: arguments.dry_run_mode(),
        show: arguments.show,
    };
    request.execute(terminal)
}

/// What is shown instead of done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DryRun {
    None,
    /// The call that the first iteration would make.
    Call,
    /// The prompt that it would send.
    Prompt,
}

/// A new run, as the command line wants it.
pub(super) struct Request<'a> {
    pub(super) flags: Partial,
    pub(super) config: Option<&'a PathBuf>,
    pub(super) consent: Consent,
    pub(super) asking: Asking,
    pub(super) dry_run_mode: DryRun,
    pub(super) show: DisplayArguments,
}

impl Request<'_> {
    pub(super) fn execute(self, terminal: &Terminal) -> Result<Exit, CliError> {
        let context = Context::here()?;
        let mut loaded = context.load(self.flags.clone(), self.config)?;
        loaded
            .warnings
            .iter()
            .try_for_each(|warning| terminal.warn(warning))
            .map_err(CliError::Output)?;
        // A dry run executes nothing but a driver's script.
        let executes =
            self.dry_run_mode == DryRun::None || loaded.settings.cli.backend.starts_with(agent::DRIVER);
        if executes {
            trust::require(&context, &loaded, self.consent, terminal)?;
        }
        if self.dry_run_mode == DryRun::None {
            agent_mode::fall_back_to_autonomous(&mut loaded.settings, self.show, terminal)?;
        }
        let mut plan = Plan::make(&context, loaded.settings)?;
        plan.show_warnings(terminal)?;
        (plan.flags, plan.asking) = (self.flags, self.asking);
        match self.dry_run_mode {
            DryRun::None => {}
            DryRun::Call => return dry_run::show(&plan, &context.cwd, self.show.json, terminal),
            DryRun::Prompt => return dry_run::show_prompt(&plan, terminal),
        }
        prompt::refuse_template(&plan.prompt)?;
        let show = agent_mode::force_line_output(&plan.settings, self.show);
        let mut front_end = front_end::front_end_for(show, &context.cwd, terminal)?;
        plan.execute(&context, front_end.as_mut())
    }
}

/// All that is decided before the first agent starts.
pub(super) struct Plan {
    pub(super) settings: Settings,
    pub(super) agent: ResolvedAgent,
    pub(super) format: &'static Format,
    pub(super) filter: Option<Filter>,
    pub(super) prompt: PromptSource,
    pub(super) hats: Hats,
    /// What the command line said, for `--continue`.
    pub(super) flags: Partial,
    pub(super) asking: Asking,
    pub(super) prices: Option<PriceList>,
}

impl Plan {
    pub(super) fn make(context: &Context, settings: Settings) -> Result<Self, CliError> {
        let hats = Hats::new(hats::rules(&settings))?;
        let prompt = prompt::find(&settings, &context.cwd)?;
        let prices = settings.pricing.as_deref().map(config::load_prices).transpose()?;
        let agent = agent::resolve(&settings, &context.probe())?;
        let mut agent = agent_mode::agent_in_mode(agent, &settings)?;
        let (format, filter) = resolve_format(&mut agent)?;
        let resumes = agent.resume.is_some() || agent.driver().is_some();
        if settings.session == Session::Continue && !resumes {
            let agent = agent.display_name;
            return Err(CliError::ResumeUnsupported { agent });
        }
        let plan = Self {
            settings,
            agent,
            format,
            filter,
            prompt,
            hats,
            flags: Partial::default(),
            asking: Asking::Never,
            prices,
        };
        // What no iteration could send is refused now, not after the first failure.
        plan.first_call(Path::new("prompt.md"))?;
        Ok(plan)
    }

    /// What the agent's driver has to say before it works.
    pub(super) fn show_warnings(&self, terminal: &Terminal) -> Result<(), CliError> {
        let mut warnings = self.agent.warnings.iter();
        warnings
            .try_for_each(|warning| terminal.warn(warning))
            .map_err(CliError::Output)
    }

    /// The first iteration's prompt, and the call that it leads to.
    pub(super) fn first_call(&self, prompt_file: &Path) -> Result<(String, Invocation), CliError> {
        let task = self.prompt.read().unwrap_or_default();
        let prompt = compose_first(&task, &policy(self, Timestamp::UNIX_EPOCH));
        let prompt = self.agent.escape_prompt(&prompt).into_owned();
        if self.agent.driver().is_none() {
            let invocation = self.agent.invocation(&prompt, prompt_file)?;
            return Ok((prompt, invocation));
        }
        // A driver reads the file itself.
        let unwritable = |source| CliError::Unwritable {
            path: std::env::temp_dir(),
            source,
        };
        let mut file = tempfile::NamedTempFile::new().map_err(unwritable)?;
        file.write_all(prompt.as_bytes()).map_err(unwritable)?;
        let invocation = self.agent.invocation(&prompt, file.path())?;
        Ok((prompt, invocation))
    }

    pub(super) fn execute(self, context: &Context, front_end: &mut dyn FrontEnd) -> Result<Exit, CliError> {
        let now = Timestamp::now();
        let start = RunStart {
            run: Run::create(&context.cwd, now)?,
            now,
            beginning: Beginning::Fresh,
            restored: None,
        };
        self.execute_on(start, context, front_end)
    }

    /// Drives a new run, or one that goes on.
    pub(super) fn execute_on(
        self,
        start: RunStart,
        context: &Context,
        front_end: &mut dyn FrontEnd,
    ) -> Result<Exit, CliError> {
        let RunStart {
            run,
            now,
            beginning,
            restored,
        } = start;
        let header = self.header(run.id(), &context.cwd);
        run.write_header(&SavedRun::new(header.clone(), &self.settings, &self.flags))?;
        let engine = match restored {
            None => Engine::new(policy(&self, now)),
            Some(restored) => {
                // The clock of a run that goes on stood at zero this long ago, had it not stopped in between.
                let zero = now.checked_sub(restored.elapsed()).unwrap_or(now);
                Engine::resume(policy(&self, zero), restored)
            }
        };
        let setup = Setup {
            engine: engine.asking(self.asking),
            header,
            run,
            watched: self.watched(),
            hooks: hooks(&self.settings.hooks),
            agent: self.agent,
            format: self.format,
            filter: self.filter,
            prompt: self.prompt,
            workspace: context.cwd.clone(),
            supervisors: context.supervisors.clone(),
            max_line_bytes: usize::try_from(self.settings.event_loop.max_line_bytes).unwrap_or(usize::MAX),
            beginning,
        };
        let outcome = run::drive(setup, front_end)?;
        front_end.finish();
        Ok(Exit::from(&outcome))
    }

    fn header(&self, run_id: &str, cwd: &Path) -> RunHeader {
        RunHeader {
            version: FORMAT_VERSION,
            run_id: run_id.to_owned(),
            ralph: env!("CARGO_PKG_VERSION").to_owned(),
            agent: self.agent.name.clone(),
            agent_version: self.agent.version.clone(),
            transcript: self.format.name.to_owned(),
            workspace: cwd.display().to_string(),
            max_iterations: self.settings.event_loop.max_iterations,
            max_runtime_seconds: Some(self.settings.event_loop.max_runtime_seconds),
            max_tokens: self.settings.event_loop.max_tokens,
            max_cost_usd: self.settings.event_loop.max_cost_usd,
        }
    }

    fn watched(&self) -> Watched {
        Watched {
            progress: match self.settings.event_loop.max_no_progress {
                0 => Progress::Unwatched,
                _ => Progress::Watched,
            },
            allowed_paths: self.settings.event_loop.allowed_paths.clone(),
        }
    }
}

/// A run on disk, and where it stands.
pub(super) struct RunStart {
    pub(super) run: Run,
    pub(super) now: Timestamp,
    pub(super) beginning: Beginning,
    /// What it had come to, if it goes on.
    pub(super) restored: Option<RestoredRun>,
}

fn hooks(hooks: &config::Hooks) -> Hooks {
    Hooks {
        on_start: hooks.on_start.clone(),
        on_iteration: hooks.on_iteration.clone(),
        on_complete: hooks.on_complete.clone(),
        on_fail: hooks.on_fail.clone(),
        on_rate_limit: hooks.on_rate_limit.clone(),
        timeout: Duration::from_secs(hooks.timeout),
    }
}
