//! Streams that cost others events: long lines, many lines, broken and foreign letters, words between the JSON.

use std::fs;

use serde_json::{Value, json};

use super::common::{EITHER, On, speaking_claude};
use crate::sandbox::{Sandbox, claude};

/// A session with these bytes in its middle, run to its end; it must complete in one iteration.
fn session_around(on: On, bytes: &[u8]) -> Sandbox {
    let sandbox = speaking_claude(on);
    let script = format!(
        "{}file middle\n{}{}",
        claude::init(),
        claude::message("last", "LOOP_COMPLETE"),
        claude::result("LOOP_COMPLETE")
    );
    sandbox.script("default", &script);
    fs::write(sandbox.path("play/middle"), bytes).expect("a file");
    let told = sandbox.ralph(&["run", "-p", "x y"]).exits_with(0);
    fs::write(sandbox.path("shown"), told.stdout).expect("a file");
    sandbox
}

fn message(id: usize, text: &str) -> Value {
    json!({ "type": "assistant", "session_id": "s-1", "parent_tool_use_id": null, "message": { "id": format!("m{id}"),
        "role": "assistant", "model": "fake-1", "content": [{ "type": "text", "text": text }] } })
}

/// What the agent said before its last word.
fn said(sandbox: &Sandbox) -> Vec<String> {
    let records = sandbox.records("transcript");
    let texts = records.iter().map(|record| &record["event"]);
    let mut said: Vec<String> = texts
        .filter(|event| event["tag"] == "AI")
        .filter_map(|event| event["text"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(said.pop().as_deref(), Some("LOOP_COMPLETE"));
    said
}

fn one_line_of(bytes: usize) {
    for on in EITHER {
        let text = "z".repeat(bytes);
        let sandbox = session_around(on, format!("{}\n", message(1, &text)).as_bytes());
        assert_eq!(said(&sandbox), [text], "{on:?}");
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
    for on in EITHER {
        session_around(on, "{\"type\":\"ping\"}\n".repeat(count).as_bytes());
    }
}

#[test]
fn a_hundred_thousand_lines_that_say_nothing_hold_nothing_up() {
    pings(100_000);
}

#[test]
#[ignore = "slow in a debug build: just slow"]
fn a_million_lines_that_say_nothing_hold_nothing_up() {
    pings(1_000_000);
}

#[test]
fn invalid_utf8_in_every_fourth_line_costs_no_text() {
    let words = "the quick brown fox ".repeat(150);
    let mut stream = Vec::new();
    for number in 0..1507 {
        let line = message(number, &format!("{number} @ {words}")).to_string();
        let bytes = line.into_bytes();
        let broken = number % 4 == 0;
        stream.extend(bytes.into_iter().map(|byte| match byte {
            b'@' if broken => 0xff,
            byte => byte,
        }));
        stream.push(b'\n');
    }
    for on in EITHER {
        let sandbox = session_around(on, &stream);
        let said = said(&sandbox);
        assert_eq!(said.len(), 1507, "{on:?}");
        for (number, text) in said.iter().enumerate() {
            let mark = if number % 4 == 0 { '\u{fffd}' } else { '@' };
            assert!(
                text.starts_with(&format!("{number} {mark} the")),
                "{on:?}: {text:.40}"
            );
        }
        let shown = fs::read_to_string(sandbox.path("shown")).expect("what was shown");
        assert!(shown.contains("1506 @ the quick"), "{on:?}");
    }
}

#[test]
fn no_text_in_any_script_is_lost_wherever_a_read_ends() {
    // Of a length that shares no factor with the size of a read, so that letters are cut at every place.
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
    for on in EITHER {
        let sandbox = session_around(on, stream.as_bytes());
        assert_eq!(said(&sandbox), texts, "{on:?}");
    }
}

#[test]
fn the_word_of_completion_is_found_behind_any_amount_of_foreign_letters() {
    for length in 0..40 {
        let on = EITHER[length % 2];
        let text = format!("{}{}\nLOOP_COMPLETE", "日本語é".repeat(400), "ü".repeat(length));
        let sandbox = speaking_claude(on);
        sandbox.script("default", &claude::session(&text));
        sandbox
            .ralph(&["run", "-p", "x y", "-q", "-n", "1"])
            .exits_with(0);
    }
}

#[test]
fn words_between_the_json_are_shown() {
    for on in EITHER {
        let words = "Invalid API key · Please run /login";
        let sandbox = session_around(on, format!("{words}\n").repeat(50).as_bytes());
        let shown = fs::read_to_string(sandbox.path("shown")).expect("what was shown");
        assert_eq!(shown.matches(words).count(), 50, "{on:?}: {shown}");
    }
}
