//! The one door by which everything that happens comes in: reports of children, signals, the watcher's
//! wishes.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::{Handle, Signals};

use crate::engine::{Answer, Input, Key};
use crate::event::{Interrupt, StreamName};
use crate::mishap::{self, Watching};
use crate::process::{Chunk, Report};
use crate::ui::{self, tui::Wish};

use super::RunError;
use super::session::Told;

/// A wait is cut into pieces of this length: a machine that slept through a deadline then notices soon.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Which child a report is about; late reports of an earlier one are never taken for the present one's.
pub(super) type Generation = u64;

pub(super) enum Message {
    Child {
        generation: Generation,
        report: Report,
    },
    /// Some bytes of the agent, and what they say. As long as the bytes are here, no more than a few others are read.
    Said {
        generation: Generation,
        bytes: Spoken,
        said: Told,
    },
    Signal(i32),
    /// What went wrong with it, if something did.
    HookEnded(Option<String>),
    Answer(Answer),
    /// Into the agent's screen.
    Typed(Key),
    /// The user's terminal cannot be read or written any more.
    TerminalLost,
    /// What the watcher wants.
    Wish(Wish),
    /// ralph itself has made a mistake, on another thread.
    Mistake,
}

/// What came on one of the agent's streams.
pub(super) struct Spoken {
    pub(super) stream: StreamName,
    pub(super) chunk: Chunk,
}

pub(super) struct Inbox {
    receiver: Receiver<Message>,
    sender: Sender<Message>,
    signals: Handle,
    _watching: Watching,
}

impl Inbox {
    /// Opens the door; from now on signals come through it instead of ending the program.
    pub(super) fn open() -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let mut signals = stop_signals()?;
        signals.add_signal(SIGUSR1)?;
        let handle = signals.handle();
        let bell = sender.clone();
        let watching = mishap::watch_over(move || drop(bell.send(Message::Mistake)));
        let to_inbox = sender.clone();
        std::thread::spawn(move || {
            mishap::rehearse("signals");
            for signal in signals.forever() {
                if matches!(meaning(signal), Some(Input::Interrupted(_))) {
                    ui::hurry();
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
            Err(RunError::Face(error)) if error.kind() == io::ErrorKind::TimedOut => {
                let word = std::iter::from_fn(|| self.take()).find_map(meaning);
                word.ok_or(RunError::Face(error))
            }
            told => told,
        }
    }
}

impl Drop for Inbox {
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
        SIGUSR1 => Some(Input::Woken),
        _ => None,
    }
}
