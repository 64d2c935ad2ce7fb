//! The one door by which everything that happens comes in: reports of children, signals, the watcher's
//! wishes.

use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::{Handle, Signals};

use crate::engine::{Answer, Input, Key};
use crate::event::Interrupt;
use crate::panic_hook::{self, PanicListener};
use crate::process::{ChildEvent, Chunk};
use crate::ui::{self, tui::UserCommand};

use super::RunError;
use super::session::Parsed;

/// A wait is cut into pieces of this length: a machine that slept through a deadline then notices soon.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Which child a report is about; late reports of an earlier one are never taken for the present one's.
pub(super) type Generation = u64;

pub(super) enum Message {
    Child {
        generation: Generation,
        report: ChildEvent,
    },
    /// Some bytes of the agent, and what they say.
    Said {
        generation: Generation,
        bytes: OutputBytes,
        said: Parsed,
    },
    /// Some bytes of the agent could not be kept.
    Unkept(io::Error),
    Signal(i32),
    /// What went wrong with it, if something did.
    HookEnded(Option<String>),
    Answer(Answer),
    /// Into the agent's screen.
    Typed(Key),
    /// The user's terminal cannot be read or written any more.
    TerminalLost,
    /// What the watcher wants.
    UserCommand(UserCommand),
    /// ralph itself has made a mistake, on another thread.
    Panicked,
}

/// What came on one of the agent's streams. As long as anybody has it, no more than a few others are read.
#[derive(Clone)]
pub(super) struct OutputBytes(Arc<Chunk>);

impl From<Chunk> for OutputBytes {
    fn from(chunk: Chunk) -> Self {
        Self(Arc::new(chunk))
    }
}

impl Deref for OutputBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// By which one child's reports come in. When nobody is there to take them any more, the run is over.
pub(super) struct ChildSender {
    generation: Generation,
    sender: Sender<Message>,
}

impl ChildSender {
    pub(super) fn report(&self, report: ChildEvent) {
        let generation = self.generation;
        drop(self.sender.send(Message::Child { generation, report }));
    }

    pub(super) fn tell(&self, bytes: OutputBytes, said: Parsed) {
        let generation = self.generation;
        drop(self.sender.send(Message::Said {
            generation,
            bytes,
            said,
        }));
    }

    pub(super) fn complain(&self, error: io::Error) {
        drop(self.sender.send(Message::Unkept(error)));
    }
}

pub(super) struct Queue {
    receiver: Receiver<Message>,
    sender: Sender<Message>,
    signals: Handle,
    _watching: PanicListener,
}

impl Queue {
    /// Opens the door; from now on signals come through it instead of ending the program.
    pub(super) fn open() -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let mut signals = stop_signals()?;
        signals.add_signal(SIGUSR1)?;
        let handle = signals.handle();
        let bell = sender.clone();
        let watching = panic_hook::on_panic(move || drop(bell.send(Message::Panicked)));
        let to_inbox = sender.clone();
        std::thread::spawn(move || {
            panic_hook::failpoint("signals");
            for signal in signals.forever() {
                if matches!(meaning(signal), Some(Input::Interrupted(_))) {
                    ui::begin_shutdown();
                }
                if to_inbox.send(Message::Signal(signal)).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            receiver,
            sender,
            signals: handle,
            _watching: watching,
        })
    }

    /// Signals that matter only while somebody sits in front of the agent.
    pub(super) fn also_hear(&self, signals: &[i32]) -> std::io::Result<()> {
        signals
            .iter()
            .try_for_each(|signal| self.signals.add_signal(*signal))
    }

    pub(super) fn sender(&self) -> Sender<Message> {
        self.sender.clone()
    }

    pub(super) fn door_of(&self, generation: Generation) -> ChildSender {
        let sender = self.sender();
        ChildSender { generation, sender }
    }

    /// What is already there.
    pub(super) fn take(&self) -> Option<Message> {
        self.receiver.try_recv().ok()
    }

    /// What comes next, if it comes in time.
    pub(super) fn wait(&self, timeout: Option<Duration>) -> Option<Message> {
        self.receiver
            .recv_timeout(timeout.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT))
            .ok()
    }

    /// What nobody read when ralph was told to end has ended as that word, which is already here, says.
    pub(super) fn reason_for<T>(
        &self,
        told: Result<T, RunError>,
        meaning: fn(Message) -> Option<T>,
    ) -> Result<T, RunError> {
        match told {
            Err(RunError::FrontEnd(error)) if error.kind() == io::ErrorKind::TimedOut => {
                let word = std::iter::from_fn(|| self.take()).find_map(meaning);
                word.ok_or(RunError::FrontEnd(error))
            }
            told => told,
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.signals.close();
    }
}

/// The signals by which the user ends what goes on here, instead of ending the program. `nohup` is respected.
pub fn stop_signals() -> std::io::Result<Signals> {
    let signals = Signals::new([SIGINT, SIGTERM])?;
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    Ok(signals)
}

/// Whether our parent has arranged that a signal does nothing, as `nohup` does with the end of a terminal.
#[cfg(target_os = "linux")]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(not(target_os = "linux"))]
fn is_ignored(_: i32) -> bool {
    false
}

/// What a signal means to the engine.
pub(super) fn meaning(signal: i32) -> Option<Input> {
    match signal {
        SIGINT => Some(Input::Interrupted(Interrupt::Int)),
        SIGTERM => Some(Input::Interrupted(Interrupt::Term)),
        SIGHUP => Some(Input::Interrupted(Interrupt::Hup)),
        SIGUSR1 => Some(Input::WakeUp),
        _ => None,
    }
}
