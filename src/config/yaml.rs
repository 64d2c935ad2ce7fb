//! One YAML text becomes one `Partial`, or one `Diagnostic` that says what to write instead. The parser's own words
//! are translated here and appear nowhere else.

use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::{Error as YamlError, Location};

use super::diagnostic::{About, Diagnostic, Problem, closest, one_of, quoted, suggestion};
use super::expected::Expected;
use super::partial::Partial;
use super::spans::{Entry, Kind, Spans, parent};

/// A text that was read from a file, and where everything in it stands.
pub(super) struct Document<'a> {
    file: &'a Path,
    text: &'a str,
    outline: Spans,
    subject: Subject,
}

/// What a file is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Wishes,
    Prices,
    Suite,
}

impl Subject {
    fn expects(self, key: &str) -> Expected {
        match self {
            Self::Wishes => Expected::of(key),
            Self::Prices => Expected::of_price(key),
            Self::Suite => Expected::of_suite(key),
        }
    }
}

impl<'a> Document<'a> {
    pub(super) fn new(file: &'a Path, text: &'a str) -> Self {
        Self::about(Subject::Wishes, file, text)
    }

    pub(super) fn of_prices(file: &'a Path, text: &'a str) -> Self {
        Self::about(Subject::Prices, file, text)
    }

    pub(super) fn of_suite(file: &'a Path, text: &'a str) -> Self {
        Self::about(Subject::Suite, file, text)
    }

    fn about(subject: Subject, file: &'a Path, text: &'a str) -> Self {
        // A byte order mark is not part of what was written.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self {
            file,
            text,
            outline: Spans::of(text),
            subject,
        }
    }

    pub(super) fn read<T: DeserializeOwned + Default>(&self) -> Result<T, Box<Diagnostic>> {
        let options = serde_saphyr::options! {
            strict_booleans: true,
            reject_unsupported_tags: true,
            with_snippet: false,
            // Generous for a person, tight for a bomb: an alias may repeat a text of the size of the file.
            budget: serde_saphyr::budget! { max_aliases: 100, max_events: 200_000, max_documents: 2 },
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 10_000 },
        };
        let read: Result<Option<T>, _> = serde_saphyr::from_str_with_options(self.text, options);
        let said = read
            .map_err(|error| Box::new(self.explain(&error)))?
            .unwrap_or_default();
        self.forbid_empty_values()?;
        Ok(said)
    }

    /// What is left when the text itself is not needed any more.
    pub(super) fn into_outline(self) -> Spans {
        self.outline
    }

    /// Points at the key that a complaint names.
    pub(super) fn mistake(&self, complaint: Problem) -> Diagnostic {
        let range = self
            .outline
            .nearest(&complaint.key)
            .map_or(0..0, |entry| match complaint.about {
                About::Name => entry.name.clone(),
                About::Value => entry.value.clone(),
            });
        self.place(range, complaint)
    }

    fn place(&self, range: Range<usize>, complaint: Problem) -> Diagnostic {
        let subject = match complaint.key.as_str() {
            "" => "the file".to_owned(),
            key => format!("`{key}`"),
        };
        Diagnostic::new(
            self.file,
            self.text,
            range,
            format!("{subject} {}", complaint.problem),
        )
        .with_help(complaint.help)
    }

    /// A limit without a figure would be a run without that limit. An empty section is only an empty section.
    fn forbid_empty_values(&self) -> Result<(), Box<Diagnostic>> {
        let may_be_empty = |key: &str| key == "gates" || self.subject.expects(key) == Expected::Section;
        let empty = |entry: &&Entry| entry.kind == Kind::Nothing && !may_be_empty(&entry.key);
        match self.outline.entries().iter().find(empty) {
            Some(entry) => Err(Box::new(self.place(entry.name.clone(), no_value(&entry.key)))),
            None => Ok(()),
        }
    }

    fn explain(&self, error: &YamlError) -> Diagnostic {
        if let YamlError::AliasError { error, locations, .. } = error {
            // What is right where it was written is wrong where it is repeated: point there.
            return self.explain_at(self.range_of(locations.primary_location()), error);
        }
        self.explain_at(self.range_of(error.location()), error)
    }

    fn explain_at(&self, range: Range<usize>, error: &YamlError) -> Diagnostic {
        let entry = self.outline.at(range.start);
        match error {
            YamlError::SerdeUnknownField { field, expected, .. } => {
                // Behind an alias the field itself stands elsewhere, and the entry is the section around it.
                let key = match entry.map(|entry| entry.key.as_str()) {
                    Some(key) if key.ends_with(field.as_str()) => key.to_owned(),
                    Some(section) => format!("{section}.{field}"),
                    None => field.clone(),
                };
                self.place(range, self.unknown_key(&key, field, expected))
            }
            YamlError::SerdeUnknownVariant {
                variant, expected, ..
            } => {
                let key = entry.map_or("", |entry| &entry.key);
                self.place(range, unknown_word(key, variant, expected))
            }
            YamlError::SerdeMissingField { field, .. } => {
                let key = entry.and_then(|entry| parent(&entry.key)).unwrap_or_default();
                self.place(range, Problem::about_name(key, format!("has no `{field}`")))
            }
            YamlError::DuplicateMappingKey { .. } => self.given_twice(range),
            YamlError::InvalidScalar { .. }
            | YamlError::InvalidBooleanStrict { .. }
            | YamlError::Unexpected { .. }
            | YamlError::SerdeInvalidType { .. }
            | YamlError::SerdeInvalidValue { .. }
            | YamlError::NullIntoString { .. }
            | YamlError::ExternallyTaggedEnumExpectedScalarOrMapping { .. }
            | YamlError::UnexpectedValueForUnitEnumVariant { .. } => self.wrong_kind(range),
            other => self.not_yaml(range, other),
        }
    }

    fn unknown_key(&self, key: &str, field: &str, known: &[&str]) -> Problem {
        let home = match self.subject {
            Subject::Wishes => home_of(field),
            Subject::Suite if super::suite::is_limit(field) => Some("limits"),
            Subject::Prices | Subject::Suite => None,
        };
        let help = match home {
            Some(section) => format!("`{field}` belongs under `{section}:`"),
            None => suggestion(field, known),
        };
        Problem::about_name(key, "is not a known key").with_help(Some(help))
    }

    /// The bytes that the parser points at; for some errors it knows only line and column.
    fn range_of(&self, location: Option<Location>) -> Range<usize> {
        let Some(location) = location else {
            return 0..0;
        };
        let number = |figure: u64| usize::try_from(figure).unwrap_or(usize::MAX);
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

    fn wrong_kind(&self, range: Range<usize>) -> Diagnostic {
        let by_value = self.outline.of_value_at(range.start);
        let Some(entry) = by_value.or_else(|| self.outline.at(range.start)) else {
            return self.place(range, wrong_document(self.text));
        };
        let expected = self.subject.expects(&entry.key);
        let given = self.text.get(entry.value.clone()).unwrap_or_default().trim_end();
        let complaint = |given: &str| {
            Problem::about_value(
                &entry.key,
                format!("must be {}, but is {given}", expected.phrase()),
            )
        };
        match entry.kind {
            Kind::Nothing => self.place(entry.name.clone(), no_value(&entry.key)),
            Kind::Scalar => {
                let complaint = complaint(&quoted(given)).with_help(expected.correction(given));
                self.place(entry.value.clone(), complaint)
            }
            // Of a block that fills the lines below, the name is the better thing to underline.
            Kind::List if given.starts_with('[') => self.place(entry.value.clone(), complaint("a list")),
            Kind::List => self.place(entry.name.clone(), complaint("a list")),
            Kind::Section if given.starts_with('{') => {
                self.place(entry.value.clone(), complaint("a section"))
            }
            Kind::Section => self.place(entry.name.clone(), complaint("a section")),
        }
    }

    fn given_twice(&self, range: Range<usize>) -> Diagnostic {
        let key = self.outline.at(range.start).map_or("", |entry| &entry.key);
        let first = self.outline.find(key).map_or(1, |entry| entry.line);
        let complaint = Problem::about_name(key, "is given twice").with_help(Some(format!(
            "it is already given in line {first}; keep one of the two"
        )));
        self.place(range, complaint)
    }

    fn not_yaml(&self, range: Range<usize>, error: &YamlError) -> Diagnostic {
        let said = error.to_string();
        let reason = match error {
            YamlError::MultipleDocuments { .. } => "a second document begins",
            YamlError::Budget { .. }
            | YamlError::AliasReplayLimitExceeded { .. }
            | YamlError::AliasReplayStackDepthExceeded { .. } => {
                "it is too long, too deep, or repeats too much"
            }
            _ => said.rfind(" at line ").map_or(said.as_str(), |end| &said[..end]),
        };
        let line_start = self.text[..range.start.min(self.text.len())]
            .rfind('\n')
            .map_or(0, |newline| newline + 1);
        let line = self.text[line_start..].lines().next().unwrap_or_default();
        let indentation = line.len() - line.trim_start().len();
        if line[..indentation].contains('\t') {
            let tabs = line_start..line_start + indentation;
            let message = "not valid YAML: the line is indented with a tab";
            return Diagnostic::new(self.file, self.text, tabs, message).with_help(Some(
                "indent with spaces; YAML does not allow tabs here".to_owned(),
            ));
        }
        Diagnostic::new(self.file, self.text, range, format!("not valid YAML: {reason}"))
            .with_help(Some(syntax_help(error, reason).to_owned()))
    }
}

fn syntax_help(error: &YamlError, reason: &str) -> &'static str {
    match error {
        YamlError::MultipleDocuments { .. } => {
            "one file holds one set of wishes: remove the `---` and what follows"
        }
        YamlError::Budget { .. }
        | YamlError::AliasReplayLimitExceeded { .. }
        | YamlError::AliasReplayStackDepthExceeded { .. } => "write the values out instead of using aliases",
        YamlError::UnknownAnchor { .. } => "a text that begins with `*` must be put in quotes",
        YamlError::UnsupportedTag { .. } => "a text that begins with `!` must be put in quotes",
        _ if reason.contains("expected key") || reason.contains("indentation") => {
            "is every quote closed, and is this line indented like its neighbours?"
        }
        _ => "YAML is read strictly: put a text in quotes when it holds `: ` or ` #`, or begins with a sign",
    }
}

fn no_value(key: &str) -> Problem {
    Problem::about_name(key, "has no value").with_help(Some("give it one, or remove the line".to_owned()))
}

fn wrong_document(text: &str) -> Problem {
    let kind = if text.trim_start().starts_with(['-', '[']) {
        "a list"
    } else {
        "a single text"
    };
    let problem = format!("must be {}, but is {kind}", Expected::Section.phrase());
    Problem::about_value("", problem)
}

/// The section in which a key would be right.
fn home_of(field: &str) -> Option<&'static str> {
    let schema = serde_json::to_value(Partial::default()).unwrap_or(Value::Null);
    let holds = |section: &str| field != "extra_args" && schema[section].get(field).is_some();
    ["cli", "event_loop"].into_iter().find(|section| holds(section))
}

fn unknown_word(key: &str, word: &str, known: &[&str]) -> Problem {
    Problem::about_value(key, format!("must be {}, but is {}", one_of(known), quoted(word)))
        .with_help(closest(word, known).map(|meant| format!("did you mean `{meant}`?")))
}
