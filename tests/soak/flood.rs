//! An agent that prints continuously for minutes: memory, files and threads of ralph and its supervisor do not grow after the
//! first minute. `just flood [MINUTES]`.
//!
//! `RALPH_FLOOD_RATE` is in bytes per second. The run needs about two and a half times the printed bytes on disk.

use std::fmt::Write as _;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{check, number};
use crate::sandbox::{Running, Sandbox, claude};

const SAMPLE_INTERVAL: Duration = Duration::from_secs(2);
const MINUTE: Duration = Duration::from_secs(60);
/// Allowed deviation of the figures after the first minute from their middle.
const TOLERANCE: f64 = 0.10;

/// Resources of ralph and its supervisor at one time.
#[derive(Debug, Clone, Copy)]
struct Sample {
    minute: u64,
    ralph_kb: u64,
    supervisor_kb: u64,
    files: usize,
    threads: usize,
}

#[test]
#[ignore = "slow: just flood"]
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
        .with_script("default", &script);
    fs::write(sandbox.path("agent/mix"), mix()).expect("a file");
    let mut command = sandbox.command(&["run", "-p", "x", "-v"]);
    command.stdout(Stdio::null());
    let mut running = Running::start(&mut command);
    sandbox.wait_for_processes(1);
    let start = Instant::now();
    let mut samples = Vec::new();
    while start.elapsed() < length && !running.has_ended_within(SAMPLE_INTERVAL) {
        samples.extend(sample(running.pid(), start.elapsed()));
    }
    // Output that is still in the pipe is read before ralph exits.
    assert!(running.has_ended_within(10 * MINUTE), "ralph does not exit");
    running.finish().exits_with(0);
    let size = |name: &str| fs::metadata(sandbox.newest_run().join(name)).map_or(0, |file| file.len());
    let (printed, journal) = (size("iterations/0001/stdout.raw"), size("events.jsonl"));
    let text = table(&samples, printed, journal);
    eprintln!("{text}");
    assert!(
        printed as f64 > rate * length.as_secs_f64() * 0.5,
        "too slow for a flood: {text}"
    );
    let after: Vec<Sample> = samples.into_iter().filter(|sample| sample.minute > 0).collect();
    let figures: [fn(&Sample) -> u64; 4] = [
        |sample| sample.ralph_kb,
        |sample| sample.supervisor_kb,
        |sample| sample.files as u64,
        |sample| sample.threads as u64,
    ];
    for figure in figures {
        let off = deviation(after.iter().map(figure));
        assert!(off <= TOLERANCE, "not flat, by {off:.3}: {text}");
    }
}

/// Returns about 64 KB of typical output: many small deltas, messages, tool calls and tool output.
fn mix() -> String {
    let mut text = String::new();
    let mut print = |line: serde_json::Value| {
        let _ = writeln!(text, "{line}");
    };
    for turn in 0..20 {
        for word in 0..10 {
            print(
                json!({ "type": "stream_event", "session_id": "s-1", "event": { "type": "content_block_delta",
                "index": 0, "delta": { "type": "text_delta", "text": format!("word {word} ") } } }),
            );
        }
        let answer = json!([{ "type": "text", "text": "a sentence of an answer. ".repeat(20) }]);
        print(json!({ "type": "assistant", "session_id": "s-1",
            "message": { "id": format!("m{turn}"), "role": "assistant", "model": "fake-1", "content": answer } }));
        let call = json!([{ "type": "tool_use", "id": format!("t{turn}"), "name": "Bash",
            "input": { "command": "cat some/file" } }]);
        print(json!({ "type": "assistant", "session_id": "s-1",
            "message": { "id": format!("c{turn}"), "role": "assistant", "model": "fake-1", "content": call } }));
        let output = json!([{ "type": "tool_result", "tool_use_id": format!("t{turn}"), "is_error": false,
            "content": "a line of tool output\n".repeat(20) }]);
        print(
            json!({ "type": "user", "session_id": "s-1", "message": { "role": "user", "content": output } }),
        );
    }
    text
}

fn sample(ralph: i32, since: Duration) -> Option<Sample> {
    let supervisor = check::supervisor_of(ralph)?;
    let count = |what: &str| {
        fs::read_dir(format!("/proc/{ralph}/{what}"))
            .map(Iterator::count)
            .ok()
    };
    Some(Sample {
        minute: since.as_secs() / 60,
        ralph_kb: resident(ralph)?,
        supervisor_kb: resident(supervisor)?,
        files: count("fd")?,
        threads: count("task")?,
    })
}

fn resident(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Returns the distance of the extremes from the middle between them, relative to it.
fn deviation(figures: impl Iterator<Item = u64> + Clone) -> f64 {
    let (least, most) = (figures.clone().min().unwrap_or(0), figures.max().unwrap_or(0));
    if most == 0 {
        return 0.0;
    }
    (most - least) as f64 / (most + least) as f64
}

fn table(samples: &[Sample], printed: u64, journal: u64) -> String {
    let mut text = format!(
        "\nflood: {} MB printed, {} MB of journal\n\nminute    ralph min   max (KB)   superv. min   max (KB)  files  threads\n",
        printed >> 20,
        journal >> 20
    );
    let last = samples.last().map_or(0, |sample| sample.minute);
    for minute in 0..=last {
        let of: Vec<&Sample> = samples.iter().filter(|sample| sample.minute == minute).collect();
        let range = |figure: fn(&Sample) -> u64| {
            let figures = || of.iter().map(|sample| figure(sample));
            (figures().min().unwrap_or(0), figures().max().unwrap_or(0))
        };
        let (ralph, supervisor) = (
            range(|sample| sample.ralph_kb),
            range(|sample| sample.supervisor_kb),
        );
        let (files, threads) = (
            range(|sample| sample.files as u64),
            range(|sample| sample.threads as u64),
        );
        let _ = writeln!(
            text,
            "{:>6}  {:>11}  {:>9}  {:>12}  {:>9}  {:>5}  {:>7}",
            minute + 1,
            ralph.0,
            ralph.1,
            supervisor.0,
            supervisor.1,
            files.1,
            threads.1
        );
    }
    text
}
