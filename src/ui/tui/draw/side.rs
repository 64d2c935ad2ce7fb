//! Draws the side list: iterations, tokens per iteration, and the agent's plan.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{DrawContext, spinner};
use crate::event::{PlanItem, PlanStatus};
use crate::ui::plain::one_line;
use crate::ui::tui::model::AttemptEntry;
use crate::ui::tui::text::clip;
use crate::ui::tui::view::View;
use crate::ui::{Tone, units};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, context: &DrawContext<'_>, view: &View) {
    let faint = view.theme.tone(Tone::Faint);
    for y in area.top()..area.bottom() {
        frame.buffer_mut().set_string(area.x, y, "│", faint);
    }
    let inner = Rect {
        x: area.x + 2,
        width: area.width.saturating_sub(3),
        ..area
    };
    let width = usize::from(inner.width);
    let plan = plan(
        &context.transcript(view).plan,
        width,
        usize::from(inner.height) / 3,
        view,
    );
    let spark = sparkline(&context.state.entries, width, view);
    let below = plan.len() + spark.len();
    let available = usize::from(inner.height).saturating_sub(below + 1);
    let mut lines = vec![Line::styled("iterations", faint)];
    lines.extend(entries(context, view, width, available));
    lines.extend(spark);
    lines.extend(plan);
    for (line, y) in lines.iter().zip(inner.top()..inner.bottom()) {
        frame.buffer_mut().set_line(inner.x, y, line, inner.width);
    }
}

/// The iterations, newest first, scrolled so that the displayed one is visible.
fn entries(context: &DrawContext<'_>, view: &View, width: usize, height: usize) -> Vec<Line<'static>> {
    let entries = &context.state.entries;
    let selected = view.entry_index(context.state).unwrap_or(0);
    let from_top = entries.len().saturating_sub(selected + 1);
    let skip = (from_top + 1).saturating_sub(height);
    let newest_first = entries.iter().enumerate().rev().skip(skip).take(height);
    let lines = newest_first.map(|(index, entry)| {
        let style = if index == selected {
            view.theme.tone(Tone::Strong)
        } else {
            view.theme.tone(Tone::Plain)
        };
        entry_line(entry, index == selected, context, view, width).patch_style(style)
    });
    lines.collect()
}

fn entry_line(
    entry: &AttemptEntry,
    selected: bool,
    context: &DrawContext<'_>,
    view: &View,
    width: usize,
) -> Line<'static> {
    let (mark, tone, took) = match &entry.end {
        Some(end) => (end.mark, end.tone, units::duration(end.took)),
        None if context.state.is_over() => ("?", Tone::Warning, String::new()),
        None => (
            spinner(context.now),
            Tone::Accent,
            units::countdown(units::since(entry.started, context.now)),
        ),
    };
    let attempt = if entry.id.attempt > 1 {
        format!(".{}", entry.id.attempt)
    } else {
        String::new()
    };
    let cost = entry.usage.cost_usd.map(units::dollars);
    let tokens = entry.usage.tokens().map(units::tokens);
    let figure = cost.or(tokens).unwrap_or_default();
    let name = format!("{}{attempt}", entry.id.iteration);
    let hat = entry
        .hat
        .as_ref()
        .map(|hat| one_line(hat, 10).0)
        .unwrap_or_default();
    let left = [
        Span::styled(if selected { "▌" } else { " " }, view.theme.tone(Tone::Accent)),
        Span::styled(mark, view.theme.tone(tone)),
        Span::raw(format!(" {name:<5} {hat}")),
    ];
    let right = format!("{took:>7} {figure:>8}");
    let used: usize = left.iter().map(Span::width).sum();
    let mut spans = clip(&left, width.saturating_sub(right.len()));
    spans.push(Span::raw(" ".repeat(width.saturating_sub(used + right.len()))));
    spans.push(Span::raw(right));
    Line::from(spans)
}

/// Tokens per iteration as a sparkline.
fn sparkline(entries: &[AttemptEntry], width: usize, view: &View) -> Vec<Line<'static>> {
    const HEIGHTS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let shown = &entries[entries.len().saturating_sub(width)..];
    let tokens: Vec<u64> = shown
        .iter()
        .map(|entry| entry.usage.tokens().unwrap_or(0))
        .collect();
    let max = tokens.iter().copied().max().unwrap_or(0);
    if max == 0 || tokens.len() < 2 {
        return Vec::new();
    }
    let height = |tokens: &u64| {
        let index = tokens.saturating_mul(7) / max;
        HEIGHTS[usize::try_from(index).unwrap_or(0).min(7)]
    };
    let max = units::tokens(max);
    let long = format!("tokens per iteration (max {max})");
    let heading = if long.len() <= width {
        long
    } else {
        format!("tokens (max {max})")
    };
    vec![
        Line::default(),
        Line::styled(heading, view.theme.tone(Tone::Faint)),
        Line::styled(
            tokens.iter().map(height).collect::<String>(),
            view.theme.tone(Tone::Accent),
        ),
    ]
}

fn plan(items: &[PlanItem], width: usize, height: usize, view: &View) -> Vec<Line<'static>> {
    if items.is_empty() || height < 3 {
        return Vec::new();
    }
    let done = items
        .iter()
        .filter(|item| item.status == PlanStatus::Done)
        .count();
    let heading = format!("plan ({done} of {} done)", items.len());
    let mut lines = vec![
        Line::default(),
        Line::styled(heading, view.theme.tone(Tone::Faint)),
    ];
    let first = done.saturating_sub(1).min(items.len().saturating_sub(height - 2));
    for item in items.iter().skip(first).take(height - 2) {
        let (mark, tone) = match item.status {
            PlanStatus::Done => ("✓", Tone::Good),
            PlanStatus::Active => ("▸", Tone::Accent),
            PlanStatus::Pending => ("·", Tone::Faint),
        };
        let text = one_line(&item.text, width.saturating_sub(3)).0;
        lines.push(Line::from(vec![
            Span::styled(mark, view.theme.tone(tone)),
            Span::raw(format!(" {text}")),
        ]));
    }
    lines
}
