//! The first command of the README: no agent, no network, no setup.

use std::fs;

use crate::sandbox::Sandbox;

#[test]
fn the_demo_fails_a_gate_mends_it_and_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    let told = sandbox.ralph(&["demo"]).exits_with(0);
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
            told.stdout.contains(expected),
            "{expected} is missing:\n{}",
            told.stdout
        );
    }
    assert_eq!(told.stderr, "");
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
fn a_kept_demo_is_a_project_whose_test_passes_and_whose_second_prompt_had_the_failure() {
    let sandbox = Sandbox::new();
    let told = sandbox.ralph(&["demo", "--keep"]).exits_with(0);
    let place = told
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("The project is in "))
        .expect("a place");
    let test = std::process::Command::new("sh")
        .arg("test.sh")
        .current_dir(place)
        .output()
        .expect("sh");
    assert!(test.status.success(), "{test:?}");
    let runs = fs::read_dir(format!("{place}/.agent/runs"))
        .expect("runs")
        .next()
        .expect("a run")
        .expect("a run");
    let prompt = fs::read_to_string(runs.path().join("iterations/0002/prompt.md")).expect("a prompt");
    assert!(
        prompt.contains("FAILED   greet : wanted 'Hello, world!', got 'Hello, !'"),
        "{prompt}"
    );
}
