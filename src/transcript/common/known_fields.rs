//! Compares the fields of an agent's events with those in the captured output, which `known_fields.txt` lists.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::value::RawValue;

use super::string;
use crate::event::{Meta, TranscriptEvent, UnknownPart};
use crate::transcript::Adapter;

/// One line for each event type of a format: format, type, fields. Subtypes of a type share their fields.
const KNOWN: &str = include_str!("known_fields.txt");
/// The lines of an attempt that are compared. New fields appear early, and comparing has a cost.
const MAX_LINES: usize = 200;

/// Reports each unknown field of the first lines once, and passes all lines on.
pub(in crate::transcript) struct KnownFields {
    inner: Box<dyn Adapter>,
    /// The fields by event type.
    known: HashMap<&'static str, BTreeSet<&'static str>>,
    reported: BTreeSet<String>,
    lines: usize,
}

impl KnownFields {
    /// Wraps the adapter of a format; returns it unchanged if its fields are not listed.
    pub(in crate::transcript) fn around(format: &str, inner: Box<dyn Adapter>) -> Box<dyn Adapter> {
        let rows = KNOWN.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let known: HashMap<_, _> = rows
            .filter(|row| row.len() > 1 && row[0] == format)
            .map(|row| (row[1], row[2..].iter().copied().collect()))
            .collect();
        if known.is_empty() {
            return inner;
        }
        Box::new(Self {
            inner,
            known,
            reported: BTreeSet::new(),
            lines: 0,
        })
    }

    fn compare(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        let Some((event, fields)) = event_fields(line) else {
            return;
        };
        // The adapter reports an unknown type.
        let kind = event.split('/').next().unwrap_or_default();
        let Some(known) = self.known.get(kind) else {
            return;
        };
        for field in fields.iter().filter(|field| !known.contains(field.as_str())) {
            let name = format!("{event}.{field}");
            if self.reported.insert(name.clone()) {
                let part = UnknownPart::Field;
                out.push(TranscriptEvent::meta(Meta::Unknown { part, name }));
            }
        }
    }
}

impl Adapter for KnownFields {
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        if self.lines < MAX_LINES {
            self.lines += 1;
            self.compare(line, out);
        }
        self.inner.feed(line, out);
    }

    fn flush(&mut self, out: &mut Vec<TranscriptEvent>) {
        self.inner.flush(out);
    }
}

/// The type of an event and the names of its fields.
fn event_fields(line: &str) -> Option<(String, Vec<String>)> {
    if !line.starts_with('{') {
        return None;
    }
    let object: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(line).ok()?;
    let kinds = ["type", "role", "subtype"].into_iter();
    let kinds: Vec<Cow<'_, str>> = kinds.filter_map(|key| string(object.get(key).copied())).collect();
    let is_name = |text: &str| !text.is_empty() && text.len() <= 64 && !text.contains(char::is_whitespace);
    let event = kinds.join("/");
    let fields = object
        .keys()
        .filter(|key| is_name(key))
        .map(|key| key.clone().into_owned());
    is_name(&event).then(|| (event, fields.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{AdapterContext, find};

    fn unknown(lines: &[&str]) -> Vec<String> {
        let context = AdapterContext::new("");
        let adapter = (find("claude").unwrap().open)(&context);
        let (mut adapter, mut out) = (KnownFields::around("claude", adapter), Vec::new());
        lines.iter().for_each(|line| adapter.feed(line, &mut out));
        let names = out.into_iter().filter_map(|event| match event {
            TranscriptEvent::Meta {
                meta: Meta::Unknown { name, .. },
            } => Some(name),
            _ => None,
        });
        names.collect()
    }

    #[test]
    fn an_unknown_field_is_reported_once() {
        let line = r#"{"type":"result","subtype":"success","result":"x","hologram":{"type":"y"}}"#;
        assert_eq!(unknown(&[line, line]), ["result/success.hologram"]);
        assert_eq!(
            unknown(&[r#"{"type":"result","subtype":"success","result":"x"}"#]),
            [""; 0]
        );
    }

    #[test]
    fn an_unknown_type_is_reported_by_the_adapter_alone() {
        assert_eq!(unknown(&[r#"{"type":"hologram","a":1}"#]), ["hologram"]);
    }

    #[test]
    fn text_is_not_compared() {
        assert_eq!(unknown(&["plain", "", "[1]", "{", r#"{"a":1}"#]), [""; 0]);
    }
}
