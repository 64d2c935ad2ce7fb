//! `ralph replay`: what was recorded is shown as it was.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::process::stage::PROMPTLY;
use crate::sandbox::{Running, Sandbox, claude};

/// A sandbox in which one run was completed, and what it showed.
fn completed() -> (Sandbox, String) {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("All done.\nLOOP_COMPLETE"));
    let told = sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    (sandbox, told.stdout)
}

fn id_of_newest(sandbox: &Sandbox) -> String {
    let run = sandbox.newest_run();
    run.file_name().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn a_replay_shows_what_the_run_showed_by_whatever_name_it_is_called() {
    let (sandbox, shown) = completed();
    let id = id_of_newest(&sandbox);
    let directory = format!(".agent/runs/{id}");
    let journal = format!("{directory}/events.jsonl");
    fs::copy(sandbox.work().join(&journal), sandbox.work().join("kept")).expect("a copy");
    let names = [
        "latest",
        &id,
        &id[..17],
        &directory,
        &journal,
        ".agent/events.jsonl",
        "kept",
    ];
    for name in names {
        let told = sandbox.ralph(&["replay", name]).exits_with(0);
        assert_eq!(
            (told.stdout.as_str(), told.stderr.as_str()),
            (shown.as_str(), ""),
            "{name}"
        );
    }
}

#[test]
fn a_replay_for_programs_is_the_journal() {
    let (sandbox, _) = completed();
    let told = sandbox.ralph(&["replay", "latest", "--json"]).exits_with(0);
    let journal = fs::read_to_string(sandbox.newest_run().join("events.jsonl")).expect("a journal");
    assert_eq!(told.stdout, journal);
}

#[test]
fn raw_output_is_shown_by_its_adapter() {
    let (sandbox, _) = completed();
    let raw = sandbox.newest_run().join("iterations/0001/stdout.raw");
    let raw = raw.to_str().expect("a path");
    let told = sandbox.ralph(&["replay", raw]).exits_with(0);
    insta::assert_snapshot!(told.stdout, @"
    SYS │ session s-1 · fake-1
     AI │ All done.
        │ LOOP_COMPLETE
    ");
    let told = sandbox
        .ralph(&["replay", raw, "--transcript", "plain"])
        .exits_with(0);
    assert!(told.stdout.contains("\"subtype\":\"init\""), "{}", told.stdout);
}

/// A journal in which an hour passes between two records.
fn with_an_hour_in_it(sandbox: &Sandbox) {
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
fn recorded_times_pass_so_many_times_as_fast() {
    let sandbox = Sandbox::new();
    with_an_hour_in_it(&sandbox);
    let start = Instant::now();
    let told = sandbox
        .ralph(&["replay", "hour.jsonl", "--speed", "3600"])
        .exits_with(0);
    assert!(start.elapsed() >= Duration::from_secs(1), "an hour is a second");
    assert!(told.stdout.contains("number 3"));
}

#[test]
fn an_interrupt_ends_a_replay_at_once() {
    let sandbox = Sandbox::new();
    with_an_hour_in_it(&sandbox);
    let ralph = Running::start(&mut sandbox.command(&["replay", "hour.jsonl", "--speed", "1", "--json"]));
    // It listens for signals before it says anything; but only what has been said can be waited for.
    let listening = || {
        let status = fs::read_to_string(format!("/proc/{}/status", ralph.pid())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 0b10 != 0))
    };
    crate::process::stage::wait_until("a listener for signals", Duration::from_secs(30), listening);
    let start = Instant::now();
    ralph.signal(Signal::INT);
    let told = ralph.finish().exits_with(130);
    assert!(start.elapsed() < PROMPTLY);
    assert!(!told.stdout.contains("number 3"), "{}", told.stdout);
}

#[test]
fn what_this_version_cannot_read_is_left_out_with_one_warning_each() {
    let (sandbox, _) = completed();
    let journal = sandbox.newest_run().join("events.jsonl");
    let text = fs::read_to_string(&journal).expect("a journal");
    let (first, rest) = text.split_once('\n').expect("two records");
    let later = r#"{"seq":2,"at":"2030-01-01T00:00:00Z","type":"dreamt","of":"sheep"}"#;
    let torn = &rest[..40];
    fs::write(
        &journal,
        format!("{first}\n{later}\n{later}\nnonsense\n{rest}{torn}"),
    )
    .expect("a journal");
    let told = sandbox.ralph(&["replay", "latest", "--json"]).exits_with(0);
    assert_eq!(told.stdout, text);
    insta::assert_snapshot!(told.stderr, @"
    warning: left out 2 records of a kind that this ralph does not know: dreamt
    warning: left out 1 record that cannot be read: the journal is damaged
    ");
}

#[test]
fn a_journal_of_a_later_format_is_told_with_a_warning() {
    let sandbox = Sandbox::new();
    with_an_hour_in_it(&sandbox);
    let path = sandbox.work().join("hour.jsonl");
    let text = fs::read_to_string(&path)
        .expect("a journal")
        .replace("\"version\":1", "\"version\":7");
    fs::write(&path, text).expect("a journal");
    let told = sandbox.ralph(&["replay", "hour.jsonl"]).exits_with(0);
    insta::assert_snapshot!(told.stderr, @"warning: the journal was written by a later ralph (format 7); some of it may be shown wrongly");
}

/// What `ralph` says instead of showing anything, with its exit code.
fn refused(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let told = sandbox.ralph(arguments);
    assert_eq!(told.stdout, "");
    let said = sandbox.without_places(&told.stderr);
    format!("{said}[exit {}]", told.code().unwrap_or(-1))
}

#[test]
fn runs_that_cannot_be_told_are_explained() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(refused(&sandbox, &["replay", "latest"]), @"
    error: there is no run in [WORKSPACE]/.agent/runs
      call ralph where the run was started, or name the run's directory
      a file of raw output is named by its path
    [exit 2]
    ");
    for id in ["20261115-204501-k3f9", "20261115-214501-aaaa"] {
        fs::create_dir_all(sandbox.work().join(".agent/runs").join(id)).expect("a run");
    }
    insta::assert_snapshot!(refused(&sandbox, &["replay", "20250101"]), @"
    error: no run has an id that begins with `20250101`
      the newest run is 20261115-214501-aaaa; `latest` stands for it
      and there is no file `20250101` either
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "20261115"]), @"
    error: more than one run has an id that begins with `20261115`
      say more of it; these begin so:
        20261115-214501-aaaa
        20261115-204501-k3f9
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "latest"]), @"
    error: [WORKSPACE]/.agent/runs/20261115-214501-aaaa is not the directory of a run: it has no events.jsonl
      to see the runs of this directory: ralph runs
    [exit 2]
    ");
    let journal = sandbox
        .work()
        .join(".agent/runs/20261115-214501-aaaa/events.jsonl");
    fs::write(journal, "").expect("a journal");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "latest", "--transcript", "claude"]), @"
    error: --transcript is for raw output, and `latest` is a run
      leave it out, or name raw output: …/iterations/0001/stdout.raw
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "latest"]), @"
    warning: [WORKSPACE]/.agent/runs/20261115-214501-aaaa/events.jsonl holds no record
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
      check the path, and that you may read it
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "capture", "--transcript", "cluade"]), @"
    error: unknown transcript format `cluade`
      known formats: auto, plain, rtf1, claude, codex, codex-text, gemini, opencode, copilot, cursor, amp, jq
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&sandbox, &["replay", "capture", "--speed", "2"]), @"
    error: --speed needs recorded times, and capture has none
      leave it out: raw output is shown at once
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
        let told = sandbox.ralph(&["schema", what]).exits_with(0);
        let schema: Value = serde_json::from_str(&told.stdout).expect("JSON");
        assert_eq!(schema["title"], title);
    }
}
