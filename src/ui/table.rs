//! A left-aligned table for listings.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::{Tone, clean::clean};

/// The text of one cell and its tone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// Cleans the text and joins its lines.
    pub fn new(text: &str, tone: Tone) -> Self {
        let text = clean(text).replace(['\n', '\t'], " ");
        Self { text, tone }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(text, Tone::Plain)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(&text, Tone::Plain)
    }
}

/// A header and rows. Each column is as wide as its widest cell.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
}

/// Spaces between two columns.
const GAP: usize = 2;

impl Table {
    pub fn new<'a>(header: impl IntoIterator<Item = &'a str>) -> Self {
        let header = header.into_iter().map(|title| Cell::new(title, Tone::Strong));
        Self {
            rows: vec![header.collect()],
        }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub fn write_to(&self, writer: &mut impl Write, color: bool) -> io::Result<()> {
        let widths = self.widths();
        for row in &self.rows {
            let mut pending = 0;
            for (cell, width) in row.iter().zip(&widths) {
                // Writing spaces only before a non-empty cell avoids trailing spaces.
                if !cell.text.is_empty() {
                    let style = cell.tone.style(color);
                    write!(writer, "{:pending$}{style}{}{style:#}", "", cell.text)?;
                    pending = 0;
                }
                pending += width + GAP - cell.text.width();
            }
            writeln!(writer)?;
        }
        Ok(())
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width_of = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.text.width()).max().unwrap_or(0)
        };
        (0..columns).map(width_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table, color: bool) -> String {
        let mut out = Vec::new();
        table.write_to(&mut out, color).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_align_by_display_width() {
        let mut table = Table::new(["AGENT", "VERSION", "NOTE"]);
        table.row(["claude".into(), "2.1.0".into(), "selected".into()]);
        table.row(["日本".into(), "".into(), "two\nlines \u{1b}[2J".into()]);
        table.row(["amp".into(), "".into(), "".into()]);
        insta::assert_snapshot!(written(&table, false), @"
        AGENT   VERSION  NOTE
        claude  2.1.0    selected
        日本             two lines 
        amp
        ");
    }

    #[test]
    fn color_does_not_change_the_alignment() {
        let mut table = Table::new(["RUN", "END"]);
        table.row([Cell::new("a", Tone::Accent), Cell::new("complete", Tone::Good)]);
        assert_eq!(
            written(&table, true),
            "\u{1b}[1mRUN\u{1b}[0m  \u{1b}[1mEND\u{1b}[0m\n\u{1b}[36ma\u{1b}[0m    \u{1b}[32mcomplete\u{1b}[0m\n"
        );
    }
}
