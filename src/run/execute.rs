//! What the engine asks for, done.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use crate::agent::{Invocation, NESTED_SESSION, StdinSource, Terminal};
use crate::engine::{Action, GateRule, Input};
use crate::event::{RunEvent, RunOutcome};
use crate::process::{
    Child, ChildEvent, Environment, ProcessError, ProcessSpec, Size, Stdin, Transport, scratch,
};
use crate::transcript::{Opening, jq};
use crate::ui::Keyboard;

use super::interactive::InteractiveSession;
use super::prompt_user::Answers;
use super::queue::{ChildSender, Message, OutputBytes};
use super::session::{AgentSession, Excerpt, Raw, Session, SessionKind};
use super::{Driver, Progress, RunError, gate, summary};

/// Wide enough that no program thinks of wrapping.
const TERMINAL_SIZE: (u16, u16) = (50, 500);

impl Driver<'_> {
    /// Does one thing; returns how the run ended if that was its end.
    pub(super) fn execute(&mut self, action: Action) -> Result<Option<RunOutcome>, RunError> {
        match action {
            Action::Emit(event) => self.tell(event)?,
            Action::ReadPrompt => {
                self.poll_inbox()?;
                self.look_at_tree()?;
                let prompt = self.setup.prompt.read();
                self.todo.push_back(Input::Prompt(prompt));
            }
            Action::Launch {
                iteration,
                attempt,
                hat,
                prompt,
                session,
            } => {
                self.hat = hat;
                // Before there is a trace of an attempt anywhere else, the journal has it.
                self.flush()?;
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
            Action::Ask => self.ask()?,
            Action::Finish(outcome) => return Ok(Some(outcome)),
        }
        Ok(None)
    }

    /// Tells an event to the world: files of its own first, then the sinks, then whoever waits for it.
    fn tell(&mut self, event: RunEvent) -> Result<(), RunError> {
        let event = self.secrets.redact(event);
        self.passed_gates.apply(&event);
        self.keep(&event)?;
        let complaint = self.hooking.tell(&event, &self.setup.header, &self.passed_gates);
        if let Some(text) = complaint {
            self.warn(text)?;
        }
        if let RunEvent::RunEnded { .. } = &event {
            self.wait_for_hooks()?;
        }
        let told = match &event {
            RunEvent::CommandReceived { id, .. } => Some(id.clone()),
            _ => None,
        };
        self.record(event)?;
        if let Some(id) = told {
            self.mail.journaled(&id);
        }
        Ok(())
    }

    pub(super) fn hook_ended(&mut self, complaint: Option<String>) -> Result<(), RunError> {
        self.hooking.waiting -= 1;
        match complaint {
            Some(text) => self.warn(text),
            None => Ok(()),
        }
    }

    /// The end of the run is its last word: what hooks have to complain of comes before it. They have their time, but
    /// a user who presses Ctrl-C does not want to wait for them.
    fn wait_for_hooks(&mut self) -> Result<(), RunError> {
        self.flush()?;
        while self.hooking.waiting > 0 {
            let message = self.inbox.wait(None);
            self.now = self.clock.now();
            match message {
                Some(Message::HookEnded(complaint)) => self.hook_ended(complaint)?,
                Some(Message::Signal(signal)) => {
                    if let Some(Input::Interrupted(_)) = super::queue::meaning(signal) {
                        return Ok(());
                    }
                }
                Some(Message::TerminalLost) => return Ok(()),
                Some(Message::UserCommand(command)) => {
                    if let Some(Input::Interrupted(_)) = super::commands::meaning(command) {
                        return Ok(());
                    }
                }
                Some(Message::Panicked) => return Err(RunError::Panicked),
                Some(
                    Message::Child { .. }
                    | Message::Said { .. }
                    | Message::Unkept(_)
                    | Message::Answer(_)
                    | Message::Typed(_),
                )
                | None => {}
            }
        }
        Ok(())
    }

    /// How the workspace looks before an iteration.
    fn look_at_tree(&mut self) -> Result<(), RunError> {
        let Some(tree) = &mut self.tree else { return Ok(()) };
        match tree.look() {
            Ok(fingerprint) if tree.progress == Progress::Watched => {
                self.todo.push_back(Input::WorkspaceScanned { fingerprint });
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(why) => self.complain_of_tree(Some(why)),
        }
    }

    /// Reads answers from the keyboard, from the first question on.
    fn ask(&mut self) -> Result<(), RunError> {
        if self.keyboard == Keyboard::Free && self.listening.is_none() {
            let answers = Answers::begin(self.inbox.sender()).map_err(RunError::Keyboard)?;
            self.listening = Some(answers);
        }
        Ok(())
    }

    /// Some events also have a file of their own.
    pub(super) fn keep(&mut self, event: &RunEvent) -> Result<(), RunError> {
        match event {
            RunEvent::IterationEnded { .. } => {
                if let Some(files) = self.files.take() {
                    files.write_outcome(event)?;
                }
            }
            RunEvent::RunEnded { .. } => {
                self.setup.run.write_summary(&summary::markdown(
                    &self.setup.header,
                    event,
                    &self.passed_gates,
                ))?;
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
        let prompt = &*self.setup.agent.escape_prompt(prompt);
        let files = self.setup.run.iteration(iteration, attempt)?;
        let prompt_file = files.write_prompt(prompt)?;
        let raw = Raw {
            stdout: files.raw_stdout()?,
            stderr: files.raw_stderr()?,
        };
        (self.iteration, self.files) = (iteration, Some(files));
        let failed = |error: &dyn std::fmt::Display| {
            Ok(Input::CouldNotStart {
                error: error.to_string(),
            })
        };
        let session = session.or(self.driven.session.as_deref());
        let invocation = match self.setup.agent.resuming(prompt, &prompt_file, session) {
            Ok(invocation) => invocation,
            Err(error) => return failed(&error),
        };
        let scratch = match scratch("ralph-") {
            Ok(scratch) => scratch,
            Err(error) => return failed(&format!("cannot make a directory for temporary files: {error}")),
        };
        let mut environment = self.environment(iteration);
        environment.set.push(("TMPDIR".into(), scratch.path().into()));
        let command = std::iter::once(invocation.program.display().to_string()).chain(
            invocation
                .args
                .iter()
                .map(|arg| arg.to_string_lossy().into_owned()),
        );
        let command = command.collect();
        let adapter = jq::read(self.setup.format, self.setup.filter.as_ref(), &Opening { prompt });
        let usage_file = invocation.usage_file.clone();
        let session = AgentSession::new(adapter, self.setup.max_line_bytes, raw, scratch, usage_file);
        let started = match invocation.terminal {
            Terminal::Pipe | Terminal::Pty => {
                let spec = spec(invocation, environment, &self.setup.workspace);
                self.start_agent(&spec, session)
                    .map_err(|error| error.to_string())
            }
            Terminal::Screen => self.start_on_a_screen(invocation, environment, session),
        };
        Ok(match started {
            Ok(pid) => Input::Launched { pid, command },
            Err(error) => Input::CouldNotStart { error },
        })
    }

    /// Lends the user's terminal to the agent.
    fn start_on_a_screen(
        &mut self,
        invocation: Invocation,
        environment: Environment,
        session: AgentSession,
    ) -> Result<u32, String> {
        let unusable = |error: std::io::Error| format!("the terminal cannot be used: {error}");
        self.listening = None;
        self.show(|front_end| front_end.suspend());
        let sitting = InteractiveSession::begin(&self.inbox).map_err(unusable)?;
        let mut spec = spec(invocation, environment, &self.setup.workspace);
        spec.stdout = Transport::Screen(sitting.size());
        self.sitting = Some(sitting);
        let pid = self
            .start_agent(&spec, session.on_a_screen())
            .map_err(|error| error.to_string());
        let screen = self.session.as_ref().and_then(|session| session.child.screen());
        let attended = match (&pid, &mut self.sitting, screen) {
            (Ok(_), Some(sitting), Some(screen)) => sitting.attend(screen, self.inbox.sender()),
            (Ok(_) | Err(_), _, _) => Ok(()),
        };
        if pid.is_err() || attended.is_err() {
            // Dropped, it is killed.
            self.session = None;
            self.get_up();
        }
        attended.map_err(unusable)?;
        pid
    }

    /// The terminal is the user's again; what happened meanwhile is shown.
    pub(super) fn get_up(&mut self) {
        let held = self
            .sitting
            .take()
            .map(InteractiveSession::end)
            .unwrap_or_default();
        held.iter()
            .for_each(|record| self.show(|front_end| front_end.accept(record)));
    }

    fn run_gate(&mut self, gate: &GateRule) {
        let environment = self.environment(self.iteration);
        let spec = gate::spec(gate, environment, &self.setup.workspace);
        if let Err(error) = self.start(&spec, SessionKind::Gate(Excerpt::default()), ChildSender::report) {
            self.todo.push_back(Input::GateEnded {
                end: None,
                output: error.to_string(),
            });
        }
    }

    /// What the agent prints is read and kept where it is drained, beside the loop that judges it.
    fn start_agent(&mut self, spec: &ProcessSpec, agent: AgentSession) -> Result<u32, ProcessError> {
        let agent = Arc::new(agent);
        let reader = Arc::clone(&agent);
        let report = move |door: &ChildSender, report| match report {
            ChildEvent::Output { stream, chunk } => {
                let said = reader.take(stream, &chunk);
                let bytes = OutputBytes::from(chunk);
                door.tell(bytes.clone(), said);
                // Last: whoever reads along need not wait for a file.
                let kept = reader.keep(stream, &bytes);
                kept.unwrap_or_else(|error| door.complain(error));
            }
            ChildEvent::Ended(_) => door.report(report),
        };
        self.start(spec, SessionKind::Agent(agent), report)
    }

    fn start(
        &mut self,
        spec: &ProcessSpec,
        work: SessionKind,
        report: impl Fn(&ChildSender, ChildEvent) + Send + Sync + 'static,
    ) -> Result<u32, ProcessError> {
        self.generation += 1;
        let generation = self.generation;
        let door = self.inbox.door_of(generation);
        let child = Child::spawn(&self.setup.supervisors, spec, move |news| report(&door, news))?;
        let pid = child.pid();
        self.session = Some(Session {
            generation,
            child,
            work,
        });
        Ok(pid)
    }

    fn environment(&self, iteration: u64) -> Environment {
        let own = self.setup.agent.environment.iter();
        let mut set: Vec<(OsString, OsString)> =
            own.map(|(name, value)| (name.into(), value.into())).collect();
        set.push(("RALPH_RUN_ID".into(), self.setup.header.run_id.clone().into()));
        set.push(("RALPH_ITERATION".into(), iteration.to_string().into()));
        if let Some(hat) = &self.hat {
            set.push(("RALPH_HAT".into(), hat.into()));
        }
        if let Ok(ralph) = std::env::current_exe() {
            set.push(("RALPH_BIN".into(), ralph.into()));
        }
        Environment {
            // Without a hat, none may shine through from a run around this one.
            remove: NESTED_SESSION
                .iter()
                .copied()
                .chain(["RALPH_HAT"])
                .map(OsString::from)
                .collect(),
            set,
        }
    }
}

/// The process that a call stands for.
pub(super) fn spec(invocation: Invocation, environment: Environment, workspace: &Path) -> ProcessSpec {
    let (rows, columns) = TERMINAL_SIZE;
    ProcessSpec {
        program: invocation.program,
        args: invocation.args,
        environment,
        cwd: workspace.to_owned(),
        stdin: match invocation.stdin {
            StdinSource::Null => Stdin::Null,
            StdinSource::PromptFile(path) => Stdin::File(path),
            StdinSource::Screen => Stdin::Screen,
        },
        stdout: match invocation.terminal {
            Terminal::Pipe => Transport::Pipe,
            Terminal::Pty => Transport::Pty { rows, columns },
            Terminal::Screen => Transport::Screen(Size { rows, columns }),
        },
    }
}
