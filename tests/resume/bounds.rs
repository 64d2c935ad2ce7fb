//! Tests of progress detection and allowed paths; neither changes the user's repository.

use std::fs;

use ralph::event::{IterationFailure, IterationOutcome};

use crate::sandbox::Sandbox;

fn files_outside_allowed_paths(sandbox: &Sandbox, ended: usize) -> Vec<String> {
    match &sandbox.iteration_outcomes()[ended].2 {
        IterationOutcome::Failed {
            failure: IterationFailure::OutsideAllowedPaths { files, .. },
        } => files.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_does_not_change_the_users_repository() {
    let config = "event_loop: {prompt: x, max_no_progress: 2, allowed_paths: [\"a.txt\"]}\n\
                  gates: [{name: g, run: 'false'}]\nhooks: {on_iteration: 'cat > /dev/null'}\n";
    let sandbox = Sandbox::scripted("say hm\nsay LOOP_COMPLETE", config);
    sandbox.init_git_repository();
    let before = sandbox.git_state();
    assert_eq!(sandbox.ralph(&["run"]).exit(), 1, "no progress");
    sandbox.ralph(&["tell", "hello"]);
    assert_eq!(sandbox.ralph(&["run", "--continue"]).exit(), 1);
    sandbox.ralph(&["init"]);
    assert!(
        sandbox.git_state() == before,
        "the user's repository is unchanged"
    );
}

#[test]
fn a_run_without_progress_fails_with_a_reason() {
    let sandbox = Sandbox::scripted("say hm", "event_loop: {prompt: x, max_no_progress: 3}\n");
    sandbox.init_git_repository();
    let output = sandbox.ralph(&["run"]);
    assert_eq!(output.exit(), 1);
    assert!(
        output
            .text()
            .contains("nothing has changed in 3 iterations in a row"),
        "{}",
        output.text()
    );
    assert_eq!(sandbox.run_end().1, 3);
}

#[test]
fn commits_untracked_files_and_changes_are_progress_and_ignored_files_are_not() {
    let commit = "run git -c user.name=t -c user.email=t@t commit --quiet --allow-empty -m x\nsay hm";
    let sandbox = Sandbox::scripted(
        "run echo x >> ignored\nsay hm",
        "event_loop: {prompt: x, max_no_progress: 2}\n",
    )
    .with_script("1", "run echo new > new.txt\nsay hm")
    .with_script("2", "run echo more >> untracked.txt\nsay hm")
    .with_script("3", commit)
    .with_script("4", "run echo a >> a.txt\nsay hm")
    .with_script("5", "say nothing")
    .with_script("6", "run git rm --quiet --force a.txt\nsay hm");
    sandbox.init_git_repository();
    assert_eq!(sandbox.ralph(&["run"]).exit(), 1);
    assert_eq!(sandbox.run_end().1, 8, "{}", sandbox.failure_reason());
}

#[test]
fn progress_is_detected_outside_of_git_too() {
    let sandbox = Sandbox::scripted("say hm", "event_loop: {prompt: x, max_no_progress: 2}\n")
        .with_script("2", "write new.txt x\nsay hm");
    assert_eq!(sandbox.ralph(&["run"]).exit(), 1);
    assert_eq!(sandbox.run_end().1, 4);
    let off = Sandbox::scripted(
        "say hm",
        "event_loop: {prompt: x, max_no_progress: 0, max_iterations: 7}\n",
    );
    assert_eq!(off.ralph(&["run"]).exit(), 3);
}

#[test]
fn a_change_outside_of_the_allowed_paths_fails_the_iteration_and_names_the_files() {
    let config =
        "event_loop: {prompt: x, allowed_paths: [\"src/**\", \"*.md\"], max_consecutive_failures: 1}\n";
    let good = "run mkdir -p src/deep && echo x > src/deep/a.rs && echo x > NOTES.md && echo x > ignored\nsay LOOP_COMPLETE";
    let sandbox = Sandbox::scripted(good, config);
    sandbox.init_git_repository();
    let output = sandbox.ralph(&["run"]);
    assert_eq!(output.exit(), 0, "{}", output.text());

    let bad = "run mkdir -p docs && echo x > docs/NOTES.md && echo y >> b.txt\nsay LOOP_COMPLETE";
    let sandbox = Sandbox::scripted(bad, config);
    sandbox.init_git_repository();
    let output = sandbox.ralph(&["run"]);
    assert_eq!(output.exit(), 1, "{}", output.text());
    assert_eq!(
        files_outside_allowed_paths(&sandbox, 0),
        ["b.txt", "docs/NOTES.md"]
    );
    assert!(
        output.text().contains("allowed_paths: b.txt, docs/NOTES.md"),
        "{}",
        output.text()
    );
}

#[test]
fn a_committed_change_is_a_change_and_the_next_prompt_names_it() {
    let commit = "run echo x >> a.txt && git -c user.name=t -c user.email=t@t commit --quiet -am x\nsay ok";
    let config = "event_loop: {prompt: x, allowed_paths: [\"src/**\"], max_consecutive_failures: 2}\n";
    let sandbox = Sandbox::scripted("read-stdin\nsay LOOP_COMPLETE", config).with_script("1", commit);
    sandbox.init_git_repository();
    assert_eq!(sandbox.ralph(&["run"]).exit(), 0);
    assert!(
        files_outside_allowed_paths(&sandbox, 0).contains(&"a.txt".to_owned()),
        "{:?}",
        files_outside_allowed_paths(&sandbox, 0)
    );
    assert!(sandbox.prompt(2).contains("a.txt"), "{}", sandbox.prompt(2));
}

#[test]
fn understand_may_write_only_its_map() {
    let sandbox = Sandbox::scripted("read-stdin\nwrite codebase_map.md x\nsay LOOP_COMPLETE", "");
    sandbox.init_git_repository();
    let output = sandbox.ralph(&["understand"]);
    assert_eq!(output.exit(), 0, "{}", output.text());
    assert!(sandbox.prompt(1).contains("codebase_map.md"));
    let sandbox = Sandbox::scripted("read-stdin\nwrite a.txt x\nsay LOOP_COMPLETE", "");
    sandbox.init_git_repository();
    let output = sandbox.ralph(&["understand", "1"]);
    assert_eq!(output.exit(), 3, "{}", output.text());
    assert_eq!(files_outside_allowed_paths(&sandbox, 0), ["a.txt"]);
}

#[test]
fn init_writes_what_is_missing_and_overwrites_nothing() {
    let sandbox = Sandbox::scripted("say hm", "");
    let config = fs::read(sandbox.work().join("ralph.yml")).expect("a configuration");
    let output = sandbox.ralph(&["init"]);
    assert_eq!(output.exit(), 0, "{}", output.text());
    assert!(
        output.text().contains("exists  ralph.yml (unchanged)"),
        "{}",
        output.text()
    );
    assert!(output.text().contains("wrote   PROMPT.md"), "{}", output.text());
    assert!(fs::read(sandbox.work().join("ralph.yml")).expect("a configuration") == config);
    fs::remove_file(sandbox.work().join("ralph.yml")).expect("removed");
    assert_eq!(sandbox.ralph(&["init"]).exit(), 0);
    let output = sandbox.ralph(&[
        "run",
        "--dry-run",
        "--agent-cmd",
        env!("CARGO_BIN_EXE_fake-agent"),
    ]);
    assert_eq!(output.exit(), 0, "{}", output.text());
}
