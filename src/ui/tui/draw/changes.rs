//! Builds the document of the changes tab: the files of an iteration, unfolded to the diff.

use std::rc::Rc;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::DrawContext;
use crate::event::{ChangedFile, FileChangeKind};
use crate::ui::clean::clean;
use crate::ui::tui::document::{Document, DocumentItem};
use crate::ui::tui::patch::FilePatch;
use crate::ui::tui::tab::Tab;
use crate::ui::tui::text::{Fold, Language, LineBreak, Margin, Row, clip, wrap};
use crate::ui::tui::theme::Theme;
use crate::ui::tui::view::View;
use crate::ui::{Tone, units};

/// Rows of one file's diff.
const MAX_ROWS: usize = 2000;

/// The changed files of the displayed iteration. The ids are the positions of the files, from 1.
pub(super) fn changes(context: &DrawContext<'_>, view: &View, width: usize) -> Document {
    let changes = context.entry(view).and_then(|entry| entry.changes.as_ref());
    let (Some(changes), Some(index)) = (changes, view.entry_index(context.state)) else {
        return Document::default();
    };
    let patch = context.files.patch();
    let mut items = Vec::new();
    for (file, id) in changes.files.iter().zip(1..) {
        // Beside the transcript, diffs are shown while they fit; in the tab, those that the user unfolds.
        let fold = match view.tab {
            Tab::Changes if changes.files.len() > 1 => view.file_fold(index, id),
            Tab::Changes => view.file_fold(index, id).opposite(),
            _ => Fold::Open,
        };
        let mut rows = vec![file_row(file, fold, view.theme, width)];
        if fold == Fold::Open {
            let diff = patch.and_then(|patch| patch.file(&file.path));
            rows.extend(diff.map_or_else(Vec::new, |diff| diff_rows(diff, view.theme, width)));
        }
        items.push(Rc::new(DocumentItem { id, rows }));
    }
    items.extend(notes(
        context,
        changes.count,
        changes.files.len() as u64,
        view.theme,
    ));
    Document::new(items)
}

fn notes(context: &DrawContext<'_>, count: u64, listed: u64, theme: Theme) -> Option<Rc<DocumentItem>> {
    let more = count.saturating_sub(listed);
    let mut texts = Vec::new();
    if more > 0 {
        texts.push(format!(" and {}", units::count(more, "more file")));
    }
    if context.files.patch().is_some_and(|patch| patch.cut) {
        texts.push(" the rest of the changes is not shown; see ralph diff".to_owned());
    }
    if let Some(error) = context.files.error() {
        texts.push(format!(" {error}"));
    }
    let rows: Vec<Row> = texts
        .into_iter()
        .map(|text| Row::from(Line::styled(text, theme.tone(Tone::Faint))))
        .collect();
    (!rows.is_empty()).then(|| Rc::new(DocumentItem { id: u64::MAX, rows }))
}

/// ` ▸ M src/lib.rs            +12 −3`
fn file_row(file: &ChangedFile, fold: Fold, theme: Theme, width: usize) -> Row {
    let (letter, tone) = match file.change {
        FileChangeKind::Added => ("A", Tone::Good),
        FileChangeKind::Deleted => ("D", Tone::Bad),
        FileChangeKind::Modified => ("M", Tone::Warning),
    };
    let mark = match fold {
        Fold::Closed => "▸",
        Fold::Open => "▾",
    };
    let figures = match (file.added, file.removed) {
        (Some(added), Some(removed)) => vec![
            Span::styled(format!("+{added}"), theme.tone(Tone::Good)),
            Span::raw(" "),
            Span::styled(format!("−{removed}"), theme.diff_line(Tone::Bad)),
        ],
        (None, _) | (_, None) => vec![Span::styled("binary", theme.tone(Tone::Faint))],
    };
    let figures_width: usize = figures.iter().map(Span::width).sum();
    let left = [
        Span::raw(" "),
        Span::styled(mark, theme.tone(Tone::Faint)),
        Span::raw(" "),
        Span::styled(letter, theme.tone(tone)),
        Span::styled(format!(" {}", clean(&file.path)), theme.tone(Tone::Strong)),
    ];
    let mut spans = clip(&left, width.saturating_sub(figures_width + 2));
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::raw(" ".repeat(width.saturating_sub(used + figures_width))));
    spans.extend(figures);
    Row::from(Line::from(spans))
}

fn diff_rows(file: &FilePatch, theme: Theme, width: usize) -> Vec<Row> {
    let language = Language::of_path(&file.path);
    let margin = Margin {
        first: vec![Span::raw("   ")],
        rest: vec![Span::raw("     ")],
    };
    let mut rows: Vec<Row> = Vec::new();
    for line in &file.lines {
        if rows.len() >= MAX_ROWS {
            rows.push(Row::from(Line::styled("   …", theme.tone(Tone::Faint))));
            break;
        }
        let text = clean(line);
        let parts = match (text.as_bytes().first(), language) {
            (Some(b'@'), _) => vec![(hunk_heading(&text), theme.tone(Tone::Accent))],
            (Some(b'+'), _) => vec![(text.into_owned(), theme.diff_line(Tone::Good))],
            (Some(b'-'), _) => vec![(text.into_owned(), theme.diff_line(Tone::Bad))],
            (Some(b' '), Some(language)) => language.highlight(&text, Style::new(), theme),
            _ => vec![(text.into_owned(), theme.tone(Tone::Faint))],
        };
        rows.extend(
            wrap(&parts, &margin, width, LineBreak::Anywhere)
                .into_iter()
                .map(Row::from),
        );
    }
    rows
}

/// `@@ line 12  fn main() {` instead of `@@ -10,4 +12,6 @@ fn main() {`
fn hunk_heading(line: &str) -> String {
    let mut parts = line.splitn(3, "@@");
    let (numbers, context) = (parts.nth(1).unwrap_or_default(), parts.next().unwrap_or_default());
    let new = numbers.split('+').nth(1).unwrap_or_default();
    let start = new.split([',', ' ']).next().unwrap_or_default();
    format!(
        "@@ line {start}{}",
        if context.is_empty() {
            String::new()
        } else {
            format!(" {context}")
        }
    )
}
