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
use crate::panic_hook::PanicScope;
use crate::process::{Screen, Size};
use crate::signals::Subscription;
use crate::ui::{Passthrough, PassthroughEnd, RawMode};

use crate::runner::OutputBytes;

use super::commands::CommandSource;
use super::host::Host;
use super::keys::{Keys, TypedKey};
use super::queue::{Message, Queue};

/// What an agent that does not read may leave unread; what is typed beyond it is lost, but for Ctrl-C.
const MOST_PENDING: usize = 1 << 20;

pub(super) struct InteractiveSession {
    painter: Option<Passthrough<OutputBytes>>,
    keyboard: Option<Keyboard>,
    screen: Option<Screen>,
    /// Last: given back when all else has ended.
    lent: RawMode,
    _signals: Subscription,
}

impl InteractiveSession {
    /// Borrows the terminal; the agent may be started on a screen of its size.
    pub(super) fn begin(inbox: &Queue, host: &Host) -> io::Result<Self> {
        let on_signal = inbox.sender();
        let signals = host
            .signals()
            .subscribe(&[SIGWINCH, SIGTSTP, SIGCONT], move |signal| {
                let _ = on_signal.send(Message::TerminalSignal(signal));
            })?;
        let lent = RawMode::enable(stdin()?, host.panics())?;
        let stdout = rustix::stdio::stdout().try_clone_to_owned()?;
        let commands = inbox.commands(CommandSource::Terminal);
        let lost = move || terminal_lost(&commands);
        Ok(Self {
            painter: Some(Passthrough::spawn(stdout, host.panics(), lost)?),
            keyboard: None,
            screen: None,
            lent,
            _signals: signals,
        })
    }

    pub(super) fn size(&self) -> Size {
        let (rows, columns) = self.lent.size();
        Size { rows, columns }
    }

    /// The agent is there: what is typed from now on is for it.
    pub(super) fn attend(&mut self, screen: Screen, inbox: &Queue, panics: &PanicScope) -> io::Result<()> {
        screen.resize(self.size());
        self.keyboard = Some(Keyboard::begin(stdin()?, screen.clone(), inbox, panics)?);
        self.screen = Some(screen);
        Ok(())
    }

    pub(super) fn paint(&self, bytes: OutputBytes) {
        if let Some(painter) = &self.painter {
            painter.write(bytes);
        }
    }

    pub(super) fn resize(&self) {
        if let Some(screen) = &self.screen {
            screen.resize(self.size());
        }
    }

    /// Before ralph itself is stopped.
    pub(super) fn suspend(&self) {
        self.lent.suspend();
    }

    /// Called after ralph was stopped. Another program may have drawn on the terminal; a change of size makes the agent redraw.
    pub(super) fn resume(&self) {
        // Without its terminal the next read or write says so.
        let _ = self.lent.resume();
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

/// However it comes about, the last stroke is painted before the terminal is given back.
impl Drop for InteractiveSession {
    fn drop(&mut self) {
        self.keyboard = None;
        match self.painter.take().map(Passthrough::finish) {
            // A terminal that takes no more has been heard of.
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

/// The thread that reads what is typed; dropped, it ends.
struct Keyboard {
    until_closed: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Keyboard {
    fn begin(stdin: OwnedFd, screen: Screen, inbox: &Queue, panics: &PanicScope) -> io::Result<Self> {
        let (closed, until_closed) = io::pipe()?;
        let passing = Passing {
            stdin,
            closed,
            screen,
            pending: Vec::new(),
            keys: Keys::default(),
            panics: panics.clone(),
        };
        let (to_queue, commands) = (inbox.sender(), inbox.commands(CommandSource::Key));
        let on_key = move |key| send_key(key, &to_queue, &commands);
        let terminal = inbox.commands(CommandSource::Terminal);
        let pass = move || {
            if passing.run(&on_key) == Passed::TerminalLost {
                terminal_lost(&terminal);
            }
        };
        let thread = panics.spawn("keyboard", pass)?;
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
enum Passed {
    NotNeeded,
    TerminalLost,
}

struct Passing {
    stdin: OwnedFd,
    closed: PipeReader,
    screen: Screen,
    /// Typed, and not yet taken by the agent.
    pending: Vec<u8>,
    keys: Keys,
    panics: PanicScope,
}

impl Passing {
    fn run(mut self, tell: &dyn Fn(TypedKey)) -> Passed {
        let mut bytes = [0; 4096];
        loop {
            let [typed, closed] = self.wait();
            if closed {
                return Passed::NotNeeded;
            }
            if typed {
                match rustix::io::read(&self.stdin, &mut bytes) {
                    Ok(0) => return Passed::TerminalLost,
                    Ok(count) => {
                        failpoint!(self.panics, Typing);
                        self.take(&bytes[..count], tell);
                    }
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(_) => return Passed::TerminalLost,
                }
            }
            self.pass_on();
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

    fn take(&mut self, bytes: &[u8], tell: &dyn Fn(TypedKey)) {
        let keys = self.keys.read(bytes);
        if !keys.contains(&TypedKey::Kill) && self.pending.len() + bytes.len() <= MOST_PENDING {
            self.pending.extend_from_slice(bytes);
        }
        // The agent first: its answer to a Ctrl-C must not wait for ours.
        self.pass_on();
        keys.into_iter().for_each(tell);
    }

    fn pass_on(&mut self) {
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
