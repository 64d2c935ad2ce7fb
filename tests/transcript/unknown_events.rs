//! Inserts unknown events, blocks and field types into sessions: the rest of the session must be parsed as before.

use ralph::event::{Flow, Meta, Tag, TranscriptEvent};

use super::fixtures::{Fixture, fixture};

/// A complete session with tool calls for each JSON format.
const SESSIONS: &[&str] = &[
    "claude.stream-json.multi.stdout",
    "codex.json.multi.stdout",
    "gemini.stream-json.multi.stdout",
    "opencode.json.multi.stdout",
    "copilot.json.multi.stdout",
    "cursor.documented.multi.stdout",
    "amp.documented.plain.stdout",
];

/// Events of unknown types, an event without a type, and lines that are not events.
const UNKNOWN_LINES: &[&str] = &[
    r#"{"type":"hologram","payload":{"depth":3},"text":"unknown text"}"#,
    r#"{"type":"hologram.frame.delta","id":"x1"}"#,
    r#"{"kind":"no type at all"}"#,
    r#"{"type":17}"#,
    r#"{"type":null,"type":["twice"]}"#,
    r#"["an array"]"#,
    "17",
    "plain words in between",
];

fn read(fixture: &Fixture, lines: &[String]) -> Vec<TranscriptEvent> {
    let (mut adapter, mut out) = (fixture.open(), Vec::new());
    for line in lines {
        // A separate list for each line: inserted lines must not change how deltas are joined.
        let mut events = Vec::new();
        adapter.feed(line, &mut events);
        out.append(&mut events);
    }
    adapter.flush(&mut out);
    out
}

fn lines(fixture: &Fixture) -> Vec<String> {
    fixture.lines().map(str::to_owned).collect()
}

/// The events without system text, metadata and the placeholder of the unknown block.
fn content_events(events: &[TranscriptEvent]) -> Vec<&TranscriptEvent> {
    let has_content = |event: &&TranscriptEvent| match event {
        TranscriptEvent::Text { tag, text, .. } => *tag != Tag::Sys && text != "[hologram]",
        TranscriptEvent::Meta { .. } => false,
        TranscriptEvent::ToolStart { .. }
        | TranscriptEvent::ToolOutput { .. }
        | TranscriptEvent::ToolEnd { .. }
        | TranscriptEvent::Usage { .. } => true,
    };
    events.iter().filter(has_content).collect()
}

fn contains_text(events: &[TranscriptEvent], expected: &str) -> bool {
    events
        .iter()
        .any(|event| matches!(event, TranscriptEvent::Text { text, .. } if text.contains(expected)))
}

#[test]
fn unknown_lines_do_not_change_the_session() {
    for title in SESSIONS {
        let fixture = fixture(title);
        let original = lines(&fixture);
        let expected = read(&fixture, &original);
        let unknown = UNKNOWN_LINES.iter().map(|line| (*line).to_owned());
        let with: Vec<String> = original
            .iter()
            .flat_map(|line| std::iter::once(line.clone()).chain(unknown.clone()))
            .collect();
        let events = read(&fixture, &with);
        assert_eq!(content_events(&events), content_events(&expected), "{title}");
        assert!(contains_text(&events, "plain words in between"), "{title}");
    }
}

/// Inserts a block of an unknown type before the other blocks.
#[test]
fn block_of_unknown_type_does_not_affect_other_blocks() {
    for title in SESSIONS {
        let fixture = fixture(title);
        let expected = read(&fixture, &lines(&fixture));
        let mut changed = 0;
        let with: Vec<String> = fixture
            .lines()
            .map(|line| {
                let new_line =
                    line.replace(r#""content":[{"#, r#""content":[{"type":"hologram","depth":3},{"#);
                changed += usize::from(new_line != line);
                new_line
            })
            .collect();
        let events = read(&fixture, &with);
        let has_blocks = ["claude", "cursor", "amp"].contains(&fixture.format.as_str());
        assert_eq!(changed > 0, has_blocks, "{title}: {changed} lines with blocks");
        assert_eq!(content_events(&events), content_events(&expected), "{title}");
    }
}

/// Replaces each value of each line with values of other types; the next line must still be parsed.
#[test]
fn field_of_wrong_type_affects_only_its_line() {
    for title in SESSIONS {
        let fixture = fixture(title);
        let original = lines(&fixture);
        let last = original.last().expect("a session has lines").clone();
        let alone = read(&fixture, std::slice::from_ref(&last));
        for line in &original {
            for changed in with_replaced_values(line) {
                let events = read(&fixture, &[changed.clone(), last.clone()]);
                assert_eq!(
                    has_terminal_event(&events),
                    has_terminal_event(&alone),
                    "{title}: {changed}"
                );
            }
        }
    }
}

/// True if there is a terminal event.
fn has_terminal_event(events: &[TranscriptEvent]) -> bool {
    let is_terminal = |event: &TranscriptEvent| {
        matches!(
            event,
            TranscriptEvent::Meta {
                meta: Meta::Finished { .. }
            }
        )
    };
    events.iter().any(is_terminal)
}

/// Copies of the line, each with one replaced value.
fn with_replaced_values(line: &str) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(line) else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    pointers(&value, String::new(), &mut paths);
    let others = [
        serde_json::json!(17),
        serde_json::json!("x"),
        serde_json::json!([{}]),
        serde_json::json!({"a": null}),
    ];
    let change = |(path, other): (&String, &serde_json::Value)| {
        let mut changed = value.clone();
        *changed.pointer_mut(path).expect("the path exists") = other.clone();
        changed.to_string()
    };
    paths
        .iter()
        .flat_map(|path| others.iter().map(move |other| (path, other)))
        .map(change)
        .collect()
}

fn pointers(value: &serde_json::Value, here: String, paths: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, inner) in fields {
                pointers(
                    inner,
                    format!("{here}/{}", name.replace('~', "~0").replace('/', "~1")),
                    paths,
                );
            }
        }
        serde_json::Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                pointers(inner, format!("{here}/{index}"), paths);
            }
        }
        _ => {}
    }
    if !here.is_empty() {
        paths.push(here);
    }
}

/// Replaces a word of the final message with 20 MB of text.
#[test]
fn answer_of_twenty_megabytes_is_complete() {
    let answer = "x".repeat(20_000_000);
    for title in SESSIONS {
        let fixture = fixture(title);
        let last = last_message(&read(&fixture, &lines(&fixture)));
        let word = last
            .split_whitespace()
            .next()
            .expect("the message is not empty")
            .to_owned();
        let enlarged: Vec<String> = fixture.lines().map(|line| line.replace(&word, &answer)).collect();
        let message = last_message(&read(&fixture, &enlarged));
        assert_eq!(message.len(), last.replace(&word, &answer).len(), "{title}");
    }
}

/// The assistant's last message.
fn last_message(events: &[TranscriptEvent]) -> String {
    let mut message = String::new();
    for event in events {
        if let TranscriptEvent::Text {
            tag: Tag::Ai,
            text,
            flow,
            ..
        } = event
        {
            match flow {
                Flow::Delta => {}
                Flow::Message => message.clear(),
                Flow::Line => message.push('\n'),
            }
            message.push_str(text);
        }
    }
    message
}
