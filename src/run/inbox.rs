//! The one door by which everything that happens comes in: reports of children, signals, the watcher's
//! wishes.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::{Handle, Signals};

use crate::engine::{Answer, Input};
use crate::event::Interrupt;
use crate::process::Report;
use crate::ui::tui::Wish;

/// A wait is cut into pieces of this length: a machine that slept through a deadline then notices soon.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Which child a report is about; late reports of an earlier one are never taken for the present one's.
pub(super) type Generation = u64;

pub(super) enum Message {
    Child {
        generation: Generation,
        report: Report,
    },
    Signal(i32),
    /// What went wrong with it, if something did.
    HookEnded(Option<String>),
    Answer(Answer),
    /// What the watcher wants.
    Wish(Wish),
}

pub(super) struct Inbox {
    receiver: Receiver<Message>,
    sender: Sender<Message>,
    signals: Handle,
}

impl Inbox {
    /// Opens the door; from now on signals come through it instead of ending the program.
    pub(super) fn open() -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1])?;
        let handle = signals.handle();
        let to_inbox = sender.clone();
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if to_inbox.send(Message::Signal(signal)).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            receiver,
            sender,
            signals: handle,
        })
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
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.signals.close();
    }
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
