//! Agents whose process misbehaves: it floods stderr, closes stdout, stops itself, leaves children.

use std::time::Duration;

use rustix::process::Signal;

use crate::sandbox::{Sandbox, claude};

const SOON: Duration = Duration::from_secs(10);

fn claude_with_script(script: &str) -> Sandbox {
    Sandbox::new().with_agent("claude").with_script("default", script)
}

fn completing(before: &str) -> Sandbox {
    claude_with_script(&format!("{before}{}", claude::session("LOOP_COMPLETE")))
}

#[test]
fn ten_megabytes_on_stderr_do_not_block_the_agent_and_are_stored() {
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
fn an_agent_that_closes_stdout_and_hangs_is_stopped_by_the_idle_limit() {
    let sandbox = claude_with_script("close-stdout\nhang\n").with_file(
        "ralph.yml",
        "adapters: { claude: { idle_timeout: 1 } }\nevent_loop: { max_iterations: 1 }\n",
    );
    let output = sandbox.ralph(&["run", "-p", "x"]);
    assert_ne!(output.code(), Some(0), "{}", output.stdout);
    sandbox.wait_until_processes_exit(SOON);
}

#[test]
fn an_agent_that_stops_itself_is_stopped_by_the_idle_limit() {
    let sandbox = claude_with_script("stop-self\nhang\n").with_file(
        "ralph.yml",
        "adapters: { claude: { idle_timeout: 1 } }\nevent_loop: { max_iterations: 1 }\n",
    );
    let output = sandbox.ralph(&["run", "-p", "x"]);
    assert_ne!(output.code(), Some(0), "{}", output.stdout);
    sandbox.wait_until_processes_exit(SOON);
}

#[test]
fn an_agent_that_execs_another_program_is_still_supervised() {
    let sandbox = Sandbox::new().with_file(
        "exec.sh",
        "#!/bin/sh\necho $$ >> \"$FAKE_AGENT/pids\"\nexec sh -c 'echo LOOP_COMPLETE; exec sleep 1000'\n",
    );
    let mut command = sandbox.command(&[
        "run",
        "-p",
        "x",
        "--agent-cmd",
        "/bin/sh exec.sh",
        "--max-runtime",
        "2",
    ]);
    command.env("PATH", "/usr/bin:/bin");
    let output = crate::sandbox::Running::start(&mut command).finish();
    assert_eq!(output.code(), Some(3), "{}", output.stdout);
    assert_eq!(sandbox.pids().len(), 1);
    sandbox.wait_until_processes_exit(SOON);
}

#[test]
fn an_agent_that_does_not_read_its_prompt_does_not_fail() {
    let sandbox = Sandbox::new()
        .with_agent("mine")
        .with_file("PROMPT.md", &"p".repeat(2_000_000))
        .with_file(
            "ralph.yml",
            "cli: { backend: custom, command: mine, prompt_mode: stdin }\n",
        )
        .with_script("default", "say LOOP_COMPLETE\n");
    sandbox.ralph(&["run"]).exits_with(0);
}

#[test]
fn five_hundred_children_and_zombies_end_with_the_agent() {
    let sandbox = Sandbox::new().with_file(
        "children.sh",
        "i=0\nwhile [ $i -lt 500 ]; do sleep 1000 & echo $! >> \"$FAKE_AGENT/pids\"; i=$((i+1)); done\n\
         (exit 0) & (exit 1) &\necho LOOP_COMPLETE\n",
    );
    let mut command = sandbox.command(&["run", "-p", "x", "--agent-cmd", "/bin/sh children.sh"]);
    command.env("PATH", "/usr/bin:/bin");
    crate::sandbox::Running::start(&mut command)
        .finish()
        .exits_with(0);
    assert_eq!(sandbox.pids().len(), 500);
    sandbox.wait_until_processes_exit(SOON);
}

#[test]
fn a_killed_agent_fails_the_iteration_and_not_the_run() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("1", "die KILL\n")
        .with_script("default", &claude::session("LOOP_COMPLETE"))
        .with_file("ralph.yml", "event_loop: { cooldown_seconds: 0 }\n");
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    assert_eq!(sandbox.records("iteration_ended").len(), 2);
}

#[test]
fn ralph_continues_after_sigstop_and_sigcont() {
    let sandbox = claude_with_script(&format!("wait-for go\n{}", claude::session("LOOP_COMPLETE")));
    let running = sandbox.start(&["run", "-p", "x"]);
    sandbox.wait_for_processes(1);
    running.signal(Signal::STOP);
    std::fs::write(sandbox.path("agent/go"), "").expect("a file");
    running.signal(Signal::CONT);
    running.finish().exits_with(0);
}
