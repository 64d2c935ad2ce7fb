//! Typical first mistakes of a new user are reported before the run starts.

use std::fs;

use crate::sandbox::Sandbox;

#[test]
fn the_unchanged_prompt_template_is_refused() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", "");
    sandbox.ralph(&["init"]).exits_with(0);
    let refused = sandbox.ralph(&["run"]).exits_with(2);
    let expected = "PROMPT.md is the unchanged template of `ralph init`\nhint: write your task into it";
    assert!(refused.stderr.contains(expected), "{refused:?}");
    assert!(!sandbox.was_called(1), "no agent is started");

    sandbox.ralph(&["run", "-p", "a task of my own"]).exits_with(0);
    let prompt = sandbox.work().join("PROMPT.md");
    let template = fs::read_to_string(&prompt).expect("the template");
    fs::write(&prompt, format!("{template}\nFix the tests.\n")).expect("a task");
    sandbox.ralph(&["run"]).exits_with(0);
}

#[test]
fn init_writes_a_missing_prompt_again() {
    let sandbox = Sandbox::new();
    sandbox.ralph(&["init"]).exits_with(0);
    fs::remove_file(sandbox.work().join("PROMPT.md")).expect("removed");
    let output = sandbox.ralph(&["init"]).exits_with(0);
    assert!(output.stdout.contains("wrote   PROMPT.md"), "{output:?}");
    let output = sandbox.ralph(&["init"]).exits_with(0);
    assert!(output.stdout.contains("exists  PROMPT.md"), "{output:?}");
}

#[test]
fn a_tilde_that_no_shell_expands_is_explained() {
    let sandbox = Sandbox::new().with_file(
        "ralph.yml",
        "cli: {backend: custom, command: ~/my-agent}\nevent_loop: {prompt: x}\n",
    );
    let refused = sandbox.ralph(&["run"]).exits_with(4);
    assert!(refused.stderr.contains("`~` is not expanded here"), "{refused:?}");
}

#[test]
fn a_message_to_a_completed_run_is_refused() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", "event_loop: {prompt: x}\n");
    sandbox.ralph(&["run"]).exits_with(0);
    let refused = sandbox.ralph(&["tell", "use the new API"]).exits_with(2);
    assert!(refused.stderr.contains("has already completed"), "{refused:?}");
}

#[test]
fn running_gates_without_any_configured_is_reported() {
    let output = Sandbox::new().ralph(&["gates", "run"]).exits_with(0);
    assert!(output.stdout.contains("No gates are configured"), "{output:?}");
}
