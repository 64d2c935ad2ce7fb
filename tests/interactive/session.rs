//! `TerminalSession`: ralph on a pseudo-terminal that the test reads and types into. Every wait has a deadline.

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

use crate::process::helpers::wait_until;
use crate::sandbox::{DEADLINE, Sandbox};

pub(crate) struct TerminalSession {
    /// The controller side; `None` after a disconnect.
    keyboard: Option<File>,
    /// The other side, held open so that its attributes can be read until the end.
    terminal: Option<OwnedFd>,
    reader: Option<ScreenReader>,
    seen: Arc<Mutex<Vec<u8>>>,
    child: Child,
    before: String,
}

/// Exit code and printed text of a finished session.
pub(crate) struct SessionEnd {
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

/// Reads the terminal in the background until it is dropped.
struct ScreenReader {
    closed: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for ScreenReader {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

fn watch(mut screen: File, memory: &Arc<Mutex<Vec<u8>>>) -> ScreenReader {
    let closed = Arc::new(AtomicBool::new(false));
    let (memory, done) = (Arc::clone(memory), Arc::clone(&closed));
    let read = move || {
        let mut bytes = [0; 4096];
        let interval = Timespec::try_from(Duration::from_millis(20)).expect("an interval");
        while !done.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(&screen, PollFlags::IN)];
            if poll(&mut fds, Some(&interval)) == Ok(1) {
                let Ok(count @ 1..) = screen.read(&mut bytes) else {
                    return;
                };
                memory.lock().expect("memory").extend_from_slice(&bytes[..count]);
            }
        }
    };
    ScreenReader {
        closed,
        thread: Some(thread::spawn(read)),
    }
}

impl TerminalSession {
    /// Starts ralph on a terminal of 30 rows and 100 columns.
    pub(crate) fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::start_with(sandbox, arguments, &[])
    }

    pub(crate) fn start_with(sandbox: &Sandbox, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
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
        let reader = watch(controller.try_clone().expect("a descriptor"), &seen);
        Self {
            keyboard: Some(controller),
            terminal: Some(terminal),
            reader: Some(reader),
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
                "timed out waiting for {text:?}; seen: {:?}",
                self.seen()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn type_keys(&mut self, keys: &[u8]) {
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

    /// The kernel sends SIGWINCH only through a controlling terminal, which this one is not, so the test sends it.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let keyboard = self.keyboard.as_ref().expect("a terminal");
        tcsetwinsize(keyboard, size(rows, columns)).expect("a size");
        self.signal(Signal::WINCH);
    }

    /// Returns whether the terminal has the attributes that it had before ralph started.
    pub(crate) fn is_restored(&self) -> bool {
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

    /// Closes the terminal, as a closed window does.
    pub(crate) fn disconnect(&mut self) {
        self.reader = None;
        self.keyboard = None;
        self.terminal = None;
    }

    /// Waits until ralph exits and asserts that the terminal is restored.
    #[track_caller]
    pub(crate) fn finish(mut self) -> SessionEnd {
        let deadline = std::time::Instant::now() + DEADLINE;
        let status = loop {
            match self.child.try_wait().expect("a status") {
                Some(status) => break status,
                None if std::time::Instant::now() > deadline => {
                    let _ = self.child.kill();
                    panic!("ralph did not exit; seen: {:?}", self.seen());
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        if self.terminal.is_some() {
            assert!(
                self.is_restored(),
                "the terminal is not restored; seen: {:?}",
                self.seen()
            );
        }
        // No process has the terminal open any more, so the reader ends when it has read everything.
        self.terminal = None;
        if let Some(thread) = self.reader.as_ref().and_then(|reader| reader.thread.as_ref()) {
            wait_until("the end of the output", DEADLINE, || thread.is_finished());
        }
        SessionEnd {
            code: status.code(),
            seen: self.seen(),
        }
    }
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
