//! Appends streamed text to the page, with a gutter on every row and wrapped between words.
//!
//! Lines are wrapped on a terminal, which would otherwise break them across the gutter, and in blocks with a row limit.
//! Other lines are not wrapped, so that logs can be searched and copied.

use memchr::memchr;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::output_buffer::Page;
use crate::ui::{Tone, clean::clean};

const TAB_COLUMNS: usize = 4;
/// A long word is split on the current row only if at least this many columns of it fit.
const MIN_SPLIT_COLUMNS: usize = 12;

/// The wrapping state of the open line.
#[derive(Debug, Default)]
pub(super) struct WrapState {
    /// Columns of white space that are written only if a word follows on the same row.
    gap: usize,
    /// The indentation of the following rows of the same line.
    indent: usize,
    has_words: bool,
    /// The word at the end of the row, which the next chunk may continue.
    word: String,
    /// The columns of `word` and of the gap before it.
    word_columns: usize,
    /// Their position in the page's buffer and the tone there; `None` once they were written.
    word_at: Option<(usize, Option<Tone>)>,
}

impl WrapState {
    pub(super) fn reset(&mut self) {
        self.gap = 0;
        self.indent = 0;
        self.has_words = false;
        self.end_word();
    }

    fn end_word(&mut self) {
        self.word.clear();
        self.word_columns = 0;
        self.word_at = None;
    }

    pub(super) fn discard_written(&mut self, count: usize) {
        self.word_at = self
            .word_at
            .and_then(|(at, tone)| Some((at.checked_sub(count)?, tone)));
    }
}

impl Page {
    /// Appends text to the open block.
    pub(super) fn text(&mut self, tone: Tone, text: &str) {
        let is_truncated = |page: &Self| page.block.as_ref().is_none_or(|block| block.is_truncated);
        if is_truncated(self) || self.silent {
            return;
        }
        let cleaned = clean(text);
        let mut rest = &*cleaned;
        while let Some(end) = memchr(b'\n', rest.as_bytes()) {
            self.chunk(tone, &rest[..end]);
            self.newline();
            rest = &rest[end + 1..];
            // Skips text that is not shown.
            if is_truncated(self) {
                return;
            }
        }
        self.chunk(tone, rest);
    }

    /// Ends the open row. Without one, the line is empty and is shown only if text follows.
    fn newline(&mut self) {
        if self.column > 0 {
            self.end_row();
        } else if let Some(block) = &mut self.block {
            block.blank_pending = !block.is_first_row;
            self.wrap.reset();
        }
    }

    fn chunk(&mut self, tone: Tone, chunk: &str) {
        if chunk.is_empty() {
            return;
        }
        self.hide_status();
        let has_row_limit = self.block.as_ref().is_some_and(|block| block.rows_left.is_some());
        if self.live || has_row_limit {
            self.wrapped(tone, chunk);
        } else {
            self.unwrapped(tone, chunk);
        }
        self.reset_tone();
    }

    /// Starts a row of the open block. False if the block has reached its row limit.
    fn start_row(&mut self) -> bool {
        let Some(block) = &mut self.block else {
            return false;
        };
        let label = if std::mem::take(&mut block.is_first_row) {
            block.label
        } else {
            super::output_buffer::Label::SAME
        };
        let nested = block.nested;
        let blank = std::mem::take(&mut block.blank_pending);
        block.is_truncated = block.rows_left == Some(0);
        block.rows_left = block.rows_left.map(|rows| rows.saturating_sub(1));
        let is_truncated = block.is_truncated;
        if is_truncated || blank {
            self.gutter(label, nested);
            self.emit(if is_truncated { " …" } else { "" });
            self.break_line();
        }
        if !is_truncated {
            self.gutter(label, nested);
            self.end_gutter();
        }
        !is_truncated
    }

    fn unwrapped(&mut self, tone: Tone, chunk: &str) {
        if self.column == 0 {
            let text = chunk.trim_start_matches([' ', '\t']);
            self.wrap.gap += blank_columns(&chunk[..chunk.len() - text.len()]);
            if text.is_empty() || !self.start_row() {
                return;
            }
            let gap = std::mem::take(&mut self.wrap.gap);
            self.emit_spaces(gap);
            return self.unwrapped_text(tone, text);
        }
        self.unwrapped_text(tone, chunk);
    }

    fn unwrapped_text(&mut self, tone: Tone, text: &str) {
        self.set_tone(tone);
        if memchr(b'\t', text.as_bytes()).is_some() {
            self.emit(&text.replace('\t', "    "));
        } else {
            self.emit(text);
        }
    }

    fn wrapped(&mut self, tone: Tone, mut rest: &str) {
        while !rest.is_empty() {
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            if blanks > 0 {
                self.wrap.gap += blank_columns(&rest[..blanks]);
                self.wrap.end_word();
                rest = &rest[blanks..];
                continue;
            }
            let end = memchr::memchr2(b' ', b'\t', rest.as_bytes()).unwrap_or(rest.len());
            if !self.word(tone, &rest[..end]) {
                return;
            }
            rest = &rest[end..];
        }
    }

    /// Appends a word, or continues the last one. False if the block has reached its row limit.
    fn word(&mut self, tone: Tone, word: &str) -> bool {
        if self.column == 0 && !self.start_row() {
            return false;
        }
        let columns = word.width();
        if self.column + self.gap() + columns <= self.limit() {
            self.put_word(tone, word, columns);
            return true;
        }
        let started = self.wrap.word.width();
        let row_columns = self.limit() - self.text_column() - self.wrap.indent;
        if !self.wrap.has_words && columns <= row_columns {
            // Reduces an indentation that leaves too little space for the word.
            self.wrap.gap = self.limit() - self.column - columns;
            self.put_word(tone, word, columns);
            return true;
        }
        if started + columns > row_columns || (started > 0 && !self.can_erase_word()) {
            return self.split(tone, word);
        }
        let started = std::mem::take(&mut self.wrap.word);
        if !started.is_empty() {
            self.erase_word();
        }
        if !self.next_row() {
            return false;
        }
        if !started.is_empty() {
            let columns = started.width();
            self.put_word(tone, &started, columns);
        }
        self.put_word(tone, word, columns);
        true
    }

    /// Breaks a word that is wider than a row at the end of each row.
    fn split(&mut self, tone: Tone, word: &str) -> bool {
        let mut rest = word;
        while !rest.is_empty() {
            let free = self.limit().saturating_sub(self.column + self.gap());
            let is_new_row = self.column == self.text_column() + self.wrap.indent;
            let (head, columns) = first_columns(rest, free);
            let too_little =
                self.wrap.word.is_empty() && columns < MIN_SPLIT_COLUMNS && head.len() < rest.len();
            if (head.is_empty() || too_little) && !is_new_row {
                if !self.next_row() {
                    return false;
                }
                continue;
            }
            // No character fits, so the row is narrower than one character.
            let head = if head.is_empty() { rest } else { head };
            self.put_word(tone, head, columns);
            rest = &rest[head.len()..];
            if !rest.is_empty() && !self.next_row() {
                return false;
            }
        }
        true
    }

    /// The white space before the next word. Indentation is limited to half of the row.
    fn gap(&self) -> usize {
        if self.wrap.has_words {
            self.wrap.gap
        } else {
            self.wrap.gap.min((self.limit() - self.text_column()) / 2)
        }
    }

    fn put_word(&mut self, tone: Tone, word: &str, columns: usize) {
        let gap = self.gap();
        if self.wrap.word.is_empty() {
            self.wrap.word_at = Some((self.out.len(), self.active_tone));
            self.wrap.word_columns = gap;
        }
        if !std::mem::replace(&mut self.wrap.has_words, true) {
            self.wrap.indent = gap + list_marker_columns(word);
        }
        self.wrap.gap = 0;
        self.emit_spaces(gap);
        self.set_tone(tone);
        self.emit(word);
        self.wrap.word.push_str(word);
        self.wrap.word_columns += columns;
        self.column += gap + columns;
    }

    fn can_erase_word(&self) -> bool {
        self.live || self.wrap.word_at.is_some()
    }

    /// Removes the last word from the row: from the buffer if it was not written yet, otherwise from the screen.
    fn erase_word(&mut self) {
        match self.wrap.word_at {
            Some((at, tone)) => {
                self.out.truncate(at);
                self.active_tone = tone;
            }
            None => self.emit(&format!("\x1b[{}D\x1b[K", self.wrap.word_columns)),
        }
        self.column -= self.wrap.word_columns;
    }

    /// Continues the line on a new row.
    fn next_row(&mut self) -> bool {
        let indent = self.wrap.indent;
        self.end_row();
        if !self.start_row() {
            return false;
        }
        self.emit_spaces(indent);
        self.column += indent;
        self.wrap.indent = indent;
        self.wrap.has_words = true;
        true
    }
}

fn blank_columns(blanks: &str) -> usize {
    blanks
        .bytes()
        .map(|byte| if byte == b'\t' { TAB_COLUMNS } else { 1 })
        .sum()
}

/// The width of a list marker: following rows of `- item` or `1. item` are aligned with the item.
fn list_marker_columns(word: &str) -> usize {
    let number = word.strip_suffix('.').unwrap_or_default();
    let is_number =
        !number.is_empty() && number.len() < 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_number || matches!(word, "-" | "*" | "•" | "+") {
        word.width() + 1
    } else {
        0
    }
}

/// The longest prefix of a word that fits, and its width.
fn first_columns(word: &str, max_columns: usize) -> (&str, usize) {
    let mut columns = 0;
    for (at, c) in word.char_indices() {
        let width = c.width().unwrap_or(0);
        if columns + width > max_columns {
            return (&word[..at], columns);
        }
        columns += width;
    }
    (word, columns)
}
