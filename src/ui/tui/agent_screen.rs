//! Emulates the terminal of an agent that draws its own screen.
//!
//! Only characters, colors and text attributes reach the real terminal.

use std::num::NonZeroU16;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::theme::Theme;
use crate::ui::clean::clean;

/// Size of the terminal that agents run in.
const ROWS: u16 = 50;
const COLUMNS: u16 = 500;

pub(super) struct AgentScreen {
    parser: vt100::Parser,
    kind: OutputKind,
    after_return: bool,
}

/// What the agent prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputKind {
    Unknown,
    Screen,
    /// A stream of machine-readable events.
    EventStream,
}

impl AgentScreen {
    pub(super) fn new() -> Self {
        let rows = NonZeroU16::new(ROWS).unwrap_or(NonZeroU16::MIN);
        let columns = NonZeroU16::new(COLUMNS).unwrap_or(NonZeroU16::MIN);
        Self {
            parser: vt100::Parser::new(rows, columns, 0),
            kind: OutputKind::Unknown,
            after_return: false,
        }
    }

    /// Whether the agent draws a screen.
    pub(super) fn is_screen(&self) -> bool {
        self.kind == OutputKind::Screen
    }

    /// Processes the next bytes of output. The agent's terminal has output processing turned off, so this adds the
    /// carriage return before a line feed.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.kind == OutputKind::Unknown {
            self.kind = kind(bytes);
        }
        if self.kind != OutputKind::Screen {
            return;
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, feed) = match line.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (line, false),
            };
            self.parser.process(text);
            if let Some(last) = text.last() {
                self.after_return = *last == b'\r';
            }
            if feed {
                self.parser
                    .process(if self.after_return { b"\n" } else { b"\r\n" });
                self.after_return = false;
            }
        }
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, pan: u16, theme: Theme) {
        let screen = self.parser.screen();
        // Show the rows around the cursor.
        let (cursor, _) = screen.cursor_position();
        let above = if area.height >= ROWS {
            0
        } else {
            cursor.saturating_sub(area.height - 1)
        };
        for y in 0..area.height.min(ROWS - above) {
            for x in 0..area.width.min(COLUMNS - pan) {
                let Some(cell) = screen.cell(above + y, pan + x) else {
                    continue;
                };
                let target = &mut frame.buffer_mut()[(area.x + x, area.y + y)];
                let text = clean(cell.contents());
                let printable = !text.trim().is_empty();
                // A wide character does not fit in the last column.
                let fits = !cell.is_wide() || x + 1 < area.width;
                target.set_symbol(if printable && fits { &text } else { " " });
                target.set_style(style(cell, theme));
            }
        }
    }
}

fn kind(bytes: &[u8]) -> OutputKind {
    let text = bytes.trim_ascii_start();
    match text.first() {
        None => OutputKind::Unknown,
        Some(b'{') => OutputKind::EventStream,
        Some(_) if text.starts_with(b"@@RALPH@@") => OutputKind::EventStream,
        Some(_) => OutputKind::Screen,
    }
}

fn style(cell: &vt100::Cell, theme: Theme) -> Style {
    let mut style = Style::new()
        .fg(theme.agent_color(color(cell.fgcolor())))
        .bg(theme.agent_color(color(cell.bgcolor())));
    let modifiers = [
        (cell.bold(), Modifier::BOLD),
        (cell.dim(), Modifier::DIM),
        (cell.italic(), Modifier::ITALIC),
        (cell.underline(), Modifier::UNDERLINED),
        (cell.inverse(), Modifier::REVERSED),
    ];
    for (_, modifier) in modifiers.into_iter().filter(|(on, _)| *on) {
        style = style.add_modifier(modifier);
    }
    style
}

fn color(color: vt100::Color) -> Color {
    match color {
        vt100::Color::Default => Color::Reset,
        vt100::Color::Idx(index) => Color::Indexed(index),
        vt100::Color::Rgb(red, green, blue) => Color::Rgb(red, green, blue),
    }
}
