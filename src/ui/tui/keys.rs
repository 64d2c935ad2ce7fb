//! Key handling: each key changes the view or returns a `KeyAction` for the render loop.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::document::{Direction, Scroll};
use super::layout::LayoutSource;
use super::line_editor::{LineCount, LineEditor};
use super::loaded_files::LoadedFiles;
use super::model::{BlockBody, RunActivity, Transcript, TuiState};
use super::tab::Tab;
use super::text::{Fold, Thinking, block_text};
use super::view::{BlockId, CommandAccess, Overlay, Role, ToolOrder, View, block, block_of};
use crate::event::{Answer, Command, Interrupt, PlanStatus};

/// An effect of a key outside the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyAction {
    Send(Command),
    /// Put this text on the clipboard.
    Copy(String),
    /// Save the displayed transcript as a file.
    Export,
    /// Stop the process until it is continued, as Ctrl-Z does in a shell.
    Suspend,
    /// Show this text in the footer.
    Notify(&'static str),
    /// Close the screen.
    Close,
}

/// The data that keys act on.
#[derive(Clone, Copy)]
pub(super) struct KeyContext<'a> {
    pub(super) state: &'a TuiState,
    pub(super) files: &'a LoadedFiles,
}

impl<'a> KeyContext<'a> {
    fn source(self) -> LayoutSource<'a> {
        let Self { state, files } = self;
        LayoutSource { state, files }
    }

    /// The transcript of the displayed iteration.
    fn transcript(self, view: &View) -> &'a Transcript {
        self.files.transcript(view, self.state)
    }
}

/// At least the number of lines in the list of keys.
const MAX_HELP_SCROLL: usize = 60;
/// Earlier messages and searches that can be recalled.
const MAX_HISTORY: usize = 50;

impl View {
    pub(super) fn on_event(&mut self, event: &Event, context: KeyContext<'_>) -> Option<KeyAction> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.lay_out_all(context.source());
                self.press(*key, context)
            }
            Event::Paste(text) => {
                if let Overlay::Search(editor) | Overlay::Message(editor) = &mut self.overlay {
                    editor.insert(text);
                }
                None
            }
            _ => None,
        }
    }

    fn press(&mut self, key: KeyEvent, context: KeyContext<'_>) -> Option<KeyAction> {
        self.flash = None;
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Some(self.stop(Interrupt::Int, context.state));
            }
            KeyCode::Char('z') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Some(KeyAction::Suspend);
            }
            _ => {}
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
                confirmed.then(|| self.stop(Interrupt::Quit, context.state))
            }
            Overlay::ConfirmSkip => {
                self.overlay = Overlay::None;
                let confirmed = matches!(key.code, KeyCode::Char('y' | 'Y' | 's') | KeyCode::Enter);
                (confirmed && context.state.is_working()).then_some(KeyAction::Send(Command::StopIteration))
            }
            Overlay::Search(_) | Overlay::Message(_) => self.type_key(key, context),
        }
    }

    /// Stops the run. A viewer only closes the screen.
    fn stop(&mut self, by: Interrupt, state: &TuiState) -> KeyAction {
        if self.role == Role::Viewer || state.is_over() {
            return KeyAction::Close;
        }
        self.stop_requested = true;
        KeyAction::Send(Command::Stop { by })
    }

    fn command(&mut self, key: KeyEvent, context: KeyContext<'_>) -> Option<KeyAction> {
        let page = isize::try_from(self.height.saturating_sub(2)).unwrap_or(1).max(1);
        let selects = matches!(self.tab, Tab::Tools | Tab::Changes | Tab::Gates);
        match key.code {
            KeyCode::Up if selects => self.select(Direction::Up),
            KeyCode::Down if selects => self.select(Direction::Down),
            KeyCode::Up => self.scroll_by(-1),
            KeyCode::Down => self.scroll_by(1),
            KeyCode::PageUp => self.scroll_by(-page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll_by(page),
            KeyCode::Home | KeyCode::Char('g') => self.set_scroll(Scroll::START),
            KeyCode::End | KeyCode::Char('G') => self.follow(),
            KeyCode::Char('k') => self.select(Direction::Up),
            KeyCode::Char('j') => self.select(Direction::Down),
            KeyCode::Left => {
                self.step_iteration(Direction::Up, context.state);
                return None;
            }
            KeyCode::Right => {
                self.step_iteration(Direction::Down, context.state);
                return None;
            }
            KeyCode::Tab => self.step_tab(1, context),
            KeyCode::BackTab => self.step_tab(Tab::COUNT - 1, context),
            KeyCode::Char(digit @ '1'..='9') => {
                let tab = Tab::ALL[digit as usize - '1' as usize];
                return self.show_if_any(tab, context);
            }
            KeyCode::Enter if self.selected().is_none() && self.tab == Tab::Transcript => {
                let answer = self.request('c', context.state);
                if answer.is_some() {
                    return answer;
                }
                self.enter(context);
            }
            KeyCode::Enter => self.enter(context),
            KeyCode::Esc => self.step_back(),
            KeyCode::Char(c) => return self.letter(c, context),
            _ => return None,
        }
        self.follow_position(context.state);
        None
    }

    fn show_if_any(&mut self, tab: Tab, context: KeyContext<'_>) -> Option<KeyAction> {
        if self.visible_tabs(context.state, context.files).contains(&tab) {
            self.show(tab);
            return None;
        }
        Some(KeyAction::Notify(match tab {
            Tab::Changes => "no files have changed in this iteration",
            Tab::Plan => "the agent has reported no plan in this iteration",
            Tab::Tools => "no tool calls in this iteration",
            Tab::Gates => "no gates have run in this iteration",
            Tab::Terminal => "this agent has no screen of its own",
            Tab::Transcript | Tab::Events | Tab::Prompt | Tab::Usage => "no iteration has started",
        }))
    }

    fn letter(&mut self, letter: char, context: KeyContext<'_>) -> Option<KeyAction> {
        match letter {
            '/' => self.overlay = Overlay::Search(LineEditor::new(LineCount::One)),
            'n' => self.search(Direction::Down, context.state),
            'N' => self.search(Direction::Up, context.state),
            'v' => self.step_pane(context),
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
            'y' => return self.copy(context),
            'e' => return Some(KeyAction::Export),
            'q' if self.role == Role::Viewer || context.state.is_over() => return Some(KeyAction::Close),
            // The confirmation prompt is already open, and `q` is one of its answers.
            'q' if matches!(context.state.activity, RunActivity::AwaitingConfirmation { .. }) => {
                return Some(self.stop(Interrupt::Quit, context.state));
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
            's' if state.is_working() => {
                self.overlay = Overlay::ConfirmSkip;
                return None;
            }
            'w' if waiting => Command::Wake,
            'm' => {
                self.overlay = Overlay::Message(LineEditor::new(LineCount::Several));
                return None;
            }
            _ => return None,
        };
        Some(KeyAction::Send(command))
    }

    fn follow(&mut self) {
        if self.tab == Tab::Transcript {
            self.set_selected(None);
        }
        self.set_scroll(Scroll::End);
    }

    /// Clears the search, then the selection, then returns to the live end.
    fn step_back(&mut self) {
        if !self.query.is_empty() {
            self.query.clear();
            self.found = None;
        } else if self.selected().is_some() {
            self.set_selected(None);
        } else {
            self.show(Tab::Transcript);
            self.entry = None;
            self.follow();
        }
    }

    fn step_tab(&mut self, steps: usize, context: KeyContext<'_>) {
        let tabs = self.visible_tabs(context.state, context.files);
        let index = tabs.iter().position(|tab| *tab == self.tab).unwrap_or(0);
        // Backwards is one step less than all tabs.
        let steps = if steps == 1 { 1 } else { tabs.len() - 1 };
        self.show(tabs[(index + steps) % tabs.len()]);
    }

    /// Shows the next page in the right pane.
    fn step_pane(&mut self, context: KeyContext<'_>) {
        let tabs = self.pane_tabs(context.state, context.files);
        let shown = self.pane_tab(context.state, context.files);
        let index = tabs.iter().position(|tab| Some(*tab) == shown);
        self.pane = index.map(|index| tabs[(index + 1) % tabs.len()]);
    }

    fn enter(&mut self, context: KeyContext<'_>) {
        let entry = self.entry_index(context.state);
        match (self.tab, self.selected(), entry) {
            (Tab::Transcript, _, _) => {
                self.toggle_selected(context.state, context.files);
                self.lay_out_again(context.source());
            }
            (Tab::Tools | Tab::Gates, Some(id), Some(entry)) => {
                let item = BlockId::in_section(entry + 1, id).item();
                self.show(Tab::Transcript);
                self.set_section_fold(entry, Fold::Open);
                self.set_scroll(Scroll::At { item, row: 0 });
                let found = block(context.state, context.files, item);
                if found.is_some_and(|block| self.fold_of(item, block) == Fold::Closed) {
                    self.toggle(item);
                }
                self.set_selected(Some(item));
                self.lay_out_again(context.source());
            }
            (Tab::Changes, Some(file), Some(entry)) => self.toggle_file(entry, file),
            _ => {}
        }
    }

    /// The selected item of this tab, or all of it where nothing can be selected.
    fn copy(&mut self, context: KeyContext<'_>) -> Option<KeyAction> {
        let text = match (self.tab, self.selected()) {
            (Tab::Transcript, Some(item)) => {
                block(context.state, context.files, item).map(|block| block_text(&block.body))
            }
            (Tab::Tools | Tab::Gates, Some(id)) => {
                block_of(context.transcript(self), id).map(|block| block_text(&block.body))
            }
            (Tab::Events, Some(id)) => {
                let event = context.state.events.iter().find(|event| event.id == id);
                event.map(|event| block_text(&BlockBody::Note(event.note.clone())))
            }
            (Tab::Changes, Some(file)) => self.changed_file(file, context),
            (Tab::Prompt, _) => context.files.prompt().map(str::to_owned),
            (Tab::Plan, _) => Some(plan_text(context.transcript(self))),
            _ => None,
        };
        match text.filter(|text| !text.trim().is_empty()) {
            Some(text) => Some(KeyAction::Copy(text)),
            None => Some(KeyAction::Notify("nothing is selected; j and k select")),
        }
    }

    /// The changes of a file, or its name.
    fn changed_file(&self, file: u64, context: KeyContext<'_>) -> Option<String> {
        let entry = context.state.entries.get(self.entry_index(context.state)?)?;
        let index = usize::try_from(file.checked_sub(1)?).ok()?;
        let path = &entry.changes.as_ref()?.files.get(index)?.path;
        let patch = context.files.patch().and_then(|patch| patch.file(path));
        Some(patch.map_or_else(|| path.clone(), |patch| patch.lines.join("\n")))
    }

    fn type_key(&mut self, key: KeyEvent, context: KeyContext<'_>) -> Option<KeyAction> {
        let several_lines = matches!(self.overlay, Overlay::Message(_));
        match key.code {
            KeyCode::Esc => self.overlay = Overlay::None,
            KeyCode::Enter if !(several_lines && key.modifiers.contains(KeyModifiers::ALT)) => {
                return self.submit_input(context);
            }
            _ => match &mut self.overlay {
                Overlay::Search(editor) => editor.press(key, &self.searches),
                Overlay::Message(editor) => editor.press(key, &self.messages),
                Overlay::None | Overlay::Help(_) | Overlay::ConfirmStop | Overlay::ConfirmSkip => {}
            },
        }
        None
    }

    fn submit_input(&mut self, context: KeyContext<'_>) -> Option<KeyAction> {
        match std::mem::replace(&mut self.overlay, Overlay::None) {
            Overlay::Search(editor) => {
                self.query = editor.into_text();
                remember(&mut self.searches, &self.query);
                self.found = None;
                self.unfold_matching_iterations(context);
                self.search(Direction::Up, context.state);
                None
            }
            Overlay::Message(editor) => {
                let text = editor.into_text().trim().to_owned();
                remember(&mut self.messages, &text);
                (!text.is_empty()).then_some(KeyAction::Send(Command::Message { text }))
            }
            Overlay::None | Overlay::Help(_) | Overlay::ConfirmStop | Overlay::ConfirmSkip => None,
        }
    }

    /// Unfolds the iterations in memory that contain the text, so that the search covers them.
    fn unfold_matching_iterations(&mut self, context: KeyContext<'_>) {
        if self.tab != Tab::Transcript || self.query.is_empty() {
            return;
        }
        let contains = |transcript: &Transcript| {
            let texts = transcript.blocks.iter().map(|block| block_text(&block.body));
            texts
                .into_iter()
                .any(|text| !super::document::matches(&text, &self.query).is_empty())
        };
        let state = context.state;
        let matching: Vec<usize> = state
            .earlier
            .iter()
            .filter(|(index, transcript)| {
                self.section_fold(*index, state) == Fold::Closed && contains(transcript)
            })
            .map(|(index, _)| index)
            .collect();
        for index in matching {
            self.set_section_fold(index, Fold::Open);
        }
        self.lay_out_again(context.source());
    }

    /// Moves to the next match. A new search starts at the bottom of the window.
    fn search(&mut self, direction: Direction, state: &TuiState) {
        let top = self.document.top(self.scroll(), self.height);
        let from = self.found.map_or(top + self.height, |found| found.row);
        self.found = self.document.find(&self.query, from, direction);
        if let Some(found) = self.found {
            let visible = found.row >= top && found.row < top + self.height;
            if !visible {
                let above = self.height / 3;
                self.set_scroll(self.document.anchor(found.row.saturating_sub(above)));
                self.follow_position(state);
            }
        }
    }
}

/// Adds a text to the history, unless it is the newest one already.
fn remember(history: &mut Vec<String>, text: &str) {
    if text.is_empty() || history.last().is_some_and(|last| last == text) {
        return;
    }
    if history.len() >= MAX_HISTORY {
        history.remove(0);
    }
    history.push(text.to_owned());
}

/// The plan as a Markdown list.
fn plan_text(transcript: &Transcript) -> String {
    let line = |item: &crate::event::PlanItem| match item.status {
        PlanStatus::Done => format!("- [x] {}", item.text),
        PlanStatus::Active | PlanStatus::Pending => format!("- [ ] {}", item.text),
    };
    let lines: Vec<String> = transcript.plan.iter().map(line).collect();
    lines.join("\n")
}
