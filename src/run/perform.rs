//! What the engine asks for, done.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::Sender;

use crate::agent::{Invocation, NESTED_SESSION, StdinSource, Terminal};
use crate::engine::{Action, GateRule, Input};
use crate::event::{RunEvent, RunOutcome};
use crate::process::{Child, Environment, LineSplitter, Report, Spec, Stdin, Transport};
use crate::transcript::Opening;

use super::inbox::Message;
use super::session::{AgentSession, Excerpt, Session, SessionKind, Stream};
use super::{Hands, RunError, summary};

/// Wide enough that no program thinks of wrapping.
const TERMINAL_SIZE: (u16, u16) = (50, 500);

impl Hands<'_> {
    /// Does one thing; returns how the run ended if that was its end.
    pub(super) fn perform(&mut self, action: Action) -> Result<Option<RunOutcome>, RunError> {
        match action {
            Action::Emit(event) => {
                self.keep(&event)?;
                self.emit(event)?;
            }
            Action::ReadPrompt => {
                let prompt = self.setup.prompt.read();
                self.todo.push_back(Input::Prompt(prompt));
            }
            Action::Launch {
                iteration,
                attempt,
                prompt,
                session,
            } => {
                let input = self.launch(iteration, attempt, &prompt, session.as_deref())?;
                self.todo.push_back(input);
            }
            Action::RunGate(gate) => self.run_gate(&gate),
            Action::Stop { grace } => {
                if let Some(session) = &self.session {
                    session.child.stop(grace);
                }
            }
            Action::Kill => {
                if let Some(session) = &self.session {
                    session.child.kill();
                }
            }
            Action::Finish(outcome) => return Ok(Some(outcome)),
        }
        Ok(None)
    }

    /// Some events also have a file of their own.
    fn keep(&mut self, event: &RunEvent) -> Result<(), RunError> {
        match event {
            RunEvent::IterationEnded { .. } => {
                if let Some(files) = self.files.take() {
                    files.write_outcome(event)?;
                }
            }
            RunEvent::RunEnded { .. } => {
                self.setup
                    .run
                    .write_summary(&summary::markdown(&self.setup.header, event))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Starts the agent with a prompt. What fails for the agent's sake is the engine's business; what fails for the
    /// disk's sake ends the run.
    fn launch(
        &mut self,
        iteration: u64,
        attempt: u64,
        prompt: &str,
        session: Option<&str>,
    ) -> Result<Input, RunError> {
        let prompt = &*self.setup.agent.wording(prompt);
        let files = self.setup.run.iteration(iteration, attempt)?;
        let prompt_file = files.write_prompt(prompt)?;
        let streams = (
            Stream {
                raw: files.raw_stdout()?,
                lines: LineSplitter::new(self.setup.max_line_bytes),
            },
            Stream {
                raw: files.raw_stderr()?,
                lines: LineSplitter::new(self.setup.max_line_bytes),
            },
        );
        (self.iteration, self.files) = (iteration, Some(files));
        let failed = |error: &dyn std::fmt::Display| {
            Ok(Input::CouldNotStart {
                error: error.to_string(),
            })
        };
        let invocation = match self.setup.agent.resuming(prompt, &prompt_file, session) {
            Ok(invocation) => invocation,
            Err(error) => return failed(&error),
        };
        let scratch = match tempfile::Builder::new().prefix("ralph-").tempdir() {
            Ok(scratch) => scratch,
            Err(error) => return failed(&format!("cannot make a directory for temporary files: {error}")),
        };
        let mut environment = self.environment(iteration);
        environment.set.push(("TMPDIR".into(), scratch.path().into()));
        let command =
            std::iter::once(invocation.program.display().to_string()).chain(invocation.args.clone());
        let command = command.collect();
        let adapter = (self.setup.format.open)(&Opening { prompt });
        let session = AgentSession::new(adapter, streams, scratch);
        let spec = self.spec(invocation, environment);
        Ok(match self.start(&spec, SessionKind::Agent(Box::new(session))) {
            Ok(pid) => Input::Launched { pid, command },
            Err(error) => Input::CouldNotStart {
                error: error.to_string(),
            },
        })
    }

    fn run_gate(&mut self, gate: &GateRule) {
        let spec = Spec {
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), OsString::from(&gate.command)],
            environment: self.environment(self.iteration),
            cwd: self.setup.workspace.clone(),
            stdin: Stdin::Null,
            stdout: Transport::Pipe,
        };
        if let Err(error) = self.start(&spec, SessionKind::Gate(Excerpt::default())) {
            self.todo.push_back(Input::GateEnded {
                end: None,
                output: error.to_string(),
            });
        }
    }

    fn start(&mut self, spec: &Spec, work: SessionKind) -> Result<u32, crate::process::ProcessError> {
        self.generation += 1;
        let generation = self.generation;
        let sender: Sender<Message> = self.inbox.sender();
        let report = move |report: Report| drop(sender.send(Message::Child { generation, report }));
        let child = Child::spawn(&self.setup.keeper, spec, report)?;
        let pid = child.pid();
        self.session = Some(Session {
            generation,
            child,
            work,
        });
        Ok(pid)
    }

    fn spec(&self, invocation: Invocation, environment: Environment) -> Spec {
        let (rows, columns) = TERMINAL_SIZE;
        Spec {
            program: invocation.program,
            args: invocation.args.into_iter().map(OsString::from).collect(),
            environment,
            cwd: self.setup.workspace.clone(),
            stdin: match invocation.stdin {
                StdinSource::Null => Stdin::Null,
                StdinSource::PromptFile(path) => Stdin::File(path),
            },
            stdout: match invocation.terminal {
                Terminal::Pipe => Transport::Pipe,
                Terminal::Pty => Transport::Pty { rows, columns },
            },
        }
    }

    fn environment(&self, iteration: u64) -> Environment {
        let own = self.setup.agent.environment.iter();
        let mut set: Vec<(OsString, OsString)> =
            own.map(|(name, value)| (name.into(), value.into())).collect();
        set.push(("RALPH_RUN_ID".into(), self.setup.header.run_id.clone().into()));
        set.push(("RALPH_ITERATION".into(), iteration.to_string().into()));
        if let Ok(ralph) = std::env::current_exe() {
            set.push(("RALPH_BIN".into(), ralph.into()));
        }
        Environment {
            remove: NESTED_SESSION.iter().map(OsString::from).collect(),
            set,
        }
    }
}
