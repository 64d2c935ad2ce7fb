//! Renders a subset of Markdown: headings, emphasis, code, lists, quotes and fences.
//!
//! Unsupported syntax is shown as written. Only the markup characters are removed.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::highlight::Language;
use super::wrap::{LineBreak, Margin, wrap};
use crate::ui::Tone;
use crate::ui::tui::theme::Theme;

/// Lays out a cleaned text as rows.
pub(in crate::ui::tui) fn markdown(
    text: &str,
    margin: &Margin,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    let layout = MarkdownLayout { margin, width, theme };
    layout.extend(text, &mut rows, LayoutCheckpoint::default());
    rows
}

/// The parameters of a Markdown layout.
pub(super) struct MarkdownLayout<'a> {
    pub(super) margin: &'a Margin,
    pub(super) width: usize,
    pub(super) theme: Theme,
}

/// The part of a growing text whose layout is final: everything except the last line.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::ui::tui) struct LayoutCheckpoint {
    bytes: usize,
    rows: usize,
    fence: Option<Fence>,
}

/// An open code block.
#[derive(Debug, Clone, Copy)]
struct Fence {
    mark: &'static str,
    language: Option<Language>,
}

impl LayoutCheckpoint {
    /// The checkpoint after `rows` rows were inserted above the text.
    #[must_use]
    pub(in crate::ui::tui) fn shifted_down(self, rows: usize) -> Self {
        Self {
            rows: self.rows + rows,
            ..self
        }
    }

    /// Whether the layout of `text` can continue from this checkpoint.
    pub(super) fn is_usable_for(self, text: &str) -> bool {
        self.bytes > 0 && text.get(self.bytes..).is_some()
    }
}

impl MarkdownLayout<'_> {
    /// Lays out the text after the checkpoint and replaces the rows after it.
    pub(super) fn extend<R: From<Line<'static>>>(
        &self,
        text: &str,
        rows: &mut Vec<R>,
        from: LayoutCheckpoint,
    ) -> LayoutCheckpoint {
        rows.truncate(from.rows);
        let text = text.trim_end();
        let mut checkpoint = from;
        let mut fence = from.fence;
        let mut start = from.bytes;
        for line in text.get(start..).unwrap_or_default().split('\n') {
            checkpoint = LayoutCheckpoint {
                bytes: start,
                rows: rows.len(),
                fence,
            };
            let lines = self.line(line, start == 0, &mut fence);
            rows.extend(lines.into_iter().map(R::from));
            start += line.len() + 1;
        }
        checkpoint
    }

    /// The rows of one line. The line may open or close a fence.
    fn line(&self, line: &str, is_first: bool, fence: &mut Option<Fence>) -> Vec<Line<'static>> {
        let (width, theme) = (self.width, self.theme);
        let margin = match is_first {
            true => self.margin.clone(),
            false => self.margin.continuation(),
        };
        let trimmed = line.trim_start();
        if let Some(Fence { mark, language }) = *fence {
            if trimmed.starts_with(mark) && trimmed.trim_end().bytes().all(|byte| byte == mark.as_bytes()[0])
            {
                *fence = None;
                return Vec::new();
            }
            return code(line, language, &margin, width, theme);
        }
        let Some(mark) = fence_mark(trimmed) else {
            return paragraph(line, &margin, width, theme);
        };
        let language = trimmed.trim_start_matches(mark.as_bytes()[0] as char).trim();
        *fence = Some(Fence {
            mark,
            language: Language::named(language),
        });
        if language.is_empty() && !is_first {
            return Vec::new();
        }
        let label = [(language.to_owned(), theme.tone(Tone::Faint))];
        wrap(&label, &margin, width, LineBreak::Words)
    }
}

fn fence_mark(line: &str) -> Option<&'static str> {
    ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark))
}

fn code(
    line: &str,
    language: Option<Language>,
    margin: &Margin,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let bar = Span::styled("│ ", theme.tone(Tone::Faint));
    let margin = margin.with(bar.clone(), bar);
    let text = match language {
        Some(language) => language.highlight(line, Style::new(), theme),
        None => vec![(line.to_owned(), theme.code())],
    };
    wrap(&text, &margin, width, LineBreak::Anywhere)
}

fn paragraph(line: &str, margin: &Margin, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let trimmed = line.trim_start();
    let indent = line.len() - trimmed.len();
    let level = trimmed.bytes().take_while(|byte| *byte == b'#').count();
    if indent < 4 && (1..=6).contains(&level) && trimmed[level..].starts_with(' ') {
        let text = inline(
            trimmed[level..].trim().trim_end_matches('#').trim_end(),
            theme.heading(),
            theme,
        );
        return wrap(&text, margin, width, LineBreak::Words);
    }
    if let Some(quoted) = trimmed.strip_prefix('>') {
        let bar = Span::styled("▏ ", theme.tone(Tone::Faint));
        let margin = margin.with(bar.clone(), bar);
        let text = inline(quoted.trim_start(), theme.tone(Tone::Faint), theme);
        return wrap(&text, &margin, width, LineBreak::Words);
    }
    let columns = indent.min(width / 3);
    if let Some((mark, text)) = list_item(trimmed) {
        let mark = format!("{}{mark} ", " ".repeat(columns));
        let blank = " ".repeat(mark.chars().count());
        let margin = margin.with(Span::styled(mark, theme.tone(Tone::Accent)), Span::raw(blank));
        return wrap(
            &inline(text, Style::new(), theme),
            &margin,
            width,
            LineBreak::Words,
        );
    }
    let blank = || Span::raw(" ".repeat(columns));
    wrap(
        &inline(trimmed, Style::new(), theme),
        &margin.with(blank(), blank()),
        width,
        LineBreak::Words,
    )
}

/// The bullet to show and the text of a list item.
fn list_item(line: &str) -> Option<(String, &str)> {
    for (mark, shown) in [
        ("- [ ] ", "☐"),
        ("- [x] ", "☑"),
        ("- [X] ", "☑"),
        ("- ", "•"),
        ("* ", "•"),
        ("+ ", "•"),
    ] {
        if let Some(text) = line.strip_prefix(mark) {
            return Some((shown.to_owned(), text));
        }
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let text = line[digits..]
        .strip_prefix(". ")
        .or_else(|| line[digits..].strip_prefix(") "))?;
    (1..=3)
        .contains(&digits)
        .then(|| (line[..=digits].to_owned(), text))
}

/// Parses emphasis and inline code. An unmatched delimiter is ordinary text.
fn inline(text: &str, base: Style, theme: Theme) -> Vec<(String, Style)> {
    let mut spans = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '_']) {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let opens = plain.chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        let found = delimited(from, opens, base, theme);
        match found {
            Some((inside, style, length)) => {
                if !plain.is_empty() {
                    spans.push((std::mem::take(&mut plain), base));
                }
                spans.push((inside.to_owned(), style));
                rest = &from[length..];
            }
            None => {
                let run = from
                    .bytes()
                    .take_while(|byte| *byte == from.as_bytes()[0])
                    .count();
                plain.push_str(&from[..run]);
                rest = &from[run..];
            }
        }
    }
    plain.push_str(rest);
    spans.push((plain, base));
    spans
}

/// The text between the delimiter at the start of `from` and its match, the style, and the total length.
fn delimited(from: &str, opens: bool, base: Style, theme: Theme) -> Option<(&str, Style, usize)> {
    let bold = base.add_modifier(Modifier::BOLD);
    let italic = base.add_modifier(Modifier::ITALIC);
    let marks = [
        ("`", base.patch(theme.code())),
        ("**", bold),
        ("__", bold),
        ("*", italic),
        ("_", italic),
    ];
    let run = from
        .bytes()
        .take_while(|byte| *byte == from.as_bytes()[0])
        .count();
    let (mark, style) = marks
        .into_iter()
        .find(|(mark, _)| mark.len() == run && from.starts_with(mark))?;
    let inside = &from[run..];
    let end = inside.find(mark).filter(|end| *end > 0)?;
    let emphasis = mark != "`";
    let tight = !inside.starts_with(' ') && !inside[..end].ends_with(' ');
    // snake_case and 2*3*4 are not emphasis.
    let closes = inside[end + run..]
        .chars()
        .next()
        .is_none_or(|c| !c.is_alphanumeric());
    (!emphasis || (tight && opens && closes)).then_some((&inside[..end], style, end + 2 * run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::tui::theme::ColorMode;

    fn shown(text: &str, width: usize) -> String {
        let margin = Margin {
            first: vec![Span::raw("● ")],
            rest: vec![Span::raw("  ")],
        };
        let rows = markdown(text, &margin, width, Theme::new(ColorMode::On));
        let rows: Vec<String> = rows
            .iter()
            .map(|row| row.to_string().trim_end().to_owned())
            .collect();
        rows.join("\n")
    }

    #[test]
    fn common_markdown_is_rendered() {
        let text = "# Plan\n\nUse **bold** and `code`, *this* too.\n- one item that is long enough to wrap\n  - [x] nested\n12. twelve\n> quoted\n```rust\nfn main() {}\n\t**x**\n```\nend";
        insta::assert_snapshot!(shown(text, 28), @"
        ● Plan

          Use bold and code, this
          too.
          • one item that is long
            enough to wrap
            ☑ nested
          12. twelve
          ▏ quoted
          rust
          │ fn main() {}
          │     **x**
          end
        ");
    }

    #[test]
    fn unsupported_syntax_is_shown_as_written() {
        for text in [
            "snake_case_name",
            "2*3*4",
            "a * b * c",
            "**open",
            "`open",
            "#hashtag",
            "-x",
            "1.5",
            "****",
        ] {
            assert_eq!(shown(text, 60), format!("● {text}"));
        }
    }

    #[test]
    fn extending_a_text_equals_laying_it_out_at_once() {
        let text = "# Plan\n\n- one item that is long enough to wrap\n```rust\nfn main() {}\n\n```\n\n**end** of it  \n\n";
        let margin = Margin::default();
        let theme = Theme::new(ColorMode::On);
        let layout = MarkdownLayout {
            margin: &margin,
            width: 20,
            theme,
        };
        let mut rows: Vec<Line<'_>> = Vec::new();
        let mut checkpoint = LayoutCheckpoint::default();
        for end in 1..=text.len() {
            checkpoint = layout.extend(&text[..end], &mut rows, checkpoint);
            assert_eq!(
                rows,
                markdown(&text[..end], &margin, 20, theme),
                "{:?}",
                &text[..end]
            );
        }
    }

    #[test]
    fn unclosed_fence_loses_no_text() {
        assert_eq!(shown("```\nlast", 20), "●\n  │ last");
        assert_eq!(shown("", 20), "●");
    }
}
