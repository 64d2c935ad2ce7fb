//! Key handling: each key changes the view or returns a `KeyAction` for the render loop.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::document::{Direction, Scroll};
use super::model::{RunActivity, Transcript, TuiState};
use super::text::{Fold, Thinking, block_text};
use super::view::{CommandAccess, Overlay, Role, Tab, ToolOrder, View, block};
use crate::event::{Answer, Command, Interrupt};

/// An effect of a key outside the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyAction {
    Send(Command),
    /// Put this text on the clipboard.
    Copy(String),
    /// Save the displayed transcript as a file.
    Export,
    /// Close the screen.
    Close,
}

/// The data that keys act on.
pub(super) struct KeyContext<'a> {
    pub(super) state: &'a TuiState,
    /// The displayed transcript.
    pub(super) transcript: &'a Transcript,
}

/// At least the number of lines in the list of keys.
const MAX_HELP_SCROLL: usize = 20;
/// Limit for a typed text, in bytes.
const MAX_INPUT: usize = 4000;

impl View {
    pub(super) fn on_event(&mut self, event: &Event, context: &KeyContext<'_>) -> Option<KeyAction> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.lay_out_all(context.transcript);
                self.press(*key, context)
            }
            Event::Paste(text) => {
                self.type_in(text);
                None
            }
            _ => None,
        }
    }

    fn press(&mut self, key: KeyEvent, context: &KeyContext<'_>) -> Option<KeyAction> {
        self.flash = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Some(self.stop(Interrupt::Int, context));
        }
        match &self.overlay {
            Overlay::None => self.command(key, context),
            Overlay::Help(first) => {
                self.overlay = match key.code {
                    KeyCode::Up => Overlay::Help(first.saturating_sub(1)),
                    KeyCode::Down => Overlay::Help((first + 1).min(MAX_HELP_SCROLL)),
                    _ => Overlay::None,
                };
                None
            }
            Overlay::ConfirmStop => {
                self.overlay = Overlay::None;
                let confirmed = matches!(key.code, KeyCode::Char('y' | 'Y' | 'q') | KeyCode::Enter);
                confirmed.then(|| self.stop(Interrupt::Quit, context))
            }
            Overlay::Search(_) | Overlay::Message(_) => self.type_key(key),
        }
    }

    /// Stops the run. A viewer only closes the screen.
    fn stop(&mut self, by: Interrupt, context: &KeyContext<'_>) -> KeyAction {
        if self.role == Role::Viewer || context.state.is_over() {
            return KeyAction::Close;
        }
        self.stop_requested = true;
        KeyAction::Send(Command::Stop { by })
    }

    fn command(&mut self, key: KeyEvent, context: &KeyContext<'_>) -> Option<KeyAction> {
        let page = isize::try_from(self.height.saturating_sub(2)).unwrap_or(1).max(1);
        match key.code {
            KeyCode::Up if self.tab == Tab::Tools => self.select(Direction::Up),
            KeyCode::Down if self.tab == Tab::Tools => self.select(Direction::Down),
            KeyCode::Up => self.scroll_by(-1),
            KeyCode::Down => self.scroll_by(1),
            KeyCode::PageUp => self.scroll_by(-page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll_by(page),
            KeyCode::Home | KeyCode::Char('g') => self.set_scroll(Scroll::START),
            KeyCode::End | KeyCode::Char('G') => self.follow(),
            KeyCode::Char('k') => self.select(Direction::Up),
            KeyCode::Char('j') => self.select(Direction::Down),
            KeyCode::Left => self.step_iteration(Direction::Up, context.state),
            KeyCode::Right => self.step_iteration(Direction::Down, context.state),
            KeyCode::Tab => self.step_tab(1),
            KeyCode::BackTab => self.step_tab(Tab::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='6') => self.show(Tab::ALL[digit as usize - '1' as usize]),
            KeyCode::Enter if self.selected.is_none() && self.tab == Tab::Transcript => {
                let answer = self.request('c', context.state);
                if answer.is_some() {
                    return answer;
                }
                self.enter(context);
            }
            KeyCode::Enter => self.enter(context),
            KeyCode::Esc => self.step_back(),
            KeyCode::Char(c) => return self.letter(c, context),
            _ => {}
        }
        None
    }

    fn letter(&mut self, letter: char, context: &KeyContext<'_>) -> Option<KeyAction> {
        match letter {
            '/' => self.overlay = Overlay::Search(String::new()),
            'n' => self.search(Direction::Down),
            'N' => self.search(Direction::Up),
            't' => {
                self.thinking = match self.thinking {
                    Thinking::Brief => Thinking::Full,
                    Thinking::Full => Thinking::Hidden,
                    Thinking::Hidden => Thinking::Brief,
                };
            }
            'o' if self.tab == Tab::Tools => {
                self.order = match self.order {
                    ToolOrder::Started => ToolOrder::Longest,
                    ToolOrder::Longest => ToolOrder::Started,
                };
            }
            'o' => {
                self.outputs = match self.outputs {
                    Fold::Closed => Fold::Open,
                    Fold::Open => Fold::Closed,
                };
            }
            '<' => self.pan = self.pan.saturating_sub(20),
            '>' => self.pan = (self.pan + 20).min(400),
            '?' => self.overlay = Overlay::Help(0),
            'y' => return self.copy(context.transcript),
            'e' => return Some(KeyAction::Export),
            'q' if self.role == Role::Viewer || context.state.is_over() => return Some(KeyAction::Close),
            // The confirmation prompt is already open, and `q` is one of its answers.
            'q' if matches!(context.state.activity, RunActivity::AwaitingConfirmation { .. }) => {
                return Some(self.stop(Interrupt::Quit, context));
            }
            'q' => self.overlay = Overlay::ConfirmStop,
            command => return self.request(command, context.state),
        }
        None
    }

    fn request(&mut self, letter: char, state: &TuiState) -> Option<KeyAction> {
        if state.is_over() || self.commands == CommandAccess::Unavailable {
            return None;
        }
        let waiting = matches!(state.activity, RunActivity::Waiting { .. });
        let confirming = matches!(state.activity, RunActivity::AwaitingConfirmation { .. });
        let command = match letter {
            'c' if confirming => Command::Answer {
                answer: Answer::Continue,
            },
            'a' if confirming => Command::Answer {
                answer: Answer::ContinueWithoutAsking,
            },
            'p' if state.pausing => Command::Resume,
            'p' => Command::Pause,
            's' if state.is_working() => Command::StopIteration,
            'w' if waiting => Command::Wake,
            'm' => {
                self.overlay = Overlay::Message(String::new());
                return None;
            }
            _ => return None,
        };
        Some(KeyAction::Send(command))
    }

    fn follow(&mut self) {
        if self.tab == Tab::Transcript {
            self.selected = None;
        }
        self.set_scroll(Scroll::End);
    }

    /// Clears the search, then the selection, then returns to the live end.
    fn step_back(&mut self) {
        if !self.query.is_empty() {
            self.query.clear();
            self.found = None;
        } else if self.selected.is_some() {
            self.selected = None;
        } else {
            self.show(Tab::Transcript);
            self.entry = None;
            self.follow();
        }
    }

    fn step_tab(&mut self, steps: usize) {
        let index = Tab::ALL.iter().position(|tab| *tab == self.tab).unwrap_or(0);
        self.show(Tab::ALL[(index + steps) % Tab::ALL.len()]);
    }

    fn enter(&mut self, context: &KeyContext<'_>) {
        match (self.tab, self.tool) {
            (Tab::Transcript, _) => self.toggle_selected(context.transcript),
            (Tab::Tools, Some(tool)) => {
                self.show(Tab::Transcript);
                self.set_scroll(Scroll::At { item: tool, row: 0 });
                if block(context.transcript, tool).is_some_and(|block| self.fold_of(block) == Fold::Closed) {
                    self.toggle(tool);
                }
                self.selected = Some(tool);
            }
            (Tab::Tools | Tab::Events | Tab::Prompt | Tab::Terminal | Tab::Usage, _) => {}
        }
    }

    fn copy(&mut self, transcript: &Transcript) -> Option<KeyAction> {
        let selected = match self.tab {
            Tab::Tools => self.tool,
            Tab::Transcript | Tab::Events | Tab::Prompt | Tab::Terminal | Tab::Usage => self.selected,
        };
        let text = selected
            .and_then(|id| block(transcript, id))
            .map(|block| block_text(&block.body));
        text.filter(|text| !text.is_empty()).map(KeyAction::Copy)
    }

    fn type_key(&mut self, key: KeyEvent) -> Option<KeyAction> {
        let (Overlay::Search(text) | Overlay::Message(text)) = &mut self.overlay else {
            return None;
        };
        match key.code {
            KeyCode::Esc => self.overlay = Overlay::None,
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => text.clear(),
            KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                self.type_in(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Enter => return self.submit_input(),
            _ => {}
        }
        None
    }

    fn type_in(&mut self, more: &str) {
        if let Overlay::Search(text) | Overlay::Message(text) = &mut self.overlay {
            let more = more.replace(['\r', '\n'], " ");
            let capacity = MAX_INPUT.saturating_sub(text.len());
            text.push_str(&more[..more.floor_char_boundary(capacity)]);
        }
    }

    fn submit_input(&mut self) -> Option<KeyAction> {
        match std::mem::replace(&mut self.overlay, Overlay::None) {
            Overlay::Search(text) => {
                self.query = text;
                self.found = None;
                self.search(Direction::Up);
                None
            }
            Overlay::Message(text) => {
                let text = text.trim().to_owned();
                (!text.is_empty()).then_some(KeyAction::Send(Command::Message { text }))
            }
            Overlay::None | Overlay::Help(_) | Overlay::ConfirmStop => None,
        }
    }

    /// Moves to the next match. A new search starts at the bottom of the window.
    fn search(&mut self, direction: Direction) {
        let top = self.document.top(self.scroll(), self.height);
        let from = self.found.unwrap_or(top + self.height);
        self.found = self.document.find(&self.query, from, direction);
        if let Some(row) = self.found {
            let visible = row >= top && row < top + self.height;
            if !visible {
                let above = self.height / 3;
                self.set_scroll(self.document.anchor(row.saturating_sub(above)));
            }
        }
    }
}
