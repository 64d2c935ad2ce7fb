//! Tests of `debug.log`, `RALPH_LOG` and `ralph doctor --bundle`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::sandbox::{CommandOutput, Running, Sandbox};

const CONFIG: &str =
    "event_loop: {prompt: my secret plan, max_iterations: 1}\ngates: [{name: t, run: 'true'}]\n";
const SCRIPT: &str = "say the agent prints this\nsay LOOP_COMPLETE";

/// Runs ralph with `RALPH_LOG` and a secret in the environment.
fn ralph(sandbox: &Sandbox, levels: &str, arguments: &[&str]) -> CommandOutput {
    let mut command = sandbox.command(arguments);
    command
        .env("RALPH_LOG", levels)
        .env("MY_TOKEN", "hunter2-hunter2");
    Running::start(&mut command).finish()
}

fn debug_log(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.newest_run().join("debug.log")).expect("a debug log")
}

#[test]
fn debug_log_names_run_iteration_and_agent_and_contains_neither_prompt_nor_output() {
    let sandbox = Sandbox::scripted(SCRIPT, CONFIG);
    let output = ralph(&sandbox, "trace", &["run"]).exits_with(0);
    let log = debug_log(&sandbox);
    let id = sandbox.run_id();
    let spans = format!("run{{id=\"{id}\"}}:iteration{{number=1}}:agent{{attempt=1}}:");
    for thread in ["main", "effects", "child"] {
        let found = log
            .lines()
            .any(|line| line.contains(&format!("{thread} {spans}")));
        assert!(found, "no line of the thread {thread}: {log}");
    }
    for part in [
        "event=RunStarted",
        "event=IterationStarted",
        "event=AgentEnded",
        "event=GateEnded",
        "event=RunEnded",
        "ralph::engine: action=Launch",
        "ralph::engine: input=Transcript",
        "ralph::process::child: started pid=",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    for text in ["my secret plan", "the agent prints this"] {
        assert!(!log.contains(text), "{text}: {log}");
    }
    assert!(!output.stderr.contains("event="), "{output:?}");
    let file = sandbox.newest_run().join("debug.log");
    assert_eq!(
        fs::metadata(file).expect("a file").permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn without_ralph_log_a_run_logs_its_course_and_the_errors_it_drops() {
    let sandbox = Sandbox::scripted(SCRIPT, CONFIG).with_file(".agent", "not a directory");
    sandbox.ralph(&["run"]).exits_with(0);
    let log = debug_log(&sandbox);
    assert!(log.contains("WARN main run{"), "{log}");
    assert!(log.contains("cannot link the journal in .agent"), "{log}");
    assert!(log.contains("event=RunEnded"), "{log}");
    assert!(!log.contains("DEBUG"), "{log}");
}

#[test]
fn ralph_log_off_writes_no_log_and_an_unknown_level_is_an_error() {
    let sandbox = Sandbox::scripted(SCRIPT, CONFIG);
    let output = ralph(&sandbox, "engin=debug", &["run"]).exits_with(2);
    assert!(
        output.stderr.contains("RALPH_LOG: unknown module `engin`"),
        "{output:?}"
    );
    assert!(output.stderr.contains("hint: for example"), "{output:?}");
    ralph(&sandbox, "off", &["run"]).exits_with(0);
    assert!(!sandbox.newest_run().join("debug.log").exists());
}

#[test]
fn a_command_without_a_run_logs_to_stderr() {
    let sandbox = Sandbox::new().with_agent("claude");
    let output = ralph(&sandbox, "process=debug", &["agents"]).exits_with(0);
    assert!(
        output.stderr.contains("ralph::process::child: started pid="),
        "{output:?}"
    );
    assert!(!output.stdout.contains("DEBUG"), "{output:?}");
}

#[test]
fn bundle_contains_versions_settings_and_the_last_log_without_secrets_and_prompts() {
    let sandbox = Sandbox::scripted(SCRIPT, CONFIG);
    let gate = "event_loop: {prompt: my secret plan}\ngates: [{name: hunter2-hunter2, run: 'true'}]\n";
    sandbox.configure(gate);
    ralph(&sandbox, "debug", &["run"]).exits_with(0);
    let id = sandbox.run_id();
    let file = sandbox.work().join("report.txt");
    let output = ralph(&sandbox, "info", &["doctor", "--bundle", "report.txt"]).exits_with(0);
    assert_eq!(
        output.stdout,
        "Wrote report.txt. Read it before you attach it to a bug report.\n"
    );
    let text = fs::read_to_string(&file).expect("a bundle");
    for part in [
        concat!("ralph ", env!("CARGO_PKG_VERSION")),
        "git: git version",
        "## Checks\n\nconfiguration\n",
        "event_loop.prompt: [14 characters]  (",
        "RALPH_LOG=info",
        &format!("run {id}\n"),
        "event=RunEnded",
        "[redacted]",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in ["my secret plan", "hunter2"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        fs::metadata(&file).expect("a file").permissions().mode() & 0o777,
        0o600
    );
    let output = ralph(&sandbox, "info", &["doctor", "--bundle", "report.txt"]).exits_with(2);
    assert!(output.stderr.contains("report.txt already exists"), "{output:?}");
    ralph(&sandbox, "info", &["doctor", "--bundle", "report.txt", "--force"]).exits_with(0);
}
