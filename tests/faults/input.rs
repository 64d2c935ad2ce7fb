//! Malformed agent output: invalid text, broken JSON, escape sequences, endless lines.

use std::fs;
use std::time::Duration;

use crate::process::helpers::wait_until;
use crate::sandbox::{DEADLINE, Running, Sandbox, claude};

/// Memory limit of ralph for lines of any length when lines are cut at one megabyte.
const MEMORY: u64 = 64 << 20;

/// Returns a sandbox whose agent prints these bytes in the middle of a session.
fn session_around(bytes: &[u8]) -> Sandbox {
    let sandbox = Sandbox::new().with_agent("claude").with_script(
        "default",
        &format!(
            "{}file strange\n{}{}",
            claude::init(),
            claude::message("m1", "LOOP_COMPLETE"),
            claude::result("LOOP_COMPLETE")
        ),
    );
    fs::write(sandbox.path("agent/strange"), bytes).expect("a file");
    sandbox
}

/// Asserts that the run completes, the bytes are in the raw file, the journal has no gap and no control character is printed.
fn assert_survives(what: &str, bytes: &[u8]) -> Sandbox {
    let sandbox = session_around(bytes);
    let output = sandbox.ralph(&["run", "-p", "x"]);
    assert_eq!(
        output.code(),
        Some(0),
        "{what}: {}{}",
        output.stdout,
        output.stderr
    );
    let raw = sandbox.iteration_file("0001", "stdout.raw");
    assert!(
        memchr::memmem::find(&raw, bytes).is_some(),
        "{what}: incomplete in the raw file"
    );
    let numbers: Vec<u64> = sandbox
        .journal()
        .iter()
        .filter_map(|record| record["seq"].as_u64())
        .collect();
    assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{what}");
    let harmless = |text: &str| !text.contains(['\u{1b}', '\u{7}', '\u{9b}', '\0']);
    assert!(harmless(&output.stdout) && harmless(&output.stderr), "{what}");
    sandbox
}

fn assistant(text: &str) -> String {
    format!(r#"{{"type":"assistant","message":{{"id":"s","content":[{{"type":"text","text":{text}}}]}}}}"#)
}

#[test]
fn invalid_text_and_invalid_json_do_not_fail_the_run() {
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
            "duplicate keys",
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
        assert_survives(what, bytes);
    }
}

/// Titles, clipboard, device queries, cursor movement, and half a megabyte of unterminated sequences.
#[test]
fn escape_sequences_never_reach_the_terminal() {
    let sequences = "\u{1b}]0;owned\u{7}\u{1b}]52;c;aGk=\u{7}\u{1b}[c\u{1b}[6n\u{1b}[2J\u{1b}[?1049h\u{9b}31m\u{90}q\u{9c}";
    assert_survives("in a line of its own", format!("{sequences}\n").as_bytes());
    let inside = serde_json::Value::String(sequences.to_owned()).to_string();
    assert_survives("in an answer", format!("{}\n", assistant(&inside)).as_bytes());
    assert_survives(
        "many unterminated sequences",
        format!("{}\n", "\u{1b}[38;5;1".repeat(50_000)).as_bytes(),
    );
    assert_survives(
        "an unterminated string",
        format!("\u{1b}]{}\n", "x".repeat(500_000)).as_bytes(),
    );
}

#[test]
fn a_marker_on_a_last_line_without_a_newline_counts() {
    let sandbox = Sandbox::new()
        .with_agent("mine")
        .with_file("ralph.yml", "cli: { backend: custom, command: mine }\n")
        .with_script("default", "say working\nprint LOOP_COMPLETE\n");
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
}

/// Each byte arrives in a separate write.
#[test]
fn a_session_written_byte_by_byte_is_parsed_like_any_other() {
    let line = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"ünïcödé LOOP_COMPLETE"}]}}"#;
    let drops: String = line
        .bytes()
        .map(|byte| format!("print \\x{byte:02x}\n"))
        .collect();
    let sandbox = Sandbox::new().with_agent("claude").with_script(
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

#[test]
fn two_hundred_thousand_short_lines_are_all_stored() {
    let sandbox = Sandbox::new()
        .with_agent("mine")
        .with_file("ralph.yml", "cli: { backend: custom, command: mine }\n")
        .with_script("default", "repeat 200000 x\nsay LOOP_COMPLETE\n");
    sandbox.ralph(&["run", "-q", "-p", "x"]).exits_with(0);
    assert_eq!(
        sandbox.iteration_file("0001", "stdout.raw").len(),
        400_000 + "LOOP_COMPLETE\n".len()
    );
    let journal = fs::read(sandbox.newest_run().join("events.jsonl")).expect("a journal");
    let lines = memchr::memmem::find_iter(&journal, br#""text":"x""#).count();
    assert_eq!(lines, 200_000);
}

fn with_short_lines(script: &str) -> Sandbox {
    Sandbox::new()
        .with_agent("mine")
        .with_file(
            "ralph.yml",
            "cli: { backend: custom, command: mine }\nevent_loop: { max_line_bytes: 1048576 }\n",
        )
        .with_script("default", script)
}

#[test]
fn an_endless_line_needs_bounded_memory_and_ends_at_the_runtime_limit() {
    let sandbox = with_short_lines("flood 1000 20000000 endless\n");
    fs::write(sandbox.path("agent/endless"), "e".repeat(100_000)).expect("a file");
    let running = sandbox.start(&["run", "-q", "-p", "x", "--max-runtime", "6"]);
    sandbox.wait_for_processes(1);
    let raw = sandbox.newest_run().join("iterations/0001/stdout.raw");
    let length = || fs::metadata(&raw).map_or(0, |file| file.len());
    // Much more than the line limit.
    wait_until("a long line", DEADLINE, || length() > 20 << 20);
    let peak = running.peak_memory();
    let output = running.finish();
    assert_eq!(output.code(), Some(3), "{}{}", output.stdout, output.stderr);
    assert!(peak < MEMORY, "{} MB", peak >> 20);
    let cut = sandbox.records("transcript");
    assert!(
        cut.iter().any(|record| record["event"]["meta"]["kind"] == "cut"),
        "{cut:?}"
    );
    sandbox.wait_until_processes_exit(Duration::from_secs(10));
}

/// Returns the peak memory for one line of a gigabyte under this line limit.
fn peak_of_a_gigabyte_in_one_line(max_line_bytes: u64) -> u64 {
    let sandbox = with_short_lines(
        "run head -c 1073741824 /dev/zero | tr '\\0' g; echo\ntouch printed\nwait-for measured\nsay LOOP_COMPLETE\n",
    )
    .with_file(
        "ralph.yml",
        &format!("cli: {{ backend: custom, command: mine }}\nevent_loop: {{ max_line_bytes: {max_line_bytes} }}\n"),
    );
    let mut command = sandbox.command(&["run", "-q", "-p", "x"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", sandbox.path("bin").display()));
    let running = Running::start(&mut command);
    wait_until("the end of the line", DEADLINE * 10, || {
        sandbox.path("agent/printed").exists()
    });
    fs::write(sandbox.path("agent/measured"), "").expect("a file");
    let raw = sandbox.newest_run().join("iterations/0001/stdout.raw");
    let length = || fs::metadata(&raw).map_or(0, |file| file.len());
    wait_until("the whole line", DEADLINE * 10, || length() > 1 << 30);
    let peak = running.peak_memory();
    running.finish().exits_with(0);
    peak
}

#[test]
#[ignore = "slow: just slow"]
fn a_line_of_a_gigabyte_is_cut_stored_and_needs_bounded_memory() {
    let short = peak_of_a_gigabyte_in_one_line(1 << 20);
    assert!(short < MEMORY, "{} MB", short >> 20);
    // The default limit of 256 MB: one buffer that grows by doubling.
    let default = peak_of_a_gigabyte_in_one_line(256 << 20);
    eprintln!(
        "a gigabyte in one line: {} MB at most, {} MB with lines of 1 MB",
        default >> 20,
        short >> 20
    );
    assert!(default < 600 << 20, "{} MB", default >> 20);
}

#[test]
#[ignore = "slow in a debug build: just slow"]
fn a_million_lines_are_all_stored() {
    let sandbox = with_short_lines("repeat 1000000 x\nsay LOOP_COMPLETE\n");
    let start = std::time::Instant::now();
    let mut running = sandbox.start(&["run", "-q", "-p", "x"]);
    assert!(running.has_ended_within(DEADLINE * 5));
    eprintln!("a million lines: {:?}", start.elapsed());
    running.finish().exits_with(0);
    let journal = fs::read(sandbox.newest_run().join("events.jsonl")).expect("a journal");
    assert_eq!(
        memchr::memmem::find_iter(&journal, br#""text":"x""#).count(),
        1_000_000
    );
}

/// The idle limit counts from the last byte, not from the last line.
#[test]
fn single_bytes_reset_the_idle_timer() {
    let line = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"slow"}]}}"#;
    let (drops, rest) = line.split_at(9);
    let drops: String = drops
        .bytes()
        .map(|byte| format!("print \\x{byte:02x}\nsleep 500\n"))
        .collect();
    let rest = rest.replace('\\', "\\\\");
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "adapters: { claude: { idle_timeout: 3 } }\n")
        .with_script(
            "default",
            &format!(
                "{}{drops}say {rest}\n{}",
                claude::init(),
                claude::session("LOOP_COMPLETE")
            ),
        );
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let outcomes = sandbox.records("iteration_ended");
    assert_eq!(outcomes.len(), 1);
    assert_eq!(outcomes[0]["outcome"], "completed");
}
