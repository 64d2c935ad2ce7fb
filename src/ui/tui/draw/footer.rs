//! Draws the bottom line: available keys, text input, or a short status message.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::{DrawContext, both_ends};
use crate::ui::Tone;
use crate::ui::tui::line_editor::LineEditor;
use crate::ui::tui::model::RunActivity;
use crate::ui::tui::tab::Tab;
use crate::ui::tui::view::{CommandAccess, Overlay, Role, View};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, context: &DrawContext<'_>, view: &View) {
    let line = match &view.overlay {
        Overlay::Search(editor) => return input(frame, area, " search: ", editor, view),
        Overlay::Message(editor) => {
            return input(frame, area, " message for the next prompt: ", editor, view);
        }
        Overlay::ConfirmSkip => Line::styled(
            " Stop this iteration?  y: stop it, the run continues with the next   any other key: no"
                .to_owned(),
            view.theme.tone(Tone::Warning),
        ),
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
    let mut left = vec![search_status(view)];
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

/// The number of the match, and of all matches.
fn search_status(view: &View) -> Span<'static> {
    let text = match view.found {
        _ if view.query.is_empty() => return Span::raw(" "),
        Some(found) => format!(" {} of {}  ", found.number, found.total),
        None => format!(
            " no match for {:?}  ",
            crate::ui::plain::one_line(&view.query, 30).0
        ),
    };
    Span::styled(text, view.theme.tone(Tone::Warning))
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
        keys.push(("n N", "next, previous"));
    }
    keys.push(("Tab", "view"));
    match view.tab {
        Tab::Transcript => keys.extend([("j k", "select"), ("Enter", "unfold")]),
        Tab::Tools => keys.extend([("↑↓", "select"), ("Enter", "open"), ("o", "sort")]),
        Tab::Changes => keys.extend([("↑↓", "file"), ("Enter", "show the diff")]),
        Tab::Gates => keys.extend([("↑↓", "select"), ("Enter", "open")]),
        Tab::Terminal => keys.extend([("< >", "scroll sideways")]),
        Tab::Plan | Tab::Events | Tab::Prompt | Tab::Usage => {}
    }
    if state.entries.len() > 1 {
        keys.push(("←→", "iteration"));
    }
    if view.pane_visible {
        keys.push(("v", "pane"));
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
        if view.selected().is_some() {
            keys.push(("y", "copy"));
        }
    }
    keys.push(("e", "export"));
    keys
}

/// The text being typed, with as many rows as it has lines. The line with the cursor is visible.
fn input(frame: &mut Frame<'_>, area: Rect, label: &'static str, editor: &LineEditor, view: &View) {
    const MAX_ROWS: usize = 8;
    let (before, after) = editor.split();
    let cursor_row = before.matches('\n').count();
    let (before, after) = (before.rsplit('\n').next(), after.split('\n').next());
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let lines: Vec<&str> = editor.text().split('\n').collect();
    let rows = lines.len().min(MAX_ROWS);
    let first = (cursor_row + 1).saturating_sub(rows);
    let top = area.y.saturating_sub(u16::try_from(rows - 1).unwrap_or(0));
    let box_area = Rect {
        y: top,
        height: area.bottom() - top,
        ..area
    };
    frame.render_widget(ratatui::widgets::Clear, box_area);
    let available = usize::from(area.width).saturating_sub(label.width() + 2);
    for (index, y) in (first..).zip(top..area.bottom()) {
        let has_cursor = index == cursor_row;
        let text = match has_cursor {
            true => format!("{before}{after}"),
            false => lines.get(index).copied().unwrap_or_default().to_owned(),
        };
        let mut shown = crate::ui::clean::clean(&text).into_owned();
        let mut column = before.width();
        // Show the part of the line that contains the cursor.
        while has_cursor && column > available && !shown.is_empty() {
            column = column.saturating_sub(shown.chars().next().map_or(1, |c| c.to_string().width()));
            shown.remove(0);
        }
        let heading = if index == 0 {
            label.to_owned()
        } else {
            " ".repeat(label.width())
        };
        let line = Line::from(vec![
            Span::styled(heading, view.theme.tone(Tone::Accent)),
            Span::raw(shown),
        ]);
        frame.buffer_mut().set_line(area.x, y, &line, area.width);
        if has_cursor {
            let x = area.x + u16::try_from(label.width() + column).unwrap_or(0);
            frame.set_cursor_position((x.min(area.right().saturating_sub(1)), y));
        }
    }
}
