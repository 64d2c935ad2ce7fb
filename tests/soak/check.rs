//! Strikes, and looks whether anything was lost.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::fault::{Blow, Whom};
use super::terminal::{Seat, Seated};
use crate::sandbox::Sandbox;

const ALLOWED: [i32; 8] = [0, 1, 3, 4, 129, 130, 137, 143];
/// What is said when ralph itself has made a mistake.
const PANICS: [&str; 2] = ["panicked", "a mistake in ralph"];

/// Starts ralph, strikes, and waits for its end; its exit code.
pub(super) fn one_start(
    sandbox: &Sandbox,
    (seat, words): (Seat, &[&str]),
    struck: Option<(&Blow, Duration)>,
    complaints: &mut Vec<String>,
) -> Option<i32> {
    let before = journal(sandbox).len();
    let mut seated = Seated::start(sandbox, seat, words);
    if let Some((blow, moment)) = struck
        && !seated.has_ended_within(moment)
    {
        strike(sandbox, seated.pid(), blow);
    }
    // A failed iteration is followed by a wait: nobody here has the time.
    let started = std::time::Instant::now();
    while !seated.has_ended_within(Duration::from_millis(50)) {
        // Not before it hears us: until then the signal would be its end.
        if is_waiting(&journal(sandbox)[before..]) {
            signal(seated.pid(), Signal::USR1);
        }
        if started.elapsed() > Duration::from_secs(60) {
            complaints.push(format!("{words:?} did not end"));
            return None;
        }
    }
    let end = seated.look_back();
    if !end.terminal_is_as_it_was {
        complaints.push(format!("the terminal is not as it was: {}", end.said));
    }
    if PANICS.iter().any(|words| end.said.contains(words)) {
        complaints.push(format!("a panic: {}", end.said));
    }
    if end.code.is_some_and(|code| !ALLOWED.contains(&code)) {
        complaints.push(format!("exit code {:?}: {}", end.code, end.said));
    }
    end.code
}

fn journal(sandbox: &Sandbox) -> Vec<u8> {
    fs::read(sandbox.work().join(".agent/events.jsonl")).unwrap_or_default()
}

/// The last thing that happened is that a wait began.
fn is_waiting(journal: &[u8]) -> bool {
    let last = journal
        .split(|byte| *byte == b'\n')
        .rfind(|line| !line.is_empty());
    last.is_some_and(|line| memchr::memmem::find(line, br#""type":"waiting""#).is_some())
}

fn strike(sandbox: &Sandbox, ralph: i32, blow: &Blow) {
    let agent = sandbox.pids().last().copied();
    let pid = match blow.whom {
        Whom::Nobody => None,
        Whom::Ralph => Some(ralph),
        Whom::Supervisors => keeper_of(ralph),
        Whom::Agent => agent,
    };
    let Some(pid) = pid else {
        return;
    };
    for number in blow.signals {
        signal(pid, *number);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(pid: i32, number: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may be gone already.
        let _ = kill_process(pid, number);
    }
}

pub(super) fn keeper_of(ralph: i32) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{ralph}/task/{ralph}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

pub(super) fn has_no_run(sandbox: &Sandbox) -> bool {
    !sandbox.work().join(".agent/events.jsonl").exists()
}

pub(super) fn iterations(sandbox: &Sandbox) -> u64 {
    sandbox.pids().len() as u64
}

/// Nobody is left, and every record, iteration and byte is there.
pub(super) fn look_around(sandbox: &Sandbox, complaints: &mut Vec<String>) {
    if !sandbox.all_are_gone_within(Duration::from_secs(10)) {
        complaints.push("a process is left".to_owned());
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
        complaints.push(format!("{unreadable} unreadable lines"));
    }
    let numbers: Vec<u64> = records
        .iter()
        .filter_map(|record| record["seq"].as_u64())
        .collect();
    if !numbers.iter().copied().eq(1..=numbers.len() as u64) {
        complaints.push("a gap in the journal".to_owned());
    }
    counted_once(&records, complaints);
    in_the_journal_as_in_the_raw_file(&run, &records, complaints);
}

/// The iterations that ended are 1, 2, 3 …, each of them once for good.
fn counted_once(records: &[Value], complaints: &mut Vec<String>) {
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
        complaints.push(format!("counted twice: {twice:?}"));
    }
    if !ended.keys().copied().eq(1..=ended.len() as u64) {
        complaints.push(format!("iterations {:?}", ended.keys()));
    }
}

/// What the agent said in an iteration that ended is in the journal as often as in the raw file.
fn in_the_journal_as_in_the_raw_file(run: &Path, records: &[Value], complaints: &mut Vec<String>) {
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
        let said = raw
            .split(|byte| *byte == b'\n')
            .filter(|line| is_message(line))
            .count();
        // The tries of an iteration follow one another; the last one's words come after its start.
        let start = records.iter().rposition(|other| {
            other["type"] == "iteration_started"
                && other["iteration"] == iteration
                && other["attempt"] == attempt
        });
        let told = start.map_or(0, |start| {
            records[start..]
                .iter()
                .take_while(|other| !(other["type"] == "iteration_started" && other["attempt"] != attempt))
                .filter(|other| other["type"] == "transcript" && other["iteration"] == iteration)
                .filter(|other| other["event"]["tag"] == "AI")
                .count()
        });
        if told < said {
            complaints.push(format!(
                "iteration {name}: {said} messages in the raw file, {told} in the journal"
            ));
        }
    }
}
