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
