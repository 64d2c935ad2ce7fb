//! Styled text in rows of a given width.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar;

const TAB_COLUMNS: usize = 4;

/// Where a row may break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ui::tui) enum Break {
    /// Between words, where there is one.
    Words,
    /// Wherever the row is full: code, output.
    Anywhere,
}

/// What stands before the first row, and before each further one. Both are equally wide.
#[derive(Debug, Clone, Default)]
pub(in crate::ui::tui) struct Margin {
    pub(in crate::ui::tui) first: Vec<Span<'static>>,
    pub(in crate::ui::tui) rest: Vec<Span<'static>>,
}

impl Margin {
    pub(in crate::ui::tui) fn columns(&self) -> usize {
        self.first.iter().map(Span::width).sum()
    }

    /// The same margin, with more on its right.
    #[must_use]
    pub(in crate::ui::tui) fn with(&self, first: Span<'static>, rest: Span<'static>) -> Self {
        let mut wider = self.clone();
        wider.first.push(first);
        wider.rest.push(rest);
        wider
    }

    /// The margin of what follows the first row.
    #[must_use]
    pub(in crate::ui::tui) fn further(&self) -> Self {
        Self {
            first: self.rest.clone(),
            rest: self.rest.clone(),
        }
    }
}

struct Cell {
    c: char,
    style: Style,
    columns: usize,
}

/// Lays one line of styled text out in rows. The text is clean: no control characters but tabs.
pub(in crate::ui::tui) fn wrap(
    text: &[(String, Style)],
    margin: &Margin,
    width: usize,
    at: Break,
) -> Vec<Line<'static>> {
    let room = width.saturating_sub(margin.columns()).max(1);
    let cells = cells(text);
    let mut rows = Vec::new();
    let mut from = 0;
    loop {
        let (end, next) = row_end(&cells, from, room, at);
        let before = if rows.is_empty() {
            &margin.first
        } else {
            &margin.rest
        };
        let mut spans = before.clone();
        append(&mut spans, &cells[from..end]);
        rows.push(Line::from(spans));
        if next >= cells.len() {
            return rows;
        }
        from = next;
    }
}

fn cells(text: &[(String, Style)]) -> Vec<Cell> {
    let mut cells = Vec::with_capacity(text.iter().map(|(piece, _)| piece.len()).sum());
    for (piece, style) in text {
        for c in piece.chars() {
            let style = *style;
            if c == '\t' {
                cells.extend((0..TAB_COLUMNS).map(|_| Cell {
                    c: ' ',
                    style,
                    columns: 1,
                }));
            } else {
                let columns = c.width().unwrap_or(0);
                cells.push(Cell { c, style, columns });
            }
        }
    }
    cells
}

/// Where the row that begins here ends, and where the next one begins.
fn row_end(cells: &[Cell], from: usize, room: usize, at: Break) -> (usize, usize) {
    let mut columns = 0;
    let mut gap = None;
    for (index, cell) in cells.iter().enumerate().skip(from) {
        columns += cell.columns;
        if columns > room {
            if cell.c == ' ' && at == Break::Words {
                return (index, after_spaces(cells, index));
            }
            return match gap.filter(|_| at == Break::Words) {
                Some(gap) => (gap, after_spaces(cells, gap)),
                None => (index.max(from + 1), index.max(from + 1)),
            };
        }
        // The indentation of a line is not a place to break it.
        if cell.c == ' ' && index > from && cells[index - 1].c != ' ' {
            gap = Some(index);
        }
    }
    (cells.len(), cells.len())
}

fn after_spaces(cells: &[Cell], from: usize) -> usize {
    let spaces = cells[from..].iter().take_while(|cell| cell.c == ' ').count();
    from + spaces
}

fn append(spans: &mut Vec<Span<'static>>, cells: &[Cell]) {
    for piece in cells.chunk_by(|a, b| a.style == b.style) {
        let text: String = piece.iter().map(|cell| cell.c).collect();
        spans.push(Span::styled(text, piece[0].style));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, width: usize, at: Break) -> Vec<String> {
        let margin = Margin {
            first: vec![Span::raw("- ")],
            rest: vec![Span::raw("  ")],
        };
        let text = [(text.to_owned(), Style::new())];
        wrap(&text, &margin, width, at)
            .iter()
            .map(Line::to_string)
            .collect()
    }

    #[test]
    fn words_stay_whole_where_they_fit() {
        assert_eq!(
            rows("one two three four", 10, Break::Words),
            ["- one two", "  three", "  four"]
        );
        assert_eq!(
            rows("a bbbbbbbbbbbbbb c", 10, Break::Words),
            ["- a", "  bbbbbbbb", "  bbbbbb c"]
        );
        assert_eq!(rows("", 10, Break::Words), ["- "]);
    }

    #[test]
    fn code_breaks_anywhere_and_keeps_its_spaces() {
        assert_eq!(rows("\tif x {", 10, Break::Anywhere), ["-     if x", "   {"]);
    }

    #[test]
    fn wide_characters_count_twice_and_nothing_is_too_narrow() {
        assert_eq!(rows("日本語日本語", 8, Break::Words), ["- 日本語", "  日本語"]);
        assert_eq!(rows("日本", 1, Break::Words), ["- 日", "  本"]);
    }
}
