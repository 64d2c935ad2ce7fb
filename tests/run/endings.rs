//! No process survives the end of a run, however the run ends.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::helpers::PROMPTLY;
use crate::sandbox::{Sandbox, claude, was_killed_by};

/// Returns an agent with a child in its session and a grandchild in its own session, three processes that would run for an hour.
fn agent_with_descendants(rest: &str) -> Sandbox {
    let script = format!(
        "{}fork-and-hold-stdout 3600\nfork-setsid 3600\n{rest}",
        claude::init()
    );
    Sandbox::new()
        .with_agent("claude")
        .with_script("default", &script)
}

#[test]
fn nothing_survives_when_ralph_is_killed() {
    let sandbox = agent_with_descendants("hang\n");
    let ralph = sandbox.start(&["run", "-p", "x"]);
    sandbox.wait_for_processes(3);
    ralph.signal(Signal::KILL);
    sandbox.wait_until_processes_exit(PROMPTLY);
    assert!(was_killed_by(ralph.finish().status, Signal::KILL));
}

#[test]
fn nothing_survives_a_signal_and_the_exit_code_names_it() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let sandbox = agent_with_descendants("hang\n");
        let ralph = sandbox.start(&["run", "-p", "x"]);
        sandbox.wait_for_processes(3);
        ralph.signal(signal);
        let output = ralph.finish().exits_with(code);
        sandbox.wait_until_processes_exit(PROMPTLY);
        assert!(
            output.stdout.contains("iterations"),
            "the report is written: {}",
            output.stdout
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
        .with_script("default", &format!("ignore TERM\n{}hang\n", claude::init()));
    let ralph = sandbox.start(&["run", "-p", "x"]);
    sandbox.wait_for_processes(1);
    sandbox.wait_for_journal();
    // The record `stopping` shows that ralph has handled the first signal.
    crate::process::helpers::wait_until("the agent's first line", Duration::from_secs(30), || {
        !sandbox.records("transcript").is_empty()
    });
    ralph.signal(Signal::INT);
    crate::process::helpers::wait_until("the first interrupt", Duration::from_secs(30), || {
        !sandbox.records("stopping").is_empty()
    });
    ralph.signal(Signal::INT);
    ralph.finish().exits_with(130);
    sandbox.wait_until_processes_exit(PROMPTLY);
}

#[test]
fn nothing_survives_a_wall_or_an_idle_timeout() {
    for limit in ["timeout", "idle_timeout"] {
        let config =
            format!("adapters:\n  claude:\n    {limit}: 1\nevent_loop:\n  max_consecutive_failures: 1\n");
        let sandbox = agent_with_descendants("hang\n").with_file("ralph.yml", &config);
        sandbox.ralph(&["run", "-p", "x"]).exits_with(1);
        sandbox.wait_until_processes_exit(PROMPTLY);
        assert_eq!(
            sandbox.records("iteration_ended")[0]["outcome"],
            "timed_out",
            "{limit}"
        );
    }
}

#[test]
fn leftovers_of_a_normal_exit_are_swept_without_delay() {
    let sandbox = agent_with_descendants(&format!(
        "{}{}",
        claude::message("m", "LOOP_COMPLETE"),
        claude::result("LOOP_COMPLETE")
    ));
    let start = Instant::now();
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "a grandchild that holds stdout for an hour delays the run"
    );
    sandbox.wait_until_processes_exit(PROMPTLY);
    let ended = &sandbox.records("agent_ended")[0];
    // The child in the agent's session may have exited with its terminal.
    assert!(ended["swept"].as_u64().is_some_and(|swept| swept >= 1), "{ended}");
    assert!(
        ended["duration_ms"].as_u64().is_some_and(|took| took < 10_000),
        "{ended}"
    );
}

#[test]
fn an_agent_that_does_not_exit_after_its_result_is_stopped_and_the_result_counts() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "event_loop:\n  result_grace_seconds: 1\n")
        .with_script("default", &format!("{}hang\n", claude::session("LOOP_COMPLETE")));
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    sandbox.wait_until_processes_exit(PROMPTLY);
}

#[test]
fn a_closed_stdout_ends_the_run_and_its_agent() {
    let sandbox = agent_with_descendants("repeat 200000 an unread line\nhang\n");
    let mut command = sandbox.command(&["run", "-p", "x", "--json"]);
    let mut child = command.spawn().expect("ralph starts");
    sandbox.wait_for_processes(3);
    drop(child.stdout.take());
    let status = child.wait().expect("ralph ends");
    assert_eq!(status.code(), Some(129));
    sandbox.wait_until_processes_exit(PROMPTLY);
}

#[test]
fn a_second_loop_in_the_same_workspace_names_the_process_of_the_first() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &format!("{}hang\n", claude::init()));
    let first = sandbox.start(&["run", "-p", "x"]);
    sandbox.wait_for_processes(1);
    let second = sandbox.ralph(&["run", "-p", "x"]).exits_with(5);
    let holder = format!("process {}", first.pid());
    assert!(second.stderr.contains(&holder), "{}", second.stderr);
    first.signal(Signal::INT);
    first.finish().exits_with(130);
}
