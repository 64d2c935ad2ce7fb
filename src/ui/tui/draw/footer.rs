//! The line at the bottom: the keys that work now, or what is being typed, or what was just done.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::{Scene, both_ends};
use crate::ui::Tone;
use crate::ui::tui::commands::UserCommandKind;
use crate::ui::tui::model::Activity;
use crate::ui::tui::view::{Overlay, Role, Tab, View};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>, view: &View) {
    let line = match &view.overlay {
        Overlay::Search(text) => return input(frame, area, " search: ", text, view),
        Overlay::Message(text) => return input(frame, area, " for the next prompt: ", text, view),
        Overlay::AskStop => Line::styled(
            " Stop the run?  y stop the agent and end the run   any other key: go on".to_owned(),
            view.theme.tone(Tone::Warning),
        ),
        Overlay::Help(_) => Line::styled(
            " ↑↓ more   any other key: back".to_owned(),
            view.theme.tone(Tone::Faint),
        ),
        Overlay::None => match &view.flash {
            Some((text, _)) => Line::styled(format!(" {text}"), view.theme.tone(Tone::Strong)),
            None => keys_line(area.width, scene, view),
        },
    };
    frame.render_widget(line, area);
}

fn keys_line(width: u16, scene: &Scene<'_>, view: &View) -> Line<'static> {
    let mut left = vec![Span::raw(" ")];
    for (key, word) in keys(scene, view) {
        left.push(Span::styled(key, view.theme.tone(Tone::Strong)));
        left.push(Span::styled(format!(" {word}  "), view.theme.tone(Tone::Faint)));
    }
    let leave = if view.role == Role::Viewer || scene.state.is_over() {
        "leave"
    } else {
        "stop"
    };
    let right = vec![
        Span::styled("?", view.theme.tone(Tone::Strong)),
        Span::styled(" help  ", view.theme.tone(Tone::Faint)),
        Span::styled("q", view.theme.tone(Tone::Strong)),
        Span::styled(format!(" {leave} "), view.theme.tone(Tone::Faint)),
    ];
    let room = usize::from(width).saturating_sub(right.iter().map(Span::width).sum::<usize>() + 2);
    // Whole keys only; the most useful ones come first.
    let mut used = 0;
    let mut fitting = 0;
    for (index, span) in left.iter().enumerate() {
        used += span.width();
        if index % 2 == 0 && used <= room {
            fitting = index + 1;
        }
    }
    left.truncate(fitting);
    both_ends(&left, right, width)
}

/// The keys that do something now.
fn keys(scene: &Scene<'_>, view: &View) -> Vec<(&'static str, &'static str)> {
    let state = scene.state;
    let can = |kind| view.powers.has(kind) && !state.is_over();
    let waiting = matches!(state.activity, Activity::Waiting { .. });
    let mut keys = Vec::new();
    if let Activity::Asking { .. } = state.activity {
        if can(UserCommandKind::GoOn) {
            keys.push(("c", "go on"));
        }
        if can(UserCommandKind::GoOnWithoutAsking) {
            keys.push(("a", "go on without asking"));
        }
    }
    if can(UserCommandKind::Resume) && matches!(state.activity, Activity::Paused { .. }) {
        keys.push(("p", "go on"));
    }
    if waiting && can(UserCommandKind::Wake) {
        keys.push(("w", "wake now"));
    }
    if !view.query.is_empty() {
        keys.push(("n N", "next, previous"));
    }
    keys.push(("Tab", "view"));
    match view.tab {
        Tab::Transcript => keys.extend([("j k", "choose"), ("Enter", "unfold")]),
        Tab::Tools => keys.extend([("↑↓", "choose"), ("Enter", "show"), ("o", "order")]),
        Tab::Terminal => keys.extend([("< >", "sideways")]),
        Tab::Events | Tab::Prompt | Tab::Usage => {}
    }
    if state.entries.len() > 1 {
        keys.push(("←→", "iteration"));
    }
    if can(UserCommandKind::Pause) && !state.pausing {
        keys.push(("p", "pause"));
    }
    if can(UserCommandKind::Resume) && state.pausing && !matches!(state.activity, Activity::Paused { .. }) {
        keys.push(("p", "no pause"));
    }
    if can(UserCommandKind::StopIteration) && state.is_working() {
        keys.push(("s", "skip"));
    }
    if can(UserCommandKind::Tell) {
        keys.push(("m", "message"));
    }
    keys.push(("/", "search"));
    if view.tab == Tab::Transcript {
        keys.extend([("t", "thinking"), ("o", "outputs")]);
        if view.selected.is_some() {
            keys.push(("y", "copy"));
        }
    }
    keys.push(("e", "export"));
    keys
}

fn input(frame: &mut Frame<'_>, area: Rect, label: &'static str, text: &str, view: &View) {
    let room = usize::from(area.width).saturating_sub(label.width() + 2);
    // The end of what is typed is what one wants to see.
    let mut shown = crate::ui::clean::clean(text).into_owned();
    while shown.width() > room {
        shown.remove(0);
    }
    let column = area.x + u16::try_from(label.width() + shown.width()).unwrap_or(0);
    let line = Line::from(vec![
        Span::styled(label, view.theme.tone(Tone::Accent)),
        Span::raw(shown),
    ]);
    frame.render_widget(line, area);
    frame.set_cursor_position((column.min(area.right().saturating_sub(1)), area.y));
}
