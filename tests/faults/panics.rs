//! Panics of ralph: wherever one happens, the agent is stopped, the terminal is restored, the journal ends with a record and the
//! run can be resumed, one line explains how to report the panic, and the exit code is 1.

use std::process::Stdio;
use std::time::Duration;

use crate::process::helpers::{PROMPTLY, is_alive, wait_until, write_would_block};
use crate::sandbox::{CommandOutput, DEADLINE, Running, Sandbox, claude};

/// Returns an agent that prints on both streams and then hangs.
fn hanging() -> Sandbox {
    let script = format!(
        "{}{}err working\nhang\n",
        claude::init(),
        claude::message("m1", "working")
    );
    Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "event_loop: { max_no_progress: 0 }\n")
        .with_script("default", &script)
}

fn run_with_panic_in(place: &str, sandbox: &Sandbox, arguments: &[&str]) -> CommandOutput {
    let mut command = sandbox.command(arguments);
    command.env("PANIC_IN_RALPH", place);
    Running::start(&mut command).finish()
}

/// Asserts that stderr is one line with everything that a report needs.
#[track_caller]
fn assert_reported_in_one_line(place: &str, stderr: &str) {
    let is_warning = |line: &&str| line.starts_with("warning: no gates are configured");
    let lines: Vec<&str> = stderr.lines().filter(|line| !is_warning(line)).collect();
    let [line] = lines[..] else {
        panic!("{place}: {stderr}");
    };
    assert!(
        line.starts_with(&format!("error: ralph has a bug: failpoint {place} (src/")),
        "{line}"
    );
    assert!(
        line.contains("Please report this line") && line.contains(env!("CARGO_PKG_VERSION")),
        "{line}"
    );
}

/// Asserts everything that must be true of a run after a panic, and that it can be resumed.
#[track_caller]
fn assert_recovers(place: &str, sandbox: &Sandbox, arguments: &[&str]) {
    let output = run_with_panic_in(place, sandbox, arguments);
    assert_eq!(output.code(), Some(1), "{place}: {output:?}");
    assert_reported_in_one_line(place, &output.stderr);
    let run = sandbox.newest_run();
    let id = run.file_name().and_then(|name| name.to_str()).expect("an id");
    assert!(
        output.stderr.contains(&format!("/runs/{id}/events.jsonl")),
        "{place}: {}",
        output.stderr
    );
    assert!(output.stderr.contains("ralph run --continue"));
    assert!(
        sandbox.processes_exit_within(PROMPTLY),
        "{place}: a process is left"
    );
    let records = sandbox.journal();
    let numbers: Vec<u64> = records
        .iter()
        .filter_map(|record| record["seq"].as_u64())
        .collect();
    assert!(numbers.iter().copied().eq(1..=records.len() as u64), "{place}");
    let last = records.last().expect("a last record");
    assert_eq!(
        (last["type"].as_str(), last["outcome"].as_str()),
        (Some("run_ended"), Some("failed")),
        "{place}"
    );
    let reason = last["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("ralph has a bug: failpoint"), "{reason}");
    assert!(run.join("summary.md").exists(), "{place}");

    sandbox.script("default", &claude::session("LOOP_COMPLETE"));
    let mut command = sandbox.command(&["run", "--continue"]);
    let resumed = Running::start(&mut command).finish();
    assert_eq!(resumed.code(), Some(0), "{place}: {resumed:?}");
    assert_eq!(sandbox.records("iteration_ended").len(), 1, "{place}");
}

#[test]
fn a_panic_on_the_main_thread_ends_the_run_cleanly() {
    for place in ["Engine", "Output", "Adapter", "Journal", "FrontEnd"] {
        assert_recovers(place, &hanging(), &["run", "-p", "x"]);
    }
}

#[test]
fn output_in_process_during_a_panic_is_stored_as_raw_output() {
    let sandbox = hanging();
    let output = run_with_panic_in("Output", &sandbox, &["run", "-p", "x"]);
    assert_eq!(output.code(), Some(1), "{output:?}");
    let iteration = sandbox.newest_run().join("iterations/0001");
    let kept =
        ["stdout.raw", "stderr.raw"].map(|name| std::fs::read(iteration.join(name)).unwrap_or_default());
    assert!(kept.iter().any(|bytes| !bytes.is_empty()), "{output:?}");
}

#[test]
fn a_panic_on_a_thread_that_serves_the_agent_ends_the_run_cleanly() {
    for place in ["Reader", "Effects", "Stdout", "Stderr", "Child", "Signals"] {
        assert_recovers(place, &hanging(), &["run", "-p", "x"]);
    }
}

#[test]
fn a_panic_on_the_hook_thread_ends_the_run_cleanly() {
    let sandbox = hanging().with_file(
        "ralph.yml",
        "event_loop: { max_no_progress: 0 }\nhooks: { on_start: 'true' }\n",
    );
    assert_recovers("Hooks", &sandbox, &["run", "-p", "x"]);
}

/// A supervisor has no stderr: it reports its panic to ralph.
#[test]
fn a_panic_of_the_supervisor_ends_the_run_cleanly() {
    let sandbox = hanging();
    let output = run_with_panic_in("Supervisor", &sandbox, &["run", "-p", "x"]);
    assert_eq!(output.code(), Some(1), "{output:?}");
    assert!(output.stderr.contains(", in the supervisor"), "{}", output.stderr);
    assert_reported_in_one_line("Supervisor", &output.stderr);
    assert!(sandbox.processes_exit_within(PROMPTLY));
    assert_eq!(sandbox.records("run_ended")[0]["outcome"], "failed");
}

#[test]
fn a_panic_before_the_run_starts_is_reported_too() {
    let sandbox = hanging();
    for arguments in [&["run", "-p", "x"][..], &["doctor"], &["runs"]] {
        let output = run_with_panic_in("Cli", &sandbox, arguments);
        assert_eq!(output.code(), Some(1), "{output:?}");
        assert_reported_in_one_line("Cli", &output.stderr);
    }
    assert_eq!(sandbox.pids().len(), 0);
}

/// Nothing joins the detection thread: its result is missing, and ralph must not continue without it.
#[test]
fn a_panic_during_agent_detection_starts_no_agent() {
    let sandbox = hanging();
    let output = run_with_panic_in("Detection", &sandbox, &["run", "-p", "x"]);
    assert_eq!(output.code(), Some(1), "{output:?}");
    assert!(output.stderr.contains("failpoint Detection"), "{}", output.stderr);
    assert!(sandbox.processes_exit_within(PROMPTLY));
}

/// Stdout contains only records, and the last one is the end of the run.
#[test]
fn json_output_stays_valid_after_a_panic() {
    let sandbox = hanging();
    let output = run_with_panic_in("Adapter", &sandbox, &["run", "-p", "x", "--json"]);
    assert_eq!(output.code(), Some(1));
    let last = output.stdout.lines().last().expect("a record");
    let last: serde_json::Value = serde_json::from_str(last).expect("a record");
    assert_eq!(last["type"], "run_ended");
}

/// The main thread blocks in a write to a full pipe. The agent prints more than the pipe holds, but little enough that the agent
/// itself never blocks.
#[test]
fn a_panic_ends_ralph_even_if_its_main_thread_is_blocked() {
    let (_unread, stdout) = std::io::pipe().expect("a pipe");
    let capacity = rustix::pipe::fcntl_setpipe_size(&stdout, 8192).expect("a small pipe");
    let lines = format!(
        "{}repeat {} {}\n",
        claude::init(),
        capacity / 100 + 1,
        "x".repeat(99)
    );
    let sandbox = hanging().with_script("default", &format!("{lines}wait-for go\nerr now\nhang\n"));
    let stderr_file = sandbox.path("stderr");
    let mut command = sandbox.command(&["run", "-p", "x"]);
    command
        .env("PANIC_IN_RALPH", "Stderr")
        .stdout(stdout.try_clone().expect("its end"))
        .stderr(std::fs::File::create(&stderr_file).expect("a file"));
    let mut running = Running::start(&mut command);
    wait_until("a full pipe", DEADLINE, || write_would_block(&stdout));
    std::fs::write(sandbox.path("agent/go"), "").expect("a file");
    assert!(running.has_ended_within(DEADLINE), "it hangs");
    assert_eq!(running.finish().code(), Some(1));
    assert_reported_in_one_line("Stderr", &std::fs::read_to_string(stderr_file).expect("a line"));
    let pids = sandbox.pids();
    wait_until("the exit of the agent", Duration::from_secs(5), || {
        !pids.iter().any(|pid| is_alive(*pid))
    });
}

/// Stdout is closed and stderr is full: the report cannot be printed.
#[test]
fn a_panic_that_cannot_be_reported_ends_the_run_cleanly() {
    let sandbox = hanging();
    let mut command = sandbox.command(&["run", "-p", "x"]);
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    command
        .env("PANIC_IN_RALPH", "Engine")
        .stdout(Stdio::null())
        .stderr(full);
    Running::start(&mut command).finish().exits_with(1);
    assert!(sandbox.processes_exit_within(PROMPTLY));
}
