//! Root, as in most containers: what a program refuses root is met with its own documented switch.

use crate::fixture::Fixture;
use crate::model::{Model, say};
use crate::programs::Program;
use crate::proven_with;

proven_with!(root_can_work);
proven_with! {
    without_its_switch_it_refuses_root: claude => Claude;
}

fn model() -> Model {
    Model::playing(vec![vec![vec![say("Done.\nLOOP_COMPLETE")]]])
}

/// Whoever runs this suite is root inside it.
fn assert_root() {
    assert!(rustix::process::geteuid().is_root());
}

fn root_can_work(cli: Program) {
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

/// The day on which this fails, the switch is needed no more.
fn without_its_switch_it_refuses_root(cli: Program) {
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
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("root"), "{refused:?}");
    assert!(model.asked().is_empty());
}
