//! What can go wrong with wishes, and how it is told: the error type, the picture of the offending line, and "did
//! you mean". Finding the mistakes is done elsewhere.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use thiserror::Error;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Why there are no settings.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("configuration file {} does not exist", path.display())]
    Missing { path: PathBuf },
    #[error("cannot read configuration file {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("configuration file {} is larger than {max_bytes} bytes", path.display())]
    TooLarge { path: PathBuf, max_bytes: u64 },
    #[error("{0}")]
    Diagnostic(Box<Diagnostic>),
    #[error("environment variable `{variable}` {complaint}")]
    Variable { variable: String, complaint: Problem },
    #[error("`{}` on the command line {complaint}", complaint.key)]
    Flag { complaint: Problem },
}

/// Something wrong with one value, wherever it was said. Displayed as the rest of a sentence about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Dotted: `event_loop.max_iterations`.
    pub key: String,
    /// `must be at least 1, but is `0``
    pub problem: String,
    pub help: Option<String>,
    pub(super) about: About,
}

/// Which half of `key: value` a complaint is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    Name,
    Value,
}

impl Problem {
    pub(super) fn about_value(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            key: printable(&key.into()),
            problem: printable(&problem.into()),
            help: None,
            about: About::Value,
        }
    }

    pub(super) fn about_name(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            about: About::Name,
            ..Self::about_value(key, problem)
        }
    }

    pub(super) fn with_help(mut self, help: Option<String>) -> Self {
        self.help = help.map(|help| printable(&help));
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        match &self.help {
            Some(help) => write!(f, "\n  = help: {help}"),
            None => Ok(()),
        }
    }
}

/// A mistake in a file, and its picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub message: String,
    pub help: Option<String>,
    excerpt: Excerpt,
}

impl Diagnostic {
    pub(super) fn new(file: &Path, text: &str, range: Range<usize>, message: impl Into<String>) -> Self {
        let place = Place::of(text, range);
        Self {
            file: file.to_owned(),
            line: place.line,
            column: place.before.chars().count() + 1,
            message: printable(&message.into()),
            help: None,
            excerpt: Excerpt::of(&place),
        }
    }

    pub(super) fn with_help(mut self, help: Option<String>) -> Self {
        self.help = help.map(|help| printable(&help));
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        writeln!(f, "{}", self.message)?;
        let file = printable(&self.file.display().to_string());
        writeln!(f, "{gutter}--> {file}:{}:{}", self.line, self.column)?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{number} | {}", self.excerpt.line)?;
        let indent = " ".repeat(self.excerpt.indent);
        write!(f, "{gutter} | {indent}{}", "^".repeat(self.excerpt.width))?;
        match &self.help {
            Some(help) => write!(f, "\n{gutter} |\n{gutter} = help: {help}"),
            None => Ok(()),
        }
    }
}

/// A range of a text, cut down to the first line that it touches.
struct Place<'a> {
    line: usize,
    before: &'a str,
    marked: &'a str,
    after: &'a str,
}

impl<'a> Place<'a> {
    fn of(text: &'a str, range: Range<usize>) -> Self {
        // A parser that ran off the end means the last thing that was there, not the empty line behind it.
        let start = floor(text, range.start.min(text.trim_end().len()));
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..]
            .find('\n')
            .map_or(text.len(), |newline| start + newline);
        let end = floor(text, range.end).clamp(start, line_end);
        Self {
            line: text[..start].matches('\n').count() + 1,
            before: &text[line_start..start],
            marked: text[start..end].trim_end_matches('\r'),
            after: text[end..line_end].trim_end_matches('\r'),
        }
    }
}

/// The nearest character boundary at or before the offset.
fn floor(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

/// The offending line as it can be shown, and where to underline it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    line: String,
    indent: usize,
    width: usize,
}

impl Excerpt {
    /// Columns shown before the mark, and in all.
    const BEFORE: usize = 60;
    const LINE: usize = 110;

    fn of(place: &Place<'_>) -> Self {
        let before = keep_end(&printable(place.before), Self::BEFORE);
        let marked = printable(place.marked);
        // Blanks behind a mark are not meant; a mark of nothing but blanks is.
        let underlined = if marked.trim().is_empty() {
            marked.as_str()
        } else {
            marked.trim_end()
        };
        let indent = before.width();
        let line = keep_start(&format!("{before}{marked}{}", printable(place.after)), Self::LINE);
        let width = underlined.width().clamp(1, Self::LINE.saturating_sub(indent));
        Self { line, indent, width }
    }
}

fn keep_start(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut kept: String = take_columns(text.chars(), columns - 1).into_iter().collect();
    kept.push('…');
    kept
}

fn keep_end(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let kept = take_columns(text.chars().rev(), columns - 1);
    std::iter::once('…').chain(kept.into_iter().rev()).collect()
}

fn take_columns(characters: impl Iterator<Item = char>, columns: usize) -> Vec<char> {
    let mut used = 0;
    characters
        .take_while(|character| {
            used += character.width().unwrap_or(0);
            used <= columns
        })
        .collect()
}

/// A configuration file can come from anyone: nothing in it may reach the terminal as a control character.
pub(super) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => shown.push_str("    "),
            // Marks that reorder what stands next to them.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => shown.push('\u{fffd}'),
            control if control.is_control() => shown.push('\u{fffd}'),
            other => shown.push(other),
        }
    }
    shown
}

/// A value as it is quoted inside a sentence: one line, not too long.
pub(super) fn quoted(value: &str) -> String {
    let first_line = value.lines().next().unwrap_or_default();
    let shortened = if first_line.len() < value.len() && first_line.width() <= 40 {
        format!("{first_line}…")
    } else {
        keep_start(first_line, 40)
    };
    format!("`{shortened}`")
}

/// "`a`, `b` or `c`"
pub(super) fn one_of(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// "did you mean …", or else all there is to choose from.
pub(super) fn suggestion(word: &str, known: &[&str]) -> String {
    match closest(word, known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("known here: {}", known.join(", ")),
    }
}

/// The known word that was probably meant, if any is near enough.
pub(super) fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let folded = fold(word);
    let allowed = (folded.chars().count() / 3).max(1);
    let by_spelling = known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &fold(candidate)), *candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance);
    let by_part = || {
        let mut containing = known
            .iter()
            .filter(|candidate| folded.len() >= 4 && candidate.contains(&folded));
        containing.next().copied()
    };
    by_spelling.map(|(_, candidate)| candidate).or_else(by_part)
}

/// `Max-Iterations` and `max_iterations` are the same word, misspelt.
fn fold(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str, marked: &str) -> String {
        let start = text.find(marked).unwrap_or(text.len());
        Diagnostic::new(Path::new("ralph.yml"), text, start..start + marked.len(), "wrong").to_string()
    }

    #[test]
    fn the_underline_stands_under_wide_characters_and_tabs() {
        insta::assert_snapshot!(show("a: 漢字\tboom # ü\n", "boom"), @r"
        wrong
         --> ralph.yml:1:7
          |
        1 | a: 漢字    boom # ü
          |            ^^^^
        ");
    }

    #[test]
    fn a_long_line_is_cut_around_the_mistake() {
        let text = format!("a: {}boom{}", "x".repeat(500), "y".repeat(500));
        let shown = show(&text, "boom");
        assert!(shown.lines().all(|line| line.width() <= 120), "{shown}");
        assert!(shown.contains("…xxx") && shown.contains("boomyyy"), "{shown}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let shown = show("a: \u{1b}]52;c;x\u{7}\r\n", "52");
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\r']), "{shown:?}");
    }

    #[test]
    fn the_gutter_grows_with_the_line_number() {
        let text = format!("{}boom\n", "\n".repeat(99));
        insta::assert_snapshot!(show(&text, "boom"), @r"
        wrong
           --> ralph.yml:100:1
            |
        100 | boom
            | ^^^^
        ");
    }

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        let known = ["max_iterations", "max_runtime_seconds", "prompt"];
        assert_eq!(closest("max_iteration", &known), Some("max_iterations"));
        assert_eq!(closest("Max-Iterations", &known), Some("max_iterations"));
        assert_eq!(closest("promt", &known), Some("prompt"));
        assert_eq!(closest("runtime", &known), Some("max_runtime_seconds"));
        assert_eq!(closest("banana", &known), None);
        assert_eq!(closest("x", &known), None);
    }
}
