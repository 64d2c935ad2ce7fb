//! Keys: each changes the view, or becomes something to be done by somebody else. Does nothing itself.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::commands::{UserCommand, UserCommandKind};
use super::document::{Direction, Scroll};
use super::model::{Activity, State, Transcript};
use super::text::{Fold, Thinking, text_of};
use super::view::{Overlay, Role, Tab, ToolOrder, View, block};

/// What a key asks of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyAction {
    Send(UserCommand),
    /// Put this text on the clipboard.
    Copy(String),
    /// Keep the transcript that is looked at as a file.
    Export,
    /// Take the screen away.
    Leave,
}

/// What the keys act upon.
pub(super) struct KeyContext<'a> {
    pub(super) state: &'a State,
    /// The transcript that is looked at.
    pub(super) transcript: &'a Transcript,
}

/// There are not more keys than this.
const MOST_HELP: usize = 20;
/// A message for the next prompt is not a file.
const LONGEST_INPUT: usize = 4000;

impl View {
    pub(super) fn hear(&mut self, event: &Event, desk: &KeyContext<'_>) -> Option<KeyAction> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.lay_out_all(desk.transcript);
                self.press(*key, desk)
            }
            Event::Paste(text) => {
                self.type_in(text);
                None
            }
            _ => None,
        }
    }

    fn press(&mut self, key: KeyEvent, desk: &KeyContext<'_>) -> Option<KeyAction> {
        self.flash = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Some(self.interrupt(desk));
        }
        match &self.overlay {
            Overlay::None => self.command(key, desk),
            Overlay::Help(first) => {
                self.overlay = match key.code {
                    KeyCode::Up => Overlay::Help(first.saturating_sub(1)),
                    KeyCode::Down => Overlay::Help((first + 1).min(MOST_HELP)),
                    _ => Overlay::None,
                };
                None
            }
            Overlay::AskStop => {
                self.overlay = Overlay::None;
                let yes = matches!(key.code, KeyCode::Char('y' | 'Y' | 'q') | KeyCode::Enter);
                yes.then(|| self.quit(desk))
            }
            Overlay::Search(_) | Overlay::Message(_) => self.type_key(key),
        }
    }

    fn interrupt(&mut self, desk: &KeyContext<'_>) -> KeyAction {
        if self.role == Role::Viewer || desk.state.is_over() {
            return KeyAction::Leave;
        }
        self.asked_to_stop = true;
        KeyAction::Send(UserCommand::Interrupt)
    }

    fn quit(&mut self, desk: &KeyContext<'_>) -> KeyAction {
        match self.interrupt(desk) {
            KeyAction::Send(UserCommand::Interrupt) => KeyAction::Send(UserCommand::Quit),
            deed => deed,
        }
    }

    fn command(&mut self, key: KeyEvent, desk: &KeyContext<'_>) -> Option<KeyAction> {
        let page = isize::try_from(self.height.saturating_sub(2)).unwrap_or(1).max(1);
        match key.code {
            KeyCode::Up if self.tab == Tab::Tools => self.choose(Direction::Up),
            KeyCode::Down if self.tab == Tab::Tools => self.choose(Direction::Down),
            KeyCode::Up => self.scroll_by(-1),
            KeyCode::Down => self.scroll_by(1),
            KeyCode::PageUp => self.scroll_by(-page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll_by(page),
            KeyCode::Home | KeyCode::Char('g') => self.set_scroll(Scroll::START),
            KeyCode::End | KeyCode::Char('G') => self.follow(),
            KeyCode::Char('k') => self.choose(Direction::Up),
            KeyCode::Char('j') => self.choose(Direction::Down),
            KeyCode::Left => self.turn(Direction::Up, desk.state),
            KeyCode::Right => self.turn(Direction::Down, desk.state),
            KeyCode::Tab => self.step_tab(1),
            KeyCode::BackTab => self.step_tab(Tab::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='6') => self.show(Tab::ALL[digit as usize - '1' as usize]),
            KeyCode::Enter if self.selected.is_none() && self.tab == Tab::Transcript => {
                let answer = self.request('c', desk.state);
                if answer.is_some() {
                    return answer;
                }
                self.enter(desk);
            }
            KeyCode::Enter => self.enter(desk),
            KeyCode::Esc => self.let_go(),
            KeyCode::Char(c) => return self.letter(c, desk),
            _ => {}
        }
        None
    }

    fn letter(&mut self, letter: char, desk: &KeyContext<'_>) -> Option<KeyAction> {
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
            'y' => return self.copy(desk.transcript),
            'e' => return Some(KeyAction::Export),
            'q' if self.role == Role::Viewer || desk.state.is_over() => return Some(KeyAction::Leave),
            // There is a question already, and this is one of its answers.
            'q' if matches!(desk.state.activity, Activity::Asking { .. }) => return Some(self.quit(desk)),
            'q' => self.overlay = Overlay::AskStop,
            command => return self.request(command, desk.state),
        }
        None
    }

    fn request(&mut self, letter: char, state: &State) -> Option<KeyAction> {
        if state.is_over() {
            return None;
        }
        let offered = |kind| self.powers.has(kind);
        let waiting = matches!(state.activity, Activity::Waiting { .. });
        let asking = matches!(state.activity, Activity::Asking { .. });
        match letter {
            'c' if asking && offered(UserCommandKind::GoOn) => Some(KeyAction::Send(UserCommand::GoOn)),
            'a' if asking && offered(UserCommandKind::GoOnWithoutAsking) => {
                Some(KeyAction::Send(UserCommand::GoOnWithoutAsking))
            }
            'p' if state.pausing && offered(UserCommandKind::Resume) => {
                Some(KeyAction::Send(UserCommand::Resume))
            }
            'p' if !state.pausing && offered(UserCommandKind::Pause) => {
                Some(KeyAction::Send(UserCommand::Pause))
            }
            's' if state.is_working() && offered(UserCommandKind::StopIteration) => {
                Some(KeyAction::Send(UserCommand::StopIteration))
            }
            'w' if waiting && offered(UserCommandKind::Wake) => Some(KeyAction::Send(UserCommand::Wake)),
            'm' if offered(UserCommandKind::Tell) => {
                self.overlay = Overlay::Message(String::new());
                None
            }
            _ => None,
        }
    }

    fn follow(&mut self) {
        if self.tab == Tab::Transcript {
            self.selected = None;
        }
        self.set_scroll(Scroll::End);
    }

    /// One step back towards the live end.
    fn let_go(&mut self) {
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

    fn enter(&mut self, desk: &KeyContext<'_>) {
        match (self.tab, self.tool) {
            (Tab::Transcript, _) => self.unfold(desk.transcript),
            (Tab::Tools, Some(tool)) => {
                self.show(Tab::Transcript);
                self.set_scroll(Scroll::At { piece: tool, row: 0 });
                if block(desk.transcript, tool).is_some_and(|block| self.fold_of(block) == Fold::Closed) {
                    self.toggle(tool);
                }
                self.selected = Some(tool);
            }
            (Tab::Tools | Tab::Events | Tab::Prompt | Tab::Terminal | Tab::Usage, _) => {}
        }
    }

    fn copy(&mut self, transcript: &Transcript) -> Option<KeyAction> {
        let chosen = match self.tab {
            Tab::Tools => self.tool,
            Tab::Transcript | Tab::Events | Tab::Prompt | Tab::Terminal | Tab::Usage => self.selected,
        };
        let text = chosen
            .and_then(|id| block(transcript, id))
            .map(|block| text_of(&block.body));
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
            KeyCode::Enter => return self.done_typing(),
            _ => {}
        }
        None
    }

    fn type_in(&mut self, more: &str) {
        if let Overlay::Search(text) | Overlay::Message(text) = &mut self.overlay {
            let more = more.replace(['\r', '\n'], " ");
            let room = LONGEST_INPUT.saturating_sub(text.len());
            text.push_str(&more[..more.floor_char_boundary(room)]);
        }
    }

    fn done_typing(&mut self) -> Option<KeyAction> {
        match std::mem::replace(&mut self.overlay, Overlay::None) {
            Overlay::Search(text) => {
                self.query = text;
                self.found = None;
                self.search(Direction::Up);
                None
            }
            Overlay::Message(text) => {
                let text = text.trim().to_owned();
                (!text.is_empty()).then_some(KeyAction::Send(UserCommand::Tell(text)))
            }
            Overlay::None | Overlay::Help(_) | Overlay::AskStop => None,
        }
    }

    /// Goes to the next row with what is searched for; the search begins at the end of what is in sight.
    fn search(&mut self, direction: Direction) {
        let top = self.document.top(self.scroll(), self.height);
        let from = self.found.unwrap_or(top + self.height);
        self.found = self.document.find(&self.query, from, direction);
        if let Some(row) = self.found {
            let in_sight = row >= top && row < top + self.height;
            if !in_sight {
                let above = self.height / 3;
                self.set_scroll(self.document.anchor(row.saturating_sub(above)));
            }
        }
    }
}
