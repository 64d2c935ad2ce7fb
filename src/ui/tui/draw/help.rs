//! Draws the list of keys above the open tab.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use crate::ui::Tone;
use crate::ui::tui::view::{CommandAccess, Role, View};

const NAVIGATION: [(&str, &str); 12] = [
    ("↑↓ wheel", "scroll; PgUp/PgDn: page, g: start, G: live end"),
    ("Tab 1–6", "transcript, tools, events, prompt, terminal, usage"),
    ("← →", "previous, next iteration"),
    ("j k", "select the next, previous block"),
    ("Enter", "unfold or fold the selected block"),
    ("o", "unfold all outputs; in the tools tab: sort by duration"),
    ("t", "thinking: brief, full, hidden"),
    ("/ n N", "search this tab; next, previous match"),
    ("y", "copy the selected block (OSC 52)"),
    ("e", "save this transcript as Markdown in the run directory"),
    ("< >", "terminal tab: scroll sideways"),
    ("Esc", "clear search and selection; return to the live end"),
];

const COMMANDS: [(&str, &str); 4] = [
    ("p", "pause after this iteration; press again to resume"),
    ("s", "stop this iteration, continue with the next"),
    ("w", "end the current wait"),
    ("m", "write a message for the next prompt"),
];

/// Draws the list, starting with the key at index `first` if not all keys fit.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, first: usize, view: &View) {
    let mut keys: Vec<(&str, &str)> = NAVIGATION.to_vec();
    if view.commands == CommandAccess::Available {
        keys.extend(COMMANDS);
    }
    keys.push(match view.role {
        Role::Driver => (
            "q Ctrl-C",
            "stop the run (q asks first; Ctrl-C twice kills the agent)",
        ),
        Role::Viewer => ("q Ctrl-C", "quit; the run continues"),
    });
    let wanted = u16::try_from(keys.len()).unwrap_or(u16::MAX).saturating_add(2);
    let (width, height) = (area.width.min(72), area.height.min(wanted));
    let first = first.min(keys.len().saturating_sub(usize::from(height.saturating_sub(2))));
    let lines: Vec<Line<'_>> = keys
        .iter()
        .skip(first)
        .map(|(key, text)| {
            Line::from(vec![
                Span::styled(format!(" {key:<9} "), view.theme.tone(Tone::Strong)),
                Span::raw(*text),
            ])
        })
        .collect();
    let popup = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, popup);
    let border = Block::new().borders(Borders::ALL).title(" keys ");
    frame.render_widget(Paragraph::new(lines).block(border), popup);
}
