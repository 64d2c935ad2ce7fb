//! Draws the bottom line: available keys, text input, or a short status message.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::{DrawContext, both_ends};
use crate::ui::Tone;
use crate::ui::tui::model::RunActivity;
use crate::ui::tui::view::{CommandAccess, Overlay, Role, Tab, View};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, context: &DrawContext<'_>, view: &View) {
    let line = match &view.overlay {
        Overlay::Search(text) => return input(frame, area, " search: ", text, view),
        Overlay::Message(text) => return input(frame, area, " message for the next prompt: ", text, view),
        Overlay::ConfirmStop => Line::styled(
            " Stop the run?  y: stop the agent and end the run   any other key: continue".to_owned(),
            view.theme.tone(Tone::Warning),
        ),
        Overlay::Help(_) => Line::styled(
            " ↑↓ scroll   any other key: close".to_owned(),
            view.theme.tone(Tone::Faint),
        ),
        Overlay::None => match &view.flash {
            Some((text, _)) => Line::styled(format!(" {text}"), view.theme.tone(Tone::Strong)),
            None => keys_line(area.width, context, view),
        },
    };
    frame.render_widget(line, area);
}

fn keys_line(width: u16, context: &DrawContext<'_>, view: &View) -> Line<'static> {
    let mut left = vec![Span::raw(" ")];
    for (key, word) in keys(context, view) {
        left.push(Span::styled(key, view.theme.tone(Tone::Strong)));
        left.push(Span::styled(format!(" {word}  "), view.theme.tone(Tone::Faint)));
    }
    let quit = if view.role == Role::Viewer || context.state.is_over() {
        "quit"
    } else {
        "stop"
    };
    let right = vec![
        Span::styled("?", view.theme.tone(Tone::Strong)),
        Span::styled(" help  ", view.theme.tone(Tone::Faint)),
        Span::styled("q", view.theme.tone(Tone::Strong)),
        Span::styled(format!(" {quit} "), view.theme.tone(Tone::Faint)),
    ];
    let available = usize::from(width).saturating_sub(right.iter().map(Span::width).sum::<usize>() + 2);
    // Drop the keys that do not fit; the most useful ones come first.
    let mut used = 0;
    let mut fitting = 0;
    for (index, span) in left.iter().enumerate() {
        used += span.width();
        if index % 2 == 0 && used <= available {
            fitting = index + 1;
        }
    }
    left.truncate(fitting);
    both_ends(&left, right, width)
}

/// The keys that have an effect now.
fn keys(context: &DrawContext<'_>, view: &View) -> Vec<(&'static str, &'static str)> {
    let state = context.state;
    let accepts_commands = view.commands == CommandAccess::Available && !state.is_over();
    let waiting = matches!(state.activity, RunActivity::Waiting { .. });
    let mut keys = Vec::new();
    if accepts_commands && matches!(state.activity, RunActivity::AwaitingConfirmation { .. }) {
        keys.extend([("c", "continue"), ("a", "continue without asking")]);
    }
    if accepts_commands && matches!(state.activity, RunActivity::Paused { .. }) {
        keys.push(("p", "resume"));
    }
    if waiting && accepts_commands {
        keys.push(("w", "wake now"));
    }
    if !view.query.is_empty() {
        keys.push(("n N", "next, previous match"));
    }
    keys.push(("Tab", "view"));
    match view.tab {
        Tab::Transcript => keys.extend([("j k", "select"), ("Enter", "unfold")]),
        Tab::Tools => keys.extend([("↑↓", "select"), ("Enter", "open"), ("o", "sort")]),
        Tab::Terminal => keys.extend([("< >", "scroll sideways")]),
        Tab::Events | Tab::Prompt | Tab::Usage => {}
    }
    if state.entries.len() > 1 {
        keys.push(("←→", "iteration"));
    }
    if accepts_commands && !state.pausing {
        keys.push(("p", "pause"));
    }
    if accepts_commands && state.pausing && !matches!(state.activity, RunActivity::Paused { .. }) {
        keys.push(("p", "unpause"));
    }
    if accepts_commands && state.is_working() {
        keys.push(("s", "skip"));
    }
    if accepts_commands {
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
    let available = usize::from(area.width).saturating_sub(label.width() + 2);
    // Show the end of the text, where the cursor is.
    let mut shown = crate::ui::clean::clean(text).into_owned();
    while shown.width() > available {
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
