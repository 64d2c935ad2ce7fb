//! The render thread: draws the current `TuiState` and handles keys.
//!
//! It draws at most 30 frames per second, fewer when a frame is slow, and none when nothing changed. Frames may be
//! dropped; records never are, and applying them never waits for the terminal.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossterm::event::Event;
use jiff::{SignedDuration, Timestamp};

use super::draw::{self, DrawContext};
use super::keys::{KeyAction, KeyContext};
use super::loaded_files::LoadedFiles;
use super::model::{RunActivity, TuiState};
use super::run_files::{OpenRunFiles, RunFiles};
use super::theme::{Background, ThemeChoice};
use super::tty::Tty;
use super::view::{CommandAccess, Role, View};
use super::{OnEnd, clipboard, export};
use crate::event::{Answer, Command, CommandSender, Interrupt};
use crate::failpoint;
use crate::panic_hook::PanicScope;
use crate::ui::{CloseReason, OnClose};

const MIN_FRAME_INTERVAL: Duration = Duration::from_millis(33);
/// The pause after a frame is this many times its duration: under a flood of output, drawing takes a fifth of the time.
const PAUSE_FACTOR: u32 = 4;
/// Upper limit for the pause between frames.
const MAX_FRAME_INTERVAL: Duration = Duration::from_millis(250);
/// Redraw interval of clocks and spinners.
const TICK_MILLIS: i64 = 500;
const IDLE_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// How long a message stays in the footer.
const FLASH_DURATION: SignedDuration = SignedDuration::from_secs(4);

/// A message that wakes the render thread.
pub(super) enum RenderMsg {
    /// The state has changed.
    Changed,
    Key(Event),
    /// The terminal has reported its background.
    Background(Background),
    SetCommands(CommandSender),
    SetOnClose(OnClose),
    /// No more records will arrive.
    RecordsEnded,
    /// SIGINT, SIGTERM or SIGHUP arrived.
    ShutdownRequested,
    TerminalClosed,
    /// The owner of the screen closes it.
    Shutdown,
}

/// State shared by the thread that applies records and the render thread.
pub(super) struct SharedState {
    pub(super) state: Mutex<TuiState>,
    /// A `Changed` message is queued.
    pub(super) dirty: AtomicBool,
    /// SIGINT, SIGTERM or SIGHUP arrived.
    pub(super) shutdown_requested: Arc<AtomicBool>,
    /// The render thread has panicked.
    pub(super) broken: AtomicBool,
    /// Displayed time minus system time, in milliseconds. A replay shows the recorded time.
    pub(super) offset: AtomicI64,
}

impl SharedState {
    pub(super) fn now(&self) -> Timestamp {
        let offset = SignedDuration::from_millis(self.offset.load(Ordering::Relaxed));
        let now = Timestamp::now();
        now.checked_add(offset).unwrap_or(now)
    }

    pub(super) fn snapshot(&self) -> TuiState {
        self.dirty.store(false, Ordering::SeqCst);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(super) struct RenderLoop {
    pub(super) shared: Arc<SharedState>,
    pub(super) tty: Tty,
    pub(super) view: View,
    pub(super) files: LoadedFiles,
    pub(super) open_run_files: OpenRunFiles,
    pub(super) run_files: Option<Box<dyn RunFiles>>,
    pub(super) commands: Option<CommandSender>,
    pub(super) on_close: Option<OnClose>,
    pub(super) on_end: OnEnd,
    pub(super) theme: ThemeChoice,
    /// No more records will arrive.
    pub(super) records_ended: bool,
    pub(super) panics: PanicScope,
}

impl RenderLoop {
    /// Runs until the user or the owner closes the screen, or the terminal is closed.
    pub(super) fn run(mut self, messages: &Receiver<RenderMsg>) {
        let reason = match self.process(messages) {
            Ok(LoopStep::UserClosed) => Some(CloseReason::ByUser),
            Ok(LoopStep::Shutdown | LoopStep::Continue) => None,
            Err(_) => Some(CloseReason::TerminalLost),
        };
        let on_close = self.on_close.take();
        // Restore the terminal before the run reacts.
        drop(self);
        if let (Some(on_close), Some(reason)) = (on_close, reason) {
            on_close(reason);
        }
    }

    fn process(&mut self, messages: &Receiver<RenderMsg>) -> io::Result<LoopStep> {
        if self.theme == ThemeChoice::Auto {
            self.tty.ask_for_background()?;
        }
        let mut state = self.shared.snapshot();
        let mut redraw = true;
        let mut last_frame: Option<Instant> = None;
        let mut pause = MIN_FRAME_INTERVAL;
        loop {
            let since_frame = last_frame.map_or(pause, |at| at.elapsed());
            if redraw && since_frame >= pause {
                let started = Instant::now();
                state = self.shared.snapshot();
                self.frame(&state)?;
                pause = (started.elapsed() * PAUSE_FACTOR).clamp(MIN_FRAME_INTERVAL, MAX_FRAME_INTERVAL);
                (redraw, last_frame) = (false, Some(Instant::now()));
            }
            let wait = match (redraw, self.shows_clock(&state)) {
                (true, _) => pause.saturating_sub(since_frame),
                (false, true) => self.until_tick(),
                (false, false) => IDLE_TIMEOUT,
            };
            match messages.recv_timeout(wait) {
                Err(RecvTimeoutError::Disconnected) => return Ok(LoopStep::Shutdown),
                Err(RecvTimeoutError::Timeout) => redraw = true,
                Ok(message) => {
                    redraw = true;
                    match self.handle(message, &state)? {
                        LoopStep::Continue => {}
                        next => return Ok(next),
                    }
                }
            }
        }
    }

    fn shows_clock(&self, state: &TuiState) -> bool {
        !state.is_over() || self.view.flash.is_some()
    }

    /// Time until the displayed clocks change.
    fn until_tick(&self) -> Duration {
        let past = self.shared.now().as_millisecond().rem_euclid(TICK_MILLIS);
        Duration::from_millis(u64::try_from(TICK_MILLIS - past).unwrap_or(1))
    }

    fn handle(&mut self, message: RenderMsg, state: &TuiState) -> io::Result<LoopStep> {
        match message {
            RenderMsg::Changed => {}
            RenderMsg::Key(Event::Resize(..)) => self.tty.resize()?,
            RenderMsg::Key(event) => return self.key(&event, state),
            RenderMsg::Background(background) => {
                if self.theme == ThemeChoice::Auto {
                    self.view.theme = self.view.theme.on(background);
                }
            }
            RenderMsg::SetCommands(commands) => {
                // A signal may have arrived before the run handled signals.
                if self.view.role == Role::Driver && self.shared.shutdown_requested.load(Ordering::SeqCst) {
                    let _ = commands.send_command(Command::Stop { by: Interrupt::Int });
                }
                self.view.commands = CommandAccess::Available;
                self.commands = Some(commands);
            }
            RenderMsg::SetOnClose(on_close) => self.on_close = Some(on_close),
            RenderMsg::RecordsEnded => {
                self.records_ended = true;
                if self.may_close(&self.shared.snapshot()) {
                    return Ok(LoopStep::UserClosed);
                }
            }
            // The driver of the run receives the signal as well and ends the run.
            RenderMsg::ShutdownRequested if self.view.role == Role::Driver && !self.records_ended => {}
            RenderMsg::ShutdownRequested => return Ok(LoopStep::UserClosed),
            RenderMsg::TerminalClosed => return Err(io::Error::from(io::ErrorKind::BrokenPipe)),
            RenderMsg::Shutdown => return Ok(LoopStep::Shutdown),
        }
        Ok(LoopStep::Continue)
    }

    /// Whether the screen may close at the end of the run. It stays open for a user who is reading.
    fn may_close(&self, state: &TuiState) -> bool {
        let stop_requested =
            self.view.stop_requested || self.shared.shutdown_requested.load(Ordering::SeqCst);
        match (&state.activity, self.view.role) {
            _ if stop_requested => true,
            (_, Role::Viewer) => false,
            (RunActivity::Ended { outcome, .. }, Role::Driver) => {
                let interrupted = matches!(outcome, crate::event::RunOutcome::Interrupted { .. });
                interrupted || (self.on_end == OnEnd::Close && !self.view.is_reading())
            }
            (_, Role::Driver) => true,
        }
    }

    fn key(&mut self, event: &Event, state: &TuiState) -> io::Result<LoopStep> {
        let files = &self.files;
        let action = self.view.on_event(event, KeyContext { state, files });
        match action {
            None => {}
            Some(KeyAction::Close) => return Ok(LoopStep::UserClosed),
            Some(KeyAction::Send(command)) => self.send(command),
            Some(KeyAction::Copy(text)) => self.copy(&text)?,
            Some(KeyAction::Export) => self.export(state),
            Some(KeyAction::Suspend) => self.tty.suspend()?,
            Some(KeyAction::Notify(text)) => self.flash(text.to_owned()),
        }
        Ok(LoopStep::Continue)
    }

    fn send(&mut self, command: Command) {
        let status = match &command {
            Command::Pause => Some("pausing after this iteration; press p to cancel"),
            Command::Resume => Some("resuming"),
            Command::StopIteration => Some("stopping this iteration; the run continues"),
            Command::Message { .. } => Some("message added to the next prompt"),
            Command::AnswerQuestion { .. } => Some("answer added to the next prompt"),
            Command::Stop { .. } => Some("stopping the agent; press Ctrl-C to kill it"),
            Command::Answer { answer } => match answer {
                Answer::Continue => Some("resuming"),
                Answer::ContinueWithoutAsking => Some("continuing without confirmation from now on"),
                Answer::Done | Answer::Quit => None,
            },
            Command::Publish { .. } | Command::Wake | Command::Kill => None,
        };
        let commands = self.commands.as_ref();
        let sent = commands.map(|commands| commands.send_command(command));
        match (sent, status) {
            (Some(Err(why)), _) => self.flash(format!("could not send the command: {why}")),
            (_, Some(status)) => self.flash(status.to_owned()),
            (_, None) => {}
        }
    }

    fn copy(&mut self, text: &str) -> io::Result<()> {
        if text.len() > clipboard::MAX_BYTES {
            self.flash("too long for the clipboard; press e to save the transcript as a file".to_owned());
            return Ok(());
        }
        self.tty.send(&clipboard::sequence(text))?;
        let lines = crate::ui::units::count(text.lines().count() as u64, "line");
        self.flash(format!("copied {lines} (if the terminal supports OSC 52)"));
        Ok(())
    }

    fn export(&mut self, state: &TuiState) {
        let entry = self
            .view
            .entry_index(state)
            .and_then(|index| state.entries.get(index));
        let (Some(entry), Some(run_files)) = (entry, &self.run_files) else {
            return;
        };
        let text = export::markdown(state, entry, self.files.transcript(&self.view, state));
        let status = match run_files.save(&export::file_name(entry), &text) {
            Ok(path) => format!("written to {}", path.display()),
            Err(error) => format!("could not write the transcript: {error}"),
        };
        self.flash(status);
    }

    fn flash(&mut self, text: String) {
        self.view.flash = Some((text, self.shared.now() + FLASH_DURATION));
    }

    fn frame(&mut self, state: &TuiState) -> io::Result<()> {
        if state.is_working() {
            failpoint!(self.panics, Draw);
        }
        let now = self.shared.now();
        if self.view.flash.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.view.flash = None;
        }
        if self.run_files.is_none() {
            self.run_files = state.header.as_ref().map(|header| (self.open_run_files)(header));
        }
        if let Some(run_files) = &self.run_files {
            self.files.load(&mut self.view, state, &**run_files);
        }
        let (files, view) = (&self.files, &mut self.view);
        let context = DrawContext { state, files, now };
        self.tty
            .terminal
            .draw(|frame| draw::draw(frame, &context, view))?;
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoopStep {
    Continue,
    /// The user closed the screen.
    UserClosed,
    /// The owner closed the screen.
    Shutdown,
}
