//! Which processes a resumed run stops, and agents that start more of them while they are stopped.

use std::fs;

use rustix::process::Signal;

use crate::process::helpers::wait_until;
use crate::sandbox::{DEADLINE, Sandbox};

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

#[test]
fn only_processes_of_the_agent_are_stopped_when_a_run_is_resumed() {
    let sandbox = attacker("echo done", "max_no_progress: 0");
    sandbox.ralph(&["run", "-q"]).exits_with(3);
    let run = sandbox.newest_run();
    let id = run.file_name().and_then(|name| name.to_str()).expect("an id");
    let mut users_own = std::process::Command::new("sleep")
        .arg("1000")
        .env("RALPH_RUN_ID", id)
        .spawn()
        .expect("sleep");
    let mut agents = std::process::Command::new("sleep")
        .arg("1000")
        .env("RALPH_RUN_ID", id)
        .env("RALPH_ITERATION", "1")
        .spawn()
        .expect("sleep");
    let output = sandbox.ralph(&["run", "-q", "--continue", "-n", "2", "--yes"]);
    let stopped = agents.try_wait().expect("a child of ours").is_some();
    let alive = users_own.try_wait().expect("a child of ours").is_none();
    let _ = (agents.kill(), agents.wait(), users_own.kill(), users_own.wait());
    assert!(stopped && alive, "{stopped} {alive} {output:?}");
}

/// The grace is an hour, so the run ends in time only if the agent does not get it.
#[test]
fn an_agent_that_starts_many_processes_when_it_is_stopped_gets_no_grace() {
    let many = "for i in 1 2 3 4 5 6 7 8 9 10; do for j in 1 2 3 4 5 6 7 8 9 10; do (trap '' TERM; exec sleep 1000) & done; done";
    let attack = format!("trap \"{many}\" TERM\necho ready > ready\nwhile :; do sleep 1; done");
    let sandbox = attacker(&attack, "max_no_progress: 0");
    let config = sandbox.work().join("ralph.yml");
    let text = fs::read_to_string(&config).expect("a configuration");
    fs::write(
        &config,
        text.replace("stop_grace_seconds: 1", "stop_grace_seconds: 1h"),
    )
    .expect("a configuration");
    let run = sandbox.start(&["run", "-q"]);
    wait_until("the agent", DEADLINE, || sandbox.work().join("ready").exists());
    run.signal(Signal::INT);
    let output = run.finish();
    assert_eq!(output.code(), Some(130), "{output:?}");
    sandbox.wait_until_processes_exit(DEADLINE);
}
