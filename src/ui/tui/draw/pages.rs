//! Builds the documents of the tools, events, prompt and usage tabs.

use std::cmp::Reverse;
use std::rc::Rc;
use std::time::Duration;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::DrawContext;
use crate::event::{PlanStatus, ToolStatus};
use crate::ui::clean::clean;
use crate::ui::plain::one_line;
use crate::ui::tui::document::{Document, DocumentItem};
use crate::ui::tui::model::{ToolCall, ToolState, Transcript, TranscriptBlock, TuiState};
use crate::ui::tui::text::{
    Fold, LayoutOptions, LineBreak, Margin, Row, clip, lay_out, markdown, note_rows, wrap,
};
use crate::ui::tui::theme::Theme;
use crate::ui::tui::view::{ToolOrder, View};
use crate::ui::{Tone, units};

/// Narrower pages omit the less important columns.
const NARROW: usize = 60;
const MEDIUM: usize = 76;

fn item(id: u64, rows: Vec<Row>) -> Rc<DocumentItem> {
    Rc::new(DocumentItem { id, rows })
}

/// The first line of a transcript from which blocks were dropped.
pub(in crate::ui::tui) fn dropped_blocks_item(id: u64, count: u64, theme: Theme) -> Rc<DocumentItem> {
    let blocks = units::count(count, "earlier block");
    let text = format!("   … {blocks} omitted; see the journal for the full transcript");
    item(id, vec![Row::from(Line::styled(text, theme.tone(Tone::Faint)))])
}

pub(super) fn tools_heading() -> String {
    "   started      took   lines  tool".to_owned()
}

/// The tool calls of an iteration. Their start counts from the start of the iteration.
pub(super) fn tools(context: &DrawContext<'_>, view: &View, width: usize) -> Document {
    let transcript = context.transcript(view);
    let first = context.entry(view).map(|entry| entry.started);
    let mut tools: Vec<(&TranscriptBlock, &ToolCall)> = transcript.tools().collect();
    match view.order {
        ToolOrder::Started => {}
        ToolOrder::Longest => tools.sort_by_key(|(_, tool)| Reverse(took(tool))),
    }
    let row = |(block, tool): (&TranscriptBlock, &ToolCall)| {
        let (mark, tone) = match tool.state {
            ToolState::Running => ("◌", Tone::Accent),
            ToolState::Unfinished => ("?", Tone::Warning),
            ToolState::Ended { status, .. } => match status {
                ToolStatus::Ok => ("✓", Tone::Good),
                ToolStatus::Fail => ("✗", Tone::Bad),
                ToolStatus::Unknown => ("?", Tone::Warning),
            },
        };
        let start = first.map(|first| units::countdown(units::since(first, tool.started)));
        let took = took(tool).map(units::duration).unwrap_or_default();
        let lines = match tool.output.lines() {
            0 => String::new(),
            lines => units::grouped(lines),
        };
        let start = start.unwrap_or_default();
        let figures = match width < NARROW {
            true => format!(" {took:>7}  "),
            false => format!(" {start:>7}  {took:>8}  {lines:>6}  "),
        };
        let spans = [
            Span::raw(" "),
            Span::styled(mark, view.theme.tone(tone)),
            Span::raw(figures),
            Span::styled(tool.name.clone(), view.theme.tone(Tone::Accent)),
            Span::raw(format!("  {}", tool.argument)),
        ];
        let mut row = Row::from(Line::from(clip(&spans, width.saturating_sub(1))));
        row.live = (tool.state == ToolState::Running).then_some(tool.started);
        let mut rows = vec![row];
        rows.extend(failure_line(tool, width, view.theme));
        item(block.id, rows)
    };
    Document::new(tools.into_iter().map(row).collect())
}

/// The first line of a failed call's output.
fn failure_line(tool: &ToolCall, width: usize, theme: Theme) -> Option<Row> {
    let failed = matches!(
        tool.state,
        ToolState::Ended {
            status: ToolStatus::Fail,
            ..
        }
    );
    let text = tool.output.text();
    let first = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .filter(|_| failed)?;
    let indent = if width < NARROW {
        "     "
    } else {
        "                             "
    };
    let text = format!("{indent}{}", clean(first));
    let line = clip(
        &[Span::styled(text, theme.diff_line(Tone::Bad))],
        width.saturating_sub(1),
    );
    Some(Row::from(Line::from(line)))
}

/// The gates of an iteration with their results and the end of a failed one's output.
pub(super) fn gates(transcript: &Transcript, view: &View, width: usize) -> Document {
    let items = transcript.gates().map(|(block, _)| {
        let options = LayoutOptions {
            width,
            theme: view.theme,
            thinking: view.thinking,
            fold: Fold::Closed,
        };
        item(block.id, lay_out(block, options).rows)
    });
    Document::new(items.collect())
}

/// The steps of the agent's plan.
pub(super) fn plan(transcript: &Transcript, view: &View, width: usize) -> Document {
    let items = transcript.plan.iter().zip(1..).map(|(step, id)| {
        let (mark, tone, style) = match step.status {
            PlanStatus::Done => ("✓", Tone::Good, view.theme.tone(Tone::Faint)),
            PlanStatus::Active => ("▸", Tone::Accent, view.theme.tone(Tone::Strong)),
            PlanStatus::Pending => ("·", Tone::Faint, Style::new()),
        };
        let margin = Margin {
            first: vec![
                Span::raw(" "),
                Span::styled(mark, view.theme.tone(tone)),
                Span::raw(" "),
            ],
            rest: vec![Span::raw("   ")],
        };
        let text = clean(&step.text).replace('\n', " ");
        let lines = wrap(&[(text, style)], &margin, width, LineBreak::Words);
        item(id, lines.into_iter().map(Row::from).collect())
    });
    Document::new(items.collect())
}

fn took(tool: &ToolCall) -> Option<Duration> {
    match tool.state {
        ToolState::Ended { took, .. } => took,
        ToolState::Running | ToolState::Unfinished => None,
    }
}

pub(super) fn events(state: &TuiState, view: &View, width: usize) -> Document {
    let zone = &state.context.zone;
    let items = state.events.iter().map(|event| {
        let time = event.at.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string();
        let mut rows = note_rows(&event.note, 10, width, view.theme);
        if let Some(first) = rows.first_mut().and_then(|row| row.line.spans.first_mut()) {
            *first = Span::styled(format!(" {time} "), view.theme.tone(Tone::Faint));
        }
        item(event.id, rows)
    });
    Document::new(items.collect())
}

pub(super) fn prompt(text: Option<&str>, view: &View, width: usize) -> Document {
    let Some(text) = text else {
        return Document::default();
    };
    let blank = || vec![Span::raw("  ")];
    let margin = Margin {
        first: blank(),
        rest: blank(),
    };
    let rows = markdown(&clean(text), &margin, width, view.theme);
    Document::new(vec![item(1, rows.into_iter().map(Row::from).collect())])
}

pub(super) fn usage_heading(width: usize) -> String {
    if width < MEDIUM {
        "   iteration      time   tokens       cost".to_owned()
    } else {
        "   iteration      time   tokens       in   cached      out    think       cost".to_owned()
    }
}

pub(super) fn usage(state: &TuiState, view: &View, width: usize) -> Document {
    let max = state
        .entries
        .iter()
        .filter_map(|entry| entry.usage.tokens())
        .max()
        .unwrap_or(0);
    let figure = |count: Option<u64>| count.map(units::tokens).unwrap_or_else(|| "–".to_owned());
    let mut items: Vec<Rc<DocumentItem>> = Vec::new();
    for (index, entry) in state.entries.iter().enumerate() {
        let (mark, tone, took) = match &entry.end {
            Some(end) => (end.mark, end.tone, units::duration(end.took)),
            None => ("▸", Tone::Accent, "running".to_owned()),
        };
        let usage = &entry.usage;
        let attempt = if entry.id.attempt > 1 {
            format!(".{}", entry.id.attempt)
        } else {
            String::new()
        };
        let name = format!("{}{attempt}", entry.id.iteration);
        let cost = usage.cost_usd.map_or_else(|| "–".to_owned(), units::dollars);
        let mut text = format!(" {name:>9}  {took:>8} {:>8}", figure(usage.tokens()));
        if width >= MEDIUM {
            let parts = [
                usage.prompt_tokens,
                usage.cached_tokens,
                usage.completion_tokens,
                usage.reasoning_tokens,
            ];
            text += &parts.map(|part| format!(" {:>8}", figure(part))).concat();
        }
        text += &format!(" {cost:>10}  ");
        let bar_width = width.saturating_sub(text.chars().count() + 4).min(40);
        let bar = bar(usage.tokens().unwrap_or(0), max, bar_width);
        let spans = vec![
            Span::raw(" "),
            Span::styled(mark, view.theme.tone(tone)),
            Span::raw(text),
            Span::styled(bar, view.theme.tone(Tone::Accent)),
        ];
        items.push(item(index as u64 + 1, vec![Row::from(Line::from(spans))]));
    }
    items.extend(totals(state, view).map(|rows| item(u64::MAX, rows)));
    Document::new(items)
}

fn totals(state: &TuiState, view: &View) -> Option<Vec<Row>> {
    state.entries.first()?;
    let used = state.used();
    let line = |name: &str, value: String| {
        Row::from(Line::from(vec![
            Span::styled(format!("   {name:<10}"), view.theme.tone(Tone::Faint)),
            Span::styled(value, Style::new()),
        ]))
    };
    let mut rows = vec![Row::default()];
    if let Some(tokens) = used.tokens() {
        rows.push(line("tokens", units::grouped(tokens)));
    }
    let budget = state.header.as_ref().and_then(|header| header.max_cost_usd);
    match (used.cost_usd, budget) {
        (Some(cost), Some(budget)) => {
            let share = (cost.get() / budget.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and 1000"
            )]
            let filled = bar((share * 1000.0) as u64, 1000, 30);
            let text = format!("{} of {}  {filled}", units::dollars(cost), units::dollars(budget));
            rows.push(line("cost", text));
        }
        (Some(cost), None) => rows.push(line("cost", format!("{}, no budget set", units::dollars(cost)))),
        (None, _) => rows.push(line("cost", "not reported by this agent".to_owned())),
    }
    if let Some(model) = &used.model {
        rows.push(line("model", one_line(model, 60).0));
    }
    Some(rows)
}

/// A horizontal bar with a resolution of an eighth of a column.
fn bar(part: u64, whole: u64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = part
        .saturating_mul(width as u64 * 8)
        .checked_div(whole)
        .unwrap_or(0);
    let eighths = usize::try_from(eighths).unwrap_or(0).min(width * 8);
    let minimum = usize::from(part > 0 && eighths == 0);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[(eighths + minimum) % 8])
}
