//! Tests of `ralph transcript`, which parses raw output.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::sandbox::{Sandbox, claude};

/// Returns the text that the fake agent prints for this script.
fn printed(script: &str) -> String {
    let lines = script.lines().filter_map(|line| line.strip_prefix("say "));
    lines.map(|line| line.replace("\\\\", "\\") + "\n").collect()
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
    let output = sandbox
        .ralph(&["transcript", "session.jsonl", "--transcript", "claude", "--json"])
        .exits_with(0);
    assert_eq!(output.stderr, "");
    assert_eq!(
        kinds(&output.stdout),
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
fn a_capture_is_shown_like_in_a_run() {
    let sandbox = Sandbox::new().with_file("session.jsonl", &capture());
    let output = sandbox
        .ralph(&["transcript", "session.jsonl", "--transcript", "claude"])
        .exits_with(0);
    insta::assert_snapshot!(output.stdout, @"
     SYS │ session s-1 · fake-1
    TOOL │ ▸ Bash ls -l
         │ ✓ 2 lines
      AI │ Two files.
         │ LOOP_COMPLETE
    ");
}

#[test]
fn stdin_is_parsed_line_by_line() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["transcript", "-", "--transcript", "rtf1", "--json"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("ralph starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let mut stdout = std::io::BufReader::new(child.stdout.take().expect("stdout"));
    let mut line = String::new();
    for text in ["first", "second"] {
        writeln!(stdin, "{text}").expect("a reader");
        line.clear();
        // The event is printed before stdin is closed.
        std::io::BufRead::read_line(&mut stdout, &mut line).expect("an event");
        assert_eq!(events(&line)[0]["text"], text);
    }
    drop(stdin);
    assert!(child.wait().expect("an end").success());
}

#[test]
fn raw_output_in_a_run_directory_is_parsed_with_the_format_of_the_run() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"));
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let raw = sandbox.newest_run().join("iterations/0001/stdout.raw");
    let output = sandbox
        .ralph(&["transcript", raw.to_str().expect("a path"), "--json"])
        .exits_with(0);
    let recorded: Vec<Value> = sandbox
        .records("transcript")
        .into_iter()
        .map(|mut record| record["event"].take())
        .collect();
    assert_eq!(events(&output.stdout), recorded, "the same events as in the run");
    let copy = sandbox.work().join("copy.raw");
    fs::copy(raw, &copy).expect("a copy");
    let output = sandbox.ralph(&["transcript", "copy.raw", "--json"]).exits_with(0);
    assert!(
        kinds(&output.stdout).iter().all(|kind| kind == "text"),
        "plain text outside of a run directory"
    );
}

#[test]
fn garbage_is_shown_without_control_characters() {
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
    let output = sandbox
        .ralph(&["transcript", "empty", "--transcript", "claude", "--json"])
        .exits_with(0);
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("", "warning: empty is empty\n")
    );
}

#[test]
fn a_closed_stdout_is_not_an_error() {
    let sandbox = Sandbox::new().with_file("long", &"an unread line\n".repeat(100_000));
    let mut child = sandbox
        .command(&["transcript", "long", "--json"])
        .spawn()
        .expect("ralph starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("an end");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn a_long_capture_needs_bounded_memory() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["transcript", "-", "--transcript", "plain", "--json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("ralph starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let line = "word ".repeat(2000) + "\n";
    for _ in 0..10_000 {
        stdin.write_all(line.as_bytes()).expect("a reader");
    }
    // Everything except the contents of the pipe has been read by now.
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
fn errors_are_explained() {
    let sandbox = Sandbox::new().with_file("there", "x");
    let refused = |arguments: &[&str]| {
        let output = sandbox.ralph(arguments);
        assert_eq!(output.stdout, "");
        format!(
            "{}[exit {}]",
            sandbox.redact_paths(&output.stderr),
            output.code().unwrap_or(-1)
        )
    };
    insta::assert_snapshot!(refused(&["transcript", "gone.jsonl"]), @"
    error: cannot read gone.jsonl: No such file or directory (os error 2)
    hint: check the path and its permissions
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&["transcript", "there", "--transcript", "cluade"]), @"
    error: unknown transcript format `cluade`
    hint: known formats: auto, plain, rtf1, claude, codex, codex-text, gemini, opencode, copilot, cursor, amp, agy, qwen, pi, kimi, vibe, cline, acp, jq
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&["transcript", "."]), @"
    error: cannot read .: Is a directory (os error 21)
    hint: check the path and its permissions
    [exit 2]
    ");
}
