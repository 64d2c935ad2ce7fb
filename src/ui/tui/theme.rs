//! Maps tones to terminal styles.
//!
//! It uses base colors, bold, dim and reverse only, so that it works on light and dark backgrounds and with 16 colors.
//! No meaning depends on color alone.

use ratatui::style::{Color, Modifier, Style};

use crate::ui::Tone;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Theme {
    color: ColorMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColorMode {
    On,
    Off,
}

impl ColorMode {
    pub(super) fn of(enabled: bool) -> Self {
        if enabled { Self::On } else { Self::Off }
    }
}

impl Theme {
    pub(super) fn new(color: ColorMode) -> Self {
        Self { color }
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

    fn tinted(self, color: Color) -> Style {
        match self.color {
            ColorMode::On => Style::new().fg(color),
            ColorMode::Off => Style::new(),
        }
    }

    /// A color from the agent's output, or none if colors are off.
    pub(super) fn agent_color(self, color: Color) -> Color {
        match self.color {
            ColorMode::On => color,
            ColorMode::Off => Color::Reset,
        }
    }
}
