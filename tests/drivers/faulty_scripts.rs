//! Tests of misbehaving driver scripts at the library level: each produces a clear error, and none hangs.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use ralph::agent::driver::{Driver, DriverDirs, DriverError, DriverQuery, Supported};

use super::fixture::{COMPLETE_DRIVER, Project, host, variables};
use crate::process::helpers::DEADLINE;

#[test]
fn minimal_driver_has_the_documented_defaults() {
    let driver = Project::with(COMPLETE_DRIVER).load().unwrap();
    assert_eq!(
        (driver.name.as_str(), driver.display_name.as_str()),
        ("x", "The X")
    );
    assert_eq!(driver.tools, ["Read", "Two words"]);
    assert_eq!(driver.supports.tool_allowlist, Supported::No);
    assert_eq!(driver.supports.sessions, Supported::Yes);
    assert_eq!(driver.supports.live_output, Supported::Yes);
    assert_eq!(driver.supports.live_command, Supported::No);
    assert_eq!(
        (driver.filter.as_deref(), driver.min_version.as_deref()),
        (None, None)
    );
    assert_eq!(driver.available, None);
    assert!(driver.permission_denial_help.contains("allowed_tools"));
}

#[test]
fn without_a_live_command_the_built_command_is_used() {
    let project = Project::with(COMPLETE_DRIVER);
    let command = project.load().unwrap().command(Path::new("P.md"), "s").unwrap();
    assert_eq!(command, ["x-cli", "--file", "P.md", "", "s"]);
}

#[test]
fn all_missing_hooks_are_listed_at_once() {
    insta::assert_snapshot!(Project::with("driver_name() { echo x; }").load_error(), @"driver /project/.ralph/drivers/x.sh does not define required hooks: driver_display_name, driver_cli_binary, driver_valid_tools, driver_build_command");
}

#[test]
fn syntax_error_of_a_script_is_reported() {
    let error = Project::with("driver_name() {").load_error();
    assert!(
        error.contains("required hooks") && error.contains("syntax error"),
        "{error}"
    );
}

#[test]
fn exit_in_a_hook_is_reported_with_the_hook() {
    let own_shell = Project::complete_driver_with("driver_valid_tools() { exit 3; }").load_error();
    insta::assert_snapshot!(own_shell, @"driver /project/.ralph/drivers/x.sh: driver_valid_tools called `exit 3`");
    let subshell = Project::complete_driver_with("driver_name() { exit 3; }").load_error();
    insta::assert_snapshot!(subshell, @"driver /project/.ralph/drivers/x.sh: driver_name failed with status 3");
    let sourced = Project::complete_driver_with("echo 'cannot work here' >&2; exit 4").load_error();
    insta::assert_snapshot!(sourced, @"driver /project/.ralph/drivers/x.sh: the script called `exit 4`; stderr: cannot work here");
}

#[test]
fn hanging_hook_is_stopped_and_named() {
    for (script, hook) in [
        ("driver_name() { while :; do :; done; }", "driver_name"),
        ("driver_valid_tools() { sleep 1000; }", "driver_valid_tools"),
        ("while :; do :; done", "the script"),
        (
            "trap '' TERM; driver_check_available() { while :; do :; done; }",
            "driver_check_available",
        ),
    ] {
        let project = Project::complete_driver_with(script);
        let mut host = host(project.directory.path());
        host.timeout = Duration::from_secs(1);
        let start = Instant::now();
        let error = project.load_with(host).unwrap_err();
        assert!(start.elapsed() < DEADLINE, "{script}");
        assert!(
            matches!(&error, DriverError::TimedOut { hook: named, seconds: 1, .. } if named == hook),
            "{script}: {error}"
        );
    }
}

#[test]
fn background_process_of_a_hook_does_not_delay_loading() {
    let project =
        Project::complete_driver_with("driver_valid_tools() { VALID_TOOL_PATTERNS=(a); sleep 1000 & }");
    let start = Instant::now();
    assert_eq!(project.load().unwrap().tools, ["a"]);
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn extra_output_is_ignored() {
    let noise = "echo noise; printf 'text\\0driver_name\\0000\\0evil\\0'; driver_valid_tools() { echo more; \
                 VALID_TOOL_PATTERNS=(a); }";
    let driver = Project::complete_driver_with(noise).load().unwrap();
    assert_eq!(
        (driver.name.as_str(), driver.tools.as_slice()),
        ("x", &["a".to_owned()][..])
    );
}

#[test]
fn strict_shell_modes_do_not_stop_the_host() {
    for modes in ["set -e", "set -u", "set -o pipefail", "set -euo pipefail"] {
        let script = format!("{modes}\ndriver_valid_tools() {{ set -eu; false; VALID_TOOL_PATTERNS=(a); }}");
        let driver = Project::complete_driver_with(&script).load().unwrap();
        assert_eq!(driver.tools, ["a"], "{modes}");
        assert_eq!(driver.supports.sessions, Supported::Yes, "{modes}");
    }
}

#[test]
fn unset_variables_are_empty() {
    let driver = Project::complete_driver_with("driver_display_name() { echo \"[$NOT_SET_ANYWHERE]\"; }")
        .load()
        .unwrap();
    assert_eq!(driver.display_name, "[]");
}

#[test]
fn shadowed_commands_do_not_affect_the_host() {
    let shadows = "cat() { echo shadow; }; printf() { echo shadow; }; echo() { builtin echo \"$@\"; }; \
                   declare() { :; }; builtin() { command \"$@\"; }; ralph_emit() { :; }";
    let driver = Project::complete_driver_with(shadows).load().unwrap();
    assert_eq!(driver.tools, ["Read", "Two words"]);
}

#[test]
fn oversized_output_is_rejected_and_nul_bytes_are_dropped() {
    let flood = "driver_display_name() { head -c 10000000 /dev/zero | tr '\\0' x; }";
    let error = Project::complete_driver_with(flood).load().unwrap_err();
    assert!(
        matches!(&error, DriverError::OutputTooLarge { hook, .. } if hook == "driver_display_name"),
        "{error}"
    );
    let driver = Project::complete_driver_with("driver_display_name() { printf 'a\\0b'; }")
        .load()
        .unwrap();
    assert_eq!(driver.display_name, "ab");
}

#[test]
fn prompt_bytes_are_passed_unchanged() {
    let project = Project::complete_driver_with(
        "driver_build_command() { CLAUDE_CMD_ARGS=(x-cli -p \"$(cat \"$1\")\"); }",
    );
    let prompt = project.directory.path().join("P.md");
    let bytes = b"\xff\xfe caf\xe9 $(touch evil) `id` \"q\" '\n\t* \\ end";
    fs::write(&prompt, bytes).unwrap();
    let command = project.load().unwrap().command(&prompt, "").unwrap();
    assert_eq!(command[2].as_bytes(), bytes);
    assert!(!project.directory.path().join("evil").exists());
}

#[test]
fn arrays_of_a_failed_build_are_ignored() {
    let project = Project::complete_driver_with(
        "driver_build_command() { CLAUDE_CMD_ARGS=(rm -rf x); echo why >&2; return 1; }",
    );
    let error = project
        .load()
        .unwrap()
        .command(Path::new("P.md"), "")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("driver_build_command failed with status 1; stderr: why"),
        "{error}"
    );
    let project = Project::complete_driver_with("driver_build_command() { :; }");
    let error = project
        .load()
        .unwrap()
        .command(Path::new("P.md"), "")
        .unwrap_err();
    assert!(matches!(error, DriverError::NoCommand { .. }), "{error}");
}

#[test]
fn shell_environment_does_not_affect_the_host() {
    let project = Project::complete_driver_with(
        "driver_display_name() { echo \"$CLAUDE_OUTPUT_FORMAT$(env | grep -c ^CLAUDE_OUTPUT)\"; }",
    );
    let mut host = host(project.directory.path());
    // An exported variable of the same name is neither used nor passed on.
    let wrapper = project.directory.path().join("bash");
    fs::write(
        &wrapper,
        "#!/bin/sh\nexport CLAUDE_OUTPUT_FORMAT=evil BASH_ENV=/nonexistent/evil SHELLOPTS=errexit\nexec bash \"$@\"\n",
    )
    .unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    host.bash = wrapper;
    assert_eq!(project.load_with(host).unwrap().display_name, "json0");
}

#[test]
fn other_shells_are_rejected() {
    let project = Project::with(COMPLETE_DRIVER);
    for (shell, expected) in [
        ("/bin/dash", "is not a usable bash"),
        ("/nonexistent/bash", "not found"),
    ] {
        if shell == "/bin/dash" && !Path::new(shell).exists() {
            continue;
        }
        let mut host = host(project.directory.path());
        host.bash = shell.into();
        let error = project.load_with(host).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn driver_name_must_not_be_a_path() {
    let project = Project::with(COMPLETE_DRIVER);
    for name in ["../x", "a/b", "", ".x", "-x", "x\0", "ü", &"x".repeat(65)] {
        let error = project.dirs().find(name).unwrap_err();
        assert!(matches!(error, DriverError::BadName { .. }), "{name}: {error}");
    }
    let error = project.dirs().find("nosuch").unwrap_err();
    assert!(matches!(error, DriverError::NotFound { .. }), "{error}");
}

#[test]
fn link_out_of_the_directory_is_rejected() {
    let project = Project::with(COMPLETE_DRIVER);
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    fs::remove_file(project.script()).unwrap();
    symlink(elsewhere.path(), project.script()).unwrap();
    assert!(matches!(
        project.load().unwrap_err(),
        DriverError::OutsideDirectory { .. }
    ));
    fs::remove_file(project.script()).unwrap();
    symlink("nowhere", project.script()).unwrap();
    assert!(matches!(
        project.load().unwrap_err(),
        DriverError::Unreadable { .. }
    ));
}

#[test]
fn world_writable_file_is_rejected() {
    let project = Project::with(COMPLETE_DRIVER);
    fs::set_permissions(project.script(), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(
        project.load().unwrap_err(),
        DriverError::WorldWritable { .. }
    ));
}

#[test]
fn driver_can_source_files_in_its_directory() {
    let project = Project::complete_driver_with(
        "driver_display_name() { . \"$(dirname \"${BASH_SOURCE[0]}\")/beside.sh\"; }",
    );
    fs::write(project.script().with_file_name("beside.sh"), "echo found").unwrap();
    assert_eq!(project.load().unwrap().display_name, "found");
}

#[test]
fn built_in_drivers_follow_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    let prompt = directory.path().join("P.md");
    fs::write(&prompt, "- do it\n").unwrap();
    let mut lines = Vec::new();
    for (name, script) in DriverDirs::default().all() {
        let driver = Driver::load(
            &script.unwrap(),
            host(directory.path()),
            variables(),
            DriverQuery::Check,
        )
        .unwrap();
        assert_eq!(driver.name, name);
        assert!(
            driver.min_version.is_some() && driver.available.is_some(),
            "{name}"
        );
        ralph::transcript::jq::Filter::compile(driver.filter.as_deref().unwrap()).unwrap();
        for session in ["", "s-1"] {
            let command = driver.command(&prompt, session).unwrap();
            let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
            lines.push(words.join(" "));
        }
    }
    insta::assert_snapshot!(lines.join("\n"), @"
    claude --output-format stream-json --verbose --permission-mode bypassPermissions --disallowedTools AskUserQuestion EnterPlanMode ExitPlanMode -p 
    - do it
    claude --output-format stream-json --verbose --permission-mode bypassPermissions --disallowedTools AskUserQuestion EnterPlanMode ExitPlanMode --resume s-1 -p 
    - do it
    codex exec --skip-git-repo-check --sandbox workspace-write --json -- - do it
    codex exec --skip-git-repo-check --sandbox workspace-write --json resume s-1 -- - do it
    copilot --allow-all --no-ask-user --output-format json --stream off -p 
    - do it
    copilot --allow-all --no-ask-user --output-format json --stream off --resume=s-1 -p 
    - do it
    cursor-agent -p --force --trust --output-format stream-json -- - do it
    cursor-agent -p --force --trust --output-format stream-json --resume s-1 -- - do it
    opencode run --auto --format json --thinking -- - do it
    opencode run --auto --format json --thinking --session s-1 -- - do it
    ");
}
