//! Whose files are they? Nothing of a repository with a remote runs before it is allowed, and what is allowed is a
//! content, not a name.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::fixture::WHOLE;
use super::sandbox::Sandbox;

const CUSTOM: &str =
    "cli: {backend: custom, command: my-agent}\nevent_loop: {prompt: go, max_iterations: 1}\n";

fn foreign() -> Sandbox {
    Sandbox::new()
        .agent("my-agent", "say LOOP_COMPLETE")
        .file("project/ralph.yml", CUSTOM)
        .cloned()
}

#[test]
fn a_tracked_file_of_a_repository_with_a_remote_is_asked_about() {
    let sandbox = foreign();
    let refused = sandbox.ralph(&["run"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(!sandbox.was_called());
    insta::assert_snapshot!(sandbox.anonymous(&refused.stderr), @"
    error: This repository's files would have ralph run:
      /box/project/ralph.yml (tracked, in a repository with a remote)
        the agent: my-agent
      they can come from somebody else, so nothing of it was started
      to allow it, until one byte of it changes: ralph trust
      for one call, or in CI: --trust, or RALPH_TRUST=1
    ");
    assert_eq!(refused.stdout, "");

    let allowed = sandbox.ralph(&["trust"]);
    assert_eq!(allowed.code, 0, "{allowed:?}");
    assert!(allowed.stdout.contains("the agent: my-agent"), "{allowed:?}");
    assert_eq!(sandbox.ralph(&["run"]).code, 0);
    assert!(sandbox.path("home/.local/state/ralph/trust.json").exists());

    let changed = CUSTOM.replace("go", "gO");
    fs::write(sandbox.project().join("ralph.yml"), &changed).unwrap();
    assert_eq!(sandbox.ralph(&["run"]).code, 2, "one byte changed");
    fs::write(sandbox.project().join("ralph.yml"), CUSTOM).unwrap();
    assert_eq!(sandbox.ralph(&["run"]).code, 0, "back to what was allowed");
    let shown = sandbox.ralph(&["trust", "--show"]);
    assert!(shown.stdout.contains("allowed      "), "{shown:?}");
    assert_eq!(sandbox.ralph(&["trust", "--revoke"]).code, 0);
    assert_eq!(sandbox.ralph(&["run"]).code, 2, "revoked");
}

#[test]
fn the_program_of_an_agent_may_be_of_any_size() {
    let sandbox = Sandbox::new()
        .file("project/big-agent", "#!/bin/sh\necho LOOP_COMPLETE\nexit 0\n")
        .file("project/ralph.yml", CUSTOM.replace("my-agent", "./big-agent"));
    let program = fs::File::options()
        .append(true)
        .open(sandbox.project().join("big-agent"))
        .unwrap();
    program.set_len(40 << 20).unwrap();
    program
        .set_permissions(fs::Permissions::from_mode(0o755))
        .unwrap();
    // What is open for writing cannot be executed.
    drop(program);
    let run = sandbox.ralph(&["run"]);
    assert_eq!(run.code, 0, "{run:?}");

    let foreign = sandbox.cloned();
    assert_eq!(foreign.ralph(&["run"]).code, 2);
    assert_eq!(foreign.ralph(&["trust"]).code, 0);
    assert_eq!(foreign.ralph(&["run"]).code, 0);
}

#[test]
fn consent_can_be_given_for_one_call() {
    let sandbox = foreign();
    assert_eq!(sandbox.ralph(&["run", "--trust"]).code, 0);
    assert_eq!(sandbox.ralph(&["run"]).code, 2, "and only for that one");
    assert_eq!(foreign().set("RALPH_TRUST", "1").ralph(&["run"]).code, 0);
    assert_eq!(foreign().set("RALPH_TRUST", "0").ralph(&["run"]).code, 2);
}

#[test]
fn the_users_own_files_run_without_a_question() {
    let outside = Sandbox::new()
        .agent("my-agent", "say LOOP_COMPLETE")
        .file("project/ralph.yml", CUSTOM);
    assert_eq!(outside.ralph(&["run"]).code, 0, "outside of git");

    let untracked = Sandbox::new()
        .agent("my-agent", "say LOOP_COMPLETE")
        .file("project/x", "")
        .cloned();
    let untracked = untracked.file("project/ralph.yml", CUSTOM);
    assert_eq!(untracked.ralph(&["run"]).code, 0, "untracked");

    let lonely = foreign();
    lonely.git(&["remote", "remove", "origin"]);
    assert_eq!(lonely.ralph(&["run"]).code, 0, "no remote");

    let own = Sandbox::new()
        .agent("my-agent", "say LOOP_COMPLETE")
        .file("project/x", "")
        .cloned()
        .file("home/.config/ralph/ralph.yml", CUSTOM);
    assert_eq!(own.ralph(&["run"]).code, 0, "the user's own configuration");
}

#[test]
fn what_executes_nothing_is_not_asked_about() {
    let sandbox = Sandbox::new()
        .agent("claude", "say {\"type\":\"result\",\"result\":\"LOOP_COMPLETE\"}")
        .file(
            "project/ralph.yml",
            "event_loop: {prompt: go, max_iterations: 1}\n",
        )
        .cloned();
    assert_eq!(sandbox.ralph(&["run"]).code, 0);
}

/// What a repository can have executed: a name, the configuration that says so, and a file whose bytes count.
const EXECUTED: &[(&str, &str, &str)] = &[
    (
        "a custom command",
        "cli: {backend: custom, command: ./agent.sh}\n",
        "agent.sh",
    ),
    ("a provider", "cli: {claude_command: ./agent.sh}\n", "agent.sh"),
    ("a driver", "cli: {backend: 'driver:x'}\n", ".ralph/drivers/x.sh"),
    ("a gate", "gates: [{name: t, run: touch evil}]\n", "ralph.yml"),
    ("a hook", "hooks: {on_start: touch evil}\n", "ralph.yml"),
    ("arguments", "adapters: {claude: {args: [--evil]}}\n", "ralph.yml"),
];

fn executing(config: &str) -> Sandbox {
    let agent = "#!/bin/sh\ntouch evil\necho '{\"type\":\"result\",\"result\":\"LOOP_COMPLETE\"}'\necho LOOP_COMPLETE\n";
    let say = "say {\"type\":\"result\",\"result\":\"LOOP_COMPLETE\"}\nrun touch evil";
    Sandbox::new()
        .agent("claude", say)
        .agent("x-cli", say)
        .program("project/agent.sh", agent)
        .file("project/.ralph/drivers/x.sh", WHOLE)
        .file(
            "project/ralph.yml",
            format!("{config}event_loop: {{prompt: go, max_iterations: 1}}\n"),
        )
        .cloned()
}

#[test]
fn each_thing_that_a_repository_has_executed_waits_to_be_allowed_and_one_changed_byte_asks_again() {
    for (what, config, file) in EXECUTED {
        let sandbox = executing(config);
        let evil = sandbox.project().join("evil");
        for command in [&["run"][..], &["gates", "run"]] {
            let refused = sandbox.ralph(command);
            assert_eq!(refused.code, 2, "{what}, {command:?}: {refused:?}");
        }
        assert!(!evil.exists() && !sandbox.was_called(), "{what}");

        assert_eq!(sandbox.ralph(&["trust"]).code, 0, "{what}");
        let ran = sandbox.ralph(&["run"]);
        assert_ne!(ran.code, 2, "{what}: {ran:?}");
        assert!(evil.exists(), "{what}: {ran:?}");

        fs::remove_file(&evil).unwrap();
        let path = sandbox.project().join(file);
        let mut bytes = fs::read(&path).unwrap();
        bytes.push(b'\n');
        fs::write(&path, bytes).unwrap();
        let refused = sandbox.ralph(&["run"]);
        assert_eq!(refused.code, 2, "{what}, one byte more: {refused:?}");
        assert!(!evil.exists(), "{what}, one byte more");
    }
}

#[test]
fn each_of_them_is_shown_and_asked_about_on_a_terminal() {
    for (what, config, _) in EXECUTED {
        let sandbox = executing(config);
        let evil = sandbox.project().join("evil");
        let (code, screen) = sandbox.ralph_on_a_terminal("n\n", &["run"]);
        assert_eq!((code, evil.exists()), (2, false), "{what}: {screen}");
        assert!(screen.contains("Run this? [y/N]"), "{what}: {screen}");
        let (code, screen) = sandbox.ralph_on_a_terminal("y\n", &["run"]);
        assert!(code != 2 && evil.exists(), "{what}: {screen}");
    }
}

#[test]
fn nothing_of_a_driver_runs_before_it_is_allowed() {
    let sandbox = Sandbox::new()
        .agent("x-cli", "say LOOP_COMPLETE")
        .file("project/.ralph/drivers/x.sh", format!("{WHOLE}\ntouch evil"))
        .file("project/.ralphrc", "PLATFORM_DRIVER=x\n")
        .file("project/.ralph/PROMPT.md", "go")
        .cloned();
    for command in [
        &["run"][..],
        &["run", "--dry-run"],
        &["drivers", "check", "x"],
        &["drivers", "list"],
        &["doctor"],
        &["trust", "--show"],
        &["config", "show"],
        &["as-claude", "--agent", "driver:x", "-p", "hi"],
    ] {
        let done = sandbox.ralph(command);
        assert!(!sandbox.project().join("evil").exists(), "{command:?}: {done:?}");
    }
    assert_eq!(sandbox.ralph(&["drivers", "check", "x"]).code, 2);
    assert_eq!(sandbox.ralph(&["trust"]).code, 0);
    assert_eq!(sandbox.ralph(&["drivers", "check", "x"]).code, 0);
    assert!(sandbox.project().join("evil").exists());
    let other = sandbox.ralph(&["doctor"]);
    assert!(other.stdout.contains("The X"), "{other:?}");
    // What lies beside a driver counts with it.
    let sandbox = sandbox.file("project/.ralph/drivers/wrapper.py", "new");
    assert_eq!(sandbox.ralph(&["drivers", "check", "x"]).code, 2);
}

#[test]
fn asking_git_runs_nothing_of_the_repository() {
    let sandbox = foreign().program("project/monitor.sh", "#!/bin/sh\ntouch evil\n");
    let monitor = sandbox.project().join("monitor.sh").display().to_string();
    sandbox.git(&["config", "core.fsmonitor", &monitor]);
    sandbox.git(&[
        "config",
        "core.hooksPath",
        &sandbox.project().display().to_string(),
    ]);
    sandbox.git(&["config", "core.pager", &monitor]);
    let _ = fs::remove_file(sandbox.project().join("evil"));
    assert_eq!(sandbox.ralph(&["trust", "--show"]).code, 0);
    assert_eq!(sandbox.ralph(&["run"]).code, 2);
    assert!(!sandbox.project().join("evil").exists());
}

#[test]
fn a_program_of_the_repository_is_part_of_what_is_allowed() {
    let sandbox = Sandbox::new()
        .program("project/agent.sh", "#!/bin/sh\necho LOOP_COMPLETE\n")
        .file("project/ralph.yml", CUSTOM.replace("my-agent", "./agent.sh"))
        .cloned();
    assert_eq!(sandbox.ralph(&["trust"]).code, 0);
    assert_eq!(sandbox.ralph(&["run"]).code, 0);
    let sandbox = sandbox.program("project/agent.sh", "#!/bin/sh\ntouch evil; echo LOOP_COMPLETE\n");
    assert_eq!(sandbox.ralph(&["run"]).code, 2);
}

#[test]
fn escapes_in_a_command_do_not_reach_the_terminal() {
    let config = "gates: [{name: t, run: \"\\e]0;evil\\a\\e[2Jmake\"}]\nevent_loop: {prompt: go}\n";
    let sandbox = Sandbox::new()
        .agent("claude", "")
        .file("project/ralph.yml", config)
        .cloned();
    for done in [
        sandbox.ralph(&["run"]),
        sandbox.ralph(&["trust", "--show"]),
        sandbox.ralph(&["trust"]),
    ] {
        assert!(
            !format!("{}{}", done.stdout, done.stderr).contains('\u{1b}'),
            "{done:?}"
        );
    }
}

#[test]
fn on_a_terminal_the_question_is_asked_and_the_answer_remembered() {
    let sandbox = foreign();
    let (code, screen) = sandbox.ralph_on_a_terminal("n\n", &["run"]);
    assert_eq!((code, sandbox.was_called()), (2, false), "{screen}");
    assert!(
        screen.contains("the agent: my-agent") && screen.contains("Run this? [y/N]"),
        "{screen}"
    );
    let (code, screen) = sandbox.ralph_on_a_terminal("y\n", &["run"]);
    assert_eq!(code, 0, "{screen}");
    assert_eq!(sandbox.ralph(&["run"]).code, 0, "it was remembered");
}

#[test]
fn allowing_what_is_here_means_every_driver_that_is_here() {
    let sandbox = Sandbox::new()
        .agent("x-cli", "say LOOP_COMPLETE")
        .file("project/.ralph/drivers/x.sh", WHOLE)
        .cloned();
    assert_eq!(sandbox.ralph(&["drivers", "check", "x"]).code, 2);
    assert_eq!(sandbox.ralph(&["trust"]).code, 0);
    assert_eq!(sandbox.ralph(&["drivers", "check", "x"]).code, 0);
}

#[test]
fn an_agent_is_not_tested_before_it_is_allowed() {
    let sandbox = foreign();
    let refused = sandbox.ralph(&["agents", "test"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("the agent: my-agent"), "{refused:?}");
    assert!(!sandbox.was_called());
    let allowed = sandbox.ralph(&["agents", "test", "--trust"]);
    assert!(sandbox.was_called(), "{allowed:?}");
}
