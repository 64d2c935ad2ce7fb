//! What a colour means. Styles are chosen here and nowhere else; no meaning rests on a style alone.

use anstyle::{AnsiColor, Style};

/// Why a piece of text looks different from the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Strong,
    /// Beside the point: reasoning, rules, gutters.
    Faint,
    Good,
    Bad,
    Warning,
    /// A tool, a name, something to find again.
    Accent,
}

impl Tone {
    /// Only the eight base colours, which every palette, light or dark, keeps readable.
    pub(super) fn style(self, colour: bool) -> Style {
        let style = Style::new();
        if !colour {
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
