//! The page: what is about to be written, where the cursor stands, the gutter, and the status line below.
//! Everything that reaches the terminal passes here and is cleaned here. Knows no event; wrapping is in `flow`.

use std::io::Write as _;

use super::flow::Wrap;
use super::one_line::one_line;
use crate::ui::{Tone, clean::clean};

/// The word in the gutter that says whose line it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) word: &'static str,
    pub(super) tone: Tone,
}

impl Label {
    pub(super) const fn new(word: &'static str, tone: Tone) -> Self {
        Self { word, tone }
    }

    /// A line that belongs to the one above it.
    pub(super) const SAME: Self = Self::new("", Tone::Plain);
}

/// The gutter: the longest label, right-aligned, and a bar.
const LABEL_COLUMNS: usize = 7;
const GUTTER_COLUMNS: usize = LABEL_COLUMNS + 3;
const NESTED_COLUMNS: usize = 2;
const KEPT_CAPACITY: usize = 1 << 20;
/// Below this a terminal is treated as if it were this wide.
const NARROWEST: usize = 30;

/// A text that is being written, perhaps in pieces.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) label: Label,
    /// The tool call inside which it was said.
    pub(super) inside: Option<String>,
    pub(super) nested: bool,
    /// How many rows may still be shown; `None` is all.
    pub(super) rows_left: Option<usize>,
    pub(super) is_first_row: bool,
    pub(super) blank_pending: bool,
    /// The rows are used up and that was said.
    pub(super) is_cut: bool,
}

pub(super) struct Page {
    pub(super) out: Vec<u8>,
    pub(super) live: bool,
    colour: bool,
    width: usize,
    /// Shows nothing at all, for the quiet face.
    pub(super) silent: bool,
    /// 0 is the beginning of a line. Where lines are not wrapped, only zero or not zero is true.
    pub(super) column: usize,
    /// How many lines were ended; tells whether something was written since.
    pub(super) lines: u64,
    pub(super) block: Option<Block>,
    pub(super) wrap: Wrap,
    /// The style that is switched on in `out`.
    pub(super) pen: Option<Tone>,
    /// The status line is on the screen; the column of the open line above it, 0 when there is none.
    status_below: Option<usize>,
}

impl Page {
    pub(super) fn new(live: bool, colour: bool, width: u16) -> Self {
        Self {
            out: Vec::new(),
            live,
            colour,
            width: usize::from(width),
            silent: false,
            column: 0,
            lines: 0,
            block: None,
            wrap: Wrap::default(),
            pen: None,
            status_below: None,
        }
    }

    pub(super) fn resize(&mut self, width: u16) {
        self.width = usize::from(width);
    }

    /// The last column that is used. One less than the terminal has: a full line leaves the cursor in a place
    /// from which terminals disagree on how to go on.
    pub(super) fn limit(&self) -> usize {
        self.width.max(NARROWEST) - 1
    }

    /// Where text begins in the open block.
    pub(super) fn text_column(&self) -> usize {
        let nested = self.block.as_ref().is_some_and(|block| block.nested);
        GUTTER_COLUMNS + if nested { NESTED_COLUMNS } else { 0 }
    }

    pub(super) fn emit(&mut self, text: &str) {
        if !self.silent {
            self.out.extend_from_slice(text.as_bytes());
        }
    }

    pub(super) fn emit_spaces(&mut self, count: usize) {
        if !self.silent {
            self.out.resize(self.out.len() + count, b' ');
        }
    }

    /// Writes from now on in this tone.
    pub(super) fn pen_down(&mut self, tone: Tone) {
        if self.pen != Some(tone) {
            self.pen_up();
            let style = tone.style(self.colour);
            self.emit_style(&style);
            self.pen = Some(tone);
        }
    }

    pub(super) fn pen_up(&mut self) {
        if let Some(tone) = self.pen.take() {
            let style = tone.style(self.colour);
            if !style.is_plain() {
                self.emit("\x1b[0m");
            }
        }
    }

    fn emit_style(&mut self, style: &anstyle::Style) {
        if !self.silent && !style.is_plain() {
            // Writing into memory does not fail.
            let _ = write!(self.out, "{style}");
        }
    }

    /// Opens a text: its label stands before the first row that is shown.
    pub(super) fn begin(&mut self, label: Label, inside: Option<&str>) {
        self.close();
        self.block = Some(Block {
            label,
            inside: inside.map(str::to_owned),
            nested: inside.is_some(),
            rows_left: None,
            is_first_row: true,
            blank_pending: false,
            is_cut: false,
        });
    }

    /// The open text is this one, so that more of it can follow.
    pub(super) fn is_open(&self, label: Label, inside: Option<&str>) -> bool {
        let block = self.block.as_ref();
        block.is_some_and(|block| block.label == label && block.inside.as_deref() == inside)
    }

    /// Shows only the first rows of the open text.
    pub(super) fn shorten(&mut self, rows: usize) {
        if let Some(block) = &mut self.block {
            block.rows_left = Some(rows);
        }
    }

    /// Ends the open text and its line.
    pub(super) fn close(&mut self) {
        self.end_row();
        self.block = None;
    }

    pub(super) fn end_row(&mut self) {
        self.uncover();
        if self.column > 0 {
            self.pen_up();
            self.break_line();
        }
        self.wrap.reset();
    }

    pub(super) fn break_line(&mut self) {
        self.emit("\n");
        self.column = 0;
        self.lines += 1;
    }

    /// Begins a line of its own with a gutter; `put` fills it and `end_row` ends it.
    pub(super) fn line(&mut self, label: Label) {
        self.close();
        self.gutter(label, false);
        self.leave_gutter();
    }

    /// The same for what happens inside a tool call.
    pub(super) fn nested_line(&mut self, label: Label) {
        self.close();
        self.gutter(label, true);
        self.leave_gutter();
    }

    pub(super) fn gutter(&mut self, label: Label, nested: bool) {
        self.emit_spaces(LABEL_COLUMNS - label.word.len());
        self.put_raw(label.tone, label.word);
        self.put_raw(Tone::Faint, if nested { " │ ┊" } else { " │" });
        self.column = GUTTER_COLUMNS - 1 + if nested { NESTED_COLUMNS } else { 0 };
    }

    /// The space after the bar; an empty line does without, so that no line ends with a space.
    pub(super) fn leave_gutter(&mut self) {
        self.emit(" ");
        self.column += 1;
    }

    fn put_raw(&mut self, tone: Tone, text: &str) {
        self.pen_down(tone);
        self.emit(text);
        self.pen_up();
    }

    /// Writes text on the open line, folded to one line and cut where the line ends.
    pub(super) fn put(&mut self, tone: Tone, text: &str) {
        self.put_reserving(tone, text, 0);
    }

    /// The same, but leaves room for what comes after.
    pub(super) fn put_reserving(&mut self, tone: Tone, text: &str, reserved: usize) {
        self.uncover();
        let room = self.limit().saturating_sub(self.column + reserved);
        let (text, columns) = one_line(text, room);
        self.put_raw(tone, &text);
        self.column += columns;
    }

    /// The same after a space; nothing at all for an empty text.
    pub(super) fn put_spaced(&mut self, tone: Tone, text: &str) {
        self.put_spaced_reserving(tone, text, 0);
    }

    pub(super) fn put_spaced_reserving(&mut self, tone: Tone, text: &str, reserved: usize) {
        let has_room = self.column + reserved + 2 <= self.limit();
        if has_room && !text.trim().is_empty() {
            self.emit(" ");
            self.column += 1;
            self.put_reserving(tone, text, reserved);
        }
    }

    /// Begins a line without a gutter, to be filled by `put_whole`.
    pub(super) fn plain_row(&mut self) {
        self.close();
    }

    /// Writes text that is never cut, only cleaned.
    pub(super) fn put_whole(&mut self, tone: Tone, text: &str) {
        self.uncover();
        self.put_raw(tone, &clean(text).replace(['\n', '\t'], " "));
        self.column += 1;
    }

    /// The open block goes on under what stands above it.
    pub(super) fn without_label(&mut self) {
        if let Some(block) = &mut self.block {
            block.is_first_row = false;
        }
    }

    /// An empty line under the gutter, between what was said and the callouts.
    pub(super) fn divide(&mut self) {
        self.close();
        self.gutter(Label::SAME, false);
        self.break_line();
    }

    /// A whole line without a gutter; empty for a blank one.
    pub(super) fn bare(&mut self, tone: Tone, text: &str) {
        self.close();
        let (text, _) = one_line(text, usize::MAX);
        self.put_raw(tone, &text);
        self.break_line();
    }

    /// A rule across the page, with a title near its left end and a note near its right one.
    pub(super) fn rule(&mut self, title: &str, note: &str) {
        const DASH: &str = "─";
        self.close();
        let (note, note_columns) = one_line(note, self.limit() / 3);
        let (title, columns) = one_line(title, self.limit().saturating_sub(note_columns + 9));
        let dashes = self.limit().saturating_sub(columns + note_columns + 8).max(1);
        self.put_raw(Tone::Faint, "── ");
        self.put_raw(Tone::Strong, &title);
        self.put_raw(
            Tone::Faint,
            &format!(" {} {note} {DASH}{DASH}", DASH.repeat(dashes)),
        );
        self.break_line();
    }

    /// Draws the status line under everything else.
    pub(super) fn draw_status(&mut self, text: &str) {
        self.uncover();
        let (text, _) = one_line(text, self.limit());
        self.pen_up();
        if self.column > 0 {
            self.emit("\n");
        }
        self.put_raw(Tone::Faint, &text);
        self.status_below = Some(self.column);
    }

    pub(super) fn has_status(&self) -> bool {
        self.status_below.is_some()
    }

    /// Takes the status line away and puts the cursor back to where text goes on.
    pub(super) fn uncover(&mut self) {
        match self.status_below.take() {
            None => {}
            Some(0) => self.emit("\r\x1b[K"),
            Some(column) => self.emit(&format!("\r\x1b[K\x1b[A\x1b[{}G", column + 1)),
        }
    }

    /// Forgets the first bytes of `out`, which have been written.
    pub(super) fn forget_written(&mut self, count: usize) {
        self.out.drain(..count);
        // One huge message must not keep its memory for the rest of the night.
        if self.out.capacity() > KEPT_CAPACITY {
            self.out.shrink_to(KEPT_CAPACITY);
        }
        self.wrap.forget_written(count);
    }
}
