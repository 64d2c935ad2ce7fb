//! Tests of `ralph demo`, which needs no agent, no network and no setup.

use std::fs;

use ralph::store::StateDirectory;

use crate::sandbox::Sandbox;

#[test]
fn the_demo_fails_a_gate_fixes_it_and_leaves_no_files() {
    let sandbox = Sandbox::new();
    let output = sandbox.ralph(&["demo"]).exits_with(0);
    for expected in [
        "THINK",
        "TOOL",
        "✗ test",
        "✓ test",
        "PLAN",
        "ACTIONS",
        "REPORT",
        "✓ Done. All gates passed (test).",
    ] {
        assert!(
            output.stdout.contains(expected),
            "{expected} is missing:\n{}",
            output.stdout
        );
    }
    assert_eq!(output.stderr, "");
    let left: Vec<_> = fs::read_dir(sandbox.path("tmp")).expect("a directory").collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(
        fs::read_dir(sandbox.work())
            .expect("a directory")
            .next()
            .is_none()
    );
}

#[test]
fn a_kept_demo_has_a_passing_test_and_the_failure_in_its_second_prompt() {
    let sandbox = Sandbox::new();
    let output = sandbox.ralph(&["demo", "--keep"]).exits_with(0);
    let path = output
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("The project is in "))
        .expect("a path");
    let test = std::process::Command::new("sh")
        .arg("test.sh")
        .current_dir(path)
        .output()
        .expect("sh");
    assert!(test.status.success(), "{test:?}");
    let project = StateDirectory::at(sandbox.path("state")).project(path.as_ref());
    let run = project.find_run("latest").expect("a run");
    let prompt = fs::read_to_string(run.join("iterations/0002/prompt.md")).expect("a prompt");
    assert!(
        prompt.contains("FAILED   greet : wanted 'Hello, world!', got 'Hello, !'"),
        "{prompt}"
    );
}
