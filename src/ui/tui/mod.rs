//! The face worth watching: a run on the whole terminal. `model` folds records, `view` is where the watcher is,
//! `draw` shows the one from the other; all three are pure. `stage` is the thread that draws and listens, `tty` the
//! terminal it draws on. Keys become `Wish`es; what comes of them is decided elsewhere.

mod copy;
mod document;
mod draw;
mod export;
mod files;
mod keys;
mod model;
mod screen;
mod shelf;
mod stage;
#[cfg(test)]
mod tests;
mod text;
mod theme;
mod tty;
mod view;
mod wish;

pub use shelf::{Attempt, OpenShelf, Shelf};
pub use view::Role;
pub use wish::{Door, Powers, Wish, WishKind};

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::tz::TimeZone;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::files::Files;
use self::model::State;
use self::stage::{Shared, Stage, Stir};
use self::theme::{Colour, Theme};
use self::tty::Tty;
use self::view::View;
use super::{Face, Plain, PlainOptions, Verbosity};
use crate::event::{Record, RunEvent, Sink};

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
    pub open_shelf: OpenShelf,
}

/// A face on the whole terminal.
pub struct Tui {
    shared: Arc<Shared>,
    to_stage: Sender<Stir>,
    stage: Option<JoinHandle<()>>,
    listener: Option<JoinHandle<()>>,
    closed: Arc<AtomicBool>,
    /// Ends when the stage does.
    done: Receiver<()>,
    /// What is left on the ordinary screen afterwards.
    report: Option<Plain<Kept>>,
    kept: Kept,
}

impl Tui {
    /// Takes the terminal over.
    pub fn open(options: TuiOptions) -> io::Result<Self> {
        let tty = Tty::take()?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(TimeZone::system())),
            dirty: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            asked_out: Arc::default(),
        });
        let (to_stage, stirs) = mpsc::channel();
        let (finished, done) = mpsc::channel();
        let closed = Arc::new(AtomicBool::new(false));
        let kept = Kept::default();
        let report = PlainOptions {
            colour: options.colour,
            live: false,
            width: options.width,
            verbosity: Verbosity::Quiet,
        };
        let report = (options.role == Role::Driver).then(|| Plain::new(kept.clone(), report));
        let colour = if options.colour {
            Colour::Used
        } else {
            Colour::Refused
        };
        let for_stage = Arc::clone(&shared);
        let stage = std::thread::spawn(move || {
            // Dropped with the stage, also when drawing panics.
            let _finished = finished;
            let stage = Stage {
                shared: for_stage,
                tty,
                view: View::new(Theme::new(colour), options.role),
                files: Files::default(),
                open_shelf: options.open_shelf,
                shelf: None,
                door: None,
                on_end: options.on_end,
            };
            stage.play(&stirs);
        });
        let (to_keys, keys_closed) = (to_stage.clone(), Arc::clone(&closed));
        let listener = std::thread::spawn(move || stage::listen(&to_keys, &keys_closed));
        Ok(Self {
            shared,
            to_stage,
            stage: Some(stage),
            listener: Some(listener),
            closed,
            done,
            report,
            kept,
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

    /// From now on a signal that asks to end takes the screen away.
    pub fn obey_signals(&self) -> io::Result<()> {
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&self.shared.asked_out))?;
        }
        Ok(())
    }

    fn change(&self, act: impl FnOnce(&mut State)) {
        act(&mut self.shared.state.lock().unwrap_or_else(PoisonError::into_inner));
        // One word is enough until the stage has looked; there is never more than one on the way.
        if !self.shared.dirty.swap(true, Ordering::SeqCst) {
            // Nobody is there any more once the watcher has left.
            let _ = self.to_stage.send(Stir::Changed);
        }
    }

    /// Gives the terminal back.
    fn close(&mut self) {
        let _ = self.to_stage.send(Stir::Close);
        self.closed.store(true, Ordering::SeqCst);
        for thread in [self.stage.take(), self.listener.take()].into_iter().flatten() {
            // A panic was already told.
            let _ = thread.join();
        }
    }
}

impl Sink for Tui {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        if self.shared.gone.load(Ordering::SeqCst) {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
        if let Some(report) = self.report.as_mut().filter(|_| is_for_the_report(&record.event)) {
            report.accept(record)?;
        }
        self.change(|state| state.apply(record));
        Ok(())
    }
}

impl Face for Tui {
    fn take_door(&mut self, door: Box<dyn Door>) {
        // Without a stage there is nobody to wish.
        let _ = self.to_stage.send(Stir::Door(door));
    }

    fn farewell(&mut self) {
        // Who reads may go on reading; a signal ends that. Where none can be listened for, the screen goes now.
        if self.obey_signals().is_ok() && self.to_stage.send(Stir::Over).is_ok() {
            while !self.left_within(Duration::from_secs(3600)) {}
        }
        self.close();
    }
}

impl Drop for Tui {
    fn drop(&mut self) {
        self.close();
        self.report = None;
        let text = std::mem::take(&mut *self.kept.lock());
        // Nobody is left to hear of an error.
        let _ = io::stdout().write_all(&text);
        let _ = io::stdout().flush();
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
