//! The screen of an agent that draws one: its bytes through an emulator. Nothing of them reaches the real terminal
//! but characters and colours.

use std::num::NonZeroU16;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::theme::Theme;
use crate::ui::clean::clean;

/// As large as the terminal that agents are given.
const ROWS: u16 = 50;
const COLUMNS: u16 = 500;

pub(super) struct Screen {
    parser: vt100::Parser,
    kind: Kind,
    after_return: bool,
}

/// What the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unknown,
    Screen,
    /// Lines for a program: nothing to look at.
    Stream,
}

impl Screen {
    pub(super) fn new() -> Self {
        let rows = NonZeroU16::new(ROWS).unwrap_or(NonZeroU16::MIN);
        let columns = NonZeroU16::new(COLUMNS).unwrap_or(NonZeroU16::MIN);
        Self {
            parser: vt100::Parser::new(rows, columns, 0),
            kind: Kind::Unknown,
            after_return: false,
        }
    }

    /// Whether there is anything to look at.
    pub(super) fn is_one(&self) -> bool {
        self.kind == Kind::Screen
    }

    /// Takes what the agent printed next. The agent's terminal changes nothing on the way, so what a terminal
    /// driver would add is added here: a line feed goes to the beginning of the line.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.kind == Kind::Unknown {
            self.kind = kind(bytes);
        }
        if self.kind != Kind::Screen {
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, feed) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
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
        // The part with the cursor, which is where things happen.
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
                let place = &mut frame.buffer_mut()[(area.x + x, area.y + y)];
                let text = clean(cell.contents());
                let printable = !text.trim().is_empty();
                // A character of two columns does not fit in the last one.
                let fits = !cell.is_wide() || x + 1 < area.width;
                place.set_symbol(if printable && fits { &text } else { " " });
                place.set_style(style(cell, theme));
            }
        }
    }
}

fn kind(bytes: &[u8]) -> Kind {
    let text = bytes.trim_ascii_start();
    match text.first() {
        None => Kind::Unknown,
        Some(b'{') => Kind::Stream,
        Some(_) if text.starts_with(b"@@RALPH@@") => Kind::Stream,
        Some(_) => Kind::Screen,
    }
}

fn style(cell: &vt100::Cell, theme: Theme) -> Style {
    let mut style = Style::new()
        .fg(theme.foreign(colour(cell.fgcolor())))
        .bg(theme.foreign(colour(cell.bgcolor())));
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

fn colour(colour: vt100::Color) -> Color {
    match colour {
        vt100::Color::Default => Color::Reset,
        vt100::Color::Idx(index) => Color::Indexed(index),
        vt100::Color::Rgb(red, green, blue) => Color::Rgb(red, green, blue),
    }
}
