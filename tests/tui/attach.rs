//! `ralph attach` and `ralph replay --tui`: the screen of a run that somebody else drives, or that is over.

use rustix::process::Signal;

use super::hanging;
use super::terminal::Terminal;
use crate::process::stage::is_alive;
use crate::sandbox::{Sandbox, claude};

#[test]
fn a_viewer_sees_the_run_and_can_be_killed_without_its_noticing() {
    let sandbox = hanging();
    let run = sandbox.start(&["run", "-p", "go"]);
    sandbox.wait_for_processes(1);
    let viewer = Terminal::start(&sandbox, &["attach"], (100, 30));
    viewer.expect("at work");
    viewer.expect("q leave");
    viewer.kill(Signal::KILL);
    assert!(viewer.is_gone_within(std::time::Duration::from_secs(20)));
    let second = Terminal::start(&sandbox, &["attach", "latest"], (100, 30));
    second.expect("at work");
    assert!(is_alive(run.pid()), "the run goes on");
    assert!(sandbox.records("run_ended").is_empty());
    second.keys("q");
    second.ends("exit status: 0");
    assert!(is_alive(run.pid()), "the run goes on");
    run.signal(Signal::TERM);
    run.finish().exits_with(143);
}

#[test]
fn a_viewer_pauses_tells_and_lets_go_on_by_way_of_the_inbox() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing(
            "1",
            &format!("{}wait-for go\n{}", claude::init(), claude::result("more to do")),
        )
        .playing("default", &claude::session("LOOP_COMPLETE"));
    let driver = Terminal::start(&sandbox, &["run", "-p", "go"], (100, 30));
    driver.expect("working");
    let viewer = Terminal::start(&sandbox, &["attach"], (100, 30));
    viewer.expect("working");
    viewer.keys("s");
    viewer.keys("p");
    viewer.expect("then pause");
    driver.expect("then pause");
    viewer.keys("muse the old parser\r");
    viewer.expect("you: use the old parser");
    std::fs::write(sandbox.path("play").join("go"), "").expect("a file");
    viewer.expect("‖ paused");
    driver.expect("‖ paused");
    viewer.keys("p");
    viewer.expect("Done, but unverified");
    driver.ends("exit status: 0");
    viewer.keys("4");
    viewer.expect("use the old parser");
    viewer.keys("q");
    viewer.ends("exit status: 0");
    let told: Vec<_> = sandbox
        .records("told")
        .iter()
        .map(|told| told["kind"].clone())
        .collect();
    assert_eq!(told, ["pause", "message", "resume"]);
}

#[test]
fn a_run_that_died_is_shown_as_such() {
    let sandbox = hanging();
    let run = sandbox.start(&["run", "-p", "go"]);
    sandbox.wait_for_processes(1);
    let viewer = Terminal::start(&sandbox, &["attach"], (100, 30));
    viewer.expect("at work");
    run.signal(Signal::KILL);
    viewer.expect("its process is gone without a word");
    viewer.kill(Signal::TERM);
    viewer.ends("exit status: 0");
}

#[test]
fn a_recorded_run_is_shown_with_its_own_clock() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("LOOP_COMPLETE"));
    sandbox.ralph(&["run", "-p", "go"]).exits_with(0);
    for arguments in [
        &["replay", "latest", "--tui"][..],
        &["replay", "latest", "--tui", "--speed", "5"],
        &["attach"],
    ] {
        let viewer = Terminal::start(&sandbox, arguments, (100, 30));
        viewer.expect("Done, but unverified");
        viewer.keys("4");
        viewer.expect("go");
        viewer.keys("q");
        viewer.ends("exit status: 0");
    }
    // A pause of an hour between two records: one may leave in the middle of it, and the clock is the recorded one.
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
fn what_cannot_be_watched_is_said() {
    let sandbox = hanging();
    let told = sandbox.ralph(&["attach"]).exits_with(2);
    assert!(told.stderr.contains("no run"), "{}", told.stderr);
    std::fs::create_dir(sandbox.work().join("empty")).expect("a directory");
    let told = sandbox.ralph(&["attach", "./empty"]).exits_with(2);
    assert!(told.stderr.contains("empty"), "{}", told.stderr);
}
