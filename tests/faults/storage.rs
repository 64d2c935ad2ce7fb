//! Disks that are full, gone, or not to be written to; journals that are torn; locks of the dead.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::sandbox::{Running, Sandbox, claude};

const SOON: Duration = Duration::from_secs(10);

fn completing() -> Sandbox {
    Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("LOOP_COMPLETE"))
}

/// Runs ralph in a mount namespace of its own, after these shell commands. None where that is not allowed.
fn in_own_mounts(sandbox: &Sandbox, before: &str, words: &str) -> Option<Running> {
    let possible = Command::new("/usr/bin/unshare")
        .args(["--user", "--map-root-user", "--mount", "true"])
        .stderr(Stdio::null())
        .status();
    if !possible.is_ok_and(|status| status.success()) {
        return None;
    }
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let script = format!("PATH=$PATH:/usr/bin:/bin:/usr/sbin:/sbin; {before} && exec {ralph} {words}");
    let mut command = sandbox.command_of("/usr/bin/unshare");
    command.args(["--user", "--map-root-user", "--mount", "/bin/sh", "-c", &script]);
    Some(Running::start(&mut command))
}

/// A run whose agent plays this, and whose disk is full after a megabyte, ends and leaves nobody. Says what was told then.
fn on_a_small_disk(play: &str) -> Option<String> {
    let sandbox = Sandbox::new().with_agent("claude").playing("default", play);
    fs::create_dir(sandbox.work().join(".agent")).expect("a directory");
    let small = "mount -t tmpfs -o size=1m none .agent";
    let told = in_own_mounts(&sandbox, small, "run -p x --agent claude")?.finish();
    assert_eq!(told.code(), Some(1), "{}{}", told.stdout, told.stderr);
    sandbox.wait_until_all_are_gone(SOON);
    Some(told.stderr)
}

#[test]
fn a_full_disk_ends_the_run_and_its_agent_with_a_sentence() {
    let flood = claude::init() + "repeat 20000 " + &"x".repeat(200) + "\nhang\n";
    match on_a_small_disk(&flood) {
        Some(told) => assert!(told.contains("No space left on device"), "{told}"),
        None => eprintln!("SKIPPED: no mount namespaces here"),
    }
}

/// What says nothing is in no journal, and is kept as it came all the same.
#[test]
fn output_that_cannot_be_kept_ends_the_run_and_its_agent_with_a_sentence() {
    let flood = claude::init() + "repeat 100000 " + r#"{"type":"keep_alive"}"# + "\nhang\n";
    let why = "cannot keep the agent's output: No space left on device";
    match on_a_small_disk(&flood) {
        Some(told) => assert!(told.contains(why), "{told}"),
        None => eprintln!("SKIPPED: no mount namespaces here"),
    }
}

#[test]
fn a_read_only_workspace_is_refused_before_anything_starts() {
    let sandbox = completing();
    // The directory that is open is still the writable one below: it has to be entered again.
    let only = format!(
        "mount -o bind . . && mount -o remount,bind,ro {0} && cd {0}",
        sandbox.work().display()
    );
    let Some(running) = in_own_mounts(&sandbox, &only, "run -p x --agent claude") else {
        eprintln!("SKIPPED: no mount namespaces here");
        return;
    };
    let told = running.finish();
    assert_eq!(told.code(), Some(1), "{}{}", told.stdout, told.stderr);
    assert!(told.stderr.contains("Read-only file system"), "{}", told.stderr);
    assert_eq!(sandbox.pids(), [0; 0]);
}

/// The open files are still there, so nothing is lost that has begun; what cannot be made anew ends the run.
#[test]
fn a_run_whose_directory_is_removed_ends_with_a_sentence_and_leaves_no_process() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &format!("wait-for go\n{}", claude::session("not yet")));
    let running = sandbox.start(&["run", "-p", "x", "-n", "3"]);
    sandbox.wait_for_processes(1);
    fs::remove_dir_all(sandbox.work().join(".agent")).expect("it can be removed");
    fs::write(sandbox.path("play/go"), "").expect("a file");
    let told = running.finish();
    assert_eq!(told.code(), Some(1), "{}{}", told.stdout, told.stderr);
    assert!(told.stderr.contains(".agent"), "{}", told.stderr);
    sandbox.wait_until_all_are_gone(SOON);
}

/// However much of the last record reached the disk, the run goes on after it, and every other record is still there.
#[test]
fn a_journal_torn_at_any_byte_of_its_last_record_can_be_gone_on_with() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("not yet"))
        .with_file("ralph.yml", "event_loop: { cooldown_seconds: 0 }\n");
    sandbox.ralph(&["run", "-p", "x", "-n", "1"]).exits_with(3);
    let path = sandbox.newest_run().join("events.jsonl");
    let whole = fs::read(&path).expect("a journal");
    let last = whole[..whole.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .expect("lines")
        + 1;
    let records = whole.iter().filter(|byte| **byte == b'\n').count();
    // Every tenth byte, and those at both ends: the rest is alike.
    let cuts = (last..whole.len()).filter(|at| at % 10 == 0 || *at < last + 3 || *at + 3 > whole.len());
    for cut in cuts {
        fs::write(&path, &whole[..cut]).expect("a torn journal");
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
fn garbage_between_the_records_is_passed_over() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("not yet"))
        .with_file("ralph.yml", "event_loop: { cooldown_seconds: 0 }\n");
    sandbox.ralph(&["run", "-p", "x", "-n", "1"]).exits_with(3);
    let path = sandbox.newest_run().join("events.jsonl");
    let text = fs::read_to_string(&path).expect("a journal");
    let garbled: String = text
        .lines()
        .map(|line| format!("{line}\n\0\0\u{fffd}{{\"seq\":\n\n[1,2]\n"))
        .collect();
    fs::write(&path, garbled).expect("a journal");
    sandbox.ralph(&["run", "--continue", "-n", "2"]).exits_with(3);
    let told = sandbox.ralph(&["replay", "latest"]).exits_with(0);
    assert!(told.stdout.contains("not yet"), "{}", told.stdout);
}

#[test]
fn of_loops_that_start_in_the_same_instant_one_runs() {
    let sandbox = Sandbox::new().with_agent("claude").playing(
        "default",
        &format!("wait-for go\n{}", claude::session("LOOP_COMPLETE")),
    );
    let all: Vec<Running> = (0..8).map(|_| sandbox.start(&["run", "-p", "x"])).collect();
    sandbox.wait_for_processes(1);
    // The losers end by themselves, whatever the winner does.
    let (mut won, mut lost) = (0, 0);
    let mut waiting: Vec<Running> = Vec::new();
    for mut running in all {
        if running.has_ended_within(SOON) {
            let told = running.finish();
            assert_eq!(told.code(), Some(5), "{}", told.stderr);
            lost += 1;
        } else {
            waiting.push(running);
        }
    }
    fs::write(sandbox.path("play/go"), "").expect("a file");
    for running in waiting {
        running.finish().exits_with(0);
        won += 1;
    }
    assert_eq!((won, lost), (1, 7));
    assert_eq!(sandbox.pids().len(), 1);
}

/// A lock is a lock of the kernel's: what an earlier holder wrote into the file does not hold it.
#[test]
fn a_lock_of_a_dead_process_whose_number_lives_again_is_no_lock() {
    let sandbox = completing();
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let locks: Vec<_> = fs::read_dir(sandbox.work().join(".agent"))
        .expect("a directory")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains("lock"))
        .collect();
    for lock in &locks {
        let mine = format!(
            "{{\"pid\":{},\"since\":\"2020-01-01T00:00:00Z\"}}\n",
            std::process::id()
        );
        fs::write(lock.path(), mine).expect("a lock");
    }
    assert_eq!(locks.len(), 1);
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
}

#[test]
fn a_directory_that_is_not_ours_to_write_is_named_with_the_remedy() {
    let sandbox = completing();
    let agent = sandbox.work().join(".agent");
    fs::create_dir(&agent).expect("a directory");
    fs::write(agent.join("runs"), "a file where a directory should be").expect("a file");
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o700)).expect("permissions");
    let told = sandbox.ralph(&["run", "-p", "x"]);
    assert_eq!(told.code(), Some(1), "{}", told.stderr);
    assert!(told.stderr.contains(".agent/runs"), "{}", told.stderr);
    assert_eq!(sandbox.pids(), [0; 0]);
}

/// Whatever of a journal reached the disk: what it says is a beginning of what the whole of it says.
#[test]
fn a_journal_cut_at_any_byte_is_a_journal() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("not yet"))
        .with_file("ralph.yml", "event_loop: { cooldown_seconds: 0 }\n");
    sandbox.ralph(&["run", "-p", "x", "-n", "3"]).exits_with(3);
    let whole = fs::read(sandbox.newest_run().join("events.jsonl")).expect("a journal");
    let path = sandbox.path("cut.jsonl");
    let mut before = (0, 0);
    for cut in 0..=whole.len() {
        fs::write(&path, &whole[..cut]).expect("a cut journal");
        let mut restored = ralph::engine::RestoredRun::default();
        ralph::store::recall(&path, |recalled| match recalled {
            ralph::store::RestoredRecord::Whole(record) => restored.fold(&record),
            ralph::store::RestoredRecord::Passed { seq, at } => restored.seen(seq, at),
        })
        .expect("a readable journal");
        // A last record is whole without its line ending.
        let ends = whole[..cut].iter().filter(|byte| **byte == b'\n').count() as u64;
        assert!((ends..=ends + 1).contains(&restored.seq()), "cut at {cut}");
        let now = (restored.seq(), restored.iterations());
        assert!(now.0 >= before.0 && now.1 >= before.1, "cut at {cut}");
        before = now;
    }
    assert_eq!(before.1, 3);
}

/// A journal whose clock was set back by an hour in its middle, and one that was written by a clock far ahead.
#[test]
fn a_clock_that_jumps_harms_no_run() {
    for (name, from, shift) in [("back", 4, "2001"), ("ahead", 0, "2098")] {
        let sandbox = Sandbox::new()
            .with_agent("claude")
            .playing("default", &claude::session("not yet"))
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
            let told = sandbox.ralph(command);
            assert_eq!(told.code(), Some(0), "{name}: {command:?}: {}", told.text());
        }
        sandbox.script("default", &claude::session("LOOP_COMPLETE"));
        let told = sandbox.ralph(&["run", "--continue", "-n", "9"]);
        assert_eq!(told.code(), Some(0), "{name}: {}", told.text());
        let ended = sandbox.records("run_ended");
        let last = ended.last().expect("an end");
        assert_eq!(
            (&last["outcome"], &last["iterations"]),
            (&"complete".into(), &3.into()),
            "{name}"
        );
        // The run's own clock did not jump: minutes at most, whatever the dates say.
        assert!(
            last["duration_ms"].as_u64().is_some_and(|time| time < 600_000),
            "{name}: {last}"
        );
    }
}

/// A run that begins after the clock was set back is the newest one all the same.
#[test]
fn after_a_clock_was_set_back_the_run_that_began_last_is_gone_on_with() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("not yet"))
        .with_file("ralph.yml", "event_loop: { cooldown_seconds: 0 }\n");
    sandbox.ralph(&["run", "-p", "x", "-n", "1"]).exits_with(3);
    let first = sandbox.newest_run();
    let id = first.file_name().and_then(|name| name.to_str()).expect("an id");
    fs::rename(&first, first.with_file_name(format!("2098{}", &id[4..]))).expect("a run of the future");
    sandbox.ralph(&["run", "-p", "x", "-n", "1"]).exits_with(3);
    let second = sandbox.newest_run();
    sandbox.ralph(&["run", "--continue", "-n", "2"]).exits_with(3);
    let journal = fs::read_to_string(second.join("events.jsonl")).expect("a journal");
    assert!(
        journal.contains("\"type\":\"run_resumed\""),
        "the older run was gone on with"
    );
}
