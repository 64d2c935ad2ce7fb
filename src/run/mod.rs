//! Hands: the meeting room. Everything that happens comes in by the inbox, goes through the engine, and what the
//! engine asks for is done. Decides nothing itself.

mod capture;
mod child_events;
mod clock;
mod commands;
mod driver_session;
mod execute;
mod follow;
mod gate;
mod hooks;
mod inbox;
mod interactive;
mod keys;
mod prompt_user;
mod queue;
mod replay;
mod screen_text;
mod session;
mod setup;
mod summary;
mod trial;
mod workspace;

pub use hooks::Hooks;
pub use setup::{Beginning, PromptSource, Setup};
pub use workspace::{Progress, Watched};

pub use gate::{GateReport, run_gate, shell_command};
pub use queue::stop_signals;

pub use follow::{FollowEnd, follow};

pub use capture::{CaptureError, CaptureReading, Listener, read_capture};
pub use replay::{LeftOut, Pace, ReplayEnd, replay};
pub use trial::{Trial, TrialError, TrialOutput, Way};

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use jiff::Timestamp;
use signal_hook::consts::{SIGCONT, SIGTSTP, SIGWINCH};

use crate::engine::{Action, Input};
use crate::event::{Interrupt, Level, Record, RunEvent, RunOutcome, Secrets, Sink};
use crate::panic_hook;
use crate::store::{IterationFiles, Journal, StoreError};
use crate::ui::{FrontEnd, Keyboard, PassedGates};

use clock::{Clock, Moment};
use commands::QueueCommandSender;
use driver_session::DriverSession;
use hooks::HookRunner;
use inbox::InboxPoller;
use interactive::InteractiveSession;
use prompt_user::Answers;
use queue::{Generation, Message, Queue};
use session::{Recycled, Session};
use workspace::Workspace;

/// What cannot be mended by trying again.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot write the journal of this run")]
    Journal(#[source] io::Error),
    #[error("cannot keep the agent's output")]
    Raw(#[source] io::Error),
    #[error("cannot read the journal of this run")]
    JournalUnreadable(#[source] io::Error),
    #[error("cannot show the run")]
    FrontEnd(#[source] io::Error),
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    #[error("cannot listen to the keyboard")]
    Keyboard(#[source] io::Error),
    #[error("ralph itself has made a mistake")]
    Panicked,
}

/// Drives a run to its end.
pub fn drive(setup: Setup, front_end: &mut dyn FrontEnd) -> Result<RunOutcome, RunError> {
    panic_hook::set_journal(&setup.run.journal_path());
    let inbox = Queue::open().map_err(RunError::Signals)?;
    let keyboard = front_end.set_commands(Box::new(QueueCommandSender::new(inbox.sender())));
    let journal = setup.run.journal()?;
    let header = Box::new(setup.header.clone());
    let (first, elapsed, seq, received) = match setup.beginning.clone() {
        Beginning::Fresh => (Input::Started(header), Duration::ZERO, 0, Vec::new()),
        Beginning::Resumed {
            elapsed,
            seq,
            received,
            changed,
        } => (Input::Resumed { header, changed }, elapsed, seq, received),
    };
    let clock = Clock::start_at(elapsed);
    let mut driver = Driver {
        passed_gates: PassedGates::default(),
        hooking: HookRunner::begin(setup.hooks.clone(), setup.supervisors.clone(), inbox.sender()),
        secrets: Secrets::of(std::env::vars_os()),
        listening: None,
        sitting: None,
        keyboard,
        mail: InboxPoller::new(setup.run.orders(), received),
        tree: Workspace::open(&setup.workspace, &setup.supervisors, &setup.watched),
        setup,
        inbox,
        journal,
        front_end: Some(front_end),
        clock,
        now: clock.now(),
        actions: Vec::new(),
        spent: Recycled::default(),
        seq,
        generation: 0,
        iteration: 0,
        hat: None,
        files: None,
        session: None,
        past: None,
        driven: DriverSession::default(),
        todo: VecDeque::new(),
    };
    driver.todo.push_back(first);
    match catch_unwind(AssertUnwindSafe(|| driver.work())) {
        Ok(Err(RunError::Panicked)) | Err(_) => {
            driver.abort();
            Err(RunError::Panicked)
        }
        Ok(worked) => {
            driver.setup.supervisors.dismiss();
            worked
        }
    }
}

/// The state of the hands: what is open, what runs, what is still to be told to the engine.
struct Driver<'a> {
    setup: Setup,
    inbox: Queue,
    journal: Journal,
    /// Gone when nobody can see it any more.
    front_end: Option<&'a mut dyn FrontEnd>,
    clock: Clock,
    /// When that happened which is being dealt with.
    now: Moment,
    /// Empty between two steps; here for its room.
    actions: Vec<Action>,
    /// What the agent said and has been recorded and shown.
    spent: Recycled,
    seq: u64,
    generation: Generation,
    /// The iteration whose child runs now, or ran last, and its files until its outcome is written.
    iteration: u64,
    hat: Option<String>,
    files: Option<IterationFiles>,
    session: Option<Session>,
    /// The one that has ended, until there is time to clear away its files.
    past: Option<Session>,
    driven: DriverSession,
    todo: VecDeque<Input>,
    passed_gates: PassedGates,
    hooking: HookRunner,
    secrets: Secrets,
    mail: InboxPoller,
    /// Whether the face reads it.
    keyboard: Keyboard,
    /// Somebody listens to the keyboard for answers.
    listening: Option<Answers>,
    /// The terminal is lent to the agent.
    sitting: Option<InteractiveSession>,
    /// Only if there is something to watch.
    tree: Option<Workspace>,
}

impl Driver<'_> {
    fn work(&mut self) -> Result<RunOutcome, RunError> {
        loop {
            while let Some(input) = self.todo.pop_front() {
                self.now = self.clock.now();
                if let Some(outcome) = self.step(input)? {
                    return Ok(outcome);
                }
            }
            let message = self.next_message()?;
            self.now = self.clock.now();
            match message {
                Some(Message::Child { generation, report }) => self.on_child_event(generation, report)?,
                Some(Message::Said {
                    generation,
                    bytes,
                    said,
                }) => {
                    if let Some(outcome) = self.on_output(generation, bytes, said)? {
                        return Ok(outcome);
                    }
                }
                Some(Message::Unkept(error)) => return Err(RunError::Raw(error)),
                Some(Message::Signal(signal)) => {
                    self.poll_inbox()?;
                    self.on_terminal_signal(signal);
                    self.todo.extend(queue::meaning(signal));
                }
                Some(Message::HookEnded(complaint)) => self.hook_ended(complaint)?,
                Some(Message::Answer(answer)) => self.todo.push_back(Input::Answered(answer)),
                Some(Message::Typed(key)) => self.todo.push_back(Input::KeyTyped(key)),
                Some(Message::TerminalLost) => self.todo.push_back(Input::Interrupted(Interrupt::Hup)),
                Some(Message::UserCommand(command)) => self.todo.extend(commands::meaning(command)),
                Some(Message::Panicked) => return Err(RunError::Panicked),
                None => self.todo.push_back(Input::Tick),
            }
        }
    }

    /// Tells the engine what happened, and does what it asks for; returns how the run ended if that was its end.
    fn step(&mut self, input: Input) -> Result<Option<RunOutcome>, RunError> {
        self.failpoint("engine");
        let mut actions = std::mem::take(&mut self.actions);
        self.setup.engine.step_into(self.now.elapsed, input, &mut actions);
        for action in actions.drain(..) {
            if let Some(outcome) = self.execute(action)? {
                self.flush()?;
                return Ok(Some(outcome));
            }
        }
        self.actions = actions;
        Ok(None)
    }

    /// The next message, or nothing when a deadline came first. Before waiting, what was said is made visible.
    fn next_message(&mut self) -> Result<Option<Message>, RunError> {
        let now = self.clock.elapsed();
        if self.mail.due_in(now).is_zero() {
            self.poll_inbox()?;
            if !self.todo.is_empty() {
                return Ok(None);
            }
        }
        if let Some(message) = self.inbox.take() {
            return Ok(Some(message));
        }
        self.flush()?;
        self.past = None;
        self.tick_front_end();
        let now = self.clock.elapsed();
        let deadline = self.setup.engine.deadline().map(|due| due.saturating_sub(now));
        let front_end = self.front_end.as_ref().filter(|_| self.sitting.is_none());
        let redraw = front_end.and_then(|front_end| front_end.wants_tick());
        let mail = Some(self.mail.due_in(now));
        Ok(self
            .inbox
            .wait(deadline.into_iter().chain(redraw).chain(mail).min()))
    }

    fn warn(&mut self, text: String) -> Result<(), RunError> {
        let level = Level::Warning;
        self.emit(RunEvent::Notice { level, text })
    }

    fn emit(&mut self, event: RunEvent) -> Result<(), RunError> {
        let event = self.secrets.redact(event);
        self.record(event)
    }

    /// Stamps an event without secrets and gives it to every sink, the journal first.
    fn record(&mut self, event: RunEvent) -> Result<(), RunError> {
        let record = Record {
            seq: self.seq + 1,
            at: self.now.at,
            event,
        };
        self.failpoint("journal");
        self.journal.accept(&record).map_err(RunError::Journal)?;
        // Not before: a number that was not written would be a gap.
        self.seq += 1;
        match &mut self.sitting {
            Some(sitting) => sitting.hold(record),
            None => {
                self.show(|front_end| front_end.accept(&record));
                if let RunEvent::Transcript { event, .. } = record.event {
                    self.spent.add(event);
                }
            }
        }
        Ok(())
    }

    /// For the tests of what happens then: a mistake while an agent is at work.
    fn failpoint(&self, place: &str) {
        if self.session.is_some() {
            panic_hook::failpoint(place);
        }
    }

    /// After a mistake of our own, which nobody here can mend: the agent is killed, the terminal is given back, and the
    /// last record says what happened. What cannot be done any more is left undone.
    fn abort(&mut self) {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            (self.session, self.listening, self.sitting) = (None, None, None);
            self.now = self.clock.now();
            let reason = format!(
                "a mistake in ralph: {}",
                panic_hook::first_panic().unwrap_or_default()
            );
            let ended = self.setup.engine.broken_off(self.now.elapsed, reason);
            let ended = self.secrets.redact(ended);
            let _ = self.keep(&ended);
            let _ = self.record(ended);
        }));
        let _ = catch_unwind(AssertUnwindSafe(|| self.flush()));
    }

    fn flush(&mut self) -> Result<(), RunError> {
        self.journal.flush().map_err(RunError::Journal)?;
        if self.sitting.is_none() {
            self.show(|front_end| front_end.flush());
        }
        Ok(())
    }

    fn tick_front_end(&mut self) {
        if self.sitting.is_none() {
            self.show(|front_end| front_end.tick(Timestamp::now()));
        }
    }

    /// Signals that concern whoever has the terminal.
    fn on_terminal_signal(&mut self, signal: i32) {
        match (signal, &self.sitting) {
            (SIGWINCH, Some(sitting)) => sitting.resize(),
            (SIGCONT, Some(sitting)) => sitting.resume(),
            (SIGTSTP, sitting) => {
                if let Some(sitting) = sitting {
                    sitting.suspend();
                }
                // From here on nothing happens until somebody says SIGCONT, which comes by the inbox.
                let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
            }
            _ => {}
        }
    }

    /// A face that cannot be written to has lost its watcher: the run ends as it does when the terminal goes away. One that
    /// is not read when ralph is told to end is left behind, and the signal that says so is waiting in the inbox.
    fn show(&mut self, act: impl FnOnce(&mut dyn FrontEnd) -> io::Result<()>) {
        self.failpoint("face");
        if let Some(front_end) = &mut self.front_end
            && let Err(error) = act(&mut **front_end)
        {
            self.front_end = None;
            if error.kind() != io::ErrorKind::TimedOut {
                self.todo.push_back(Input::Interrupted(Interrupt::Hup));
            }
        }
    }
}
