//! The output buffer of the plain front end: gutter, cursor column and status line. Cleans all text. `flow` wraps it.

use std::io::Write as _;

use super::one_line::one_line;
use super::wrap::WrapState;
use crate::ui::{Tone, clean::clean};

/// The word in the gutter that names the source of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) word: &'static str,
    pub(super) tone: Tone,
}

impl Label {
    pub(super) const fn new(word: &'static str, tone: Tone) -> Self {
        Self { word, tone }
    }

    /// For a line that continues the one above it.
    pub(super) const SAME: Self = Self::new("", Tone::Plain);
}

/// The gutter: a right-aligned label and a bar.
const LABEL_COLUMNS: usize = 7;
const GUTTER_COLUMNS: usize = LABEL_COLUMNS + 3;
const NESTED_COLUMNS: usize = 2;
const MAX_RETAINED_CAPACITY: usize = 1 << 20;
/// Narrower terminals are treated as this wide.
const MIN_WIDTH: usize = 30;

/// A labeled text to which more can be appended.
#[derive(Debug)]
pub(super) struct OpenBlock {
    pub(super) label: Label,
    /// The id of the tool call that the text belongs to.
    pub(super) parent: Option<String>,
    pub(super) nested: bool,
    /// How many more rows may be shown; `None` if there is no limit.
    pub(super) rows_left: Option<usize>,
    pub(super) is_first_row: bool,
    pub(super) blank_pending: bool,
    /// The row limit was exceeded and `…` was printed.
    pub(super) is_truncated: bool,
}

pub(super) struct Page {
    pub(super) out: Vec<u8>,
    pub(super) live: bool,
    color: bool,
    width: usize,
    /// Prints nothing, for `--quiet`.
    pub(super) silent: bool,
    /// 0 at the start of a line. Exact only for wrapped lines.
    pub(super) column: usize,
    /// The number of completed lines; used to detect output since an earlier point.
    pub(super) lines: u64,
    pub(super) block: Option<OpenBlock>,
    pub(super) wrap: WrapState,
    /// The style that is active at the end of `out`.
    pub(super) active_tone: Option<Tone>,
    /// Set while the status line is shown: the column of the unfinished line above it, or 0.
    status_column: Option<usize>,
}

impl Page {
    pub(super) fn new(live: bool, color: bool, width: u16) -> Self {
        Self {
            out: Vec::new(),
            live,
            color,
            width: usize::from(width),
            silent: false,
            column: 0,
            lines: 0,
            block: None,
            wrap: WrapState::default(),
            active_tone: None,
            status_column: None,
        }
    }

    /// The last column in use. The last column of the terminal stays free, because terminals disagree about the cursor
    /// position after a full line.
    pub(super) fn limit(&self) -> usize {
        self.width.max(MIN_WIDTH) - 1
    }

    /// The column at which text starts in the open block.
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

    /// Switches to the style of a tone.
    pub(super) fn set_tone(&mut self, tone: Tone) {
        if self.active_tone != Some(tone) {
            self.reset_tone();
            let style = tone.style(self.color);
            self.emit_style(&style);
            self.active_tone = Some(tone);
        }
    }

    pub(super) fn reset_tone(&mut self) {
        if let Some(tone) = self.active_tone.take() {
            let style = tone.style(self.color);
            if !style.is_plain() {
                self.emit("\x1b[0m");
            }
        }
    }

    fn emit_style(&mut self, style: &anstyle::Style) {
        if !self.silent && !style.is_plain() {
            // Writing to memory does not fail.
            let _ = write!(self.out, "{style}");
        }
    }

    /// Opens a block. Its label is printed before the first row.
    pub(super) fn begin(&mut self, label: Label, parent: Option<&str>) {
        self.close();
        self.block = Some(OpenBlock {
            label,
            parent: parent.map(str::to_owned),
            nested: parent.is_some(),
            rows_left: None,
            is_first_row: true,
            blank_pending: false,
            is_truncated: false,
        });
    }

    /// True if the open block has this label and parent, so that text can be appended to it.
    pub(super) fn is_open(&self, label: Label, parent: Option<&str>) -> bool {
        let block = self.block.as_ref();
        block.is_some_and(|block| block.label == label && block.parent.as_deref() == parent)
    }

    /// Limits the open block to its first rows.
    pub(super) fn limit_rows(&mut self, rows: usize) {
        if let Some(block) = &mut self.block {
            block.rows_left = Some(rows);
        }
    }

    /// Closes the open block and ends its line.
    pub(super) fn close(&mut self) {
        self.end_row();
        self.block = None;
    }

    pub(super) fn end_row(&mut self) {
        self.hide_status();
        if self.column > 0 {
            self.reset_tone();
            self.break_line();
        }
        self.wrap.reset();
    }

    pub(super) fn break_line(&mut self) {
        self.emit("\n");
        self.column = 0;
        self.lines += 1;
    }

    /// Starts a line with a gutter; `put` fills it and `end_row` ends it.
    pub(super) fn line(&mut self, label: Label) {
        self.close();
        self.gutter(label, false);
        self.end_gutter();
    }

    /// Like `line`, for events inside a tool call.
    pub(super) fn nested_line(&mut self, label: Label) {
        self.close();
        self.gutter(label, true);
        self.end_gutter();
    }

    pub(super) fn gutter(&mut self, label: Label, nested: bool) {
        self.emit_spaces(LABEL_COLUMNS - label.word.len());
        self.put_raw(label.tone, label.word);
        self.put_raw(Tone::Faint, if nested { " │ ┊" } else { " │" });
        self.column = GUTTER_COLUMNS - 1 + if nested { NESTED_COLUMNS } else { 0 };
    }

    /// Prints the space after the bar. Empty lines omit it, to avoid trailing spaces.
    pub(super) fn end_gutter(&mut self) {
        self.emit(" ");
        self.column += 1;
    }

    fn put_raw(&mut self, tone: Tone, text: &str) {
        self.set_tone(tone);
        self.emit(text);
        self.reset_tone();
    }

    /// Appends text to the open line, folded to one line and truncated at the end of the line.
    pub(super) fn put(&mut self, tone: Tone, text: &str) {
        self.put_reserving(tone, text, 0);
    }

    /// Like `put`, but leaves `reserved` columns free.
    pub(super) fn put_reserving(&mut self, tone: Tone, text: &str, reserved: usize) {
        self.hide_status();
        let columns = self.limit().saturating_sub(self.column + reserved);
        let (text, width) = one_line(text, columns);
        self.put_raw(tone, &text);
        self.column += width;
    }

    /// Like `put`, but after a space. Prints nothing for an empty text.
    pub(super) fn put_spaced(&mut self, tone: Tone, text: &str) {
        self.put_spaced_reserving(tone, text, 0);
    }

    pub(super) fn put_spaced_reserving(&mut self, tone: Tone, text: &str, reserved: usize) {
        let fits = self.column + reserved + 2 <= self.limit();
        if fits && !text.trim().is_empty() {
            self.emit(" ");
            self.column += 1;
            self.put_reserving(tone, text, reserved);
        }
    }

    /// Appends text that is cleaned but never truncated.
    pub(super) fn put_untruncated(&mut self, tone: Tone, text: &str) {
        self.hide_status();
        self.put_raw(tone, &clean(text).replace(['\n', '\t'], " "));
        self.column += 1;
    }

    /// Omits the label of the open block, so that it continues the line above.
    pub(super) fn omit_label(&mut self) {
        if let Some(block) = &mut self.block {
            block.is_first_row = false;
        }
    }

    /// Prints an empty line with a gutter, before the callouts.
    pub(super) fn blank_line(&mut self) {
        self.close();
        self.gutter(Label::SAME, false);
        self.break_line();
    }

    /// Prints a line without a gutter.
    pub(super) fn line_without_gutter(&mut self, tone: Tone, text: &str) {
        self.close();
        let (text, _) = one_line(text, usize::MAX);
        self.put_raw(tone, &text);
        self.break_line();
    }

    /// Prints a rule across the page, with a title on the left and a note on the right.
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

    /// Draws the status line below all other output.
    pub(super) fn draw_status(&mut self, text: &str) {
        self.hide_status();
        let (text, _) = one_line(text, self.limit());
        self.reset_tone();
        if self.column > 0 {
            self.emit("\n");
        }
        self.put_raw(Tone::Faint, &text);
        self.status_column = Some(self.column);
    }

    pub(super) fn has_status(&self) -> bool {
        self.status_column.is_some()
    }

    /// Removes the status line and moves the cursor back to the end of the text.
    pub(super) fn hide_status(&mut self) {
        match self.status_column.take() {
            None => {}
            Some(0) => self.emit("\r\x1b[K"),
            Some(column) => self.emit(&format!("\r\x1b[K\x1b[A\x1b[{}G", column + 1)),
        }
    }

    /// Removes the first bytes of `out`, which have been written.
    pub(super) fn discard_written(&mut self, count: usize) {
        self.out.drain(..count);
        // Frees the memory of a huge message.
        if self.out.capacity() > MAX_RETAINED_CAPACITY {
            self.out.shrink_to(MAX_RETAINED_CAPACITY);
        }
        self.wrap.discard_written(count);
    }
}
