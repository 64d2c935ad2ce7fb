//! Attacks of an agent on the processes that limit it: each ends within the limits, and no process survives.

use std::fs;
use std::time::Duration;

use ralph::event::RunEvent;
use rustix::process::Signal;

use crate::process::helpers::{is_alive, wait_until};
use crate::sandbox::skip::skip;
use crate::sandbox::{Running, Sandbox};

const SOON: Duration = Duration::from_secs(40);

/// A sandbox whose agent writes its process id to a file and then runs `attack`.
fn attacker(attack: &str, limits: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let script = sandbox.path("attack.sh");
    fs::write(&script, format!("echo $$ > pid\n{attack}\n")).expect("a script");
    let config = format!(
        "cli: {{backend: custom, command: sh, args: [{}], prompt_mode: stdin, transcript: plain}}\n\
         event_loop: {{prompt: x, max_iterations: 1, stop_grace_seconds: 1, {limits}}}\n",
        script.display()
    );
    fs::write(sandbox.work().join("ralph.yml"), config).expect("a configuration");
    sandbox
}

fn agent(sandbox: &Sandbox) -> i32 {
    let path = sandbox.work().join("pid");
    let pid = || fs::read_to_string(&path).ok()?.trim().parse().ok();
    wait_until("the agent", SOON, || pid().is_some());
    pid().expect("a pid")
}

fn state_of(pid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().next().map(str::to_owned)
}

fn parent_of(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let (_, after) = stat.rsplit_once(')').expect("a name");
    after
        .split_whitespace()
        .nth(1)
        .and_then(|pid| pid.parse().ok())
        .expect("a parent")
}

fn assert_ends(mut run: Running, code: i32, agent: i32) {
    assert!(run.has_ended_within(SOON), "ralph does not end");
    run.finish().exits_with(code);
    wait_until("the exit of the agent", SOON, || !is_alive(agent));
}

#[test]
fn an_agent_that_stops_its_supervisor_does_not_escape_the_runtime_limit() {
    for attack in [
        "kill -STOP $PPID; sleep 1000",
        "(trap '' TERM; while :; do kill -STOP $PPID; done) & trap '' TERM; while :; do kill -STOP $PPID; done",
    ] {
        let sandbox = attacker(attack, "max_runtime_seconds: 2");
        let run = sandbox.start(&["run", "-q"]);
        let agent = agent(&sandbox);
        assert_ends(run, 3, agent);
    }
}

#[test]
fn an_agent_that_stops_its_supervisor_and_exits_does_not_hang_the_run() {
    let sandbox = attacker("kill -STOP $PPID; echo done", "max_runtime_seconds: 60");
    let run = sandbox.start(&["run", "-q"]);
    let agent = agent(&sandbox);
    assert_ends(run, 3, agent);
}

#[test]
fn two_interrupts_end_an_agent_that_keeps_its_supervisor_stopped() {
    let sandbox = attacker(
        "trap '' TERM INT; sleep 1; while :; do kill -STOP $PPID; done",
        "max_runtime_seconds: 600",
    );
    let run = sandbox.start(&["run", "-q"]);
    let agent = agent(&sandbox);
    let supervisor = parent_of(agent);
    wait_until("a stopped supervisor", SOON, || {
        state_of(supervisor).as_deref() == Some("T")
    });
    run.signal(Signal::INT);
    // Two signals at once would be one.
    sandbox.wait_for_event("the first interrupt", |event| {
        matches!(event, RunEvent::CommandReceived { .. })
    });
    run.signal(Signal::INT);
    assert_ends(run, 130, agent);
    assert!(!is_alive(supervisor));
}

#[test]
fn an_agent_that_stops_ralph_does_not_escape_the_runtime_limit() {
    if fs::File::open("/dev/tty").is_ok() {
        return skip("a user can suspend a ralph that has a terminal");
    }
    let sandbox = attacker(
        "kill -STOP $(cut -d' ' -f4 /proc/$PPID/stat); sleep 1000",
        "max_runtime_seconds: 3",
    );
    let run = sandbox.start(&["run", "-q"]);
    let agent = agent(&sandbox);
    assert_ends(run, 3, agent);
}
