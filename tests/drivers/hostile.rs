//! Scripts that misbehave. Each gets a clear answer, and nothing hangs.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use ralph::agent::driver::{Asking, Driver, DriverError, Places, Support};

use super::fixture::{Project, WHOLE, globals, host};
use crate::process::stage::DEADLINE;

#[test]
fn a_minimal_driver_gets_the_documented_defaults() {
    let driver = Project::with(WHOLE).load().unwrap();
    assert_eq!(
        (driver.name.as_str(), driver.display_name.as_str()),
        ("x", "The X")
    );
    assert_eq!(driver.tools, ["Read", "Two words"]);
    assert_eq!(driver.supports.tool_allowlist, Support::No);
    assert_eq!(driver.supports.sessions, Support::Yes);
    assert_eq!(driver.supports.live_output, Support::Yes);
    assert_eq!(driver.supports.live_command, Support::No);
    assert_eq!(
        (driver.filter.as_deref(), driver.min_version.as_deref()),
        (None, None)
    );
    assert_eq!(driver.available, None);
    assert!(driver.denial_help.contains("allowed_tools"));
}

#[test]
fn without_a_live_command_the_plain_one_is_live() {
    let project = Project::with(WHOLE);
    let command = project.load().unwrap().command(Path::new("P.md"), "s").unwrap();
    assert_eq!(command, ["x-cli", "--file", "P.md", "", "s"]);
}

#[test]
fn all_that_is_missing_is_listed_at_once() {
    insta::assert_snapshot!(Project::with("driver_name() { echo x; }").complaint(), @"the driver /project/.ralph/drivers/x.sh lacks what it must define: driver_display_name, driver_cli_binary, driver_valid_tools, driver_build_command");
}

#[test]
fn a_script_that_bash_cannot_read_says_why() {
    let complaint = Project::with("driver_name() {").complaint();
    assert!(
        complaint.contains("lacks") && complaint.contains("syntax error"),
        "{complaint}"
    );
}

#[test]
fn exit_in_a_hook_is_told_by_the_hooks_name() {
    let own_shell = Project::whole_and("driver_valid_tools() { exit 3; }").complaint();
    insta::assert_snapshot!(own_shell, @"the driver /project/.ralph/drivers/x.sh: driver_valid_tools called `exit 3`");
    let subshell = Project::whole_and("driver_name() { exit 3; }").complaint();
    insta::assert_snapshot!(subshell, @"the driver /project/.ralph/drivers/x.sh: driver_name failed with status 3");
    let sourced = Project::whole_and("echo 'cannot work here' >&2; exit 4").complaint();
    insta::assert_snapshot!(sourced, @"the driver /project/.ralph/drivers/x.sh: the script itself called `exit 4`; it said: cannot work here");
}

#[test]
fn a_hook_that_never_ends_is_stopped_and_named() {
    for (script, hook) in [
        ("driver_name() { while :; do :; done; }", "driver_name"),
        ("driver_valid_tools() { sleep 1000; }", "driver_valid_tools"),
        ("while :; do :; done", "the script itself"),
        (
            "trap '' TERM; driver_check_available() { while :; do :; done; }",
            "driver_check_available",
        ),
    ] {
        let project = Project::whole_and(script);
        let mut host = host(project.directory.path());
        host.timeout = Duration::from_secs(1);
        let since = Instant::now();
        let error = project.load_by(host).unwrap_err();
        assert!(since.elapsed() < DEADLINE, "{script}");
        assert!(
            matches!(&error, DriverError::TimedOut { hook: named, seconds: 1, .. } if named == hook),
            "{script}: {error}"
        );
    }
}

#[test]
fn a_hook_that_leaves_something_running_delays_nothing() {
    let project = Project::whole_and("driver_valid_tools() { VALID_TOOL_PATTERNS=(a); sleep 1000 & }");
    let since = Instant::now();
    assert_eq!(project.load().unwrap().tools, ["a"]);
    assert!(since.elapsed() < Duration::from_secs(20));
}

#[test]
fn what_is_printed_in_between_disturbs_nothing() {
    let noise = "echo noise; printf 'text\\0driver_name\\0000\\0evil\\0'; driver_valid_tools() { echo more; \
                 VALID_TOOL_PATTERNS=(a); }";
    let driver = Project::whole_and(noise).load().unwrap();
    assert_eq!(
        (driver.name.as_str(), driver.tools.as_slice()),
        ("x", &["a".to_owned()][..])
    );
}

#[test]
fn strict_modes_of_the_script_do_not_end_the_host() {
    for modes in ["set -e", "set -u", "set -o pipefail", "set -euo pipefail"] {
        let script = format!("{modes}\ndriver_valid_tools() {{ set -eu; false; VALID_TOOL_PATTERNS=(a); }}");
        let driver = Project::whole_and(&script).load().unwrap();
        assert_eq!(driver.tools, ["a"], "{modes}");
        assert_eq!(driver.supports.sessions, Support::Yes, "{modes}");
    }
}

#[test]
fn variables_that_are_not_set_are_empty() {
    let driver = Project::whole_and("driver_display_name() { echo \"[$NOT_SET_ANYWHERE]\"; }")
        .load()
        .unwrap();
    assert_eq!(driver.display_name, "[]");
}

#[test]
fn functions_that_hide_commands_do_not_come_between() {
    let shadows = "cat() { echo shadow; }; printf() { echo shadow; }; echo() { builtin echo \"$@\"; }; \
                   declare() { :; }; builtin() { command \"$@\"; }; ralph_say() { :; }";
    let driver = Project::whole_and(shadows).load().unwrap();
    assert_eq!(driver.tools, ["Read", "Two words"]);
}

#[test]
fn ten_megabytes_are_refused_and_a_nul_is_dropped() {
    let flood = "driver_display_name() { head -c 10000000 /dev/zero | tr '\\0' x; }";
    let error = Project::whole_and(flood).load().unwrap_err();
    assert!(
        matches!(&error, DriverError::TooMuch { hook, .. } if hook == "driver_display_name"),
        "{error}"
    );
    let driver = Project::whole_and("driver_display_name() { printf 'a\\0b'; }")
        .load()
        .unwrap();
    assert_eq!(driver.display_name, "ab");
}

#[test]
fn a_prompt_of_any_bytes_arrives_as_it_is() {
    let project =
        Project::whole_and("driver_build_command() { CLAUDE_CMD_ARGS=(x-cli -p \"$(cat \"$1\")\"); }");
    let prompt = project.directory.path().join("P.md");
    let bytes = b"\xff\xfe caf\xe9 $(touch evil) `id` \"q\" '\n\t* \\ end";
    fs::write(&prompt, bytes).unwrap();
    let command = project.load().unwrap().command(&prompt, "").unwrap();
    assert_eq!(command[2].as_bytes(), bytes);
    assert!(!project.directory.path().join("evil").exists());
}

#[test]
fn arrays_of_a_failed_build_are_ignored() {
    let project =
        Project::whole_and("driver_build_command() { CLAUDE_CMD_ARGS=(rm -rf x); echo why >&2; return 1; }");
    let error = project
        .load()
        .unwrap()
        .command(Path::new("P.md"), "")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("driver_build_command failed with status 1; it said: why"),
        "{error}"
    );
    let project = Project::whole_and("driver_build_command() { :; }");
    let error = project
        .load()
        .unwrap()
        .command(Path::new("P.md"), "")
        .unwrap_err();
    assert!(matches!(error, DriverError::NoCommand { .. }), "{error}");
}

#[test]
fn the_users_shell_environment_changes_nothing() {
    let project = Project::whole_and(
        "driver_display_name() { echo \"$CLAUDE_OUTPUT_FORMAT$(env | grep -c ^CLAUDE_OUTPUT)\"; }",
    );
    let mut host = host(project.directory.path());
    // A variable of the same name that is exported is neither seen nor passed on.
    let wrapper = project.directory.path().join("bash");
    fs::write(
        &wrapper,
        "#!/bin/sh\nexport CLAUDE_OUTPUT_FORMAT=evil BASH_ENV=/nonexistent/evil SHELLOPTS=errexit\nexec bash \"$@\"\n",
    )
    .unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    host.bash = wrapper;
    assert_eq!(project.load_by(host).unwrap().display_name, "json0");
}

#[test]
fn another_shell_is_no_bash() {
    let project = Project::with(WHOLE);
    for (shell, wanted) in [("/bin/dash", "is not a bash"), ("/nonexistent/bash", "not found")] {
        if shell == "/bin/dash" && !Path::new(shell).exists() {
            continue;
        }
        let mut host = host(project.directory.path());
        host.bash = shell.into();
        let error = project.load_by(host).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn a_name_is_not_a_path() {
    let project = Project::with(WHOLE);
    for name in ["../x", "a/b", "", ".x", "-x", "x\0", "ü", &"x".repeat(65)] {
        let error = project.places().find(name).unwrap_err();
        assert!(matches!(error, DriverError::BadName { .. }), "{name}: {error}");
    }
    let error = project.places().find("nosuch").unwrap_err();
    assert!(matches!(error, DriverError::NotFound { .. }), "{error}");
}

#[test]
fn a_link_out_of_the_directory_is_refused() {
    let project = Project::with(WHOLE);
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    fs::remove_file(project.script()).unwrap();
    symlink(elsewhere.path(), project.script()).unwrap();
    assert!(matches!(project.load().unwrap_err(), DriverError::Outside { .. }));
    fs::remove_file(project.script()).unwrap();
    symlink("nowhere", project.script()).unwrap();
    assert!(matches!(
        project.load().unwrap_err(),
        DriverError::Unreadable { .. }
    ));
}

#[test]
fn a_file_that_everybody_can_change_is_refused() {
    let project = Project::with(WHOLE);
    fs::set_permissions(project.script(), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(
        project.load().unwrap_err(),
        DriverError::WorldWritable { .. }
    ));
}

#[test]
fn a_driver_finds_what_lies_beside_it() {
    let project =
        Project::whole_and("driver_display_name() { . \"$(dirname \"${BASH_SOURCE[0]}\")/beside.sh\"; }");
    fs::write(project.script().with_file_name("beside.sh"), "echo found").unwrap();
    assert_eq!(project.load().unwrap().display_name, "found");
}

#[test]
fn the_drivers_that_come_with_ralph_keep_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    let prompt = directory.path().join("P.md");
    fs::write(&prompt, "- do it\n").unwrap();
    let mut lines = Vec::new();
    for (name, script) in Places::default().all() {
        let driver =
            Driver::load(&script.unwrap(), host(directory.path()), globals(), Asking::Check).unwrap();
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
