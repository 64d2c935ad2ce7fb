//! The plan of a run: everything that is resolved before the agent starts.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use crate::agent::{Invocation, ResolvedAgent};
use crate::config::{self, PartialSettings, PriceList, Settings};
use crate::engine::{AskPolicy, Engine, Hats, RestoredRun, first_prompt};
use crate::event::{FORMAT_VERSION, ForkOrigin, RunHeader};
use crate::policy::OnRejected;
use crate::run::{
    self, Beginning, FrontEnds, HookCommands, PromptSource, RunAgent, SandboxSetup, SavedRun, Setup, Watched,
};
use crate::store::{NewRunId, Run, SettingsFile};
use crate::ui::Terminal;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::policy::{accounts, policy};
use super::prompt;
use super::roles::PlannedAgents;
use super::snapshots;

/// Everything that is resolved before the agent starts.
pub(super) struct RunPlan {
    pub(super) settings: Settings,
    pub(super) agents: PlannedAgents,
    pub(super) prompt: PromptSource,
    pub(super) hats: Hats,
    /// The command-line settings, stored for `--continue`.
    pub(super) flags: PartialSettings,
    pub(super) asking: AskPolicy,
    /// The id of the run; `None` for a generated one.
    pub(super) run_id: Option<NewRunId>,
    /// The directory in which hooks run; `None` for the working directory.
    pub(super) hook_directory: Option<PathBuf>,
    pub(super) prices: Option<PriceList>,
    /// The iteration of another run that the run continues.
    pub(super) forked_from: Option<ForkOrigin>,
}

impl RunPlan {
    pub(super) fn new(context: &Context, settings: Settings) -> Result<Self, CliError> {
        if settings.event_loop.require_gates && settings.gates.is_empty() {
            return Err(CliError::GatesRequired);
        }
        if !settings.snapshots.enabled
            && let Some(gate) = settings.gates.iter().find(|gate| gate.runs_clean())
        {
            let gate = gate.name.clone();
            return Err(CliError::SnapshotsRequired { gate });
        }
        if !settings.snapshots.enabled && settings.event_loop.on_rejected == OnRejected::Restore {
            return Err(CliError::RestoreNeedsSnapshots);
        }
        let rules = settings.hats.values().cloned().collect();
        let hats = Hats::starting_with(&settings.event_loop.starting_event, rules)?;
        let prompt = prompt::find(&settings, &context.cwd)?;
        let prices = settings.pricing.as_deref().map(config::load_prices).transpose()?;
        let agents = PlannedAgents::new(&settings, &context.probe())?;
        agents.check_disallowed_tools(&settings)?;
        let plan = Self {
            settings,
            agents,
            prompt,
            hats,
            flags: PartialSettings::default(),
            asking: AskPolicy::Never,
            run_id: None,
            hook_directory: None,
            prices,
            forked_from: None,
        };
        // Report an invalid prompt now instead of in the first iteration.
        plan.first_call(Path::new("prompt.md"))?;
        Ok(plan)
    }

    /// The agent that works without a hat.
    pub(super) fn agent(&self) -> &ResolvedAgent {
        &self.agents.first().agent
    }

    /// Prints the warnings about the agents.
    pub(super) fn show_warnings(&self, terminal: &Terminal) -> Result<(), CliError> {
        let mut seen = BTreeSet::new();
        let of_agents = self
            .agents
            .agents
            .iter()
            .flat_map(|planned| &planned.agent.warnings);
        let warnings = self.agents.warnings.iter().chain(of_agents);
        warnings
            .filter(|warning| seen.insert(*warning))
            .try_for_each(|warning| terminal.warn(warning))
            .map_err(CliError::Output)
    }

    /// Returns the first iteration's prompt and command line.
    pub(super) fn first_call(&self, prompt_file: &Path) -> Result<(String, Invocation), CliError> {
        let task = self.prompt.read().unwrap_or_default();
        let prompt = first_prompt(&task, &policy(self, Timestamp::UNIX_EPOCH));
        let agent = &self.agents.of_hat(self.hats.first()).agent;
        let prompt = agent.escape_prompt(&prompt).into_owned();
        if agent.driver().is_none() {
            let invocation = agent.invocation(&prompt, prompt_file)?;
            return Ok((prompt, invocation));
        }
        // A driver reads the prompt from a file.
        let unwritable = |source| CliError::Unwritable {
            path: std::env::temp_dir(),
            source,
        };
        let mut file = tempfile::NamedTempFile::new().map_err(unwritable)?;
        file.write_all(prompt.as_bytes()).map_err(unwritable)?;
        let invocation = agent.invocation(&prompt, file.path())?;
        Ok((prompt, invocation))
    }

    pub(super) fn execute(self, context: &Context, front_ends: FrontEnds) -> Result<Exit, CliError> {
        let now = Timestamp::now();
        let project = context.project()?;
        snapshots::require_no_pending_restore(&project, &context.host)?;
        let sandbox = SandboxSetup::resolve(&self.settings, &context.host)?;
        let start = RunStart {
            sandbox,
            run: match &self.run_id {
                Some(id) => Run::create_with_id(&project, id, now)?,
                None => Run::create(&project, now)?,
            },
            now,
            beginning: Beginning::Fresh,
            restored: None,
        };
        self.execute_from(start, context, front_ends)
    }

    /// Drives a new or resumed run.
    pub(super) fn execute_from(
        self,
        start: RunStart,
        context: &Context,
        front_ends: FrontEnds,
    ) -> Result<Exit, CliError> {
        let RunStart {
            sandbox,
            run,
            now,
            beginning,
            restored,
        } = start;
        snapshots::require_no_pending_restore(run.project(), &context.host)?;
        let mut header = self.header(&run, &context.cwd);
        let settings_file = SettingsFile::new(&SavedRun::new(header.clone(), &self.settings, &self.flags))?;
        header.settings_sha256 = Some(settings_file.sha256());
        if let Beginning::Fresh = beginning {
            run.write_settings(&settings_file)?;
        }
        let engine = match restored {
            None => Engine::new(policy(&self, now)),
            Some(restored) => {
                // Elapsed time excludes the time between the two processes.
                let zero = now.checked_sub(restored.elapsed()).unwrap_or(now);
                Engine::resume(policy(&self, zero), restored)
            }
        };
        let snapshots = snapshots::rules(run.project(), &self.settings.snapshots);
        let accounts = accounts(&self.settings, &self.agents);
        let project = run.project().name();
        let setup = Setup {
            engine: engine.with_ask_policy(self.asking),
            header,
            settings_file,
            run: Arc::new(run),
            watched: self.watched(),
            snapshots,
            accounts,
            hooks: HookCommands {
                hooks: self.settings.hooks.clone(),
                notify: self.settings.notify.clone(),
                project,
                directory: self.hook_directory.unwrap_or_else(|| context.cwd.clone()),
            },
            agents: self
                .agents
                .agents
                .into_iter()
                .map(|planned| RunAgent {
                    agent: Arc::new(planned.agent),
                    format: planned.format,
                    filter: planned.filter,
                })
                .collect(),
            sandbox,
            prompt: self.prompt,
            workspace: context.cwd.clone(),
            max_line_bytes: usize::try_from(self.settings.event_loop.max_line_bytes).unwrap_or(usize::MAX),
            beginning,
        };
        let outcome = run::drive(&context.host, setup, front_ends)?;
        Ok(Exit::from(&outcome))
    }

    fn header(&self, run: &Run, cwd: &Path) -> RunHeader {
        RunHeader {
            version: FORMAT_VERSION,
            run_id: run.id().to_owned(),
            ralph: env!("CARGO_PKG_VERSION").to_owned(),
            agent: self.agent().name.clone(),
            agent_version: self.agent().version.clone(),
            transcript: self.agents.first().format.name.to_owned(),
            workspace: cwd.display().to_string(),
            project_root: Some(run.project().root().display().to_string()),
            directory: Some(run.directory().display().to_string()),
            max_iterations: self.settings.event_loop.max_iterations,
            max_runtime_seconds: Some(self.settings.event_loop.max_runtime_seconds.0),
            max_tokens: self.settings.event_loop.max_tokens,
            max_cost_usd: self.settings.event_loop.max_cost_usd,
            settings_sha256: None,
            forked_from: self.forked_from.clone(),
        }
    }

    fn watched(&self) -> Watched {
        Watched {
            allowed_paths: self.settings.event_loop.allowed_paths.clone(),
        }
    }
}

/// A run directory and its starting state.
pub(super) struct RunStart {
    pub(super) sandbox: SandboxSetup,
    pub(super) run: Run,
    pub(super) now: Timestamp,
    pub(super) beginning: Beginning,
    /// The state to resume from; `None` for a new run.
    pub(super) restored: Option<RestoredRun>,
}
