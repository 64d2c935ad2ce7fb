//! A standstill is noticed, a change out of bounds fails, and none of it touches the user's git.

use std::fs;

use ralph::event::{Failure, IterationOutcome, RunOutcome};

use super::stage::{Stage, code, text};

fn reason(stage: &Stage) -> String {
    match stage.end().0 {
        RunOutcome::Failed { reason } => reason,
        other => panic!("{other:?}"),
    }
}

fn strayed(stage: &Stage, ended: usize) -> Vec<String> {
    match &stage.ended()[ended].2 {
        IterationOutcome::Failed {
            failure: Failure::OutsideAllowedPaths { files, .. },
        } => files.clone(),
        other => panic!("{other:?}"),
    }
}

/// A repository with one commit, a remote, a branch, a stash, something staged and something untracked.
fn lived_in(stage: &Stage) {
    stage.git(&["init", "--quiet", "--initial-branch=main"]);
    fs::write(stage.work().join("a.txt"), "a\n").expect("a file");
    fs::write(stage.work().join("b.txt"), "b\n").expect("a file");
    fs::write(stage.work().join(".gitignore"), "ignored\n").expect("a file");
    stage.git(&["add", "."]);
    stage.git(&["commit", "--quiet", "-m", "first"]);
    stage.git(&["remote", "add", "origin", "https://example.invalid/x.git"]);
    stage.git(&["branch", "other"]);
    fs::write(stage.work().join("a.txt"), "stashed\n").expect("a file");
    stage.git(&["stash", "--quiet"]);
    fs::write(stage.work().join("b.txt"), "staged\n").expect("a file");
    stage.git(&["add", "b.txt"]);
    fs::write(stage.work().join("b.txt"), "staged, then changed\n").expect("a file");
    fs::write(stage.work().join("untracked.txt"), "u\n").expect("a file");
    // The index now knows older times than the files have: a status that refreshed it would write it.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    let file = fs::File::options()
        .write(true)
        .open(stage.work().join("a.txt"))
        .expect("a file");
    file.set_modified(later).expect("another time");
}

/// All that git remembers, and its index byte for byte.
fn git_state(stage: &Stage) -> (Vec<u8>, Vec<Vec<u8>>) {
    let index = fs::read(stage.work().join(".git/index")).expect("an index");
    let asked: [&[&str]; 6] = [
        &["rev-parse", "HEAD"],
        &["symbolic-ref", "HEAD"],
        &["stash", "list", "--format=%H %gs"],
        &["for-each-ref"],
        &["remote", "-v"],
        &["config", "--local", "--list"],
    ];
    let answers = asked.map(|arguments| stage.git(&[&["--no-optional-locks"], arguments].concat()));
    (index, answers.into())
}

#[test]
fn nothing_here_changes_the_users_git() {
    let config = "event_loop: {prompt: x, max_no_progress: 2, allowed_paths: [\"a.txt\"]}\n\
                  gates: [{name: g, run: 'false'}]\nhooks: {on_iteration: 'cat > /dev/null'}\n";
    let stage = Stage::playing("say hm\nsay LOOP_COMPLETE", config);
    lived_in(&stage);
    let before = git_state(&stage);
    assert_eq!(code(&stage.ralph(&["run"])), 1, "a standstill");
    stage.ralph(&["tell", "hello"]);
    assert_eq!(code(&stage.ralph(&["run", "--continue"])), 1);
    stage.ralph(&["init"]);
    assert!(git_state(&stage) == before, "the user's git is as it was");
}

#[test]
fn a_run_in_which_nothing_changes_gives_up_and_says_so() {
    let stage = Stage::playing("say hm", "event_loop: {prompt: x, max_no_progress: 3}\n");
    lived_in(&stage);
    let output = stage.ralph(&["run"]);
    assert_eq!(code(&output), 1);
    assert!(
        text(&output).contains("nothing has changed in 3 iterations in a row"),
        "{}",
        text(&output)
    );
    assert_eq!(stage.end().1, 3);
}

#[test]
fn commits_untracked_files_and_changes_are_progress_and_ignored_files_are_not() {
    let commit = "run git -c user.name=t -c user.email=t@t commit --quiet --allow-empty -m x\nsay hm";
    let stage = Stage::playing(
        "run echo x >> ignored\nsay hm",
        "event_loop: {prompt: x, max_no_progress: 2}\n",
    )
    .act(1, "run echo new > new.txt\nsay hm")
    .act(2, "run echo more >> untracked.txt\nsay hm")
    .act(3, commit)
    .act(4, "run echo a >> a.txt\nsay hm")
    .act(5, "say nothing")
    .act(6, "run git rm --quiet --cached a.txt\nsay hm");
    lived_in(&stage);
    assert_eq!(code(&stage.ralph(&["run"])), 1);
    assert_eq!(stage.end().1, 8, "{}", reason(&stage));
}

#[test]
fn outside_of_git_files_are_looked_at_too() {
    let stage = Stage::playing("say hm", "event_loop: {prompt: x, max_no_progress: 2}\n")
        .act(2, "write new.txt x\nsay hm");
    assert_eq!(code(&stage.ralph(&["run"])), 1);
    assert_eq!(stage.end().1, 4);
    let off = Stage::playing(
        "say hm",
        "event_loop: {prompt: x, max_no_progress: 0, max_iterations: 7}\n",
    );
    assert_eq!(code(&off.ralph(&["run"])), 3);
}

#[test]
fn a_change_out_of_bounds_fails_the_iteration_and_names_the_files() {
    let config =
        "event_loop: {prompt: x, allowed_paths: [\"src/**\", \"*.md\"], max_consecutive_failures: 1}\n";
    let good = "run mkdir -p src/deep && echo x > src/deep/a.rs && echo x > NOTES.md && echo x > ignored\nsay LOOP_COMPLETE";
    let stage = Stage::playing(good, config);
    lived_in(&stage);
    let output = stage.ralph(&["run"]);
    assert_eq!(code(&output), 0, "{}", text(&output));

    let bad = "run mkdir -p docs && echo x > docs/NOTES.md && echo y >> b.txt\nsay LOOP_COMPLETE";
    let stage = Stage::playing(bad, config);
    lived_in(&stage);
    let output = stage.ralph(&["run"]);
    assert_eq!(code(&output), 1, "{}", text(&output));
    assert_eq!(strayed(&stage, 0), ["b.txt", "docs/NOTES.md"]);
    assert!(
        text(&output).contains("(allowed_paths): b.txt, docs/NOTES.md"),
        "{}",
        text(&output)
    );
}

#[test]
fn a_committed_change_is_a_change_and_the_next_prompt_names_it() {
    let commit = "run echo x >> a.txt && git -c user.name=t -c user.email=t@t commit --quiet -am x\nsay ok";
    let config = "event_loop: {prompt: x, allowed_paths: [\"src/**\"], max_consecutive_failures: 2}\n";
    let stage = Stage::playing("read-stdin\nsay LOOP_COMPLETE", config).act(1, commit);
    lived_in(&stage);
    assert_eq!(code(&stage.ralph(&["run"])), 0);
    assert!(
        strayed(&stage, 0).contains(&"a.txt".to_owned()),
        "{:?}",
        strayed(&stage, 0)
    );
    assert!(stage.prompt(2).contains("a.txt"), "{}", stage.prompt(2));
}

#[test]
fn understanding_may_write_its_map_and_nothing_else() {
    let stage = Stage::playing("read-stdin\nwrite codebase_map.md x\nsay LOOP_COMPLETE", "");
    lived_in(&stage);
    let output = stage.ralph(&["understand"]);
    assert_eq!(code(&output), 0, "{}", text(&output));
    assert!(stage.prompt(1).contains("codebase_map.md"));
    let stage = Stage::playing("read-stdin\nwrite a.txt x\nsay LOOP_COMPLETE", "");
    lived_in(&stage);
    let output = stage.ralph(&["understand", "1"]);
    assert_eq!(code(&output), 3, "{}", text(&output));
    assert_eq!(strayed(&stage, 0), ["a.txt"]);
}

#[test]
fn init_writes_what_is_missing_and_overwrites_nothing() {
    let stage = Stage::playing("say hm", "");
    let config = fs::read(stage.work().join("ralph.yml")).expect("a configuration");
    let output = stage.ralph(&["init"]);
    assert_eq!(code(&output), 0, "{}", text(&output));
    assert!(
        text(&output).contains("exists  ralph.yml (left as it is)"),
        "{}",
        text(&output)
    );
    assert!(text(&output).contains("wrote   PROMPT.md"), "{}", text(&output));
    assert!(fs::read(stage.work().join("ralph.yml")).expect("a configuration") == config);
    fs::remove_file(stage.work().join("ralph.yml")).expect("removed");
    assert_eq!(code(&stage.ralph(&["init"])), 0);
    let output = stage.ralph(&[
        "run",
        "--dry-run",
        "--agent-cmd",
        env!("CARGO_BIN_EXE_fake-agent"),
    ]);
    assert_eq!(code(&output), 0, "{}", text(&output));
}
