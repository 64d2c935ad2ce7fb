//! The face worth watching: a run on the whole terminal. `model` folds records, `view` is where the watcher is,
//! `draw` shows the one from the other; all three are pure. `stage` is the thread that draws, `keyboard` the one that
//! listens, `tty` the terminal. Keys become `UserCommand`es; what comes of them is decided elsewhere.

mod agent_screen;
mod clipboard;
mod commands;
mod decode;
mod document;
mod draw;
mod export;
mod fallback;
mod files;
mod guard;
mod keyboard;
mod keys;
mod layout;
mod model;
mod render_loop;
mod run_files;
#[cfg(test)]
mod tests;
mod text;
mod theme;
mod tty;
mod view;

pub use commands::{CommandSender, SupportedCommands, UserCommand, UserCommandKind};
pub use guard::{GOODBYE, GUARD, guard_if_asked};
pub use run_files::{Attempt, OpenRunFiles, RunFiles};
pub use tty::{GIVE_BACK, Guard};
pub use view::Role;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use self::fallback::Fallback;
use self::files::Files;
use self::keyboard::Keyboard;
use self::model::State;
use self::render_loop::{RenderLoop, RenderMsg, Shared};
use self::theme::{Colour, Theme};
use self::tty::Tty;
use self::view::View;
use super::{FrontEnd, Plain, PlainOptions, Verbosity};
use crate::event::{Record, RunEvent, Sink};
use crate::panic_hook;

/// What happens to the screen when the run is over and nobody is reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnEnd {
    Leave,
    Stay,
}

/// How the screen is to be.
pub struct TuiOptions {
    pub colour: bool,
    pub role: Role,
    pub on_end: OnEnd,
    /// Columns of the report that is left on the ordinary screen.
    pub width: u16,
    pub open_shelf: OpenRunFiles,
    pub guard: Option<Guard>,
}

/// A face on the whole terminal.
pub struct Tui {
    shared: Arc<Shared>,
    to_stage: Sender<RenderMsg>,
    stage: Option<JoinHandle<()>>,
    keyboard: Option<Keyboard>,
    /// Ends when the stage does.
    done: Receiver<()>,
    role: Role,
    /// What is left on the ordinary screen afterwards.
    report: Option<Plain<Kept>>,
    kept: Kept,
    refuge: Fallback,
}

/// How long a stage that was told to end may take; a terminal that takes no text keeps it for ever.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often one who waits for the watcher looks up.
const LOOK_UP: Duration = Duration::from_secs(1);
/// A clock that goes at another speed is wound this often.
const WIND: Duration = Duration::from_millis(500);

impl Tui {
    /// Takes the terminal over.
    pub fn open(options: TuiOptions) -> io::Result<Self> {
        let tty = Tty::take(options.guard)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(TimeZone::system())),
            dirty: AtomicBool::new(false),
            asked_out: Arc::default(),
            broken: AtomicBool::new(false),
            offset: AtomicI64::new(0),
        });
        let (to_stage, stirs) = mpsc::channel();
        let (finished, done) = mpsc::channel();
        let keyboard = Keyboard::listen(to_stage.clone(), &shared.asked_out)?;
        let kept = Kept::default();
        let lines = PlainOptions {
            colour: options.colour,
            live: true,
            width: options.width,
            verbosity: Verbosity::Normal,
        };
        let report = PlainOptions {
            live: false,
            verbosity: Verbosity::Quiet,
            ..lines
        };
        let role = options.role;
        let (for_stage, alarm) = (Arc::clone(&shared), Alarm(Arc::clone(&shared)));
        let name = match role {
            Role::Driver => panic_hook::SCREEN,
            Role::Viewer => "viewer",
        };
        let play = move || {
            // Dropped with the stage, also when drawing panics; the alarm first.
            let _finished = finished;
            let _alarm = alarm;
            let stage = RenderLoop {
                shared: for_stage,
                tty,
                view: View::new(Theme::new(Colour::of(options.colour)), role),
                files: Files::default(),
                open_shelf: options.open_shelf,
                shelf: None,
                door: None,
                on_end: options.on_end,
                over: false,
            };
            stage.play(&stirs);
        };
        let stage = std::thread::Builder::new().name(name.into()).spawn(play)?;
        Ok(Self {
            shared,
            to_stage,
            stage: Some(stage),
            keyboard: Some(keyboard),
            done,
            role,
            report: (role == Role::Driver).then(|| Plain::new(kept.clone(), report)),
            kept,
            refuge: Fallback::new(lines),
        })
    }

    /// Waits until the watcher leaves, at most so long.
    pub fn left_within(&self, time: Duration) -> bool {
        self.done.recv_timeout(time) == Err(RecvTimeoutError::Disconnected)
    }

    /// Whoever drove the run is gone without a word.
    pub fn lose(&self) {
        self.change(State::lose);
    }

    fn change(&self, act: impl FnOnce(&mut State)) {
        act(&mut self.shared.state.lock().unwrap_or_else(PoisonError::into_inner));
        // One word is enough until the stage has looked; there is never more than one on the way.
        if !self.shared.dirty.swap(true, Ordering::SeqCst) {
            // Nobody is there any more once the watcher has left.
            let _ = self.to_stage.send(RenderMsg::Changed);
        }
    }

    /// Gives the terminal back. Says whether it is fit to be written to.
    fn close(&mut self) -> bool {
        let _ = self.to_stage.send(RenderMsg::Close);
        self.keyboard = None;
        let Some(stage) = self.stage.take() else {
            return true;
        };
        if !self.left_within(PATIENCE) {
            tty::give_back();
            return false;
        }
        // A panic was already told.
        let _ = stage.join();
        true
    }

    fn is_broken(&self) -> bool {
        self.shared.broken.load(Ordering::SeqCst) || tty::is_lost()
    }
}

impl Sink for Tui {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        self.refuge.note(record);
        if self.is_broken() && self.role == Role::Driver {
            self.report = None;
            return self.refuge.accept(record);
        }
        if let Some(report) = self.report.as_mut().filter(|_| is_for_the_report(&record.event)) {
            report.accept(record)?;
        }
        self.change(|state| {
            failpoint("run", state);
            state.apply(record);
        });
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.refuge.flush()
    }
}

impl FrontEnd for Tui {
    fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        let offset = now.duration_since(Timestamp::now()).as_millis();
        let offset = i64::try_from(offset).unwrap_or_default();
        self.shared.offset.store(offset, Ordering::Relaxed);
        self.refuge.tick(now)
    }

    fn wants_tick(&self) -> Option<Duration> {
        let is_elsewhere = self.shared.offset.load(Ordering::Relaxed).abs() > 5000;
        self.refuge.wants_tick().or(is_elsewhere.then_some(WIND))
    }

    fn recall(&mut self, record: &Record) {
        self.change(|state| state.apply(record));
    }

    fn set_commands(&mut self, door: Box<dyn CommandSender>) -> super::Keyboard {
        // Without a stage there is nobody to wish.
        let _ = self.to_stage.send(RenderMsg::CommandSender(door));
        super::Keyboard::Taken
    }

    /// Who reads may go on reading; a signal ends that, also where the terminal takes no text any more.
    fn finish(&mut self) {
        self.lose();
        let mut patience = 2;
        if self.to_stage.send(RenderMsg::Over).is_ok() {
            while patience > 0 && !self.left_within(LOOK_UP) {
                patience -= u8::from(self.shared.asked_out.load(Ordering::SeqCst));
            }
        }
        self.close();
    }
}

impl Drop for Tui {
    fn drop(&mut self) {
        let fit = self.close();
        self.report = None;
        let text = std::mem::take(&mut *self.kept.lock());
        if fit && !self.is_broken() {
            // Nobody is left to hear of an error.
            let _ = io::stdout().write_all(&text);
            let _ = io::stdout().flush();
        }
    }
}

/// Rings when the stage comes down by a panic.
struct Alarm(Arc<Shared>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::SeqCst);
        }
    }
}

/// For the tests of what happens then: a mistake in the named place, once an agent is at work.
fn failpoint(place: &str, state: &State) {
    if state.is_working() {
        panic_hook::failpoint(place);
    }
}

/// The report needs no transcript: the records that it does need are few.
fn is_for_the_report(event: &RunEvent) -> bool {
    !matches!(event, RunEvent::Transcript { .. } | RunEvent::Stderr { .. })
}

/// Bytes that are kept until the terminal is free.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
