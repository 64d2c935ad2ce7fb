//! Maps tones to terminal styles.
//!
//! It uses base colours, bold, dim and reverse only, so that it works on light and dark backgrounds and with 16 colours.
//! No meaning depends on colour alone.

use ratatui::style::{Color, Modifier, Style};

use crate::ui::Tone;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Theme {
    colour: ColourMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColourMode {
    On,
    Off,
}

impl ColourMode {
    pub(super) fn of(enabled: bool) -> Self {
        if enabled { Self::On } else { Self::Off }
    }
}

impl Theme {
    pub(super) fn new(colour: ColourMode) -> Self {
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

    /// The product name and the open tab.
    pub(super) fn highlighted(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    pub(super) fn search_match(self) -> Style {
        self.tinted(Color::Yellow).add_modifier(Modifier::REVERSED)
    }

    fn tinted(self, colour: Color) -> Style {
        match self.colour {
            ColourMode::On => Style::new().fg(colour),
            ColourMode::Off => Style::new(),
        }
    }

    /// A colour from the agent's output, or none if colours are off.
    pub(super) fn agent_colour(self, colour: Color) -> Color {
        match self.colour {
            ColourMode::On => colour,
            ColourMode::Off => Color::Reset,
        }
    }
}
