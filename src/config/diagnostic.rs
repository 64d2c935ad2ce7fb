//! Configuration errors: the error type, the rendering of the offending line, and "did you mean" suggestions.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use thiserror::Error;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// An error that prevents the configuration from loading.
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
    /// A setting of an imported file that must be honored and cannot be.
    #[error("{reason}")]
    Refused { reason: String },
    /// All problems of one file.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n"))]
    Diagnostics(Vec<Diagnostic>),
    #[error("environment variable `{variable}`: {problem}")]
    Variable { variable: String, problem: Problem },
    #[error("`{}` (command line): {problem}", problem.key)]
    Flag { problem: Problem },
}

impl ConfigError {
    /// The error for one or more problems of a file.
    pub(super) fn of_problems(problems: impl IntoIterator<Item = Diagnostic>) -> Self {
        let mut problems: Vec<Diagnostic> = problems.into_iter().collect();
        match problems.len() {
            1 => Self::Diagnostic(Box::new(problems.swap_remove(0))),
            _ => Self::Diagnostics(problems),
        }
    }
}

/// A problem with one key or value of any layer. Displayed after the name of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Dotted: `event_loop.max_iterations`.
    pub key: String,
    /// For example "expected at least 1, found `0`".
    pub message: String,
    pub help: Option<String>,
    pub(super) target: ProblemTarget,
}

/// The part of `key: value` that a problem refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProblemTarget {
    Key,
    Value,
}

impl Problem {
    pub(super) fn at_value(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: printable(&key.into()),
            message: printable(&message.into()),
            help: None,
            target: ProblemTarget::Value,
        }
    }

    pub(super) fn at_key(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            target: ProblemTarget::Key,
            ..Self::at_value(key, message)
        }
    }

    pub(super) fn with_help(mut self, help: Option<String>) -> Self {
        self.help = help.map(|help| printable(&help));
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  = help: {help}"),
            None => Ok(()),
        }
    }
}

/// An error in a file, with the location and an excerpt of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub file: PathBuf,
    /// 1-based.
    pub line: usize,
    /// 1-based, in characters.
    pub column: usize,
    pub message: String,
    pub help: Option<String>,
    excerpt: Excerpt,
}

impl Diagnostic {
    pub(super) fn new(file: &Path, text: &str, range: Range<usize>, message: impl Into<String>) -> Self {
        let span = LineSpan::of(text, range);
        Self {
            file: file.to_owned(),
            line: span.line,
            column: span.before.chars().count() + 1,
            message: printable(&message.into()),
            help: None,
            excerpt: Excerpt::of(&span),
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

/// A range of a text, reduced to its first line.
struct LineSpan<'a> {
    line: usize,
    before: &'a str,
    marked: &'a str,
    after: &'a str,
}

impl<'a> LineSpan<'a> {
    fn of(text: &'a str, range: Range<usize>) -> Self {
        // An error at the end of the text refers to the last token, not to the empty line after it.
        let start = char_boundary_before(text, range.start.min(text.trim_end().len()));
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..]
            .find('\n')
            .map_or(text.len(), |newline| start + newline);
        let end = char_boundary_before(text, range.end).clamp(start, line_end);
        Self {
            line: text[..start].matches('\n').count() + 1,
            before: &text[line_start..start],
            marked: text[start..end].trim_end_matches('\r'),
            after: text[end..line_end].trim_end_matches('\r'),
        }
    }
}

/// The nearest character boundary at or before the offset.
fn char_boundary_before(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

/// The printable line and the columns to underline.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    line: String,
    indent: usize,
    width: usize,
}

impl Excerpt {
    /// Maximum columns before the underlined part.
    const MAX_BEFORE: usize = 60;
    /// Maximum columns of the whole line.
    const MAX_LINE: usize = 110;

    fn of(span: &LineSpan<'_>) -> Self {
        let before = keep_end(&printable(span.before), Self::MAX_BEFORE);
        let marked = printable(span.marked);
        // Trailing whitespace is not underlined, unless the range consists of whitespace only.
        let underlined = if marked.trim().is_empty() {
            marked.as_str()
        } else {
            marked.trim_end()
        };
        let indent = before.width();
        let line = keep_start(
            &format!("{before}{marked}{}", printable(span.after)),
            Self::MAX_LINE,
        );
        let width = underlined.width().clamp(1, Self::MAX_LINE.saturating_sub(indent));
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

/// Replaces control characters, because configuration files can come from untrusted repositories.
pub(super) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => shown.push_str("    "),
            // Bidirectional control characters, which reorder the text next to them.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => shown.push('\u{fffd}'),
            control if control.is_control() => shown.push('\u{fffd}'),
            other => shown.push(other),
        }
    }
    shown
}

/// Quotes a value for a message, shortened to one line of at most 40 columns.
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

/// "did you mean …", or the list of known names if none is similar.
pub(super) fn suggestion(word: &str, known: &[&str]) -> String {
    match closest(word, known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("expected one of: {}", known.join(", ")),
    }
}

/// The most similar known word, if any is similar enough.
pub(super) fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let normalized = normalize(word);
    let allowed = (normalized.chars().count() / 3).max(1);
    let by_spelling = known
        .iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&normalized, &normalize(candidate)),
                *candidate,
            )
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance);
    let by_part = || {
        let mut containing = known
            .iter()
            .filter(|candidate| normalized.len() >= 4 && candidate.contains(&normalized));
        containing.next().copied()
    };
    by_spelling.map(|(_, candidate)| candidate).or_else(by_part)
}

/// Makes `Max-Iterations` and `max_iterations` equal.
fn normalize(word: &str) -> String {
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
    fn underline_is_aligned_with_wide_characters_and_tabs() {
        insta::assert_snapshot!(show("a: 漢字\tboom # ü\n", "boom"), @r"
        wrong
         --> ralph.yml:1:7
          |
        1 | a: 漢字    boom # ü
          |            ^^^^
        ");
    }

    #[test]
    fn long_line_is_shortened_around_the_error() {
        let text = format!("a: {}boom{}", "x".repeat(500), "y".repeat(500));
        let shown = show(&text, "boom");
        assert!(shown.lines().all(|line| line.width() <= 120), "{shown}");
        assert!(shown.contains("…xxx") && shown.contains("boomyyy"), "{shown}");
    }

    #[test]
    fn control_characters_are_replaced() {
        let shown = show("a: \u{1b}]52;c;x\u{7}\r\n", "52");
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\r']), "{shown:?}");
    }

    #[test]
    fn gutter_width_follows_the_line_number() {
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
    fn similar_words_are_suggested_and_dissimilar_ones_are_not() {
        let known = ["max_iterations", "max_runtime_seconds", "prompt"];
        assert_eq!(closest("max_iteration", &known), Some("max_iterations"));
        assert_eq!(closest("Max-Iterations", &known), Some("max_iterations"));
        assert_eq!(closest("promt", &known), Some("prompt"));
        assert_eq!(closest("runtime", &known), Some("max_runtime_seconds"));
        assert_eq!(closest("banana", &known), None);
        assert_eq!(closest("x", &known), None);
    }
}
