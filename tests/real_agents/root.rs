//! Runs as root, as in most containers: ralph sets the documented switch of programs that refuse root.

use crate::fixture::Fixture;
use crate::model::{Model, say};
use crate::programs::Program;
use crate::tests_for_programs;

tests_for_programs!(agents_run_as_root);
tests_for_programs! {
    claude_refuses_root_without_the_switch: claude => Claude;
}

fn model() -> Model {
    Model::with_conversations(vec![vec![vec![say("Done.\nLOOP_COMPLETE")]]])
}

/// The suite runs as root inside its namespace.
fn assert_root() {
    assert!(rustix::process::geteuid().is_root());
}

fn agents_run_as_root(cli: Program) {
    assert_root();
    let model = model();
    let fixture = Fixture::new(cli, &model.url()).without_env("IS_SANDBOX");
    fixture.run("Do it.\n").assert_code(0);
    let shown = fixture.ralph(&["run", "--dry-run", "--agent", cli.name(), "-p", "Do it."]);
    shown.assert_code(0);
    assert_eq!(
        shown.stdout.contains("IS_SANDBOX=1"),
        cli == Program::Claude,
        "{}",
        shown.stdout
    );
}

/// When this fails, the switch is no longer needed.
fn claude_refuses_root_without_the_switch(cli: Program) {
    assert_root();
    let model = model();
    let fixture = Fixture::new(cli, &model.url());
    let call = ["60", "claude", "--dangerously-skip-permissions", "-p", "hello"];
    let refused = fixture
        .command("timeout")
        .args(call)
        .output()
        .expect("claude runs");
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("root"), "{refused:?}");
    assert!(model.requests().is_empty());
}
