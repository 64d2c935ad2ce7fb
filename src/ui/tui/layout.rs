//! Lays out the transcript of the whole run as a document. Unchanged blocks come from a cache; grown blocks are extended.

use std::collections::HashMap;
use std::rc::Rc;

use super::document::{Document, DocumentItem};
use super::loaded_files::LoadedFiles;
use super::model::{BlockBody, Transcript, TranscriptBlock, TuiState};
use super::tab::Tab;
use super::text::{BlockLayout, Fold, LayoutCheckpoint, LayoutOptions, Row, extend_layout, lay_out};
use super::view::{BlockId, View};

/// Layouts of the blocks in the document, by item.
#[derive(Default)]
pub(super) struct LayoutCache {
    width: usize,
    extent: Extent,
    blocks: HashMap<u64, CachedLayout>,
}

struct CachedLayout {
    version: u64,
    options: LayoutOptions,
    gap: bool,
    item: Rc<DocumentItem>,
    checkpoint: LayoutCheckpoint,
}

impl CachedLayout {
    fn new(id: u64, block: &TranscriptBlock, options: LayoutOptions, gap: bool) -> Self {
        let mut layout = lay_out(block, options);
        if gap && !layout.rows.is_empty() {
            layout.rows.insert(0, Row::default());
            layout.checkpoint = layout.checkpoint.shifted_down(1);
        }
        Self::of(id, layout, block.version, options, gap)
    }

    fn of(id: u64, layout: BlockLayout, version: u64, options: LayoutOptions, gap: bool) -> Self {
        let rows = layout.rows;
        Self {
            version,
            options,
            gap,
            item: Rc::new(DocumentItem { id, rows }),
            checkpoint: layout.checkpoint,
        }
    }

    /// Extends the layout by the text that was added to the block. Returns `None` if that is not possible.
    fn grown(self, block: &TranscriptBlock) -> Option<Self> {
        let DocumentItem { id, rows } = Rc::into_inner(self.item)?;
        let checkpoint = self.checkpoint;
        let layout = extend_layout(BlockLayout { rows, checkpoint }, block, self.options)?;
        Some(Self::of(id, layout, block.version, self.options, self.gap))
    }
}

impl LayoutCache {
    /// Columns of the laid out blocks.
    pub(super) fn width(&self) -> usize {
        self.width
    }
}

/// How much of the run is laid out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Extent {
    /// About twice the window, for a view that follows the live end.
    #[default]
    Window,
    /// All unfolded iterations.
    All,
}

/// The run that is laid out.
#[derive(Clone, Copy)]
pub(super) struct LayoutSource<'a> {
    pub(super) state: &'a TuiState,
    pub(super) files: &'a LoadedFiles,
}

impl<'a> LayoutSource<'a> {
    /// The number of sections: what precedes the first attempt, and each attempt.
    fn sections(self) -> usize {
        self.state.entries.len() + 1
    }

    /// The transcript of a section; `None` if it is not in memory.
    fn transcript(self, section: usize) -> Option<&'a Transcript> {
        match section.checked_sub(1) {
            None if self.state.entries.is_empty() => Some(&self.state.transcript),
            None => Some(&self.state.prelude),
            Some(entry) => self.files.transcript_of(entry, self.state),
        }
    }
}

impl View {
    /// Lays out the whole run, iteration by iteration; only about as much as the window shows if the user follows the live
    /// end.
    pub(super) fn lay_out(&mut self, source: LayoutSource<'_>, width: usize) -> Document {
        if self.cache.width != width {
            self.cache.blocks.clear();
        }
        self.cache.width = width;
        let extent = match self.is_reading() {
            true => Extent::All,
            false => Extent::Window,
        };
        self.lay_out_sections(extent, source)
    }

    /// Lays out all blocks, because keys may scroll, select or search anywhere.
    pub(super) fn lay_out_all(&mut self, source: LayoutSource<'_>) {
        if self.tab == Tab::Transcript && self.cache.extent == Extent::Window && self.height > 0 {
            self.document = Rc::new(self.lay_out_sections(Extent::All, source));
        }
    }

    /// Lays out the document again after a fold has changed.
    pub(super) fn lay_out_again(&mut self, source: LayoutSource<'_>) {
        self.document = Rc::new(self.lay_out_sections(Extent::All, source));
    }

    fn lay_out_sections(&mut self, extent: Extent, source: LayoutSource<'_>) -> Document {
        // A grown block takes its rows out of the cached item, so the document must not share it.
        self.document = Rc::default();
        self.cache.extent = extent;
        let mut known = std::mem::take(&mut self.cache.blocks);
        let enough = match extent {
            Extent::Window => 2 * self.height,
            Extent::All => usize::MAX,
        };
        let mut rows = 0;
        let mut last_first: Vec<Vec<Rc<DocumentItem>>> = vec![super::draw::end_items(source, self)];
        rows += last_first[0].iter().map(|item| item.rows.len()).sum::<usize>();
        for section in (0..source.sections()).rev() {
            if rows >= enough {
                break;
            }
            let items = self.section_items(section, enough.saturating_sub(rows), &mut known, source);
            rows += items.iter().map(|item| item.rows.len()).sum::<usize>();
            last_first.push(items);
        }
        Document::new(last_first.into_iter().rev().flatten().collect())
    }

    /// The heading of a section and, if it is unfolded, at least the last `enough` rows of its blocks.
    fn section_items(
        &mut self,
        section: usize,
        enough: usize,
        known: &mut HashMap<u64, CachedLayout>,
        source: LayoutSource<'_>,
    ) -> Vec<Rc<DocumentItem>> {
        let entry = section.checked_sub(1);
        let mut items = Vec::new();
        if let Some(entry) = entry {
            let rows = super::draw::section_heading(entry, source.state, self, self.cache.width);
            let id = BlockId::heading(section).item();
            items.push(Rc::new(DocumentItem { id, rows }));
        }
        let fold = entry.map_or(Fold::Open, |entry| self.section_fold(entry, source.state));
        let transcript = source.transcript(section).filter(|_| fold == Fold::Open);
        let Some(transcript) = transcript else {
            return items;
        };
        let total = transcript.blocks.len();
        let mut count = match self.cache.extent {
            Extent::All => total,
            Extent::Window => self.height.max(1),
        };
        loop {
            let blocks = self.block_items(section, transcript, count, known);
            let rows: usize = blocks.iter().map(|item| item.rows.len()).sum();
            if count >= total || rows >= enough {
                items.extend(blocks);
                return items;
            }
            count *= 4;
        }
    }

    fn block_items(
        &mut self,
        section: usize,
        transcript: &Transcript,
        count: usize,
        known: &mut HashMap<u64, CachedLayout>,
    ) -> Vec<Rc<DocumentItem>> {
        let first = transcript.blocks.len().saturating_sub(count);
        let mut items = Vec::with_capacity(transcript.blocks.len() - first + 1);
        let mut before: Option<BlockGroup> = None;
        if transcript.dropped > 0 && first == 0 {
            let id = BlockId::in_section(section, transcript.dropped - 1).item();
            items.push(super::draw::dropped_blocks_item(
                id,
                transcript.dropped,
                self.theme,
            ));
            before = Some(BlockGroup::Note);
        }
        for block in transcript.blocks.range(first..) {
            let id = BlockId::in_section(section, block.id).item();
            let group = BlockGroup::of(block);
            let options = LayoutOptions {
                width: self.cache.width,
                theme: self.theme,
                thinking: self.thinking,
                fold: self.fold_of(id, block),
            };
            let gap = before.is_some_and(|before| group.needs_gap(before));
            let cached = known.remove(&id).or_else(|| self.cache.blocks.remove(&id));
            let cached = cached.filter(|cached| cached.options == options && cached.gap == gap);
            let cached = match cached {
                Some(cached) if cached.version == block.version => Some(cached),
                older => older.and_then(|cached| cached.grown(block)),
            };
            let cached = cached.unwrap_or_else(|| CachedLayout::new(id, block, options, gap));
            if !cached.item.rows.is_empty() {
                before = Some(group);
            }
            items.push(Rc::clone(&cached.item));
            self.cache.blocks.insert(id, cached);
        }
        items
    }
}

/// Determines where a blank row separates two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockGroup {
    Message,
    Continuation,
    Activity,
    Gate,
    Note,
}

impl BlockGroup {
    fn of(block: &TranscriptBlock) -> Self {
        use crate::event::Tag;
        match &block.body {
            BlockBody::Text(text) if text.continued => Self::Continuation,
            BlockBody::Text(text) => match text.tag {
                Tag::Ai | Tag::User => Self::Message,
                Tag::Think => Self::Activity,
                Tag::Sys | Tag::Tool | Tag::Prompt => Self::Note,
            },
            BlockBody::Tool(_) => Self::Activity,
            BlockBody::Gate(_) => Self::Gate,
            BlockBody::Note(_) => Self::Note,
        }
    }

    fn needs_gap(self, before: Self) -> bool {
        match self {
            Self::Continuation => false,
            Self::Message => true,
            Self::Activity | Self::Gate | Self::Note => self != before,
        }
    }
}
