//! Where the watcher is: which view, which iteration, what is unfolded, what is being typed. Changed by keys, and by
//! nothing that the run does, except that what follows the run follows it.

use std::collections::HashSet;
use std::rc::Rc;

use jiff::Timestamp;

use super::commands::SupportedCommands;
use super::document::{Direction, Document, Scroll};
use super::layout::Cache;
use super::model::{Block, Body, State, Transcript};
use super::text::{Fold, Thinking};
use super::theme::Theme;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Transcript,
    Tools,
    Events,
    Prompt,
    Terminal,
    Usage,
}

impl Tab {
    pub(super) const ALL: [Self; 6] = [
        Self::Transcript,
        Self::Tools,
        Self::Events,
        Self::Prompt,
        Self::Terminal,
        Self::Usage,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Transcript => "Transcript",
            Self::Tools => "Tools",
            Self::Events => "Events",
            Self::Prompt => "Prompt",
            Self::Terminal => "Terminal",
            Self::Usage => "Usage",
        }
    }

    fn index(self) -> usize {
        self as usize
    }
}

/// What lies over the view, and takes the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Overlay {
    None,
    /// All keys, from this one on.
    Help(usize),
    Search(String),
    Message(String),
    AskStop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolOrder {
    Started,
    Longest,
}

/// Whose run it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Leaving the screen means stopping the run.
    Driver,
    /// Leaving the screen changes nothing.
    Viewer,
}

pub(super) struct View {
    pub(super) theme: Theme,
    pub(super) role: Role,
    pub(super) powers: SupportedCommands,
    pub(super) tab: Tab,
    /// Index of an entry; none is the newest, whichever that is.
    pub(super) entry: Option<usize>,
    pub(super) overlay: Overlay,
    pub(super) query: String,
    pub(super) thinking: Thinking,
    pub(super) outputs: Fold,
    pub(super) order: ToolOrder,
    /// The piece of the transcript on which `Enter` and `y` act, and the tool in the table.
    pub(super) selected: Option<u64>,
    pub(super) tool: Option<u64>,
    /// Columns to the left of what is seen of a terminal.
    pub(super) pan: u16,
    /// The run was asked to stop, from here.
    pub(super) asked_to_stop: bool,
    /// What is shown below for a moment.
    pub(super) flash: Option<(String, Timestamp)>,
    scrolls: [Scroll; 6],
    /// Pieces that are not as the general rule says.
    opened: HashSet<u64>,
    /// The row that was found last.
    pub(super) found: Option<usize>,
    /// What is on the screen.
    pub(super) document: Rc<Document>,
    pub(super) height: usize,
    pub(super) cache: Cache,
}

impl View {
    pub(super) fn new(theme: Theme, role: Role) -> Self {
        let (end, start) = (Scroll::End, Scroll::START);
        Self {
            theme,
            role,
            powers: SupportedCommands::default(),
            tab: Tab::Transcript,
            entry: None,
            overlay: Overlay::None,
            query: String::new(),
            thinking: Thinking::default(),
            outputs: Fold::Closed,
            order: ToolOrder::Started,
            selected: None,
            tool: None,
            pan: 0,
            asked_to_stop: false,
            flash: None,
            scrolls: [end, start, end, start, start, start],
            opened: HashSet::new(),
            found: None,
            document: Rc::default(),
            height: 0,
            cache: Cache::default(),
        }
    }

    /// Index of the entry that is looked at.
    pub(super) fn entry_index(&self, state: &State) -> Option<usize> {
        let last = state.entries.len().checked_sub(1)?;
        Some(self.entry.map_or(last, |index| index.min(last)))
    }

    /// Whether the watcher is looking at anything but the live end of the run.
    pub(super) fn is_reading(&self) -> bool {
        let live = self.tab == Tab::Transcript
            && self.entry.is_none()
            && self.scroll() == Scroll::End
            && self.overlay == Overlay::None
            && self.selected.is_none();
        !live
    }

    pub(super) fn scroll(&self) -> Scroll {
        self.scrolls[self.tab.index()]
    }

    pub(super) fn set_scroll(&mut self, scroll: Scroll) {
        self.scrolls[self.tab.index()] = scroll;
    }

    pub(super) fn scroll_by(&mut self, rows: isize) {
        let top = self.document.top(self.scroll(), self.height);
        let top = top.saturating_add_signed(rows);
        self.set_scroll(self.document.scroll_to(top, self.height));
    }

    /// Goes to an earlier or later iteration; the last one is followed.
    pub(super) fn turn(&mut self, direction: Direction, state: &State) {
        let (Some(index), Some(last)) = (self.entry_index(state), state.entries.len().checked_sub(1)) else {
            return;
        };
        let index = match direction {
            Direction::Up => index.saturating_sub(1),
            Direction::Down => index + 1,
        };
        self.entry = Some(index).filter(|index| *index < last);
        self.forget_place();
        if self.entry.is_some() {
            self.scrolls[Tab::Transcript.index()] = Scroll::START;
        }
    }

    fn forget_place(&mut self) {
        self.selected = None;
        self.tool = None;
        self.found = None;
        self.opened.clear();
        self.scrolls = [
            Scroll::End,
            Scroll::START,
            self.scrolls[2],
            Scroll::START,
            Scroll::START,
            self.scrolls[5],
        ];
    }

    pub(super) fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.found = None;
    }

    /// Chooses the next piece of the transcript, or the next tool of the table.
    pub(super) fn choose(&mut self, direction: Direction) {
        let top = self.document.top(self.scroll(), self.height);
        let chosen = match self.tab {
            Tab::Tools => self.tool,
            Tab::Transcript | Tab::Events | Tab::Prompt | Tab::Terminal | Tab::Usage => self.selected,
        };
        let in_sight = |id: &u64| {
            let place = self.document.place(*id);
            place.is_some_and(|(start, end)| end > top && start < top + self.height)
        };
        let from = chosen.filter(|id| self.tab == Tab::Tools || in_sight(id));
        let near = (top + self.height).saturating_sub(1);
        let near = if self.tab == Tab::Tools { 0 } else { near };
        let next = self.document.neighbour(from, near, direction);
        let Some(id) = next else { return };
        match self.tab {
            Tab::Tools => self.tool = next,
            Tab::Transcript | Tab::Events | Tab::Prompt | Tab::Terminal | Tab::Usage => self.selected = next,
        }
        self.set_scroll(self.document.reveal(id, self.scroll(), self.height));
    }

    /// Unfolds the chosen piece, or folds it again; without one, the last that is in sight and can.
    pub(super) fn unfold(&mut self, transcript: &Transcript) {
        let top = self.document.top(self.scroll(), self.height);
        let foldable = |id: &u64| block(transcript, *id).is_some_and(|block| can_fold(&block.body));
        let in_sight = self.document.rows(top, self.height).map(|(id, _)| id);
        let last = in_sight.filter(foldable).last();
        let chosen = self.selected.filter(|id| self.document.place(*id).is_some());
        if let Some(id) = chosen.or(last) {
            self.open(id);
        }
    }

    pub(super) fn open(&mut self, id: u64) {
        self.toggle(id);
        // Its first row stays in the upper half of the window, however long it becomes.
        if let Some((start, _)) = self.document.place(id).filter(|_| self.tab == Tab::Transcript) {
            let top = self.document.top(self.scroll(), self.height);
            let highest = start.saturating_sub(self.height / 2);
            self.set_scroll(self.document.anchor(top.max(highest).min(start)));
        }
    }

    pub(super) fn toggle(&mut self, id: u64) {
        self.selected = Some(id);
        if !self.opened.remove(&id) {
            self.opened.insert(id);
        }
    }

    pub(super) fn fold_of(&self, block: &Block) -> Fold {
        let rule = match &block.body {
            Body::Tool(_) | Body::Gate(_) => self.outputs,
            Body::Said(_) | Body::Note(_) => Fold::Closed,
        };
        match (rule, self.opened.contains(&block.id)) {
            (Fold::Closed, false) | (Fold::Open, true) => Fold::Closed,
            (Fold::Closed, true) | (Fold::Open, false) => Fold::Open,
        }
    }
}

/// A block of a transcript by its id.
pub(super) fn block(transcript: &Transcript, id: u64) -> Option<&Block> {
    let index = usize::try_from(id.checked_sub(transcript.dropped)?).ok()?;
    transcript.blocks.get(index).map(|block| &**block)
}

fn can_fold(body: &Body) -> bool {
    match body {
        Body::Tool(_) | Body::Gate(_) => true,
        Body::Said(_) | Body::Note(_) => false,
    }
}
