//! Starts ralph, interferes with it and checks that nothing was lost.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::fault::{Interference, Victim};
use super::terminal::{OutputTarget, RunningOn};
use crate::sandbox::Sandbox;

const ALLOWED: [i32; 8] = [0, 1, 3, 4, 129, 130, 137, 143];
/// Texts that ralph prints when it panics.
const PANICS: [&str; 2] = ["panicked", "ralph has a bug"];

/// Starts ralph, interferes after a random time and waits until ralph exits. Returns its exit code.
pub(super) fn run_once(
    sandbox: &Sandbox,
    (target, arguments): (OutputTarget, &[&str]),
    interfere: Option<(&Interference, Duration)>,
    problems: &mut Vec<String>,
) -> Option<i32> {
    let before = journal(sandbox).len();
    let mut running = RunningOn::start(sandbox, target, arguments);
    if let Some((interference, moment)) = interfere
        && !running.has_ended_within(moment)
    {
        send_signals(sandbox, running.pid(), interference);
    }
    // SIGUSR1 skips the wait after a failed iteration.
    let started = std::time::Instant::now();
    while !running.has_ended_within(Duration::from_millis(50)) {
        // Before ralph handles the signal, SIGUSR1 would kill it.
        if is_waiting(&journal(sandbox)[before..]) {
            signal(running.pid(), Signal::USR1);
        }
        if started.elapsed() > Duration::from_secs(60) {
            problems.push(format!("{arguments:?} did not exit"));
            return None;
        }
    }
    let end = running.into_end();
    if !end.terminal_is_restored {
        problems.push(format!("the terminal is not restored: {}", end.text));
    }
    if PANICS.iter().any(|text| end.text.contains(text)) {
        problems.push(format!("a panic: {}", end.text));
    }
    if end.code.is_some_and(|code| !ALLOWED.contains(&code)) {
        problems.push(format!("exit code {:?}: {}", end.code, end.text));
    }
    end.code
}

fn journal(sandbox: &Sandbox) -> Vec<u8> {
    sandbox.journal_text().into_bytes()
}

/// Returns whether the last record is the start of a wait.
fn is_waiting(journal: &[u8]) -> bool {
    let last = journal
        .split(|byte| *byte == b'\n')
        .rfind(|line| !line.is_empty());
    last.is_some_and(|line| memchr::memmem::find(line, br#""type":"waiting""#).is_some())
}

fn send_signals(sandbox: &Sandbox, ralph: i32, interference: &Interference) {
    let agent = sandbox.pids().last().copied();
    let pid = match interference.victim {
        Victim::None => None,
        Victim::Ralph => Some(ralph),
        Victim::Supervisor => supervisor_of(ralph),
        Victim::Agent => agent,
    };
    let Some(pid) = pid else {
        return;
    };
    for number in interference.signals {
        signal(pid, *number);
        // Equal signals that are pending at the same time are delivered once.
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(pid: i32, number: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // The process may have exited already.
        let _ = kill_process(pid, number);
    }
}

pub(super) fn supervisor_of(ralph: i32) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{ralph}/task/{ralph}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

pub(super) fn has_no_run(sandbox: &Sandbox) -> bool {
    sandbox.journal_text().is_empty()
}

pub(super) fn iterations(sandbox: &Sandbox) -> u64 {
    sandbox.pids().len() as u64
}

/// Checks that no process is left and that every record, iteration and byte is stored.
pub(super) fn check_sandbox(sandbox: &Sandbox, problems: &mut Vec<String>) {
    if !sandbox.processes_exit_within(Duration::from_secs(10)) {
        problems.push("a process is left".to_owned());
    }
    if has_no_run(sandbox) {
        return;
    }
    let run = sandbox.newest_run();
    let text = fs::read(run.join("events.jsonl")).unwrap_or_default();
    let records: Vec<Value> = text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let unreadable = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty() && serde_json::from_slice::<Value>(line).is_err())
        .count();
    if unreadable > 1 {
        problems.push(format!("{unreadable} unreadable lines"));
    }
    let numbers: Vec<u64> = records
        .iter()
        .filter_map(|record| record["seq"].as_u64())
        .collect();
    if !numbers.iter().copied().eq(1..=numbers.len() as u64) {
        problems.push("a gap in the journal".to_owned());
    }
    check_iterations(&records, problems);
    check_journal_against_raw_output(&run, &records, problems);
}

/// Checks that the iterations are 1, 2, 3 … and that each has one final outcome.
fn check_iterations(records: &[Value], problems: &mut Vec<String>) {
    let mut ended: BTreeMap<u64, u64> = BTreeMap::new();
    for record in records
        .iter()
        .filter(|record| record["type"] == "iteration_ended")
    {
        let is_final = !matches!(
            record["outcome"].as_str(),
            Some("interrupted" | "rate_limited" | "skipped")
        );
        if is_final {
            *ended
                .entry(record["iteration"].as_u64().unwrap_or(0))
                .or_default() += 1;
        }
    }
    let twice: Vec<_> = ended.iter().filter(|(_, count)| **count > 1).collect();
    if !twice.is_empty() {
        problems.push(format!("counted twice: {twice:?}"));
    }
    if !ended.keys().copied().eq(1..=ended.len() as u64) {
        problems.push(format!("iterations {:?}", ended.keys()));
    }
}

/// Checks that the journal of each ended iteration has all messages of its raw output.
fn check_journal_against_raw_output(run: &Path, records: &[Value], problems: &mut Vec<String>) {
    for record in records
        .iter()
        .filter(|record| record["type"] == "iteration_ended")
    {
        let (iteration, attempt) = (
            record["iteration"].as_u64().unwrap_or(0),
            record["attempt"].as_u64().unwrap_or(0),
        );
        let name = match attempt {
            1 => format!("{iteration:04}"),
            attempt => format!("{iteration:04}-{attempt}"),
        };
        let raw = fs::read(run.join("iterations").join(&name).join("stdout.raw")).unwrap_or_default();
        let is_message =
            |line: &[u8]| serde_json::from_slice::<Value>(line).is_ok_and(|line| line["type"] == "assistant");
        let in_raw_output = raw
            .split(|byte| *byte == b'\n')
            .filter(|line| is_message(line))
            .count();
        // The attempts of an iteration follow one another; messages come after the start of their attempt.
        let start = records.iter().rposition(|other| {
            other["type"] == "iteration_started"
                && other["iteration"] == iteration
                && other["attempt"] == attempt
        });
        let in_journal = start.map_or(0, |start| {
            records[start..]
                .iter()
                .take_while(|other| !(other["type"] == "iteration_started" && other["attempt"] != attempt))
                .filter(|other| other["type"] == "transcript" && other["iteration"] == iteration)
                .filter(|other| other["event"]["tag"] == "AI")
                .count()
        });
        if in_journal < in_raw_output {
            problems.push(format!(
                "iteration {name}: {in_raw_output} messages in the raw file, {in_journal} in the journal"
            ));
        }
    }
}
