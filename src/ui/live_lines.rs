//! Prints permanent lines and, on a terminal, redraws a few live lines below them.

use std::io::{self, Write};

use unicode_width::UnicodeWidthChar;

use super::Tone;
use super::clean::clean;

/// How `LiveLines` draws.
#[derive(Debug, Clone, Copy)]
pub struct LiveLinesOptions {
    pub color: bool,
    /// Whether live lines can be redrawn; if not, only permanent lines are written.
    pub live: bool,
    pub columns: u16,
    pub rows: u16,
}

pub struct LiveLines<W: Write> {
    writer: W,
    options: LiveLinesOptions,
    /// The live lines as last drawn.
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

    /// Whether live lines are drawn at all.
    pub fn is_live(&self) -> bool {
        self.options.live
    }

    /// Prints a permanent line that starts with a mark.
    pub fn print_line(&mut self, mark: &str, tone: Tone, text: &str) -> io::Result<()> {
        let style = tone.style(self.options.color);
        let text = clean(text).replace(['\n', '\t'], " ");
        let mut drawn = self.erase_sequence();
        drawn.push_str(&format!("{style}{mark}{style:#} {text}\n"));
        let lines = std::mem::take(&mut self.shown);
        drawn.push_str(&joined(&lines));
        self.shown = lines;
        self.write(&drawn)
    }

    /// Replaces the live lines. Writes nothing if they have not changed.
    pub fn show(&mut self, lines: &[String]) -> io::Result<()> {
        if !self.options.live {
            return Ok(());
        }
        let lines = self.fit(lines);
        if lines == self.shown {
            return Ok(());
        }
        let drawn = self.erase_sequence() + &joined(&lines);
        self.shown = lines;
        self.write(&drawn)
    }

    /// Removes the live lines.
    pub fn clear(&mut self) -> io::Result<()> {
        self.show(&[])
    }

    /// Cuts the lines to the size of the terminal: wrapped or scrolled lines cannot be redrawn.
    fn fit(&self, lines: &[String]) -> Vec<String> {
        let max_lines = usize::from(self.options.rows).saturating_sub(2).max(1);
        let columns = usize::from(self.options.columns).saturating_sub(1).max(1);
        let mut fitted: Vec<String> = lines
            .iter()
            .take(max_lines)
            .map(|line| cut(line, columns))
            .collect();
        if lines.len() > max_lines {
            fitted[max_lines - 1] = cut(&format!("  and {} more", lines.len() - max_lines + 1), columns);
        }
        fitted
    }

    fn erase_sequence(&self) -> String {
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
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= columns
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live_lines(live: bool) -> LiveLines<Vec<u8>> {
        LiveLines::new(
            Vec::new(),
            LiveLinesOptions {
                color: false,
                live,
                columns: 12,
                rows: 4,
            },
        )
    }

    fn written(lines_out: &mut LiveLines<Vec<u8>>) -> String {
        String::from_utf8(std::mem::take(&mut lines_out.writer)).unwrap()
    }

    #[test]
    fn permanent_lines_are_written_above_live_lines() {
        let mut lines_out = live_lines(true);
        lines_out.show(&["one".into(), "two".into()]).unwrap();
        assert_eq!(written(&mut lines_out), "one\ntwo\n");
        lines_out.show(&["one".into(), "two".into()]).unwrap();
        assert_eq!(written(&mut lines_out), "", "nothing has changed");
        lines_out.print_line("+", Tone::Good, "done").unwrap();
        assert_eq!(written(&mut lines_out), "\r\u{1b}[2A\u{1b}[J+ done\none\ntwo\n");
        lines_out.clear().unwrap();
        assert_eq!(written(&mut lines_out), "\r\u{1b}[2A\u{1b}[J");
    }

    #[test]
    fn live_lines_are_cut_to_the_terminal_and_cleaned() {
        let mut lines_out = live_lines(true);
        let lines: Vec<String> = (0..5)
            .map(|n| format!("{n} \u{1b}[2Jlonger than a line"))
            .collect();
        lines_out.show(&lines).unwrap();
        assert_eq!(written(&mut lines_out), "0 longer th\n  and 4 mor\n");
    }

    #[test]
    fn without_a_terminal_only_permanent_lines_are_written() {
        let mut lines_out = live_lines(false);
        lines_out.show(&["one".into()]).unwrap();
        lines_out.print_line("+", Tone::Good, "done\nreally").unwrap();
        assert_eq!(written(&mut lines_out), "+ done really\n");
    }
}
