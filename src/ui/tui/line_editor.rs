//! Edits a short text: the message to the agent, or the text to search for. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Limit for a typed text, in bytes.
const MAX_INPUT: usize = 4000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineEditor {
    text: String,
    /// Byte position in `text`.
    cursor: usize,
    lines: LineCount,
    /// The entry of the history that is shown, and the text that was typed before.
    recalled: Option<(usize, String)>,
}

/// How many lines the text may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineCount {
    One,
    Several,
}

impl LineEditor {
    pub(super) fn new(lines: LineCount) -> Self {
        Self {
            text: String::new(),
            cursor: 0,
            lines,
            recalled: None,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// The text before the cursor, and after it.
    pub(super) fn split(&self) -> (&str, &str) {
        self.text.split_at(self.cursor)
    }

    /// Handles a key other than Enter without Alt and Esc. `history` holds earlier texts, oldest first.
    pub(super) fn press(&mut self, key: KeyEvent, history: &[String]) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => self.insert("\n"),
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.after(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            KeyCode::Up => self.up(history),
            KeyCode::Down => self.down(history),
            KeyCode::Backspace => self.delete(self.before(), self.cursor),
            KeyCode::Delete => self.delete(self.cursor, self.after()),
            KeyCode::Char(letter) if control => self.control(letter),
            KeyCode::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            _ => {}
        }
    }

    fn control(&mut self, letter: char) {
        match letter {
            'a' => self.cursor = self.line_start(),
            'e' => self.cursor = self.line_end(),
            'b' => self.cursor = self.before(),
            'f' => self.cursor = self.after(),
            'w' => self.delete(self.word_start(), self.cursor),
            'u' => self.delete(self.line_start(), self.cursor),
            'k' => self.delete(self.cursor, self.line_end()),
            'd' => self.delete(self.cursor, self.after()),
            _ => {}
        }
    }

    /// Inserts typed or pasted text at the cursor.
    pub(super) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text = match self.lines {
            LineCount::One => text.replace('\n', " "),
            LineCount::Several => text,
        };
        let room = MAX_INPUT.saturating_sub(self.text.len());
        let text = &text[..text.floor_char_boundary(room)];
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn before(&self) -> usize {
        let last = self.text[..self.cursor].chars().next_back();
        self.cursor - last.map_or(0, char::len_utf8)
    }

    fn after(&self) -> usize {
        let next = self.text[self.cursor..].chars().next();
        self.cursor + next.map_or(0, char::len_utf8)
    }

    fn word_start(&self) -> usize {
        let text = self.text[..self.cursor].trim_end();
        text.rfind(char::is_whitespace)
            .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8))
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let rest = &self.text[self.cursor..];
        self.cursor + rest.find('\n').unwrap_or(rest.len())
    }

    /// Moves to the line above; in the first line, shows the text before in the history.
    fn up(&mut self, history: &[String]) {
        let start = self.line_start();
        if start > 0 {
            let column = self.text[start..self.cursor].chars().count();
            self.cursor = start - 1;
            self.cursor = self.column_of_line(column);
            return;
        }
        let index = self.recalled.as_ref().map_or(history.len(), |(index, _)| *index);
        let Some((index, text)) = index
            .checked_sub(1)
            .and_then(|index| Some((index, history.get(index)?)))
        else {
            return;
        };
        let typed = match self.recalled.take() {
            Some((_, typed)) => typed,
            None => std::mem::take(&mut self.text),
        };
        self.recalled = Some((index, typed));
        self.set(text.clone());
    }

    /// Moves to the line below; in the last line, shows the next text in the history.
    fn down(&mut self, history: &[String]) {
        let end = self.line_end();
        if end < self.text.len() {
            let column = self.text[self.line_start()..self.cursor].chars().count();
            self.cursor = end + 1;
            self.cursor = self.column_of_line(column);
            return;
        }
        let Some((index, typed)) = self.recalled.take() else {
            return;
        };
        match history.get(index + 1) {
            Some(text) => {
                self.recalled = Some((index + 1, typed));
                self.set(text.clone());
            }
            None => self.set(typed),
        }
    }

    fn set(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
    }

    /// The position of a column in the line of the cursor.
    fn column_of_line(&self, column: usize) -> usize {
        let line = self.line_start()..self.line_end();
        let start = line.start;
        self.text[line]
            .char_indices()
            .nth(column)
            .map_or(self.line_end(), |(at, _)| start + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(keys: &str, history: &[&str]) -> String {
        let history: Vec<String> = history.iter().map(|text| (*text).to_owned()).collect();
        let mut editor = LineEditor::new(LineCount::Several);
        for c in keys.chars() {
            let key = match c {
                '←' => KeyCode::Left.into(),
                '→' => KeyCode::Right.into(),
                '↑' => KeyCode::Up.into(),
                '↓' => KeyCode::Down.into(),
                '⌫' => KeyCode::Backspace.into(),
                '⏎' => KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT),
                'A' | 'E' | 'W' | 'U' | 'K' => {
                    KeyEvent::new(KeyCode::Char(c.to_ascii_lowercase()), KeyModifiers::CONTROL)
                }
                c => KeyCode::Char(c).into(),
            };
            editor.press(key, &history);
        }
        let (before, after) = editor.split();
        format!("{before}|{after}")
    }

    #[test]
    fn keys_edit_at_the_cursor() {
        assert_eq!(edited("abc←←x", &[]), "ax|bc");
        assert_eq!(edited("äöü←⌫", &[]), "ä|ü");
        assert_eq!(edited("one two W", &[]), "one |");
        assert_eq!(edited("one twoAz", &[]), "z|one two");
        assert_eq!(edited("oneAEz", &[]), "onez|");
        assert_eq!(edited("one two←←←U", &[]), "|two");
        assert_eq!(edited("one two←←←K", &[]), "one |");
        assert_eq!(edited("⌫W←→↑↓", &[]), "|");
    }

    #[test]
    fn alt_enter_starts_a_line_and_arrows_move_between_lines() {
        assert_eq!(edited("one⏎twenty↑!", &[]), "one!|\ntwenty");
        assert_eq!(edited("one⏎twenty↑A↓x", &[]), "one\nx|twenty");
    }

    #[test]
    fn history_is_recalled_and_the_typed_text_comes_back() {
        let history = ["first", "second"];
        assert_eq!(edited("new↑", &history), "second|");
        assert_eq!(edited("new↑↑↑", &history), "first|");
        assert_eq!(edited("new↑↑↓↓", &history), "new|");
    }

    #[test]
    fn pasted_lines_become_one_line_in_a_search() {
        let mut editor = LineEditor::new(LineCount::One);
        editor.insert("a\r\nb\rc");
        assert_eq!(editor.text(), "a b c");
        editor.insert(&"é".repeat(5000));
        assert!(editor.text().len() <= MAX_INPUT);
    }
}
