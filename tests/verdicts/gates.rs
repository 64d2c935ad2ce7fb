//! Gates have the last word, and what they say reaches the agent.

use std::fs;

use super::in_a_repository;
use crate::sandbox::Sandbox;

const CLAIM: &str = "read-stdin\nsay LOOP_COMPLETE";

#[test]
fn a_gate_that_fails_twice_and_then_passes_takes_three_iterations() {
    // Each iteration leaves one line; the third is enough.
    let config = "event_loop: {prompt: the task}\ngates:\n  - name: tests\n    run: |\n      \
                  echo \"only $(grep -c . done.txt) of 3 are done\"; test \"$(grep -c . done.txt)\" = 3\n";
    let sandbox = Sandbox::scripted(&format!("run echo x >> done.txt\n{CLAIM}"), config);
    let told = in_a_repository(&sandbox, &["run"]).exits_with(0);
    assert_eq!(sandbox.records("iteration_started").len(), 3, "{told:?}");
    assert_eq!(sandbox.records("gate_ended").len(), 3);
    assert!(!sandbox.prompt(1).contains("exit code 1"));
    for (invocation, said) in [(2, "only 1 of 3 are done"), (3, "only 2 of 3 are done")] {
        let prompt = sandbox.prompt(invocation);
        assert!(
            prompt.contains(said) && prompt.contains("exit code 1"),
            "{prompt}"
        );
    }
    assert!(!sandbox.prompt(3).contains("only 1 of 3"), "old news is no news");
}

#[test]
fn a_gate_that_always_fails_ends_in_a_standstill_that_says_so() {
    let config = "event_loop: {prompt: the task, max_no_progress: 3}\n\
                  gates: [{name: tests, run: 'echo 1 test failed; exit 1'}]\n";
    let sandbox = Sandbox::scripted(CLAIM, config);
    let told = in_a_repository(&sandbox, &["run"]).exits_with(1);
    let reason = sandbox.reason();
    assert!(
        reason.contains("nothing has changed in 3 iterations in a row"),
        "{reason}"
    );
    assert!(
        reason.contains("tests"),
        "it names the gate that kept refusing: {reason}"
    );
    assert!(told.stdout.contains("nothing has changed"), "{told:?}");
    assert!(
        sandbox.prompt(2).contains("1 test failed"),
        "{}",
        sandbox.prompt(2)
    );
}

#[test]
fn a_gate_has_a_directory_and_an_environment_of_its_own() {
    let config = "event_loop: {prompt: x}\ngates:\n  - name: web\n    cwd: web\n    env: {CI: 'yes', PORT: '8080'}\n    \
                  run: 'echo \"$CI $PORT $RALPH_ITERATION\" > here; pwd'\n";
    let sandbox = Sandbox::scripted(CLAIM, config);
    fs::create_dir(sandbox.work().join("web")).expect("a directory");
    sandbox.ralph(&["run"]).exits_with(0);
    let written = fs::read_to_string(sandbox.work().join("web/here")).expect("it ran there");
    assert_eq!(written, "yes 8080 1\n");

    // Relative to the file that says so, not to where ralph was called.
    let inner = sandbox.work().join("inner");
    fs::create_dir(&inner).expect("a directory");
    let mut command = sandbox.command(&["gates", "run", "web", "--json"]);
    let told = crate::sandbox::Running::start(command.current_dir(&inner)).finish();
    let told = told.exits_with(0).json();
    let web = fs::canonicalize(sandbox.work().join("web")).expect("a directory");
    assert_eq!(told[0]["output"], format!("{}\n", web.display()));
}

#[test]
fn a_gate_that_cannot_start_says_why_and_is_no_pass() {
    let config =
        "event_loop: {prompt: x, max_iterations: 2}\ngates: [{name: web, cwd: nowhere, run: 'true'}]\n";
    let sandbox = Sandbox::scripted(CLAIM, config);
    sandbox.ralph(&["run"]).exits_with(3);
    let ended = &sandbox.records("gate_ended")[0];
    assert_eq!(ended["result"], "could_not_start", "{ended}");
    assert!(sandbox.prompt(2).contains("nowhere"), "{}", sandbox.prompt(2));
}

#[test]
fn long_output_is_cut_in_its_middle_and_told_with_code_and_duration() {
    let config = "event_loop: {prompt: x, max_iterations: 2}\ngates:\n  - name: noisy\n    run: |\n      \
                  echo the beginning; i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo the end; exit 7\n";
    let sandbox = Sandbox::scripted(CLAIM, config);
    sandbox.ralph(&["run"]).exits_with(3);
    let prompt = sandbox.prompt(2);
    for part in ["the beginning", "the end", "exit code 7", "left out"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert!(prompt.len() < 20_000, "{}", prompt.len());
}
