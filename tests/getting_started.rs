//! What goes wrong in a new user's first hour is told before it costs a night.

use std::fs;

use crate::sandbox::Sandbox;

#[test]
fn a_task_that_nobody_wrote_is_refused() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", "");
    sandbox.ralph(&["init"]).exits_with(0);
    let refused = sandbox.ralph(&["run"]).exits_with(2);
    let said = "PROMPT.md is still what `ralph init` wrote\n  write your task into it";
    assert!(refused.stderr.contains(said), "{refused:?}");
    assert!(!sandbox.was_called(1), "no agent is started for it");

    sandbox.ralph(&["run", "-p", "a task of my own"]).exits_with(0);
    let prompt = sandbox.work().join("PROMPT.md");
    let template = fs::read_to_string(&prompt).expect("the template");
    fs::write(&prompt, format!("{template}\nMend the tests.\n")).expect("a task");
    sandbox.ralph(&["run"]).exits_with(0);
}

#[test]
fn init_writes_the_task_again_where_only_that_is_missing() {
    let sandbox = Sandbox::new();
    sandbox.ralph(&["init"]).exits_with(0);
    fs::remove_file(sandbox.work().join("PROMPT.md")).expect("removed");
    let told = sandbox.ralph(&["init"]).exits_with(0);
    assert!(told.stdout.contains("wrote   PROMPT.md"), "{told:?}");
    let told = sandbox.ralph(&["init"]).exits_with(0);
    assert!(told.stdout.contains("exists  PROMPT.md"), "{told:?}");
}

#[test]
fn a_tilde_that_no_shell_reads_is_explained() {
    let sandbox = Sandbox::new().with_file(
        "ralph.yml",
        "cli: {backend: custom, command: ~/my-agent}\nevent_loop: {prompt: x}\n",
    );
    let refused = sandbox.ralph(&["run"]).exits_with(4);
    assert!(refused.stderr.contains("`~` is the shell's"), "{refused:?}");
}

#[test]
fn words_for_a_run_that_is_complete_are_not_taken() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", "event_loop: {prompt: x}\n");
    sandbox.ralph(&["run"]).exits_with(0);
    let refused = sandbox.ralph(&["tell", "use the new API"]).exits_with(2);
    assert!(
        refused.stderr.contains("is complete: nobody will take it in"),
        "{refused:?}"
    );
}

#[test]
fn gates_that_are_not_there_are_told_and_not_passed_over() {
    let told = Sandbox::new().ralph(&["gates", "run"]).exits_with(0);
    assert!(told.stdout.contains("No gates are configured"), "{told:?}");
}
