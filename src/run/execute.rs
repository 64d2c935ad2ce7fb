//! Carries out the engine's actions. Nothing here waits: actions that may block are passed to the effects thread.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::{NESTED_SESSION, Terminal};
use crate::engine::{Action, GateVersion, HookKind, Input, ReviewerLaunch};
use crate::event::trace_ids::trace_parent;
use crate::event::{RunEvent, RunOutcome};
use crate::ok_or_log;
use crate::policy::Gate;
use crate::process::{Environment, Size};
use crate::runner::Handle;
use crate::snapshot::SnapshotStore;
use crate::store::IterationFiles;
use crate::transcript::{self, AdapterContext, jq};
use crate::ui::{KeyboardUse, pretty_json};

use super::accounts::AccountEffect;
use super::agent_output::AgentOutput;
use super::commands::CommandSource;
use super::effects::{AgentRole, AgentStart, Effect};
use super::excerpt::Excerpt;
use super::interactive::InteractiveSession;
use super::prompt_user::{AnswerReader, QuestionKind};
use super::queue::Generation;
use super::runner_events::{RunningJob, Work};
use super::{Driver, RunAgent, RunError, summary};

impl Driver<'_> {
    /// Carries out one action; returns the outcome if it ends the run.
    pub(super) fn execute(&mut self, action: Action) -> Result<Option<RunOutcome>, RunError> {
        match action {
            Action::Emit(event) => self.emit(event)?,
            Action::ScanWorkspace => self.start_effect(Effect::ScanWorkspace),
            Action::ReadPrompt => {
                self.poll_inbox()?;
                self.start_effect(Effect::ReadPrompt);
            }
            Action::Launch {
                iteration,
                attempt,
                hat,
                agent,
                prompt,
                session,
            } => {
                (self.attempt.hat, self.attempt.agent) = (hat, agent);
                self.attempt.iteration = iteration;
                // The attempt is journaled before its files are created.
                self.recorder.flush()?;
                self.log.start_agent(attempt);
                return self.launch(attempt, &prompt, session);
            }
            Action::TakeSnapshot { iteration, moment } => {
                self.start_effect(Effect::TakeSnapshot { iteration, moment });
            }
            Action::CheckDisk => self.start_effect(Effect::CheckDisk),
            Action::RestoreSnapshot { iteration, id } => {
                self.start_effect(Effect::RestoreSnapshot { iteration, id });
            }
            Action::CheckPaths => self.start_effect(Effect::CheckPaths),
            Action::ResolveSession { agent, reported } => self.resolve_session(agent, reported),
            Action::RequestPlace { .. }
            | Action::ReleasePlace { .. }
            | Action::ReportLimit { .. }
            | Action::ReportWait(_)
            | Action::ReportSpend { .. } => self.use_account(action),
            Action::RunGate(gate) => self.run_gate(gate, GateVersion::AsLeft)?,
            Action::RunCheckpoint(command) => self.run_gate(command, GateVersion::AsLeft)?,
            Action::RunProtectedGate(gate) => self.run_gate(gate, GateVersion::Protected)?,
            Action::PrepareReview { .. } | Action::LaunchReviewer(_) | Action::CheckReview => {
                // The effect reads the journal, and a reviewer is journaled before its files are created.
                self.recorder.flush()?;
                self.execute_review(action);
            }
            Action::CheckTree { tree } => {
                // The effect reads the journal.
                self.recorder.flush()?;
                self.start_effect(Effect::CheckTree { tree });
            }
            Action::RunHook { kind, event } => self.run_hook(kind, *event)?,
            Action::WriteSummary(event) => self.write_summary(*event)?,
            Action::Stop { grace } => self.with_handle(|handle: &dyn Handle| handle.stop(grace)),
            Action::Kill => self.with_handle(|handle: &dyn Handle| handle.kill()),
            Action::AskUser => self.ask(QuestionKind::Continue)?,
            Action::AskQuestion if io::stdin().is_terminal() => self.ask(QuestionKind::OfAgent)?,
            Action::AskQuestion => {}
            Action::Finish(outcome) => return Ok(Some(outcome)),
        }
        Ok(None)
    }

    fn execute_review(&mut self, action: Action) {
        match action {
            Action::PrepareReview {
                gate,
                first_round,
                last_round,
            } => self.start_effect(Effect::PrepareReview {
                gate,
                earlier: [first_round, last_round],
            }),
            Action::LaunchReviewer(launch) => self.launch_reviewer(*launch),
            Action::CheckReview => self.start_effect(Effect::CheckReview),
            _ => {}
        }
    }

    /// The thread of the effects lives as long as the driver, so sending cannot fail before the run has ended.
    pub(super) fn start_effect(&self, effect: Effect) {
        drop(self.effects.send(effect));
    }

    fn resolve_session(&self, agent: usize, reported: Option<String>) {
        self.start_effect(Effect::ResolveSession {
            agent: Arc::clone(&self.setup.agents[agent].agent),
            output: self.attempt.files.as_ref().map(IterationFiles::stdout_path),
            reported,
        });
    }

    fn use_account(&self, action: Action) {
        let effect = match action {
            Action::RequestPlace { agent, urgency } => AccountEffect::Request { agent, urgency },
            Action::ReleasePlace { agent, end } => AccountEffect::Release { agent, end },
            Action::ReportLimit { agent, report } => AccountEffect::Limit { agent, report },
            Action::ReportWait(wait) => AccountEffect::Wait(wait),
            Action::ReportSpend { agent, usd } => AccountEffect::Spend { agent, usd },
            _ => return,
        };
        self.start_effect(Effect::Account(effect));
    }

    fn run_hook(&mut self, kind: HookKind, event: RunEvent) -> Result<(), RunError> {
        // Hooks read the journal, so it is complete before they start.
        self.recorder.flush()?;
        let event = self.recorder.redact(event);
        let (header, gates) = (&self.setup.header, &self.recorder.passed_gates);
        self.hooks.run(kind, &event, header, gates);
        Ok(())
    }

    fn write_summary(&mut self, ended: RunEvent) -> Result<(), RunError> {
        let ended = self.recorder.prepare(ended);
        let text = summary::markdown(
            &self.setup.header,
            &ended,
            &self.recorder.passed_gates,
            self.setup.engine.findings(),
        );
        Ok(self.setup.run.write_summary(&text)?)
    }

    /// Writes the receipt of the run that has ended. `ralph receipt` can create it later, so a problem is only logged.
    pub(super) fn write_receipt(&mut self) {
        let run = &self.setup.run;
        let store = SnapshotStore::at(run.project().snapshots(), self.host.supervisors());
        let gates = self.setup.engine.gates();
        let receipt = self.recorder.receipt(run.directory(), gates, &store);
        if let Some(receipt) = ok_or_log!(receipt, "cannot create the receipt") {
            ok_or_log!(
                run.write_receipt(pretty_json(&receipt).as_bytes()),
                "cannot write the receipt"
            );
        }
    }

    /// Reads answers from stdin, from the first question on.
    fn ask(&mut self, kind: QuestionKind) -> Result<(), RunError> {
        if self.terminal.keyboard == KeyboardUse::Free && self.terminal.answers.is_none() {
            let commands = self.queue.commands(CommandSource::Stdin);
            let answers = AnswerReader::start(commands, self.host.panics());
            self.terminal.answers = Some(answers.map_err(RunError::Keyboard)?);
        }
        if let Some(answers) = &self.terminal.answers {
            answers.expect(kind);
        }
        Ok(())
    }

    /// The current agent.
    pub(super) fn agent(&self) -> &RunAgent {
        &self.setup.agents[self.attempt.agent]
    }

    fn next_generation(&mut self) -> Generation {
        self.attempt.generation += 1;
        self.attempt.generation
    }

    /// Starts the agent with a prompt.
    fn launch(
        &mut self,
        attempt: u64,
        prompt: &str,
        session: Option<String>,
    ) -> Result<Option<RunOutcome>, RunError> {
        let agent = Arc::clone(&self.agent().agent);
        let prompt = agent.escape_prompt(prompt).into_owned();
        let screen = match agent.terminal {
            Terminal::Interactive => match self.enter_screen() {
                Ok(size) => Some(size),
                Err(error) => {
                    let error = format!("the terminal cannot be used: {error}");
                    return self.step(Input::CouldNotStart { error });
                }
            },
            Terminal::Pipe | Terminal::Pty => None,
        };
        let mut output = self.parser_of(self.attempt.agent, &prompt);
        if screen.is_some() {
            output = output.of_screen();
        }
        let generation = self.next_generation();
        let agent_index = self.attempt.agent;
        let work = Work::Agent {
            agent: agent_index,
            output: Box::new(output),
        };
        self.attempt.job = Some(RunningJob::starting(generation, work));
        let environment = self.environment(agent_index, Some(attempt));
        self.start_effect(Effect::StartAgent(AgentStart {
            generation,
            agent,
            iteration: self.attempt.iteration,
            attempt,
            prompt,
            session,
            role: AgentRole::Worker,
            environment,
            hat: self.attempt.hat.clone(),
            screen,
            span: self.log.span(),
        }));
        Ok(None)
    }

    /// Starts a reviewer, which works in its own checkout and session.
    fn launch_reviewer(&mut self, launch: ReviewerLaunch) {
        let ReviewerLaunch {
            iteration,
            attempt,
            number,
            reviewer,
            agent,
            prompt,
        } = launch;
        let resolved = Arc::clone(&self.setup.agents[agent].agent);
        let prompt = resolved.escape_prompt(&prompt).into_owned();
        let output = Box::new(self.parser_of(agent, &prompt));
        let generation = self.next_generation();
        self.attempt.job = Some(RunningJob::starting(generation, Work::Reviewer { agent, output }));
        let mut environment = self.environment(agent, None);
        environment.set.push(("RALPH_REVIEWER".into(), reviewer.into()));
        self.start_effect(Effect::StartAgent(AgentStart {
            generation,
            agent: resolved,
            iteration,
            attempt,
            prompt,
            session: None,
            role: AgentRole::Reviewer { number },
            hat: None,
            environment,
            screen: None,
            span: self.log.span(),
        }));
    }

    /// The parser of an agent's output.
    fn parser_of(&self, agent: usize, prompt: &str) -> AgentOutput {
        let run_agent = &self.setup.agents[agent];
        let context = AdapterContext {
            prompt,
            usage: run_agent.agent.acp_usage().unwrap_or_default(),
        };
        let adapter = jq::open_adapter(run_agent.format, run_agent.filter.as_ref(), &context);
        let adapter = transcript::with_known_fields(run_agent.format, adapter);
        AgentOutput::new(adapter, self.setup.max_line_bytes)
    }

    /// Switches the user's terminal to raw mode for the agent; returns its size.
    fn enter_screen(&mut self) -> io::Result<Size> {
        self.terminal.answers = None;
        self.recorder.broadcast.suspend();
        let interactive = InteractiveSession::begin(&self.queue, self.host)?;
        let size = interactive.size();
        self.terminal.interactive = Some(interactive);
        Ok(size)
    }

    /// Connects the keyboard to the screen of an agent that has started.
    pub(super) fn attach_screen(&mut self, handle: &dyn Handle) -> io::Result<()> {
        match (&mut self.terminal.interactive, handle.screen()) {
            (Some(interactive), Some(screen)) => interactive.attach(screen, &self.queue, self.host.panics()),
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Restores the terminal, and shows the records of the meantime.
    pub(super) fn leave_screen(&mut self) {
        if self.terminal.interactive.take().is_some() {
            self.recorder.broadcast.resume();
        }
    }

    fn run_gate(&mut self, gate: Gate, version: GateVersion) -> Result<(), RunError> {
        // A clean gate reads the journal.
        self.recorder.flush()?;
        let environment = self.environment(self.attempt.agent, None);
        let generation = self.next_generation();
        self.attempt.job = Some(RunningJob::starting(generation, Work::Gate(Excerpt::default())));
        let span = self.log.span();
        self.start_effect(Effect::StartGate {
            generation,
            gate: Box::new(gate),
            version,
            environment,
            span,
        });
        Ok(())
    }

    /// `attempt` is that of the working agent, which receives the id of its span.
    fn environment(&self, agent: usize, attempt: Option<u64>) -> Environment {
        let own = self.setup.agents[agent].agent.environment.iter();
        let mut set: Vec<(OsString, OsString)> =
            own.map(|(name, value)| (name.into(), value.into())).collect();
        set.push(("RALPH_RUN_ID".into(), self.setup.header.run_id.clone().into()));
        set.push((
            "RALPH_ITERATION".into(),
            self.attempt.iteration.to_string().into(),
        ));
        if let Some(hat) = &self.attempt.hat {
            set.push(("RALPH_HAT".into(), hat.into()));
        }
        if let Some(attempt) = attempt {
            let parent = trace_parent(&self.setup.header.run_id, self.attempt.iteration, attempt);
            set.push(("TRACEPARENT".into(), parent.into()));
        }
        if let Some(ralph) = own_program() {
            set.push(("RALPH_BIN".into(), ralph.into()));
        }
        Environment {
            // If this run was started by an agent of another run, the hat of that run does not apply.
            remove: NESTED_SESSION
                .iter()
                .copied()
                .chain(["RALPH_HAT", "RALPH_REVIEWER", "RALPH_INBOX"])
                .map(OsString::from)
                .collect(),
            set,
        }
    }
}

/// The path of this program. After an upgrade, the kernel reports the path of the deleted file; then this is the path of the new
/// one, or the running image if there is none.
fn own_program() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?;
    let Some(replaced) = path.to_str().and_then(|path| path.strip_suffix(" (deleted)")) else {
        return Some(path);
    };
    match Path::new(replaced).exists() {
        true => Some(replaced.into()),
        false => Some(format!("/proc/{}/exe", std::process::id()).into()),
    }
}
