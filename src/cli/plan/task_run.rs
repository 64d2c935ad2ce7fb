//! Starts the ordinary run of a task, with the settings of the user's checkout: what a task changes in `ralph.yml` applies
//! to later plans, so that no task can weaken the gates.

use std::path::{Path, PathBuf};

use crate::agent::AgentError;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::front_end::trace_export;
use crate::cli::run_plan::RunPlan;
use crate::config::{PartialSettings, Settings};
use crate::plan::{RunTask, StartError, TaskJob};
use crate::run::{FrontEnds, Host, PromptSource};
use crate::ui::FrontEnd;

/// The settings of all tasks.
pub(super) struct TaskRuns {
    pub(super) settings: Settings,
    pub(super) flags: PartialSettings,
    /// The directory in which `ralph plan run` was called. In a worktree, paths below its repository are moved there.
    pub(super) workspace: PathBuf,
    pub(super) repository: Option<PathBuf>,
    pub(super) hook_directory: PathBuf,
}

impl RunTask for TaskRuns {
    fn run(&self, host: &Host, job: &TaskJob, front_end: Box<dyn FrontEnd>) -> Result<(), StartError> {
        let context = Context {
            cwd: job.workspace.clone(),
            host: host.clone(),
            state: None,
        };
        let settings = self.settings_of(job);
        let mut plan = RunPlan::new(&context, settings).map_err(|error| start_error(&error))?;
        plan.prompt = PromptSource::Text(job.prompt.clone());
        plan.flags = self.flags.clone();
        plan.hook_directory = Some(self.moved(&self.hook_directory, job));
        let front_ends = FrontEnds {
            visible: front_end,
            record_file: None,
            traces: trace_export().ok().flatten(),
        };
        match plan.execute(&context, front_ends) {
            Ok(_) => Ok(()),
            Err(error) => Err(start_error(&error)),
        }
    }
}

impl TaskRuns {
    fn settings_of(&self, job: &TaskJob) -> Settings {
        let mut settings = self.settings.clone();
        settings.event_loop.prompt = Some(job.prompt.clone());
        settings.event_loop.prompt_file = None;
        for gate in &mut settings.gates {
            let directory = gate.cwd.take().unwrap_or_else(|| self.workspace.clone());
            gate.cwd = Some(self.moved(&directory, job));
        }
        settings.gates.extend(job.gates.iter().cloned().map(|mut gate| {
            gate.cwd = Some(self.moved(&self.workspace, job));
            gate
        }));
        if let Some(agent) = &job.agent {
            settings.cli.backend.clone_from(agent);
            settings.cli.transcript = None;
            // The model was chosen for the default agent.
            settings.cli.model = None;
        }
        if job.model.is_some() {
            settings.cli.model.clone_from(&job.model);
        }
        let limits = &mut settings.event_loop;
        limits.max_iterations = job.limits.max_iterations.unwrap_or(limits.max_iterations);
        limits.max_runtime_seconds = job
            .limits
            .max_runtime_seconds
            .unwrap_or(limits.max_runtime_seconds);
        limits.max_tokens = job.limits.max_tokens.or(limits.max_tokens);
        limits.max_cost_usd = job
            .max_cost_usd
            .or(job.limits.max_cost_usd)
            .or(limits.max_cost_usd);
        settings
    }

    /// The directory in the job's worktree that corresponds to one of the user's checkout.
    fn moved(&self, directory: &Path, job: &TaskJob) -> PathBuf {
        let Some(repository) = &self.repository else {
            return directory.to_owned();
        };
        let below = self.workspace.strip_prefix(repository).unwrap_or(Path::new(""));
        let depth = below.components().count();
        let top = job.workspace.ancestors().nth(depth).unwrap_or(&job.workspace);
        match self.workspace.join(directory).strip_prefix(repository) {
            Ok(relative) => top.join(relative),
            Err(_) => directory.to_owned(),
        }
    }
}

fn start_error(error: &CliError) -> StartError {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        text.push_str(&format!(": {source}"));
        cause = source.source();
    }
    match error {
        CliError::Agent(AgentError::PromptTooLong { .. } | AgentError::NulInPrompt) => {
            StartError::Other(text)
        }
        CliError::Agent(_) => StartError::Agent(text),
        _ => StartError::Other(text),
    }
}
