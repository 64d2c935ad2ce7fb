//! The user's position in the TUI: tab, iteration, scroll offsets, unfolded blocks and text being typed.
//!
//! Only keys change it. A view that follows the run scrolls with it.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use jiff::Timestamp;

use super::document::{Direction, Document, Found, Scroll};
use super::layout::LayoutCache;
use super::line_editor::LineEditor;
use super::loaded_files::LoadedFiles;
use super::model::{BlockBody, Transcript, TranscriptBlock, TuiState};
use super::tab::Tab;
use super::text::{Fold, Thinking};
use super::theme::Theme;

/// A layer above the tab that receives the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Overlay {
    None,
    /// The list of keys, scrolled to this index.
    Help(usize),
    Search(LineEditor),
    Message(LineEditor),
    ConfirmStop,
    ConfirmSkip,
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

/// Identifies a block of the whole run: the section (0 before the first attempt, then one per attempt) and the block in
/// it. Ids are ordered as the blocks are. Block 0 is the heading of the section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockId {
    pub(super) section: usize,
    pub(super) block: u64,
}

const BLOCK_BITS: u32 = 40;

impl BlockId {
    pub(super) fn heading(section: usize) -> Self {
        Self { section, block: 0 }
    }

    /// The block with this id in the transcript of a section.
    pub(super) fn in_section(section: usize, id: u64) -> Self {
        let block = id + 1;
        Self { section, block }
    }

    pub(super) fn item(self) -> u64 {
        (self.section as u64) << BLOCK_BITS | self.block
    }

    pub(super) fn of_item(item: u64) -> Self {
        Self {
            section: usize::try_from(item >> BLOCK_BITS).unwrap_or(usize::MAX),
            block: item & ((1 << BLOCK_BITS) - 1),
        }
    }

    /// The index of the attempt.
    pub(super) fn entry(self) -> Option<usize> {
        self.section.checked_sub(1)
    }
}

pub(super) struct View {
    pub(super) theme: Theme,
    pub(super) role: Role,
    pub(super) commands: CommandAccess,
    pub(super) tab: Tab,
    /// What the right pane shows; `None` chooses the first page that has content.
    pub(super) pane: Option<Tab>,
    /// Whether the terminal is wide enough for the right pane.
    pub(super) pane_visible: bool,
    /// Index of the selected entry; `None` follows the newest.
    pub(super) entry: Option<usize>,
    pub(super) overlay: Overlay,
    pub(super) query: String,
    /// Messages and searches that were typed, oldest first.
    pub(super) messages: Vec<String>,
    pub(super) searches: Vec<String>,
    pub(super) thinking: Thinking,
    pub(super) outputs: Fold,
    pub(super) order: ToolOrder,
    /// Horizontal offset of the terminal tab, in columns.
    pub(super) pan: u16,
    /// The user requested a stop from this screen.
    pub(super) stop_requested: bool,
    /// A message in the footer, and when it disappears.
    pub(super) flash: Option<(String, Timestamp)>,
    scrolls: [Scroll; Tab::COUNT],
    /// The item of each tab on which `Enter` and `y` act.
    selected: [Option<u64>; Tab::COUNT],
    /// Blocks whose fold state differs from the default, by item.
    toggled: HashSet<u64>,
    /// Files of the changes tab that are unfolded: attempt and index.
    unfolded_files: HashSet<(usize, u64)>,
    /// Attempts that the user has folded or unfolded.
    sections: HashMap<usize, Fold>,
    /// The last search match.
    pub(super) found: Option<Found>,
    /// The document of the last frame.
    pub(super) document: Rc<Document>,
    pub(super) height: usize,
    pub(super) cache: LayoutCache,
}

impl View {
    pub(super) fn new(theme: Theme, role: Role) -> Self {
        Self {
            theme,
            role,
            commands: CommandAccess::Unavailable,
            tab: Tab::Transcript,
            pane: None,
            pane_visible: false,
            entry: None,
            overlay: Overlay::None,
            query: String::new(),
            messages: Vec::new(),
            searches: Vec::new(),
            thinking: Thinking::default(),
            outputs: Fold::Closed,
            order: ToolOrder::Started,
            pan: 0,
            stop_requested: false,
            flash: None,
            scrolls: Tab::ALL.map(Tab::first_scroll),
            selected: [None; Tab::COUNT],
            toggled: HashSet::new(),
            unfolded_files: HashSet::new(),
            sections: HashMap::new(),
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
            && self.selected().is_none();
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

    pub(super) fn selected(&self) -> Option<u64> {
        self.selected[self.tab.index()]
    }

    pub(super) fn set_selected(&mut self, item: Option<u64>) {
        self.selected[self.tab.index()] = item;
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
        self.found = None;
        for tab in Tab::ALL.into_iter().filter(|tab| tab.is_per_iteration()) {
            self.scrolls[tab.index()] = tab.first_scroll();
            self.selected[tab.index()] = None;
        }
        if let Some(entry) = self.entry {
            let heading = BlockId::heading(entry + 1).item();
            self.sections.insert(entry, Fold::Open);
            self.scrolls[Tab::Transcript.index()] = Scroll::At {
                item: heading,
                row: 0,
            };
            self.selected[Tab::Transcript.index()] = Some(heading);
        }
    }

    /// Makes the attempt that the transcript shows the displayed entry.
    pub(super) fn follow_position(&mut self, state: &TuiState) {
        if self.tab != Tab::Transcript {
            return;
        }
        let item = match (self.selected(), self.scroll()) {
            (Some(item), _) => Some(item),
            (None, Scroll::End) => None,
            (None, Scroll::At { .. }) => {
                let top = self.document.top(self.scroll(), self.height);
                self.document.item_at(top + self.height / 3)
            }
        };
        let entry = item.and_then(|item| BlockId::of_item(item).entry());
        self.entry = entry.filter(|index| index + 1 < state.entries.len());
    }

    pub(super) fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.found = None;
    }

    /// Selects the next item.
    pub(super) fn select(&mut self, direction: Direction) {
        let top = self.document.top(self.scroll(), self.height);
        let starts_at_top = self.tab != Tab::Transcript && self.tab != Tab::Events;
        let visible = |id: &u64| {
            let range = self.document.row_range(*id);
            range.is_some_and(|(start, end)| end > top && start < top + self.height)
        };
        let from = self.selected().filter(|id| starts_at_top || visible(id));
        let near = (top + self.height).saturating_sub(1);
        let near = if starts_at_top { 0 } else { near };
        let next = self.document.neighbor(from, near, direction);
        let Some(id) = next else { return };
        self.set_selected(next);
        self.set_scroll(self.document.reveal(id, self.scroll(), self.height));
    }

    /// Folds or unfolds the selected block or iteration; without a selection, the last visible block that can be folded.
    pub(super) fn toggle_selected(&mut self, state: &TuiState, files: &LoadedFiles) {
        let top = self.document.top(self.scroll(), self.height);
        let foldable = |id: &u64| block(state, files, *id).is_some_and(|block| can_fold(&block.body));
        let visible = self.document.rows(top, self.height).map(|(id, _)| id);
        let last = visible.filter(foldable).last();
        let selected = self
            .selected()
            .filter(|id| self.document.row_range(*id).is_some());
        let Some(id) = selected.or(last) else { return };
        match BlockId::of_item(id) {
            BlockId { section, block: 0 } => {
                if let Some(entry) = section
                    .checked_sub(1)
                    .filter(|entry| *entry < state.entries.len())
                {
                    let fold = self.section_fold(entry, state).opposite();
                    self.sections.insert(entry, fold);
                }
            }
            BlockId { .. } => self.toggle_in_place(id),
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
        self.set_selected(Some(id));
        if !self.toggled.remove(&id) {
            self.toggled.insert(id);
        }
    }

    pub(super) fn fold_of(&self, item: u64, block: &TranscriptBlock) -> Fold {
        let default = match &block.body {
            BlockBody::Tool(_) | BlockBody::Gate(_) => self.outputs,
            BlockBody::Text(_) | BlockBody::Note(_) => Fold::Closed,
        };
        match self.toggled.contains(&item) {
            true => default.opposite(),
            false => default,
        }
    }

    /// The newest attempt and the one before it are unfolded unless the user folds them.
    pub(super) fn section_fold(&self, entry: usize, state: &TuiState) -> Fold {
        let default = match entry + 2 >= state.entries.len() {
            true => Fold::Open,
            false => Fold::Closed,
        };
        self.sections.get(&entry).copied().unwrap_or(default)
    }

    pub(super) fn set_section_fold(&mut self, entry: usize, fold: Fold) {
        self.sections.insert(entry, fold);
    }

    /// The attempts that the user has unfolded.
    pub(super) fn unfolded_sections(&self) -> impl Iterator<Item = usize> {
        let open = self.sections.iter().filter(|(_, fold)| **fold == Fold::Open);
        open.map(|(entry, _)| *entry)
    }

    /// Whether the right pane shows the changes, if it is visible.
    pub(super) fn pane_shows_changes(&self) -> bool {
        self.pane_visible && self.pane.is_none_or(|pane| pane == Tab::Changes)
    }

    pub(super) fn file_fold(&self, entry: usize, file: u64) -> Fold {
        match self.unfolded_files.contains(&(entry, file)) {
            true => Fold::Open,
            false => Fold::Closed,
        }
    }

    pub(super) fn toggle_file(&mut self, entry: usize, file: u64) {
        if !self.unfolded_files.remove(&(entry, file)) {
            self.unfolded_files.insert((entry, file));
        }
    }
}

/// Finds a transcript block by the id of its item.
pub(super) fn block<'a>(
    state: &'a TuiState,
    files: &'a LoadedFiles,
    item: u64,
) -> Option<&'a TranscriptBlock> {
    let id = BlockId::of_item(item);
    let transcript = match id.entry() {
        None => &state.prelude,
        Some(entry) => files.transcript_of(entry, state)?,
    };
    block_of(transcript, id.block.checked_sub(1)?)
}

/// Finds a block by its id in a transcript.
pub(super) fn block_of(transcript: &Transcript, id: u64) -> Option<&TranscriptBlock> {
    let index = usize::try_from(id.checked_sub(transcript.dropped)?).ok()?;
    transcript.blocks.get(index).map(|block| &**block)
}

fn can_fold(body: &BlockBody) -> bool {
    match body {
        BlockBody::Tool(_) | BlockBody::Gate(_) => true,
        BlockBody::Text(_) | BlockBody::Note(_) => false,
    }
}
