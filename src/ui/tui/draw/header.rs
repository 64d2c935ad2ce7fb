//! Draws the two header lines and the tab bar.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{DrawContext, both_ends, spinner};
use crate::event::Usage;
use crate::ui::plain::one_line;
use crate::ui::tui::document::Scroll;
use crate::ui::tui::model::{RunActivity, TuiState};
use crate::ui::tui::tab::Tab;
use crate::ui::tui::view::View;
use crate::ui::{Tone, run_verdict, units};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, context: &DrawContext<'_>, view: &View) {
    let first = Rect { height: 1, ..area };
    let second = Rect {
        y: area.y + 1,
        ..first
    };
    frame.render_widget(
        both_ends(
            &agent_and_run(context, view),
            activity(context, view),
            first.width,
        ),
        first,
    );
    frame.render_widget(
        both_ends(&iteration(context, view), usage(context, view), second.width),
        second,
    );
}

fn agent_and_run(context: &DrawContext<'_>, view: &View) -> Vec<Span<'static>> {
    let mut spans = vec![Span::styled(" ralph ", view.theme.highlighted()), Span::raw("  ")];
    let Some(header) = &context.state.header else {
        return spans;
    };
    let newest = context.state.entries.last();
    let agent = newest.and_then(|entry| entry.agent.as_ref());
    spans.push(Span::styled(
        one_line(agent.unwrap_or(&header.agent), 40).0,
        view.theme.tone(Tone::Strong),
    ));
    let model = newest.and_then(|entry| entry.model.clone());
    let hat = newest
        .and_then(|entry| entry.hat.clone())
        .map(|hat| format!("hat {hat}"));
    let version = header.agent_version.clone().filter(|_| agent.is_none());
    for detail in [hat, model.or(version)].into_iter().flatten() {
        spans.push(Span::raw(format!(" · {}", one_line(&detail, 40).0)));
    }
    spans.push(Span::styled(
        format!("   {}", one_line(&header.run_id, 60).0),
        view.theme.tone(Tone::Faint),
    ));
    spans
}

/// The current activity and its duration.
fn activity(context: &DrawContext<'_>, view: &View) -> Vec<Span<'static>> {
    let (state, now) = (context.state, context.now);
    let clock = |since: Timestamp| units::countdown(units::since(since, now));
    let spinner = spinner(now);
    let (mark, tone, text) = match &state.activity {
        RunActivity::Starting => (spinner, Tone::Accent, "starting".to_owned()),
        RunActivity::Working { since } => {
            let tool = state
                .transcript
                .running_tool()
                .map(|tool| format!(" · {}", one_line(&tool.name, 24).0));
            let pausing = if state.pausing { ", then pause" } else { "" };
            (
                spinner,
                Tone::Accent,
                format!("working{} {}{pausing}", tool.unwrap_or_default(), clock(*since)),
            )
        }
        RunActivity::Gate { name, since } => (
            spinner,
            Tone::Accent,
            format!("gate {} {}", one_line(name, 24).0, clock(*since)),
        ),
        RunActivity::Waiting { why, until } => {
            let left = until.map(|until| format!(" {}", units::countdown(units::since(now, until))));
            let text = format!("waiting{} · {why}", left.unwrap_or_default());
            ("◷", Tone::Warning, text)
        }
        RunActivity::Asked { since } => (
            "?",
            Tone::Warning,
            format!("the agent waits for your answer {} (m: write it)", clock(*since)),
        ),
        RunActivity::Paused { since } => ("‖", Tone::Warning, format!("paused {}", clock(*since))),
        RunActivity::AwaitingConfirmation { since } => {
            ("?", Tone::Warning, format!("continue? {}", clock(*since)))
        }
        RunActivity::Stopping { since } => (spinner, Tone::Warning, format!("stopping {}", clock(*since))),
        RunActivity::Ended { outcome, .. } => {
            let verdict = run_verdict(outcome, &state.transcript.passed_gates);
            (verdict.mark, verdict.tone, one_line(&verdict.sentence, 60).0)
        }
        RunActivity::Died => ("✗", Tone::Bad, "ralph died (process gone)".to_owned()),
    };
    vec![
        Span::styled(mark, view.theme.tone(tone)),
        Span::styled(format!(" {text} "), view.theme.tone(Tone::Strong)),
    ]
}

fn iteration(context: &DrawContext<'_>, view: &View) -> Vec<Span<'static>> {
    let state = context.state;
    let newest = state.entries.last().map(|entry| entry.id);
    let number = newest.map_or(0, |id| id.iteration);
    let max = state
        .header
        .as_ref()
        .map(|header| format!("/{}", header.max_iterations));
    let mut text = format!(" iteration {number}{}", max.unwrap_or_default());
    if let Some(id) = newest.filter(|id| id.attempt > 1) {
        text += &format!(" · attempt {}", id.attempt);
    }
    text += &format!(" · {}", units::countdown(elapsed(state, context.now)));
    let mut spans = vec![Span::raw(text)];
    if let Some(entry) = context
        .entry(view)
        .filter(|_| view.entry.is_some() && view.tab.is_per_iteration())
    {
        spans.push(Span::styled(
            format!("  viewing {} ", entry.id.iteration),
            view.theme.highlighted(),
        ));
    }
    spans
}

fn elapsed(state: &TuiState, now: Timestamp) -> std::time::Duration {
    match &state.activity {
        RunActivity::Ended { took, .. } => *took,
        RunActivity::Died => state.events.back().map_or(std::time::Duration::ZERO, |last| {
            units::since(state.started, last.at)
        }),
        _ if state.header.is_none() => std::time::Duration::ZERO,
        _ => units::since(state.started, now),
    }
}

fn usage(context: &DrawContext<'_>, view: &View) -> Vec<Span<'static>> {
    let used = context.state.used();
    let tokens = used.tokens().map_or("no tokens yet".to_owned(), |tokens| {
        format!("{} tokens", units::tokens(tokens))
    });
    let mut spans = vec![Span::raw(tokens)];
    let budget = context
        .state
        .header
        .as_ref()
        .and_then(|header| header.max_cost_usd);
    if let Some(cost) = cost(&used, budget) {
        let share = budget.map_or(0.0, |budget| {
            used.cost_usd.unwrap_or_default().get() / budget.max(f64::MIN_POSITIVE)
        });
        let tone = match share {
            share if share >= 0.9 => Tone::Bad,
            share if share >= 0.7 => Tone::Warning,
            _ => Tone::Plain,
        };
        spans.push(Span::raw(" · "));
        spans.push(Span::styled(cost, view.theme.tone(tone)));
    }
    spans.push(Span::raw(" "));
    spans
}

fn cost(used: &Usage, budget: Option<f64>) -> Option<String> {
    match (used.cost_usd.map(units::dollars), budget.map(units::dollars)) {
        (None, None) => None,
        (None, Some(budget)) => Some(format!("cost not reported yet · budget {budget}")),
        (Some(cost), None) => Some(cost),
        (Some(cost), Some(budget)) => Some(format!("{cost} of {budget}")),
    }
}

pub(super) fn tabs(frame: &mut Frame<'_>, area: Rect, context: &DrawContext<'_>, view: &View) {
    let mut spans = vec![Span::raw(" ")];
    let shown = view.visible_tabs(context.state, context.files);
    let names = |style: TabNames| -> Vec<String> {
        let name = |tab: &Tab| tab_name(*tab, style, context, view);
        shown.iter().map(name).collect()
    };
    let available = usize::from(area.width).saturating_sub(14);
    let fits =
        |names: &Vec<String>| names.iter().map(|name| name.chars().count()).sum::<usize>() <= available;
    let styles = [TabNames::Counts, TabNames::Full, TabNames::Short];
    let names = styles
        .map(names)
        .into_iter()
        .find(fits)
        .unwrap_or_else(|| names(TabNames::Short));
    for (tab, name) in shown.into_iter().zip(names) {
        let style = if tab == view.tab {
            view.theme.highlighted()
        } else {
            view.theme.tone(Tone::Plain)
        };
        spans.push(Span::styled(name, style));
    }
    let line: Line<'_> = both_ends(&spans, position(context, view), area.width);
    frame.render_widget(line, area);
}

/// How the tabs are named, depending on the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TabNames {
    Counts,
    Full,
    Short,
}

fn tab_name(tab: Tab, names: TabNames, context: &DrawContext<'_>, view: &View) -> String {
    let count = tab.count(view, context.state, context.files).unwrap_or(0);
    match names {
        TabNames::Counts if count > 0 => format!(" {} {count} ", tab.name()),
        TabNames::Counts | TabNames::Full => format!(" {} ", tab.name()),
        TabNames::Short if tab == view.tab => format!(" {} ", tab.name()),
        TabNames::Short => format!(" {} ", &tab.name()[..4]),
    }
}

/// The scroll position in the document.
fn position(context: &DrawContext<'_>, view: &View) -> Vec<Span<'static>> {
    let total = view.document.total();
    let top = view.document.top(view.scroll(), view.height);
    let last = total.saturating_sub(view.height);
    let live = view.tab == Tab::Transcript && view.entry.is_none() && !context.state.is_over();
    let text = match view.scroll() {
        _ if view.tab == Tab::Terminal => String::new(),
        Scroll::End if live => "following ▾ ".to_owned(),
        _ if last == 0 => String::new(),
        _ => format!("{} % ", top * 100 / last),
    };
    vec![Span::styled(text, view.theme.tone(Tone::Faint))]
}
