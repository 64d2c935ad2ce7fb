//! Attempts to have commands trusted without the user.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::commit_as_if_cloned;
use crate::sandbox::{Sandbox, command_output};

const CONFIG: &str =
    "cli: {backend: custom, command: touch, args: [PWNED]}\nevent_loop: {prompt: go, max_iterations: 1}\n";

fn cloned() -> Sandbox {
    let sandbox = Sandbox::new();
    fs::write(sandbox.work().join("ralph.yml"), CONFIG).expect("a configuration");
    commit_as_if_cloned(&sandbox);
    sandbox
}

#[test]
fn an_agent_cannot_trust_or_revoke() {
    let sandbox = cloned();
    for arguments in [&["trust"][..], &["trust", "--revoke"]] {
        let mut command = sandbox.command(arguments);
        let output = command
            .env("RALPH_RUN_ID", "20261115-204501-k3f9")
            .output()
            .expect("ralph");
        let output = command_output(output).exits_with(1);
        assert!(
            output.stderr.contains("from inside run 20261115-204501-k3f9"),
            "{output:?}"
        );
    }
    let mut command = sandbox.command(&["trust", "--show"]);
    let output = command.env("RALPH_RUN_ID", "x").output().expect("ralph");
    let output = command_output(output).exits_with(0);
    assert!(output.stdout.contains("NOT allowed"), "{output:?}");
    sandbox.ralph(&["run", "-q"]).exits_with(2);
}

#[test]
fn the_commands_of_a_world_writable_file_do_not_run() {
    let sandbox = Sandbox::new();
    let file = sandbox.work().join("ralph.yml");
    fs::write(&file, CONFIG).expect("a configuration");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("permissions");
    let output = sandbox.ralph(&["run", "-q"]).exits_with(1);
    assert!(
        output.stderr.contains("every user of this machine can write it"),
        "{output:?}"
    );
    assert!(output.stderr.contains("chmod o-w"), "{output:?}");
    assert!(!sandbox.work().join("PWNED").exists());
}

/// Commits the workspace in a repository without a remote.
fn commit(sandbox: &Sandbox) {
    sandbox.git(&["init", "--quiet", "--initial-branch=main"]);
    sandbox.git(&["add", "--force", "."]);
    sandbox.git(&["commit", "--quiet", "-m", "x"]);
}

/// An archive keeps the times of its commits, but not the time at which its directories were created.
#[test]
fn the_commands_of_an_unpacked_repository_do_not_run() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.work().join("ralph.yml"), CONFIG).expect("a configuration");
    commit(&sandbox);
    assert!(
        sandbox
            .ralph(&["trust", "--show"])
            .stdout
            .contains("created on this machine")
    );
    let log = sandbox.work().join(".git/logs/HEAD");
    let old = fs::read_to_string(&log).expect("a log");
    let (before, after) = old.split_once("> ").expect("an entry");
    let (_, zone) = after.split_once(' ').expect("a time");
    for year in ["1600000000", "4000000000"] {
        fs::write(&log, format!("{before}> {year} {zone}")).expect("a log");
        let output = sandbox.ralph(&["run", "-q"]).exits_with(2);
        assert!(
            output.stderr.contains("not created on this machine"),
            "{output:?}"
        );
    }
    fs::remove_file(&log).expect("a log");
    sandbox.ralph(&["run", "-q"]).exits_with(2);
    assert!(!sandbox.work().join("PWNED").exists());
}

#[test]
fn a_prompt_of_a_repository_that_leads_out_of_it_is_not_sent() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", "say LOOP_COMPLETE");
    fs::write(sandbox.path("home/key"), "SECRET").expect("a key");
    std::os::unix::fs::symlink(sandbox.path("home/key"), sandbox.work().join("PROMPT.md")).expect("a link");
    commit_as_if_cloned(&sandbox);
    let output = sandbox.ralph(&["run", "-q", "-n", "1"]).exits_with(2);
    assert!(
        output.stderr.contains("home/key is sent to the agent"),
        "{output:?}"
    );
    fs::remove_file(sandbox.work().join("PROMPT.md")).expect("the link");
    for outside in ["../home/key", "a/../../home/key", "/etc/hostname"] {
        let config = format!("event_loop: {{prompt_file: {outside}}}\n");
        fs::write(sandbox.work().join("ralph.yml"), config).expect("a configuration");
        sandbox.git(&["add", "--all"]);
        let output = sandbox.ralph(&["run", "-q", "-n", "1"]).exits_with(2);
        assert!(output.stderr.contains("prompt file: "), "{output:?}");
    }
    assert!(!sandbox.was_called(1), "an agent was started");
}

#[test]
fn another_work_tree_in_the_configuration_does_not_make_a_file_the_users() {
    let sandbox = cloned();
    for work_tree in ["/", "..", "../.."] {
        sandbox.git(&["config", "core.worktree", work_tree]);
        let output = sandbox.ralph(&["run", "-q"]).exits_with(2);
        assert!(output.stderr.contains("would run these commands"), "{output:?}");
    }
    assert!(!sandbox.work().join("PWNED").exists());
}

#[test]
fn no_agent_is_found_through_a_relative_entry_of_path() {
    let sandbox = Sandbox::new();
    let agent = sandbox.work().join("claude");
    fs::write(&agent, "#!/bin/sh\ntouch PWNED\n").expect("a program");
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("permissions");
    for entry in [".", ""] {
        let mut command = sandbox.command(&["run", "-q", "-p", "x", "-n", "1", "--agent", "claude"]);
        let path = format!("{entry}:{}", sandbox.path("bin").display());
        let output = command.env("PATH", path).output().expect("ralph");
        command_output(output).exits_with(4);
    }
    assert!(!sandbox.work().join("PWNED").exists());
}
