//! The thread that listens: to the keyboard, to a window that changes its size, to signals that ask to end. It sleeps
//! until one of them has something to say, and it is the one that notices when the terminal is gone.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use crossterm::event::Event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::low_level::{pipe, unregister};

use super::decode::Decoder;
use super::render_loop::RenderMsg;
use crate::panic_hook;

/// How long an escape may be the beginning of something.
const ESCAPE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 40_000_000,
};

/// The listening thread; it ends when this is dropped.
pub(super) struct Keyboard {
    closer: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    signals: Vec<SigId>,
}

/// What the thread sleeps on, besides the keyboard.
struct Bells {
    resized: UnixStream,
    asked_out: UnixStream,
    closed: UnixStream,
}

impl Keyboard {
    /// From now on a signal that asks to end is told to the stage, and noted, instead of ending the program.
    pub(super) fn listen(to_stage: Sender<RenderMsg>, asked_out: &Arc<AtomicBool>) -> io::Result<Self> {
        let (resized, on_resize) = UnixStream::pair()?;
        let (asked, on_ask) = UnixStream::pair()?;
        let (closed, closer) = UnixStream::pair()?;
        for bell in [&resized, &asked] {
            bell.set_nonblocking(true)?;
        }
        // After a stop, the shell may have left the terminal otherwise.
        let mut signals = vec![
            pipe::register(SIGCONT, on_resize.try_clone()?)?,
            pipe::register(SIGWINCH, on_resize)?,
        ];
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The note first: who is woken finds it.
            signals.push(signal_hook::flag::register(signal, Arc::clone(asked_out))?);
            signals.push(pipe::register(signal, on_ask.try_clone()?)?);
        }
        let bells = Bells {
            resized,
            asked_out: asked,
            closed,
        };
        let thread = std::thread::spawn(move || listen(&to_stage, &bells));
        Ok(Self {
            closer: Some(closer),
            thread: Some(thread),
            signals,
        })
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.closer = None;
        if let Some(thread) = self.thread.take() {
            // A panic was already told.
            let _ = thread.join();
        }
        for signal in self.signals.drain(..) {
            unregister(signal);
        }
    }
}

/// What the thread woke up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Woken {
    keys: bool,
    gone: bool,
    resized: bool,
    asked_out: bool,
    closed: bool,
}

fn listen(to_stage: &Sender<RenderMsg>, bells: &Bells) {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    loop {
        let patience = decoder.is_waiting().then_some(&ESCAPE);
        let woken = match wait(bells, patience) {
            Ok(Some(woken)) => woken,
            Ok(None) => {
                decoder.give_up(&mut events);
                Woken::for_nothing()
            }
            Err(_) => Woken {
                gone: true,
                ..Woken::for_nothing()
            },
        };
        if woken.closed {
            return;
        }
        let mut gone = woken.gone;
        if woken.keys {
            panic_hook::failpoint("keyboard");
            gone |= read(&mut decoder, &mut events).is_err();
        }
        if woken.resized && hear(&bells.resized) {
            events.push(Event::Resize(0, 0));
        }
        let mut stirs: Vec<RenderMsg> = events.drain(..).map(RenderMsg::Key).collect();
        if woken.asked_out && hear(&bells.asked_out) {
            stirs.push(RenderMsg::AskedOut);
        }
        if gone {
            stirs.push(RenderMsg::Gone);
        }
        // Nobody is there any more once the watcher has left.
        if stirs.into_iter().any(|stir| to_stage.send(stir).is_err()) || gone {
            return;
        }
    }
}

impl Woken {
    fn for_nothing() -> Self {
        Self {
            keys: false,
            gone: false,
            resized: false,
            asked_out: false,
            closed: false,
        }
    }
}

/// Sleeps until there is something; nothing when the time is over first.
fn wait(bells: &Bells, patience: Option<&Timespec>) -> io::Result<Option<Woken>> {
    let stdin = rustix::stdio::stdin();
    let mut fds = [
        PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(bells.resized.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(bells.asked_out.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(bells.closed.as_fd(), PollFlags::IN),
    ];
    match poll(&mut fds, patience) {
        Ok(0) => return Ok(None),
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Some(Woken::for_nothing())),
        Err(error) => return Err(error.into()),
    }
    let [keys, resized, asked_out, closed] = fds.map(|fd| fd.revents());
    let ends = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    Ok(Some(Woken {
        // What was typed before the terminal went is still read.
        keys: keys.contains(PollFlags::IN),
        gone: keys.intersects(ends),
        resized: resized.contains(PollFlags::IN),
        asked_out: asked_out.contains(PollFlags::IN),
        closed: !closed.is_empty(),
    }))
}

/// Reads what was typed. A terminal that has nothing to say though it was asked to speak is gone.
fn read(decoder: &mut Decoder, events: &mut Vec<Event>) -> io::Result<()> {
    let mut bytes = [0; 1024];
    match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(count) => {
            decoder.feed(&bytes[..count], events);
            Ok(())
        }
        Err(Errno::INTR | Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Empties a bell; says whether it had rung.
fn hear(bell: &UnixStream) -> bool {
    let mut bytes = [0; 64];
    let mut rung = false;
    while rustix::io::read(bell, &mut bytes).is_ok_and(|count| count > 0) {
        rung = true;
    }
    rung
}
