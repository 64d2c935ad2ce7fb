//! Text as it flows onto the page: in pieces, line by line under the gutter, wrapped between words.
//!
//! Lines are wrapped on a terminal, where the terminal would break them anyhow and spoil the gutter, and in
//! texts of which only the first rows are shown. Elsewhere they stay whole: a log is searched and copied.

use memchr::memchr;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::page::Page;
use crate::ui::{Tone, clean::clean};

const TAB_COLUMNS: usize = 4;
/// A long word starts on the same row only when at least so much of it fits there.
const WORTH_SPLITTING: usize = 12;

/// Where the open line stands with regard to wrapping.
#[derive(Debug, Default)]
pub(super) struct Wrap {
    /// White space that is written only if a word follows it on the same row.
    gap: usize,
    /// Where the next rows of the same line begin.
    indent: usize,
    has_words: bool,
    /// The word at the end of the row, which the next piece may continue.
    word: String,
    /// What `word` and the gap before it take on the row.
    word_columns: usize,
    /// Where they begin in the page's buffer, and the pen there; `None` once they were written to the terminal.
    word_at: Option<(usize, Option<Tone>)>,
}

impl Wrap {
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

    pub(super) fn forget_written(&mut self, count: usize) {
        self.word_at = self
            .word_at
            .and_then(|(at, pen)| Some((at.checked_sub(count)?, pen)));
    }
}

impl Page {
    /// Goes on with the open block.
    pub(super) fn text(&mut self, tone: Tone, text: &str) {
        let is_cut = |page: &Self| page.block.as_ref().is_none_or(|block| block.is_cut);
        if is_cut(self) || self.silent {
            return;
        }
        let cleaned = clean(text);
        let mut rest = &*cleaned;
        while let Some(end) = memchr(b'\n', rest.as_bytes()) {
            self.piece(tone, &rest[..end]);
            self.newline();
            rest = &rest[end + 1..];
            // What is not shown is not looked at either.
            if is_cut(self) {
                return;
            }
        }
        self.piece(tone, rest);
    }

    /// Ends the row, if there is one; otherwise it was an empty line, shown only if something follows.
    fn newline(&mut self) {
        if self.column > 0 {
            self.end_row();
        } else if let Some(block) = &mut self.block {
            block.blank_pending = !block.is_first_row;
            self.wrap.reset();
        }
    }

    fn piece(&mut self, tone: Tone, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.uncover();
        let is_short = self.block.as_ref().is_some_and(|block| block.rows_left.is_some());
        if self.live || is_short {
            self.wrapped(tone, piece);
        } else {
            self.whole(tone, piece);
        }
        self.pen_up();
    }

    /// Begins a row of the open block. False when the block has used up its rows.
    fn start_row(&mut self) -> bool {
        let Some(block) = &mut self.block else {
            return false;
        };
        let label = if std::mem::take(&mut block.is_first_row) {
            block.label
        } else {
            super::page::Label::SAME
        };
        let nested = block.nested;
        let blank = std::mem::take(&mut block.blank_pending);
        block.is_cut = block.rows_left == Some(0);
        block.rows_left = block.rows_left.map(|rows| rows.saturating_sub(1));
        let is_cut = block.is_cut;
        if is_cut || blank {
            self.gutter(label, nested);
            self.emit(if is_cut { " …" } else { "" });
            self.break_line();
        }
        if !is_cut {
            self.gutter(label, nested);
            self.leave_gutter();
        }
        !is_cut
    }

    fn whole(&mut self, tone: Tone, piece: &str) {
        if self.column == 0 {
            let text = piece.trim_start_matches([' ', '\t']);
            self.wrap.gap += blank_columns(&piece[..piece.len() - text.len()]);
            if text.is_empty() || !self.start_row() {
                return;
            }
            let gap = std::mem::take(&mut self.wrap.gap);
            self.emit_spaces(gap);
            return self.whole_text(tone, text);
        }
        self.whole_text(tone, piece);
    }

    fn whole_text(&mut self, tone: Tone, text: &str) {
        self.pen_down(tone);
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

    /// Writes a word, or more of one. False when the block has used up its rows.
    fn word(&mut self, tone: Tone, word: &str) -> bool {
        if self.column == 0 && !self.start_row() {
            return false;
        }
        let columns = word.width();
        if self.column + self.gap() + columns <= self.limit() {
            self.place(tone, word, columns);
            return true;
        }
        let begun = self.wrap.word.width();
        let room = self.limit() - self.text_column() - self.wrap.indent;
        if !self.wrap.has_words && columns <= room {
            // Too deep an indentation gives way to the word.
            self.wrap.gap = self.limit() - self.column - columns;
            self.place(tone, word, columns);
            return true;
        }
        if begun + columns > room || (begun > 0 && !self.can_take_back()) {
            return self.split(tone, word);
        }
        let begun = std::mem::take(&mut self.wrap.word);
        if !begun.is_empty() {
            self.take_back();
        }
        if !self.next_row() {
            return false;
        }
        if !begun.is_empty() {
            let columns = begun.width();
            self.place(tone, &begun, columns);
        }
        self.place(tone, word, columns);
        true
    }

    /// A word that fits on no row is broken wherever the row ends.
    fn split(&mut self, tone: Tone, word: &str) -> bool {
        let mut rest = word;
        while !rest.is_empty() {
            let room = self.limit().saturating_sub(self.column + self.gap());
            let is_fresh = self.column == self.text_column() + self.wrap.indent;
            let (head, columns) = first_columns(rest, room);
            let too_little =
                self.wrap.word.is_empty() && columns < WORTH_SPLITTING && head.len() < rest.len();
            if (head.is_empty() || too_little) && !is_fresh {
                if !self.next_row() {
                    return false;
                }
                continue;
            }
            // Wider than a whole row can only be one character on an absurdly narrow terminal.
            let head = if head.is_empty() { rest } else { head };
            self.place(tone, head, columns);
            rest = &rest[head.len()..];
            if !rest.is_empty() && !self.next_row() {
                return false;
            }
        }
        true
    }

    /// The white space before the next word; an absurd indentation is cut down.
    fn gap(&self) -> usize {
        if self.wrap.has_words {
            self.wrap.gap
        } else {
            self.wrap.gap.min((self.limit() - self.text_column()) / 2)
        }
    }

    fn place(&mut self, tone: Tone, word: &str, columns: usize) {
        let gap = self.gap();
        if self.wrap.word.is_empty() {
            self.wrap.word_at = Some((self.out.len(), self.pen));
            self.wrap.word_columns = gap;
        }
        if !std::mem::replace(&mut self.wrap.has_words, true) {
            self.wrap.indent = gap + list_mark_columns(word);
        }
        self.wrap.gap = 0;
        self.emit_spaces(gap);
        self.pen_down(tone);
        self.emit(word);
        self.wrap.word.push_str(word);
        self.wrap.word_columns += columns;
        self.column += gap + columns;
    }

    fn can_take_back(&self) -> bool {
        self.live || self.wrap.word_at.is_some()
    }

    /// Removes the begun word from the row: from the buffer while it is there, else from the screen.
    fn take_back(&mut self) {
        match self.wrap.word_at {
            Some((at, pen)) => {
                self.out.truncate(at);
                self.pen = pen;
            }
            None => self.emit(&format!("\x1b[{}D\x1b[K", self.wrap.word_columns)),
        }
        self.column -= self.wrap.word_columns;
    }

    /// Goes on with the same line on a new row.
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

/// The rows after `- item` or `1. item` begin under the item.
fn list_mark_columns(word: &str) -> usize {
    let number = word.strip_suffix('.').unwrap_or_default();
    let is_number =
        !number.is_empty() && number.len() < 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_number || matches!(word, "-" | "*" | "•" | "+") {
        word.width() + 1
    } else {
        0
    }
}

/// As much of a word as fits, and its columns.
fn first_columns(word: &str, room: usize) -> (&str, usize) {
    let mut columns = 0;
    for (at, c) in word.char_indices() {
        let wide = c.width().unwrap_or(0);
        if columns + wide > room {
            return (&word[..at], columns);
        }
        columns += wide;
    }
    (word, columns)
}
