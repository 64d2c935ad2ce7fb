//! `ralph doctor` in a healthy workspace, and with one problem at a time.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::sandbox::{CommandOutput, Sandbox, claude};

/// Redacts paths and the lines that depend on time and machine. Omits the last section, which depends on the kernel.
pub(crate) fn redact_varying_lines(sandbox: &Sandbox, text: &str) -> String {
    let text = text.split_once("\nsandbox\n").map_or(text, |(before, _)| before);
    let redact = |line: &str| {
        let varies = ["free space", "time"];
        let subject = line.get(6..).unwrap_or_default();
        match varies.iter().find(|name| subject.starts_with(**name)) {
            Some(name) => format!("{}{name:<16} [VARIES]\n", line.get(..6).unwrap_or_default()),
            None => format!("{line}\n"),
        }
    };
    sandbox.redact_paths(text).lines().map(redact).collect()
}

fn git(sandbox: &Sandbox, arguments: &[&str]) {
    let identity = [
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@example.org",
        "-c",
        "init.defaultBranch=main",
    ];
    let mut command = Command::new("git");
    command.args(identity).args(arguments).current_dir(sandbox.work());
    let output = command.env("HOME", sandbox.path("home")).output().expect("git");
    assert!(output.status.success(), "{output:?}");
}

/// Creates a repository without problems.
fn healthy() -> Sandbox {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"))
        .with_file(
            "ralph.yml",
            "cli:\n  backend: claude\ngates:\n  - {name: t, run: 'true'}\n",
        );
    git(&sandbox, &["init", "-q"]);
    git(&sandbox, &["add", "."]);
    git(&sandbox, &["commit", "-qm", "all"]);
    sandbox
}

fn doctor(sandbox: &Sandbox, arguments: &[&str]) -> CommandOutput {
    let words: Vec<&str> = ["doctor"].into_iter().chain(arguments.iter().copied()).collect();
    let mut command = sandbox.command(&words);
    command.env("LC_ALL", "C.UTF-8").env("RALPH_MAX_ITERATIONS", "7");
    crate::sandbox::Running::start(&mut command).finish()
}

/// Returns the finding about a subject. Asserts that every finding that is not good has a remedy.
fn finding(sandbox: &Sandbox, subject: &str) -> Value {
    let findings = doctor(sandbox, &["--json"]).json();
    let findings = findings.as_array().expect("findings");
    for finding in findings.iter().filter(|finding| finding["state"] != "good") {
        assert!(finding["remedy"].is_string(), "{finding}");
    }
    let has_subject = |finding: &&Value| finding["subject"] == subject;
    findings
        .iter()
        .find(has_subject)
        .unwrap_or_else(|| panic!("{findings:#?}"))
        .clone()
}

#[test]
fn a_healthy_workspace_has_no_warnings() {
    let sandbox = healthy();
    let output = doctor(&sandbox, &["--model", "opus"]).exits_with(0);
    insta::assert_snapshot!(redact_varying_lines(&sandbox, &output.stdout), @"
    configuration
      ✓ [WORKSPACE]/ralph.yml sets cli.backend, gates
      ✓ environment      sets event_loop.max_iterations
      ✓ command line     sets cli.model

    agents
      ✓ claude           fake-agent 9.9.9
      · kiro             not found in PATH
      · agy              not found in PATH
      · gemini           not found in PATH
      · codex            not found in PATH
      · amp              not found in PATH
      · opencode         not found in PATH
      · copilot          not found in PATH
      · cursor           not found in PATH
      · qwen             not found in PATH
      · pi               not found in PATH
      · kimi             not found in PATH
      · vibe             not found in PATH
      · cline            not found in PATH
      ✓ an agent to run  claude is available

    gates
      ✓ t                true

    trust
      ✓ ralph.yml        yours (tracked, in a repository that was created on this machine); would run: gate t: true

    workspace
      ✓ directory        [WORKSPACE]
      ✓ git              main, clean
      ✓ lock             free
      ✓ state            [SANDBOX]/state

    terminal
      · screen           no terminal: output will be plain text
      ✓ locale           C.UTF-8

    disk
      ✓ free space       [VARIES]
      ✓ runs kept        0 runs, 0 B

    clock
      ✓ time             [VARIES]
    ");
}

#[test]
fn changed_files_and_a_missing_repository_are_reported() {
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
fn the_lock_holder_is_reported() {
    let sandbox = healthy().with_script("1", "say hello\nsleep 60000\n");
    assert_eq!(finding(&sandbox, "lock")["detail"], "free");
    let running = sandbox.start(&["run", "--no-tui", "-p", "x"]);
    crate::process::helpers::wait_until("the lock", crate::sandbox::DEADLINE, || {
        finding(&sandbox, "lock")["state"] == "warning"
    });
    let detail = finding(&sandbox, "lock")["detail"]
        .as_str()
        .expect("text")
        .to_owned();
    assert!(detail.starts_with("held by process "), "{detail}");
    doctor(&sandbox, &[]).exits_with(0);
    drop(running);
}

#[test]
fn state_directory_and_runs_are_reported() {
    let sandbox = healthy();
    sandbox.ralph(&["run", "-q", "--no-tui", "-p", "x"]).exits_with(0);
    let kept = finding(&sandbox, "runs kept");
    assert!(
        kept["detail"].as_str().expect("text").starts_with("1 run, "),
        "{kept}"
    );
    let state = sandbox.path("state").display().to_string();
    assert_eq!(finding(&sandbox, "state")["detail"], state);
    fs::remove_dir_all(sandbox.path("state")).expect("removed");
    fs::write(sandbox.path("state"), "a file in the way").expect("a file");
    doctor(&sandbox, &[]).exits_with(1);
    assert_eq!(finding(&sandbox, "state")["state"], "broken");
}

#[test]
fn untrusted_files_are_reported() {
    let sandbox = healthy();
    assert_eq!(finding(&sandbox, "ralph.yml")["state"], "good");
    git(
        &sandbox,
        &["remote", "add", "origin", "https://example.org/x.git"],
    );
    let untrusted = finding(&sandbox, "ralph.yml");
    assert_eq!(untrusted["state"], "warning", "{untrusted}");
    assert!(
        untrusted["detail"]
            .as_str()
            .expect("text")
            .contains("would run: "),
        "{untrusted}"
    );
    sandbox.ralph(&["trust"]).exits_with(0);
    assert_eq!(finding(&sandbox, "ralph.yml")["state"], "good");
}

#[test]
fn a_missing_configured_agent_is_broken() {
    let sandbox = healthy().with_file("ralph.yml", "cli:\n  backend: gemini\n");
    let output = doctor(&sandbox, &[]).exits_with(1);
    assert!(
        output.stdout.contains("gemini is configured: not found in PATH"),
        "{}",
        output.stdout
    );
}

#[test]
fn a_run_in_the_future_is_a_clock_warning() {
    let sandbox = healthy();
    fs::create_dir_all(sandbox.runs().join("29990101-000000-abcd")).expect("a run");
    let clock = finding(&sandbox, "time");
    assert_eq!(clock["state"], "warning", "{clock}");
}

#[test]
fn a_locale_without_utf8_is_reported() {
    let sandbox = healthy();
    let mut command = sandbox.command(&["doctor", "--json"]);
    let output = crate::sandbox::Running::start(command.env("LC_ALL", "POSIX"))
        .finish()
        .exits_with(0);
    let findings = output.json();
    let locale = findings
        .as_array()
        .expect("findings")
        .iter()
        .find(|finding| finding["subject"] == "locale");
    assert_eq!(locale.expect("it")["state"], "absent");
}
