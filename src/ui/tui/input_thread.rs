//! The input thread: reads keys and reports the loss of the terminal. Signals are forwarded to the render thread.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use crossterm::event::Event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCONT, SIGWINCH};

use super::decode::KeyDecoder;
use super::render_loop::RenderMsg;
use crate::failpoint;
use crate::panic_hook::PanicScope;
use crate::signals::{STOP_SIGNALS, Subscription};
use crate::ui::UiHost;

/// After this time, a lone escape byte is the Esc key.
const ESCAPE_TIMEOUT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 40_000_000,
};

/// The input thread. It ends when this value is dropped.
pub(super) struct InputThread {
    closer: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    _signals: [Subscription; 2],
}

impl InputThread {
    /// Starts the thread. From now on, SIGINT, SIGTERM and SIGHUP set `shutdown_requested` and wake the render thread
    /// instead of ending the process.
    pub(super) fn start(
        to_renderer: Sender<RenderMsg>,
        shutdown_requested: &Arc<AtomicBool>,
        host: &UiHost,
    ) -> io::Result<Self> {
        let (closed, closer) = UnixStream::pair()?;
        // While ralph was stopped, the shell may have changed the terminal modes.
        let on_resize = to_renderer.clone();
        let resize = host.signals.subscribe(&[SIGCONT, SIGWINCH], move |_| {
            // Sending fails once the screen is closed.
            let _ = on_resize.send(RenderMsg::Key(Event::Resize(0, 0)));
        })?;
        let (on_stop, flag) = (to_renderer.clone(), Arc::clone(shutdown_requested));
        let stop = host.signals.subscribe(STOP_SIGNALS, move |_| {
            // Set the flag before waking the thread that reads it.
            flag.store(true, Ordering::SeqCst);
            let _ = on_stop.send(RenderMsg::ShutdownRequested);
        })?;
        let scope = host.panics.clone();
        let thread = host
            .panics
            .spawn("keyboard", move || run(&to_renderer, &closed, &scope))?;
        Ok(Self {
            closer: Some(closer),
            thread: Some(thread),
            _signals: [resize, stop],
        })
    }
}

impl Drop for InputThread {
    fn drop(&mut self) {
        self.closer = None;
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic.
            let _ = thread.join();
        }
    }
}

/// The reasons for which the thread woke up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WakeReasons {
    keys: bool,
    terminal_closed: bool,
    closed: bool,
}

fn run(to_renderer: &Sender<RenderMsg>, closed: &UnixStream, panics: &PanicScope) {
    let mut decoder = KeyDecoder::default();
    let mut events = Vec::new();
    loop {
        let timeout = decoder.has_pending().then_some(&ESCAPE_TIMEOUT);
        let reasons = match wait(closed, timeout) {
            Ok(Some(reasons)) => reasons,
            Ok(None) => {
                decoder.flush(&mut events);
                WakeReasons::none()
            }
            Err(_) => WakeReasons {
                terminal_closed: true,
                ..WakeReasons::none()
            },
        };
        if reasons.closed {
            return;
        }
        let mut terminal_closed = reasons.terminal_closed;
        if reasons.keys {
            failpoint!(panics, Keyboard);
            terminal_closed |= read(&mut decoder, &mut events).is_err();
        }
        let mut messages: Vec<RenderMsg> = events.drain(..).map(RenderMsg::Key).collect();
        messages.extend(decoder.take_background().map(RenderMsg::Background));
        if terminal_closed {
            messages.push(RenderMsg::TerminalClosed);
        }
        // Sending fails once the screen is closed.
        if messages
            .into_iter()
            .any(|message| to_renderer.send(message).is_err())
            || terminal_closed
        {
            return;
        }
    }
}

impl WakeReasons {
    fn none() -> Self {
        Self {
            keys: false,
            terminal_closed: false,
            closed: false,
        }
    }
}

/// Waits for input. Returns `None` on timeout.
fn wait(closed: &UnixStream, timeout: Option<&Timespec>) -> io::Result<Option<WakeReasons>> {
    let stdin = rustix::stdio::stdin();
    let mut fds = [
        PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(closed.as_fd(), PollFlags::IN),
    ];
    match poll(&mut fds, timeout) {
        Ok(0) => return Ok(None),
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Some(WakeReasons::none())),
        Err(error) => return Err(error.into()),
    }
    let [keys, closed] = fds.map(|fd| fd.revents());
    let closed_flags = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    Ok(Some(WakeReasons {
        // Keys typed before the terminal closed are still read.
        keys: keys.contains(PollFlags::IN),
        terminal_closed: keys.intersects(closed_flags),
        closed: !closed.is_empty(),
    }))
}

/// Reads typed bytes. End of file means that the terminal is closed.
fn read(decoder: &mut KeyDecoder, events: &mut Vec<Event>) -> io::Result<()> {
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
