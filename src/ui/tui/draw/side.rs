//! Draws the right column: the list of iterations, and below it a page such as the changes or the plan.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{DrawContext, body, spinner};
use crate::ui::plain::one_line;
use crate::ui::tui::model::AttemptEntry;
use crate::ui::tui::tab::Tab;
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
    let pane = view.pane_tab(context.state, context.files);
    let available = match pane {
        Some(_) => usize::from(inner.height) / 3,
        None => usize::from(inner.height).saturating_sub(1),
    };
    let mut lines = vec![Line::styled(
        columns_heading(width, &context.state.entries),
        faint,
    )];
    lines.extend(entries(context, view, width, available.max(1)));
    lines.extend(sparkline(&context.state.entries, width, view));
    for (line, y) in lines.iter().zip(inner.top()..inner.bottom()) {
        frame.buffer_mut().set_line(inner.x, y, line, inner.width);
    }
    let used = u16::try_from(lines.len())
        .unwrap_or(inner.height)
        .min(inner.height);
    let below = Rect {
        y: inner.y + used,
        height: inner.height - used,
        ..inner
    };
    if let Some(pane) = pane.filter(|_| below.height >= 3) {
        frame.buffer_mut().set_string(area.x, below.y, "├", faint);
        frame
            .buffer_mut()
            .set_string(area.x + 1, below.y, "─".repeat(width + 2), faint);
        draw_pane(frame, below, pane, context, view);
    }
}

/// A page with the names of all pages above it.
fn draw_pane(frame: &mut Frame<'_>, area: Rect, pane: Tab, context: &DrawContext<'_>, view: &View) {
    let mut names = Vec::new();
    for tab in view.pane_tabs(context.state, context.files) {
        let style = match tab == pane {
            true => view.theme.highlighted(),
            false => view.theme.tone(Tone::Faint),
        };
        let count = tab
            .count(view, context.state, context.files)
            .filter(|count| *count > 0);
        let count = count.map(|count| format!(" {count}")).unwrap_or_default();
        names.push(Span::styled(format!(" {}{count} ", tab.name()), style));
    }
    let line = Line::from(clip(&names, usize::from(area.width)));
    frame.buffer_mut().set_line(area.x, area.y + 1, &line, area.width);
    let rows = usize::from(area.height.saturating_sub(2));
    let document = body::page(pane, context, view, usize::from(area.width));
    // Tools and events are added at the end; the rest is read from the start.
    let top = match pane {
        Tab::Tools => document.total().saturating_sub(rows),
        _ => 0,
    };
    for ((_, row), y) in document.rows(top, rows).zip(area.y + 2..area.bottom()) {
        let shown = body::live(row, context.now, area.width, view);
        frame.buffer_mut().set_line(area.x, y, &shown, area.width);
    }
    if top == 0 && document.total() > rows {
        let more = format!(" {} more (Tab) ", document.total() - rows);
        let x = area
            .right()
            .saturating_sub(u16::try_from(more.chars().count()).unwrap_or(0));
        let style = view.theme.tone(Tone::Faint);
        frame
            .buffer_mut()
            .set_string(x, area.bottom().saturating_sub(1), more, style);
    }
}

/// Columns of the figures at the right of the list.
const TIME_COLUMNS: usize = 7;
const CHANGE_COLUMNS: usize = 9;
const COST_COLUMNS: usize = 7;

/// The figures that fit: time; changes; cost.
fn figures(width: usize, time: &str, changes: &str, cost: &str) -> String {
    let mut text = format!("{time:>TIME_COLUMNS$}");
    if width >= 32 {
        text += &format!(" {changes:>CHANGE_COLUMNS$}");
    }
    if width >= 50 {
        text += &format!(" {cost:>COST_COLUMNS$}");
    }
    text
}

fn columns_heading(width: usize, entries: &[AttemptEntry]) -> String {
    let has_costs = entries.iter().any(|entry| entry.usage.cost_usd.is_some());
    let right = figures(width, "time", "lines", if has_costs { "cost" } else { "" });
    let left = "   iteration";
    let gap = width.saturating_sub(left.len() + right.chars().count());
    format!("{left}{}{right}", " ".repeat(gap))
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
    let reason = entry.end.as_ref().map(|end| end.reason.clone());
    let reason = reason.or_else(|| entry.hat.clone()).unwrap_or_default();
    let changes = entry.changes_label().unwrap_or_default();
    let cost = entry.usage.cost_usd.map(units::dollars).unwrap_or_default();
    let right = figures(width, &took, &changes, &cost);
    let right_columns = right.chars().count();
    // Clipping the whole line would join the spaces between the columns.
    let name = format!(" {:<3} ", entry.name());
    let room = width.saturating_sub(right_columns + name.len() + 3);
    let left = [
        Span::styled(if selected { "▌" } else { " " }, view.theme.tone(Tone::Accent)),
        Span::styled(mark, view.theme.tone(tone)),
        Span::raw(format!("{name}{}", one_line(&reason, room).0)),
    ];
    let mut spans = clip(&left, width.saturating_sub(right_columns + 1));
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::raw(" ".repeat(width.saturating_sub(used + right_columns))));
    spans.push(Span::raw(right));
    Line::from(spans)
}

/// Tokens per iteration as a sparkline.
fn sparkline(entries: &[AttemptEntry], width: usize, view: &View) -> Option<Line<'static>> {
    const HEIGHTS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let shown = &entries[entries.len().saturating_sub(width / 2)..];
    let tokens: Vec<u64> = shown
        .iter()
        .map(|entry| entry.usage.tokens().unwrap_or(0))
        .collect();
    let max = tokens.iter().copied().max().unwrap_or(0);
    if max == 0 || tokens.len() < 4 {
        return None;
    }
    let height = |tokens: &u64| {
        let index = tokens.saturating_mul(7) / max;
        HEIGHTS[usize::try_from(index).unwrap_or(0).min(7)]
    };
    Some(Line::from(vec![
        Span::styled(
            format!("   tokens (max {}) ", units::tokens(max)),
            view.theme.tone(Tone::Faint),
        ),
        Span::styled(
            tokens.iter().map(height).collect::<String>(),
            view.theme.tone(Tone::Accent),
        ),
    ]))
}
