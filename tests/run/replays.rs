//! Tests of `ralph replay`.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::process::helpers::PROMPTLY;
use crate::sandbox::{Running, Sandbox, claude};

/// Returns a sandbox with a completed run, and the output of that run.
fn completed() -> (Sandbox, String) {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("All done.\nLOOP_COMPLETE"));
    let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    (sandbox, output.stdout)
}

fn id_of_newest(sandbox: &Sandbox) -> String {
    let run = sandbox.newest_run();
    run.file_name().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn a_replay_prints_the_output_of_the_run_for_every_form_of_its_name() {
    let (sandbox, shown) = completed();
    let id = id_of_newest(&sandbox);
    let directory = sandbox.newest_run().display().to_string();
    let journal = format!("{directory}/events.jsonl");
    fs::copy(&journal, sandbox.work().join("copy")).expect("a copy");
    let names = [
        "latest",
        &id,
        &id[..17],
        &directory,
        &journal,
        ".agent/events.jsonl",
        "copy",
    ];
    for name in names {
        let output = sandbox.ralph(&["replay", name]).exits_with(0);
        assert_eq!(
            (output.stdout.as_str(), output.stderr.as_str()),
            (shown.as_str(), ""),
            "{name}"
        );
    }
}

#[test]
fn a_json_replay_is_the_journal() {
    let (sandbox, _) = completed();
    let output = sandbox.ralph(&["replay", "latest", "--json"]).exits_with(0);
    let journal = fs::read_to_string(sandbox.newest_run().join("events.jsonl")).expect("a journal");
    assert_eq!(output.stdout, journal);
}

#[test]
fn raw_output_is_shown_with_its_transcript_format() {
    let (sandbox, _) = completed();
    let raw = sandbox.newest_run().join("iterations/0001/stdout.raw");
    let raw = raw.to_str().expect("a path");
    let output = sandbox.ralph(&["replay", raw]).exits_with(0);
    insta::assert_snapshot!(output.stdout, @"
    SYS │ session s-1 · fake-1
     AI │ All done.
        │ LOOP_COMPLETE
    ");
    let output = sandbox
        .ralph(&["replay", raw, "--transcript", "plain"])
        .exits_with(0);
    assert!(
        output.stdout.contains("\"subtype\":\"init\""),
        "{}",
        output.stdout
    );
}

/// Writes a journal with an hour between two records.
fn write_journal_with_an_hour_gap(sandbox: &Sandbox) {
    let notice = |seq: u64, at: &str| {
        format!(r#"{{"seq":{seq},"at":"{at}","type":"notice","level":"info","text":"number {seq}"}}"#)
    };
    let start = r#"{"seq":1,"at":"2026-11-15T20:00:00Z","type":"run_started","version":1,"run_id":"r","ralph":"0.1.0","agent":"claude","transcript":"claude","workspace":"/w","max_iterations":3}"#;
    let text = [
        start.to_owned(),
        notice(2, "2026-11-15T20:00:00Z"),
        notice(3, "2026-11-15T21:00:00Z"),
    ];
    fs::write(sandbox.work().join("hour.jsonl"), text.join("\n") + "\n").expect("a journal");
}

#[test]
fn speed_shortens_the_recorded_times() {
    let sandbox = Sandbox::new();
    write_journal_with_an_hour_gap(&sandbox);
    let start = Instant::now();
    let output = sandbox
        .ralph(&["replay", "hour.jsonl", "--speed", "3600"])
        .exits_with(0);
    assert!(
        start.elapsed() >= Duration::from_secs(1),
        "an hour takes a second"
    );
    assert!(output.stdout.contains("number 3"));
}

#[test]
fn an_interrupt_ends_a_replay_at_once() {
    let sandbox = Sandbox::new();
    write_journal_with_an_hour_gap(&sandbox);
    let ralph = Running::start(&mut sandbox.command(&["replay", "hour.jsonl", "--speed", "1", "--json"]));
    // ralph installs its signal handlers before it prints, so wait for the handlers.
    let handles_sigint = || {
        let status = fs::read_to_string(format!("/proc/{}/status", ralph.pid())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 0b10 != 0))
    };
    crate::process::helpers::wait_until("the signal handler", Duration::from_secs(30), handles_sigint);
    let start = Instant::now();
    ralph.signal(Signal::INT);
    let output = ralph.finish().exits_with(130);
    assert!(start.elapsed() < PROMPTLY);
    assert!(!output.stdout.contains("number 3"), "{}", output.stdout);
}

#[test]
fn unknown_and_unreadable_records_are_skipped_with_one_warning_each() {
    let (sandbox, _) = completed();
    let journal = sandbox.newest_run().join("events.jsonl");
    let text = fs::read_to_string(&journal).expect("a journal");
    let (first, rest) = text.split_once('\n').expect("two records");
    let unknown = r#"{"seq":2,"at":"2030-01-01T00:00:00Z","type":"dreamed","of":"sheep"}"#;
    let torn = &rest[..40];
    fs::write(
        &journal,
        format!("{first}\n{unknown}\n{unknown}\nnonsense\n{rest}{torn}"),
    )
    .expect("a journal");
    let output = sandbox.ralph(&["replay", "latest", "--json"]).exits_with(0);
    assert_eq!(output.stdout, text);
    insta::assert_snapshot!(output.stderr, @"
    warning: skipped 2 records of unknown types: dreamed
    warning: skipped 1 record that cannot be read: the journal is damaged
    ");
}

#[test]
fn a_journal_of_a_later_format_is_shown_with_a_warning() {
    let sandbox = Sandbox::new();
    write_journal_with_an_hour_gap(&sandbox);
    let path = sandbox.work().join("hour.jsonl");
    let text = fs::read_to_string(&path)
        .expect("a journal")
        .replace("\"version\":1", "\"version\":7");
    fs::write(&path, text).expect("a journal");
    let output = sandbox.ralph(&["replay", "hour.jsonl"]).exits_with(0);
    insta::assert_snapshot!(output.stderr, @"warning: the journal was written by a newer ralph (format 7); some records may be shown incorrectly");
}

/// Returns the error message and the exit code of a command that prints nothing on stdout.
fn refused(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.ralph(arguments);
    assert_eq!(output.stdout, "");
    let message = sandbox.redact_paths(&output.stderr);
    format!("{message}[exit {}]", output.code().unwrap_or(-1))
}

#[test]
fn runs_that_cannot_be_replayed_are_explained() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(refused(&sandbox, &["replay", "latest"]), @"
    error: no runs found in [WORKSPACE]
    hint: to list the runs of all projects: ralph runs --all
    hint: to use a file of raw output, pass its path
    [exit 2]
    ");
    for id in ["20261115-204501-k3f9", "20261115-214501-aaaa"] {
        fs::create_dir_all(sandbox.runs().join(id)).expect("a run");
    }
    insta::assert_snapshot!(refused(&sandbox, &["replay", "20250101"]), @"
    error: no run id starts with `20250101`
    hint: the newest run is 20261115-214501-aaaa (alias: latest)
    hint: no file named `20250101` exists either
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "20261115"]), @"
    error: several run ids start with `20261115`
    hint: ambiguous; matching runs:
      20261115-214501-aaaa
      20261115-204501-k3f9
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "latest"]), @"
    error: [PROJECT]/runs/20261115-214501-aaaa is not a run directory: events.jsonl is missing
    hint: to list the runs of this project: ralph runs
    [exit 2]
    ");
    let journal = sandbox.runs().join("20261115-214501-aaaa/events.jsonl");
    fs::write(journal, "").expect("a journal");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "latest", "--transcript", "claude"]), @"
    error: --transcript applies to raw output, but `latest` is a run
    hint: remove --transcript, or pass a file of raw output: …/iterations/0001/stdout.raw
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "latest"]), @"
    warning: [PROJECT]/runs/20261115-214501-aaaa/events.jsonl contains no records
    [exit 0]
    ");
}

#[test]
fn raw_output_that_cannot_be_replayed_is_explained() {
    let sandbox = Sandbox::new()
        .with_file("capture", "hello\n")
        .with_file("empty", "");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "./gone"]), @"
    error: cannot read ./gone: No such file or directory (os error 2)
    hint: check the path and its permissions
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "capture", "--transcript", "cluade"]), @"
    error: unknown transcript format `cluade`
    hint: known formats: auto, plain, rtf1, claude, codex, codex-text, gemini, opencode, copilot, cursor, amp, agy, qwen, pi, kimi, vibe, cline, acp, jq
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "capture", "--speed", "2"]), @"
    error: --speed requires recorded times, but capture has none
    hint: remove --speed; raw output has no timing
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "capture", "--speed", "0"]), @"
    error: invalid value '0' for '--speed <TIMES>': expected a number greater than 0, such as 1 or 10

    For more information, try '--help'.
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "empty"]), @"
    warning: empty is empty
    [exit 0]
    ");
}

#[test]
fn the_schemas_are_printed() {
    let sandbox = Sandbox::new();
    for (what, title) in [("events", "Record"), ("config", "ralph.yml")] {
        let output = sandbox.ralph(&["schema", what]).exits_with(0);
        let schema: Value = serde_json::from_str(&output.stdout).expect("JSON");
        assert_eq!(schema["title"], title);
    }
}
