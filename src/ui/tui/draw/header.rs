//! The two lines at the top, and the names of the views.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Scene, both_ends, is_about_one, spinner};
use crate::event::Usage;
use crate::ui::plain::one_line;
use crate::ui::tui::document::Scroll;
use crate::ui::tui::model::{Activity, State};
use crate::ui::tui::view::{Tab, View};
use crate::ui::{Tone, describe, run_verdict, units};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>, view: &View) {
    let first = Rect { height: 1, ..area };
    let second = Rect {
        y: area.y + 1,
        ..first
    };
    frame.render_widget(
        both_ends(&who(scene, view), activity(scene, view), first.width),
        first,
    );
    frame.render_widget(
        both_ends(&where_to(scene, view), spent(scene, view), second.width),
        second,
    );
}

fn who(scene: &Scene<'_>, view: &View) -> Vec<Span<'static>> {
    let mut spans = vec![Span::styled(" ralph ", view.theme.chosen()), Span::raw("  ")];
    let Some(header) = &scene.state.header else {
        return spans;
    };
    spans.push(Span::styled(
        one_line(&header.agent, 40).0,
        view.theme.tone(Tone::Strong),
    ));
    let newest = scene.state.entries.last();
    let model = newest.and_then(|entry| entry.model.clone());
    let hat = newest
        .and_then(|entry| entry.hat.clone())
        .map(|hat| format!("hat {hat}"));
    let version = header.agent_version.clone();
    for detail in [hat, model.or(version)].into_iter().flatten() {
        spans.push(Span::raw(format!(" · {}", one_line(&detail, 40).0)));
    }
    spans.push(Span::styled(
        format!("   {}", one_line(&header.run_id, 60).0),
        view.theme.tone(Tone::Faint),
    ));
    spans
}

/// What the run does, and since when.
fn activity(scene: &Scene<'_>, view: &View) -> Vec<Span<'static>> {
    let (state, now) = (scene.state, scene.now);
    let clock = |since: Timestamp| units::countdown(units::since(since, now));
    let turning = spinner(now);
    let (mark, tone, text) = match &state.activity {
        Activity::Starting => (turning, Tone::Accent, "starting".to_owned()),
        Activity::Working { since } => {
            let tool = state
                .transcript
                .running_tool()
                .map(|tool| format!(" · {}", one_line(&tool.name, 24).0));
            let pausing = if state.pausing { ", then pause" } else { "" };
            (
                turning,
                Tone::Accent,
                format!("working{} {}{pausing}", tool.unwrap_or_default(), clock(*since)),
            )
        }
        Activity::Gate { name, since } => (
            turning,
            Tone::Accent,
            format!("gate {} {}", one_line(name, 24).0, clock(*since)),
        ),
        Activity::Waiting { why, until } => {
            let left = units::countdown(units::since(now, *until));
            (
                "◷",
                Tone::Warning,
                format!("waiting {left} · {}", describe::pause_words(*why)),
            )
        }
        Activity::Paused { since } => ("‖", Tone::Warning, format!("paused {}", clock(*since))),
        Activity::Asking { since } => ("?", Tone::Warning, format!("go on? {}", clock(*since))),
        Activity::Stopping { since } => (turning, Tone::Warning, format!("stopping {}", clock(*since))),
        Activity::Ended { outcome, .. } => {
            let verdict = run_verdict(outcome, &state.transcript.passed_gates);
            (verdict.mark, verdict.tone, one_line(&verdict.sentence, 60).0)
        }
        Activity::Lost => ("✗", Tone::Bad, "its process is gone without a word".to_owned()),
    };
    vec![
        Span::styled(mark, view.theme.tone(tone)),
        Span::styled(format!(" {text} "), view.theme.tone(Tone::Strong)),
    ]
}

fn where_to(scene: &Scene<'_>, view: &View) -> Vec<Span<'static>> {
    let state = scene.state;
    let newest = state.entries.last().map(|entry| entry.which);
    let number = newest.map_or(0, |which| which.iteration);
    let most = state
        .header
        .as_ref()
        .map(|header| format!("/{}", header.max_iterations));
    let mut text = format!(" iteration {number}{}", most.unwrap_or_default());
    if let Some(which) = newest.filter(|which| which.attempt > 1) {
        text += &format!(" · attempt {}", which.attempt);
    }
    text += &format!(" · {}", units::countdown(elapsed(state, scene.now)));
    let mut spans = vec![Span::raw(text)];
    if let Some(entry) = scene
        .entry(view)
        .filter(|_| view.entry.is_some() && is_about_one(view.tab))
    {
        spans.push(Span::styled(
            format!("  looking at {} ", entry.which.iteration),
            view.theme.chosen(),
        ));
    }
    spans
}

fn elapsed(state: &State, now: Timestamp) -> std::time::Duration {
    match &state.activity {
        Activity::Ended { took, .. } => *took,
        Activity::Lost => state.events.back().map_or(std::time::Duration::ZERO, |last| {
            units::since(state.started, last.at)
        }),
        _ if state.header.is_none() => std::time::Duration::ZERO,
        _ => units::since(state.started, now),
    }
}

fn spent(scene: &Scene<'_>, view: &View) -> Vec<Span<'static>> {
    let used = scene.state.used();
    let tokens = used.tokens().map_or("no tokens told".to_owned(), |tokens| {
        format!("{} tokens", units::tokens(tokens))
    });
    let mut spans = vec![Span::raw(tokens)];
    let budget = scene.state.header.as_ref().and_then(|header| header.max_cost_usd);
    if let Some(cost) = cost(&used, budget) {
        let share = budget.map_or(0.0, |budget| {
            used.cost_usd.unwrap_or(0.0) / budget.max(f64::MIN_POSITIVE)
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
    let of = budget.map(|budget| format!(" of {}", units::dollars(budget)));
    match (used.cost_usd, of) {
        (None, None) => None,
        (None, Some(of)) => Some(format!("cost not told{of}")),
        (Some(cost), of) => Some(format!("{}{}", units::dollars(cost), of.unwrap_or_default())),
    }
}

pub(super) fn tabs(frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>, view: &View) {
    let mut spans = vec![Span::raw(" ")];
    let narrow = area.width < 70;
    for tab in Tab::ALL {
        let count = match tab {
            Tab::Tools => scene.transcript(view).tool_calls,
            Tab::Transcript | Tab::Events | Tab::Prompt | Tab::Terminal | Tab::Usage => 0,
        };
        let name = if narrow && tab != view.tab {
            &tab.name()[..4]
        } else {
            tab.name()
        };
        let name = if count > 0 && !narrow {
            format!(" {name} {count} ")
        } else {
            format!(" {name} ")
        };
        let style = if tab == view.tab {
            view.theme.chosen()
        } else {
            view.theme.tone(Tone::Plain)
        };
        spans.push(Span::styled(name, style));
    }
    let line: Line<'_> = both_ends(&spans, place(scene, view), area.width);
    frame.render_widget(line, area);
}

/// Where in the document one is.
fn place(scene: &Scene<'_>, view: &View) -> Vec<Span<'static>> {
    let total = view.document.total();
    let top = view.document.top(view.scroll(), view.height);
    let last = total.saturating_sub(view.height);
    let live = view.tab == Tab::Transcript && view.entry.is_none() && !scene.state.is_over();
    let text = match view.scroll() {
        _ if view.tab == Tab::Terminal => String::new(),
        Scroll::End if live => "following ▾ ".to_owned(),
        _ if last == 0 => String::new(),
        _ => format!("{} % ", top * 100 / last),
    };
    vec![Span::styled(text, view.theme.tone(Tone::Faint))]
}
