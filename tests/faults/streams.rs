//! Streams that must not lose events: long lines, many lines, invalid UTF-8, multi-byte characters, text between the JSON.

use std::fs;

use serde_json::{Value, json};

use super::common::{AgentStdout, BOTH, claude_stream_on};
use crate::sandbox::{Sandbox, claude};

/// Runs a session with these bytes in its middle; it must complete in one iteration.
fn session_around(stdout: AgentStdout, bytes: &[u8]) -> Sandbox {
    let sandbox = claude_stream_on(stdout);
    let script = format!(
        "{}file middle\n{}{}",
        claude::init(),
        claude::message("last", "LOOP_COMPLETE"),
        claude::result("LOOP_COMPLETE")
    );
    sandbox.script("default", &script);
    fs::write(sandbox.path("agent/middle"), bytes).expect("a file");
    let output = sandbox.ralph(&["run", "-p", "x y"]).exits_with(0);
    fs::write(sandbox.path("stdout"), output.stdout).expect("a file");
    sandbox
}

fn message(id: usize, text: &str) -> Value {
    json!({ "type": "assistant", "session_id": "s-1", "parent_tool_use_id": null, "message": { "id": format!("m{id}"),
        "role": "assistant", "model": "fake-1", "content": [{ "type": "text", "text": text }] } })
}

/// Returns the messages of the agent before the final one.
fn messages(sandbox: &Sandbox) -> Vec<String> {
    let records = sandbox.records("transcript");
    let texts = records.iter().map(|record| &record["event"]);
    let mut messages: Vec<String> = texts
        .filter(|event| event["tag"] == "AI")
        .filter_map(|event| event["text"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(messages.pop().as_deref(), Some("LOOP_COMPLETE"));
    messages
}

fn one_line_of(bytes: usize) {
    for stdout in BOTH {
        let text = "z".repeat(bytes);
        let sandbox = session_around(stdout, format!("{}\n", message(1, &text)).as_bytes());
        assert_eq!(messages(&sandbox), [text], "{stdout:?}");
    }
}

#[test]
fn one_line_of_five_megabytes_is_one_event() {
    one_line_of(5_000_000);
}

#[test]
#[ignore = "slow in a debug build: just slow"]
fn one_line_of_fifty_megabytes_is_one_event() {
    one_line_of(50_000_000);
}

fn pings(count: usize) {
    for stdout in BOTH {
        session_around(stdout, "{\"type\":\"ping\"}\n".repeat(count).as_bytes());
    }
}

#[test]
fn a_hundred_thousand_lines_without_events_complete() {
    pings(100_000);
}

#[test]
#[ignore = "slow in a debug build: just slow"]
fn a_million_lines_without_events_complete() {
    pings(1_000_000);
}

#[test]
fn invalid_utf8_in_every_fourth_line_loses_no_text() {
    let filler = "the quick brown fox ".repeat(150);
    let mut stream = Vec::new();
    for number in 0..1507 {
        let line = message(number, &format!("{number} @ {filler}")).to_string();
        let bytes = line.into_bytes();
        let broken = number % 4 == 0;
        stream.extend(bytes.into_iter().map(|byte| match byte {
            b'@' if broken => 0xff,
            byte => byte,
        }));
        stream.push(b'\n');
    }
    for stdout in BOTH {
        let sandbox = session_around(stdout, &stream);
        let messages = messages(&sandbox);
        assert_eq!(messages.len(), 1507, "{stdout:?}");
        for (number, text) in messages.iter().enumerate() {
            let mark = if number % 4 == 0 { '\u{fffd}' } else { '@' };
            assert!(
                text.starts_with(&format!("{number} {mark} the")),
                "{stdout:?}: {text:.40}"
            );
        }
        let shown = fs::read_to_string(sandbox.path("stdout")).expect("the printed text");
        assert!(shown.contains("1506 @ the quick"), "{stdout:?}");
    }
}

#[test]
fn multi_byte_characters_split_between_reads_are_not_lost() {
    // The length shares no factor with the size of a read, so characters are split at every position.
    let texts: Vec<String> = (0..3013)
        .map(|number| {
            format!(
                "{number} größer, 日本語, naïve, 🦀🦀, Ελληνικά {}",
                "é".repeat(number % 53)
            )
        })
        .collect();
    let stream: String = texts
        .iter()
        .enumerate()
        .map(|(number, text)| format!("{}\n", message(number, text)))
        .collect();
    for stdout in BOTH {
        let sandbox = session_around(stdout, stream.as_bytes());
        assert_eq!(messages(&sandbox), texts, "{stdout:?}");
    }
}

#[test]
fn the_marker_is_found_after_any_number_of_multi_byte_characters() {
    for length in 0..40 {
        let stdout = BOTH[length % 2];
        let text = format!("{}{}\nLOOP_COMPLETE", "日本語é".repeat(400), "ü".repeat(length));
        let sandbox = claude_stream_on(stdout);
        sandbox.script("default", &claude::session(&text));
        sandbox
            .ralph(&["run", "-p", "x y", "-q", "-n", "1"])
            .exits_with(0);
    }
}

#[test]
fn text_between_the_json_is_shown() {
    for stdout in BOTH {
        let text = "Invalid API key · Please run /login";
        let sandbox = session_around(stdout, format!("{text}\n").repeat(50).as_bytes());
        let shown = fs::read_to_string(sandbox.path("stdout")).expect("the printed text");
        assert_eq!(shown.matches(text).count(), 50, "{stdout:?}: {shown}");
    }
}
