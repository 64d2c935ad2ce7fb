//! Lays out a transcript as a document. Unchanged blocks come from a cache; grown blocks are extended.

use std::collections::HashMap;
use std::rc::Rc;

use super::document::{Document, DocumentItem};
use super::model::{BlockBody, Transcript, TranscriptBlock};
use super::run_files::AttemptId;
use super::text::{BlockLayout, LayoutCheckpoint, LayoutOptions, Row, extend_layout, lay_out};
use super::view::{Tab, View};

/// Layouts of the blocks of one attempt.
#[derive(Default)]
pub(super) struct LayoutCache {
    id: AttemptId,
    width: usize,
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
    fn new(block: &TranscriptBlock, options: LayoutOptions, gap: bool) -> Self {
        let mut layout = lay_out(block, options);
        if gap && !layout.rows.is_empty() {
            layout.rows.insert(0, Row::default());
            layout.checkpoint = layout.checkpoint.shifted_down(1);
        }
        Self::of(layout, block, options, gap)
    }

    fn of(layout: BlockLayout, block: &TranscriptBlock, options: LayoutOptions, gap: bool) -> Self {
        let (id, rows) = (block.id, layout.rows);
        Self {
            version: block.version,
            options,
            gap,
            item: Rc::new(DocumentItem { id, rows }),
            checkpoint: layout.checkpoint,
        }
    }

    /// Extends the layout by the text that was added to the block. Returns `None` if that is not possible.
    fn grown(self, block: &TranscriptBlock) -> Option<Self> {
        let DocumentItem { rows, .. } = Rc::into_inner(self.item)?;
        let checkpoint = self.checkpoint;
        let layout = extend_layout(BlockLayout { rows, checkpoint }, block, self.options)?;
        Some(Self::of(layout, block, self.options, self.gap))
    }
}

impl View {
    /// Lays out the transcript; only about as much as the window shows if the user follows the live end.
    pub(super) fn lay_out(&mut self, transcript: &Transcript, id: AttemptId, width: usize) -> Document {
        if self.cache.id != id {
            self.cache = LayoutCache::default();
        }
        (self.cache.id, self.cache.width) = (id, width);
        let total = transcript.blocks.len();
        let mut count = if self.is_reading() { total } else { self.height };
        loop {
            let document = self.lay_out_last(count, transcript);
            if count >= total || document.total() >= 2 * self.height {
                return document;
            }
            count = (count * 4).max(1);
        }
    }

    /// Lays out all blocks, because keys may scroll, select or search anywhere.
    pub(super) fn lay_out_all(&mut self, transcript: &Transcript) {
        let following = self.tab == Tab::Transcript && self.entry.is_none();
        if following && self.cache.blocks.len() < transcript.blocks.len() && self.height > 0 {
            self.document = Rc::new(self.lay_out_last(transcript.blocks.len(), transcript));
        }
    }

    fn lay_out_last(&mut self, count: usize, transcript: &Transcript) -> Document {
        // A grown block takes its rows out of the cached item, so the document must not share it.
        self.document = Rc::default();
        let mut known = std::mem::take(&mut self.cache.blocks);
        let first = transcript.blocks.len().saturating_sub(count);
        let mut items = Vec::with_capacity(transcript.blocks.len() - first + 1);
        let mut before: Option<BlockGroup> = None;
        if transcript.dropped > 0 && first == 0 {
            items.push(super::draw::dropped_blocks_item(transcript.dropped, self.theme));
            before = Some(BlockGroup::Note);
        }
        for block in transcript.blocks.range(first..) {
            let group = BlockGroup::of(block);
            let options = LayoutOptions {
                width: self.cache.width,
                theme: self.theme,
                thinking: self.thinking,
                fold: self.fold_of(block),
            };
            let gap = before.is_some_and(|before| group.needs_gap(before));
            let cached = known
                .remove(&block.id)
                .filter(|cached| cached.options == options && cached.gap == gap);
            let cached = match cached {
                Some(cached) if cached.version == block.version => Some(cached),
                older => older.and_then(|cached| cached.grown(block)),
            };
            let cached = cached.unwrap_or_else(|| CachedLayout::new(block, options, gap));
            if !cached.item.rows.is_empty() {
                before = Some(group);
            }
            items.push(Rc::clone(&cached.item));
            self.cache.blocks.insert(block.id, cached);
        }
        Document::new(items)
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
