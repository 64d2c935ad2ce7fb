//! Which processes a resumed run stops.

use crate::sandbox::Sandbox;
use std::fs;

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
