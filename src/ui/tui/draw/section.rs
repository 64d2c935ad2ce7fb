//! The heading of an iteration in the transcript of the whole run.

use ratatui::text::{Line, Span};

use crate::ui::plain::one_line;
use crate::ui::tui::model::TuiState;
use crate::ui::tui::text::{Fold, Row, clip};
use crate::ui::tui::view::View;
use crate::ui::{Tone, units};

/// Columns that a running iteration needs for its clock.
const CLOCK_COLUMNS: usize = 9;

/// A row such as `▾ ✗ 1 · test failed: 3 ───── 1m12s · +12 −3`.
pub(in crate::ui::tui) fn section_heading(
    entry: usize,
    state: &TuiState,
    view: &View,
    width: usize,
) -> Vec<Row> {
    let theme = view.theme;
    let attempt = &state.entries[entry];
    let fold = view.section_fold(entry, state);
    let fold_mark = match fold {
        Fold::Closed => " ▸ ",
        Fold::Open => " ▾ ",
    };
    let (mark, tone, reason) = match &attempt.end {
        Some(end) => (end.mark, end.tone, end.reason.clone()),
        None if state.is_over() => ("?", Tone::Warning, "not ended".to_owned()),
        None => ("◌", Tone::Accent, "running".to_owned()),
    };
    let mut left = vec![
        Span::styled(fold_mark, theme.tone(Tone::Faint)),
        Span::styled(mark, theme.tone(tone)),
        Span::styled(format!(" iteration {}", attempt.name()), theme.tone(Tone::Strong)),
    ];
    let roles = [attempt.hat.as_deref(), attempt.agent.as_deref()];
    for role in roles.into_iter().flatten() {
        left.push(Span::raw(format!(" · {}", one_line(role, 24).0)));
    }
    left.push(Span::raw(" · "));
    left.push(Span::styled(one_line(&reason, 60).0, theme.tone(tone)));
    left.push(Span::raw(" "));
    let took = attempt.end.as_ref().map(|end| units::duration(end.took));
    let cost = attempt.usage.cost_usd.map(units::dollars);
    let figures: Vec<String> = [took, cost, attempt.changes_label()]
        .into_iter()
        .flatten()
        .collect();
    let figures = match figures.join(" · ") {
        text if text.is_empty() => text,
        text => format!(" {text}"),
    };
    let is_live = attempt.end.is_none() && !state.is_over();
    let clock = if is_live { CLOCK_COLUMNS } else { 0 };
    let right = figures.chars().count() + clock;
    let mut spans = clip(&left, width.saturating_sub(right));
    let used: usize = spans.iter().map(Span::width).sum();
    let rule = "─".repeat(width.saturating_sub(used + right));
    spans.push(Span::styled(rule, theme.tone(Tone::Faint)));
    spans.push(Span::styled(figures, theme.tone(Tone::Faint)));
    let mut row = Row::from(Line::from(spans));
    row.live = is_live.then_some(attempt.started);
    // Folded iterations form a list.
    let follows_folded = entry
        .checked_sub(1)
        .is_some_and(|before| view.section_fold(before, state) == Fold::Closed);
    match entry > 0 && !(follows_folded && fold == Fold::Closed) {
        true => vec![Row::default(), row],
        false => vec![row],
    }
}
