//! Draws the list of keys above the open tab.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, BorderType, Borders, Clear, Paragraph};

use crate::ui::Tone;
use crate::ui::tui::text::{LineBreak, Margin, wrap};
use crate::ui::tui::view::{CommandAccess, Role, View};
use ratatui::style::Style;
use ratatui::text::Span;

const NAVIGATION: [(&str, &str); 13] = [
    ("↑↓ wheel", "scroll; PgUp, PgDn: page; g: start; G: live end"),
    (
        "Tab 1–9",
        "transcript, changes, plan, tools, gates, events, prompt, terminal, usage",
    ),
    ("← →", "previous, next iteration"),
    ("j k", "select the next, previous entry"),
    (
        "Enter",
        "fold or unfold what is selected: an output, an iteration, a diff",
    ),
    ("o", "unfold all outputs; in the tools tab: sort by duration"),
    ("t", "thinking: brief, full, hidden"),
    ("v", "next page in the right pane"),
    ("/ n N", "search this tab; next, previous match"),
    ("y", "copy what is selected (OSC 52)"),
    ("e", "save this transcript as Markdown in the run directory"),
    ("< >", "terminal tab: scroll sideways"),
    ("Esc", "clear search and selection; return to the live end"),
];

const COMMANDS: [(&str, &str); 4] = [
    ("p", "pause after this iteration; press again to resume"),
    ("s", "stop this iteration, continue with the next"),
    ("w", "end the current wait"),
    (
        "m",
        "write a message for the next prompt (Alt-Enter: new line, ↑: earlier messages)",
    ),
];

const SUSPEND: (&str, &str) = ("Ctrl-Z", "suspend ralph; fg continues");

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, first: usize, view: &View) {
    let mut keys: Vec<(&str, &str)> = NAVIGATION.to_vec();
    if view.commands == CommandAccess::Available {
        keys.extend(COMMANDS);
    }
    keys.push(SUSPEND);
    keys.push(match view.role {
        Role::Driver => ("q Ctrl-C", "stop the run"),
        Role::Viewer => ("q Ctrl-C", "quit; the run continues"),
    });
    let width = area.width.min(74);
    let inner = usize::from(width.saturating_sub(2));
    let lines: Vec<Line<'_>> = keys
        .iter()
        .flat_map(|(key, text)| key_lines(key, text, inner, view))
        .collect();
    let height = (u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2)).min(area.height);
    let first = first.min(lines.len().saturating_sub(usize::from(height.saturating_sub(2))));
    let popup = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, popup);
    let border = Block::new()
        .borders(Borders::ALL)
        .border_type(BorderType::Rounded)
        .title(" keys ");
    let lines: Vec<Line<'_>> = lines.into_iter().skip(first).collect();
    frame.render_widget(Paragraph::new(lines).block(border), popup);
}

fn key_lines(key: &str, text: &str, width: usize, view: &View) -> Vec<Line<'static>> {
    let margin = Margin {
        first: vec![Span::styled(format!(" {key:<9} "), view.theme.tone(Tone::Strong))],
        rest: vec![Span::raw(" ".repeat(11))],
    };
    wrap(
        &[(text.to_owned(), Style::new())],
        &margin,
        width,
        LineBreak::Words,
    )
}
