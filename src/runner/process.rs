//! Runs jobs as child processes.

use std::time::Duration;

use crate::event::AgentIdentity;
use crate::process::{Child, ChildEvent, ProcessSpec, Screen, Supervisors};

use super::proxy::{self, JobSandbox};
use super::{AgentJob, Handle, OutputBytes, Runner, RunnerEvent, RunnerEvents, StartError, Started};

/// Starts child processes under supervisors.
#[derive(Debug, Clone)]
pub struct ProcessRunner {
    supervisors: Supervisors,
}

impl ProcessRunner {
    pub fn new(supervisors: Supervisors) -> Self {
        Self { supervisors }
    }
}

/// A command, such as a gate's, and its sandbox.
pub struct CommandJob {
    pub spec: ProcessSpec,
    pub sandbox: Option<JobSandbox>,
}

impl CommandJob {
    /// The process, confined as the sandbox says.
    pub(super) fn confined(
        self,
        supervisors: &Supervisors,
        events: &RunnerEvents,
    ) -> Result<ProcessSpec, StartError> {
        let Self { mut spec, sandbox } = self;
        if let Some(sandbox) = sandbox {
            let confined = proxy::confine(&mut spec, sandbox, supervisors, events);
            confined
                .map_err(|error| StartError(format!("cannot start the proxy of the sandbox: {error}")))?;
        }
        Ok(spec)
    }
}

impl Runner<CommandJob> for ProcessRunner {
    fn start(&self, job: CommandJob, events: RunnerEvents) -> Result<Started, StartError> {
        let spec = job.confined(&self.supervisors, &events)?;
        let report = move |event| {
            events(match event {
                ChildEvent::Output { stream, chunk } => RunnerEvent::Output {
                    stream,
                    bytes: OutputBytes::from(chunk),
                },
                ChildEvent::Ended(ended) => RunnerEvent::Ended {
                    end: ended.end.into(),
                    swept: ended.swept,
                },
            });
        };
        let child =
            Child::spawn(&self.supervisors, &spec, report).map_err(|error| StartError(error.to_string()))?;
        Ok(Started {
            identity: identity_of(&child),
            command: command_of(&spec),
            handle: Box::new(child),
        })
    }
}

pub(super) fn identity_of(child: &Child) -> AgentIdentity {
    AgentIdentity::Process { pid: child.pid() }
}

/// The command line, for display.
pub(super) fn command_of(spec: &ProcessSpec) -> Vec<String> {
    let program = spec.program.display().to_string();
    let args = spec.args.iter().map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(program).chain(args).collect()
}

impl Runner<AgentJob> for ProcessRunner {
    fn start(&self, job: AgentJob, events: RunnerEvents) -> Result<Started, StartError> {
        let command = job.command().map_err(|error| StartError(error.to_string()))?;
        self.start(command, events)
    }
}

impl Handle for Child {
    fn stop(&self, grace: Duration) {
        Self::stop(self, grace);
    }

    fn kill(&self) {
        Self::kill(self);
    }

    fn screen(&self) -> Option<Screen> {
        Self::screen(self)
    }
}
