//! All keys, on one page over the view.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use crate::ui::Tone;
use crate::ui::tui::commands::UserCommandKind;
use crate::ui::tui::view::{Role, View};

const LOOK: [(&str, &str); 12] = [
    (
        "↑↓ wheel",
        "scroll; PgUp PgDn a page, g the start, G the live end",
    ),
    ("Tab 1–6", "transcript, tools, events, prompt, terminal, usage"),
    ("← →", "the iteration before, the next"),
    ("j k", "choose the next, the previous entry"),
    ("Enter", "unfold or fold the chosen entry"),
    ("o", "unfold all outputs; in the tools view: sort by duration"),
    ("t", "thinking: in brief, in full, not at all"),
    ("/ n N", "search what is shown; next, previous"),
    ("y", "copy the chosen entry (OSC 52)"),
    ("e", "keep this transcript as Markdown in the run's directory"),
    ("< >", "terminal view: move sideways"),
    ("Esc", "forget search and choice; back to the live end"),
];

/// From the key with this number on, or as many as there is room for.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, first: usize, view: &View) {
    let mut keys: Vec<(&str, &str)> = LOOK.to_vec();
    let wishes = [
        (
            UserCommandKind::Pause,
            "p",
            "pause after this iteration; again: go on",
        ),
        (
            UserCommandKind::StopIteration,
            "s",
            "stop this iteration, go on with the next",
        ),
        (UserCommandKind::Wake, "w", "while waiting: wake now"),
        (UserCommandKind::Tell, "m", "a message for the next prompt"),
    ];
    let offered = wishes.iter().filter(|(kind, ..)| view.powers.has(*kind));
    keys.extend(offered.map(|(_, key, text)| (*key, *text)));
    keys.push(match view.role {
        Role::Driver => (
            "q Ctrl-C",
            "stop the run (q asks; a second Ctrl-C kills the agent)",
        ),
        Role::Viewer => ("q Ctrl-C", "leave; the run goes on"),
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
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, place);
    let frame_around = Block::new().borders(Borders::ALL).title(" keys ");
    frame.render_widget(Paragraph::new(lines).block(frame_around), place);
}
