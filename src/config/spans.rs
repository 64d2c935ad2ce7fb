//! Where each key of a YAML text stands: `event_loop.max_iterations` ↔ bytes 14..28. Values are not read here; that
//! is what the parser proper does. This is for pointing at things.

use std::ops::Range;

use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, Span};

/// Our own schema needs five levels. What is nested deeper is a mistake, and its place is its ancestor's.
const MAX_DEPTH: usize = 12;

/// Every key and every list item of one text, in reading order.
#[derive(Debug, Clone, Default)]
pub(super) struct Spans {
    entries: Vec<Entry>,
}

/// One `key: value`, or one item of a list.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Dotted, with list items counted from zero: `gates[1].run`.
    pub(super) key: String,
    /// The last part of the key as written; a list item's is its value.
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
    /// Of the name, from 1.
    pub(super) line: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing after the colon, `~`, or `null`.
    Nothing,
    Scalar,
    List,
    Section,
}

impl Spans {
    /// Reads as far as the text is YAML; the rest has no places.
    pub(super) fn of(text: &str) -> Self {
        let mut reading = Reading::default();
        // Comments are not entries, and a long run of them would exhaust the parser's patience.
        let options = granit_parser::options! { emit_comments: false };
        for step in Parser::new_from_str_with_options(text, options) {
            let Ok((event, span)) = step else { break };
            if reading.take(&event, &span).is_none() || reading.open.len() > MAX_DEPTH {
                break;
            }
        }
        Self {
            entries: reading.entries,
        }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn find(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The innermost entry that the byte belongs to.
    pub(super) fn at(&self, offset: usize) -> Option<&Entry> {
        let touches =
            |range: &Range<usize>| range.contains(&offset) || (range.is_empty() && range.start == offset);
        self.entries
            .iter()
            .rev()
            .find(|entry| touches(&entry.name) || touches(&entry.value))
    }

    /// The entry whose value begins at the byte. In a block that is also where the name of its first key begins.
    pub(super) fn of_value_at(&self, offset: usize) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.value.start == offset)
    }

    /// Where the key stands, or the nearest key around it (a value may have come in through an alias).
    pub(super) fn nearest(&self, key: &str) -> Option<&Entry> {
        let mut key = key;
        loop {
            if let Some(entry) = self.find(key) {
                return Some(entry);
            }
            key = parent(key)?;
        }
    }
}

/// `gates` of `gates[1]`, `gates[1]` of `gates[1].run`.
pub(super) fn parent(key: &str) -> Option<&str> {
    key.rfind(['.', '[']).map(|end| &key[..end])
}

#[derive(Default)]
struct Reading {
    entries: Vec<Entry>,
    open: Vec<Open>,
}

/// A section or list whose end was not seen yet.
struct Open {
    key: String,
    /// Its own place in `entries`; the document itself has none.
    entry: Option<usize>,
    inside: Inside,
}

enum Inside {
    Section { awaiting_value: Option<Name> },
    List { seen: usize },
}

struct Name {
    key: String,
    range: Range<usize>,
    line: usize,
}

impl Reading {
    /// `None` ends the reading: a key that is itself a list or a section names nothing.
    fn take(&mut self, event: &Event<'_>, span: &Span) -> Option<()> {
        let range = span.byte_range()?;
        match event {
            Event::Scalar(text, style, ..) => {
                let is_name = self.name_value(text, span);
                if !is_name {
                    self.note(span, scalar_kind(text, *style));
                }
            }
            Event::Alias(_) => {
                self.note(span, Kind::Scalar);
            }
            Event::SequenceStart(..) => self.enter(span, Kind::List, Inside::List { seen: 0 })?,
            Event::MappingStart(..) => {
                let inside = Inside::Section { awaiting_value: None };
                self.enter(span, Kind::Section, inside)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let closed = self.open.pop()?;
                if let Some(entry) = closed.entry.and_then(|index| self.entries.get_mut(index)) {
                    entry.value.end = range.end.max(entry.value.start);
                }
            }
            // The frame around the document.
            _ => {}
        }
        Some(())
    }

    /// In a section, every other scalar is the name of what follows.
    fn name_value(&mut self, text: &str, span: &Span) -> bool {
        let Some(Open { key, inside, .. }) = self.open.last_mut() else {
            return false;
        };
        match inside {
            Inside::Section { awaiting_value } if awaiting_value.is_none() => {
                let dot = if key.is_empty() { "" } else { "." };
                *awaiting_value = Some(Name {
                    key: format!("{key}{dot}{text}"),
                    range: span.byte_range().unwrap_or_default(),
                    line: span.start.line(),
                });
                true
            }
            Inside::Section { .. } | Inside::List { .. } => false,
        }
    }

    fn enter(&mut self, span: &Span, kind: Kind, inside: Inside) -> Option<()> {
        if let Some(Inside::Section { awaiting_value: None }) = self.open.last().map(|open| &open.inside) {
            return None;
        }
        let entry = self.note(span, kind);
        let key = entry
            .map(|index| self.entries[index].key.clone())
            .unwrap_or_default();
        self.open.push(Open { key, entry, inside });
        Some(())
    }

    /// Writes down a value under the name that it has here; the document as a whole has none.
    fn note(&mut self, span: &Span, kind: Kind) -> Option<usize> {
        let value = span.byte_range()?;
        let open = self.open.last_mut()?;
        let name = match &mut open.inside {
            Inside::Section { awaiting_value } => awaiting_value.take()?,
            Inside::List { seen } => {
                *seen += 1;
                Name {
                    key: format!("{}[{}]", open.key, *seen - 1),
                    range: value.clone(),
                    line: span.start.line(),
                }
            }
        };
        self.entries.push(Entry {
            key: name.key,
            name: name.range,
            value,
            line: name.line,
            kind,
        });
        Some(self.entries.len() - 1)
    }
}

fn scalar_kind(text: &str, style: ScalarStyle) -> Kind {
    let is_null = style == ScalarStyle::Plain && matches!(text, "" | "~" | "null" | "Null" | "NULL");
    if is_null { Kind::Nothing } else { Kind::Scalar }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "cli:\n  args: [a, b]\ngates:\n- name: ü\n  run: x\n- name: y\nsession:\n";

    #[test]
    fn every_key_and_item_has_its_place() {
        let outline = Spans::of(TEXT);
        let keys: Vec<_> = outline.entries().iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "cli",
                "cli.args",
                "cli.args[0]",
                "cli.args[1]",
                "gates",
                "gates[0]",
                "gates[0].name",
                "gates[0].run",
                "gates[1]",
                "gates[1].name",
                "session"
            ]
        );
        let entry = outline.find("gates[0].name").unwrap();
        assert_eq!(
            (&TEXT[entry.name.clone()], &TEXT[entry.value.clone()]),
            ("name", "ü")
        );
        let list = outline.find("cli.args").unwrap();
        assert_eq!((&TEXT[list.value.clone()], list.kind), ("[a, b]", Kind::List));
        let session = outline.find("session").unwrap();
        assert_eq!((session.kind, session.line), (Kind::Nothing, 7));
    }

    #[test]
    fn a_byte_belongs_to_the_innermost_entry() {
        let outline = Spans::of(TEXT);
        let at = |needle| outline.at(TEXT.find(needle).unwrap()).unwrap().key.clone();
        assert_eq!(at("b]"), "cli.args[1]");
        assert_eq!(at("args"), "cli.args");
        assert_eq!(at("run"), "gates[0].run");
    }

    #[test]
    fn an_unknown_key_is_found_at_its_ancestor() {
        let outline = Spans::of(TEXT);
        assert_eq!(outline.nearest("gates[1].timeout").unwrap().key, "gates[1]");
        assert!(outline.nearest("pricing").is_none());
    }

    #[test]
    fn a_broken_text_keeps_the_places_before_the_break() {
        let outline = Spans::of("cli:\n  model: x\nsession: [fresh\n");
        assert!(outline.find("cli.model").is_some());
    }

    #[test]
    fn a_bracket_closed_at_the_margin_ends_nothing_early() {
        let outline = Spans::of("cli: {\n  args: [\n    a\n]\n}\nsession: fresh\n");
        assert_eq!(outline.find("session").unwrap().line, 6);
    }

    #[test]
    fn absurd_nesting_is_cut_off() {
        assert!(Spans::of(&"- ".repeat(100_000)).entries().len() <= MAX_DEPTH);
    }
}
