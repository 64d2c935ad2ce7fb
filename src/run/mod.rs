//! Drives one run: takes a message from the queue, passes it to the engine, and carries out the engine's actions.
//!
//! The thread of the loop waits for the queue and for nothing else. Decisions are made in `engine`.

mod accounts;
mod acp_trial;
mod activity;
mod agent_output;
mod agent_path;
mod broadcast;
mod capture;
mod clean_gate;
mod clock;
mod commands;
mod effects;
mod excerpt;
mod execute;
mod follow;
mod fork;
mod front_ends;
mod gate;
mod hooks;
pub mod host;
mod inbox;
mod interactive;
mod keys;
mod log;
mod manifest;
mod notifications;
mod prompt_user;
mod queue;
mod receipt;
mod recorder;
mod recovery;
mod replay;
mod rerun;
mod review;
mod run_details;
mod run_rows;
mod runner_events;
mod sandbox;
mod saved_run;
mod screen_text;
mod setup;
mod snapshots;
mod summary;
mod totals;
mod trace_export;
mod trial;
mod workspace;

pub use accounts::RunAccounts;
pub use activity::{Activity, ActivityFollower, LiveState};
pub use broadcast::FrontEnds;
pub use fork::{ForkError, ForkPoint, ForkRequest};
pub use hooks::HookCommands;
pub use host::Host;
pub use receipt::{RECEIPT_VERSION, Receipt, ReceiptError, ReceiptGate, ReceiptTree};
pub use recovery::{Recovery, restore_run};
pub use rerun::{Rerun, RerunEnd, RerunGate, snapshots_of};
pub use run_details::{RunDetails, facts};
pub use run_rows::{ListTotal, ListTotals, OutcomeName, ProjectRow, RunRow};
pub use sandbox::{SandboxSetup, SandboxUnavailable};
pub use saved_run::{SavedRun, SettingChange};
pub use setup::{Beginning, PromptSource, RunAgent, Setup};
pub use snapshots::SnapshotHistory;
pub use totals::partial_totals;
pub use trace_export::{TraceExport, TraceExportError};
pub use workspace::Watched;

pub use gate::{GateRun, run_gate, shell_command};

pub use follow::{FollowEnd, follow};

pub use capture::{CaptureError, CaptureReading, Listener, read_capture};
pub use replay::{LeftOut, Pace, ReplayEnd, replay};
pub use review::{REVIEW_PATCH_FILE, ReviewCheckout};
pub use trial::{CallMode, Trial, TrialError, TrialOutput};

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use signal_hook::consts::{SIGCONT, SIGTSTP, SIGWINCH};
use tempfile::TempDir;

use crate::engine::{Action, Input};
use crate::event::{Command, RunEvent, RunOutcome, Secrets, TranscriptEvent};
use crate::failpoint;
use crate::ok_or_log;
use crate::store::{IterationFiles, StoreError};
use crate::ui::KeyboardUse;

use broadcast::Broadcast;

use clock::{Clock, Moment};
use commands::CommandSource;
use effects::{Effect, EffectContext};
use hooks::HookRunner;
use inbox::InboxPoller;
use interactive::InteractiveSession;
use log::RunLog;
use prompt_user::AnswerReader;
use queue::{Generation, Message, Queue};
use receipt::ReceiptFacts;
use recorder::{Journaling, Recorder};
use runner_events::RunningJob;

/// An error that ends the run, because a retry would fail too.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the working directory {} no longer exists", path.display())]
    WorkspaceMissing { path: PathBuf },
    #[error("cannot write the journal of this run")]
    Journal(#[source] io::Error),
    #[error("cannot store the agent's output")]
    Raw(#[source] io::Error),
    #[error("cannot read the journal of this run")]
    JournalUnreadable(#[source] io::Error),
    #[error("cannot show the run")]
    FrontEnd(#[source] io::Error),
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    #[error("cannot read the keyboard")]
    Keyboard(#[source] io::Error),
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    #[error("ralph has a bug")]
    Panicked,
}

impl RunError {
    /// The reason as shown in the journal, the summary and the hooks.
    fn reason(&self, host: &Host) -> String {
        if let Self::Panicked = self {
            let panic = host.panics().first_panic().unwrap_or_default();
            return format!("ralph has a bug: {panic}");
        }
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }
}

/// Drives a run to its end. Every end takes the same path: summary, last hook, `RunEnded`. Then waits until the front ends
/// have shown all records.
pub fn drive(host: &Host, setup: Setup, front_ends: FrontEnds) -> Result<RunOutcome, RunError> {
    let _member = host.panics().enter();
    host.panics().set_journal(&setup.run.journal_path());
    let secrets = secrets(host, &setup);
    let (log, secrets_of_log) = (host.log_of_run(), secrets.clone());
    log.redact_with(move |line| secrets_of_log.redact_text(line));
    log.write_to(|| setup.run.debug_log());
    let _log = log.enter();
    let _span = tracing::info_span!("run", id = setup.run.id()).entered();
    let (mut driver, first) = Driver::new(host, setup, front_ends, secrets)?;
    driver.todo.push_back(first);
    let result = match catch_unwind(AssertUnwindSafe(|| driver.run())) {
        Ok(Ok(outcome)) => {
            driver.write_receipt();
            host.supervisors().shut_down();
            Ok(outcome)
        }
        Ok(Err(error)) => {
            driver.abort(&error);
            Err(error)
        }
        Err(_) => {
            driver.abort(&RunError::Panicked);
            Err(RunError::Panicked)
        }
    };
    driver.end_front_ends(&result);
    // The thread of the effects may not have removed it yet.
    review::remove_checkout(&review::checkout_of(driver.setup.run.project()));
    result
}

/// The state of the loop.
struct Driver<'a> {
    host: &'a Host,
    setup: Setup,
    queue: Queue,
    effects: Sender<Effect>,
    hooks: HookRunner,
    inbox: InboxPoller,
    clock: Clock,
    /// The time of the message that is being handled.
    now: Moment,
    todo: VecDeque<Input>,
    buffers: Buffers,
    recorder: Recorder,
    log: RunLog,
    attempt: CurrentAttempt,
    terminal: UserTerminal,
}

/// Empty between two uses; kept for their capacity.
#[derive(Default)]
struct Buffers {
    actions: Vec<Action>,
    events: Vec<TranscriptEvent>,
}

/// The current attempt, or the one that was started last.
#[derive(Default)]
struct CurrentAttempt {
    iteration: u64,
    hat: Option<String>,
    /// The index of the agent.
    agent: usize,
    /// The files of the attempt, until its outcome is written.
    files: Option<IterationFiles>,
    /// The running agent's directory for temporary files.
    scratch: Option<TempDir>,
    /// The running agent or gate.
    job: Option<RunningJob>,
    /// What the sandbox has denied in this run. Each is reported once.
    denied: BTreeSet<String>,
    generation: Generation,
}

/// The parts of the user's terminal that the run uses itself.
struct UserTerminal {
    keyboard: KeyboardUse,
    /// Reads answers from stdin.
    answers: Option<AnswerReader>,
    /// The terminal belongs to an interactive agent.
    interactive: Option<InteractiveSession>,
}

/// The secrets in the environment and in the configured environments of the agents.
fn secrets(host: &Host, setup: &Setup) -> Secrets {
    let own = setup.agents.iter().flat_map(|agent| &agent.agent.environment);
    let own = own.map(|(name, value)| (name.into(), value.into()));
    Secrets::from_env(host.environment().iter().cloned().chain(own))
}

fn effect_context(setup: &Setup, host: &Host) -> EffectContext {
    EffectContext {
        run: Arc::clone(&setup.run),
        prompt: setup.prompt.clone(),
        workspace: setup.workspace.clone(),
        host: host.clone(),
        watched: setup.watched.clone(),
        snapshots: setup.snapshots.clone(),
        gates: setup.engine.gates().to_vec(),
        path: agent_path::with_this_program(host.environment(), setup.run.directory()),
        accounts: setup.accounts.clone(),
        sandbox: setup.sandbox.clone(),
    }
}

impl<'a> Driver<'a> {
    fn new(
        host: &'a Host,
        setup: Setup,
        mut front_ends: FrontEnds,
        secrets: Secrets,
    ) -> Result<(Self, Input), RunError> {
        let queue = Queue::open(host).map_err(RunError::Signals)?;
        let commands = queue.commands(CommandSource::Key);
        let keyboard = front_ends.visible.set_commands(commands);
        queue.watch(front_ends.visible.as_mut());
        let (journal, journal_path) = (setup.run.journal()?, setup.run.journal_path());
        let header = Box::new(setup.header.clone());
        setup.run.agent_inbox().create()?;
        let inbox = InboxPoller::new(setup.run.inbox(), setup.run.agent_inbox());
        let (first, elapsed, seq) = match setup.beginning.clone() {
            Beginning::Fresh => (Input::Started(header), Duration::ZERO, 0),
            Beginning::Resumed {
                elapsed,
                seq,
                changed,
            } => {
                inbox.remove_expired();
                (Input::Resumed { header, changed }, elapsed, seq)
            }
        };
        let receipt = match seq {
            0 => ReceiptFacts::default(),
            _ => ReceiptFacts::read(&journal_path)?,
        };
        let clock = host.start_clock(elapsed);
        let context = effect_context(&setup, host);
        let broadcast = Broadcast::start(front_ends, &journal_path, &queue.sender(), host.panics())
            .map_err(RunError::Thread)?;
        let driver = Self {
            effects: effects::spawn(context, queue.sender()).map_err(RunError::Thread)?,
            hooks: HookRunner::spawn(0, setup.hooks.clone(), host, queue.sender())
                .map_err(RunError::Thread)?,
            host,
            inbox,
            setup,
            queue,
            clock,
            now: clock.now(),
            todo: VecDeque::new(),
            buffers: Buffers::default(),
            recorder: Recorder::new(journal, (seq, receipt), broadcast, secrets),
            log: RunLog::new(),
            attempt: CurrentAttempt::default(),
            terminal: UserTerminal {
                keyboard,
                answers: None,
                interactive: None,
            },
        };
        Ok((driver, first))
    }

    fn run(&mut self) -> Result<RunOutcome, RunError> {
        loop {
            while let Some(input) = self.todo.pop_front() {
                self.now = self.clock.now();
                if let Some(outcome) = self.step(input)? {
                    return Ok(outcome);
                }
                // After the start of the run.
                if let Some((level, text)) = self.setup.sandbox.notice.take() {
                    self.emit(RunEvent::Notice { level, text })?;
                }
            }
            let message = self.next_message()?;
            self.now = self.clock.now();
            let _span = self.log.span().entered();
            if let Some(outcome) = self.handle(message)? {
                return Ok(outcome);
            }
        }
    }

    fn handle(&mut self, message: Option<Message>) -> Result<Option<RunOutcome>, RunError> {
        match message {
            Some(Message::Runner { generation, event }) => return self.on_runner_event(generation, event),
            Some(Message::Started(result)) => return self.on_started(*result),
            Some(Message::Effect(input)) => self.todo.push_back(*input),
            Some(Message::Failed(error)) => return Err(error),
            Some(Message::TerminalSignal(signal)) => self.on_terminal_signal(signal),
            Some(Message::Command(request)) => {
                // SIGUSR1 announces new commands in the inbox.
                if request.command == Command::Wake {
                    self.poll_inbox()?;
                }
                self.todo.push_back(Input::Command(request));
            }
            Some(Message::FrontEndClosed(reason)) => {
                if let Some(command) = commands::of_close(reason) {
                    self.command(command);
                }
            }
            Some(Message::FrontEndEnded { front_end, error }) => self.front_end_ended(front_end, error)?,
            Some(Message::HookEnded { problem, .. }) => self.todo.push_back(Input::HookEnded(problem)),
            Some(Message::Typed(key)) => self.todo.push_back(Input::KeyTyped(key)),
            Some(Message::Denied(access)) => self.denied(access)?,
            Some(Message::Panicked) => return Err(RunError::Panicked),
            None => self.todo.push_back(Input::Tick),
        }
        Ok(None)
    }

    /// Passes an input to the engine and carries out its actions; returns the outcome if the run has ended.
    fn step(&mut self, input: Input) -> Result<Option<RunOutcome>, RunError> {
        if self.attempt.job.is_some() {
            failpoint!(self.host.panics(), Engine);
        }
        let mut actions = std::mem::take(&mut self.buffers.actions);
        self.log.input(&input);
        self.setup.engine.step_into(self.now.elapsed, input, &mut actions);
        for action in actions.drain(..) {
            self.log.action(&action);
            if let Some(outcome) = self.execute(action)? {
                self.recorder.flush()?;
                return Ok(Some(outcome));
            }
        }
        self.buffers.actions = actions;
        Ok(None)
    }

    /// The next message; `None` if a deadline comes first. Pending output is flushed before waiting.
    fn next_message(&mut self) -> Result<Option<Message>, RunError> {
        let now = self.clock.elapsed();
        if self.inbox.due_in(now).is_zero() {
            self.poll_inbox()?;
            if !self.todo.is_empty() {
                return Ok(None);
            }
        }
        if let Some(message) = self.queue.take() {
            return Ok(Some(message));
        }
        self.recorder.flush()?;
        let now = self.clock.elapsed();
        let deadline = self.setup.engine.deadline().map(|due| due.saturating_sub(now));
        let inbox_poll = Some(self.inbox.due_in(now));
        Ok(self.queue.wait(deadline.into_iter().chain(inbox_poll).min()))
    }

    /// Queues a command because the terminal is gone.
    fn command(&mut self, command: Command) {
        let request = self.queue.commands(CommandSource::Terminal).request(command);
        self.todo.push_back(Input::Command(request));
    }

    /// Removes secrets from an event, then stores and shows it.
    fn emit(&mut self, event: RunEvent) -> Result<(), RunError> {
        let event = self.recorder.prepare(event);
        self.log.event(&event, self.now.at, &self.recorder.passed_gates);
        if let RunEvent::IterationEnded { .. } = event
            && let Some(files) = self.attempt.files.take()
        {
            files.write_outcome(&event)?;
        }
        let command = match &event {
            RunEvent::CommandReceived { id, .. } => Some(id.clone()),
            _ => None,
        };
        let is_resumption = matches!(event, RunEvent::RunResumed(_));
        if self.attempt.job.is_some() {
            failpoint!(self.host.panics(), Journal);
        }
        self.recorder.record(self.now.at, event)?;
        if is_resumption {
            self.setup.run.write_settings(&self.setup.settings_file)?;
        }
        if let Some(id) = command {
            self.inbox.journaled(&id);
        }
        Ok(())
    }

    /// Ends the run after an error of ralph itself: kills the agent, restores the terminal, and ends the run like any
    /// other, as far as that is still possible.
    fn abort(&mut self, error: &RunError) {
        tracing::error!(reason = error.reason(self.host), "the run is aborted");
        let ended = catch_unwind(AssertUnwindSafe(|| {
            (self.attempt.job, self.terminal.answers, self.terminal.interactive) = (None, None, None);
            self.todo.clear();
            self.recorder.journaling = Journaling::BestEffort;
            self.replace_hook_thread();
            self.now = self.clock.now();
            let mut actions =
                VecDeque::from(self.setup.engine.abort(self.now.elapsed, error.reason(self.host)));
            loop {
                while let Some(action) = actions.pop_front() {
                    if let Ok(Some(_)) = self.execute(action) {
                        return;
                    }
                }
                let input = match self.queue.wait(None) {
                    Some(Message::HookEnded { generation, problem })
                        if generation == self.hooks.generation =>
                    {
                        Input::HookEnded(problem)
                    }
                    Some(Message::Command(request)) => Input::Command(request),
                    Some(Message::FrontEndEnded { front_end, .. }) => {
                        self.recorder.broadcast.remove(front_end);
                        continue;
                    }
                    // This includes a panic that was reported before. If the hooks do not end, the panic hook ends ralph.
                    Some(_) | None => continue,
                };
                self.now = self.clock.now();
                actions.extend(self.setup.engine.step(self.now.elapsed, input));
            }
        }));
        let flushed = catch_unwind(AssertUnwindSafe(|| self.recorder.flush()));
        // The log is the only place that is left for a second panic or error.
        ok_or_log!(ended.map_err(|_| "a panic"), "cannot end the run in order");
        if let Some(flushed) = ok_or_log!(flushed.map_err(|_| "a panic"), "cannot flush the last records") {
            ok_or_log!(flushed, "cannot flush the last records");
        }
    }

    /// The thread of the hooks may have panicked, or be busy with a hook that does not matter any more.
    fn replace_hook_thread(&mut self) {
        let (hooks, generation) = (self.setup.hooks.clone(), self.hooks.generation + 1);
        let runner = HookRunner::spawn(generation, hooks, self.host, self.queue.sender());
        if let Some(hooks) = ok_or_log!(runner, "cannot replace the thread of the hooks") {
            self.hooks = hooks;
        }
    }

    /// Handles signals that concern the terminal.
    fn on_terminal_signal(&mut self, signal: i32) {
        match (signal, &self.terminal.interactive) {
            (SIGWINCH, Some(interactive)) => interactive.resize(),
            (SIGCONT, Some(interactive)) => interactive.resume(),
            (SIGTSTP, interactive) => {
                if let Some(interactive) = interactive {
                    interactive.suspend();
                }
                // Returns after SIGCONT, which also arrives through the queue.
                let stopped = signal_hook::low_level::emulate_default_handler(SIGTSTP);
                ok_or_log!(stopped, "cannot stop the process");
            }
            _ => {}
        }
    }
}
