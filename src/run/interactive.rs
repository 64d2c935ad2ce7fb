//! The user in front of an agent's own screen: the terminal is lent to the agent, what it draws is passed on as it is,
//! and so is what the user types. What the keys mean to ralph is decided in `engine`.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCONT, SIGTSTP, SIGWINCH};

use crate::engine::Key;
use crate::event::{Record, RunEvent};
use crate::panic_hook;
use crate::process::{Screen, Size};
use crate::ui::{Passthrough, PassthroughEnd, RawMode};

use super::keys::Keys;
use super::queue::{Message, OutputBytes, Queue};

/// What an agent that does not read may leave unread; what is typed beyond it is lost, but for Ctrl-C.
const MOST_PENDING: usize = 1 << 20;

pub(super) struct InteractiveSession {
    painter: Option<Passthrough<OutputBytes>>,
    keyboard: Option<Keyboard>,
    screen: Option<Screen>,
    /// What happened meanwhile, to be shown when the terminal is free again.
    held: Vec<Record>,
    /// Last: given back when all else has ended.
    lent: RawMode,
}

impl InteractiveSession {
    /// Borrows the terminal; the agent may be started on a screen of its size.
    pub(super) fn begin(inbox: &Queue) -> io::Result<Self> {
        inbox.also_hear(&[SIGWINCH, SIGTSTP, SIGCONT])?;
        let lent = RawMode::take(stdin()?)?;
        let stdout = rustix::stdio::stdout().try_clone_to_owned()?;
        let sender = inbox.sender();
        let lost = move || drop(sender.send(Message::TerminalLost));
        Ok(Self {
            painter: Some(Passthrough::begin(stdout, lost)?),
            keyboard: None,
            screen: None,
            held: Vec::new(),
            lent,
        })
    }

    pub(super) fn size(&self) -> Size {
        let (rows, columns) = self.lent.size();
        Size { rows, columns }
    }

    /// The agent is there: what is typed from now on is for it.
    pub(super) fn attend(&mut self, screen: Screen, sender: Sender<Message>) -> io::Result<()> {
        screen.resize(self.size());
        self.keyboard = Some(Keyboard::begin(stdin()?, screen.clone(), sender)?);
        self.screen = Some(screen);
        Ok(())
    }

    pub(super) fn paint(&self, bytes: OutputBytes) {
        if let Some(painter) = &self.painter {
            painter.paint(bytes);
        }
    }

    /// What the agent draws is seen already, and the rest must wait.
    pub(super) fn hold(&mut self, record: Record) {
        match record.event {
            RunEvent::Transcript { .. } | RunEvent::Stderr { .. } => {}
            _ => self.held.push(record),
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

    /// After it was: whoever had the terminal meanwhile has drawn on it. A change of size makes the agent draw again.
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

    /// The agent has ended: the terminal is as it was before. Says what happened meanwhile.
    pub(super) fn end(mut self) -> Vec<Record> {
        std::mem::take(&mut self.held)
    }
}

/// However it comes about, the last stroke is painted before the terminal is given back.
impl Drop for InteractiveSession {
    fn drop(&mut self) {
        self.keyboard = None;
        match self.painter.take().map(Passthrough::finish) {
            // A terminal that takes no more has been heard of.
            Some(PassthroughEnd::All | PassthroughEnd::Cut) | None => {}
        }
    }
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
    fn begin(stdin: OwnedFd, screen: Screen, sender: Sender<Message>) -> io::Result<Self> {
        let (closed, until_closed) = io::pipe()?;
        let passing = Passing {
            stdin,
            closed,
            screen,
            pending: Vec::new(),
            keys: Keys::default(),
        };
        let pass = move || {
            if passing.run(&|key| drop(sender.send(Message::Typed(key)))) == Passed::TerminalLost {
                let _ = sender.send(Message::TerminalLost);
            }
        };
        let thread = std::thread::Builder::new().name("keyboard".into()).spawn(pass)?;
        Ok(Self {
            until_closed: Some(until_closed),
            thread: Some(thread),
        })
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.until_closed = None;
        // Two who read the same keyboard would each get half of what is typed.
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
}

impl Passing {
    fn run(mut self, tell: &dyn Fn(Key)) -> Passed {
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
                        panic_hook::failpoint("typing");
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

    fn take(&mut self, bytes: &[u8], tell: &dyn Fn(Key)) {
        let keys = self.keys.read(bytes);
        if !keys.contains(&Key::Kill) && self.pending.len() + bytes.len() <= MOST_PENDING {
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
                // The agent has gone; its end is told elsewhere.
                Err(_) => self.pending.clear(),
            }
        }
    }
}
