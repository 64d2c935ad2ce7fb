//! A test terminal: a PTY with an emulator behind it and ralph in the foreground. It records all output, provides the
//! emulated screen, and checks that ralph restores the terminal.

use std::cell::Cell;
use std::fs;
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Termios, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use tempfile::TempDir;

use crate::process::helpers::{fake_agent, is_alive};
use crate::sandbox::Sandbox;

/// Generous limit for every wait, also on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A screen without changes for this long is stable.
const STABLE_AFTER: Duration = Duration::from_millis(150);

pub(crate) struct Terminal {
    master: Option<Arc<OwnedFd>>,
    /// Used to read the terminal modes.
    slave: OwnedFd,
    original_modes: Termios,
    output: Arc<Mutex<TerminalOutput>>,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    shell: Child,
    notes: TempDir,
}

struct TerminalOutput {
    parser: vt100::Parser,
    bytes: Vec<u8>,
    changed: Instant,
}

impl Terminal {
    /// Starts `ralph` with these arguments on a terminal of this size (columns, rows).
    pub(crate) fn start(sandbox: &Sandbox, arguments: &[&str], size: (u16, u16)) -> Self {
        Self::start_with(sandbox, arguments, size, &[])
    }

    pub(crate) fn start_with(
        sandbox: &Sandbox,
        arguments: &[&str],
        (columns, rows): (u16, u16),
        environment: &[(&str, &str)],
    ) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("granted PTY");
        unlockpt(&master).expect("unlocked PTY");
        let name = ptsname(&master, Vec::new()).expect("PTY name");
        let name = name.into_string().expect("UTF-8 name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = open(name.as_str(), flags, Mode::empty()).expect("PTY slave");
        let original_modes = tcgetattr(&slave).expect("terminal modes");
        tcsetwinsize(&slave, window_size(columns, rows)).expect("terminal size");
        let notes = TempDir::new().expect("a temporary directory");
        let command = sandbox.command(arguments);
        let mut shell = Command::new(fake_agent());
        shell.args(["__terminal", name.as_str()]).arg(notes.path());
        shell.arg(command.get_program()).args(command.get_args());
        shell.env_clear().current_dir(sandbox.work());
        for (name, value) in command.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        shell
            .env("TERM", "xterm-256color")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        let shell = shell.spawn().expect("fake shell");
        let master = Arc::new(master);
        let output = Arc::new(Mutex::new(TerminalOutput {
            parser: vt100::Parser::new(non_zero(rows), non_zero(columns), 0),
            bytes: Vec::new(),
            changed: Instant::now(),
        }));
        let stop = Arc::new(AtomicBool::new(false));
        let reader = std::thread::spawn({
            let (master, output, stop) = (Arc::clone(&master), Arc::clone(&output), Arc::clone(&stop));
            move || read(&master, &output, &stop)
        });
        Self {
            master: Some(master),
            slave,
            original_modes,
            output,
            stop,
            reader: Some(reader),
            shell,
            notes,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.note("pid").parse().expect("a pid")
    }

    /// Waits for a file that the fake shell writes.
    fn note(&self, name: &str) -> String {
        let path: PathBuf = self.notes.path().join(name);
        self.wait(&format!("the file {name}"), || path.exists());
        fs::read_to_string(path).expect("a readable file")
    }

    pub(super) fn kill(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid()).expect("a pid");
        kill_process(pid, signal).expect("a process to signal");
    }

    pub(crate) fn keys(&self, keys: &str) {
        let mut bytes = keys.as_bytes();
        let master = self.master.as_ref().expect("a terminal");
        while !bytes.is_empty() {
            let count = rustix::io::write(master.as_ref(), bytes).expect("the terminal accepts keys");
            bytes = &bytes[count..];
        }
    }

    pub(super) fn resize(&self, columns: u16, rows: u16) {
        // Resize the emulator first, so that it has the new size when ralph redraws.
        self.lock()
            .parser
            .screen_mut()
            .set_size(non_zero(rows), non_zero(columns));
        let master = self.master.as_ref().expect("a terminal");
        tcsetwinsize(master.as_ref(), window_size(columns, rows)).expect("new size");
    }

    fn lock(&self) -> MutexGuard<'_, TerminalOutput> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The text on the screen.
    pub(super) fn screen(&self) -> String {
        let contents = self.lock().parser.screen().contents();
        contents.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn with_screen<T>(&self, read: impl FnOnce(&vt100::Screen) -> T) -> T {
        read(self.lock().parser.screen())
    }

    /// All output since the start.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    #[track_caller]
    pub(super) fn expect(&self, text: &str) {
        self.wait(&format!("{text:?} on the screen"), || {
            self.screen().contains(text)
        });
    }

    #[track_caller]
    pub(super) fn expect_not(&self, text: &str) {
        self.wait(&format!("{text:?} to disappear"), || {
            !self.screen().contains(text)
        });
    }

    #[track_caller]
    fn wait(&self, what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !condition() {
            assert!(
                Instant::now() < deadline,
                "timed out waiting for {what}:\n{}",
                self.screen()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the screen is stable and returns it.
    pub(super) fn wait_until_stable(&self) -> String {
        self.wait("a stable screen", || self.lock().changed.elapsed() > STABLE_AFTER);
        self.screen()
    }

    /// Waits until ralph has printed nothing for this long.
    #[track_caller]
    pub(super) fn wait_until_silent(&self, length: Duration) {
        let last = Cell::new((0, Instant::now()));
        self.wait("the end of the output", || {
            let printed = self.lock().bytes.len();
            if printed != last.get().0 {
                last.set((printed, Instant::now()));
            }
            last.get().1.elapsed() >= length
        });
    }

    /// Waits until ralph exits and checks that the terminal is restored.
    #[track_caller]
    pub(crate) fn ends(&self, status: &str) {
        assert_eq!(self.note("status"), status, "{}", self.screen());
        // The last output may not have reached the emulator yet.
        self.wait_until_stable();
        self.wait("the main screen", || {
            !self.with_screen(vt100::Screen::alternate_screen)
        });
        self.wait("the cursor", || !self.with_screen(vt100::Screen::hide_cursor));
        let after = tcgetattr(&self.slave).expect("terminal modes");
        assert_eq!(format!("{:?}", self.original_modes), format!("{after:?}"), "stty");
        self.with_screen(|screen| {
            assert!(!screen.bracketed_paste());
            assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
            assert!(!screen.application_cursor() && !screen.application_keypad());
            assert_eq!((screen.fgcolor(), screen.bold()), (vt100::Color::Default, false));
        });
        assert!(!is_alive(self.pid()));
    }

    /// The exit status, if ralph exits within the limit.
    pub(crate) fn status_within(&self, limit: Duration) -> Option<String> {
        let path = self.notes.path().join("status");
        let deadline = Instant::now() + limit;
        while !path.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        fs::read_to_string(path).ok()
    }

    /// Whether the terminal is restored within the limit.
    pub(crate) fn is_restored_within(&self, limit: Duration) -> bool {
        let restored = || {
            let after = tcgetattr(&self.slave).expect("terminal modes");
            let same_modes = format!("{:?}", self.original_modes) == format!("{after:?}");
            same_modes
                && self.with_screen(|screen| {
                    !screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste()
                })
        };
        let deadline = Instant::now() + limit;
        while !restored() {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Sets the modes that a shell sets when it stops a program.
    pub(super) fn set_shell_modes(&self) {
        tcsetattr(&self.slave, OptionalActions::Now, &self.original_modes).expect("terminal modes");
    }

    /// Waits until the guard has restored the modes.
    pub(super) fn wait_until_restored(&self) {
        self.wait("canonical mode", || {
            let now = tcgetattr(&self.slave).expect("terminal modes");
            now.local_modes.contains(LocalModes::ICANON)
        });
    }

    pub(super) fn wait_until_raw(&self) {
        self.wait("raw mode", || {
            let now = tcgetattr(&self.slave).expect("terminal modes");
            !now.local_modes.contains(LocalModes::ICANON)
        });
    }

    /// Closes the terminal, which hangs up the session.
    pub(super) fn close(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader ends");
        }
        self.master = None;
    }

    /// Whether ralph exits within the limit.
    pub(super) fn exits_within(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let pid = self.pid();
        while is_alive(pid) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        !is_alive(pid)
    }
}

/// Kills ralph and the fake shell, also after a failed test.
impl Drop for Terminal {
    fn drop(&mut self) {
        let pid = fs::read_to_string(self.notes.path().join("pid")).ok();
        let pid = pid.and_then(|pid| pid.parse().ok()).filter(|pid| is_alive(*pid));
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.shell.kill();
        let _ = self.shell.wait();
        self.stop.store(true, Ordering::SeqCst);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn read(master: &OwnedFd, output: &Mutex<TerminalOutput>, stop: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while !stop.load(Ordering::SeqCst) {
        let mut fds = [PollFd::from_borrowed_fd(master.as_fd(), PollFlags::IN)];
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        if !matches!(poll(&mut fds, Some(&timeout)), Ok(1..)) {
            continue;
        }
        let Ok(count @ 1..) = rustix::io::read(master, &mut buffer) else {
            return;
        };
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.parser.process(&buffer[..count]);
        output.bytes.extend_from_slice(&buffer[..count]);
        output.changed = Instant::now();
    }
}

fn window_size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

fn non_zero(size: u16) -> NonZeroU16 {
    NonZeroU16::new(size).expect("a size")
}
