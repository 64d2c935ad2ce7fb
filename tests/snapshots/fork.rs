//! `ralph fork` and `ralph race`: a run continues from the end of an iteration, with its files and its journal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::helpers::git;
use crate::sandbox::{CommandOutput, Running, Sandbox};

const CONFIG: &str = "event_loop: {prompt: x, max_iterations: 2, max_no_progress: 0}\ncli: {transcript: plain}\n\
                      gates:\n  - {name: answer, run: grep -qx 42 answer.txt}\n";

/// Installs a shell script as an agent.
fn agent(sandbox: &Sandbox, name: &str, script: &str) {
    let path = sandbox.path("bin").join(name);
    let text = format!("#!/bin/sh\n[ \"$1\" = --version ] && echo 1.0.0 && exit\n{script}\n");
    fs::write(&path, text).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

/// A repository with a run of two iterations that appends a line in each one.
fn two_iterations() -> Sandbox {
    let sandbox = Sandbox::new()
        .with_file("ralph.yml", CONFIG)
        .with_file(".gitignore", ".agent\n");
    agent(
        &sandbox,
        "claude",
        "echo line >> log.txt; echo 1 > answer.txt; echo working",
    );
    git(&sandbox.work(), &["init", "--quiet"]);
    git(&sandbox.work(), &["add", "-A"]);
    git(&sandbox.work(), &["commit", "--quiet", "-m", "first"]);
    sandbox.ralph(&["run", "-q", "--agent", "claude"]).exits_with(3);
    sandbox
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The directory that the output of `ralph fork` names.
fn directory_of(output: &CommandOutput) -> PathBuf {
    let line = output
        .stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix("directory "));
    PathBuf::from(line.unwrap_or_else(|| panic!("{output:?}")).trim())
}

fn ralph_in(sandbox: &Sandbox, directory: &Path, arguments: &[&str]) -> CommandOutput {
    Running::start(sandbox.command(arguments).current_dir(directory)).finish()
}

fn records(run: &Path) -> Vec<Value> {
    let text = read(&run.join("events.jsonl"));
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect()
}

/// A fork of iteration 1 whose agent finds the answer; returns its directory.
fn fork_with_the_answer(sandbox: &Sandbox) -> PathBuf {
    agent(sandbox, "codex", "echo 42 > answer.txt; echo LOOP_COMPLETE");
    let arguments = ["fork", "@1", "--agent", "codex", "-p", "another task"];
    directory_of(&sandbox.ralph(&arguments).exits_with(0))
}

/// The directory of the newest run of the project in a directory.
fn run_of(sandbox: &Sandbox, directory: &Path) -> PathBuf {
    let shown = ralph_in(sandbox, directory, &["show", "--json"])
        .exits_with(0)
        .json();
    PathBuf::from(shown["header"]["directory"].as_str().expect("a directory"))
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("a name")
}

#[test]
fn a_fork_continues_after_the_iteration_with_its_files_and_another_agent() {
    let sandbox = two_iterations();
    let fork = fork_with_the_answer(&sandbox);
    assert_eq!(
        read(&fork.join("log.txt")),
        "line\n",
        "the files after iteration 1"
    );
    assert_eq!(read(&fork.join("answer.txt")), "42\n");
    let work = sandbox.work();
    assert_eq!(
        read(&work.join("log.txt")),
        "line\nline\n",
        "the project is not changed"
    );
    assert_eq!(read(&work.join("answer.txt")), "1\n");

    let shown = ralph_in(&sandbox, &fork, &["show", "--json"])
        .exits_with(0)
        .json();
    let origin = &shown["header"]["forked_from"];
    let original = sandbox.newest_run();
    assert_eq!(
        (&origin["run"], &origin["iteration"]),
        (&name(&original).into(), &1.into()),
        "{shown}"
    );
    assert_eq!(shown["header"]["agent"], "codex");
    assert_eq!(
        shown["iterations"].as_array().map(Vec::len),
        Some(2),
        "iteration 1 of the other run and one of its own"
    );
    let prompt = read(&run_of(&sandbox, &fork).join("iterations/0002/prompt.md"));
    assert!(prompt.contains("another task"), "{prompt}");
}

#[test]
fn a_fork_has_the_snapshots_of_the_other_run_and_its_files_can_be_taken_over() {
    let sandbox = two_iterations();
    let fork = fork_with_the_answer(&sandbox);
    let diff = ralph_in(&sandbox, &fork, &["diff", "2"]).exits_with(0).stdout;
    assert!(diff.contains("-1\n+42\n") && !diff.contains("log.txt"), "{diff}");
    let first = ralph_in(&sandbox, &fork, &["diff", "1", "--stat"])
        .exits_with(0)
        .stdout;
    assert!(first.contains("log.txt"), "snapshots of the other run: {first}");
    ralph_in(&sandbox, &fork, &["verify"]).exits_with(0);
    let run = run_of(&sandbox, &fork);
    let receipt = run.join("receipt.json");
    ralph_in(&sandbox, &fork, &["verify", receipt.to_str().expect("a path")]).exits_with(0);

    sandbox
        .ralph(&["restore", &format!("{}@2", name(&run))])
        .exits_with(0);
    assert_eq!(
        read(&sandbox.work().join("answer.txt")),
        "42\n",
        "the fork's files in the project"
    );
    assert_eq!(read(&sandbox.work().join("log.txt")), "line\n");
}

#[test]
fn a_fork_of_a_completed_run_works_on_and_is_a_run_like_any_other() {
    let sandbox = two_iterations();
    agent(&sandbox, "claude", "echo 42 > answer.txt; echo LOOP_COMPLETE");
    sandbox.ralph(&["run", "-q", "--agent", "claude"]).exits_with(0);
    let output = sandbox.ralph(&["fork", "@1", "--no-run"]).exits_with(0);
    let fork = directory_of(&output);
    assert_eq!(read(&fork.join("answer.txt")), "42\n");
    agent(&sandbox, "claude", "echo more >> log.txt; echo LOOP_COMPLETE");
    ralph_in(&sandbox, &fork, &["run", "--continue", "-q"]).exits_with(0);
    assert_eq!(read(&fork.join("log.txt")), "line\nline\nmore\n");
    let shown = ralph_in(&sandbox, &fork, &["show", "--json"]).json();
    assert_eq!(shown["iterations"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_fork_starts_before_the_first_iteration_and_outside_of_git() {
    let sandbox = Sandbox::new()
        .with_file("ralph.yml", CONFIG)
        .with_file("own.txt", "own\n");
    agent(&sandbox, "claude", "echo line >> log.txt");
    sandbox.ralph(&["run", "-q", "--agent", "claude"]).exits_with(3);
    let into = sandbox.path("elsewhere");
    let into = into.to_str().expect("a path");
    let output = sandbox
        .ralph(&["fork", "@0", "--into", into, "-n", "1"])
        .exits_with(3);
    let fork = directory_of(&output);
    assert_eq!(
        (read(&fork.join("own.txt")), read(&fork.join("log.txt"))),
        ("own\n".into(), "line\n".into())
    );
    let again = sandbox.ralph(&["fork", "@0", "--into", into]).exits_with(1);
    assert!(again.stderr.contains("is not empty"), "{again:?}");
    let missing = sandbox.ralph(&["fork", "@9"]).exits_with(2);
    assert!(
        missing.stderr.contains("has no snapshot after iteration 9"),
        "{missing:?}"
    );
}

#[test]
fn gates_that_changed_since_the_run_started_need_consent() {
    let sandbox = two_iterations();
    let weak = CONFIG
        .replace("grep -qx 42 answer.txt", "'true'")
        .replace('\n', "\\n");
    agent(
        &sandbox,
        "claude",
        &format!("printf \"{weak}\" > ralph.yml; echo LOOP_COMPLETE"),
    );
    sandbox.ralph(&["run", "-q", "--agent", "claude"]).exits_with(3);
    let output = sandbox.ralph(&["fork", "@2", "-n", "9"]).exits_with(2);
    assert!(
        output.stderr.contains("the configuration has changed"),
        "{output:?}"
    );
}

#[test]
fn the_first_verified_agent_wins_a_race_and_the_others_are_stopped() {
    let sandbox = two_iterations();
    agent(&sandbox, "claude", "sleep 600");
    agent(&sandbox, "codex", "echo 42 > answer.txt; echo LOOP_COMPLETE");
    agent(&sandbox, "gemini", "echo 41 > answer.txt; echo LOOP_COMPLETE");
    let arguments = [
        "race",
        "@1",
        "--agent",
        "claude,codex,gemini",
        "-n",
        "4",
        "--json",
    ];
    let report = sandbox.ralph(&arguments).exits_with(0).json();
    let contenders = report["contenders"].as_array().expect("contenders");
    let by_agent = |name: &str| {
        let found = contenders.iter().find(|row| row["agent"] == name);
        found.unwrap_or_else(|| panic!("{report}"))
    };
    assert_eq!(report["winner"], by_agent("codex")["run"], "{report}");
    assert_eq!(by_agent("claude")["verified"], false);
    assert_eq!(by_agent("gemini")["verified"], false);
    for row in contenders {
        let directory = PathBuf::from(row["directory"].as_str().expect("a directory"));
        assert_eq!(read(&directory.join("log.txt")), "line\n", "{row}");
        let id = row["run"].as_str().expect("an id");
        let receipt = ralph_in(&sandbox, &directory, &["receipt", id, "--json"])
            .exits_with(0)
            .json();
        assert_eq!(receipt["verified"], row["verified"], "{receipt}");
        assert_eq!(receipt["forked_from"]["iteration"], 1);
        let run = ralph_in(&sandbox, &directory, &["show", id, "--json"]).json();
        let run = PathBuf::from(run["header"]["directory"].as_str().expect("a directory"));
        assert_eq!(
            records(&run).last().expect("a record")["type"],
            "run_ended",
            "{row}"
        );
    }
}

#[test]
fn a_race_without_a_right_agent_has_no_winner() {
    let sandbox = two_iterations();
    agent(&sandbox, "codex", "echo 40 > answer.txt; echo LOOP_COMPLETE");
    agent(&sandbox, "gemini", "echo 41 > answer.txt; echo LOOP_COMPLETE");
    let output = sandbox
        .ralph(&["race", "@1", "--agent", "codex,gemini", "-n", "3"])
        .exits_with(1);
    assert!(output.stdout.contains("No agent passed the gates."), "{output:?}");
}
