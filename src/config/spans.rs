//! The location of each key in a YAML text, for error messages and origins: `event_loop.max_iterations` ↔ bytes
//! 14..28.

use std::ops::Range;

use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, Span};

/// The schema needs five levels. Deeper nodes are errors, which are reported at their ancestor.
const MAX_DEPTH: usize = 12;

/// Every key and list item of a text, in document order.
#[derive(Debug, Clone, Default)]
pub(super) struct Spans {
    entries: Vec<SpanEntry>,
}

/// One `key: value` pair or list item.
#[derive(Debug, Clone)]
pub(super) struct SpanEntry {
    /// Dotted key with zero-based list indices: `gates[1].run`.
    pub(super) key: String,
    /// The location of the last part of the key. For a list item, the location of its value.
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
    /// Line of the name, 1-based.
    pub(super) line: usize,
    pub(super) kind: NodeKind,
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// No value, `~`, or `null`.
    Null,
    Scalar,
    List,
    Mapping,
}

impl Spans {
    /// Parses the text up to the first syntax error.
    pub(super) fn of(text: &str) -> Self {
        let mut builder = SpanBuilder::default();
        // Comments have no entries, and many of them would exceed the parser's limits.
        let options = granit_parser::options! { emit_comments: false };
        for step in Parser::new_from_str_with_options(text, options) {
            let Ok((event, span)) = step else { break };
            if builder.handle_event(&event, &span).is_none() || builder.open.len() > MAX_DEPTH {
                break;
            }
        }
        Self {
            entries: builder.entries,
        }
    }

    pub(super) fn entries(&self) -> &[SpanEntry] {
        &self.entries
    }

    pub(super) fn find(&self, key: &str) -> Option<&SpanEntry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The innermost entry that contains the byte.
    pub(super) fn at(&self, offset: usize) -> Option<&SpanEntry> {
        let touches =
            |range: &Range<usize>| range.contains(&offset) || (range.is_empty() && range.start == offset);
        self.entries
            .iter()
            .rev()
            .find(|entry| touches(&entry.name) || touches(&entry.value))
    }

    /// The outermost entry whose value starts at the byte. A block mapping starts at the name of its first key.
    pub(super) fn of_value_at(&self, offset: usize) -> Option<&SpanEntry> {
        self.entries.iter().find(|entry| entry.value.start == offset)
    }

    /// The entry of the key, or of its nearest ancestor if the value comes from an alias.
    pub(super) fn nearest(&self, key: &str) -> Option<&SpanEntry> {
        let mut key = key;
        loop {
            if let Some(entry) = self.find(key) {
                return Some(entry);
            }
            key = parent(key)?;
        }
    }
}

/// The enclosing key: `gates` for `gates[1]`, `gates[1]` for `gates[1].run`.
pub(super) fn parent(key: &str) -> Option<&str> {
    key.rfind(['.', '[']).map(|end| &key[..end])
}

/// Builds the entries from parser events.
#[derive(Default)]
struct SpanBuilder {
    entries: Vec<SpanEntry>,
    open: Vec<OpenNode>,
}

/// A mapping or list whose end has not been parsed yet.
struct OpenNode {
    key: String,
    /// Its index in `entries`; `None` for the document itself.
    entry: Option<usize>,
    children: Children,
}

enum Children {
    Mapping { pending_name: Option<KeyName> },
    List { count: usize },
}

/// The name of a key whose value has not been parsed yet.
struct KeyName {
    key: String,
    range: Range<usize>,
    line: usize,
}

impl SpanBuilder {
    /// Returns `None` to stop parsing at a key that is a list or a mapping.
    fn handle_event(&mut self, event: &Event<'_>, span: &Span) -> Option<()> {
        let range = span.byte_range()?;
        match event {
            Event::Scalar(text, style, ..) => {
                let is_name = self.take_name(text, span);
                if !is_name {
                    self.add_entry(span, scalar_kind(text, *style));
                }
            }
            Event::Alias(_) => {
                self.add_entry(span, NodeKind::Scalar);
            }
            Event::SequenceStart(..) => self.open_node(span, NodeKind::List, Children::List { count: 0 })?,
            Event::MappingStart(..) => {
                let children = Children::Mapping { pending_name: None };
                self.open_node(span, NodeKind::Mapping, children)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let closed = self.open.pop()?;
                if let Some(entry) = closed.entry.and_then(|index| self.entries.get_mut(index)) {
                    entry.value.end = range.end.max(entry.value.start);
                }
            }
            // Start and end of the stream and the document.
            _ => {}
        }
        Some(())
    }

    /// In a mapping, every other scalar is a key name. Returns false for values.
    fn take_name(&mut self, text: &str, span: &Span) -> bool {
        let Some(OpenNode { key, children, .. }) = self.open.last_mut() else {
            return false;
        };
        match children {
            Children::Mapping { pending_name } if pending_name.is_none() => {
                let dot = if key.is_empty() { "" } else { "." };
                *pending_name = Some(KeyName {
                    key: format!("{key}{dot}{text}"),
                    range: span.byte_range().unwrap_or_default(),
                    line: span.start.line(),
                });
                true
            }
            Children::Mapping { .. } | Children::List { .. } => false,
        }
    }

    fn open_node(&mut self, span: &Span, kind: NodeKind, children: Children) -> Option<()> {
        if let Some(Children::Mapping { pending_name: None }) = self.open.last().map(|open| &open.children) {
            return None;
        }
        let entry = self.add_entry(span, kind);
        let key = entry
            .map(|index| self.entries[index].key.clone())
            .unwrap_or_default();
        self.open.push(OpenNode { key, entry, children });
        Some(())
    }

    /// Adds an entry for a value. The document itself has no entry.
    fn add_entry(&mut self, span: &Span, kind: NodeKind) -> Option<usize> {
        let value = span.byte_range()?;
        let open = self.open.last_mut()?;
        let name = match &mut open.children {
            Children::Mapping { pending_name } => pending_name.take()?,
            Children::List { count } => {
                *count += 1;
                KeyName {
                    key: format!("{}[{}]", open.key, *count - 1),
                    range: value.clone(),
                    line: span.start.line(),
                }
            }
        };
        self.entries.push(SpanEntry {
            key: name.key,
            name: name.range,
            value,
            line: name.line,
            kind,
        });
        Some(self.entries.len() - 1)
    }
}

fn scalar_kind(text: &str, style: ScalarStyle) -> NodeKind {
    let is_null = style == ScalarStyle::Plain && matches!(text, "" | "~" | "null" | "Null" | "NULL");
    if is_null { NodeKind::Null } else { NodeKind::Scalar }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "cli:\n  args: [a, b]\ngates:\n- name: ü\n  run: x\n- name: y\nsession:\n";

    #[test]
    fn every_key_and_item_has_an_entry() {
        let spans = Spans::of(TEXT);
        let keys: Vec<_> = spans.entries().iter().map(|entry| entry.key.as_str()).collect();
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
        let entry = spans.find("gates[0].name").unwrap();
        assert_eq!(
            (&TEXT[entry.name.clone()], &TEXT[entry.value.clone()]),
            ("name", "ü")
        );
        let list = spans.find("cli.args").unwrap();
        assert_eq!((&TEXT[list.value.clone()], list.kind), ("[a, b]", NodeKind::List));
        let session = spans.find("session").unwrap();
        assert_eq!((session.kind, session.line), (NodeKind::Null, 7));
    }

    #[test]
    fn byte_belongs_to_the_innermost_entry() {
        let spans = Spans::of(TEXT);
        let at = |needle| spans.at(TEXT.find(needle).unwrap()).unwrap().key.clone();
        assert_eq!(at("b]"), "cli.args[1]");
        assert_eq!(at("args"), "cli.args");
        assert_eq!(at("run"), "gates[0].run");
    }

    #[test]
    fn unknown_key_resolves_to_its_ancestor() {
        let spans = Spans::of(TEXT);
        assert_eq!(spans.nearest("gates[1].timeout").unwrap().key, "gates[1]");
        assert!(spans.nearest("pricing").is_none());
    }

    #[test]
    fn entries_before_a_syntax_error_are_kept() {
        let spans = Spans::of("cli:\n  model: x\nsession: [fresh\n");
        assert!(spans.find("cli.model").is_some());
    }

    #[test]
    fn closing_bracket_in_the_first_column_closes_only_its_list() {
        let spans = Spans::of("cli: {\n  args: [\n    a\n]\n}\nsession: fresh\n");
        assert_eq!(spans.find("session").unwrap().line, 6);
    }

    #[test]
    fn deep_nesting_is_cut_off() {
        assert!(Spans::of(&"- ".repeat(100_000)).entries().len() <= MAX_DEPTH);
    }
}
