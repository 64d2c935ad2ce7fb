//! An agent that talks without a pause for minutes on end: ralph and its keeper hold no more memory, files and threads at
//! the end than after the first minute. `just flood [MINUTES]`.
//!
//! `RALPH_FLOOD_RATE` is in bytes a second. What is kept on disk is about two and a half times what is said, and goes with
//! the test.

use std::fmt::Write as _;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{check, number};
use crate::sandbox::{Running, Sandbox, claude};

const SAMPLE: Duration = Duration::from_secs(2);
const MINUTE: Duration = Duration::from_secs(60);
/// What the figures after the first minute may differ from their middle.
const TOLERANCE: f64 = 0.10;

/// What a process holds at one moment.
#[derive(Debug, Clone, Copy)]
struct Held {
    minute: u64,
    ralph_kb: u64,
    keeper_kb: u64,
    files: usize,
    threads: usize,
}

#[test]
#[ignore = "takes its time: just flood"]
fn memory_files_and_threads_are_flat_while_the_agent_floods() {
    let minutes = number("RALPH_FLOOD_MINUTES", 3.0);
    let rate = number("RALPH_FLOOD_RATE", 1_500_000.0);
    let length = Duration::from_secs_f64(minutes * 60.0);
    let script = format!(
        "{}flood {} {rate} mix\n{}",
        claude::init(),
        length.as_secs(),
        claude::session("LOOP_COMPLETE")
    );
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "adapters: { claude: { timeout: 14000 } }\n")
        .playing("default", &script);
    fs::write(sandbox.path("play/mix"), mix()).expect("a file");
    let mut command = sandbox.command(&["run", "-p", "x", "-v"]);
    command.stdout(Stdio::null());
    let mut running = Running::start(&mut command);
    sandbox.wait_for_processes(1);
    let start = Instant::now();
    let mut samples = Vec::new();
    while start.elapsed() < length && !running.has_ended_within(SAMPLE) {
        samples.extend(look(running.pid(), start.elapsed()));
    }
    // Whatever is still on its way is read before the end.
    assert!(running.has_ended_within(10 * MINUTE), "it does not end");
    running.finish().exits_with(0);
    let size = |name: &str| fs::metadata(sandbox.newest_run().join(name)).map_or(0, |file| file.len());
    let (said, journal) = (size("iterations/0001/stdout.raw"), size("events.jsonl"));
    let text = table(&samples, said, journal);
    eprintln!("{text}");
    assert!(
        said as f64 > rate * length.as_secs_f64() * 0.5,
        "too slow for a flood: {text}"
    );
    let after: Vec<Held> = samples.into_iter().filter(|held| held.minute > 0).collect();
    let figures: [fn(&Held) -> u64; 4] = [
        |held| held.ralph_kb,
        |held| held.keeper_kb,
        |held| held.files as u64,
        |held| held.threads as u64,
    ];
    for figure in figures {
        let off = deviation(after.iter().map(figure));
        assert!(off <= TOLERANCE, "not flat, by {off:.3}: {text}");
    }
}

/// About 64 KB of what agents say: many small deltas, messages, tool calls, and what tools print.
fn mix() -> String {
    let mut text = String::new();
    let mut say = |line: serde_json::Value| {
        let _ = writeln!(text, "{line}");
    };
    for turn in 0..20 {
        for word in 0..10 {
            say(
                json!({ "type": "stream_event", "session_id": "s-1", "event": { "type": "content_block_delta",
                "index": 0, "delta": { "type": "text_delta", "text": format!("word {word} ") } } }),
            );
        }
        let answer = json!([{ "type": "text", "text": "a sentence of an answer. ".repeat(20) }]);
        say(json!({ "type": "assistant", "session_id": "s-1",
            "message": { "id": format!("m{turn}"), "role": "assistant", "model": "fake-1", "content": answer } }));
        let call = json!([{ "type": "tool_use", "id": format!("t{turn}"), "name": "Bash",
            "input": { "command": "cat some/file" } }]);
        say(json!({ "type": "assistant", "session_id": "s-1",
            "message": { "id": format!("c{turn}"), "role": "assistant", "model": "fake-1", "content": call } }));
        let output = json!([{ "type": "tool_result", "tool_use_id": format!("t{turn}"), "is_error": false,
            "content": "a line of what the tool has printed\n".repeat(20) }]);
        say(json!({ "type": "user", "session_id": "s-1", "message": { "role": "user", "content": output } }));
    }
    text
}

fn look(ralph: i32, since: Duration) -> Option<Held> {
    let supervisors = check::keeper_of(ralph)?;
    let count = |what: &str| {
        fs::read_dir(format!("/proc/{ralph}/{what}"))
            .map(Iterator::count)
            .ok()
    };
    Some(Held {
        minute: since.as_secs() / 60,
        ralph_kb: resident(ralph)?,
        keeper_kb: resident(supervisors)?,
        files: count("fd")?,
        threads: count("task")?,
    })
}

fn resident(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// How far the extremes are from the middle between them, as a part of it.
fn deviation(figures: impl Iterator<Item = u64> + Clone) -> f64 {
    let (least, most) = (figures.clone().min().unwrap_or(0), figures.max().unwrap_or(0));
    if most == 0 {
        return 0.0;
    }
    (most - least) as f64 / (most + least) as f64
}

fn table(samples: &[Held], said: u64, journal: u64) -> String {
    let mut text = format!(
        "\nflood: {} MB said, {} MB of journal\n\nminute  ralph least  most (KB)  keeper least  most (KB)  files  threads\n",
        said >> 20,
        journal >> 20
    );
    let last = samples.last().map_or(0, |held| held.minute);
    for minute in 0..=last {
        let of: Vec<&Held> = samples.iter().filter(|held| held.minute == minute).collect();
        let range = |figure: fn(&Held) -> u64| {
            let figures = || of.iter().map(|held| figure(held));
            (figures().min().unwrap_or(0), figures().max().unwrap_or(0))
        };
        let (ralph, supervisors) = (range(|held| held.ralph_kb), range(|held| held.keeper_kb));
        let (files, threads) = (range(|held| held.files as u64), range(|held| held.threads as u64));
        let _ = writeln!(
            text,
            "{:>6}  {:>11}  {:>9}  {:>12}  {:>9}  {:>5}  {:>7}",
            minute + 1,
            ralph.0,
            ralph.1,
            supervisors.0,
            supervisors.1,
            files.1,
            threads.1
        );
    }
    text
}
