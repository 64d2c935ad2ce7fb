//! The queue of a run. Every input arrives through it: output and ends of jobs, results of effects, signals and commands.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use signal_hook::consts::SIGUSR1;

use crate::engine::{Input, InteractiveKey};
use crate::event::{Command, CommandRequest, CommandSender, DeniedAccess};
use crate::panic_hook::PanicListener;
use crate::runner::RunnerEvent;
use crate::signals::{STOP_SIGNALS, Subscription};
use crate::ui::{CloseReason, FrontEnd};

use super::RunError;
use super::broadcast::FrontEndId;
use super::commands::{self, CommandSource};
use super::effects::StartResult;
use super::host::Host;

/// Waits are split into pieces of this length, so that a deadline that passed while the machine slept is noticed soon.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Identifies the job that an event belongs to, so that late events of an earlier job are ignored.
pub(super) type Generation = u64;

pub(super) enum Message {
    /// A job produced output or ended.
    Runner {
        generation: Generation,
        event: RunnerEvent,
    },
    /// A job has started, or could not be started.
    Started(Box<StartResult>),
    /// The result of an effect.
    Effect(Box<Input>),
    /// An error that ends the run.
    Failed(RunError),
    /// A signal about the terminal.
    TerminalSignal(i32),
    HookEnded {
        generation: u64,
        /// The problem to report, if any.
        problem: Option<String>,
    },
    /// A key that was typed into the agent's screen.
    Typed(InteractiveKey),
    Command(CommandRequest),
    /// The front end closed before the records ended.
    FrontEndClosed(CloseReason),
    /// The thread of a front end ended.
    FrontEndEnded {
        front_end: FrontEndId,
        error: Option<io::Error>,
    },
    /// A thread of ralph has panicked.
    /// The sandbox has prevented or undone something.
    Denied(DeniedAccess),
    Panicked,
}

pub(super) struct Queue {
    receiver: Receiver<Message>,
    sender: Sender<Message>,
    _signals: Subscription,
    _panics: PanicListener,
}

impl Queue {
    /// Opens the queue. From now on it receives the host's signals and panics.
    pub(super) fn open(host: &Host) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let on_panic = sender.clone();
        let panics = host
            .panics()
            .on_panic(move || drop(on_panic.send(Message::Panicked)));
        let (on_signal, stdout) = (sender.clone(), host.stdout().clone());
        let commands = commands::sender(sender.clone(), CommandSource::Signal);
        let wanted: Vec<i32> = STOP_SIGNALS.iter().copied().chain([SIGUSR1]).collect();
        let signals = host.signals().subscribe(&wanted, move |signal| {
            let command = commands::of_signal(signal);
            if let Some(Command::Stop { .. }) = command {
                stdout.begin();
            }
            let message = match command {
                Some(command) => Message::Command(commands.request(command)),
                None => Message::TerminalSignal(signal),
            };
            // Sending fails once the run has ended.
            let _ = on_signal.send(message);
        })?;
        Ok(Self {
            receiver,
            sender,
            _signals: signals,
            _panics: panics,
        })
    }

    /// Makes the front end report when it closes.
    pub(super) fn watch(&self, front_end: &mut dyn FrontEnd) {
        let to_queue = self.sender();
        front_end.on_close(Box::new(move |reason| {
            // The run may end first.
            let _ = to_queue.send(Message::FrontEndClosed(reason));
        }));
    }

    pub(super) fn sender(&self) -> Sender<Message> {
        self.sender.clone()
    }

    pub(super) fn commands(&self, source: CommandSource) -> CommandSender {
        commands::sender(self.sender(), source)
    }

    /// Returns a message if one is queued.
    pub(super) fn take(&self) -> Option<Message> {
        self.receiver.try_recv().ok()
    }

    /// Waits for the next message.
    pub(super) fn wait(&self, timeout: Option<Duration>) -> Option<Message> {
        self.receiver
            .recv_timeout(timeout.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT))
            .ok()
    }

    /// If output timed out during shutdown, returns the interrupt that is already queued.
    pub(super) fn reason_for<T>(
        &self,
        result: Result<T, RunError>,
        end_of: fn(Message) -> Option<T>,
    ) -> Result<T, RunError> {
        match result {
            Err(RunError::FrontEnd(error)) if error.kind() == io::ErrorKind::TimedOut => {
                let end = std::iter::from_fn(|| self.take()).find_map(end_of);
                end.ok_or(RunError::FrontEnd(error))
            }
            result => result,
        }
    }
}
