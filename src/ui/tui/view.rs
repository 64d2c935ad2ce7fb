//! The user's position in the TUI: tab, iteration, scroll offsets, unfolded blocks and text being typed.
//!
//! Only keys change it. A view that follows the run scrolls with it.

use std::collections::HashSet;
use std::rc::Rc;

use jiff::Timestamp;

use super::document::{Direction, Document, Scroll};
use super::layout::LayoutCache;
use super::model::{BlockBody, Transcript, TranscriptBlock, TuiState};
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

/// A layer above the tab that receives the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Overlay {
    None,
    /// The list of keys, scrolled to this index.
    Help(usize),
    Search(String),
    Message(String),
    ConfirmStop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolOrder {
    Started,
    Longest,
}

/// Whether this process drives the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Closing the screen stops the run.
    Driver,
    /// Closing the screen does not affect the run.
    Viewer,
}

/// Whether commands can be sent to the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandAccess {
    Available,
    /// The run is only replayed. Keys that send commands are not offered.
    Unavailable,
}

pub(super) struct View {
    pub(super) theme: Theme,
    pub(super) role: Role,
    pub(super) commands: CommandAccess,
    pub(super) tab: Tab,
    /// Index of the selected entry; `None` follows the newest.
    pub(super) entry: Option<usize>,
    pub(super) overlay: Overlay,
    pub(super) query: String,
    pub(super) thinking: Thinking,
    pub(super) outputs: Fold,
    pub(super) order: ToolOrder,
    /// The transcript block on which `Enter` and `y` act.
    pub(super) selected: Option<u64>,
    /// The selected row of the tool table.
    pub(super) tool: Option<u64>,
    /// Horizontal offset of the terminal tab, in columns.
    pub(super) pan: u16,
    /// The user requested a stop from this screen.
    pub(super) stop_requested: bool,
    /// A message in the footer, and when it disappears.
    pub(super) flash: Option<(String, Timestamp)>,
    scrolls: [Scroll; 6],
    /// Blocks whose fold state differs from the default.
    toggled: HashSet<u64>,
    /// The row of the last search match.
    pub(super) found: Option<usize>,
    /// The document of the last frame.
    pub(super) document: Rc<Document>,
    pub(super) height: usize,
    pub(super) cache: LayoutCache,
}

impl View {
    pub(super) fn new(theme: Theme, role: Role) -> Self {
        let (end, start) = (Scroll::End, Scroll::START);
        Self {
            theme,
            role,
            commands: CommandAccess::Unavailable,
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
            stop_requested: false,
            flash: None,
            scrolls: [end, start, end, start, start, start],
            toggled: HashSet::new(),
            found: None,
            document: Rc::default(),
            height: 0,
            cache: LayoutCache::default(),
        }
    }

    /// Index of the displayed entry.
    pub(super) fn entry_index(&self, state: &TuiState) -> Option<usize> {
        let last = state.entries.len().checked_sub(1)?;
        Some(self.entry.map_or(last, |index| index.min(last)))
    }

    /// Whether the screen shows anything but the live end of the transcript.
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

    /// Moves to an earlier or later iteration. The view follows the last one.
    pub(super) fn step_iteration(&mut self, direction: Direction, state: &TuiState) {
        let (Some(index), Some(last)) = (self.entry_index(state), state.entries.len().checked_sub(1)) else {
            return;
        };
        let index = match direction {
            Direction::Up => index.saturating_sub(1),
            Direction::Down => index + 1,
        };
        self.entry = Some(index).filter(|index| *index < last);
        self.reset_position();
        if self.entry.is_some() {
            self.scrolls[Tab::Transcript.index()] = Scroll::START;
        }
    }

    fn reset_position(&mut self) {
        self.selected = None;
        self.tool = None;
        self.found = None;
        self.toggled.clear();
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

    /// Selects the next transcript block or tool.
    pub(super) fn select(&mut self, direction: Direction) {
        let top = self.document.top(self.scroll(), self.height);
        let selected = match self.tab {
            Tab::Tools => self.tool,
            Tab::Transcript | Tab::Events | Tab::Prompt | Tab::Terminal | Tab::Usage => self.selected,
        };
        let visible = |id: &u64| {
            let range = self.document.row_range(*id);
            range.is_some_and(|(start, end)| end > top && start < top + self.height)
        };
        let from = selected.filter(|id| self.tab == Tab::Tools || visible(id));
        let near = (top + self.height).saturating_sub(1);
        let near = if self.tab == Tab::Tools { 0 } else { near };
        let next = self.document.neighbor(from, near, direction);
        let Some(id) = next else { return };
        match self.tab {
            Tab::Tools => self.tool = next,
            Tab::Transcript | Tab::Events | Tab::Prompt | Tab::Terminal | Tab::Usage => self.selected = next,
        }
        self.set_scroll(self.document.reveal(id, self.scroll(), self.height));
    }

    /// Folds or unfolds the selected block; without a selection, the last visible block that can be folded.
    pub(super) fn toggle_selected(&mut self, transcript: &Transcript) {
        let top = self.document.top(self.scroll(), self.height);
        let foldable = |id: &u64| block(transcript, *id).is_some_and(|block| can_fold(&block.body));
        let visible = self.document.rows(top, self.height).map(|(id, _)| id);
        let last = visible.filter(foldable).last();
        let selected = self.selected.filter(|id| self.document.row_range(*id).is_some());
        if let Some(id) = selected.or(last) {
            self.toggle_in_place(id);
        }
    }

    fn toggle_in_place(&mut self, id: u64) {
        self.toggle(id);
        // Keep its first row in the upper half of the window.
        if let Some((start, _)) = self
            .document
            .row_range(id)
            .filter(|_| self.tab == Tab::Transcript)
        {
            let top = self.document.top(self.scroll(), self.height);
            let highest = start.saturating_sub(self.height / 2);
            self.set_scroll(self.document.anchor(top.max(highest).min(start)));
        }
    }

    pub(super) fn toggle(&mut self, id: u64) {
        self.selected = Some(id);
        if !self.toggled.remove(&id) {
            self.toggled.insert(id);
        }
    }

    pub(super) fn fold_of(&self, block: &TranscriptBlock) -> Fold {
        let default = match &block.body {
            BlockBody::Tool(_) | BlockBody::Gate(_) => self.outputs,
            BlockBody::Text(_) | BlockBody::Note(_) => Fold::Closed,
        };
        match (default, self.toggled.contains(&block.id)) {
            (Fold::Closed, false) | (Fold::Open, true) => Fold::Closed,
            (Fold::Closed, true) | (Fold::Open, false) => Fold::Open,
        }
    }
}

/// Finds a transcript block by its id.
pub(super) fn block(transcript: &Transcript, id: u64) -> Option<&TranscriptBlock> {
    let index = usize::try_from(id.checked_sub(transcript.dropped)?).ok()?;
    transcript.blocks.get(index).map(|block| &**block)
}

fn can_fold(body: &BlockBody) -> bool {
    match body {
        BlockBody::Tool(_) | BlockBody::Gate(_) => true,
        BlockBody::Text(_) | BlockBody::Note(_) => false,
    }
}
