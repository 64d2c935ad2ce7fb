//! The transcript as a document: rows of what is new, and of what has grown; the rest was laid out before.

use std::collections::HashMap;
use std::rc::Rc;

use super::document::{Document, Piece};
use super::model::{Block, Body, Transcript};
use super::run_files::Attempt;
use super::text::{Laid, Row, Settled, Way, add_rows, lay_out};
use super::view::{Tab, View};

/// Pieces that were laid out before.
#[derive(Default)]
pub(super) struct Cache {
    whose: Attempt,
    width: usize,
    pieces: HashMap<u64, Cached>,
}

struct Cached {
    version: u64,
    way: Way,
    gap: bool,
    piece: Rc<Piece>,
    settled: Settled,
}

impl Cached {
    fn new(block: &Block, way: Way, gap: bool) -> Self {
        let mut laid = lay_out(block, way);
        if gap && !laid.rows.is_empty() {
            laid.rows.insert(0, Row::default());
            laid.settled = laid.settled.below(1);
        }
        Self::of(laid, block, way, gap)
    }

    fn of(laid: Laid, block: &Block, way: Way, gap: bool) -> Self {
        let (id, rows) = (block.id, laid.rows);
        Self {
            version: block.version,
            way,
            gap,
            piece: Rc::new(Piece { id, rows }),
            settled: laid.settled,
        }
    }

    /// The same, if it has changed only by growing; only what was added is laid out.
    fn grown(self, block: &Block) -> Option<Self> {
        let Piece { rows, .. } = Rc::into_inner(self.piece)?;
        let settled = self.settled;
        let laid = add_rows(Laid { rows, settled }, block, self.way)?;
        Some(Self::of(laid, block, self.way, self.gap))
    }
}

impl View {
    /// Whoever only follows the run gets its end, as much as a window can show: of a flood the most is never seen.
    pub(super) fn lay_out(&mut self, transcript: &Transcript, whose: Attempt, width: usize) -> Document {
        if self.cache.whose != whose {
            self.cache = Cache::default();
        }
        (self.cache.whose, self.cache.width) = (whose, width);
        let all = transcript.blocks.len();
        let mut count = if self.is_reading() { all } else { self.height };
        loop {
            let document = self.lay_out_last(count, transcript);
            if count >= all || document.total() >= 2 * self.height {
                return document;
            }
            count = (count * 4).max(1);
        }
    }

    /// Whoever is about to go somewhere needs all of it.
    pub(super) fn lay_out_all(&mut self, transcript: &Transcript) {
        let follows = self.tab == Tab::Transcript && self.entry.is_none();
        if follows && self.cache.pieces.len() < transcript.blocks.len() && self.height > 0 {
            self.document = Rc::new(self.lay_out_last(transcript.blocks.len(), transcript));
        }
    }

    fn lay_out_last(&mut self, count: usize, transcript: &Transcript) -> Document {
        // Who lays out a piece that has grown wants it for himself.
        self.document = Rc::default();
        let mut known = std::mem::take(&mut self.cache.pieces);
        let first = transcript.blocks.len().saturating_sub(count);
        let mut pieces = Vec::with_capacity(transcript.blocks.len() - first + 1);
        let mut before: Option<Group> = None;
        if transcript.dropped > 0 && first == 0 {
            pieces.push(super::draw::left_out(transcript.dropped, self.theme));
            before = Some(Group::Note);
        }
        for block in transcript.blocks.range(first..) {
            let group = Group::of(block);
            let way = Way {
                width: self.cache.width,
                theme: self.theme,
                thinking: self.thinking,
                fold: self.fold_of(block),
            };
            let gap = before.is_some_and(|before| group.stands_apart(before));
            let cached = known
                .remove(&block.id)
                .filter(|cached| cached.way == way && cached.gap == gap);
            let cached = match cached {
                Some(cached) if cached.version == block.version => Some(cached),
                older => older.and_then(|cached| cached.grown(block)),
            };
            let cached = cached.unwrap_or_else(|| Cached::new(block, way, gap));
            if !cached.piece.rows.is_empty() {
                before = Some(group);
            }
            pieces.push(Rc::clone(&cached.piece));
            self.cache.pieces.insert(block.id, cached);
        }
        Document::new(pieces)
    }
}

/// What stands together without a blank row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Talk,
    Continued,
    Work,
    Gate,
    Note,
}

impl Group {
    fn of(block: &Block) -> Self {
        use crate::event::Tag;
        match &block.body {
            Body::Said(said) if said.continued => Self::Continued,
            Body::Said(said) => match said.tag {
                Tag::Ai | Tag::User => Self::Talk,
                Tag::Think => Self::Work,
                Tag::Sys | Tag::Tool | Tag::Prompt => Self::Note,
            },
            Body::Tool(_) => Self::Work,
            Body::Gate(_) => Self::Gate,
            Body::Note(_) => Self::Note,
        }
    }

    fn stands_apart(self, before: Self) -> bool {
        match self {
            Self::Continued => false,
            Self::Talk => true,
            Self::Work | Self::Gate | Self::Note => self != before,
        }
    }
}
