//! `ralph doctor`, in a workspace in which nothing is wrong, and in ones in which one thing is.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::sandbox::{Sandbox, Told, claude};

/// Without what differs from one minute and one machine to the next.
pub(crate) fn steady(sandbox: &Sandbox, text: &str) -> String {
    let steady = |line: &str| {
        let varies = ["free space", "time"];
        let subject = line.get(6..).unwrap_or_default();
        match varies.iter().find(|name| subject.starts_with(**name)) {
            Some(name) => format!("{}{name:<16} [VARIES]\n", line.get(..6).unwrap_or_default()),
            None => format!("{line}\n"),
        }
    };
    sandbox.without_places(text).lines().map(steady).collect()
}

fn git(sandbox: &Sandbox, arguments: &[&str]) {
    let who = [
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@example.org",
        "-c",
        "init.defaultBranch=main",
    ];
    let mut command = Command::new("git");
    command.args(who).args(arguments).current_dir(sandbox.work());
    let output = command.env("HOME", sandbox.path("home")).output().expect("git");
    assert!(output.status.success(), "{output:?}");
}

/// A repository in which all is well.
fn healthy() -> Sandbox {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("LOOP_COMPLETE"))
        .with_file(
            "ralph.yml",
            "cli:\n  backend: claude\ngates:\n  - {name: t, run: 'true'}\n",
        );
    git(&sandbox, &["init", "-q"]);
    git(&sandbox, &["add", "."]);
    git(&sandbox, &["commit", "-qm", "all"]);
    sandbox
}

fn doctor(sandbox: &Sandbox, arguments: &[&str]) -> Told {
    let words: Vec<&str> = ["doctor"].into_iter().chain(arguments.iter().copied()).collect();
    let mut command = sandbox.command(&words);
    command.env("LC_ALL", "C.UTF-8").env("RALPH_MAX_ITERATIONS", "7");
    crate::sandbox::Running::start(&mut command).finish()
}

/// The one finding about this subject. Whatever is not good has a remedy.
fn finding(sandbox: &Sandbox, subject: &str) -> Value {
    let findings = doctor(sandbox, &["--json"]).json();
    let findings = findings.as_array().expect("findings");
    for finding in findings.iter().filter(|finding| finding["state"] != "good") {
        assert!(finding["remedy"].is_string(), "{finding}");
    }
    let about = |finding: &&Value| finding["subject"] == subject;
    findings
        .iter()
        .find(about)
        .unwrap_or_else(|| panic!("{findings:#?}"))
        .clone()
}

#[test]
fn where_all_is_well_the_doctor_says_so() {
    let sandbox = healthy();
    let told = doctor(&sandbox, &["--model", "opus"]).exits_with(0);
    insta::assert_snapshot!(steady(&sandbox, &told.stdout), @"
    configuration
      ✓ [WORKSPACE]/ralph.yml decides cli.backend, gates
      ✓ environment      decides event_loop.max_iterations
      ✓ command line     decides cli.model

    agents
      ✓ claude           fake-agent 9.9.9
      · kiro             not found in PATH
      · gemini           not found in PATH
      · codex            not found in PATH
      · amp              not found in PATH
      · opencode         not found in PATH
      · copilot          not found in PATH
      · cursor           not found in PATH
      ✓ an agent to run  claude can be used

    gates
      ✓ t                true

    trust
      ✓ ralph.yml        yours (tracked, in a repository without a remote); would run: the gate t: true

    workspace
      ✓ directory        [WORKSPACE]
      ✓ git              main, clean
      ✓ lock             free

    terminal
      · screen           none: runs are told line by line
      ✓ locale           C.UTF-8

    disk
      ✓ free space       [VARIES]
      ✓ runs kept        0 runs, 0 B

    clock
      ✓ time             [VARIES]
    ");
}

#[test]
fn changed_files_and_a_place_without_git_are_told() {
    let sandbox = healthy().with_file("new.txt", "x");
    let changed = finding(&sandbox, "git");
    assert_eq!(
        (&changed["state"], &changed["detail"]),
        (&"warning".into(), &"main, 1 changed file".into())
    );
    let plain = Sandbox::new().with_agent("claude");
    assert_eq!(finding(&plain, "git")["state"], "absent");
    doctor(&plain, &[]).exits_with(0);
}

#[test]
fn who_holds_the_workspace_is_told() {
    let sandbox = healthy().playing("1", "say hello\nsleep 60000\n");
    assert_eq!(finding(&sandbox, "lock")["detail"], "free");
    let running = sandbox.start(&["run", "--no-tui", "-p", "x"]);
    crate::process::stage::wait_until("the lock", crate::sandbox::DEADLINE, || {
        finding(&sandbox, "lock")["state"] == "warning"
    });
    let detail = finding(&sandbox, "lock")["detail"]
        .as_str()
        .expect("words")
        .to_owned();
    assert!(detail.starts_with("held by process "), "{detail}");
    doctor(&sandbox, &[]).exits_with(0);
    drop(running);
}

#[test]
fn runs_that_git_would_commit_are_told() {
    let sandbox = healthy();
    sandbox.ralph(&["run", "-q", "--no-tui", "-p", "x"]).exits_with(0);
    let kept = finding(&sandbox, "runs kept");
    assert!(
        kept["detail"].as_str().expect("words").starts_with("1 run, "),
        "{kept}"
    );
    let findings = doctor(&sandbox, &[]).exits_with(0);
    assert!(!findings.stdout.contains(".agent"), "{}", findings.stdout);
    fs::remove_file(sandbox.work().join(".agent/.gitignore")).expect("ralph's own .gitignore");
    assert_eq!(finding(&sandbox, ".agent")["state"], "warning");
}

#[test]
fn what_is_not_allowed_yet_is_told() {
    let sandbox = healthy();
    assert_eq!(finding(&sandbox, "ralph.yml")["state"], "good");
    git(
        &sandbox,
        &["remote", "add", "origin", "https://example.org/x.git"],
    );
    let asked = finding(&sandbox, "ralph.yml");
    assert_eq!(asked["state"], "warning", "{asked}");
    assert!(
        asked["detail"].as_str().expect("words").contains("would run: "),
        "{asked}"
    );
    sandbox.ralph(&["trust"]).exits_with(0);
    assert_eq!(finding(&sandbox, "ralph.yml")["state"], "good");
}

#[test]
fn a_configured_agent_that_is_not_there_is_broken() {
    let sandbox = healthy().with_file("ralph.yml", "cli:\n  backend: gemini\n");
    let told = doctor(&sandbox, &[]).exits_with(1);
    assert!(
        told.stdout.contains("gemini is configured: not found in PATH"),
        "{}",
        told.stdout
    );
}

#[test]
fn a_run_from_the_future_shows_a_wrong_clock() {
    let sandbox = healthy();
    fs::create_dir_all(sandbox.work().join(".agent/runs/29990101-000000-abcd")).expect("a run");
    let clock = finding(&sandbox, "time");
    assert_eq!(clock["state"], "warning", "{clock}");
}

#[test]
fn a_locale_without_utf8_is_told() {
    let sandbox = healthy();
    let mut command = sandbox.command(&["doctor", "--json"]);
    let told = crate::sandbox::Running::start(command.env("LC_ALL", "POSIX"))
        .finish()
        .exits_with(0);
    let findings = told.json();
    let locale = findings
        .as_array()
        .expect("findings")
        .iter()
        .find(|finding| finding["subject"] == "locale");
    assert_eq!(locale.expect("it")["state"], "absent");
}
