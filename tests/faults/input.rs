//! Output that no agent should print.

use std::fs;

use crate::sandbox::{Sandbox, claude};

/// A session with these bytes in its middle.
fn session_around(bytes: &[u8]) -> Sandbox {
    let sandbox = Sandbox::new().with_agent("claude").playing(
        "default",
        &format!(
            "{}file strange\n{}{}",
            claude::init(),
            claude::message("m1", "LOOP_COMPLETE"),
            claude::result("LOOP_COMPLETE")
        ),
    );
    fs::write(sandbox.path("play/strange"), bytes).expect("a file");
    sandbox
}

/// The run completes all the same, what came is in the raw file, and the journal is whole.
fn is_survived(what: &str, bytes: &[u8]) -> Sandbox {
    let sandbox = session_around(bytes);
    let told = sandbox.ralph(&["run", "-p", "x"]);
    assert_eq!(told.code(), Some(0), "{what}: {}{}", told.stdout, told.stderr);
    let raw = sandbox.iteration_file("0001", "stdout.raw");
    assert!(
        memchr::memmem::find(&raw, bytes).is_some(),
        "{what}: not whole in the raw file"
    );
    let numbers: Vec<u64> = sandbox
        .journal()
        .iter()
        .filter_map(|record| record["seq"].as_u64())
        .collect();
    assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{what}");
    let harmless = |text: &str| !text.contains(['\u{1b}', '\u{7}', '\u{9b}', '\0']);
    assert!(harmless(&told.stdout) && harmless(&told.stderr), "{what}");
    sandbox
}

fn assistant(text: &str) -> String {
    format!(r#"{{"type":"assistant","message":{{"id":"s","content":[{{"type":"text","text":{text}}}]}}}}"#)
}

#[test]
fn lines_that_are_no_text_or_no_json_harm_nothing() {
    let deep = "[".repeat(10_000) + &"]".repeat(10_000) + "\n";
    let deep_value =
        assistant("\"x\"").replace("\"x\"", &("{\"a\":".repeat(10_000) + "1" + &"}".repeat(10_000))) + "\n";
    let surrogates = assistant(r#""\ud800 \udfff x""#) + "\n";
    let cases: &[(&str, &[u8])] = &[
        ("NULs", b"a\0b\0\0c\n\0\n"),
        ("invalid UTF-8", b"\xff\xfe{\"type\":\xc3\x28}\n\xf0\x9f\n"),
        ("a BOM", "\u{feff}{\"type\":\"system\"}\n".as_bytes()),
        ("deep arrays", deep.as_bytes()),
        ("deep objects", deep_value.as_bytes()),
        ("lone surrogates", surrogates.as_bytes()),
        (
            "keys given twice",
            b"{\"type\":\"assistant\",\"type\":\"user\",\"message\":1,\"message\":{\"content\":[]}}\n",
        ),
        (
            "numbers out of range",
            b"{\"type\":\"result\",\"total_cost_usd\":1e999,\"num_turns\":-1,\"duration_ms\":99999999999999999999999}\n",
        ),
        ("only carriage returns", b"a\rb\rc\r\n\r\n"),
        ("other line ends", "a\u{2028}b\u{2029}c\u{85}d\n".as_bytes()),
    ];
    for (what, bytes) in cases {
        is_survived(what, bytes);
    }
}

/// Titles, clipboard, device queries, cursor tricks, and half a megabyte of openings that never close.
#[test]
fn escape_sequences_never_reach_the_terminal() {
    let tricks = "\u{1b}]0;owned\u{7}\u{1b}]52;c;aGk=\u{7}\u{1b}[c\u{1b}[6n\u{1b}[2J\u{1b}[?1049h\u{9b}31m\u{90}q\u{9c}";
    is_survived("in a line of its own", format!("{tricks}\n").as_bytes());
    let inside = serde_json::Value::String(tricks.to_owned()).to_string();
    is_survived("in an answer", format!("{}\n", assistant(&inside)).as_bytes());
    is_survived(
        "a bomb",
        format!("{}\n", "\u{1b}[38;5;1".repeat(50_000)).as_bytes(),
    );
    is_survived(
        "an open string",
        format!("\u{1b}]{}\n", "x".repeat(500_000)).as_bytes(),
    );
}

#[test]
fn a_last_line_without_an_end_counts() {
    let sandbox = Sandbox::new()
        .with_agent("mine")
        .with_file("ralph.yml", "cli: { backend: custom, command: mine }\n")
        .playing("default", "say at work\nprint LOOP_COMPLETE\n");
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
}

/// One byte at a time, each in a write of its own: slow, but nothing is different.
#[test]
fn a_session_in_single_bytes_is_the_same_session() {
    let line = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"ünïcödé LOOP_COMPLETE"}]}}"#;
    let drops: String = line
        .bytes()
        .map(|byte| format!("print \\x{byte:02x}\n"))
        .collect();
    let sandbox = Sandbox::new().with_agent("claude").playing(
        "default",
        &format!(
            "{}{drops}say \n{}",
            claude::init(),
            claude::session("LOOP_COMPLETE")
        ),
    );
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let texts: Vec<String> = sandbox
        .records("transcript")
        .iter()
        .filter_map(|record| record["event"]["text"].as_str().map(str::to_owned))
        .collect();
    assert!(
        texts.iter().any(|text| text == "ünïcödé LOOP_COMPLETE"),
        "{texts:?}"
    );
}

/// Short lines by the hundred thousand, of which not one is lost.
#[test]
fn a_flood_of_short_lines_is_all_there() {
    let sandbox = Sandbox::new()
        .with_agent("mine")
        .with_file("ralph.yml", "cli: { backend: custom, command: mine }\n")
        .playing("default", "repeat 200000 x\nsay LOOP_COMPLETE\n");
    sandbox.ralph(&["run", "-q", "-p", "x"]).exits_with(0);
    assert_eq!(
        sandbox.iteration_file("0001", "stdout.raw").len(),
        400_000 + "LOOP_COMPLETE\n".len()
    );
    let journal = fs::read(sandbox.newest_run().join("events.jsonl")).expect("a journal");
    let lines = memchr::memmem::find_iter(&journal, br#""text":"x""#).count();
    assert_eq!(lines, 200_000);
}
