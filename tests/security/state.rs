//! Attacks on the files of runs: by a cloned repository, and by an agent that deletes or replaces files of its workspace.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::json;

use super::commit_as_if_cloned;
use crate::sandbox::{CommandOutput, Running, Sandbox, claude};

const ID: &str = "20261115-204501-k3f9";

/// Commits a run that was interrupted and whose flags name a command.
fn commit_a_run(sandbox: &Sandbox) {
    let run = sandbox.work().join(".agent/runs").join(ID);
    fs::create_dir_all(run.join("iterations/0001")).expect("a run");
    let mut header = json!({ "version": 1, "run_id": ID, "ralph": "0.1.0", "agent": "custom", "transcript": "plain",
        "workspace": sandbox.work(), "max_iterations": 9 });
    let mut start = header.clone();
    start["seq"] = json!(1);
    start["at"] = json!("2026-11-15T20:45:01Z");
    start["type"] = json!("run_started");
    fs::write(run.join("events.jsonl"), format!("{start}\n")).expect("a journal");
    header["flags"] = json!({ "cli": { "backend": "custom", "command": "touch", "args": ["PWNED"] },
        "event_loop": { "prompt": "x", "max_iterations": 1 } });
    fs::write(run.join("run.json"), header.to_string()).expect("a header");
    fs::write(run.join("iterations/0001/prompt.md"), "x").expect("a prompt");
}

fn waiting() -> Sandbox {
    Sandbox::new().with_agent("claude").with_script(
        "default",
        &format!("wait-for go\n{}", claude::session("LOOP_COMPLETE")),
    )
}

fn let_the_agent_continue(sandbox: &Sandbox) {
    fs::write(sandbox.path("agent/go"), "").expect("a file");
}

fn ralph_in(sandbox: &Sandbox, directory: &str, arguments: &[&str]) -> CommandOutput {
    let mut command = sandbox.command(arguments);
    Running::start(command.current_dir(sandbox.work().join(directory))).finish()
}

#[test]
fn a_committed_run_is_not_resumed() {
    let sandbox = Sandbox::new();
    commit_a_run(&sandbox);
    commit_as_if_cloned(&sandbox);
    for arguments in [
        &["run", "--continue"][..],
        &["run", "--continue", ID],
        &["run", "--continue", "--trust", "--yes"],
    ] {
        let output = sandbox.ralph(arguments).exits_with(2);
        assert!(output.stderr.contains("cannot be resumed"), "{output:?}");
        assert!(!sandbox.work().join("PWNED").exists());
    }
    assert!(sandbox.ralph(&["show", ID]).exits_with(0).stdout.contains(ID));
}

#[test]
fn a_committed_inbox_is_neither_read_nor_emptied() {
    let sandbox = waiting();
    let_the_agent_continue(&sandbox);
    commit_a_run(&sandbox);
    let keys = sandbox.path("home/.ssh");
    fs::create_dir(&keys).expect("a directory");
    fs::write(keys.join("id_ed25519"), "PRIVATE KEY").expect("a key");
    symlink(&keys, sandbox.work().join(".agent/runs").join(ID).join("inbox")).expect("a link");
    commit_as_if_cloned(&sandbox);
    sandbox.ralph(&["run", "--continue", "--trust", "--yes"]);
    sandbox.ralph(&["tell", ID, "x"]);
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    assert_eq!(
        fs::read_to_string(keys.join("id_ed25519")).expect("a key"),
        "PRIVATE KEY"
    );
    assert_eq!(fs::read_dir(&keys).expect("a directory").count(), 1);
    assert!(!sandbox.journal_text().contains("PRIVATE KEY"));
}

#[test]
fn an_inbox_that_is_a_symbolic_link_is_neither_read_nor_emptied() {
    let sandbox = waiting();
    let running = sandbox.start(&["run", "-p", "x"]);
    sandbox.wait_for_processes(1);
    let keys = sandbox.path("home/.ssh");
    fs::create_dir(&keys).expect("a directory");
    fs::write(keys.join("id_ed25519"), "PRIVATE KEY").expect("a key");
    symlink(&keys, sandbox.newest_run().join("inbox")).expect("a link");
    let_the_agent_continue(&sandbox);
    running.finish().exits_with(0);
    assert_eq!(fs::read_dir(&keys).expect("a directory").count(), 1);
    assert!(sandbox.records("command_received").is_empty());
    let refused = sandbox.ralph(&["tell", "latest", "--pause"]);
    assert_ne!(refused.code(), Some(0), "{refused:?}");
}

#[test]
fn a_linked_agent_directory_is_not_written_to() {
    let sandbox = waiting();
    let_the_agent_continue(&sandbox);
    let elsewhere = sandbox.path("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    symlink(&elsewhere, sandbox.work().join(".agent")).expect("a link");
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    assert_eq!(fs::read_dir(&elsewhere).expect("a directory").count(), 0);
}

#[test]
fn removing_files_of_the_workspace_neither_unlocks_nor_disturbs_a_run() {
    let sandbox = waiting();
    sandbox.git(&["init", "--quiet"]);
    let running = sandbox.start(&["run", "-p", "x"]);
    sandbox.wait_for_processes(1);
    assert!(sandbox.work().join(".agent/events.jsonl").exists());
    sandbox.git(&["clean", "-fdxq"]);
    assert!(!sandbox.work().join(".agent").exists());
    let second = sandbox.ralph(&["run", "-p", "y"]).exits_with(5);
    assert!(second.stderr.contains("another ralph is running"), "{second:?}");
    let_the_agent_continue(&sandbox);
    running.finish().exits_with(0);
    assert_eq!(sandbox.records("run_ended")[0]["outcome"], "complete");
    sandbox.ralph(&["show"]).exits_with(0);
}

#[test]
fn loops_above_and_below_a_running_one_are_refused() {
    let sandbox = waiting();
    for directory in ["a/b", "c"] {
        fs::create_dir_all(sandbox.work().join(directory)).expect("a directory");
    }
    let mut command = sandbox.command(&["run", "-p", "x"]);
    let running = Running::start(command.current_dir(sandbox.work().join("a")));
    sandbox.wait_for_processes(1);
    for directory in [".", "a/b", "a"] {
        ralph_in(&sandbox, directory, &["run", "-p", "y"]).exits_with(5);
    }
    let_the_agent_continue(&sandbox);
    ralph_in(&sandbox, "c", &["run", "-p", "y"]).exits_with(0);
    running.finish().exits_with(0);
}

#[test]
fn a_gate_fails_in_a_subdirectory_as_it_fails_in_the_root() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"))
        .with_file(
            "ralph.yml",
            "gates: [{name: tests, run: '! test -e broken'}]\nevent_loop: {max_iterations: 1}\n\
             hooks: {on_fail: 'pwd > hooked'}\n",
        )
        .with_file("broken", "");
    fs::create_dir(sandbox.work().join("sub")).expect("a directory");
    for directory in [".", "sub"] {
        let output = ralph_in(&sandbox, directory, &["run", "-p", "x"]).exits_with(3);
        assert!(!output.text().contains("Done."), "{output:?}");
        ralph_in(&sandbox, directory, &["gates", "run"]).exits_with(1);
        crate::process::helpers::wait_until("the hook", Duration::from_secs(30), || {
            sandbox.work().join("hooked").exists()
        });
        fs::remove_file(sandbox.work().join("hooked")).expect("the file of the hook");
    }
    fs::remove_file(sandbox.work().join("broken")).expect("removed");
    ralph_in(&sandbox, "sub", &["run", "-p", "x"]).exits_with(0);
}

#[test]
fn allowed_paths_refer_to_the_project_root() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script(
            "default",
            &format!("write new.txt x\n{}", claude::session("LOOP_COMPLETE")),
        )
        .with_file(
            "ralph.yml",
            "event_loop: {max_iterations: 1, allowed_paths: ['sub/**']}\n",
        );
    fs::create_dir(sandbox.work().join("sub")).expect("a directory");
    ralph_in(&sandbox, "sub", &["run", "-p", "x"]).exits_with(0);
    ralph_in(&sandbox, ".", &["run", "-p", "x"]).exits_with(3);
}

#[test]
fn a_run_of_another_project_is_shown_but_not_resumed() {
    let sandbox = waiting();
    let_the_agent_continue(&sandbox);
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let id = sandbox.run_id();
    fs::create_dir(sandbox.path("other")).expect("a directory");
    let elsewhere = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        Running::start(command.current_dir(sandbox.path("other"))).finish()
    };
    assert!(elsewhere(&["show", &id]).exits_with(0).stdout.contains(&id));
    let refused = elsewhere(&["run", "--continue", &id]).exits_with(2);
    let place = sandbox.work().display().to_string();
    assert!(refused.stderr.contains(&place), "{refused:?}");
}

#[test]
fn a_run_of_a_newer_version_is_not_resumed() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("not yet"));
    sandbox.ralph(&["run", "-p", "x", "-n", "1"]).exits_with(3);
    let path = sandbox.newest_run().join("run.json");
    let mut header = crate::sandbox::history::json(&path);
    header["version"] = json!(99);
    fs::write(&path, header.to_string()).expect("a header");
    let refused = sandbox
        .ralph(&["run", "--continue", "-n", "2", "--yes"])
        .exits_with(1);
    assert!(refused.stderr.contains("newer ralph (format 99)"), "{refused:?}");
}

#[test]
fn a_workspace_that_was_moved_ends_the_run_before_the_next_agent_starts() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &format!("wait-for go\n{}", claude::session("not yet")));
    let running = sandbox.start(&["run", "-p", "x", "-n", "3"]);
    sandbox.wait_for_processes(1);
    let run = sandbox.newest_run();
    fs::rename(sandbox.work(), sandbox.path("moved")).expect("moved");
    let_the_agent_continue(&sandbox);
    let output = running.finish().exits_with(1);
    assert!(output.stderr.contains("no longer exists"), "{output:?}");
    assert_eq!(sandbox.pids().len(), 1);
    assert!(!sandbox.work().exists());
    let journal = fs::read_to_string(run.join("events.jsonl")).expect("a journal");
    assert!(journal.contains("iteration_ended"), "{journal}");
}
