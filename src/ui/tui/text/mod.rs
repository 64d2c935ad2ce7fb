//! Turns text into rows: wrapping, a subset of Markdown, and the layout of transcript blocks. Pure.

mod highlight;
mod markdown;
mod rows;
mod wrap;

pub(super) use highlight::Language;
pub(super) use markdown::{LayoutCheckpoint, markdown};
pub(super) use rows::{
    BlockLayout, Fold, LayoutOptions, Row, Thinking, block_text, clip, extend_layout, lay_out, note_rows,
};
pub(super) use wrap::{LineBreak, Margin, wrap};
