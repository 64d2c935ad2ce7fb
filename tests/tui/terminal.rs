//! A terminal of our own: a PTY with an emulator behind it, and ralph in its foreground. What ralph writes is kept byte
//! by byte, what it shows is read off the emulated screen, and how it leaves the terminal is looked at when it is gone.

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

use crate::process::stage::{fake_agent, is_alive};
use crate::sandbox::Sandbox;

/// Far more than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// A screen that has not changed for so long is as it will be.
const QUIET: Duration = Duration::from_millis(150);

pub(crate) struct Terminal {
    master: Option<Arc<OwnedFd>>,
    /// Our own look at the other side: what the settings are.
    slave: OwnedFd,
    before: Termios,
    seen: Arc<Mutex<Seen>>,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    shell: Child,
    notes: TempDir,
}

struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
    changed: Instant,
}

impl Terminal {
    /// `ralph` with these arguments, on a terminal of this size (columns, rows).
    pub(super) fn start(sandbox: &Sandbox, arguments: &[&str], size: (u16, u16)) -> Self {
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
        grantpt(&master).expect("a terminal of our own");
        unlockpt(&master).expect("an open terminal");
        let name = ptsname(&master, Vec::new()).expect("a name of the terminal");
        let name = name.into_string().expect("a name in letters");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = open(name.as_str(), flags, Mode::empty()).expect("the other side");
        let before = tcgetattr(&slave).expect("its settings");
        tcsetwinsize(&slave, window(columns, rows)).expect("its size");
        let notes = TempDir::new().expect("a temporary directory");
        let like = sandbox.command(arguments);
        let mut shell = Command::new(fake_agent());
        shell.args(["__terminal", name.as_str()]).arg(notes.path());
        shell.arg(like.get_program()).args(like.get_args());
        shell.env_clear().current_dir(sandbox.work());
        for (name, value) in like.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        shell
            .env("TERM", "xterm-256color")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        let shell = shell.spawn().expect("the part of a shell");
        let master = Arc::new(master);
        let seen = Arc::new(Mutex::new(Seen {
            parser: vt100::Parser::new(number(rows), number(columns), 0),
            bytes: Vec::new(),
            changed: Instant::now(),
        }));
        let stop = Arc::new(AtomicBool::new(false));
        let reader = std::thread::spawn({
            let (master, seen, stop) = (Arc::clone(&master), Arc::clone(&seen), Arc::clone(&stop));
            move || read(&master, &seen, &stop)
        });
        Self {
            master: Some(master),
            slave,
            before,
            seen,
            stop,
            reader: Some(reader),
            shell,
            notes,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.note("pid").parse().expect("a pid")
    }

    /// Waits for a note of the shell.
    fn note(&self, name: &str) -> String {
        let path: PathBuf = self.notes.path().join(name);
        self.wait(&format!("the note {name}"), || path.exists());
        fs::read_to_string(path).expect("a note")
    }

    pub(super) fn kill(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid()).expect("a pid");
        kill_process(pid, signal).expect("a process to signal");
    }

    pub(crate) fn keys(&self, keys: &str) {
        let mut bytes = keys.as_bytes();
        let master = self.master.as_ref().expect("a terminal");
        while !bytes.is_empty() {
            let count = rustix::io::write(master.as_ref(), bytes).expect("keys are taken");
            bytes = &bytes[count..];
        }
    }

    pub(super) fn resize(&self, columns: u16, rows: u16) {
        // The emulator first: what is drawn for the new size must find it.
        self.lock()
            .parser
            .screen_mut()
            .set_size(number(rows), number(columns));
        let master = self.master.as_ref().expect("a terminal");
        tcsetwinsize(master.as_ref(), window(columns, rows)).expect("another size");
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is on the screen.
    pub(super) fn screen(&self) -> String {
        let contents = self.lock().parser.screen().contents();
        contents.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.lock().parser.screen())
    }

    /// Everything that was ever written to the terminal.
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
        self.wait(&format!("{text:?} to go"), || !self.screen().contains(text));
    }

    #[track_caller]
    fn wait(&self, what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !condition() {
            assert!(
                Instant::now() < deadline,
                "waited in vain for {what}:\n{}",
                self.screen()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The screen once nothing moves on it any more.
    pub(super) fn still(&self) -> String {
        self.wait("a screen that stands still", || {
            self.lock().changed.elapsed() > QUIET
        });
        self.screen()
    }

    /// Waits for the end, and looks at what is left: the terminal must be as it was found.
    #[track_caller]
    pub(super) fn ends(&self, status: &str) {
        assert_eq!(self.note("status"), status, "{}", self.screen());
        // What was written last may still be on its way to the emulator.
        self.still();
        self.wait("the ordinary screen", || {
            !self.look(vt100::Screen::alternate_screen)
        });
        self.wait("the cursor", || !self.look(vt100::Screen::hide_cursor));
        let after = tcgetattr(&self.slave).expect("its settings");
        assert_eq!(format!("{:?}", self.before), format!("{after:?}"), "stty");
        self.look(|screen| {
            assert!(!screen.bracketed_paste());
            assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
            assert!(!screen.application_cursor() && !screen.application_keypad());
            assert_eq!((screen.fgcolor(), screen.bold()), (vt100::Color::Default, false));
        });
        assert!(!is_alive(self.pid()));
    }

    /// How it ended, if it does in this time.
    pub(crate) fn status_within(&self, limit: Duration) -> Option<String> {
        let path = self.notes.path().join("status");
        let deadline = Instant::now() + limit;
        while !path.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        fs::read_to_string(path).ok()
    }

    /// Whether everything about the terminal is as it was found, or is so in this time.
    pub(crate) fn is_given_back_within(&self, limit: Duration) -> bool {
        let as_it_was = || {
            let after = tcgetattr(&self.slave).expect("its settings");
            let settings = format!("{:?}", self.before) == format!("{after:?}");
            settings
                && self.look(|screen| {
                    !screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste()
                })
        };
        let deadline = Instant::now() + limit;
        while !as_it_was() {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// What a shell does with the terminal of a program that was stopped.
    pub(super) fn take_for_shell(&self) {
        tcsetattr(&self.slave, OptionalActions::Now, &self.before).expect("other settings");
    }

    /// By somebody else than the one who took it, who cannot any more.
    pub(super) fn wait_until_given_back(&self) {
        self.wait("a terminal for lines", || {
            let now = tcgetattr(&self.slave).expect("its settings");
            now.local_modes.contains(LocalModes::ICANON)
        });
    }

    pub(super) fn wait_until_raw(&self) {
        self.wait("a terminal for single keys", || {
            let now = tcgetattr(&self.slave).expect("its settings");
            !now.local_modes.contains(LocalModes::ICANON)
        });
    }

    /// The window is closed: nobody reads, nobody types, and the session is told.
    pub(super) fn vanish(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader ends");
        }
        self.master = None;
    }

    /// Whether ralph ends by itself.
    pub(super) fn is_gone_within(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let pid = self.pid();
        while is_alive(pid) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        !is_alive(pid)
    }
}

/// A failed test leaves nothing behind either.
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

fn read(master: &OwnedFd, seen: &Mutex<Seen>, stop: &AtomicBool) {
    let mut piece = vec![0; 1 << 16];
    while !stop.load(Ordering::SeqCst) {
        let mut fds = [PollFd::from_borrowed_fd(master.as_fd(), PollFlags::IN)];
        let patience = Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        if !matches!(poll(&mut fds, Some(&patience)), Ok(1..)) {
            continue;
        }
        let Ok(count @ 1..) = rustix::io::read(master, &mut piece) else {
            return;
        };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.parser.process(&piece[..count]);
        seen.bytes.extend_from_slice(&piece[..count]);
        seen.changed = Instant::now();
    }
}

fn window(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

fn number(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a size")
}
