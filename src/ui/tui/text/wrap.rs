//! Wraps styled text into rows of a given width.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar;

const TAB_COLUMNS: usize = 4;

/// Where a row may break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ui::tui) enum LineBreak {
    /// Between words if possible.
    Words,
    /// Where the row is full; for code and output.
    Anywhere,
}

/// The prefix of the first row and of all others. Both have the same width.
#[derive(Debug, Clone, Default)]
pub(in crate::ui::tui) struct Margin {
    pub(in crate::ui::tui) first: Vec<Span<'static>>,
    pub(in crate::ui::tui) rest: Vec<Span<'static>>,
}

impl Margin {
    pub(in crate::ui::tui) fn columns(&self) -> usize {
        self.first.iter().map(Span::width).sum()
    }

    /// The margin with an additional span on its right.
    #[must_use]
    pub(in crate::ui::tui) fn with(&self, first: Span<'static>, rest: Span<'static>) -> Self {
        let mut wider = self.clone();
        wider.first.push(first);
        wider.rest.push(rest);
        wider
    }

    /// The margin for text that continues after the first row.
    #[must_use]
    pub(in crate::ui::tui) fn continuation(&self) -> Self {
        Self {
            first: self.rest.clone(),
            rest: self.rest.clone(),
        }
    }
}

struct StyledChar {
    c: char,
    style: Style,
    columns: usize,
}

/// Wraps one line of styled text. The text contains no control characters except tabs.
pub(in crate::ui::tui) fn wrap(
    text: &[(String, Style)],
    margin: &Margin,
    width: usize,
    at: LineBreak,
) -> Vec<Line<'static>> {
    let available = width.saturating_sub(margin.columns()).max(1);
    let chars = chars(text);
    let mut rows = Vec::new();
    let mut from = 0;
    loop {
        let (end, next) = row_end(&chars, from, available, at);
        let before = if rows.is_empty() {
            &margin.first
        } else {
            &margin.rest
        };
        let mut spans = before.clone();
        append(&mut spans, &chars[from..end]);
        rows.push(Line::from(spans));
        if next >= chars.len() {
            return rows;
        }
        from = next;
    }
}

fn chars(text: &[(String, Style)]) -> Vec<StyledChar> {
    let mut chars = Vec::with_capacity(text.iter().map(|(part, _)| part.len()).sum());
    for (part, style) in text {
        for c in part.chars() {
            let style = *style;
            if c == '\t' {
                chars.extend((0..TAB_COLUMNS).map(|_| StyledChar {
                    c: ' ',
                    style,
                    columns: 1,
                }));
            } else {
                let columns = c.width().unwrap_or(0);
                chars.push(StyledChar { c, style, columns });
            }
        }
    }
    chars
}

/// The end of the row that starts at `from`, and the start of the next row.
fn row_end(chars: &[StyledChar], from: usize, available: usize, at: LineBreak) -> (usize, usize) {
    let mut columns = 0;
    let mut gap = None;
    for (index, styled) in chars.iter().enumerate().skip(from) {
        columns += styled.columns;
        if columns > available {
            if styled.c == ' ' && at == LineBreak::Words {
                return (index, after_spaces(chars, index));
            }
            return match gap.filter(|_| at == LineBreak::Words) {
                Some(gap) => (gap, after_spaces(chars, gap)),
                None => (index.max(from + 1), index.max(from + 1)),
            };
        }
        // Do not break inside the indentation.
        if styled.c == ' ' && index > from && chars[index - 1].c != ' ' {
            gap = Some(index);
        }
    }
    (chars.len(), chars.len())
}

fn after_spaces(chars: &[StyledChar], from: usize) -> usize {
    let spaces = chars[from..].iter().take_while(|styled| styled.c == ' ').count();
    from + spaces
}

fn append(spans: &mut Vec<Span<'static>>, chars: &[StyledChar]) {
    for run in chars.chunk_by(|a, b| a.style == b.style) {
        let text: String = run.iter().map(|styled| styled.c).collect();
        spans.push(Span::styled(text, run[0].style));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, width: usize, at: LineBreak) -> Vec<String> {
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
    fn words_are_kept_whole_if_they_fit() {
        assert_eq!(
            rows("one two three four", 10, LineBreak::Words),
            ["- one two", "  three", "  four"]
        );
        assert_eq!(
            rows("a bbbbbbbbbbbbbb c", 10, LineBreak::Words),
            ["- a", "  bbbbbbbb", "  bbbbbb c"]
        );
        assert_eq!(rows("", 10, LineBreak::Words), ["- "]);
    }

    #[test]
    fn code_breaks_anywhere_and_keeps_spaces() {
        assert_eq!(rows("\tif x {", 10, LineBreak::Anywhere), ["-     if x", "   {"]);
    }

    #[test]
    fn wide_characters_take_two_columns_and_any_width_works() {
        assert_eq!(
            rows("日本語日本語", 8, LineBreak::Words),
            ["- 日本語", "  日本語"]
        );
        assert_eq!(rows("日本", 1, LineBreak::Words), ["- 日", "  本"]);
    }
}
