//! Large amounts of data: nothing is lost, nothing deadlocks, memory is bounded.

use serde_json::json;

use crate::process::helpers::wait_until;
use crate::sandbox::{DEADLINE, Sandbox, claude};

/// Memory limit of ralph for a stream of any length.
const MEMORY: u64 = 64 << 20;

#[test]
fn a_two_megabyte_prompt_reaches_an_agent_that_first_prints_ten_megabytes() {
    let line = "x".repeat(999);
    let sandbox = Sandbox::new()
        .with_agent("my-ai")
        .with_file("PROMPT.md", &"0123456789abcde\n".repeat(131_072))
        .with_script(
            "default",
            &format!("repeat 10000 {line}\nread-stdin\nsay LOOP_COMPLETE\n"),
        );
    let sandbox = sandbox.with_file("ralph.yml", "cli:\n  command: my-ai\n  prompt_mode: stdin\n");
    sandbox.ralph(&["run", "-q"]).exits_with(0);
    let sent = sandbox.iteration_file("0001", "prompt.md");
    assert!(sent.len() > 2 << 20);
    assert_eq!(sandbox.recorded("1.stdin").as_bytes(), sent);
    assert_eq!(
        sandbox.iteration_file("0001", "stdout.raw").len(),
        10_000 * 1000 + "LOOP_COMPLETE\n".len()
    );
}

/// Streams this many lines of Claude's JSON and returns the peak memory of ralph.
fn peak_of_a_stream(lines: u64) -> u64 {
    let text = json!({ "type": "assistant", "message": { "id": "m", "role": "assistant", "model": "f",
        "content": [{ "type": "text", "text": "y".repeat(900) }] }, "session_id": "s" });
    let script = format!(
        "{}repeat {lines} {text}\ntouch printed\nwait-for measured\n{}",
        claude::init(),
        claude::result("LOOP_COMPLETE")
    );
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &script);
    let ralph = sandbox.start(&["run", "-p", "x", "-q"]);
    sandbox.wait_for_file(&sandbox.path("agent").join("printed"));
    let raw = sandbox.newest_run().join("iterations/0001/stdout.raw");
    let size = (text.to_string().len() as u64 + 1) * lines;
    let read = || std::fs::metadata(&raw).map_or(0, |file| file.len());
    wait_until("the whole stream", DEADLINE * 10, || read() >= size);
    let peak = ralph.peak_memory();
    std::fs::write(sandbox.path("agent").join("measured"), "").expect("a file");
    ralph.finish().exits_with(0);
    peak
}

#[test]
fn a_long_stream_needs_no_more_memory_than_a_short_one() {
    let peak = peak_of_a_stream(20_000);
    assert!(peak < MEMORY, "{} MB", peak >> 20);
}

#[test]
#[ignore = "slow in a debug build: just slow"]
fn a_gigabyte_needs_no_more_memory_than_a_short_stream() {
    let peak = peak_of_a_stream(1_000_000);
    assert!(peak < MEMORY, "{} MB", peak >> 20);
}

/// Asserts that a session completes whose result is one line of this size with the marker at its end.
fn assert_long_line_completes(bytes: usize) {
    let text = format!("{}\nLOOP_COMPLETE", "z".repeat(bytes));
    let line = json!({ "type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "result": text,
        "session_id": "s" });
    // On a pipe, because this test is about the line and not about the terminal.
    let sandbox = Sandbox::new()
        .with_agent("my-ai")
        .with_file("ralph.yml", "cli:\n  command: my-ai\n  transcript: claude\n")
        .with_script("default", &format!("{}file big.json\n", claude::init()));
    std::fs::write(sandbox.path("agent").join("big.json"), format!("{line}\n")).expect("a file");
    sandbox.ralph(&["run", "-p", "x y", "-q"]).exits_with(0);
}

#[test]
fn a_line_of_8_megabytes_is_read_whole_and_its_marker_counts() {
    assert_long_line_completes(8 << 20);
}

#[test]
#[ignore = "slow in a debug build: just slow"]
fn a_line_of_64_megabytes_is_read_whole_and_its_marker_counts() {
    assert_long_line_completes(64 << 20);
}

#[test]
fn a_line_over_the_limit_is_marked_as_cut_and_complete_in_the_raw_file() {
    let sandbox = Sandbox::new()
        .with_agent("my-ai")
        .with_file(
            "ralph.yml",
            "cli:\n  command: my-ai\nevent_loop:\n  max_line_bytes: 4096\n",
        )
        .with_script(
            "default",
            &format!("say {}\nsay LOOP_COMPLETE\n", "w".repeat(10_000)),
        );
    sandbox.ralph(&["run", "-p", "x y"]).exits_with(0);
    let metas: Vec<String> = sandbox
        .records("transcript")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        metas
            .iter()
            .any(|meta| meta.contains("\"kind\":\"cut\"") && meta.contains("10000")),
        "{metas:?}"
    );
    assert_eq!(
        sandbox.iteration_file("0001", "stdout.raw").len(),
        10_001 + "LOOP_COMPLETE\n".len()
    );
}

#[test]
fn invalid_text_is_stored_unchanged() {
    let sandbox = Sandbox::new()
        .with_agent("my-ai")
        .with_file("ralph.yml", "cli:\n  command: my-ai\n")
        .with_script(
            "default",
            "print bad \\xff\\xfe bytes\\n\nprint nul \\x00 byte\\n\nprint LOOP_COMPLETE\n",
        );
    sandbox.ralph(&["run", "-p", "x y"]).exits_with(0);
    assert_eq!(
        sandbox.iteration_file("0001", "stdout.raw"),
        b"bad \xff\xfe bytes\nnul \x00 byte\nLOOP_COMPLETE"
    );
}
