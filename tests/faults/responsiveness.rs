//! Ctrl-C ends a run at once while something that ralph started hangs; the hook `on_fail` runs however a run fails.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rustix::process::Signal;

use super::common::{ON_FAIL, reason_for_on_fail};
use crate::sandbox::signals::with_default_signals;
use crate::sandbox::{Running, Sandbox};

/// The stop grace of 5 s, and one second.
const AT_ONCE: Duration = Duration::from_secs(6);

/// Writes `started`, ignores SIGTERM and hangs.
const HANG: &str = "trap '' TERM; echo > started; while :; do sleep 60; done";

fn interrupt_once_started(sandbox: &Sandbox, arguments: &[&str], code: i32) {
    let mut command = sandbox.command(arguments);
    let mut running = Running::start(with_default_signals(&mut command));
    sandbox.wait_for_file(&sandbox.work().join("started"));
    running.signal(Signal::INT);
    assert!(running.has_ended_within(AT_ONCE), "ralph did not end");
    let output = running.finish();
    assert_eq!(output.code(), Some(code), "{output:?}");
    let last = sandbox.journal().pop().expect("a record");
    assert_eq!(last["type"], "run_ended");
    sandbox.wait_until_processes_exit(AT_ONCE);
}

#[test]
fn an_interrupt_ends_a_run_whose_git_hangs() {
    let config = "event_loop: {prompt: x, allowed_paths: ['**']}";
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", config);
    sandbox.init_git_repository();
    let git = sandbox.path("bin/git");
    let real = which::which("git").expect("git");
    // The real git is linked here.
    let _ = fs::remove_file(&git);
    fs::write(
        &git,
        format!(
            "#!/bin/sh\ncase \"$*\" in *--full-name*) {HANG} ;; esac\nexec {} \"$@\"\n",
            real.display()
        ),
    )
    .expect("a program");
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).expect("permissions");
    interrupt_once_started(&sandbox, &["run"], 130);
}

#[test]
fn an_interrupt_ends_a_run_whose_gate_hangs() {
    let config = format!("event_loop: {{prompt: x}}\ngates:\n  - name: slow\n    run: \"{HANG}\"\n");
    interrupt_once_started(&Sandbox::scripted("say LOOP_COMPLETE", &config), &["run"], 130);
}

#[test]
fn an_interrupt_ends_a_run_whose_hook_hangs() {
    // The last hook of a run does not change its outcome.
    for (hook, script, code) in [("on_start", "hang", 130), ("on_complete", "say LOOP_COMPLETE", 0)] {
        let config = format!("event_loop: {{prompt: x}}\nhooks: {{ {hook}: \"{HANG}\", timeout: 600 }}\n");
        interrupt_once_started(&Sandbox::scripted(script, &config), &["run"], code);
    }
}

#[test]
fn an_interrupt_ends_a_run_whose_driver_hangs() {
    // The first call checks the command line before the run starts.
    let driver = format!(
        "driver_name() {{ echo x; }}\ndriver_display_name() {{ echo X; }}\ndriver_cli_binary() {{ echo sh; }}\n\
         driver_valid_tools() {{ VALID_TOOL_PATTERNS=(); }}\n\
         driver_build_command() {{\nif [ -e called ]; then {HANG}; fi\necho > called\nCLAUDE_CMD_ARGS=(sh -c true)\n}}\n"
    );
    let sandbox = Sandbox::new().with_file("ralph.yml", "event_loop: {prompt: x, max_no_progress: 0}\n");
    fs::create_dir_all(sandbox.work().join(".ralph/drivers")).expect("a directory");
    let sandbox = sandbox.with_file(".ralph/drivers/x.sh", &driver);
    let bash = which::which("bash").expect("bash");
    std::os::unix::fs::symlink(bash, sandbox.path("bin/bash")).expect("bash on the PATH");
    interrupt_once_started(&sandbox, &["run", "--agent", "driver:x"], 130);
}

#[test]
fn on_fail_runs_when_the_journal_cannot_be_written() {
    let sandbox = Sandbox::scripted(
        "say working\nhang",
        &format!("event_loop: {{prompt: x}}\n{ON_FAIL}"),
    );
    // No file may grow beyond 64 KiB; the agent floods the journal.
    sandbox.script("default", &format!("repeat 5000 {}\nhang\n", "x".repeat(200)));
    let script = format!(
        "ulimit -f 128; trap '' XFSZ; exec {} run",
        env!("CARGO_BIN_EXE_ralph")
    );
    let mut command = sandbox.command_for("/bin/bash");
    command.args(["-c", &script]);
    let output = Running::start(&mut command).finish();
    assert_eq!(output.code(), Some(1), "{output:?}");
    let reason = reason_for_on_fail(&sandbox);
    assert!(reason.contains("File too large"), "{reason}");
    sandbox.wait_until_processes_exit(AT_ONCE);
}

#[cfg(debug_assertions)]
#[test]
fn on_fail_runs_after_a_panic() {
    for place in ["Engine", "Adapter", "Stdout", "Effects"] {
        let sandbox = Sandbox::scripted(
            "say working\nhang",
            &format!("event_loop: {{prompt: x}}\n{ON_FAIL}"),
        );
        let mut command = sandbox.command(&["run"]);
        command.env("PANIC_IN_RALPH", place);
        let output = Running::start(&mut command).finish();
        assert_eq!(output.code(), Some(1), "{output:?}");
        let reason = reason_for_on_fail(&sandbox);
        assert!(reason.starts_with("ralph has a bug:"), "{place}: {reason}");
    }
}
