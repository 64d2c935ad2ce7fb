//! Parses a YAML file and translates parser errors into a `Diagnostic` with a remedy.

use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::{Error as YamlError, Location};

use crate::policy::Seconds;

use super::diagnostic::{Diagnostic, Problem, ProblemTarget, closest, one_of, quoted, suggestion};
use super::expected::{Expected, FileKind};
use super::settings::PartialSettings;
use super::spans::{NodeKind, SpanEntry, Spans, parent};

/// The text of a file and the locations of its keys.
pub(super) struct Document<'a> {
    file: &'a Path,
    text: &'a str,
    spans: Spans,
    kind: FileKind,
}

impl<'a> Document<'a> {
    pub(super) fn new(file: &'a Path, text: &'a str) -> Self {
        Self::with_kind(FileKind::Settings, file, text)
    }

    pub(super) fn of_prices(file: &'a Path, text: &'a str) -> Self {
        Self::with_kind(FileKind::Prices, file, text)
    }

    pub(super) fn of_suite(file: &'a Path, text: &'a str) -> Self {
        Self::with_kind(FileKind::Suite, file, text)
    }

    fn with_kind(kind: FileKind, file: &'a Path, text: &'a str) -> Self {
        // Skip the byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self {
            file,
            text,
            spans: Spans::of(text),
            kind,
        }
    }

    pub(super) fn read<T: DeserializeOwned + Default>(&self) -> Result<T, Box<Diagnostic>> {
        let value = self.read_values()?;
        self.reject_empty_values()?;
        Ok(value)
    }

    /// Like `read`, but accepts keys without a value.
    pub(super) fn read_values<T: DeserializeOwned + Default>(&self) -> Result<T, Box<Diagnostic>> {
        let options = serde_saphyr::options! {
            strict_booleans: true,
            reject_unsupported_tags: true,
            with_snippet: false,
            // Enough for hand-written files, but limits alias bombs: each alias may repeat text of the size of the
            // file.
            budget: serde_saphyr::budget! { max_aliases: 100, max_events: 200_000, max_documents: 2 },
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 10_000 },
        };
        let read: Result<Option<T>, _> = serde_saphyr::from_str_with_options(self.text, options);
        read.map_err(|error| Box::new(self.explain(&error)))
            .map(Option::unwrap_or_default)
    }

    pub(super) fn text(&self) -> &str {
        self.text
    }

    /// All problems of the text: the first one, and those that `read` finds when the values with known problems are left
    /// out.
    pub(super) fn all_problems<T>(
        &self,
        first: Diagnostic,
        read: impl Fn(&Document<'_>) -> Result<T, Box<Diagnostic>>,
    ) -> Vec<Diagnostic> {
        const MAX_PROBLEMS: usize = 20;
        let mut problems = vec![first];
        let mut text = self.text.to_owned();
        while let Some(entry) = problems.last().and_then(|last| self.entry_of(last)) {
            let start = entry.name.start.min(entry.value.start);
            let end = match entry.kind {
                // The colon of a key without a value is left out too.
                NodeKind::Null => text[start..]
                    .find('\n')
                    .map_or(text.len(), |newline| start + newline),
                NodeKind::Scalar | NodeKind::List | NodeKind::Mapping => entry.name.end.max(entry.value.end),
            };
            let range = start..end;
            let blank: String = text[range.clone()]
                .chars()
                .flat_map(|c| std::iter::repeat_n(if c == '\n' { '\n' } else { ' ' }, c.len_utf8()))
                .collect();
            text.replace_range(range, &blank);
            match read(&Document::with_kind(self.kind, self.file, &text)) {
                Err(next) if is_independent(&problems, &next) => problems.push(*next),
                Ok(_) | Err(_) => break,
            }
            if problems.len() == MAX_PROBLEMS {
                break;
            }
        }
        problems
    }

    /// The entry that a problem refers to.
    fn entry_of(&self, problem: &Diagnostic) -> Option<&SpanEntry> {
        let lines = self.text.split_inclusive('\n');
        let line_start: usize = lines.take(problem.line - 1).map(str::len).sum();
        let line = self.text.get(line_start..)?;
        let within: usize = line.chars().take(problem.column - 1).map(char::len_utf8).sum();
        self.spans.at(line_start + within)
    }

    pub(super) fn spans(&self) -> &Spans {
        &self.spans
    }

    /// Drops the text and keeps the locations.
    pub(super) fn into_spans(self) -> Spans {
        self.spans
    }

    /// Creates a diagnostic at the key that the problem names.
    pub(super) fn diagnostic(&self, problem: Problem) -> Diagnostic {
        let range = self
            .spans
            .nearest(&problem.key)
            .map_or(0..0, |entry| match problem.target {
                ProblemTarget::Key => entry.name.clone(),
                ProblemTarget::Value => entry.value.clone(),
            });
        self.diagnostic_at(range, problem)
    }

    fn diagnostic_at(&self, range: Range<usize>, problem: Problem) -> Diagnostic {
        let message = match problem.key.as_str() {
            "" => problem.message,
            key => format!("`{key}`: {}", problem.message),
        };
        Diagnostic::new(self.file, self.text, range, message).with_help(problem.help)
    }

    /// Rejects keys without a value: an empty limit would silently disable that limit. Empty sections are allowed.
    fn reject_empty_values(&self) -> Result<(), Box<Diagnostic>> {
        let may_be_empty = |key: &str| key == "gates" || self.kind.expected_type(key) == Expected::Mapping;
        let empty = |entry: &&SpanEntry| entry.kind == NodeKind::Null && !may_be_empty(&entry.key);
        match self.spans.entries().iter().find(empty) {
            Some(entry) => Err(Box::new(
                self.diagnostic_at(entry.name.clone(), missing_value(&entry.key)),
            )),
            None => Ok(()),
        }
    }

    fn explain(&self, error: &YamlError) -> Diagnostic {
        if let YamlError::AliasError { error, locations, .. } = error {
            // The value is valid at the anchor but not at the alias, so point at the alias.
            return self.explain_at(self.range_of(locations.primary_location()), error);
        }
        self.explain_at(self.range_of(error.location()), error)
    }

    fn explain_at(&self, range: Range<usize>, error: &YamlError) -> Diagnostic {
        let entry = self.spans.at(range.start);
        match error {
            YamlError::SerdeUnknownField { field, expected, .. } => {
                // If the field comes from an alias, the entry is the enclosing section.
                let key = match entry.map(|entry| entry.key.as_str()) {
                    Some(key) if key.ends_with(field.as_str()) => key.to_owned(),
                    Some(section) => format!("{section}.{field}"),
                    None => field.clone(),
                };
                self.diagnostic_at(range, self.unknown_key(&key, field, expected))
            }
            YamlError::SerdeUnknownVariant {
                variant, expected, ..
            } => {
                let key = entry.map_or("", |entry| &entry.key);
                self.diagnostic_at(range, unknown_value(key, variant, expected))
            }
            YamlError::SerdeMissingField { field, .. } => {
                let key = entry.and_then(|entry| parent(&entry.key)).unwrap_or_default();
                let problem = Problem::at_key(key, format!("missing required key `{field}`"))
                    .with_help(Some(format!("add `{field}: …`")));
                self.diagnostic_at(range, problem)
            }
            YamlError::DuplicateMappingKey { .. } => self.duplicate_key(range),
            YamlError::InvalidScalar { .. }
            | YamlError::InvalidBooleanStrict { .. }
            | YamlError::Unexpected { .. }
            | YamlError::SerdeInvalidType { .. }
            | YamlError::SerdeInvalidValue { .. }
            | YamlError::NullIntoString { .. }
            | YamlError::ExternallyTaggedEnumExpectedScalarOrMapping { .. }
            | YamlError::UnexpectedValueForUnitEnumVariant { .. } => self.type_mismatch(range),
            other => self.syntax_error(range, other),
        }
    }

    fn unknown_key(&self, key: &str, field: &str, known: &[&str]) -> Problem {
        let section = match self.kind {
            FileKind::Settings => section_of(field),
            FileKind::Suite if super::suite::is_limit(field) => Some("limits"),
            FileKind::Prices | FileKind::Suite => None,
        };
        let help = match section {
            Some(section) => format!("`{field}` belongs under `{section}:`"),
            None => suggestion(field, known),
        };
        Problem::at_key(key, "unknown key").with_help(Some(help))
    }

    /// The byte range of a parser location. Some errors have only line and column.
    fn range_of(&self, location: Option<Location>) -> Range<usize> {
        let Some(location) = location else {
            return 0..0;
        };
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        if let Some(start) = location.span().byte_offset().map(number) {
            let length = location.span().byte_len().map_or(1, number);
            return start..start.saturating_add(length);
        }
        let lines = self.text.split_inclusive('\n');
        let before: usize = lines
            .clone()
            .take(number(location.line()).saturating_sub(1))
            .map(str::len)
            .sum();
        let line = self.text.get(before..).unwrap_or_default();
        let within: usize = line
            .chars()
            .take(number(location.column()).saturating_sub(1))
            .map(char::len_utf8)
            .sum();
        before + within..before + within + 1
    }

    fn type_mismatch(&self, range: Range<usize>) -> Diagnostic {
        let by_value = self.spans.of_value_at(range.start);
        let Some(entry) = by_value.or_else(|| self.spans.at(range.start)) else {
            return self.diagnostic_at(range, top_level_mismatch(self.text));
        };
        let item = self.kind.expected_type(&format!("{}[0]", entry.key));
        let entry = match entry.kind {
            NodeKind::Mapping => self.invalid_duration_below(entry).unwrap_or(entry),
            NodeKind::Null | NodeKind::Scalar | NodeKind::List => entry,
        };
        let expected = self.kind.expected_type(&entry.key);
        let found = self.text.get(entry.value.clone()).unwrap_or_default().trim_end();
        let problem = |found: &str| {
            let message = format!("expected {}, found {found}", expected.phrase());
            Problem::at_value(&entry.key, message)
        };
        let structure =
            |found: &str| problem(found).with_help(Some(expected.structure_help(item).to_owned()));
        match entry.kind {
            NodeKind::Null => self.diagnostic_at(entry.name.clone(), missing_value(&entry.key)),
            NodeKind::Scalar => {
                let problem = problem(&quoted(found)).with_help(expected.correction(found));
                self.diagnostic_at(entry.value.clone(), problem)
            }
            // For a block value, underline the key instead of the lines below it.
            NodeKind::List if found.starts_with('[') => {
                self.diagnostic_at(entry.value.clone(), structure("a list"))
            }
            NodeKind::List => self.diagnostic_at(entry.name.clone(), structure("a list")),
            // The parser reports the enclosing mapping for some values of the wrong type inside it.
            NodeKind::Mapping if expected == Expected::Mapping => {
                let problem = Problem::at_value(&entry.key, "a value below this key has the wrong type")
                    .with_help(Some(
                        "quote strings that look like a number or a boolean".to_owned(),
                    ));
                self.diagnostic_at(entry.name.clone(), problem)
            }
            NodeKind::Mapping if found.starts_with('{') => {
                self.diagnostic_at(entry.value.clone(), structure("a mapping"))
            }
            NodeKind::Mapping => self.diagnostic_at(entry.name.clone(), structure("a mapping")),
        }
    }

    /// Finds the invalid duration in a mapping. The parser reports it at the mapping.
    fn invalid_duration_below(&self, mapping: &SpanEntry) -> Option<&SpanEntry> {
        let is_invalid = |entry: &&SpanEntry| {
            let text = self.text.get(entry.value.clone()).unwrap_or_default();
            let text = text.trim().trim_matches(['"', '\'']);
            entry.kind == NodeKind::Scalar
                && entry.key.starts_with(&mapping.key)
                && self.kind.expected_type(&entry.key) == Expected::Seconds
                && text.parse::<Seconds>().is_err()
        };
        self.spans.entries().iter().find(is_invalid)
    }

    fn duplicate_key(&self, range: Range<usize>) -> Diagnostic {
        let key = self.spans.at(range.start).map_or("", |entry| &entry.key);
        let first = self.spans.find(key).map_or(1, |entry| entry.line);
        let problem = Problem::at_key(key, "duplicate key").with_help(Some(format!(
            "the key is already set on line {first}; remove one of the two"
        )));
        self.diagnostic_at(range, problem)
    }

    fn syntax_error(&self, range: Range<usize>, error: &YamlError) -> Diagnostic {
        let text = error.to_string();
        let reason = match error {
            YamlError::MultipleDocuments { .. } => "expected a single document, found another",
            YamlError::Budget { .. }
            | YamlError::AliasReplayLimitExceeded { .. }
            | YamlError::AliasReplayStackDepthExceeded { .. } => {
                "too large, too deeply nested, or too many aliases"
            }
            _ => text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]),
        };
        let line_start = self.text[..range.start.min(self.text.len())]
            .rfind('\n')
            .map_or(0, |newline| newline + 1);
        let line = self.text[line_start..].lines().next().unwrap_or_default();
        let indentation = line.len() - line.trim_start().len();
        if line[..indentation].contains('\t') {
            let tabs = line_start..line_start + indentation;
            let message = "invalid YAML: the line is indented with a tab";
            return Diagnostic::new(self.file, self.text, tabs, message)
                .with_help(Some("indent with spaces".to_owned()));
        }
        Diagnostic::new(self.file, self.text, range, format!("invalid YAML: {reason}"))
            .with_help(Some(syntax_help(error, reason).to_owned()))
    }
}

/// Whether a problem has another cause than that an earlier value was left out.
fn is_independent(problems: &[Diagnostic], next: &Diagnostic) -> bool {
    let is_new = problems.iter().all(|known| known.line != next.line);
    let is_syntax = problems
        .iter()
        .chain([next])
        .any(|problem| problem.message.starts_with("invalid YAML"));
    is_new && !is_syntax && !next.message.contains(": missing ")
}

fn syntax_help(error: &YamlError, reason: &str) -> &'static str {
    match error {
        YamlError::MultipleDocuments { .. } => "remove the `---` and everything after it",
        YamlError::Budget { .. }
        | YamlError::AliasReplayLimitExceeded { .. }
        | YamlError::AliasReplayStackDepthExceeded { .. } => "write the values out instead of using aliases",
        YamlError::UnknownAnchor { .. } => "quote strings that start with `*`",
        YamlError::UnsupportedTag { .. } => "quote strings that start with `!`",
        _ if reason.contains("expected key") || reason.contains("indentation") => {
            "check for an unclosed quote, and compare the indentation with the lines around it"
        }
        _ => "quote strings that contain `: ` or ` #`, or that start with a special character",
    }
}

fn missing_value(key: &str) -> Problem {
    Problem::at_key(key, "missing value").with_help(Some("set a value, or remove the key".to_owned()))
}

fn top_level_mismatch(text: &str) -> Problem {
    let kind = if text.trim_start().starts_with(['-', '[']) {
        "a list"
    } else {
        "a string"
    };
    let expected = Expected::Mapping;
    let message = format!("expected {} at the top level, found {kind}", expected.phrase());
    Problem::at_value("", message).with_help(Some(expected.structure_help(expected).to_owned()))
}

/// The section that defines a key.
fn section_of(field: &str) -> Option<&'static str> {
    let schema = serde_json::to_value(PartialSettings::default()).unwrap_or(Value::Null);
    let defines = |section: &str| {
        !["extra_args", "extra_gates"].contains(&field) && schema[section].get(field).is_some()
    };
    ["cli", "event_loop"].into_iter().find(|section| defines(section))
}

fn unknown_value(key: &str, word: &str, known: &[&str]) -> Problem {
    Problem::at_value(key, format!("expected {}, found {}", one_of(known), quoted(word)))
        .with_help(closest(word, known).map(|meant| format!("did you mean `{meant}`?")))
}
