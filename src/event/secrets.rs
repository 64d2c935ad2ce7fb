//! Redacts secrets in events: values of secret environment variables, and keys of known formats.

use std::ffi::OsString;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::{Map, Value};

use super::{Json, Meta, RunEvent, TranscriptEvent};

/// The replacement for a secret.
const REDACTED: &str = "[redacted]";
/// Variables whose names have one of these suffixes contain secrets.
const SECRET_SUFFIXES: [&str; 9] = [
    "_KEY",
    "_TOKEN",
    "_SECRET",
    "_PASSWORD",
    "_PASSWD",
    "_PASS",
    "_PAT",
    "_DSN",
    "_CREDENTIALS",
];
/// Other variables that contain secrets.
const SECRET_NAMES: [&str; 5] = [
    "DATABASE_URL",
    "REDIS_URL",
    "MONGODB_URI",
    "PGPASSWORD",
    "MYSQL_PWD",
];
/// A variable with names of further variables whose values are secret, separated by commas or spaces.
const SECRETS_VARIABLE: &str = "RALPH_SECRETS";
/// Shorter values are not treated as secrets: they would match everywhere.
const MIN_VALUE_LENGTH: usize = 6;
/// Fields of ralph's events that contain one of a fixed set of values. They are never redacted.
const KEYWORD_FIELDS: [&str; 10] = [
    "type", "kind", "tag", "flow", "scope", "status", "outcome", "level", "class", "order",
];

/// The field with a tool's input. The agent chooses its field names, so all of its fields are redacted.
const INPUT: &str = "input";

/// The origin of an object's field names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldOrigin {
    Ralph,
    Agent,
}

/// Prefixes of known key formats, and the minimum number of characters that follow them.
const KEY_FORMATS: &[(&str, usize)] = &[
    ("sk-ant-", 20),
    ("sk-proj-", 20),
    ("sk-or-", 20),
    ("sk-", 32),
    ("AIza", 35),
    ("AKIA", 16),
    ("ASIA", 16),
    ("ya29.", 30),
    ("sk_live_", 20),
    ("sk_test_", 20),
    ("rk_live_", 20),
    ("whsec_", 24),
    ("SG.", 40),
    ("dop_v1_", 60),
    ("shpat_", 32),
    ("pypi-", 50),
    ("xoxa-", 20),
    ("xoxr-", 20),
    ("xoxs-", 20),
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
const KEY_BEGIN: &str = "-----BEGIN ";
const KEY_END: &str = "-----END ";
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// Finds and redacts secrets.
#[derive(Debug, Clone)]
pub struct Secrets {
    /// The patterns are the values, then the key formats, then `KEY_BEGIN`.
    finder: AhoCorasick,
    value_count: usize,
    /// Length of the shortest secret in bytes.
    min_length: usize,
    /// At least one value contains characters that JSON escapes.
    needs_escaping: bool,
}

impl Secrets {
    /// Collects the secret values of the environment.
    pub fn from_env(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let environment: Vec<(String, String)> = environment
            .into_iter()
            .map(|(name, value)| {
                let name = name.to_string_lossy().to_ascii_uppercase();
                (name, value.to_string_lossy().trim().to_owned())
            })
            .collect();
        let further = environment.iter().find(|(name, _)| name == SECRETS_VARIABLE);
        let further = further.map_or("", |(_, names)| names).to_ascii_uppercase();
        let further: Vec<&str> = further.split([',', ' ']).collect();
        let is_secret = |name: &str| {
            let has_suffix = SECRET_SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
            has_suffix || SECRET_NAMES.contains(&name) || further.contains(&name)
        };
        let secret_part = |(name, value): &(String, String)| match is_secret(name) {
            true => Some(value.clone()),
            false => url_password(value).map(str::to_owned),
        };
        let mut values: Vec<String> = environment.iter().filter_map(secret_part).collect();
        // The password of a secret URL also appears alone, for example in an error message of a client.
        let passwords: Vec<String> = values
            .iter()
            .filter_map(|value| url_password(value).map(str::to_owned))
            .collect();
        values.extend(passwords);
        values.retain(|value| value.len() >= MIN_VALUE_LENGTH && !names_a_file(value));
        // One value may contain another: the longest is matched first.
        values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        let formats = KEY_FORMATS.iter().map(|(prefix, _)| *prefix);
        let patterns = values
            .iter()
            .map(String::as_str)
            .chain(formats)
            .chain([KEY_BEGIN]);
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(patterns)
            .expect("the environment is far smaller than the limits of the automaton");
        let needs_escape = |letter: char| letter < ' ' || matches!(letter, '"' | '\\');
        Self {
            finder,
            value_count: values.len(),
            min_length: values
                .iter()
                .map(String::len)
                .chain(KEY_FORMATS.iter().map(|(prefix, rest)| prefix.len() + rest))
                .chain([KEY_BEGIN.len()])
                .min()
                .unwrap_or(0),
            needs_escaping: values.iter().any(|value| value.contains(needs_escape)),
        }
    }

    /// Replaces all secrets in an event.
    pub fn redact(&self, mut event: RunEvent) -> RunEvent {
        if let Some(text) = long_text(&mut event) {
            *text = self.redact_text(std::mem::take(text));
            return event;
        }
        if !self.may_contain_secret(&event) {
            return event;
        }
        let clean = || -> serde_json::Result<Option<RunEvent>> {
            let mut value: Value = serde_json::from_slice(&serde_json::to_vec(&event)?)?;
            if !self.clean(&mut value, FieldOrigin::Ralph) {
                return Ok(None);
            }
            serde_json::from_slice(&serde_json::to_vec(&value)?).map(Some)
        };
        clean().ok().flatten().unwrap_or(event)
    }

    /// A fast check that is false for most events, because they contain no secret.
    fn may_contain_secret(&self, event: &RunEvent) -> bool {
        match short_texts(event) {
            Some((texts, input)) => {
                let mut texts = texts.into_iter().flatten();
                texts.any(|text| self.matches_pattern(text.as_bytes()))
                    || input.is_some_and(|json| self.json_may_contain_secret(json.as_str().as_bytes()))
            }
            None => serde_json::to_vec(event).map_or(true, |written| self.json_may_contain_secret(&written)),
        }
    }

    /// JSON can escape any character of a secret, so text with `\u` or `\/` always needs the full check.
    fn json_may_contain_secret(&self, json: &[u8]) -> bool {
        let has_escape =
            || memchr::memchr_iter(b'\\', json).any(|at| matches!(json.get(at + 1), Some(b'u' | b'/')));
        self.needs_escaping || self.matches_pattern(json) || has_escape()
    }

    fn matches_pattern(&self, text: &[u8]) -> bool {
        text.len() >= self.min_length && self.finder.is_match(text)
    }

    /// Replaces all secrets in a text.
    pub fn redact_text(&self, text: String) -> String {
        self.redacted(&text).unwrap_or(text)
    }

    /// Replaces all secrets in a JSON value. Returns whether it found any.
    fn clean(&self, value: &mut Value, origin: FieldOrigin) -> bool {
        match value {
            Value::String(text) => self.redacted(text).map(|clean| *text = clean).is_some(),
            Value::Array(items) => items
                .iter_mut()
                .fold(false, |found, item| self.clean(item, origin) | found),
            Value::Object(members) => {
                let mut found = members.iter_mut().fold(false, |found, (name, member)| {
                    let is_keyword = member.is_string() && KEYWORD_FIELDS.contains(&name.as_str());
                    let origin = if name == INPUT { FieldOrigin::Agent } else { origin };
                    found | (!(is_keyword && origin == FieldOrigin::Ralph) && self.clean(member, origin))
                });
                if origin == FieldOrigin::Agent {
                    found |= self.clean_names(members);
                }
                found
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Replaces all secrets in the names of fields. Names that become equal get a number.
    fn clean_names(&self, members: &mut Map<String, Value>) -> bool {
        if !members.keys().any(|name| self.redacted(name).is_some()) {
            return false;
        }
        for (name, member) in std::mem::take(members) {
            let clean = self.redacted(&name).unwrap_or(name);
            let mut unique = clean.clone();
            for number in 2.. {
                if !members.contains_key(&unique) {
                    break;
                }
                unique = format!("{clean} {number}");
            }
            members.insert(unique, member);
        }
        true
    }

    /// The redacted text; `None` if the text contains no secret.
    fn redacted(&self, text: &str) -> Option<String> {
        if text.len() < self.min_length {
            return None;
        }
        let mut clean = String::new();
        let mut done = 0;
        for found in self.finder.find_iter(text) {
            if found.start() < done {
                continue;
            }
            let Some(end) = self.secret_end(text, found.pattern().as_usize(), found.start(), found.end())
            else {
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

    /// The end of the secret that starts at `start`; `None` if it is not a secret.
    fn secret_end(&self, text: &str, pattern: usize, start: usize, prefix_end: usize) -> Option<usize> {
        let Some(format) = pattern.checked_sub(self.value_count) else {
            return Some(prefix_end);
        };
        match KEY_FORMATS.get(format) {
            Some((_, min_length)) => {
                // `task-…` contains `sk-` but is not a key.
                let starts_word = !text[..start].ends_with(|letter: char| letter.is_alphanumeric());
                let rest = &text[prefix_end..];
                let length = rest.find(|letter| !is_key_char(letter)).unwrap_or(rest.len());
                (starts_word
                    && length >= *min_length
                    && rest[..length].contains(|letter: char| letter.is_ascii_digit()))
                .then_some(prefix_end + length)
            }
            None => {
                let line = text[prefix_end..].lines().next().unwrap_or_default();
                if !line.contains(PRIVATE_KEY) {
                    return None;
                }
                let rest = &text[prefix_end..];
                let end = rest.find(KEY_END).and_then(|at| {
                    let last = at + KEY_END.len();
                    rest[last..]
                        .find("-----")
                        .map(|dashes| last + dashes + "-----".len())
                });
                Some(prefix_end + end.unwrap_or(rest.len()))
            }
        }
    }
}

/// The password in `scheme://user:password@host`.
fn url_password(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    Some(password).filter(|password| !password.is_empty())
}

/// Whether a value is a path, such as `SSH_KEY=/home/me/.ssh/id_ed25519`: it names the file of a secret, and is not a secret itself.
fn names_a_file(value: &str) -> bool {
    value.starts_with('/') && value.matches('/').count() > 1 && !value.ends_with('=')
}

fn is_key_char(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'
}

/// All texts of a frequent event, and the tool input. Other events are checked in their serialized form.
fn short_texts(event: &RunEvent) -> Option<([Option<&str>; 3], Option<&Json>)> {
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

/// The text of an event that may be very long. It is redacted directly, without serializing the event.
fn long_text(event: &mut RunEvent) -> Option<&mut String> {
    match event {
        RunEvent::Stderr { text, .. }
        | RunEvent::Transcript {
            event: TranscriptEvent::Text { text, .. } | TranscriptEvent::ToolOutput { text, .. },
            ..
        }
        | RunEvent::ReviewTranscript {
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
        Secrets::from_env(variables)
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

    fn redacted(text: &str) -> String {
        let secrets = secrets(&[
            ("MY_API_KEY", "sk-123456"),
            ("other_token", "sk-123456-longer"),
            ("MY_SECRET", "short"),
            ("HOME", "/home/me"),
            ("A_TOKEN", "transcript"),
        ]);
        secrets.redacted(text).unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn values_of_secret_variables_are_redacted() {
        assert_eq!(
            redacted("x sk-123456 y sk-123456-longer"),
            "x [redacted] y [redacted]"
        );
        assert_eq!(redacted("/home/me is short"), "/home/me is short");
    }

    #[test]
    fn keys_of_known_formats_are_redacted_and_similar_texts_are_not() {
        let key = "a1".repeat(20);
        for prefix in ["sk-ant-api03-", "ghp_", "AIza", "github_pat_", "xoxb-"] {
            assert_eq!(
                redacted(&format!("\"{prefix}{key}\" is it")),
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
            assert_eq!(redacted(harmless), harmless);
        }
    }

    #[test]
    fn private_key_is_redacted_to_its_end_or_to_the_end_of_the_text() {
        let key = "see:\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nand on";
        assert_eq!(redacted(key), "see:\n[redacted]\nand on");
        assert_eq!(redacted(&key[..50]), "see:\n[redacted]");
    }

    #[test]
    fn passwords_in_many_kinds_of_variables_are_redacted() {
        let secrets = secrets(&[
            ("STRIPE_KEY", "value-one"),
            ("DB_PASSWORD", "value-two"),
            ("GH_PAT", "value-three"),
            ("SENTRY_DSN", "https://abcdef123@sentry.io/5"),
            ("DATABASE_URL", "postgres://me:hunter2hunter2@db/x"),
            ("HTTPS_PROXY", "http://me:proxypass99@proxy:3128"),
            ("RALPH_SECRETS", "my_cookie, other"),
            ("MY_COOKIE", "value-four"),
            ("SSH_KEY", "/home/me/.ssh/id_ed25519"),
        ]);
        let text = "value-one value-two value-three https://abcdef123@sentry.io/5 hunter2hunter2 proxypass99 value-four \
                    postgres://me:hunter2hunter2@db/x /home/me/.ssh/id_ed25519 http://proxy:3128";
        let clean = secrets.redact_text(text.to_owned());
        let kept = "/home/me/.ssh/id_ed25519 http://proxy:3128";
        assert_eq!(clean, format!("{}{kept}", "[redacted] ".repeat(8)));
    }

    #[test]
    fn secrets_in_field_names_are_redacted() {
        let secrets = secrets(&[("A_SECRET", "hunter2hunter2"), ("B_SECRET", "hunter3hunter3")]);
        let call = call_with(Json::from(
            json!({"hunter2hunter2": 1, "hunter3hunter3": {"x hunter2hunter2": [{"hunter3hunter3": 2}]}}),
        ));
        let clean = serde_json::to_string(&secrets.redact(call)).expect("an event is JSON");
        assert!(!clean.contains("hunter"), "{clean}");
        assert!(clean.contains("[redacted] 2"), "both fields are kept: {clean}");
    }

    #[test]
    fn keyword_fields_are_not_redacted() {
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
    fn secret_with_json_escapes_is_redacted() {
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
    fn event_without_secret_is_unchanged() {
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
