//! The thread that draws and listens to the keyboard. It draws what the fold holds when it comes to it, at most thirty
//! times a second and not at all when nothing changed: frames are dropped, events never are, and whoever feeds the
//! fold never waits for the screen.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event};
use jiff::{SignedDuration, Timestamp};

use super::draw::{self, Scene};
use super::files::Files;
use super::keys::{Deed, Desk};
use super::model::{Activity, State};
use super::shelf::{OpenShelf, Shelf};
use super::tty::Tty;
use super::view::View;
use super::wish::{Door, Powers, Wish};
use super::{OnEnd, copy, export};

const FRAME: Duration = Duration::from_millis(33);
/// Clocks and spinners, while something is going on.
const TICK: Duration = Duration::from_millis(500);
/// How soon the keyboard's thread notices that it is over.
const LISTEN: Duration = Duration::from_millis(100);
const FLASH: SignedDuration = SignedDuration::from_secs(4);

/// What wakes the stage.
pub(super) enum Stir {
    /// The fold has changed.
    Changed,
    Key(Event),
    Door(Box<dyn Door>),
    /// No more records come.
    Over,
    /// The terminal is gone.
    Gone,
    /// Whoever owns the screen takes it away.
    Close,
}

/// What the feeding side and the drawing side share.
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    /// The stage was told of a change and has not looked yet.
    pub(super) dirty: AtomicBool,
    /// Nobody can see the screen any more.
    pub(super) gone: AtomicBool,
    /// A signal asked us to leave.
    pub(super) asked_out: Arc<AtomicBool>,
}

impl Shared {
    pub(super) fn snapshot(&self) -> State {
        self.dirty.store(false, Ordering::SeqCst);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(super) struct Stage {
    pub(super) shared: Arc<Shared>,
    pub(super) tty: Tty,
    pub(super) view: View,
    pub(super) files: Files,
    pub(super) open_shelf: OpenShelf,
    pub(super) shelf: Option<Box<dyn Shelf>>,
    pub(super) door: Option<Box<dyn Door>>,
    pub(super) on_end: OnEnd,
}

/// Listens to the keyboard until the stage is gone.
pub(super) fn listen(to_stage: &Sender<Stir>, closed: &AtomicBool) {
    while !closed.load(Ordering::SeqCst) {
        let stir = match event::poll(LISTEN) {
            Ok(false) => continue,
            Ok(true) => event::read().map_or(Stir::Gone, Stir::Key),
            Err(_) => Stir::Gone,
        };
        let was_last = matches!(stir, Stir::Gone);
        if to_stage.send(stir).is_err() || was_last {
            return;
        }
    }
}

impl Stage {
    pub(super) fn play(mut self, stirs: &Receiver<Stir>) {
        if self.run(stirs).is_err() {
            self.shared.gone.store(true, Ordering::SeqCst);
        }
    }

    fn run(&mut self, stirs: &Receiver<Stir>) -> io::Result<()> {
        let mut state = self.shared.snapshot();
        let mut wanted = true;
        let mut last_frame: Option<Instant> = None;
        let mut last_tick = Instant::now();
        loop {
            let since_frame = last_frame.map_or(FRAME, |at| at.elapsed());
            if wanted && since_frame >= FRAME {
                state = self.shared.snapshot();
                self.frame(&state)?;
                (wanted, last_frame, last_tick) = (false, Some(Instant::now()), Instant::now());
            }
            let rest = if wanted {
                FRAME.saturating_sub(since_frame)
            } else {
                TICK
            };
            match stirs.recv_timeout(rest) {
                Ok(Stir::Close) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(stir) => {
                    wanted = true;
                    if self.take(stir, &state)? == Next::Leave {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.shared.asked_out.load(Ordering::SeqCst) {
                return Ok(());
            }
            wanted |= last_tick.elapsed() >= TICK && self.has_clock(&state);
        }
    }

    fn has_clock(&self, state: &State) -> bool {
        !state.is_over() || self.view.flash.is_some()
    }

    fn take(&mut self, stir: Stir, state: &State) -> io::Result<Next> {
        match stir {
            Stir::Changed => {}
            Stir::Key(event) => return self.key(&event, state),
            Stir::Door(door) => {
                self.view.powers = Powers::of(&*door);
                self.door = Some(door);
            }
            Stir::Over => {
                if self.may_leave(&self.shared.snapshot()) {
                    return Ok(Next::Leave);
                }
            }
            Stir::Gone => return Err(io::Error::from(io::ErrorKind::BrokenPipe)),
            Stir::Close => return Ok(Next::Leave),
        }
        Ok(Next::Stay)
    }

    /// At the end of a run the screen stays for whoever is reading, and goes when it was only watched.
    fn may_leave(&self, state: &State) -> bool {
        let asked = self.view.asked_to_stop;
        match &state.activity {
            Activity::Ended { outcome, .. } if !asked => {
                let interrupted = matches!(outcome, crate::event::RunOutcome::Interrupted { .. });
                interrupted || (self.on_end == OnEnd::Leave && !self.view.is_reading())
            }
            _ => true,
        }
    }

    fn key(&mut self, event: &Event, state: &State) -> io::Result<Next> {
        let transcript = self.files.transcript(&self.view, state);
        let deed = self.view.hear(event, &Desk { state, transcript });
        match deed {
            None => {}
            Some(Deed::Leave) => return Ok(Next::Leave),
            Some(Deed::Send(wish)) => self.send(wish),
            Some(Deed::Copy(text)) => self.copy(&text)?,
            Some(Deed::Export) => self.export(state),
        }
        Ok(Next::Stay)
    }

    fn send(&mut self, wish: Wish) {
        let said = match &wish {
            Wish::Pause => Some("ralph will pause after this iteration; p takes it back"),
            Wish::Resume => Some("going on"),
            Wish::StopIteration => Some("stopping this iteration; the run goes on"),
            Wish::Tell(_) => Some("the agent will read it in the next prompt"),
            Wish::Interrupt => Some("stopping the agent; Ctrl-C once more kills it"),
            Wish::Wake => None,
        };
        if let Some(door) = &self.door {
            door.send(wish);
        }
        if let Some(said) = said {
            self.flash(said.to_owned());
        }
    }

    fn copy(&mut self, text: &str) -> io::Result<()> {
        if text.len() > copy::MOST {
            self.flash("too long for the clipboard; e keeps it as a file".to_owned());
            return Ok(());
        }
        self.tty.send(&copy::sequence(text))?;
        let lines = crate::ui::words::count(text.lines().count() as u64, "line");
        self.flash(format!("copied {lines}, if your terminal allows it"));
        Ok(())
    }

    fn export(&mut self, state: &State) {
        let entry = self
            .view
            .entry_index(state)
            .and_then(|index| state.entries.get(index));
        let (Some(entry), Some(shelf)) = (entry, &self.shelf) else {
            return;
        };
        let text = export::markdown(state, entry, self.files.transcript(&self.view, state));
        let said = match shelf.keep(&export::file_name(entry), &text) {
            Ok(path) => format!("written to {}", path.display()),
            Err(error) => format!("could not be written: {error}"),
        };
        self.flash(said);
    }

    fn flash(&mut self, text: String) {
        self.view.flash = Some((text, Timestamp::now() + FLASH));
    }

    fn frame(&mut self, state: &State) -> io::Result<()> {
        let now = Timestamp::now();
        if self.view.flash.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.view.flash = None;
        }
        if self.shelf.is_none() {
            self.shelf = state.header.as_ref().map(|header| (self.open_shelf)(header));
        }
        if let Some(shelf) = &self.shelf {
            self.files.fetch(&self.view, state, &**shelf);
        }
        let (files, view) = (&self.files, &mut self.view);
        let scene = Scene { state, files, now };
        self.tty.terminal.draw(|frame| draw::draw(frame, &scene, view))?;
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Stay,
    Leave,
}
