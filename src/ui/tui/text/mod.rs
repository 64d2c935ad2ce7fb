//! From text to rows: wrapping, a little Markdown, and what each piece of a transcript looks like. Pure.

mod markdown;
mod rows;
mod wrap;

pub(super) use markdown::{Settled, markdown};
pub(super) use rows::{Fold, Laid, Row, Thinking, Way, add_rows, clip, lay_out, note_rows, text_of};
pub(super) use wrap::Margin;
