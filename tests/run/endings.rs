//! However a run ends, nothing that it started outlives it.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::stage::PROMPTLY;
use crate::sandbox::{Sandbox, claude, died_of, is_ignored};

/// An agent with a child that shares its session and a grandchild in a session of its own; both would live for an
/// hour. They are three processes.
fn family(rest: &str) -> Sandbox {
    let script = format!(
        "{}fork-and-hold-stdout 3600\nfork-setsid 3600\n{rest}",
        claude::init()
    );
    Sandbox::new().with_agent("claude").playing("default", &script)
}

#[test]
fn nothing_survives_a_kill_of_ralph_itself() {
    let sandbox = family("hang\n");
    let ralph = sandbox.start(&["run", "-p", "x"]);
    sandbox.wait_for_processes(3);
    ralph.signal(Signal::KILL);
    sandbox.wait_until_all_are_gone(PROMPTLY);
    assert!(died_of(ralph.finish().status, Signal::KILL));
}

#[test]
fn nothing_survives_a_signal_and_the_exit_code_tells_which() {
    let all = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];
    // Under `nohup` a hangup means nothing, to the tests as to ralph.
    for (signal, code) in all.into_iter().filter(|(signal, _)| !is_ignored(*signal)) {
        let sandbox = family("hang\n");
        let ralph = sandbox.start(&["run", "-p", "x"]);
        sandbox.wait_for_processes(3);
        ralph.signal(signal);
        let told = ralph.finish().exits_with(code);
        sandbox.wait_until_all_are_gone(PROMPTLY);
        assert!(
            told.stdout.contains("iterations"),
            "the report is written: {}",
            told.stdout
        );
        assert_eq!(sandbox.records("run_ended")[0]["outcome"], "interrupted");
        assert!(sandbox.newest_run().join("summary.md").exists());
    }
}

#[test]
fn a_second_interrupt_kills_an_agent_that_ignores_the_first() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "event_loop:\n  stop_grace_seconds: 3600\n")
        .playing("default", &format!("ignore TERM\n{}hang\n", claude::init()));
    let ralph = sandbox.start(&["run", "-p", "x"]);
    sandbox.wait_for_processes(1);
    sandbox.wait_for_file(&sandbox.work().join(".agent/events.jsonl"));
    // The first signal is known to have been heard when the run says that it is stopping.
    crate::process::stage::wait_until("the agent's first line", Duration::from_secs(30), || {
        !sandbox.records("transcript").is_empty()
    });
    ralph.signal(Signal::INT);
    crate::process::stage::wait_until("the first interrupt", Duration::from_secs(30), || {
        !sandbox.records("stopping").is_empty()
    });
    ralph.signal(Signal::INT);
    ralph.finish().exits_with(130);
    sandbox.wait_until_all_are_gone(PROMPTLY);
}

#[test]
fn nothing_survives_a_wall_or_an_idle_timeout() {
    for limit in ["timeout", "idle_timeout"] {
        let config =
            format!("adapters:\n  claude:\n    {limit}: 1\nevent_loop:\n  max_consecutive_failures: 1\n");
        let sandbox = family("hang\n").with_file("ralph.yml", &config);
        sandbox.ralph(&["run", "-p", "x"]).exits_with(1);
        sandbox.wait_until_all_are_gone(PROMPTLY);
        assert_eq!(
            sandbox.records("iteration_ended")[0]["outcome"],
            "timed_out",
            "{limit}"
        );
    }
}

#[test]
fn leftovers_of_a_normal_exit_are_swept_and_hold_nothing_up() {
    let sandbox = family(&format!(
        "{}{}",
        claude::message("m", "LOOP_COMPLETE"),
        claude::result("LOOP_COMPLETE")
    ));
    let start = Instant::now();
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "a grandchild that holds stdout for an hour holds nothing up"
    );
    sandbox.wait_until_all_are_gone(PROMPTLY);
    let ended = &sandbox.records("agent_ended")[0];
    // The one that shares the agent's session may have gone with its terminal.
    assert!(ended["swept"].as_u64().is_some_and(|swept| swept >= 1), "{ended}");
    assert!(
        ended["duration_ms"].as_u64().is_some_and(|took| took < 10_000),
        "{ended}"
    );
}

#[test]
fn an_agent_that_lingers_after_its_result_is_stopped_and_judged_by_it() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "event_loop:\n  result_grace_seconds: 1\n")
        .playing("default", &format!("{}hang\n", claude::session("LOOP_COMPLETE")));
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    sandbox.wait_until_all_are_gone(PROMPTLY);
}

#[test]
fn a_reader_that_goes_away_ends_the_run_and_its_agent() {
    let sandbox = family("repeat 200000 a line that nobody reads any more\nhang\n");
    let mut command = sandbox.command(&["run", "-p", "x", "--json"]);
    let mut child = command.spawn().expect("ralph starts");
    sandbox.wait_for_processes(3);
    drop(child.stdout.take());
    let status = child.wait().expect("ralph ends");
    assert_eq!(status.code(), Some(129));
    sandbox.wait_until_all_are_gone(PROMPTLY);
}

#[test]
fn a_second_loop_in_the_same_workspace_is_told_who_holds_it() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &format!("{}hang\n", claude::init()));
    let first = sandbox.start(&["run", "-p", "x"]);
    sandbox.wait_for_processes(1);
    let second = sandbox.ralph(&["run", "-p", "x"]).exits_with(5);
    let holder = format!("process {}", first.pid());
    assert!(second.stderr.contains(&holder), "{}", second.stderr);
    first.signal(Signal::INT);
    first.finish().exits_with(130);
}
