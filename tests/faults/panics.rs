//! Mistakes of ralph's own: wherever one is made, the agent is stopped, the terminal is given back, the journal ends with
//! a word and can be gone on with, one line says how to report it, and the exit code is 1.

use std::process::Stdio;
use std::time::Duration;

use crate::process::stage::{PROMPTLY, is_alive, takes_no_more, wait_until};
use crate::sandbox::{DEADLINE, Running, Sandbox, Told, claude};

/// An agent that says something on both streams and then works for ever; ralph looks at nothing but it.
fn hanging() -> Sandbox {
    let script = format!(
        "{}{}err at work\nhang\n",
        claude::init(),
        claude::message("m1", "at work")
    );
    Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "event_loop: { max_no_progress: 0 }\n")
        .playing("default", &script)
}

fn with_a_mistake_in(place: &str, sandbox: &Sandbox, arguments: &[&str]) -> Told {
    let mut command = sandbox.command(arguments);
    command.env("PANIC_IN_RALPH", place);
    Running::start(&mut command).finish()
}

/// One line that has all that a report needs.
#[track_caller]
fn is_told_in_one_line(place: &str, stderr: &str) {
    let lines: Vec<&str> = stderr.lines().collect();
    let [line] = lines[..] else {
        panic!("{place}: {stderr}");
    };
    assert!(
        line.starts_with(&format!(
            "error: a mistake in ralph: as the test wants it, in: {place} (src/panic_hook/failpoint.rs:"
        )),
        "{line}"
    );
    assert!(
        line.contains("Please report this line") && line.contains(env!("CARGO_PKG_VERSION")),
        "{line}"
    );
}

/// Everything that must be true of a run after a mistake, and that it can be gone on with.
#[track_caller]
fn is_survived(place: &str, sandbox: &Sandbox, arguments: &[&str]) {
    let told = with_a_mistake_in(place, sandbox, arguments);
    assert_eq!(told.code(), Some(1), "{place}: {told:?}");
    is_told_in_one_line(place, &told.stderr);
    let run = sandbox.newest_run();
    let id = run.file_name().and_then(|name| name.to_str()).expect("an id");
    assert!(
        told.stderr.contains(&format!(".agent/runs/{id}/events.jsonl")),
        "{place}: {}",
        told.stderr
    );
    assert!(told.stderr.contains("ralph run --continue"));
    assert!(sandbox.all_are_gone_within(PROMPTLY), "{place}: somebody is left");
    let records = sandbox.journal();
    let numbers: Vec<u64> = records
        .iter()
        .filter_map(|record| record["seq"].as_u64())
        .collect();
    assert!(numbers.iter().copied().eq(1..=records.len() as u64), "{place}");
    let last = records.last().expect("a last word");
    assert_eq!(
        (last["type"].as_str(), last["outcome"].as_str()),
        (Some("run_ended"), Some("failed")),
        "{place}"
    );
    let reason = last["reason"].as_str().unwrap_or_default();
    assert!(
        reason.starts_with("a mistake in ralph: as the test wants it"),
        "{reason}"
    );
    assert!(run.join("summary.md").exists(), "{place}");

    sandbox.script("default", &claude::session("LOOP_COMPLETE"));
    let mut command = sandbox.command(&["run", "--continue"]);
    let on = Running::start(&mut command).finish();
    assert_eq!(on.code(), Some(0), "{place}: {on:?}");
    assert_eq!(sandbox.records("iteration_ended").len(), 1, "{place}");
}

#[test]
fn a_mistake_on_the_main_thread_ends_the_run_in_good_order() {
    for place in ["engine", "judge", "adapter", "journal", "face"] {
        is_survived(place, &hanging(), &["run", "-p", "x"]);
    }
}

#[test]
fn what_was_being_judged_when_a_mistake_was_made_is_kept_as_it_came() {
    let sandbox = hanging();
    let told = with_a_mistake_in("judge", &sandbox, &["run", "-p", "x"]);
    assert_eq!(told.code(), Some(1), "{told:?}");
    let iteration = sandbox.newest_run().join("iterations/0001");
    let kept =
        ["stdout.raw", "stderr.raw"].map(|name| std::fs::read(iteration.join(name)).unwrap_or_default());
    assert!(kept.iter().any(|bytes| !bytes.is_empty()), "{told:?}");
}

#[test]
fn a_mistake_on_a_thread_that_attends_the_agent_ends_the_run_in_good_order() {
    for place in ["stdout", "stderr", "child", "signals"] {
        is_survived(place, &hanging(), &["run", "-p", "x"]);
    }
}

#[test]
fn a_mistake_beside_a_hook_ends_the_run_in_good_order() {
    let sandbox = hanging().with_file(
        "ralph.yml",
        "event_loop: { max_no_progress: 0 }\nhooks: { on_start: 'true' }\n",
    );
    is_survived("hooks", &sandbox, &["run", "-p", "x"]);
}

/// The keeper of an agent has no stderr of its own: it confesses to ralph.
#[test]
fn a_mistake_of_the_keeper_ends_the_run_in_good_order() {
    let sandbox = hanging();
    let told = with_a_mistake_in("keeper", &sandbox, &["run", "-p", "x"]);
    assert_eq!(told.code(), Some(1), "{told:?}");
    assert!(told.stderr.contains(", in the keeper"), "{}", told.stderr);
    is_told_in_one_line("keeper", &told.stderr);
    assert!(sandbox.all_are_gone_within(PROMPTLY));
    assert_eq!(sandbox.records("run_ended")[0]["outcome"], "failed");
}

#[test]
fn a_mistake_before_there_is_a_run_is_told_too() {
    let sandbox = hanging();
    for arguments in [&["run", "-p", "x"][..], &["doctor"], &["runs"]] {
        let told = with_a_mistake_in("cli", &sandbox, arguments);
        assert_eq!(told.code(), Some(1), "{told:?}");
        is_told_in_one_line("cli", &told.stderr);
    }
    assert_eq!(sandbox.pids().len(), 0);
}

/// A thread that nobody waits for: what it was to find out is missing, and nothing is built on that.
#[test]
fn a_mistake_while_agents_are_looked_for_starts_none() {
    let sandbox = hanging();
    let told = with_a_mistake_in("detection", &sandbox, &["run", "-p", "x"]);
    assert_eq!(told.code(), Some(1), "{told:?}");
    assert!(told.stderr.contains("in: detection"), "{}", told.stderr);
    assert!(sandbox.all_are_gone_within(PROMPTLY));
}

/// The records on stdout stay records, and the last of them says what happened.
#[test]
fn a_mistake_leaves_json_what_it_is() {
    let sandbox = hanging();
    let told = with_a_mistake_in("adapter", &sandbox, &["run", "-p", "x", "--json"]);
    assert_eq!(told.code(), Some(1));
    let last = told.stdout.lines().last().expect("a record");
    let last: serde_json::Value = serde_json::from_str(last).expect("a record");
    assert_eq!(last["type"], "run_ended");
}

/// The main thread hangs in a write that nobody reads: it is not waited for. What the agent prints is more than the pipe
/// takes, and so little that the agent itself is never held up.
#[test]
fn even_where_ralph_hangs_a_mistake_ends_it() {
    let (_nobody_reads, stdout) = std::io::pipe().expect("a pipe");
    let room = rustix::pipe::fcntl_setpipe_size(&stdout, 8192).expect("a small pipe");
    let lines = format!("{}repeat {} {}\n", claude::init(), room / 100 + 1, "x".repeat(99));
    let sandbox = hanging().playing("default", &format!("{lines}wait-for go\nerr now\nhang\n"));
    let said = sandbox.path("said");
    let mut command = sandbox.command(&["run", "-p", "x"]);
    command
        .env("PANIC_IN_RALPH", "stderr")
        .stdout(stdout.try_clone().expect("its end"))
        .stderr(std::fs::File::create(&said).expect("a file"));
    let mut running = Running::start(&mut command);
    wait_until("a full pipe", DEADLINE, || takes_no_more(&stdout));
    std::fs::write(sandbox.path("play/go"), "").expect("a file");
    assert!(running.has_ended_within(DEADLINE), "it hangs");
    assert_eq!(running.finish().code(), Some(1));
    is_told_in_one_line("stderr", &std::fs::read_to_string(said).expect("a line"));
    let pids = sandbox.pids();
    wait_until("the end of the agent", Duration::from_secs(5), || {
        !pids.iter().any(|pid| is_alive(*pid))
    });
}

/// Both stdin and stdout are gone: the line is all that can be said, and even that may fail.
#[test]
fn a_mistake_that_nobody_can_be_told_of_ends_the_run_all_the_same() {
    let sandbox = hanging();
    let mut command = sandbox.command(&["run", "-p", "x"]);
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    command
        .env("PANIC_IN_RALPH", "engine")
        .stdout(Stdio::null())
        .stderr(full);
    Running::start(&mut command).finish().exits_with(1);
    assert!(sandbox.all_are_gone_within(PROMPTLY));
}
