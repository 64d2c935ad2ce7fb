//! Faults of the storage: full, removed and read-only disks, torn journals, stale locks, clocks that jump.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::common::{ON_FAIL, reason_for_on_fail};
use crate::sandbox::skip::skip;
use crate::sandbox::{Running, Sandbox, claude};

/// The reason for which tests with mounts are skipped.
const NO_MOUNTS: &str = "mount namespaces (unshare --user --mount) are not permitted";

const SOON: Duration = Duration::from_secs(10);

fn completing() -> Sandbox {
    Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"))
}

/// Runs ralph in its own mount namespace, after these shell commands. Returns `None` where that is not permitted.
fn start_with_mounts(sandbox: &Sandbox, before: &str, arguments: &str) -> Option<Running> {
    let possible = Command::new("/usr/bin/unshare")
        .args(["--user", "--map-root-user", "--mount", "true"])
        .stderr(Stdio::null())
        .status();
    if !possible.is_ok_and(|status| status.success()) {
        return None;
    }
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let script = format!("PATH=$PATH:/usr/bin:/bin:/usr/sbin:/sbin; {before} && exec {ralph} {arguments}");
    let mut command = sandbox.command_for("/usr/bin/unshare");
    command.args(["--user", "--map-root-user", "--mount", "/bin/sh", "-c", &script]);
    Some(Running::start(&mut command))
}

/// Runs this script on a disk of one megabyte, asserts that the run fails, `on_fail` receives the reason and no process survives, and
/// returns its stderr.
fn stderr_on_a_full_disk(script: &str) -> Option<String> {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", script)
        .with_file(
            "ralph.yml",
            &format!("{ON_FAIL}event_loop: {{min_free_disk_bytes: 0}}\n"),
        );
    let state = sandbox.path("state");
    fs::create_dir(&state).expect("a directory");
    let small = format!("mount -t tmpfs -o size=1m none {}", state.display());
    let output = start_with_mounts(&sandbox, &small, "run -p x --agent claude")?.finish();
    assert_eq!(output.code(), Some(1), "{}{}", output.stdout, output.stderr);
    sandbox.wait_until_processes_exit(SOON);
    let reason = reason_for_on_fail(&sandbox);
    assert!(reason.contains("No space left on device"), "{reason}");
    Some(output.stderr)
}

#[test]
fn a_full_disk_ends_the_run_and_its_agent_with_an_error() {
    let flood = claude::init() + "repeat 20000 " + &"x".repeat(200) + "\nhang\n";
    match stderr_on_a_full_disk(&flood) {
        Some(stderr) => assert!(stderr.contains("No space left on device"), "{stderr}"),
        None => skip(NO_MOUNTS),
    }
}

/// These lines produce no event, so only the raw output grows.
#[test]
fn raw_output_that_cannot_be_written_ends_the_run_and_its_agent_with_an_error() {
    let flood = claude::init() + "repeat 100000 " + r#"{"type":"keep_alive"}"# + "\nhang\n";
    let why = "cannot store the agent's output: No space left on device";
    match stderr_on_a_full_disk(&flood) {
        Some(stderr) => assert!(stderr.contains(why), "{stderr}"),
        None => skip(NO_MOUNTS),
    }
}

#[test]
fn a_run_ends_before_the_disk_is_full() {
    let sandbox = completing();
    let state = sandbox.path("state");
    fs::create_dir(&state).expect("a directory");
    let small = format!("mount -t tmpfs -o size=64m none {}", state.display());
    let Some(running) = start_with_mounts(&sandbox, &small, "run -p x --agent claude") else {
        return skip(NO_MOUNTS);
    };
    let output = running.finish();
    assert_eq!(output.code(), Some(3), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("free disk space"), "{}", output.stdout);
    assert!(!sandbox.was_called(1), "an agent was started");
}

#[test]
fn an_agent_that_prints_too_much_is_stopped() {
    let flood = claude::init() + "repeat 100000 " + &"x".repeat(100) + "\nhang\n";
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &flood)
        .with_file(
            "ralph.yml",
            "event_loop: {max_output_bytes: 1000000, max_iterations: 1}\n",
        );
    let output = sandbox
        .ralph(&["run", "-p", "x", "--agent", "claude"])
        .exits_with(3);
    assert!(
        output
            .stdout
            .contains("printed more than 1.0 MB (max_output_bytes)"),
        "{output:?}"
    );
}

#[test]
fn a_read_only_state_directory_is_refused_before_the_agent_starts() {
    let sandbox = completing();
    let state = sandbox.path("state");
    fs::create_dir(&state).expect("a directory");
    let read_only = format!(
        "mount -o bind {0} {0} && mount -o remount,bind,ro {0}",
        state.display()
    );
    let Some(running) = start_with_mounts(&sandbox, &read_only, "run -p x --agent claude") else {
        return skip(NO_MOUNTS);
    };
    let output = running.finish();
    assert_eq!(output.code(), Some(1), "{}{}", output.stdout, output.stderr);
    assert!(
        output.stderr.contains("Read-only file system"),
        "{}",
        output.stderr
    );
    assert!(output.stderr.contains("RALPH_STATE_DIR"), "{}", output.stderr);
    assert_eq!(sandbox.pids(), [0; 0]);
}

/// Open files stay usable; the run ends when ralph cannot create new ones.
#[test]
fn a_run_whose_directory_is_removed_ends_with_an_error_and_leaves_no_process() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &format!("wait-for go\n{}", claude::session("not yet")));
    let running = sandbox.start(&["run", "-p", "x", "-n", "3"]);
    sandbox.wait_for_processes(1);
    fs::remove_dir_all(sandbox.path("state")).expect("it can be removed");
    fs::write(sandbox.path("agent/go"), "").expect("a file");
    let output = running.finish();
    assert_eq!(output.code(), Some(1), "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("/state/projects/"), "{}", output.stderr);
    sandbox.wait_until_processes_exit(SOON);
}

/// However much of the last record reached the disk, the run resumes and every other record is intact.
#[test]
fn a_run_whose_last_record_is_torn_at_any_byte_can_be_resumed() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("not yet"))
        .with_file("ralph.yml", "event_loop: { cooldown_seconds: 0 }\n");
    sandbox.ralph(&["run", "-p", "x", "-n", "1"]).exits_with(3);
    let path = sandbox.newest_run().join("events.jsonl");
    let whole = fs::read(&path).expect("a journal");
    let settings = fs::read(sandbox.newest_run().join("run.json")).expect("run.json");
    let last = whole[..whole.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .expect("lines")
        + 1;
    let records = whole.iter().filter(|byte| **byte == b'\n').count();
    // Every tenth byte and those at both ends; the others behave alike.
    let cuts = (last..whole.len()).filter(|at| at % 10 == 0 || *at < last + 3 || *at + 3 > whole.len());
    for cut in cuts {
        fs::write(&path, &whole[..cut]).expect("a torn journal");
        fs::write(sandbox.newest_run().join("run.json"), &settings).expect("run.json");
        sandbox
            .ralph(&["run", "--continue", "-n", "2", "--yes"])
            .exits_with(3);
        let journal: Vec<serde_json::Value> = fs::read_to_string(&path)
            .expect("a journal")
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let numbers: Vec<u64> = journal
            .iter()
            .filter_map(|record| record["seq"].as_u64())
            .collect();
        assert!(numbers.len() >= records - 1, "cut at {cut}");
        assert!(
            numbers.windows(2).all(|pair| pair[0] < pair[1]),
            "cut at {cut}: {numbers:?}"
        );
        let ended = journal
            .iter()
            .filter(|record| record["type"] == "iteration_ended")
            .count();
        assert_eq!(ended, 2, "cut at {cut}");
    }
}

#[test]
fn garbage_between_records_is_refused_and_can_be_accepted() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("not yet"))
        .with_file("ralph.yml", "event_loop: { cooldown_seconds: 0 }\n");
    sandbox.ralph(&["run", "-p", "x", "-n", "1"]).exits_with(3);
    let path = sandbox.newest_run().join("events.jsonl");
    let text = fs::read_to_string(&path).expect("a journal");
    let garbled: String = text
        .lines()
        .map(|line| format!("{line}\n\0\0\u{fffd}{{\"seq\":\n\n[1,2]\n"))
        .collect();
    fs::write(&path, garbled).expect("a journal");
    let refused = sandbox.ralph(&["run", "--continue", "-n", "2"]).exits_with(1);
    assert!(refused.stderr.contains("line 2 is damaged"), "{}", refused.stderr);
    sandbox
        .ralph(&["run", "--continue", "-n", "2", "--accept-damage"])
        .exits_with(3);
    let output = sandbox.ralph(&["replay", "latest"]).exits_with(0);
    assert!(output.stdout.contains("not yet"), "{}", output.stdout);
}

#[test]
fn only_one_of_several_loops_that_start_together_runs() {
    let sandbox = Sandbox::new().with_agent("claude").with_script(
        "default",
        &format!("wait-for go\n{}", claude::session("LOOP_COMPLETE")),
    );
    let all: Vec<Running> = (0..8).map(|_| sandbox.start(&["run", "-p", "x"])).collect();
    sandbox.wait_for_processes(1);
    // The others exit while the one with the lock is still running.
    let (mut completed, mut refused) = (0, 0);
    let mut waiting: Vec<Running> = Vec::new();
    for mut running in all {
        if running.has_ended_within(SOON) {
            let output = running.finish();
            assert_eq!(output.code(), Some(5), "{}", output.stderr);
            refused += 1;
        } else {
            waiting.push(running);
        }
    }
    fs::write(sandbox.path("agent/go"), "").expect("a file");
    for running in waiting {
        running.finish().exits_with(0);
        completed += 1;
    }
    assert_eq!((completed, refused), (1, 7));
    assert_eq!(sandbox.pids().len(), 1);
}

/// The kernel holds the lock; the contents of the lock file do not.
#[test]
fn a_lock_file_with_the_pid_of_another_process_does_not_lock() {
    let sandbox = completing();
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let project = sandbox.project();
    let mut locks: Vec<_> = fs::read_dir(sandbox.path("state/locks"))
        .expect("a directory")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    locks.push(project.directory().join("lock"));
    for lock in &locks {
        let mine = format!(
            "{{\"pid\":{},\"since\":\"2020-01-01T00:00:00Z\"}}\n",
            std::process::id()
        );
        fs::write(lock, mine).expect("a lock");
    }
    assert!(locks.len() > 2 && locks.iter().all(|lock| lock.is_file()));
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
}

#[test]
fn a_file_in_place_of_the_runs_directory_is_named_in_the_error() {
    let sandbox = completing();
    let runs = sandbox.runs();
    fs::create_dir_all(sandbox.project().directory()).expect("a directory");
    fs::write(&runs, "a file where a directory should be").expect("a file");
    let output = sandbox.ralph(&["run", "-p", "x"]);
    assert_eq!(output.code(), Some(1), "{}", output.stderr);
    let runs = runs.display().to_string();
    assert!(output.stderr.contains(&runs), "{}", output.stderr);
    assert_eq!(sandbox.pids(), [0; 0]);
}

/// The state restored from a prefix of a journal is a prefix of its whole state.
#[test]
fn a_journal_cut_at_any_byte_can_be_restored() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("not yet"))
        .with_file("ralph.yml", "event_loop: { cooldown_seconds: 0 }\n");
    sandbox.ralph(&["run", "-p", "x", "-n", "3"]).exits_with(3);
    let whole = fs::read(sandbox.newest_run().join("events.jsonl")).expect("a journal");
    let path = sandbox.path("cut.jsonl");
    let mut before = (0, 0);
    for cut in 0..=whole.len() {
        fs::write(&path, &whole[..cut]).expect("a cut journal");
        let mut restored = ralph::engine::RestoredRun::default();
        ralph::store::restore_records(&path, |restored_record| match restored_record {
            ralph::store::RestoredRecord::Parsed(record) => restored.fold(&record),
            ralph::store::RestoredRecord::Skipped { seq, at } => restored.skip(seq, at),
        })
        .expect("a readable journal");
        // The last record is complete without its newline.
        let ends = whole[..cut].iter().filter(|byte| **byte == b'\n').count() as u64;
        assert!((ends..=ends + 1).contains(&restored.seq()), "cut at {cut}");
        let now = (restored.seq(), restored.iterations());
        assert!(now.0 >= before.0 && now.1 >= before.1, "cut at {cut}");
        before = now;
    }
    assert_eq!(before.1, 3);
}

/// A journal whose clock was set back in the middle, and one that was written by a clock far ahead.
#[test]
fn a_run_can_be_listed_and_resumed_after_the_clock_jumped() {
    for (name, from, shift) in [("back", 4, "2001"), ("ahead", 0, "2098")] {
        let sandbox = Sandbox::new()
            .with_agent("claude")
            .with_script("default", &claude::session("not yet"))
            .with_file("ralph.yml", "event_loop: { cooldown_seconds: 0 }\n");
        sandbox.ralph(&["run", "-p", "x", "-n", "2"]).exits_with(3);
        let path = sandbox.newest_run().join("events.jsonl");
        let text = fs::read_to_string(&path).expect("a journal");
        let jumped: String = text
            .lines()
            .enumerate()
            .map(|(number, line)| {
                let mut record: serde_json::Value = serde_json::from_str(line).expect("a record");
                let at = record["at"].as_str().expect("a time").to_owned();
                if number >= from {
                    record["at"] = format!("{shift}{}", &at[4..]).into();
                }
                format!("{record}\n")
            })
            .collect();
        fs::write(&path, jumped).expect("a journal");
        for command in [
            &["runs"][..],
            &["show", "latest"],
            &["logs", "latest"],
            &["replay", "latest"],
        ] {
            let output = sandbox.ralph(command);
            assert_eq!(output.code(), Some(0), "{name}: {command:?}: {}", output.text());
        }
        sandbox.script("default", &claude::session("LOOP_COMPLETE"));
        let output = sandbox.ralph(&["run", "--continue", "-n", "9"]);
        assert_eq!(output.code(), Some(0), "{name}: {}", output.text());
        let ended = sandbox.records("run_ended");
        let last = ended.last().expect("an end");
        assert_eq!(
            (&last["outcome"], &last["iterations"]),
            (&"complete".into(), &3.into()),
            "{name}"
        );
        // Durations come from the monotonic clock: minutes at most, whatever the dates are.
        assert!(
            last["duration_ms"].as_u64().is_some_and(|time| time < 600_000),
            "{name}: {last}"
        );
    }
}

/// A run that starts after the clock was set back is still the newest one.
#[test]
fn the_run_that_started_last_is_resumed_after_the_clock_was_set_back() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("not yet"))
        .with_file("ralph.yml", "event_loop: { cooldown_seconds: 0 }\n");
    sandbox.ralph(&["run", "-p", "x", "-n", "1"]).exits_with(3);
    let first = sandbox.newest_run();
    let id = first.file_name().and_then(|name| name.to_str()).expect("an id");
    fs::rename(&first, first.with_file_name(format!("2098{}", &id[4..]))).expect("a run with a later date");
    sandbox.ralph(&["run", "-p", "x", "-n", "1"]).exits_with(3);
    let second = sandbox.newest_run();
    sandbox.ralph(&["run", "--continue", "-n", "2"]).exits_with(3);
    let journal = fs::read_to_string(second.join("events.jsonl")).expect("a journal");
    assert!(
        journal.contains("\"type\":\"run_resumed\""),
        "the older run was resumed"
    );
}
