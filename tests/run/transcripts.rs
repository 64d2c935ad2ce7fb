//! `ralph transcript`: raw output read again, for a person and for a program.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::sandbox::{Sandbox, claude};

/// What the fake agent would print.
fn printed(script: &str) -> String {
    let said = script.lines().filter_map(|line| line.strip_prefix("say "));
    said.map(|line| line.replace("\\\\", "\\") + "\n").collect()
}

fn capture() -> String {
    let script = [
        claude::init(),
        claude::tool("m1", "t1", "ls -l"),
        claude::tool_result("t1", "one\ntwo"),
        claude::message("m2", "Two files.\nLOOP_COMPLETE"),
        claude::result("Two files.\nLOOP_COMPLETE"),
    ];
    printed(&script.concat())
}

fn events(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn kinds(text: &str) -> Vec<String> {
    let kind = |event: &Value| event["type"].as_str().expect("a type").to_owned();
    events(text).iter().map(kind).collect()
}

#[test]
fn a_capture_becomes_events_one_line_each() {
    let sandbox = Sandbox::new().with_file("session.jsonl", &capture());
    let told = sandbox
        .ralph(&["transcript", "session.jsonl", "--transcript", "claude", "--json"])
        .exits_with(0);
    assert_eq!(told.stderr, "");
    assert_eq!(
        kinds(&told.stdout),
        [
            "meta",
            "tool_start",
            "tool_output",
            "tool_end",
            "text",
            "usage",
            "meta"
        ]
    );
}

#[test]
fn a_capture_is_shown_as_a_run_shows_it() {
    let sandbox = Sandbox::new().with_file("session.jsonl", &capture());
    let told = sandbox
        .ralph(&["transcript", "session.jsonl", "--transcript", "claude"])
        .exits_with(0);
    insta::assert_snapshot!(told.stdout, @"
     SYS │ session s-1 · fake-1
    TOOL │ ▸ Bash ls -l
         │ ✓ 2 lines
      AI │ Two files.
         │ LOOP_COMPLETE
    ");
}

#[test]
fn stdin_is_read_as_it_comes() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["transcript", "-", "--transcript", "rtf1", "--json"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("ralph starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let mut stdout = std::io::BufReader::new(child.stdout.take().expect("stdout"));
    let mut line = String::new();
    for text in ["first", "second"] {
        writeln!(stdin, "{text}").expect("a reader");
        line.clear();
        // It answers before it has heard the end.
        std::io::BufRead::read_line(&mut stdout, &mut line).expect("an event");
        assert_eq!(events(&line)[0]["text"], text);
    }
    drop(stdin);
    assert!(child.wait().expect("an end").success());
}

#[test]
fn in_a_runs_directory_the_header_tells_the_format_and_the_prompt() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("LOOP_COMPLETE"));
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let raw = sandbox.newest_run().join("iterations/0001/stdout.raw");
    let told = sandbox
        .ralph(&["transcript", raw.to_str().expect("a path"), "--json"])
        .exits_with(0);
    let recorded: Vec<Value> = sandbox
        .records("transcript")
        .into_iter()
        .map(|mut record| record["event"].take())
        .collect();
    assert_eq!(events(&told.stdout), recorded, "the same events as in the run");
    let copy = sandbox.work().join("copy.raw");
    fs::copy(raw, &copy).expect("a copy");
    let told = sandbox.ralph(&["transcript", "copy.raw", "--json"]).exits_with(0);
    assert!(
        kinds(&told.stdout).iter().all(|kind| kind == "text"),
        "elsewhere it is plain text"
    );
}

#[test]
fn garbage_is_shown_and_cannot_touch_the_terminal() {
    let sandbox = Sandbox::new();
    let garbage: Vec<u8> = (0..4096_u32)
        .flat_map(|n| (n.wrapping_mul(2_654_435_761)).to_le_bytes())
        .collect();
    fs::write(
        sandbox.work().join("garbage"),
        [b"\x1b]0;title\x07\n".as_slice(), &garbage].concat(),
    )
    .expect("a file");
    for format in ralph::transcript::names() {
        let json = sandbox
            .ralph(&["transcript", "garbage", "--transcript", format, "--json"])
            .exits_with(0);
        assert!(!events(&json.stdout).is_empty(), "{format}");
        let shown = sandbox
            .ralph(&["transcript", "garbage", "--transcript", format])
            .exits_with(0);
        assert!(!shown.stdout.contains(['\u{1b}', '\u{7}', '\0']), "{format}");
    }
}

#[test]
fn an_empty_file_has_no_events() {
    let sandbox = Sandbox::new().with_file("empty", "");
    let told = sandbox
        .ralph(&["transcript", "empty", "--transcript", "claude", "--json"])
        .exits_with(0);
    assert_eq!(
        (told.stdout.as_str(), told.stderr.as_str()),
        ("", "warning: empty is empty\n")
    );
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let sandbox = Sandbox::new().with_file("long", &"a line that nobody reads\n".repeat(100_000));
    let mut child = sandbox
        .command(&["transcript", "long", "--json"])
        .spawn()
        .expect("ralph starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("an end");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn a_long_capture_needs_little_memory() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["transcript", "-", "--transcript", "plain", "--json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("ralph starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let line = "word ".repeat(2000) + "\n";
    for _ in 0..10_000 {
        stdin.write_all(line.as_bytes()).expect("a reader");
    }
    // All but what the pipe holds has been read by now.
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("a running ralph");
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("a figure");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(peak < 60_000, "100 MB went through {peak} kB");
    drop(stdin);
    assert!(child.wait().expect("an end").success());
}

#[test]
fn mistakes_are_explained() {
    let sandbox = Sandbox::new().with_file("there", "x");
    let refused = |arguments: &[&str]| {
        let told = sandbox.ralph(arguments);
        assert_eq!(told.stdout, "");
        format!(
            "{}[exit {}]",
            sandbox.without_places(&told.stderr),
            told.code().unwrap_or(-1)
        )
    };
    insta::assert_snapshot!(refused(&["transcript", "gone.jsonl"]), @"
    error: cannot read gone.jsonl: No such file or directory (os error 2)
      check the path, and that you may read it
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&["transcript", "there", "--transcript", "cluade"]), @"
    error: unknown transcript format `cluade`
      known formats: auto, plain, rtf1, claude, codex, codex-text, gemini, opencode, copilot, cursor, amp, jq
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&["transcript", "."]), @"
    error: cannot read .: Is a directory (os error 21)
      check the path, and that you may read it
    [exit 2]
    ");
}
