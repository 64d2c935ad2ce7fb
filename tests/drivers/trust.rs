//! Tests of trust: commands of a repository with a remote run only after the user allows them, and the permission is
//! tied to the contents of the files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::fixture::COMPLETE_DRIVER;
use super::sandbox::Sandbox;

const CUSTOM: &str =
    "cli: {backend: custom, command: my-agent}\nevent_loop: {prompt: go, max_iterations: 1}\n";

fn untrusted_project() -> Sandbox {
    Sandbox::new()
        .agent("my-agent", "say LOOP_COMPLETE")
        .file("project/ralph.yml", CUSTOM)
        .with_remote()
}

#[test]
fn tracked_file_of_a_repository_with_a_remote_needs_trust() {
    let sandbox = untrusted_project();
    let refused = sandbox.ralph(&["run"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(!sandbox.was_called());
    insta::assert_snapshot!(sandbox.redact(&refused.stderr), @"
    error: the files of this repository would run these commands:
      /box/project/ralph.yml (tracked, in a repository with a remote)
        agent: my-agent
    hint: other people may have written these files; nothing was started
    hint: to allow them until they change: ralph trust
    hint: to allow them once, or in CI: --trust or RALPH_TRUST=1
    ");
    assert_eq!(refused.stdout, "");

    let allowed = sandbox.ralph(&["trust"]);
    assert_eq!(allowed.code, 0, "{allowed:?}");
    assert!(allowed.stdout.contains("agent: my-agent"), "{allowed:?}");
    assert_eq!(sandbox.ralph(&["run"]).code, 0);
    assert!(sandbox.path("state/trust/trust.json").exists());

    let changed = CUSTOM.replace("go", "gO");
    fs::write(sandbox.project().join("ralph.yml"), &changed).unwrap();
    assert_eq!(sandbox.ralph(&["run"]).code, 2, "one byte changed");
    fs::write(sandbox.project().join("ralph.yml"), CUSTOM).unwrap();
    assert_eq!(sandbox.ralph(&["run"]).code, 0, "the allowed contents again");
    let shown = sandbox.ralph(&["trust", "--show"]);
    assert!(shown.stdout.contains("allowed      "), "{shown:?}");
    assert_eq!(sandbox.ralph(&["trust", "--revoke"]).code, 0);
    assert_eq!(sandbox.ralph(&["run"]).code, 2, "revoked");
}

#[test]
fn agent_program_may_have_any_size() {
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
    // A file that is open for writing cannot be executed.
    drop(program);
    let run = sandbox.ralph(&["run"]);
    assert_eq!(run.code, 0, "{run:?}");

    let untrusted = sandbox.with_remote();
    assert_eq!(untrusted.ralph(&["run"]).code, 2);
    assert_eq!(untrusted.ralph(&["trust"]).code, 0);
    assert_eq!(untrusted.ralph(&["run"]).code, 0);
}

#[test]
fn trust_option_applies_to_one_call() {
    let sandbox = untrusted_project();
    assert_eq!(sandbox.ralph(&["run", "--trust"]).code, 0);
    assert_eq!(
        sandbox.ralph(&["run"]).code,
        2,
        "the option applied to one call only"
    );
    assert_eq!(
        untrusted_project().set("RALPH_TRUST", "1").ralph(&["run"]).code,
        0
    );
    assert_eq!(
        untrusted_project().set("RALPH_TRUST", "0").ralph(&["run"]).code,
        2
    );
}

#[test]
fn users_own_files_need_no_trust() {
    let outside = Sandbox::new()
        .agent("my-agent", "say LOOP_COMPLETE")
        .file("project/ralph.yml", CUSTOM);
    assert_eq!(outside.ralph(&["run"]).code, 0, "outside of git");

    let untracked = Sandbox::new()
        .agent("my-agent", "say LOOP_COMPLETE")
        .file("project/x", "")
        .with_remote();
    let untracked = untracked.file("project/ralph.yml", CUSTOM);
    assert_eq!(untracked.ralph(&["run"]).code, 0, "untracked");

    let without_remote = untrusted_project();
    without_remote.git(&["remote", "remove", "origin"]);
    assert_eq!(without_remote.ralph(&["run"]).code, 0, "no remote");

    let own = Sandbox::new()
        .agent("my-agent", "say LOOP_COMPLETE")
        .file("project/x", "")
        .with_remote()
        .file("home/.config/ralph/ralph.yml", CUSTOM);
    assert_eq!(own.ralph(&["run"]).code, 0, "the user's configuration");
}

#[test]
fn configuration_without_commands_needs_no_trust() {
    let sandbox = Sandbox::new()
        .agent("claude", "say {\"type\":\"result\",\"result\":\"LOOP_COMPLETE\"}")
        .file(
            "project/ralph.yml",
            "event_loop: {prompt: go, max_iterations: 1}\n",
        )
        .with_remote();
    assert_eq!(sandbox.ralph(&["run"]).code, 0);
}

/// Commands that a repository can configure: a name, the configuration, and a file whose contents are part of the
/// trust.
const COMMANDS: &[(&str, &str, &str)] = &[
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

fn project_with(config: &str) -> Sandbox {
    let agent = "#!/bin/sh\ntouch evil\necho '{\"type\":\"result\",\"result\":\"LOOP_COMPLETE\"}'\necho LOOP_COMPLETE\n";
    let say = "say {\"type\":\"result\",\"result\":\"LOOP_COMPLETE\"}\nrun touch evil";
    Sandbox::new()
        .agent("claude", say)
        .agent("x-cli", say)
        .program("project/agent.sh", agent)
        .file("project/.ralph/drivers/x.sh", COMPLETE_DRIVER)
        .file(
            "project/ralph.yml",
            format!("{config}event_loop: {{prompt: go, max_iterations: 1}}\n"),
        )
        .with_remote()
}

#[test]
fn every_command_needs_trust_again_after_one_changed_byte() {
    for (what, config, file) in COMMANDS {
        let sandbox = project_with(config);
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
fn every_command_is_shown_and_confirmed_on_a_terminal() {
    for (what, config, _) in COMMANDS {
        let sandbox = project_with(config);
        let evil = sandbox.project().join("evil");
        let (code, screen) = sandbox.ralph_on_terminal("n\n", &["run"]);
        assert_eq!((code, evil.exists()), (2, false), "{what}: {screen}");
        assert!(screen.contains("Allow these commands?"), "{what}: {screen}");
        let (code, screen) = sandbox.ralph_on_terminal("y\n", &["run"]);
        assert!(code != 2 && evil.exists(), "{what}: {screen}");
    }
}

#[test]
fn driver_does_not_run_before_it_is_trusted() {
    let sandbox = Sandbox::new()
        .agent("x-cli", "say LOOP_COMPLETE")
        .file(
            "project/.ralph/drivers/x.sh",
            format!("{COMPLETE_DRIVER}\ntouch evil"),
        )
        .file("project/.ralphrc", "PLATFORM_DRIVER=x\n")
        .file("project/.ralph/PROMPT.md", "go")
        .with_remote();
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
    // Other files in the driver's directory are part of the trust.
    let sandbox = sandbox.file("project/.ralph/drivers/wrapper.py", "new");
    assert_eq!(sandbox.ralph(&["drivers", "check", "x"]).code, 2);
}

#[test]
fn git_queries_run_no_commands_of_the_repository() {
    let sandbox = untrusted_project().program("project/monitor.sh", "#!/bin/sh\ntouch evil\n");
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
fn program_in_the_repository_is_part_of_the_trust() {
    let sandbox = Sandbox::new()
        .program("project/agent.sh", "#!/bin/sh\necho LOOP_COMPLETE\n")
        .file("project/ralph.yml", CUSTOM.replace("my-agent", "./agent.sh"))
        .with_remote();
    assert_eq!(sandbox.ralph(&["trust"]).code, 0);
    assert_eq!(sandbox.ralph(&["run"]).code, 0);
    let sandbox = sandbox.program("project/agent.sh", "#!/bin/sh\ntouch evil; echo LOOP_COMPLETE\n");
    assert_eq!(sandbox.ralph(&["run"]).code, 2);
}

#[test]
fn escape_sequences_in_commands_are_removed() {
    let config = "gates: [{name: t, run: \"\\e]0;evil\\a\\e[2Jmake\"}]\nevent_loop: {prompt: go}\n";
    let sandbox = Sandbox::new()
        .agent("claude", "")
        .file("project/ralph.yml", config)
        .with_remote();
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
fn confirmation_on_a_terminal_is_remembered() {
    let sandbox = untrusted_project();
    let (code, screen) = sandbox.ralph_on_terminal("n\n", &["run"]);
    assert_eq!((code, sandbox.was_called()), (2, false), "{screen}");
    assert!(
        screen.contains("agent: my-agent") && screen.contains("Allow these commands?"),
        "{screen}"
    );
    let (code, screen) = sandbox.ralph_on_terminal("y\n", &["run"]);
    assert_eq!(code, 0, "{screen}");
    assert_eq!(sandbox.ralph(&["run"]).code, 0, "the confirmation was remembered");
}

#[test]
fn trust_applies_to_all_drivers_of_the_project() {
    let sandbox = Sandbox::new()
        .agent("x-cli", "say LOOP_COMPLETE")
        .file("project/.ralph/drivers/x.sh", COMPLETE_DRIVER)
        .with_remote();
    assert_eq!(sandbox.ralph(&["drivers", "check", "x"]).code, 2);
    assert_eq!(sandbox.ralph(&["trust"]).code, 0);
    assert_eq!(sandbox.ralph(&["drivers", "check", "x"]).code, 0);
}

#[test]
fn agents_test_needs_trust() {
    let sandbox = untrusted_project();
    let refused = sandbox.ralph(&["agents", "test"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("agent: my-agent"), "{refused:?}");
    assert!(!sandbox.was_called());
    let allowed = sandbox.ralph(&["agents", "test", "--trust"]);
    assert!(sandbox.was_called(), "{allowed:?}");
}
