//! From text to rows: wrapping, a little Markdown, and what each piece of a transcript looks like. Pure.

mod markdown;
mod rows;
mod wrap;

pub(super) use markdown::markdown;
pub(super) use rows::{Fold, Row, Thinking, Way, clip, note_rows, rows_of, text_of};
pub(super) use wrap::Margin;
