//! Maps tones to terminal styles.
//!
//! On a dark or unknown background it uses the base colors, which the user's palette defines; on a light one, darker colors,
//! because yellow and cyan are hard to read there. No meaning depends on color alone.

use ratatui::style::{Color, Modifier, Style};

use crate::ui::Tone;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Theme {
    color: ColorMode,
    background: Background,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColorMode {
    On,
    Off,
}

/// The background of the terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Background {
    #[default]
    Dark,
    Light,
}

/// The colors of the TUI.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThemeChoice {
    /// For the background that the terminal reports.
    #[default]
    Auto,
    Dark,
    Light,
}

impl ThemeChoice {
    pub(super) fn background(self) -> Background {
        match self {
            Self::Auto | Self::Dark => Background::Dark,
            Self::Light => Background::Light,
        }
    }
}

impl ColorMode {
    pub(super) fn of(enabled: bool) -> Self {
        if enabled { Self::On } else { Self::Off }
    }
}

impl Background {
    /// Parses the reply of a terminal that was asked for its background: `rgb:RRRR/GGGG/BBBB`.
    pub(super) fn of_reply(reply: &str) -> Option<Self> {
        let channels = reply.trim().strip_prefix("rgb:")?.split('/');
        let channel = |text: &str| {
            let digits = text.get(..2).unwrap_or(text);
            u32::from_str_radix(digits, 16).ok()
        };
        let [red, green, blue] = channels
            .map(channel)
            .collect::<Option<Vec<u32>>>()?
            .try_into()
            .ok()?;
        // Perceived brightness, from 0 to 255,000.
        let brightness = 299 * red + 587 * green + 114 * blue;
        Some(if brightness > 140_000 {
            Self::Light
        } else {
            Self::Dark
        })
    }
}

impl Theme {
    pub(super) fn new(color: ColorMode) -> Self {
        let background = Background::Dark;
        Self { color, background }
    }

    #[must_use]
    pub(super) fn on(self, background: Background) -> Self {
        Self { background, ..self }
    }

    pub(super) fn tone(self, tone: Tone) -> Style {
        let style = Style::new();
        match tone {
            Tone::Plain => style,
            Tone::Strong => style.add_modifier(Modifier::BOLD),
            Tone::Faint => style.add_modifier(Modifier::DIM),
            Tone::Good => self.tinted(Color::Green, 28),
            Tone::Bad => self.tinted(Color::Red, 124).add_modifier(Modifier::BOLD),
            Tone::Warning => self.tinted(Color::Yellow, 130),
            Tone::Accent => self.tinted(Color::Cyan, 25),
        }
    }

    pub(super) fn thinking(self) -> Style {
        Style::new().add_modifier(Modifier::DIM | Modifier::ITALIC)
    }

    pub(super) fn code(self) -> Style {
        self.tinted(Color::Cyan, 25)
    }

    pub(super) fn heading(self) -> Style {
        self.tinted(Color::Blue, 19).add_modifier(Modifier::BOLD)
    }

    /// An added or removed line of a diff.
    pub(super) fn diff_line(self, tone: Tone) -> Style {
        match tone {
            Tone::Good => self.tinted(Color::Green, 28),
            Tone::Bad => self.tinted(Color::Red, 124),
            other => self.tone(other),
        }
    }

    pub(super) fn keyword(self) -> Style {
        self.tinted(Color::Magenta, 90)
    }

    pub(super) fn string(self) -> Style {
        self.tinted(Color::Green, 28)
    }

    pub(super) fn number(self) -> Style {
        self.tinted(Color::Yellow, 130)
    }

    pub(super) fn comment(self) -> Style {
        Style::new().add_modifier(Modifier::DIM | Modifier::ITALIC)
    }

    /// The product name and the open tab.
    pub(super) fn highlighted(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    pub(super) fn search_match(self) -> Style {
        self.tinted(Color::Yellow, 130).add_modifier(Modifier::REVERSED)
    }

    /// A base color, or on a light background one of the 256 colors.
    fn tinted(self, color: Color, on_light: u8) -> Style {
        match (self.color, self.background) {
            (ColorMode::Off, _) => Style::new(),
            (ColorMode::On, Background::Dark) => Style::new().fg(color),
            (ColorMode::On, Background::Light) => Style::new().fg(Color::Indexed(on_light)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_is_read_from_the_reply_of_the_terminal() {
        let dark = Some(Background::Dark);
        let light = Some(Background::Light);
        assert_eq!(Background::of_reply("rgb:0000/0000/0000"), dark);
        assert_eq!(Background::of_reply("rgb:2828/2c2c/3434"), dark);
        assert_eq!(Background::of_reply("rgb:ffff/ffff/ffff"), light);
        assert_eq!(Background::of_reply("rgb:fd/f6/e3"), light);
        for wrong in ["", "rgb:", "rgb:1/2", "rgb:zz/00/00", "#ffffff"] {
            assert_eq!(Background::of_reply(wrong), None, "{wrong}");
        }
    }
}
