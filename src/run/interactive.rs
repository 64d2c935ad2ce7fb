//! Connects the user's terminal to the screen of an interactive agent, in both directions and unchanged. `engine` decides
//! what the keys mean to ralph.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCONT, SIGTSTP, SIGWINCH};

use crate::engine::InteractiveKey;
use crate::event::{Command, CommandSender, Interrupt};
use crate::failpoint;
use crate::ok_or_log;
use crate::panic_hook::PanicScope;
use crate::process::{Screen, Size};
use crate::signals::Subscription;
use crate::ui::{Passthrough, PassthroughEnd, RawMode};

use crate::runner::OutputBytes;

use super::commands::CommandSource;
use super::host::Host;
use super::keys::{Keys, TypedKey};
use super::queue::{Message, Queue};

/// The input that is kept for an agent that does not read. Input beyond it is dropped, except for Ctrl-C.
const MAX_PENDING: usize = 1 << 20;

pub(super) struct InteractiveSession {
    output: Option<Passthrough<OutputBytes>>,
    keyboard: Option<Keyboard>,
    screen: Option<Screen>,
    /// The last field, so that the terminal is restored after the threads have ended.
    raw_mode: RawMode,
    _signals: Subscription,
}

impl InteractiveSession {
    /// Sets the terminal to raw mode. The agent starts on a screen of the same size.
    pub(super) fn begin(queue: &Queue, host: &Host) -> io::Result<Self> {
        let on_signal = queue.sender();
        let signals = host
            .signals()
            .subscribe(&[SIGWINCH, SIGTSTP, SIGCONT], move |signal| {
                let _ = on_signal.send(Message::TerminalSignal(signal));
            })?;
        let raw_mode = RawMode::enable(stdin()?, host.panics())?;
        let stdout = rustix::stdio::stdout().try_clone_to_owned()?;
        let commands = queue.commands(CommandSource::Terminal);
        let lost = move || terminal_lost(&commands);
        Ok(Self {
            output: Some(Passthrough::spawn(stdout, host.panics(), lost)?),
            keyboard: None,
            screen: None,
            raw_mode,
            _signals: signals,
        })
    }

    pub(super) fn size(&self) -> Size {
        let (rows, columns) = self.raw_mode.size();
        Size { rows, columns }
    }

    /// Passes the keyboard input from now on to the agent.
    pub(super) fn attach(&mut self, screen: Screen, queue: &Queue, panics: &PanicScope) -> io::Result<()> {
        screen.resize(self.size());
        self.keyboard = Some(Keyboard::begin(stdin()?, screen.clone(), queue, panics)?);
        self.screen = Some(screen);
        Ok(())
    }

    pub(super) fn write_output(&self, bytes: OutputBytes) {
        if let Some(output) = &self.output {
            output.write(bytes);
        }
    }

    pub(super) fn resize(&self) {
        if let Some(screen) = &self.screen {
            screen.resize(self.size());
        }
    }

    /// Called before ralph itself is stopped.
    pub(super) fn suspend(&self) {
        self.raw_mode.suspend();
    }

    /// Called after ralph was stopped. Another program may have drawn on the terminal; a change of size makes the agent redraw.
    pub(super) fn resume(&self) {
        // If the terminal is gone, the next read or write reports it.
        ok_or_log!(self.raw_mode.resume(), "cannot enable raw mode again");
        let Size { rows, columns } = self.size();
        if let Some(screen) = &self.screen {
            screen.resize(Size {
                rows: rows.saturating_sub(1).max(1),
                columns,
            });
            screen.resize(Size { rows, columns });
        }
    }
}

/// Writes the remaining output before the terminal is restored.
impl Drop for InteractiveSession {
    fn drop(&mut self) {
        self.keyboard = None;
        match self.output.take().map(Passthrough::finish) {
            // The thread has reported a terminal that cannot be written.
            Some(PassthroughEnd::Complete | PassthroughEnd::Truncated) | None => {}
        }
    }
}

/// Sends a key to the run. Sending fails only if the run is over.
fn send_key(key: TypedKey, to_queue: &Sender<Message>, commands: &CommandSender) {
    let key = match key {
        TypedKey::Other => InteractiveKey::Other,
        TypedKey::Interrupt => InteractiveKey::Interrupt,
        TypedKey::Kill => return drop(commands.send_command(Command::Kill)),
    };
    drop(to_queue.send(Message::Typed(key)));
}

/// Stops the run because its terminal cannot be read or written any more.
fn terminal_lost(commands: &CommandSender) {
    drop(commands.send_command(Command::Stop { by: Interrupt::Hup }));
}

fn stdin() -> io::Result<OwnedFd> {
    rustix::stdio::stdin().try_clone_to_owned()
}

/// The thread that reads the keyboard. Dropping this value ends it.
struct Keyboard {
    until_closed: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Keyboard {
    fn begin(stdin: OwnedFd, screen: Screen, queue: &Queue, panics: &PanicScope) -> io::Result<Self> {
        let (closed, until_closed) = io::pipe()?;
        let forwarder = KeyForwarder {
            stdin,
            closed,
            screen,
            pending: Vec::new(),
            keys: Keys::default(),
            panics: panics.clone(),
        };
        let (to_queue, commands) = (queue.sender(), queue.commands(CommandSource::Key));
        let on_key = move |key| send_key(key, &to_queue, &commands);
        let terminal = queue.commands(CommandSource::Terminal);
        let forward = move || {
            if forwarder.run(&on_key) == ForwarderEnd::TerminalLost {
                terminal_lost(&terminal);
            }
        };
        let thread = panics.spawn("keyboard", forward)?;
        Ok(Self {
            until_closed: Some(until_closed),
            thread: Some(thread),
        })
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.until_closed = None;
        // Two readers of one keyboard would each get a part of the input.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum ForwarderEnd {
    Closed,
    TerminalLost,
}

struct KeyForwarder {
    stdin: OwnedFd,
    closed: PipeReader,
    screen: Screen,
    /// Input that the agent has not read yet.
    pending: Vec<u8>,
    keys: Keys,
    panics: PanicScope,
}

impl KeyForwarder {
    fn run(mut self, on_key: &dyn Fn(TypedKey)) -> ForwarderEnd {
        let mut bytes = [0; 4096];
        loop {
            let [typed, closed] = self.wait();
            if closed {
                return ForwarderEnd::Closed;
            }
            if typed {
                match rustix::io::read(&self.stdin, &mut bytes) {
                    Ok(0) => return ForwarderEnd::TerminalLost,
                    Ok(count) => {
                        failpoint!(self.panics, Typing);
                        self.forward(&bytes[..count], on_key);
                    }
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(_) => return ForwarderEnd::TerminalLost,
                }
            }
            self.flush();
        }
    }

    fn wait(&self) -> [bool; 2] {
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.stdin.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.closed.as_fd(), PollFlags::IN),
        ];
        if !self.pending.is_empty() {
            fds.push(PollFd::from_borrowed_fd(self.screen.as_fd(), PollFlags::OUT));
        }
        match poll(&mut fds, None) {
            Ok(_) => [0, 1].map(|index| !fds[index].revents().is_empty()),
            Err(_) => [false; 2],
        }
    }

    fn forward(&mut self, bytes: &[u8], on_key: &dyn Fn(TypedKey)) {
        let keys = self.keys.read(bytes);
        if !keys.contains(&TypedKey::Kill) && self.pending.len() + bytes.len() <= MAX_PENDING {
            self.pending.extend_from_slice(bytes);
        }
        // The agent first: its reaction to Ctrl-C must not wait for that of ralph.
        self.flush();
        keys.into_iter().for_each(on_key);
    }

    fn flush(&mut self) {
        while !self.pending.is_empty() {
            match self.screen.write(&self.pending) {
                Ok(0) => return,
                Ok(count) => drop(self.pending.drain(..count)),
                // The agent has ended, which is reported separately.
                Err(_) => self.pending.clear(),
            }
        }
    }
}
