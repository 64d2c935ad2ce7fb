//! Lines that stay, and below them, on a live terminal, a few lines that change. What they say is the caller's.

use std::io::{self, Write};

use unicode_width::UnicodeWidthChar;

use super::Tone;
use super::clean::clean;

/// How a board is drawn.
#[derive(Debug, Clone, Copy)]
pub struct LiveLinesOptions {
    pub colour: bool,
    /// Whether lines can be drawn over; where they cannot, only those that stay are written.
    pub live: bool,
    pub columns: u16,
    pub rows: u16,
}

pub struct LiveLines<W: Write> {
    writer: W,
    options: LiveLinesOptions,
    /// The lines that change, as they were drawn last.
    shown: Vec<String>,
}

impl<W: Write> LiveLines<W> {
    pub fn new(writer: W, options: LiveLinesOptions) -> Self {
        Self {
            writer,
            options,
            shown: Vec::new(),
        }
    }

    /// Whether there is anybody for whom lines can change.
    pub fn is_live(&self) -> bool {
        self.options.live
    }

    /// A line that stays, with a mark before it.
    pub fn say(&mut self, mark: &str, tone: Tone, text: &str) -> io::Result<()> {
        let style = tone.style(self.options.colour);
        let text = clean(text).replace(['\n', '\t'], " ");
        let mut drawn = self.erasure();
        drawn.push_str(&format!("{style}{mark}{style:#} {text}\n"));
        let lines = std::mem::take(&mut self.shown);
        drawn.push_str(&joined(&lines));
        self.shown = lines;
        self.write(&drawn)
    }

    /// The lines that change. Nothing is written if they say what they said.
    pub fn show(&mut self, lines: &[String]) -> io::Result<()> {
        if !self.options.live {
            return Ok(());
        }
        let lines = self.fitted(lines);
        if lines == self.shown {
            return Ok(());
        }
        let drawn = self.erasure() + &joined(&lines);
        self.shown = lines;
        self.write(&drawn)
    }

    /// Takes the lines that change away.
    pub fn clear(&mut self) -> io::Result<()> {
        self.show(&[])
    }

    /// No line may wrap, and all of them must fit: what has scrolled away cannot be drawn over.
    fn fitted(&self, lines: &[String]) -> Vec<String> {
        let most = usize::from(self.options.rows).saturating_sub(2).max(1);
        let columns = usize::from(self.options.columns).saturating_sub(1).max(1);
        let mut fitted: Vec<String> = lines.iter().take(most).map(|line| cut(line, columns)).collect();
        if lines.len() > most {
            fitted[most - 1] = cut(&format!("  and {} more", lines.len() - most + 1), columns);
        }
        fitted
    }

    fn erasure(&self) -> String {
        match self.shown.len() {
            0 => String::new(),
            lines => format!("\r\u{1b}[{lines}A\u{1b}[J"),
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.writer.write_all(text.as_bytes())?;
        self.writer.flush()
    }
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn cut(line: &str, columns: usize) -> String {
    let line = clean(line).replace(['\n', '\t'], " ");
    let mut used = 0;
    line.chars()
        .take_while(|sign| {
            used += sign.width().unwrap_or(0);
            used <= columns
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(live: bool) -> LiveLines<Vec<u8>> {
        LiveLines::new(
            Vec::new(),
            LiveLinesOptions {
                colour: false,
                live,
                columns: 12,
                rows: 4,
            },
        )
    }

    fn written(board: &mut LiveLines<Vec<u8>>) -> String {
        String::from_utf8(std::mem::take(&mut board.writer)).unwrap()
    }

    #[test]
    fn what_stays_is_written_above_what_changes() {
        let mut board = board(true);
        board.show(&["one".into(), "two".into()]).unwrap();
        assert_eq!(written(&mut board), "one\ntwo\n");
        board.show(&["one".into(), "two".into()]).unwrap();
        assert_eq!(written(&mut board), "", "nothing has changed");
        board.say("+", Tone::Good, "done").unwrap();
        assert_eq!(written(&mut board), "\r\u{1b}[2A\u{1b}[J+ done\none\ntwo\n");
        board.clear().unwrap();
        assert_eq!(written(&mut board), "\r\u{1b}[2A\u{1b}[J");
    }

    #[test]
    fn nothing_wraps_or_scrolls_and_no_escape_gets_through() {
        let mut board = board(true);
        let lines: Vec<String> = (0..5)
            .map(|n| format!("{n} \u{1b}[2Jlonger than a line"))
            .collect();
        board.show(&lines).unwrap();
        assert_eq!(written(&mut board), "0 longer th\n  and 4 mor\n");
    }

    #[test]
    fn without_a_live_terminal_only_what_stays_is_written() {
        let mut board = board(false);
        board.show(&["one".into()]).unwrap();
        board.say("+", Tone::Good, "done\nreally").unwrap();
        assert_eq!(written(&mut board), "+ done really\n");
    }
}
