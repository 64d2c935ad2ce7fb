//! The thread that draws. It draws what the fold holds when it comes to it, at most thirty times a second, less often
//! when a frame takes long, and not at all when nothing changed: frames are dropped, events never are, and whoever feeds the
//! fold never waits for the screen.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossterm::event::Event;
use jiff::{SignedDuration, Timestamp};

use super::commands::{CommandSender, SupportedCommands, UserCommand};
use super::draw::{self, Scene};
use super::files::Files;
use super::keys::{KeyAction, KeyContext};
use super::model::{Activity, State};
use super::run_files::{OpenRunFiles, RunFiles};
use super::tty::Tty;
use super::view::{Role, View};
use super::{OnEnd, clipboard, export};

const FRAME: Duration = Duration::from_millis(33);
/// While the agent floods us, every frame is all new and dear: drawing then has a fifth of the time, and no more.
const SPARING: u32 = 4;
/// But so often it draws, however dear a frame is.
const SLOWEST_FRAME: Duration = Duration::from_millis(250);
/// Clocks and spinners, while something is going on.
const TICK_MILLIS: i64 = 500;
const FOR_EVER: Duration = Duration::from_secs(24 * 3600);
const FLASH: SignedDuration = SignedDuration::from_secs(4);

/// What wakes the stage.
pub(super) enum RenderMsg {
    /// The fold has changed.
    Changed,
    Key(Event),
    CommandSender(Box<dyn CommandSender>),
    /// No more records come.
    Over,
    /// A signal asks to end.
    AskedOut,
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
    /// A signal asked us to leave.
    pub(super) asked_out: Arc<AtomicBool>,
    /// Drawing has panicked.
    pub(super) broken: AtomicBool,
    /// How far the clock of what is shown is from the one on the wall, in milliseconds: a recorded run has its own.
    pub(super) offset: AtomicI64,
}

impl Shared {
    pub(super) fn now(&self) -> Timestamp {
        let offset = SignedDuration::from_millis(self.offset.load(Ordering::Relaxed));
        let now = Timestamp::now();
        now.checked_add(offset).unwrap_or(now)
    }

    pub(super) fn snapshot(&self) -> State {
        self.dirty.store(false, Ordering::SeqCst);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(super) struct RenderLoop {
    pub(super) shared: Arc<Shared>,
    pub(super) tty: Tty,
    pub(super) view: View,
    pub(super) files: Files,
    pub(super) open_shelf: OpenRunFiles,
    pub(super) shelf: Option<Box<dyn RunFiles>>,
    pub(super) door: Option<Box<dyn CommandSender>>,
    pub(super) on_end: OnEnd,
    /// No more records come.
    pub(super) over: bool,
}

impl RenderLoop {
    /// Plays until the watcher leaves, the owner takes the screen away, or the terminal is gone.
    pub(super) fn play(mut self, stirs: &Receiver<RenderMsg>) {
        let last = match self.run(stirs) {
            Ok(Next::Leave) => Some(UserCommand::Left),
            Ok(Next::Close | Next::Stay) => None,
            Err(_) => Some(UserCommand::Gone),
        };
        // Before whoever drives the run hears of it, the terminal is free.
        let door = self.door.take();
        drop(self);
        if let (Some(door), Some(command)) = (door, last) {
            let _ = door.send(command);
        }
    }

    fn run(&mut self, stirs: &Receiver<RenderMsg>) -> io::Result<Next> {
        let mut state = self.shared.snapshot();
        let mut wanted = true;
        let mut last_frame: Option<Instant> = None;
        let mut pause = FRAME;
        loop {
            let since_frame = last_frame.map_or(pause, |at| at.elapsed());
            if wanted && since_frame >= pause {
                let begun = Instant::now();
                state = self.shared.snapshot();
                self.frame(&state)?;
                pause = (begun.elapsed() * SPARING).clamp(FRAME, SLOWEST_FRAME);
                (wanted, last_frame) = (false, Some(Instant::now()));
            }
            let rest = match (wanted, self.has_clock(&state)) {
                (true, _) => pause.saturating_sub(since_frame),
                (false, true) => self.until_tick(),
                (false, false) => FOR_EVER,
            };
            match stirs.recv_timeout(rest) {
                Err(RecvTimeoutError::Disconnected) => return Ok(Next::Close),
                Err(RecvTimeoutError::Timeout) => wanted = true,
                Ok(stir) => {
                    wanted = true;
                    match self.take(stir, &state)? {
                        Next::Stay => {}
                        next => return Ok(next),
                    }
                }
            }
        }
    }

    fn has_clock(&self, state: &State) -> bool {
        !state.is_over() || self.view.flash.is_some()
    }

    /// Until what shows time shows another one.
    fn until_tick(&self) -> Duration {
        let past = self.shared.now().as_millisecond().rem_euclid(TICK_MILLIS);
        Duration::from_millis(u64::try_from(TICK_MILLIS - past).unwrap_or(1))
    }

    fn take(&mut self, stir: RenderMsg, state: &State) -> io::Result<Next> {
        match stir {
            RenderMsg::Changed => {}
            RenderMsg::Key(Event::Resize(..)) => self.tty.resize()?,
            RenderMsg::Key(event) => return self.key(&event, state),
            RenderMsg::CommandSender(door) => {
                self.view.powers = SupportedCommands::of(&*door);
                // A signal from before there was anybody to hear it.
                if self.shared.asked_out.load(Ordering::SeqCst) {
                    let _ = door.send(UserCommand::Interrupt);
                }
                self.door = Some(door);
            }
            RenderMsg::Over => {
                self.over = true;
                if self.may_leave(&self.shared.snapshot()) {
                    return Ok(Next::Leave);
                }
            }
            // Whoever drives the run has heard it too, and comes to its end by itself.
            RenderMsg::AskedOut if self.view.role == Role::Driver && !self.over => {}
            RenderMsg::AskedOut => return Ok(Next::Leave),
            RenderMsg::Gone => return Err(io::Error::from(io::ErrorKind::BrokenPipe)),
            RenderMsg::Close => return Ok(Next::Close),
        }
        Ok(Next::Stay)
    }

    /// At the end of a run the screen stays for whoever is reading, and goes when it was only watched.
    fn may_leave(&self, state: &State) -> bool {
        let asked = self.view.asked_to_stop || self.shared.asked_out.load(Ordering::SeqCst);
        match (&state.activity, self.view.role) {
            _ if asked => true,
            (_, Role::Viewer) => false,
            (Activity::Ended { outcome, .. }, Role::Driver) => {
                let interrupted = matches!(outcome, crate::event::RunOutcome::Interrupted { .. });
                interrupted || (self.on_end == OnEnd::Leave && !self.view.is_reading())
            }
            (_, Role::Driver) => true,
        }
    }

    fn key(&mut self, event: &Event, state: &State) -> io::Result<Next> {
        let transcript = self.files.transcript(&self.view, state);
        let deed = self.view.hear(event, &KeyContext { state, transcript });
        match deed {
            None => {}
            Some(KeyAction::Leave) => return Ok(Next::Leave),
            Some(KeyAction::Send(command)) => self.send(command),
            Some(KeyAction::Copy(text)) => self.copy(&text)?,
            Some(KeyAction::Export) => self.export(state),
        }
        Ok(Next::Stay)
    }

    fn send(&mut self, command: UserCommand) {
        let said = match &command {
            UserCommand::Pause => Some("ralph will pause after this iteration; p takes it back"),
            UserCommand::Resume | UserCommand::GoOn => Some("going on"),
            UserCommand::GoOnWithoutAsking => Some("going on; you will not be asked again"),
            UserCommand::StopIteration => Some("stopping this iteration; the run goes on"),
            UserCommand::Tell(_) => Some("the agent will read it in the next prompt"),
            UserCommand::Interrupt | UserCommand::Quit => Some("stopping the agent; Ctrl-C kills it"),
            UserCommand::Wake | UserCommand::Left | UserCommand::Gone => None,
        };
        let sent = self.door.as_ref().map(|door| door.send(command));
        match (sent, said) {
            (Some(Err(why)), _) => self.flash(format!("that could not be told: {why}")),
            (_, Some(said)) => self.flash(said.to_owned()),
            (_, None) => {}
        }
    }

    fn copy(&mut self, text: &str) -> io::Result<()> {
        if text.len() > clipboard::MOST {
            self.flash("too long for the clipboard; e keeps it as a file".to_owned());
            return Ok(());
        }
        self.tty.send(&clipboard::sequence(text))?;
        let lines = crate::ui::units::count(text.lines().count() as u64, "line");
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
        self.view.flash = Some((text, self.shared.now() + FLASH));
    }

    fn frame(&mut self, state: &State) -> io::Result<()> {
        super::failpoint("draw", state);
        let now = self.shared.now();
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
    /// The watcher leaves.
    Leave,
    /// The screen is taken away.
    Close,
}
