//! The job that is running, an agent or a gate: its start, its output and its end.

use crate::engine::{GateEnd, Input};
use crate::event::{AgentEnd, DeniedAccess, ProcessEnd, RunEvent, RunOutcome, StreamName, TranscriptEvent};
use crate::failpoint;
use crate::runner::{Handle, OutputBytes, RunnerEvent, Started};

use super::agent_output::AgentOutput;
use super::effects::{AttemptFiles, Effect, StartResult};
use super::excerpt::Excerpt;
use super::queue::Generation;
use super::{Driver, RunError};

/// The job that runs now.
pub(super) struct RunningJob {
    pub(super) generation: Generation,
    pub(super) work: Work,
    handle: JobHandle,
}

pub(super) enum Work {
    Agent {
        /// The index of the agent.
        agent: usize,
        output: Box<AgentOutput>,
    },
    Reviewer {
        agent: usize,
        output: Box<AgentOutput>,
    },
    Gate(Excerpt),
}

enum JobHandle {
    /// Events that arrive before the start is reported are processed after it.
    Starting {
        early: Vec<RunnerEvent>,
    },
    Running(Box<dyn Handle>),
}

impl RunningJob {
    pub(super) fn starting(generation: Generation, work: Work) -> Self {
        let handle = JobHandle::Starting { early: Vec::new() };
        Self {
            generation,
            work,
            handle,
        }
    }
}

/// More hosts and paths than a reader needs.
const MAX_DENIED: usize = 100;

impl Driver<'_> {
    fn job_of(&mut self, generation: Generation) -> Option<&mut RunningJob> {
        self.attempt
            .job
            .as_mut()
            .filter(|job| job.generation == generation)
    }

    /// Applies `act` to the running job. A job that is still starting is abandoned instead: its process is killed when
    /// the start is reported.
    pub(super) fn with_handle(&mut self, act: impl FnOnce(&dyn Handle)) {
        match self.attempt.job.take() {
            Some(RunningJob {
                work,
                handle: JobHandle::Starting { .. },
                ..
            }) => {
                self.leave_screen();
                self.todo.push_back(match work {
                    Work::Agent { .. } | Work::Reviewer { .. } => Input::AgentEnded {
                        end: AgentEnd::Lost {
                            reason: "stopped before it started".to_owned(),
                        },
                        swept: 0,
                    },
                    Work::Gate(_) => Input::GateEnded(GateEnd {
                        end: None,
                        output: String::new(),
                        ..GateEnd::default()
                    }),
                });
            }
            Some(job) => {
                if let JobHandle::Running(handle) = &job.handle {
                    act(handle.as_ref());
                }
                self.attempt.job = Some(job);
            }
            None => {}
        }
    }

    /// A start that was abandoned drops the handle, which kills the job.
    pub(super) fn on_started(&mut self, result: StartResult) -> Result<Option<RunOutcome>, RunError> {
        let StartResult {
            generation,
            started,
            files,
        } = result;
        if self.job_of(generation).is_none() {
            if let Some(AttemptFiles { scratch, .. }) = files {
                self.discard(Box::new(scratch));
            }
            return Ok(None);
        }
        if let Some(AttemptFiles {
            files,
            prompt_file,
            scratch,
        }) = files
        {
            let agents = &self.setup.agents;
            match self.attempt.job.as_mut().map(|job| &mut job.work) {
                Some(Work::Agent { agent, output }) => {
                    output.set_usage_file(agents[*agent].agent.usage_file(&prompt_file));
                    self.attempt.files = Some(files);
                }
                Some(Work::Reviewer { agent, output }) => {
                    output.set_usage_file(agents[*agent].agent.usage_file(&prompt_file));
                }
                Some(Work::Gate(_)) | None => {}
            }
            self.attempt.scratch = scratch;
        }
        match started {
            Ok(started) => self.job_started(generation, started),
            Err(error) => {
                let failed = self.attempt.job.take().map(|job| job.work);
                self.leave_screen();
                self.discard_scratch();
                let error = error.to_string();
                let is_worker = matches!(failed, Some(Work::Agent { .. }));
                if is_worker && !self.agent().agent.program.exists() {
                    self.step(Input::ProgramMissing)?;
                }
                self.step(match failed {
                    Some(Work::Gate(_)) => Input::GateEnded(GateEnd {
                        end: None,
                        output: error,
                        ..GateEnd::default()
                    }),
                    Some(Work::Agent { .. } | Work::Reviewer { .. }) | None => Input::CouldNotStart { error },
                })
            }
        }
    }

    fn job_started(
        &mut self,
        generation: Generation,
        started: Started,
    ) -> Result<Option<RunOutcome>, RunError> {
        let Started {
            identity,
            command,
            handle,
        } = started;
        if let Err(error) = self.attach_screen(handle.as_ref()) {
            // Dropping the handle kills the agent.
            (self.attempt.job, self.attempt.files) = (None, self.attempt.files.take());
            self.leave_screen();
            self.discard_scratch();
            let error = format!("the terminal cannot be used: {error}");
            return self.step(Input::CouldNotStart { error });
        }
        let Some(job) = self.job_of(generation) else {
            return Ok(None);
        };
        let before = std::mem::replace(&mut job.handle, JobHandle::Running(handle));
        if let Work::Agent { .. } = &job.work
            && let Some(outcome) = self.step(Input::AgentStarted { identity, command })?
        {
            return Ok(Some(outcome));
        }
        if let JobHandle::Starting { early } = before {
            for event in early {
                if let Some(outcome) = self.on_runner_event(generation, event)? {
                    return Ok(Some(outcome));
                }
            }
        }
        Ok(None)
    }

    /// Events of an earlier job are ignored.
    pub(super) fn on_runner_event(
        &mut self,
        generation: Generation,
        event: RunnerEvent,
    ) -> Result<Option<RunOutcome>, RunError> {
        let Some(job) = self.job_of(generation) else {
            return Ok(None);
        };
        if let JobHandle::Starting { early } = &mut job.handle {
            early.push(event);
            return Ok(None);
        }
        match event {
            RunnerEvent::Output { stream, bytes } => self.on_output(stream, bytes),
            RunnerEvent::Denied { host } => {
                self.denied(DeniedAccess::Host(host))?;
                Ok(None)
            }
            RunnerEvent::Ended { end, swept } => {
                self.job_ended(end, swept)?;
                Ok(None)
            }
        }
    }

    /// Reports once what the sandbox has denied.
    pub(super) fn denied(&mut self, access: DeniedAccess) -> Result<(), RunError> {
        let name = match &access {
            DeniedAccess::Host(name) | DeniedAccess::Path(name) => name,
        };
        // An agent could invent names without end.
        let is_full = self.attempt.denied.len() >= MAX_DENIED;
        if is_full || !self.attempt.denied.insert(name.clone()) {
            return Ok(());
        }
        let iteration = self.attempt.iteration;
        self.emit(RunEvent::Denied { iteration, access })
    }

    /// Parses the agent's output, passes the events to the engine, and writes the bytes to the user's terminal in interactive mode.
    fn on_output(&mut self, stream: StreamName, bytes: OutputBytes) -> Result<Option<RunOutcome>, RunError> {
        let mut events = std::mem::take(&mut self.buffers.events);
        let mut stderr = Vec::new();
        match self.attempt.job.as_mut().map(|job| &mut job.work) {
            Some(Work::Agent { output, .. } | Work::Reviewer { output, .. }) => {
                failpoint!(self.host.panics(), Adapter);
                output.parse(stream, &bytes, &mut events, &mut stderr);
            }
            Some(Work::Gate(excerpt)) => {
                excerpt.push(&bytes);
                return Ok(None);
            }
            None => return Ok(None),
        }
        let outcome = self.on_parsed(bytes.len() as u64, &mut events, stderr);
        self.buffers.events = events;
        if let Some(interactive) = &self.terminal.interactive {
            interactive.write_output(bytes);
        }
        outcome
    }

    fn on_parsed(
        &mut self,
        bytes: u64,
        events: &mut Vec<TranscriptEvent>,
        stderr: Vec<String>,
    ) -> Result<Option<RunOutcome>, RunError> {
        failpoint!(self.host.panics(), Output);
        if let Some(outcome) = self.step(Input::OutputSeen { bytes })? {
            return Ok(Some(outcome));
        }
        let inputs = events.drain(..).map(Input::Transcript);
        for input in inputs.chain(stderr.into_iter().map(Input::Stderr)) {
            if let Some(outcome) = self.step(input)? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    fn job_ended(&mut self, end: AgentEnd, swept: u64) -> Result<(), RunError> {
        let Some(RunningJob { work, handle, .. }) = self.attempt.job.take() else {
            return Ok(());
        };
        self.leave_screen();
        if let JobHandle::Running(handle) = handle {
            self.discard(Box::new(handle));
        }
        match work {
            Work::Agent { output, .. } | Work::Reviewer { output, .. } => {
                self.start_effect(Effect::RemovePlantedFiles);
                self.todo.extend(output.finish());
                // The agent's last events must be known before its iteration is judged.
                self.poll_inbox()?;
                self.todo.push_back(Input::AgentEnded { end, swept });
                self.discard_scratch();
            }
            Work::Gate(excerpt) => self.start_effect(Effect::FinishGate {
                end: process_end(&end),
                output: excerpt.text(),
            }),
        }
        Ok(())
    }

    fn discard_scratch(&mut self) {
        if let Some(scratch) = self.attempt.scratch.take() {
            self.discard(Box::new(scratch));
        }
    }

    /// Drops a value on the thread of the effects.
    fn discard(&self, value: Box<dyn std::any::Any + Send>) {
        drop(self.effects.send(Effect::Discard(value)));
    }
}

/// The end of a gate, which is always a process.
fn process_end(end: &AgentEnd) -> Option<ProcessEnd> {
    match end {
        AgentEnd::Exited { code } => Some(ProcessEnd::Exited { code: *code }),
        AgentEnd::Signaled { signal } => Some(ProcessEnd::Signaled { signal: *signal }),
        AgentEnd::Lost { .. } => None,
    }
}
