//! What each piece of a transcript looks like, as rows. Everything is cleaned here.

use std::borrow::Cow;

use jiff::Timestamp;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::markdown::{Settled, Sheet};
use super::wrap::{Break, Margin, wrap};
use crate::event::{GateResult, Json, Tag, ToolStatus};
use crate::ui::plain::{fields, one_line};
use crate::ui::tui::model::{Block, Body, Gate, Note, Said, Tool, ToolState};
use crate::ui::tui::theme::Theme;
use crate::ui::{Tone, clean::clean, describe, units};

/// One row of a document.
#[derive(Debug, Clone, Default)]
pub(in crate::ui::tui) struct Row {
    pub(in crate::ui::tui) line: Line<'static>,
    /// Something has been going on since then: the mark in the second column turns, and the time is shown.
    pub(in crate::ui::tui) live: Option<Timestamp>,
}

impl From<Line<'static>> for Row {
    fn from(line: Line<'static>) -> Self {
        Self { line, live: None }
    }
}

/// How much of the agent's reasoning is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(in crate::ui::tui) enum Thinking {
    #[default]
    Brief,
    Full,
    Hidden,
}

/// Whether a piece shows all that it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(in crate::ui::tui) enum Fold {
    #[default]
    Closed,
    Open,
}

/// How pieces are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ui::tui) struct Way {
    pub(in crate::ui::tui) width: usize,
    pub(in crate::ui::tui) theme: Theme,
    pub(in crate::ui::tui) thinking: Thinking,
    pub(in crate::ui::tui) fold: Fold,
}

const BRIEF_ROWS: usize = 3;
/// What is shown of a failure without being asked.
const FAILURE_ROWS: usize = 4;
const GATE_ROWS: usize = 8;
/// A prompt or a line of the agent's own that is longer than this is shown when asked for.
const ASIDE_ROWS: usize = 6;

/// A piece in rows, and how many of them stay when it grows.
#[derive(Debug)]
pub(in crate::ui::tui) struct Laid {
    pub(in crate::ui::tui) rows: Vec<Row>,
    pub(in crate::ui::tui) settled: Settled,
}

impl From<Vec<Row>> for Laid {
    fn from(rows: Vec<Row>) -> Self {
        Self {
            rows,
            settled: Settled::default(),
        }
    }
}

pub(in crate::ui::tui) fn lay_out(block: &Block, way: Way) -> Laid {
    let indent = indent(block);
    match &block.body {
        Body::Said(said) => said_rows(said, indent, way),
        Body::Tool(tool) => tool_rows(tool, indent, way).into(),
        Body::Gate(gate) => gate_rows(gate, indent, way).into(),
        Body::Note(note) => {
            let rows = note_rows(note, indent, way.width, way.theme);
            shorten(rows, ASIDE_ROWS, way).into()
        }
    }
}

/// Lays out what a piece has grown by. What cannot be done so comes back as `None`, and is to be laid out as a whole.
pub(in crate::ui::tui) fn add_rows(laid: Laid, block: &Block, way: Way) -> Option<Laid> {
    let Body::Said(said) = &block.body else {
        return None;
    };
    // What is to be cleaned may read otherwise once more of it is there.
    let (Tag::Ai | Tag::User, Cow::Borrowed(text)) = (said.tag, clean(&said.text)) else {
        return None;
    };
    let Laid { mut rows, settled } = laid;
    if !settled.helps_with(text) {
        return None;
    }
    let (margin, _) = said_margin(said, indent(block), way.theme);
    let settled = sheet(&margin, way).go_on(text, &mut rows, settled);
    Some(Laid { rows, settled })
}

fn indent(block: &Block) -> usize {
    if block.nested { 3 } else { 1 }
}

fn sheet(margin: &Margin, way: Way) -> Sheet<'_> {
    Sheet {
        margin,
        width: way.width,
        theme: way.theme,
    }
}

/// A piece of a transcript as text alone, for copying.
pub(in crate::ui::tui) fn text_of(body: &Body) -> String {
    let text = match body {
        Body::Said(said) => said.text.clone(),
        Body::Tool(tool) => {
            let input = input_lines(&tool.input).join("\n");
            let output = tool.output.text();
            format!("{} {}\n{input}\n{output}", tool.name, tool.argument)
        }
        Body::Gate(gate) => format!("{}\n{}", gate.command, gate.output.text()),
        Body::Note(note) => note.text.clone(),
    };
    clean(&text).trim().to_owned()
}

fn margin(mark: &'static str, style: Style, indent: usize) -> Margin {
    let space = " ".repeat(indent);
    Margin {
        first: vec![
            Span::raw(space.clone()),
            Span::styled(mark, style),
            Span::raw(" "),
        ],
        rest: vec![Span::raw(format!("{space}  "))],
    }
}

fn said_margin(said: &Said, indent: usize, theme: Theme) -> (Margin, Style) {
    let (mark, style) = match said.tag {
        Tag::Ai => ("●", theme.tone(Tone::Strong)),
        Tag::Think => ("┊", theme.thinking()),
        Tag::Sys => ("·", theme.tone(Tone::Faint)),
        Tag::Tool => ("·", theme.tone(Tone::Faint)),
        Tag::Prompt => ("❯", theme.tone(Tone::Faint)),
        Tag::User => ("❯", theme.tone(Tone::Strong)),
    };
    let margin = margin(mark, style, indent);
    let margin = if said.continued { margin.further() } else { margin };
    (margin, style)
}

fn said_rows(said: &Said, indent: usize, way: Way) -> Laid {
    let text = clean(&said.text);
    let (margin, style) = said_margin(said, indent, way.theme);
    match said.tag {
        Tag::Think if way.thinking == Thinking::Hidden => Vec::new().into(),
        Tag::Think => {
            let bar = Margin {
                rest: margin.first.clone(),
                first: margin.first,
            };
            let rows = plain_rows(text.trim(), &bar, style, way.width);
            match way.thinking {
                Thinking::Full => rows.into(),
                Thinking::Brief | Thinking::Hidden => shorten(rows, BRIEF_ROWS, way).into(),
            }
        }
        Tag::Ai | Tag::User => {
            let mut rows = Vec::new();
            let settled = sheet(&margin, way).go_on(&text, &mut rows, Settled::default());
            Laid { rows, settled }
        }
        Tag::Sys | Tag::Tool | Tag::Prompt => {
            let faint = way.theme.tone(Tone::Faint);
            let rows = plain_rows(text.trim_end(), &margin, faint, way.width);
            shorten(rows, ASIDE_ROWS, way).into()
        }
    }
}

fn plain_rows(text: &str, margin: &Margin, style: Style, width: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let margin = if rows.is_empty() {
            margin.clone()
        } else {
            margin.further()
        };
        rows.extend(wrap(&[(line.to_owned(), style)], &margin, width, Break::Words));
    }
    into_rows(rows)
}

/// The first rows, and a word about the others, unless the piece was opened.
fn shorten(mut rows: Vec<Row>, most: usize, way: Way) -> Vec<Row> {
    if way.fold == Fold::Closed && rows.len() > most + 1 {
        let hidden = units::count((rows.len() - most) as u64, "more line");
        rows.truncate(most);
        rows.push(faint(format!("   … {hidden}"), way.theme));
    }
    rows
}

fn tool_rows(tool: &Tool, indent: usize, way: Way) -> Vec<Row> {
    let theme = way.theme;
    let (mark, tone, word) = match tool.state {
        ToolState::Running => ("◌", Tone::Accent, None),
        ToolState::Lost => ("?", Tone::Warning, Some("no end was seen".to_owned())),
        ToolState::Ended { status, took } => {
            let took = took.map(units::duration);
            match status {
                ToolStatus::Ok => ("✓", Tone::Good, took),
                ToolStatus::Fail => ("✗", Tone::Bad, took),
                ToolStatus::Unknown => ("?", Tone::Warning, took),
            }
        }
    };
    let lines = tool.output.lines();
    let lines = (lines > 0).then(|| units::count(lines, "line"));
    let figures: Vec<String> = lines.into_iter().chain(word).collect();
    let title = [
        Span::styled(tool.name.clone(), theme.tone(Tone::Accent)),
        Span::raw(format!("  {}", tool.argument)),
    ];
    let margin = margin(mark, theme.tone(tone), indent);
    let mut head = Row::from(headline(&margin, &title, &figures.join(" · "), way));
    head.live = (tool.state == ToolState::Running).then_some(tool.started);
    let mut rows = vec![head];
    let failed = matches!(
        tool.state,
        ToolState::Ended {
            status: ToolStatus::Fail,
            ..
        }
    );
    match way.fold {
        Fold::Open => {
            let faint = theme.tone(Tone::Faint);
            let input = input_lines(&tool.input).join("\n");
            rows.extend(boxed(&input, faint, indent, way));
            rows.extend(boxed(&tool.output.text(), Style::new(), indent, way));
        }
        Fold::Closed if failed => {
            let output = tool.output.text();
            rows.extend(last(
                boxed(&output, Style::new(), indent, way),
                FAILURE_ROWS,
                theme,
            ));
        }
        Fold::Closed => {}
    }
    rows
}

fn gate_rows(gate: &Gate, indent: usize, way: Way) -> Vec<Row> {
    let theme = way.theme;
    let (mark, tone, figures) = match gate.end {
        None => ("◌", Tone::Accent, String::new()),
        Some((result, took)) => {
            let why = describe::gate_words(result)
                .map(|why| format!("{why} · "))
                .unwrap_or_default();
            let (mark, tone) = match result {
                GateResult::Passed => ("✓", Tone::Good),
                GateResult::Failed { .. } | GateResult::TimedOut | GateResult::CouldNotStart => {
                    ("✗", Tone::Bad)
                }
            };
            (mark, tone, format!("{why}{}", units::duration(took)))
        }
    };
    let title = [
        Span::styled(format!("gate {}", gate.name), theme.tone(Tone::Strong)),
        Span::raw(format!("  {}", gate.command)),
    ];
    let margin = margin(mark, theme.tone(tone), indent);
    let mut head = Row::from(headline(&margin, &title, &figures, way));
    head.live = gate.end.is_none().then_some(gate.started);
    let mut rows = vec![head];
    let output = boxed(&gate.output.text(), Style::new(), indent, way);
    match (way.fold, tone) {
        (Fold::Open, _) => rows.extend(output),
        (Fold::Closed, Tone::Bad) => rows.extend(last(output, GATE_ROWS, theme)),
        (Fold::Closed, _) => {}
    }
    rows
}

/// A row with a title on the left and figures on the right.
fn headline(margin: &Margin, title: &[Span<'static>], figures: &str, way: Way) -> Line<'static> {
    let reserved = margin.columns()
        + if figures.is_empty() {
            1
        } else {
            figures.chars().count() + 2
        };
    let mut spans = margin.first.clone();
    let left = clip(title, way.width.saturating_sub(reserved));
    let used: usize = margin.columns() + left.iter().map(Span::width).sum::<usize>();
    spans.extend(left);
    if !figures.is_empty() {
        let gap = way.width.saturating_sub(used + figures.chars().count());
        spans.push(Span::raw(" ".repeat(gap)));
        spans.push(Span::styled(figures.to_owned(), way.theme.tone(Tone::Faint)));
    }
    Line::from(spans)
}

/// The spans as far as there is room; what is cut ends with `…`.
pub(in crate::ui::tui) fn clip(spans: &[Span<'static>], room: usize) -> Vec<Span<'static>> {
    let mut left = room;
    let mut shown = Vec::new();
    for span in spans {
        let columns = span.width();
        if columns <= left {
            left -= columns;
            shown.push(span.clone());
            continue;
        }
        let indent = span.content.len() - span.content.trim_start().len();
        let (text, _) = one_line(&span.content, left.saturating_sub(indent));
        shown.push(Span::styled(
            format!("{}{text}", " ".repeat(indent.min(left))),
            span.style,
        ));
        break;
    }
    shown
}

/// Output under a headline, behind a bar.
fn boxed(text: &str, style: Style, indent: usize, way: Way) -> Vec<Row> {
    let text = clean(text);
    let text = text.trim_end();
    if text.is_empty() {
        return Vec::new();
    }
    let bar = Span::styled("│ ", way.theme.tone(Tone::Faint));
    let margin = Margin::default().with(
        Span::raw(" ".repeat(indent + 2)),
        Span::raw(" ".repeat(indent + 2)),
    );
    let margin = margin.with(bar.clone(), bar);
    let rows = text
        .split('\n')
        .flat_map(|line| wrap(&[(line.to_owned(), style)], &margin, way.width, Break::Anywhere));
    into_rows(rows.collect())
}

fn last(mut rows: Vec<Row>, most: usize, theme: Theme) -> Vec<Row> {
    let hidden = rows.len().saturating_sub(most);
    if hidden > 1 {
        rows.drain(..hidden);
        let above = units::count(hidden as u64, "line");
        rows.insert(0, faint(format!("   │ … {above} above"), theme));
    }
    rows
}

/// The fields of a tool's input, a line or more each.
fn input_lines(input: &str) -> Vec<String> {
    let Ok(json) = serde_json::from_str::<&serde_json::value::RawValue>(input).map(Json::from) else {
        return if input.is_empty() {
            Vec::new()
        } else {
            vec![format!("{input} …")]
        };
    };
    let Some(fields) = fields(&json) else {
        return vec![input.to_owned()];
    };
    let line = |(key, value): (String, &serde_json::value::RawValue)| {
        let text: Option<String> = serde_json::from_str(value.get()).ok();
        let text = text.as_deref().unwrap_or(value.get()).trim_end();
        if text.contains('\n') {
            format!("{key}:\n  {}", text.replace('\n', "\n  "))
        } else {
            format!("{key}: {text}")
        }
    };
    fields.into_iter().map(line).collect()
}

pub(in crate::ui::tui) fn note_rows(note: &Note, indent: usize, width: usize, theme: Theme) -> Vec<Row> {
    let style = match note.tone {
        Tone::Faint => theme.tone(Tone::Faint),
        Tone::Plain | Tone::Strong | Tone::Good | Tone::Bad | Tone::Warning | Tone::Accent => Style::new(),
    };
    let margin = margin(note.mark, theme.tone(note.tone), indent);
    plain_rows(clean(&note.text).trim_end(), &margin, style, width)
}

fn faint(text: String, theme: Theme) -> Row {
    Row::from(Line::from(Span::styled(text, theme.tone(Tone::Faint))))
}

fn into_rows(lines: Vec<Line<'static>>) -> Vec<Row> {
    lines.into_iter().map(Row::from).collect()
}
