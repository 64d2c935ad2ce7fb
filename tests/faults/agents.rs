//! Agents that misbehave as processes.

use std::time::Duration;

use rustix::process::Signal;

use crate::sandbox::{Sandbox, claude};

const SOON: Duration = Duration::from_secs(10);

fn claude_playing(script: &str) -> Sandbox {
    Sandbox::new().with_agent("claude").playing("default", script)
}

fn completing(before: &str) -> Sandbox {
    claude_playing(&format!("{before}{}", claude::session("LOOP_COMPLETE")))
}

#[test]
fn megabytes_on_stderr_alone_hold_nothing_up_and_are_all_there() {
    let line = "x".repeat(1000);
    let sandbox = completing(&format!(
        "run for i in 1 2 3 4 5 6 7 8 9 10; do yes {line} | head -n 1000 >&2; done\n"
    ));
    let mut command = sandbox.command(&["run", "-q", "-p", "x"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", sandbox.path("bin").display()));
    crate::sandbox::Running::start(&mut command)
        .finish()
        .exits_with(0);
    assert_eq!(sandbox.iteration_file("0001", "stderr.raw").len(), 10_000 * 1001);
}

#[test]
fn an_agent_that_closes_stdout_and_goes_on_is_ended_by_the_idle_limit() {
    let sandbox = claude_playing("close-stdout\nhang\n").with_file(
        "ralph.yml",
        "adapters: { claude: { idle_timeout: 1 } }\nevent_loop: { max_iterations: 1 }\n",
    );
    let told = sandbox.ralph(&["run", "-p", "x"]);
    assert_ne!(told.code(), Some(0), "{}", told.stdout);
    sandbox.wait_until_all_are_gone(SOON);
}

#[test]
fn an_agent_that_stops_itself_is_ended_by_the_idle_limit() {
    let sandbox = claude_playing("stop-self\nhang\n").with_file(
        "ralph.yml",
        "adapters: { claude: { idle_timeout: 1 } }\nevent_loop: { max_iterations: 1 }\n",
    );
    let told = sandbox.ralph(&["run", "-p", "x"]);
    assert_ne!(told.code(), Some(0), "{}", told.stdout);
    sandbox.wait_until_all_are_gone(SOON);
}

#[test]
fn an_agent_that_becomes_another_program_is_still_the_agent() {
    let sandbox = Sandbox::new().with_file(
        "become.sh",
        "#!/bin/sh\necho $$ >> \"$FAKE_AGENT/pids\"\nexec sh -c 'echo LOOP_COMPLETE; exec sleep 1000'\n",
    );
    let mut command = sandbox.command(&[
        "run",
        "-p",
        "x",
        "--agent-cmd",
        "/bin/sh become.sh",
        "--max-runtime",
        "2",
    ]);
    command.env("PATH", "/usr/bin:/bin");
    let told = crate::sandbox::Running::start(&mut command).finish();
    assert_eq!(told.code(), Some(3), "{}", told.stdout);
    assert_eq!(sandbox.pids().len(), 1);
    sandbox.wait_until_all_are_gone(SOON);
}

#[test]
fn a_prompt_that_nobody_reads_is_no_failure() {
    let sandbox = Sandbox::new()
        .with_agent("mine")
        .with_file("PROMPT.md", &"p".repeat(2_000_000))
        .with_file(
            "ralph.yml",
            "cli: { backend: custom, command: mine, prompt_mode: stdin }\n",
        )
        .playing("default", "say LOOP_COMPLETE\n");
    sandbox.ralph(&["run"]).exits_with(0);
}

#[test]
fn five_hundred_children_and_their_zombies_are_gone_with_the_agent() {
    let sandbox = Sandbox::new().with_file(
        "crowd.sh",
        "i=0\nwhile [ $i -lt 500 ]; do sleep 1000 & echo $! >> \"$FAKE_AGENT/pids\"; i=$((i+1)); done\n\
         (exit 0) & (exit 1) &\necho LOOP_COMPLETE\n",
    );
    let mut command = sandbox.command(&["run", "-p", "x", "--agent-cmd", "/bin/sh crowd.sh"]);
    command.env("PATH", "/usr/bin:/bin");
    crate::sandbox::Running::start(&mut command)
        .finish()
        .exits_with(0);
    assert_eq!(sandbox.pids().len(), 500);
    sandbox.wait_until_all_are_gone(SOON);
}

#[test]
fn an_agent_killed_from_outside_is_a_failed_iteration_and_not_the_end() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("1", "die KILL\n")
        .playing("default", &claude::session("LOOP_COMPLETE"))
        .with_file("ralph.yml", "event_loop: { cooldown_seconds: 0 }\n");
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    assert_eq!(sandbox.records("iteration_ended").len(), 2);
}

#[test]
fn ralph_stopped_and_continued_goes_on_where_it_was() {
    let sandbox = claude_playing(&format!("wait-for go\n{}", claude::session("LOOP_COMPLETE")));
    let running = sandbox.start(&["run", "-p", "x"]);
    sandbox.wait_for_processes(1);
    running.signal(Signal::STOP);
    std::fs::write(sandbox.path("play/go"), "").expect("a file");
    running.signal(Signal::CONT);
    running.finish().exits_with(0);
}
