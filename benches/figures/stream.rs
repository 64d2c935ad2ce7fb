//! F3, F4, F7: memory and speed while an agent prints.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::sample::{Figure, interleaved, median, part, ralph, scratch, settle, time, workspace};

const MEGABYTE: u64 = 1_000_000;

/// A stream-json session of about this size: deltas above all, messages, tools, results.
fn corpus(megabytes: u64) -> PathBuf {
    let path = scratch().join(format!("corpus-{megabytes}.jsonl"));
    if path
        .metadata()
        .is_ok_and(|file| file.len() >= megabytes * MEGABYTE)
    {
        return path;
    }
    let Ok(file) = File::create(&path) else {
        return path;
    };
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let words = "the quick brown fox jumps over the lazy dog and goes on its way ".repeat(6);
    let mut written = 0;
    let mut number = 0_u64;
    while written < megabytes * MEGABYTE {
        number += 1;
        let delta = json!({ "type": "stream_event", "session_id": "s", "parent_tool_use_id": null, "uuid": number,
            "event": { "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": &words[..200] } } });
        let said = json!({ "type": "assistant", "session_id": "s", "parent_tool_use_id": null, "message": { "id": format!("m{number}"),
            "role": "assistant", "model": "m", "usage": { "input_tokens": 10, "output_tokens": 1 },
            "content": [{ "type": "text", "text": words }] } });
        let used = json!({ "type": "assistant", "session_id": "s", "parent_tool_use_id": null, "message": { "id": format!("n{number}"),
            "role": "assistant", "model": "m", "content": [{ "type": "tool_use", "id": format!("t{number}"), "name": "Bash",
            "input": { "command": &words[..100] } }] } });
        let gave = json!({ "type": "user", "session_id": "s", "parent_tool_use_id": null, "message": { "role": "user",
            "content": [{ "type": "tool_result", "tool_use_id": format!("t{number}"), "content": words, "is_error": false }] } });
        let block = format!("{delta}\n{delta}\n{delta}\n{delta}\n{said}\n{used}\n{gave}\n");
        let _ = out.write_all(block.as_bytes());
        written += block.len() as u64;
    }
    let result = json!({ "type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "session_id": "s",
        "result": "LOOP_COMPLETE", "usage": { "input_tokens": 1, "output_tokens": 1 } });
    let _ = writeln!(out, "{result}");
    path
}

fn rate(megabytes: u64, took: Duration) -> f64 {
    megabytes as f64 / took.as_secs_f64()
}

pub(crate) fn place(name: &str, megabytes: u64) -> PathBuf {
    workspace(
        name,
        &["emit", &corpus(megabytes).display().to_string()],
        "claude",
    )
}

const MEGABYTES: u64 = 200;
/// A terminal is slower by far.
const TERMINAL_MEGABYTES: u64 = 50;

pub(crate) fn throughput() -> Vec<Figure> {
    let quiet = || {
        let place = place("stream", MEGABYTES);
        rate(MEGABYTES, time(run_quietly().current_dir(place)))
    };
    let plain = || {
        let place = place("stream", MEGABYTES);
        let out = File::create(place.join("out.txt")).map_or_else(|_| Stdio::null(), Stdio::from);
        let start = Instant::now();
        let mut command = ralph();
        let status = command
            .args(["run", "-p", "x y"])
            .current_dir(&place)
            .stdin(Stdio::null())
            .stdout(out)
            .status();
        assert!(status.is_ok());
        rate(MEGABYTES, start.elapsed())
    };
    let on_a_terminal = || {
        let place = place("stream", TERMINAL_MEGABYTES);
        let config = place.join("ralph.yml");
        let text = std::fs::read_to_string(&config).unwrap_or_default();
        let _ = std::fs::write(&config, text.replace("cli:\n", "cli:\n  pty_mode: true\n"));
        rate(TERMINAL_MEGABYTES, time(run_quietly().current_dir(place)))
    };
    let pipe_floor = || reference("reference", MEGABYTES);
    let (ours, floor) = interleaved(9, quiet, pipe_floor);
    let (shown, shown_floor) = interleaved(9, plain, pipe_floor);
    let terminal_floor = || reference("reference-terminal", TERMINAL_MEGABYTES);
    let (drawn, drawn_floor) = interleaved(9, on_a_terminal, terminal_floor);
    vec![
        Figure::rates("200 MB of stream-json, quiet face", ours, floor, "≥ 0.7×"),
        Figure::rates(
            "200 MB of stream-json, plain face to a file",
            shown,
            shown_floor,
            "≥ 0.5×",
        ),
        Figure::rates(
            "50 MB of stream-json from a terminal, quiet face",
            drawn,
            drawn_floor,
            "≥ 0.85×",
        ),
    ]
}

fn run_quietly() -> Command {
    let mut command = ralph();
    command.args(["run", "-q", "-p", "x y"]);
    command
}

/// How fast the floor reads a session of this size.
fn reference(name: &str, megabytes: u64) -> f64 {
    let corpus = corpus(megabytes).display().to_string();
    let raw = scratch().join("reference.raw");
    let _ = std::fs::remove_file(&raw);
    settle();
    let mut command = part(name);
    rate(
        megabytes,
        time(command.args([&corpus, &raw.display().to_string()])),
    )
}

pub(crate) fn odd_shapes() -> Vec<Figure> {
    let long = scratch().join("long.jsonl");
    let text = "z".repeat(50_000_000);
    let line = json!({ "type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "session_id": "s",
        "result": format!("{text}\nLOOP_COMPLETE") });
    let _ = std::fs::write(&long, format!("{line}\n"));
    let one_line = || {
        let place = workspace("long", &["emit", &long.display().to_string()], "claude");
        rate(
            50,
            time(ralph().args(["run", "-q", "-p", "x y"]).current_dir(place)),
        )
    };
    let many = || {
        let place = workspace("short", &["lines", "1000000"], "plain");
        1.0 / time(ralph().args(["run", "-q", "-p", "x y"]).current_dir(place)).as_secs_f64()
    };
    let normal = || {
        let place = place("stream", 50);
        rate(
            50,
            time(ralph().args(["run", "-q", "-p", "x y"]).current_dir(place)),
        )
    };
    let (ours, floor) = interleaved(9, one_line, normal);
    let (lines, _) = interleaved(3, many, || 0.0);
    vec![
        Figure::rates("one line of 50 MB", ours, floor, "≥ 0.5×"),
        Figure::plain(
            "1,000,000 short plain lines",
            format!("{lines:.2} million lines/s"),
            "≥ 1",
        ),
    ]
}

pub(crate) fn memory() -> Vec<Figure> {
    [(10, 9), (200, 9), (2000, 3)]
        .into_iter()
        .map(|(megabytes, repeats)| {
            let peak = || {
                let place = place("memory", megabytes);
                peak_of(ralph().args(["run", "-q", "-p", "x y"]).current_dir(place))
            };
            let peaks: Vec<u64> = std::iter::repeat_with(peak).take(repeats).collect();
            let what = format!("peak memory at {megabytes} MB, ralph and keeper together");
            Figure::plain(
                &what,
                format!("{:.1} MB", median(peaks) as f64 / 1e6),
                "≤ 20 MB, growth < 5 %",
            )
        })
        .collect()
}

/// The most memory that a command and its keeper held, each at its own worst moment.
fn peak_of(command: &mut Command) -> u64 {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return 0 };
    let (mut own, mut supervisors) = (0, 0);
    while matches!(child.try_wait(), Ok(None)) {
        own = own.max(high_water(child.id()));
        let children =
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap_or_default();
        let kept = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        supervisors = supervisors.max(kept.filter(|pid| is_keeper(*pid)).map(high_water).sum());
        // A short session is over within a few looks, and its last moment is its worst.
        std::thread::yield_now();
    }
    own + supervisors
}

/// A child that has not become its own program yet has its parent's memory, which is counted there.
fn is_keeper(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "agent-keeper")
}

fn high_water(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}
