//! How a tone looks in the TUI. Base colours, bold, dim and reverse only: readable on light and dark, on sixteen
//! colours, and without any colour at all, because no meaning rests on a colour alone.

use ratatui::style::{Color, Modifier, Style};

use crate::ui::Tone;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Theme {
    colour: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Used,
    Refused,
}

impl Colour {
    pub(super) fn of(wanted: bool) -> Self {
        if wanted { Self::Used } else { Self::Refused }
    }
}

impl Theme {
    pub(super) fn new(colour: Colour) -> Self {
        Self { colour }
    }

    pub(super) fn tone(self, tone: Tone) -> Style {
        let style = Style::new();
        match tone {
            Tone::Plain => style,
            Tone::Strong => style.add_modifier(Modifier::BOLD),
            Tone::Faint => style.add_modifier(Modifier::DIM),
            Tone::Good => self.tinted(Color::Green),
            Tone::Bad => self.tinted(Color::Red).add_modifier(Modifier::BOLD),
            Tone::Warning => self.tinted(Color::Yellow),
            Tone::Accent => self.tinted(Color::Cyan),
        }
    }

    pub(super) fn thinking(self) -> Style {
        Style::new().add_modifier(Modifier::DIM | Modifier::ITALIC)
    }

    pub(super) fn code(self) -> Style {
        self.tinted(Color::Cyan)
    }

    pub(super) fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// A bar with something chosen in it.
    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    pub(super) fn found(self) -> Style {
        self.tinted(Color::Yellow).add_modifier(Modifier::REVERSED)
    }

    fn tinted(self, colour: Color) -> Style {
        match self.colour {
            Colour::Used => Style::new().fg(colour),
            Colour::Refused => Style::new(),
        }
    }

    /// A colour that came from somewhere else; none where none is wanted.
    pub(super) fn foreign(self, colour: Color) -> Color {
        match self.colour {
            Colour::Used => colour,
            Colour::Refused => Color::Reset,
        }
    }
}
