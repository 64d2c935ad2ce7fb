//! Streams that hold something no program has printed yet: it is shown or passed over, and the rest is read as ever.

use ralph::event::{Flow, Meta, Tag, TranscriptEvent};

use super::fixtures::{Fixture, one};

/// A whole session of each format of JSON lines, with tools in it.
const SESSIONS: &[&str] = &[
    "claude.stream-json.multi.stdout",
    "codex.json.multi.stdout",
    "gemini.stream-json.multi.stdout",
    "opencode.json.multi.stdout",
    "copilot.json.multi.stdout",
    "cursor.documented.multi.stdout",
    "amp.documented.plain.stdout",
];

/// An event of a later version, one without a name, and things that are no events at all.
const STRANGERS: &[&str] = &[
    r#"{"type":"hologram","payload":{"depth":3},"text":"a stranger's words"}"#,
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
        // Each as if it had arrived alone: what stands between two pieces of a text would keep them apart.
        let mut said = Vec::new();
        adapter.feed(line, &mut said);
        out.append(&mut said);
    }
    adapter.flush(&mut out);
    out
}

fn lines(fixture: &Fixture) -> Vec<String> {
    fixture.lines().map(str::to_owned).collect()
}

/// What the session is about: words, calls and their outcomes, without what is merely remarked, such as the name of
/// a block that is not known.
fn substance(events: &[TranscriptEvent]) -> Vec<&TranscriptEvent> {
    let matters = |event: &&TranscriptEvent| match event {
        TranscriptEvent::Text { tag, text, .. } => *tag != Tag::Sys && text != "[hologram]",
        TranscriptEvent::Meta { .. } => false,
        TranscriptEvent::ToolStart { .. }
        | TranscriptEvent::ToolOutput { .. }
        | TranscriptEvent::ToolEnd { .. }
        | TranscriptEvent::Usage { .. } => true,
    };
    events.iter().filter(matters).collect()
}

fn says(events: &[TranscriptEvent], words: &str) -> bool {
    events
        .iter()
        .any(|event| matches!(event, TranscriptEvent::Text { text, .. } if text.contains(words)))
}

#[test]
fn strangers_after_every_line_change_nothing_of_the_session() {
    for title in SESSIONS {
        let fixture = one(title);
        let known = lines(&fixture);
        let expected = read(&fixture, &known);
        let crowd = STRANGERS.iter().map(|stranger| (*stranger).to_owned());
        let with: Vec<String> = known
            .iter()
            .flat_map(|line| std::iter::once(line.clone()).chain(crowd.clone()))
            .collect();
        let events = read(&fixture, &with);
        assert_eq!(substance(&events), substance(&expected), "{title}");
        assert!(says(&events, "plain words in between"), "{title}");
    }
}

/// A block of a kind that is not known stands among those that are.
#[test]
fn a_block_of_an_unknown_kind_leaves_its_neighbours_alone() {
    for title in SESSIONS {
        let fixture = one(title);
        let expected = read(&fixture, &lines(&fixture));
        let mut widened = 0;
        let with: Vec<String> = fixture
            .lines()
            .map(|line| {
                let wider = line.replace(r#""content":[{"#, r#""content":[{"type":"hologram","depth":3},{"#);
                widened += usize::from(wider != line);
                wider
            })
            .collect();
        let events = read(&fixture, &with);
        let has_blocks = ["claude", "cursor", "amp"].contains(&fixture.format.as_str());
        assert_eq!(widened > 0, has_blocks, "{title}: {widened} lines with blocks");
        assert_eq!(substance(&events), substance(&expected), "{title}");
    }
}

/// Each value of each line in turn is of another type than it was; the line after it is still understood.
#[test]
fn a_field_of_the_wrong_type_spoils_at_most_its_own_line() {
    for title in SESSIONS {
        let fixture = one(title);
        let known = lines(&fixture);
        let last = known.last().expect("a session has lines").clone();
        let alone = read(&fixture, std::slice::from_ref(&last));
        for line in &known {
            for changed in retyped(line) {
                let events = read(&fixture, &[changed.clone(), last.clone()]);
                assert_eq!(finishes(&events), finishes(&alone), "{title}: {changed}");
            }
        }
    }
}

/// Did the agent say that it had finished, in whatever way?
fn finishes(events: &[TranscriptEvent]) -> bool {
    let finish = |event: &TranscriptEvent| {
        matches!(
            event,
            TranscriptEvent::Meta {
                meta: Meta::Finished { .. }
            }
        )
    };
    events.iter().any(finish)
}

/// The line with each of its values replaced, one at a time.
fn retyped(line: &str) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(line) else {
        return Vec::new();
    };
    let mut places = Vec::new();
    pointers(&value, String::new(), &mut places);
    let others = [
        serde_json::json!(17),
        serde_json::json!("x"),
        serde_json::json!([{}]),
        serde_json::json!({"a": null}),
    ];
    let change = |(place, other): (&String, &serde_json::Value)| {
        let mut changed = value.clone();
        *changed.pointer_mut(place).expect("it was there") = other.clone();
        changed.to_string()
    };
    places
        .iter()
        .flat_map(|place| others.iter().map(move |other| (place, other)))
        .map(change)
        .collect()
}

fn pointers(value: &serde_json::Value, here: String, places: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, inner) in fields {
                pointers(
                    inner,
                    format!("{here}/{}", name.replace('~', "~0").replace('/', "~1")),
                    places,
                );
            }
        }
        serde_json::Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                pointers(inner, format!("{here}/{index}"), places);
            }
        }
        _ => {}
    }
    if !here.is_empty() {
        places.push(here);
    }
}

/// The agent's last words, twenty million of them.
#[test]
fn an_answer_of_twenty_megabytes_is_whole() {
    let answer = "x".repeat(20_000_000);
    for title in SESSIONS {
        let fixture = one(title);
        let last = last_message(&read(&fixture, &lines(&fixture)));
        let word = last
            .split_whitespace()
            .next()
            .expect("it says something")
            .to_owned();
        let swollen: Vec<String> = fixture.lines().map(|line| line.replace(&word, &answer)).collect();
        let said = last_message(&read(&fixture, &swollen));
        assert_eq!(said.len(), last.replace(&word, &answer).len(), "{title}");
    }
}

/// What the assistant said last, put together.
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
