//! Gates decide whether a run is complete, and their output reaches the agent.

use std::fs;

use super::in_a_repository;
use crate::sandbox::Sandbox;

const CLAIM: &str = "read-stdin\nsay LOOP_COMPLETE";

#[test]
fn a_gate_that_fails_twice_and_then_passes_takes_three_iterations() {
    // Each iteration adds one line; the gate passes with three.
    let config = "event_loop: {prompt: the task}\ngates:\n  - name: tests\n    run: |\n      \
                  echo \"only $(grep -c . done.txt) of 3 are done\"; test \"$(grep -c . done.txt)\" = 3\n";
    let sandbox = Sandbox::scripted(&format!("run echo x >> done.txt\n{CLAIM}"), config);
    let output = in_a_repository(&sandbox, &["run"]).exits_with(0);
    assert_eq!(sandbox.records("iteration_started").len(), 3, "{output:?}");
    assert_eq!(sandbox.records("gate_ended").len(), 3);
    assert!(!sandbox.prompt(1).contains("exit code 1"));
    for (invocation, output) in [(2, "only 1 of 3 are done"), (3, "only 2 of 3 are done")] {
        let prompt = sandbox.prompt(invocation);
        assert!(
            prompt.contains(output) && prompt.contains("exit code 1"),
            "{prompt}"
        );
    }
    assert!(
        !sandbox.prompt(3).contains("only 1 of 3"),
        "output of an earlier iteration"
    );
}

#[test]
fn a_gate_that_always_fails_ends_the_run_without_progress_and_is_named() {
    let config = "event_loop: {prompt: the task, max_no_progress: 3}\n\
                  gates: [{name: tests, run: 'echo 1 test failed; exit 1'}]\n";
    let sandbox = Sandbox::scripted(CLAIM, config);
    let output = in_a_repository(&sandbox, &["run"]).exits_with(1);
    let reason = sandbox.failure_reason();
    assert!(
        reason.contains("nothing has changed in 3 iterations in a row"),
        "{reason}"
    );
    assert!(
        reason.contains("tests"),
        "the reason names the failing gate: {reason}"
    );
    assert!(output.stdout.contains("nothing has changed"), "{output:?}");
    assert!(
        sandbox.prompt(2).contains("1 test failed"),
        "{}",
        sandbox.prompt(2)
    );
}

#[test]
fn a_gate_has_its_own_directory_and_environment() {
    let config = "event_loop: {prompt: x}\ngates:\n  - name: web\n    cwd: web\n    env: {CI: 'yes', PORT: '8080'}\n    \
                  run: 'echo \"$CI $PORT $RALPH_ITERATION\" > here; pwd'\n";
    let sandbox = Sandbox::scripted(CLAIM, config);
    fs::create_dir(sandbox.work().join("web")).expect("a directory");
    sandbox.ralph(&["run"]).exits_with(0);
    let written = fs::read_to_string(sandbox.work().join("web/here")).expect("a file of the gate");
    assert_eq!(written, "yes 8080 1\n");

    // `cwd` is relative to the configuration file, not to the working directory.
    let inner = sandbox.work().join("inner");
    fs::create_dir(&inner).expect("a directory");
    let mut command = sandbox.command(&["gates", "run", "web", "--json"]);
    let output = crate::sandbox::Running::start(command.current_dir(&inner)).finish();
    let output = output.exits_with(0).json();
    let web = fs::canonicalize(sandbox.work().join("web")).expect("a directory");
    assert_eq!(output[0]["output"], format!("{}\n", web.display()));
}

#[test]
fn a_gate_that_cannot_start_fails_with_the_reason() {
    let config =
        "event_loop: {prompt: x, max_iterations: 2}\ngates: [{name: web, cwd: nowhere, run: 'true'}]\n";
    let sandbox = Sandbox::scripted(CLAIM, config);
    sandbox.ralph(&["run"]).exits_with(3);
    let ended = &sandbox.records("gate_ended")[0];
    assert_eq!(ended["result"], "could_not_start", "{ended}");
    assert!(sandbox.prompt(2).contains("nowhere"), "{}", sandbox.prompt(2));
}

#[test]
fn long_gate_output_is_cut_in_the_middle() {
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

#[test]
fn gates_of_the_command_line_are_added_to_those_of_the_file() {
    let config =
        "event_loop: {prompt: x, max_iterations: 1}\ngates: [{name: tests, run: 'test -e tested'}]\n";
    let sandbox = Sandbox::scripted(CLAIM, config);
    let flags = [
        "run",
        "--gate",
        "echo linted > lint.txt",
        "--gate",
        "test -e no-such-file",
    ];
    sandbox.ralph(&flags).exits_with(3);
    let names = |sandbox: &Sandbox| -> Vec<String> {
        let started = sandbox.records("gate_started");
        started
            .iter()
            .map(|record| record["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    assert_eq!(names(&sandbox), ["tests"], "the first gate fails");
    fs::write(sandbox.work().join("tested"), "").expect("a file");
    sandbox
        .ralph(&["run", "--continue", "--max-iterations", "2"])
        .exits_with(3);
    assert_eq!(
        names(&sandbox)[1..],
        ["tests", "echo linted > lint.txt", "test -e no-such-file"],
        "resumed with the same gates"
    );
    assert!(sandbox.work().join("lint.txt").exists());
}

#[test]
fn a_run_without_gates_is_unverified_and_can_be_refused() {
    let sandbox = Sandbox::scripted(CLAIM, "event_loop: {prompt: x}\n");
    let output = sandbox.ralph(&["run"]).exits_with(0);
    assert!(
        output
            .stderr
            .contains("ralph cannot verify that the work is done"),
        "{output:?}"
    );
    assert!(output.stdout.contains("Done, but unverified"), "{output:?}");
    assert_eq!(sandbox.records("verification")[0]["verified"], false);

    let sandbox = Sandbox::scripted(CLAIM, "event_loop: {prompt: x, require_gates: true}\n");
    let output = sandbox.ralph(&["run"]).exits_with(2);
    assert!(output.stderr.contains("--gate COMMAND"), "{output:?}");
    let output = sandbox.ralph(&["run", "--gate", "true"]).exits_with(0);
    assert!(
        output.stdout.contains("Done. All gates passed (true)."),
        "{output:?}"
    );
    assert_eq!(sandbox.records("verification")[0]["verified"], true);
}

#[test]
fn hidden_gate_leaves_no_trace_for_the_agent() {
    let config = "event_loop: {prompt: x, max_iterations: 2}\n\
                  gates: [{name: acceptance, hidden: true, run: 'echo SECRET-OUTPUT; : SECRET-COMMAND; exit 1'}]\n";
    let sandbox = Sandbox::scripted(CLAIM, config);
    let output = sandbox.ralph(&["run"]).exits_with(3);
    assert!(
        sandbox.prompt(2).contains("a hidden check failed"),
        "{}",
        sandbox.prompt(2)
    );
    let journal = sandbox.journal_text();
    for text in [sandbox.prompt(1), sandbox.prompt(2), journal, output.stdout] {
        assert!(!text.contains("SECRET"), "{text}");
    }
}

#[test]
fn a_gate_that_must_fail_first_but_passes_is_a_configuration_error() {
    let config =
        "event_loop: {prompt: x}\ngates: [{name: tests, run: 'test -e fixed', must_fail_first: true}]\n";
    let sandbox = Sandbox::scripted(&format!("run : > fixed\n{CLAIM}"), config);
    sandbox.ralph(&["run"]).exits_with(0);
    assert_eq!(sandbox.records("gate_ended").len(), 2);

    let output = sandbox.ralph(&["run"]).exits_with(2);
    assert!(output.stdout.contains("passes before any work"), "{output:?}");
    assert!(
        sandbox.records("iteration_started").is_empty(),
        "no agent was started"
    );
}

#[test]
fn junit_file_is_read_only_if_the_gate_wrote_it() {
    let config = "event_loop: {prompt: x, max_iterations: 2}\ngates:\n  - name: tests\n    report: out/junit.xml\n    \
                  min_tests: 2\n    run: 'if [ -e ready ]; then read -r line < new.xml; echo \"$line\" > out/junit.xml; fi'\n";
    let sandbox = Sandbox::scripted(&format!("run : > ready\n{CLAIM}"), config);
    let report = "<testsuite><testcase name='a'/><testcase name='b'/></testsuite>\n";
    fs::create_dir(sandbox.work().join("out")).expect("a directory");
    for name in ["out/junit.xml", "new.xml"] {
        fs::write(sandbox.work().join(name), report).expect("a file");
    }
    let stale = sandbox.ralph(&["gates", "run"]).exits_with(1);
    assert!(stale.stdout.contains("no tests passed"), "{stale:?}");
    sandbox.ralph(&["run"]).exits_with(0);
    assert_eq!(sandbox.records("gate_ended")[0]["report"]["passed"], 2);
}
