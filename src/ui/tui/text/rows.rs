//! Lays out transcript blocks as rows, and removes control characters from their text.

use std::borrow::Cow;

use jiff::Timestamp;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::markdown::{LayoutCheckpoint, MarkdownLayout};
use super::wrap::{LineBreak, Margin, wrap};
use crate::event::{Json, Tag, ToolStatus};
use crate::ui::plain::{fields, one_line};
use crate::ui::tui::model::{
    BlockBody, GateBlock, Note, OutputExcerpt, TextBlock, ToolCall, ToolState, TranscriptBlock,
};
use crate::ui::tui::theme::Theme;
use crate::ui::{Tone, clean::clean, gate_failure, units};

/// One row of a document.
#[derive(Debug, Clone, Default)]
pub(in crate::ui::tui) struct Row {
    pub(in crate::ui::tui) line: Line<'static>,
    /// Start time of a running tool or gate: the row shows a spinner and the elapsed time.
    pub(in crate::ui::tui) live: Option<Timestamp>,
}

impl From<Line<'static>> for Row {
    fn from(line: Line<'static>) -> Self {
        Self { line, live: None }
    }
}

/// How much of the agent's thinking is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(in crate::ui::tui) enum Thinking {
    #[default]
    Brief,
    Full,
    Hidden,
}

/// Whether a block shows its full content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(in crate::ui::tui) enum Fold {
    #[default]
    Closed,
    Open,
}

impl Fold {
    #[must_use]
    pub(in crate::ui::tui) fn opposite(self) -> Self {
        match self {
            Self::Closed => Self::Open,
            Self::Open => Self::Closed,
        }
    }
}

/// The parameters of a block layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ui::tui) struct LayoutOptions {
    pub(in crate::ui::tui) width: usize,
    pub(in crate::ui::tui) theme: Theme,
    pub(in crate::ui::tui) thinking: Thinking,
    pub(in crate::ui::tui) fold: Fold,
}

/// Rows of thinking in brief mode.
const BRIEF_ROWS: usize = 3;
/// Rows of a failed tool call's output that are shown while it is folded.
const FAILURE_ROWS: usize = 4;
/// Rows of a failed gate's output that are shown while it is folded.
const GATE_ROWS: usize = 8;
/// Rows of prompts, system messages and notes that are shown while they are folded.
const NOTE_ROWS: usize = 6;

/// The rows of a block, and the checkpoint from which its layout can be extended.
#[derive(Debug)]
pub(in crate::ui::tui) struct BlockLayout {
    pub(in crate::ui::tui) rows: Vec<Row>,
    pub(in crate::ui::tui) checkpoint: LayoutCheckpoint,
}

impl From<Vec<Row>> for BlockLayout {
    fn from(rows: Vec<Row>) -> Self {
        Self {
            rows,
            checkpoint: LayoutCheckpoint::default(),
        }
    }
}

pub(in crate::ui::tui) fn lay_out(block: &TranscriptBlock, options: LayoutOptions) -> BlockLayout {
    let indent = indent(block);
    match &block.body {
        BlockBody::Text(text) => text_rows(text, indent, options),
        BlockBody::Tool(tool) => tool_rows(tool, indent, options).into(),
        BlockBody::Gate(gate) => gate_rows(gate, indent, options).into(),
        BlockBody::Note(note) => {
            let rows = note_rows(note, indent, options.width, options.theme);
            truncate(rows, NOTE_ROWS, options).into()
        }
    }
}

/// Extends a layout by the text that was added to its block. Returns `None` if the whole block must be laid out again.
pub(in crate::ui::tui) fn extend_layout(
    layout: BlockLayout,
    block: &TranscriptBlock,
    options: LayoutOptions,
) -> Option<BlockLayout> {
    let BlockBody::Text(text_block) = &block.body else {
        return None;
    };
    // If cleaning changes the text, more text may change how it is cleaned.
    let (Tag::Ai | Tag::User, Cow::Borrowed(text)) = (text_block.tag, clean(&text_block.text)) else {
        return None;
    };
    let BlockLayout { mut rows, checkpoint } = layout;
    if !checkpoint.is_usable_for(text) {
        return None;
    }
    let (margin, _) = text_margin(text_block, indent(block), options.theme);
    let checkpoint = markdown_layout(&margin, options).extend(text, &mut rows, checkpoint);
    Some(BlockLayout { rows, checkpoint })
}

fn indent(block: &TranscriptBlock) -> usize {
    if block.nested { 3 } else { 1 }
}

fn markdown_layout(margin: &Margin, options: LayoutOptions) -> MarkdownLayout<'_> {
    MarkdownLayout {
        margin,
        width: options.width,
        theme: options.theme,
    }
}

/// A block as plain text, for the clipboard.
pub(in crate::ui::tui) fn block_text(body: &BlockBody) -> String {
    let text = match body {
        BlockBody::Text(block) => block.text.clone(),
        BlockBody::Tool(tool) => {
            let input = input_lines(&tool.input).join("\n");
            let output = tool.output.text();
            format!("{} {}\n{input}\n{output}", tool.name, tool.argument)
        }
        BlockBody::Gate(gate) => format!("{}\n{}", gate.command, gate.output.text()),
        BlockBody::Note(note) => note.text.clone(),
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

fn text_margin(block: &TextBlock, indent: usize, theme: Theme) -> (Margin, Style) {
    let (mark, style) = match block.tag {
        Tag::Ai => ("●", theme.tone(Tone::Strong)),
        Tag::Think => ("┊", theme.thinking()),
        Tag::Sys => ("·", theme.tone(Tone::Faint)),
        Tag::Tool => ("·", theme.tone(Tone::Faint)),
        Tag::Prompt => ("❯", theme.tone(Tone::Faint)),
        Tag::User => ("❯", theme.tone(Tone::Strong)),
    };
    let margin = margin(mark, style, indent);
    let margin = if block.continued {
        margin.continuation()
    } else {
        margin
    };
    (margin, style)
}

fn text_rows(block: &TextBlock, indent: usize, options: LayoutOptions) -> BlockLayout {
    let text = clean(&block.text);
    let (margin, style) = text_margin(block, indent, options.theme);
    match block.tag {
        Tag::Think if options.thinking == Thinking::Hidden => Vec::new().into(),
        Tag::Think => {
            let bar = Margin {
                rest: margin.first.clone(),
                first: margin.first,
            };
            let rows = plain_rows(text.trim(), &bar, style, options.width);
            match options.thinking {
                Thinking::Full => rows.into(),
                Thinking::Brief | Thinking::Hidden => truncate(rows, BRIEF_ROWS, options).into(),
            }
        }
        Tag::Ai | Tag::User => {
            let mut rows = Vec::new();
            let checkpoint =
                markdown_layout(&margin, options).extend(&text, &mut rows, LayoutCheckpoint::default());
            BlockLayout { rows, checkpoint }
        }
        Tag::Sys | Tag::Tool | Tag::Prompt => {
            let faint = options.theme.tone(Tone::Faint);
            let rows = plain_rows(text.trim_end(), &margin, faint, options.width);
            truncate(rows, NOTE_ROWS, options).into()
        }
    }
}

fn plain_rows(text: &str, margin: &Margin, style: Style, width: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let margin = if rows.is_empty() {
            margin.clone()
        } else {
            margin.continuation()
        };
        rows.extend(wrap(
            &[(line.to_owned(), style)],
            &margin,
            width,
            LineBreak::Words,
        ));
    }
    into_rows(rows)
}

/// Truncates the rows of a folded block and adds the number of hidden rows.
fn truncate(mut rows: Vec<Row>, limit: usize, options: LayoutOptions) -> Vec<Row> {
    if options.fold == Fold::Closed && rows.len() > limit + 1 {
        let hidden = units::count((rows.len() - limit) as u64, "more line");
        rows.truncate(limit);
        rows.push(faint(format!("   … {hidden}"), options.theme));
    }
    rows
}

fn tool_rows(tool: &ToolCall, indent: usize, options: LayoutOptions) -> Vec<Row> {
    let theme = options.theme;
    let (mark, tone, word) = match tool.state {
        ToolState::Running => ("◌", Tone::Accent, None),
        ToolState::Unfinished => ("?", Tone::Warning, Some("unfinished".to_owned())),
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
    let mut head = Row::from(headline(&margin, &title, &figures.join(" · "), options));
    head.live = (tool.state == ToolState::Running).then_some(tool.started);
    let mut rows = vec![head];
    let failed = matches!(
        tool.state,
        ToolState::Ended {
            status: ToolStatus::Fail,
            ..
        }
    );
    match options.fold {
        Fold::Open => {
            rows.extend(input_rows(&tool.input, indent, options));
            rows.extend(output_rows(&tool.output.text(), Style::new(), indent, options));
        }
        Fold::Closed if failed => {
            rows.extend(last_lines(&tool.output, FAILURE_ROWS, indent, options));
        }
        Fold::Closed => {}
    }
    rows
}

fn gate_rows(gate: &GateBlock, indent: usize, options: LayoutOptions) -> Vec<Row> {
    let theme = options.theme;
    let (mark, tone, figures) = match gate.end {
        None => ("◌", Tone::Accent, String::new()),
        Some((result, took)) => {
            let why = gate_failure(result)
                .map(|why| format!("{why} · "))
                .unwrap_or_default();
            let (mark, tone) = match result.passed() {
                true => ("✓", Tone::Good),
                false => ("✗", Tone::Bad),
            };
            (mark, tone, format!("{why}{}", units::duration(took)))
        }
    };
    let title = [
        Span::styled(format!("gate {}", gate.name), theme.tone(Tone::Strong)),
        Span::raw(match gate.command == gate.name {
            // A gate of the command line has no other name than its command.
            true => String::new(),
            false => format!("  {}", gate.command),
        }),
    ];
    let margin = margin(mark, theme.tone(tone), indent);
    let mut head = Row::from(headline(&margin, &title, &figures, options));
    head.live = gate.end.is_none().then_some(gate.started);
    let mut rows = vec![head];
    match (options.fold, tone) {
        (Fold::Open, _) => rows.extend(output_rows(&gate.output.text(), Style::new(), indent, options)),
        (Fold::Closed, Tone::Bad) => rows.extend(last_lines(&gate.output, GATE_ROWS, indent, options)),
        (Fold::Closed, _) => {}
    }
    rows
}

/// A row with a left-aligned title and right-aligned figures.
fn headline(
    margin: &Margin,
    title: &[Span<'static>],
    figures: &str,
    options: LayoutOptions,
) -> Line<'static> {
    let reserved = margin.columns()
        + if figures.is_empty() {
            1
        } else {
            figures.chars().count() + 2
        };
    let mut spans = margin.first.clone();
    let left = clip(title, options.width.saturating_sub(reserved));
    let used: usize = margin.columns() + left.iter().map(Span::width).sum::<usize>();
    spans.extend(left);
    if !figures.is_empty() {
        let gap = options.width.saturating_sub(used + figures.chars().count());
        spans.push(Span::raw(" ".repeat(gap)));
        spans.push(Span::styled(figures.to_owned(), options.theme.tone(Tone::Faint)));
    }
    Line::from(spans)
}

/// Clips spans to a width. Clipped text ends with `…`.
pub(in crate::ui::tui) fn clip(spans: &[Span<'static>], width: usize) -> Vec<Span<'static>> {
    let mut left = width;
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

/// Output below a headline, with a bar on its left.
fn output_rows(text: &str, style: Style, indent: usize, options: LayoutOptions) -> Vec<Row> {
    let text = clean(text);
    let text = text.trim_end();
    if text.is_empty() {
        return Vec::new();
    }
    let bar = Span::styled("│ ", options.theme.tone(Tone::Faint));
    let margin = Margin::default().with(
        Span::raw(" ".repeat(indent + 2)),
        Span::raw(" ".repeat(indent + 2)),
    );
    let margin = margin.with(bar.clone(), bar);
    let rows = text.split('\n').flat_map(|line| {
        wrap(
            &[(line.to_owned(), style)],
            &margin,
            options.width,
            LineBreak::Anywhere,
        )
    });
    into_rows(rows.collect())
}

/// The last lines of an output, at most `limit` rows, and the number of lines above them.
fn last_lines(output: &OutputExcerpt, limit: usize, indent: usize, options: LayoutOptions) -> Vec<Row> {
    let text = output.text();
    let mut shown: Vec<Vec<Row>> = Vec::new();
    let mut count = 0;
    let mut rest = text.trim_end();
    let blank = text[rest.len()..].matches('\n').count().saturating_sub(1) as u64;
    while !rest.is_empty() {
        let start = rest.rfind('\n').map_or(0, |at| at + 1);
        let rows = output_rows(&rest[start..], Style::new(), indent, options);
        // A blank line is a row too.
        let rows = if rows.is_empty() {
            vec![bar_row(indent, options)]
        } else {
            rows
        };
        count += rows.len();
        if count > limit && !shown.is_empty() {
            break;
        }
        shown.push(rows.into_iter().take(limit).collect());
        rest = rest[..start].strip_suffix('\n').unwrap_or(&rest[..start]);
    }
    let hidden = output.lines().saturating_sub(shown.len() as u64 + blank);
    let mut rows: Vec<Row> = shown.into_iter().rev().flatten().collect();
    if hidden > 0 && !rows.is_empty() {
        let above = units::count(hidden, "line");
        rows.insert(0, faint(format!("   │ … {above} above"), options.theme));
    }
    rows
}

fn bar_row(indent: usize, options: LayoutOptions) -> Row {
    faint(format!("{}│", " ".repeat(indent + 2)), options.theme)
}

/// The input of a tool call; a replacement of text as a diff.
fn input_rows(input: &str, indent: usize, options: LayoutOptions) -> Vec<Row> {
    let theme = options.theme;
    let Some((others, old, new)) = replacement(input) else {
        let input = input_lines(input).join("\n");
        return output_rows(&input, theme.tone(Tone::Faint), indent, options);
    };
    let mut rows = output_rows(&others.join("\n"), theme.tone(Tone::Faint), indent, options);
    for (mark, text, tone) in [("-", old, Tone::Bad), ("+", new, Tone::Good)] {
        let lines: Vec<String> = text.lines().map(|line| format!("{mark} {line}")).collect();
        rows.extend(output_rows(
            &lines.join("\n"),
            theme.diff_line(tone),
            indent,
            options,
        ));
    }
    rows
}

/// The other fields, the old and the new text of a call that replaces text in a file.
fn replacement(input: &str) -> Option<(Vec<String>, String, String)> {
    let json: serde_json::Value = serde_json::from_str(input).ok()?;
    let text = |keys: [&str; 2]| {
        keys.iter()
            .find_map(|key| json.get(*key)?.as_str().map(str::to_owned))
    };
    let (old, new) = (text(["old_string", "oldText"])?, text(["new_string", "newText"])?);
    let is_text = |line: &String| {
        ["old_string:", "oldText:", "new_string:", "newText:"]
            .iter()
            .any(|key| line.starts_with(key))
    };
    let others = input_lines(input)
        .into_iter()
        .filter(|line| !is_text(line))
        .collect();
    Some((others, old, new))
}

/// The fields of a tool's input, one or more lines each.
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
