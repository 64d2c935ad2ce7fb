//! The terminal style for each tone. Output stays unambiguous without colors.

use anstyle::{AnsiColor, Style};

use crate::event::Tone;

impl Tone {
    /// Uses only the eight base colors, because light and dark palettes keep them readable.
    pub(super) fn style(self, color: bool) -> Style {
        let style = Style::new();
        if !color {
            return style;
        }
        match self {
            Self::Plain => style,
            Self::Strong => style.bold(),
            Self::Faint => style.dimmed(),
            Self::Good => style.fg_color(Some(AnsiColor::Green.into())),
            Self::Bad => style.fg_color(Some(AnsiColor::Red.into())).bold(),
            Self::Warning => style.fg_color(Some(AnsiColor::Yellow.into())),
            Self::Accent => style.fg_color(Some(AnsiColor::Cyan.into())),
        }
    }
}
