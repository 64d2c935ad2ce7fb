//! Output that no agent should print.

use std::fs;
use std::time::Duration;

use crate::process::stage::wait_until;
use crate::sandbox::{DEADLINE, Running, Sandbox, claude};

/// What ralph may hold, however long a line is, where lines are cut at a megabyte.
const MEMORY: u64 = 64 << 20;

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

fn with_short_lines(script: &str) -> Sandbox {
    Sandbox::new()
        .with_agent("mine")
        .with_file(
            "ralph.yml",
            "cli: { backend: custom, command: mine }\nevent_loop: { max_line_bytes: 1048576 }\n",
        )
        .playing("default", script)
}

/// A line that never ends is held in no more memory than a long one, and the limit on an iteration ends it.
#[test]
fn an_endless_line_is_ended_by_the_limit_and_held_in_bounded_memory() {
    let sandbox = with_short_lines("flood 1000 20000000 endless\n");
    fs::write(sandbox.path("play/endless"), "e".repeat(100_000)).expect("a file");
    let running = sandbox.start(&["run", "-q", "-p", "x", "--max-runtime", "6"]);
    sandbox.wait_for_processes(1);
    let raw = sandbox.newest_run().join("iterations/0001/stdout.raw");
    let length = || fs::metadata(&raw).map_or(0, |file| file.len());
    // Far more than the memory that is allowed.
    wait_until("a long line", DEADLINE, || length() > 20 << 20);
    let peak = running.peak_memory();
    let told = running.finish();
    assert_eq!(told.code(), Some(3), "{}{}", told.stdout, told.stderr);
    assert!(peak < MEMORY, "{} MB", peak >> 20);
    let cut = sandbox.records("transcript");
    assert!(
        cut.iter().any(|record| record["event"]["meta"]["kind"] == "cut"),
        "{cut:?}"
    );
    sandbox.wait_until_all_are_gone(Duration::from_secs(10));
}

/// What a gigabyte in one line needs, under a limit on lines of this size.
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
        sandbox.path("play/printed").exists()
    });
    fs::write(sandbox.path("play/measured"), "").expect("a file");
    let raw = sandbox.newest_run().join("iterations/0001/stdout.raw");
    let length = || fs::metadata(&raw).map_or(0, |file| file.len());
    wait_until("all of it", DEADLINE * 10, || length() > 1 << 30);
    let peak = running.peak_memory();
    running.finish().exits_with(0);
    peak
}

#[test]
#[ignore = "a gigabyte takes its time: just slow"]
fn a_line_of_a_gigabyte_is_cut_kept_and_held_in_bounded_memory() {
    let short = peak_of_a_gigabyte_in_one_line(1 << 20);
    assert!(short < MEMORY, "{} MB", short >> 20);
    // The usual limit of 256 MB: a buffer that grows by doubling, and nothing beside it.
    let usual = peak_of_a_gigabyte_in_one_line(256 << 20);
    eprintln!(
        "a gigabyte in one line: {} MB at most, {} MB with lines of 1 MB",
        usual >> 20,
        short >> 20
    );
    assert!(usual < 600 << 20, "{} MB", usual >> 20);
}

#[test]
#[ignore = "takes its time in a debug build: just slow"]
fn a_million_lines_at_once_are_all_there() {
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

/// Who says one byte in a while is at work: the idle limit counts from the last byte, not from the last line.
#[test]
fn a_byte_now_and_then_is_no_silence() {
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
        .playing(
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
