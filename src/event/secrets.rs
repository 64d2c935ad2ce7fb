//! What must not be written down: the values of the environment's secrets, and what looks like a key of a known kind.

use std::ffi::OsString;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use super::{Json, Meta, RunEvent, TranscriptEvent};

/// What stands in a secret's place.
const REDACTED: &str = "[redacted]";
/// Variables whose names end like this hold secrets.
const SECRET_NAMES: [&str; 3] = ["_API_KEY", "_TOKEN", "_SECRET"];
/// Shorter values are no secrets, and would be found everywhere.
const SHORTEST_VALUE: usize = 6;
/// Our own fields that hold one word of a fixed set. Whatever a secret is, they stay what they are.
const WORDS: [&str; 10] = [
    "type", "kind", "tag", "flow", "scope", "status", "outcome", "level", "class", "order",
];

/// What a tool was given: all of it is the agent's, whatever its fields are called.
const INPUT: &str = "input";

/// Who has named the fields of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Ours,
    Agents,
}

/// How keys of a known kind begin, and how many letters of a key must follow at least.
const SHAPES: &[(&str, usize)] = &[
    ("sk-ant-", 20),
    ("sk-proj-", 20),
    ("sk-or-", 20),
    ("sk-", 32),
    ("AIza", 35),
    ("AKIA", 16),
    ("ASIA", 16),
    ("ghp_", 36),
    ("gho_", 36),
    ("ghu_", 36),
    ("ghs_", 36),
    ("ghr_", 36),
    ("github_pat_", 40),
    ("glpat-", 20),
    ("npm_", 36),
    ("hf_", 30),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("xapp-", 20),
];
const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "-----END ";
const PRIVATE: &str = "PRIVATE KEY-----";

/// Finds secrets in whatever is about to be written.
#[derive(Debug, Clone)]
pub struct Secrets {
    /// The values, then the shapes, then the beginning of a private key.
    finder: AhoCorasick,
    values: usize,
    /// No secret has fewer bytes.
    shortest: usize,
    /// A value has letters that JSON writes in another way.
    escaped: bool,
}

impl Secrets {
    /// Those of this environment, and those of a known shape.
    pub fn of(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let is_secret = |name: &OsString| {
            let name = name.to_string_lossy().to_ascii_uppercase();
            SECRET_NAMES.iter().any(|ending| name.ends_with(ending))
        };
        let mut values: Vec<String> = environment
            .into_iter()
            .filter(|(name, _)| is_secret(name))
            .map(|(_, value)| value.to_string_lossy().trim().to_owned())
            .filter(|value| value.len() >= SHORTEST_VALUE)
            .collect();
        // One may contain another.
        values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        let shapes = SHAPES.iter().map(|(prefix, _)| *prefix);
        let patterns = values
            .iter()
            .map(String::as_str)
            .chain(shapes)
            .chain([KEY_BEGINS]);
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(patterns)
            .expect("an environment has far fewer letters than an automaton may have states");
        let needs_escape = |letter: char| letter < ' ' || matches!(letter, '"' | '\\');
        Self {
            finder,
            values: values.len(),
            shortest: values
                .iter()
                .map(String::len)
                .chain(SHAPES.iter().map(|(prefix, rest)| prefix.len() + rest))
                .chain([KEY_BEGINS.len()])
                .min()
                .unwrap_or(0),
            escaped: values.iter().any(|value| value.contains(needs_escape)),
        }
    }

    /// The event as it may be written down.
    pub fn redact(&self, mut event: RunEvent) -> RunEvent {
        if let Some(text) = long_text_of(&mut event) {
            *text = self.redact_text(std::mem::take(text));
            return event;
        }
        if !self.may_be_in(&event) {
            return event;
        }
        let clean = || -> serde_json::Result<Option<RunEvent>> {
            let mut value: Value = serde_json::from_slice(&serde_json::to_vec(&event)?)?;
            if !self.clean(&mut value, Whose::Ours) {
                return Ok(None);
            }
            serde_json::from_slice(&serde_json::to_vec(&value)?).map(Some)
        };
        clean().ok().flatten().unwrap_or(event)
    }

    /// A quick look, right about most events, which have no secret.
    fn may_be_in(&self, event: &RunEvent) -> bool {
        match texts_of(event) {
            Some((texts, input)) => {
                let mut texts = texts.into_iter().flatten();
                texts.any(|text| self.seems_to_be_in(text.as_bytes()))
                    || input.is_some_and(|json| self.may_be_in_json(json.as_str().as_bytes()))
            }
            None => serde_json::to_vec(event).map_or(true, |written| self.may_be_in_json(&written)),
        }
    }

    /// Where JSON may hide a letter of one (an agent writes a tool's input as it likes), a look is not to be relied upon.
    fn may_be_in_json(&self, json: &[u8]) -> bool {
        let hides =
            || memchr::memchr_iter(b'\\', json).any(|at| matches!(json.get(at + 1), Some(b'u' | b'/')));
        self.escaped || self.seems_to_be_in(json) || hides()
    }

    fn seems_to_be_in(&self, text: &[u8]) -> bool {
        text.len() >= self.shortest && self.finder.is_match(text)
    }

    /// The text as it may be shown.
    pub fn redact_text(&self, text: String) -> String {
        self.left_out(&text).unwrap_or(text)
    }

    /// Leaves secrets out of every text in an event; tells whether there was one.
    fn clean(&self, value: &mut Value, whose: Whose) -> bool {
        match value {
            Value::String(text) => self.left_out(text).map(|clean| *text = clean).is_some(),
            Value::Array(items) => items
                .iter_mut()
                .fold(false, |found, item| self.clean(item, whose) | found),
            Value::Object(members) => members.iter_mut().fold(false, |found, (name, member)| {
                let is_word = member.is_string() && WORDS.contains(&name.as_str());
                let whose = if name == INPUT { Whose::Agents } else { whose };
                found | (!(is_word && whose == Whose::Ours) && self.clean(member, whose))
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// The text without its secrets, if it has any.
    fn left_out(&self, text: &str) -> Option<String> {
        if text.len() < self.shortest {
            return None;
        }
        let mut clean = String::new();
        let mut done = 0;
        for found in self.finder.find_iter(text) {
            if found.start() < done {
                continue;
            }
            let Some(end) = self.end_of(text, found.pattern().as_usize(), found.start(), found.end()) else {
                continue;
            };
            clean.push_str(&text[done..found.start()]);
            clean.push_str(REDACTED);
            done = end;
        }
        (done > 0).then(|| {
            clean.push_str(&text[done..]);
            clean
        })
    }

    /// Where the secret ends that seems to begin here, if it is one.
    fn end_of(&self, text: &str, pattern: usize, start: usize, prefix_end: usize) -> Option<usize> {
        let Some(shape) = pattern.checked_sub(self.values) else {
            return Some(prefix_end);
        };
        match SHAPES.get(shape) {
            Some((_, shortest)) => {
                // `task-` is not the beginning of a key.
                let begins_a_word = !text[..start].ends_with(|letter: char| letter.is_alphanumeric());
                let rest = &text[prefix_end..];
                let length = rest.find(|letter| !is_of_a_key(letter)).unwrap_or(rest.len());
                (begins_a_word
                    && length >= *shortest
                    && rest[..length].contains(|letter: char| letter.is_ascii_digit()))
                .then_some(prefix_end + length)
            }
            None => {
                let line = text[prefix_end..].lines().next().unwrap_or_default();
                if !line.contains(PRIVATE) {
                    return None;
                }
                let rest = &text[prefix_end..];
                let end = rest.find(KEY_ENDS).and_then(|at| {
                    let last = at + KEY_ENDS.len();
                    rest[last..]
                        .find("-----")
                        .map(|dashes| last + dashes + "-----".len())
                });
                Some(prefix_end + end.unwrap_or(rest.len()))
            }
        }
    }
}

fn is_of_a_key(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'
}

/// All texts of what agents do by the thousand or say at length, and what a tool was given. Other events are looked at
/// as they will be written.
fn texts_of(event: &RunEvent) -> Option<([Option<&str>; 3], Option<&Json>)> {
    let RunEvent::Transcript { event, .. } = event else {
        return None;
    };
    match event {
        TranscriptEvent::ToolStart { tool } => {
            let texts = [Some(&*tool.id), Some(&*tool.name), tool.parent.as_deref()];
            Some((texts, tool.input.as_ref()))
        }
        TranscriptEvent::ToolEnd { tool } => Some(([Some(&*tool.id), None, None], None)),
        TranscriptEvent::Usage { usage } => Some(([usage.model.as_deref(), None, None], None)),
        TranscriptEvent::Meta {
            meta: Meta::Finished { reason, text, .. },
        } => Some(([reason.as_deref(), text.as_deref(), None], None)),
        TranscriptEvent::Text { .. } | TranscriptEvent::ToolOutput { .. } | TranscriptEvent::Meta { .. } => {
            None
        }
    }
}

/// What agents print by the megabyte: looked at as it is, without a detour.
fn long_text_of(event: &mut RunEvent) -> Option<&mut String> {
    match event {
        RunEvent::Stderr { text, .. }
        | RunEvent::Transcript {
            event: TranscriptEvent::Text { text, .. } | TranscriptEvent::ToolOutput { text, .. },
            ..
        } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Flow, Tag, ToolStart};
    use serde_json::json;

    fn secrets(variables: &[(&str, &str)]) -> Secrets {
        let variables = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Secrets::of(variables)
    }

    fn call_with(input: Json) -> RunEvent {
        let tool = ToolStart {
            id: "1".to_owned(),
            name: "Bash".to_owned(),
            input: Some(input),
            parent: None,
        };
        RunEvent::Transcript {
            iteration: 1,
            event: TranscriptEvent::ToolStart { tool },
        }
    }

    fn left_out(text: &str) -> String {
        let secrets = secrets(&[
            ("MY_API_KEY", "sk-123456"),
            ("other_token", "sk-123456-longer"),
            ("MY_SECRET", "short"),
            ("HOME", "/home/me"),
            ("A_TOKEN", "transcript"),
        ]);
        secrets.left_out(text).unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn values_of_secret_variables_are_left_out_wherever_they_stand() {
        assert_eq!(
            left_out("x sk-123456 y sk-123456-longer"),
            "x [redacted] y [redacted]"
        );
        assert_eq!(left_out("/home/me is short"), "/home/me is short");
    }

    #[test]
    fn keys_of_known_shapes_are_left_out_and_what_only_looks_like_one_is_not() {
        let key = "a1".repeat(20);
        for prefix in ["sk-ant-api03-", "ghp_", "AIza", "github_pat_", "xoxb-"] {
            assert_eq!(
                left_out(&format!("\"{prefix}{key}\" is it")),
                "\"[redacted]\" is it"
            );
        }
        for harmless in [
            "the sk- prefix",
            "task-0123456789012345678901234567890123456789",
            "sk-this-is-only-a-long-name-with-many-words-in-it",
            "AKIAshort1",
            "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        ] {
            assert_eq!(left_out(harmless), harmless);
        }
    }

    #[test]
    fn a_private_key_is_left_out_to_its_end_or_to_that_of_the_text() {
        let key = "see:\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nand on";
        assert_eq!(left_out(key), "see:\n[redacted]\nand on");
        assert_eq!(left_out(&key[..50]), "see:\n[redacted]");
    }

    #[test]
    fn events_stay_events_whatever_the_secret_is() {
        let secrets = secrets(&[
            ("A_TOKEN", "transcript"),
            ("B_TOKEN", "tool_start"),
            ("C_SECRET", "hunter2hunter2"),
        ]);
        let call = call_with(Json::from(
            json!({"type": "hunter2hunter2", "command": "login hunter2hunter2", "n": [1, "transcript"]}),
        ));
        let clean = serde_json::to_value(secrets.redact(call)).expect("an event is JSON");
        let input = json!({"type": "[redacted]", "command": "login [redacted]", "n": [1, "[redacted]"]});
        assert_eq!(clean["event"]["tool"]["input"], input);
        assert_eq!(clean["type"], "transcript");
    }

    #[test]
    fn a_secret_is_found_however_json_writes_it() {
        let values = ["quote\"and\\slash", "https://token/of/mine"];
        let secrets = secrets(&[("A_SECRET", values[0]), ("B_TOKEN", values[1])]);
        for input in [
            r#"{"a":"quote\"and\\slash"}"#,
            r#"{"a":"https:\/\/token\/of\/mine"}"#,
            r#"{"a":"\u0068ttps://token/of/mine"}"#,
        ] {
            let raw: &serde_json::value::RawValue = serde_json::from_str(input).expect("JSON");
            let clean =
                serde_json::to_value(secrets.redact(call_with(Json::from(raw)))).expect("an event is JSON");
            assert_eq!(clean["event"]["tool"]["input"]["a"], "[redacted]");
        }
    }

    #[test]
    fn an_event_without_a_secret_is_the_same_event() {
        let event = RunEvent::Transcript {
            iteration: 1,
            event: TranscriptEvent::Text {
                tag: Tag::Ai,
                text: "nothing to hide".to_owned(),
                flow: Flow::Message,
                parent: None,
            },
        };
        assert_eq!(secrets(&[]).redact(event.clone()), event);
    }
}
