//! `ralph attach` and `ralph replay --tui`: the TUI of a run that another process drives, or that has ended.

use rustix::process::Signal;

use super::hanging_agent;
use super::terminal::Terminal;
use crate::process::helpers::is_alive;
use crate::sandbox::{Sandbox, claude};

#[test]
fn viewer_shows_the_run_and_can_be_killed_without_affecting_it() {
    let sandbox = hanging_agent();
    let run = sandbox.start(&["run", "-p", "go"]);
    sandbox.wait_for_processes(1);
    let viewer = Terminal::start(&sandbox, &["attach"], (100, 30));
    viewer.expect("agent is running");
    viewer.expect("q quit");
    viewer.kill(Signal::KILL);
    assert!(viewer.exits_within(std::time::Duration::from_secs(20)));
    let second = Terminal::start(&sandbox, &["attach", "latest"], (100, 30));
    second.expect("agent is running");
    assert!(is_alive(run.pid()), "the run continues");
    assert!(sandbox.records("run_ended").is_empty());
    second.keys("q");
    second.ends("exit status: 0");
    assert!(is_alive(run.pid()), "the run continues");
    run.signal(Signal::TERM);
    run.finish().exits_with(143);
}

#[test]
fn viewer_pauses_messages_and_resumes_through_the_inbox() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script(
            "1",
            &format!("{}wait-for go\n{}", claude::init(), claude::result("more to do")),
        )
        .with_script("default", &claude::session("LOOP_COMPLETE"));
    let driver = Terminal::start(&sandbox, &["run", "-p", "go"], (100, 30));
    driver.expect("working");
    let viewer = Terminal::start(&sandbox, &["attach"], (100, 30));
    viewer.expect("working");
    viewer.keys("p");
    viewer.expect("then pause");
    driver.expect("then pause");
    viewer.keys("muse the old parser\r");
    viewer.expect("you: use the old parser");
    std::fs::write(sandbox.path("agent").join("go"), "").expect("a file");
    viewer.expect("‖ paused");
    driver.expect("‖ paused");
    viewer.keys("p");
    viewer.expect("Done, but unverified");
    driver.ends("exit status: 0");
    viewer.keys("7");
    viewer.expect("use the old parser");
    viewer.keys("q");
    viewer.ends("exit status: 0");
    let commands: Vec<_> = sandbox
        .records("told")
        .iter()
        .map(|record| record["kind"].clone())
        .collect();
    assert_eq!(commands, ["pause", "message", "resume"]);
}

#[test]
fn viewer_stops_an_iteration_and_answers_a_question() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("1", &format!("{}hang\n", claude::init()))
        .with_script("default", &claude::session("LOOP_COMPLETE"));
    let driver = Terminal::start(&sandbox, &["run", "--interactive", "-p", "go"], (100, 30));
    driver.expect("working");
    let viewer = Terminal::start(&sandbox, &["attach"], (100, 30));
    viewer.expect("s skip");
    viewer.keys("sy");
    viewer.expect("c continue");
    viewer.keys("c");
    driver.ends("exit status: 0");
    viewer.kill(Signal::TERM);
    viewer.ends("exit status: 0");
    let commands: Vec<_> = sandbox
        .records("told")
        .iter()
        .map(|record| record["kind"].clone())
        .collect();
    assert_eq!(commands, ["stop_iteration", "answer"]);
}

#[test]
fn killed_run_is_shown_as_died() {
    let sandbox = hanging_agent();
    let run = sandbox.start(&["run", "-p", "go"]);
    sandbox.wait_for_processes(1);
    let viewer = Terminal::start(&sandbox, &["attach"], (100, 30));
    viewer.expect("agent is running");
    run.signal(Signal::KILL);
    viewer.expect("ralph died (process gone)");
    viewer.kill(Signal::TERM);
    viewer.ends("exit status: 0");
}

#[test]
fn replay_shows_the_recorded_time() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"));
    sandbox.ralph(&["run", "-p", "go"]).exits_with(0);
    for arguments in [
        &["replay", "latest", "--tui"][..],
        &["replay", "latest", "--tui", "--speed", "5"],
        &["attach"],
    ] {
        let viewer = Terminal::start(&sandbox, arguments, (100, 30));
        viewer.expect("Done, but unverified");
        viewer.keys("7");
        viewer.expect("go");
        viewer.keys("q");
        viewer.ends("exit status: 0");
    }
    // With an hour between two records, the viewer shows the recorded time and can be closed during the wait.
    let journal = sandbox.newest_run().join("events.jsonl");
    let text = std::fs::read_to_string(&journal).expect("a journal");
    let header = text.lines().next().expect("a header");
    let at = |time: &str| {
        let mut record: serde_json::Value = serde_json::from_str(header).expect("a record");
        record["at"] = time.into();
        record
    };
    let waiting =
        r#"{"seq":2,"at":"2020-01-01T00:00:01Z","type":"waiting","why":"rate_limit","wait_ms":3600000}"#;
    let ended = r#"{"seq":3,"at":"2020-01-01T01:00:01Z","type":"wait_ended"}"#;
    let record = at("2020-01-01T00:00:00Z");
    std::fs::write(&journal, format!("{record}\n{waiting}\n{ended}\n")).expect("a journal");
    let viewer = Terminal::start(
        &sandbox,
        &["replay", "latest", "--tui", "--speed", "1"],
        (100, 30),
    );
    viewer.expect("◷ waiting 59:");
    viewer.keys("q");
    viewer.ends("exit status: 0");
}

#[test]
fn attach_without_a_run_fails() {
    let sandbox = hanging_agent();
    let output = sandbox.ralph(&["attach"]).exits_with(2);
    assert!(output.stderr.contains("no run"), "{}", output.stderr);
    std::fs::create_dir(sandbox.work().join("empty")).expect("a directory");
    let output = sandbox.ralph(&["attach", "./empty"]).exits_with(2);
    assert!(output.stderr.contains("empty"), "{}", output.stderr);
}
