//! A terminal of the test's own with `ralph` on it, and somebody who looks and types. Whatever could hang has a
//! deadline.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::process::stage::wait_until;
use crate::sandbox::{DEADLINE, Sandbox};

pub(crate) struct Seat {
    /// Our side; none when the terminal has been taken away.
    keyboard: Option<File>,
    /// The other side, held open so that it can be looked at to the end.
    terminal: Option<OwnedFd>,
    eyes: Option<Eyes>,
    seen: Arc<Mutex<Vec<u8>>>,
    child: Child,
    before: String,
}

/// What the terminal looked like from inside when `ralph` had ended.
pub(crate) struct Left {
    pub(crate) code: Option<i32>,
    pub(crate) seen: String,
}

fn new_terminal() -> (File, OwnedFd) {
    let controller =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&controller)
        .and_then(|()| unlockpt(&controller))
        .expect("a terminal");
    let name = ptsname(&controller, Vec::new()).expect("its name");
    let terminal = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().expect("a path"))
        .expect("the other end");
    (controller.into(), terminal.into())
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// Whoever looks at the terminal until this is dropped.
struct Eyes {
    closed: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Eyes {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

fn watch(mut screen: File, memory: &Arc<Mutex<Vec<u8>>>) -> Eyes {
    let closed = Arc::new(AtomicBool::new(false));
    let (memory, done) = (Arc::clone(memory), Arc::clone(&closed));
    let look = move || {
        let mut bytes = [0; 4096];
        let moment = Timespec::try_from(Duration::from_millis(20)).expect("a moment");
        while !done.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(&screen, PollFlags::IN)];
            if poll(&mut fds, Some(&moment)) == Ok(1) {
                let Ok(count @ 1..) = screen.read(&mut bytes) else {
                    return;
                };
                memory.lock().expect("memory").extend_from_slice(&bytes[..count]);
            }
        }
    };
    Eyes {
        closed,
        thread: Some(thread::spawn(look)),
    }
}

impl Seat {
    /// 30 rows and 100 columns.
    pub(crate) fn at(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::with(sandbox, arguments, &[])
    }

    pub(crate) fn with(sandbox: &Sandbox, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let (controller, terminal) = new_terminal();
        tcsetwinsize(&controller, size(30, 100)).expect("a size");
        let before = format!("{:?}", tcgetattr(&terminal).expect("attributes"));
        let mut command: Command = sandbox.command(arguments);
        command.envs(environment.iter().copied());
        let stream = || terminal.try_clone().expect("a stream");
        command.stdin(stream()).stdout(stream()).stderr(stream());
        let child = command.spawn().expect("ralph starts");
        drop(command);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let eyes = watch(controller.try_clone().expect("eyes"), &seen);
        Self {
            keyboard: Some(controller),
            terminal: Some(terminal),
            eyes: Some(eyes),
            seen,
            child,
            before,
        }
    }

    pub(crate) fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("memory")).into_owned()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        let found = || self.seen().contains(text);
        let deadline = std::time::Instant::now() + DEADLINE;
        while !found() {
            assert!(
                std::time::Instant::now() < deadline,
                "waited in vain for {text:?}; seen: {:?}",
                self.seen()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn types(&mut self, keys: &[u8]) {
        self.keyboard
            .as_mut()
            .expect("a keyboard")
            .write_all(keys)
            .expect("keys");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid()).expect("a pid");
        kill_process(pid, signal).expect("a signal");
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    /// The kernel tells those whose controlling terminal it is; this one is nobody's, so ralph is told here.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let keyboard = self.keyboard.as_ref().expect("a terminal");
        tcsetwinsize(keyboard, size(rows, columns)).expect("a size");
        self.signal(Signal::WINCH);
    }

    /// Whether the terminal is set as it was before `ralph` came.
    pub(crate) fn is_as_before(&self) -> bool {
        let terminal = self.terminal.as_ref().expect("a terminal");
        format!("{:?}", tcgetattr(terminal).expect("attributes")) == self.before
    }

    pub(crate) fn wait_until_stopped(&self) {
        wait_until("a stopped ralph", DEADLINE, || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
            stat.rsplit(')')
                .next()
                .is_some_and(|rest| rest.trim_start().starts_with('T'))
        });
    }

    /// Nobody sits there any more: the window was closed.
    pub(crate) fn is_taken_away(&mut self) {
        self.eyes = None;
        self.keyboard = None;
        self.terminal = None;
    }

    /// Waits for the end of `ralph`. Whatever the way, the terminal must be as it was.
    #[track_caller]
    pub(crate) fn ends(mut self) -> Left {
        let deadline = std::time::Instant::now() + DEADLINE;
        let status = loop {
            match self.child.try_wait().expect("its end") {
                Some(status) => break status,
                None if std::time::Instant::now() > deadline => {
                    let _ = self.child.kill();
                    panic!("ralph did not end; seen: {:?}", self.seen());
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        if self.terminal.is_some() {
            assert!(
                self.is_as_before(),
                "the terminal is not as it was; seen: {:?}",
                self.seen()
            );
        }
        // With the last who could draw gone, all that was drawn has been seen when nothing more comes.
        self.terminal = None;
        if let Some(thread) = self.eyes.as_ref().and_then(|eyes| eyes.thread.as_ref()) {
            wait_until("the end of the drawing", DEADLINE, || thread.is_finished());
        }
        Left {
            code: status.code(),
            seen: self.seen(),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
