//! F3, F4 and F7: memory and throughput while an agent prints.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::sample::{Figure, helper, interleaved, median, ralph, scratch, sync_disk, time, workspace};

const MEGABYTE: u64 = 1_000_000;

/// A captured session of Claude Code: thinking, texts, tool calls and their results, with usage in every message.
const CAPTURE: &str = include_str!("../../tests/fixtures/claude/2.1.327.stream-json.multi.stdout");
/// Lines of the longer tool result. The captured ones are shorter than those of real work.
const RESULT_LINES: usize = 60;

/// A stream-json session of about this size: the messages of the capture again and again, each time with other ids and
/// texts.
pub(crate) fn corpus(megabytes: u64) -> PathBuf {
    let path = scratch().join(format!("session-{megabytes}.jsonl"));
    if path
        .metadata()
        .is_ok_and(|file| file.len() >= megabytes * MEGABYTE)
    {
        return path;
    }
    let lines: Vec<&str> = CAPTURE.lines().collect();
    let [init, messages @ .., result] = lines.as_slice() else {
        return path;
    };
    let Ok(file) = File::create(&path) else {
        return path;
    };
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let _ = writeln!(out, "{init}");
    let (template, mut written) = (messages.join("\n"), 0);
    for number in 1.. {
        let block = numbered(&template, number);
        let _ = writeln!(out, "{block}");
        written += block.len() as u64;
        if written >= megabytes * MEGABYTE {
            break;
        }
    }
    let _ = writeln!(out, "{result}");
    path
}

/// The messages of the capture as the given step of a long session.
fn numbered(template: &str, number: u64) -> String {
    let output: String = (1..=RESULT_LINES)
        .map(|line| format!("step {number}: line {line} of the output\\n"))
        .collect();
    let words = format!("Step {number} is done and its results are checked. ").repeat(8);
    template
        .replace("msg_mock", &format!("msg_{number}_"))
        .replace("toolu_mock", &format!("toolu_{number}_"))
        .replace("\"uuid\":\"", &format!("\"uuid\":\"{number}-"))
        .replace("Let me look around.", &format!("Let me look around. {words}"))
        .replace("one\\ntwo", &output)
        .replace(
            "Everything is in place.\\n\\n<event topic=\\\"build.done\\\">ok</event>\\nLOOP_COMPLETE",
            &words,
        )
}

pub(crate) fn rate(megabytes: u64, took: Duration) -> f64 {
    megabytes as f64 / took.as_secs_f64()
}

pub(crate) fn stream_workspace(name: &str, megabytes: u64) -> PathBuf {
    workspace(
        name,
        &["emit", &corpus(megabytes).display().to_string()],
        "claude",
    )
}

const MEGABYTES: u64 = 200;
/// Less than for a pipe, because a terminal is much slower.
const TERMINAL_MEGABYTES: u64 = 50;

pub(crate) fn throughput() -> Vec<Figure> {
    let quiet = || {
        let directory = stream_workspace("stream", MEGABYTES);
        rate(MEGABYTES, time(run_quietly().current_dir(directory)))
    };
    let plain = || {
        let directory = stream_workspace("stream", MEGABYTES);
        let out = File::create(directory.join("out.txt")).map_or_else(|_| Stdio::null(), Stdio::from);
        let start = Instant::now();
        let mut command = ralph();
        let status = command
            .args(["run", "-p", "x y"])
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(out)
            .status();
        assert!(status.is_ok());
        rate(MEGABYTES, start.elapsed())
    };
    let on_terminal = || {
        let directory = stream_workspace("stream", TERMINAL_MEGABYTES);
        let config = directory.join("ralph.yml");
        let text = std::fs::read_to_string(&config).unwrap_or_default();
        let _ = std::fs::write(&config, text.replace("cli:\n", "cli:\n  pty_mode: true\n"));
        rate(TERMINAL_MEGABYTES, time(run_quietly().current_dir(directory)))
    };
    let pipe_baseline = || reference("reference", MEGABYTES);
    let (ours, baseline) = interleaved(9, quiet, pipe_baseline);
    let (shown, shown_baseline) = interleaved(9, plain, pipe_baseline);
    let terminal_baseline = || reference("reference-terminal", TERMINAL_MEGABYTES);
    let (drawn, drawn_baseline) = interleaved(9, on_terminal, terminal_baseline);
    vec![
        Figure::rates("200 MB of stream-json, -q", ours, baseline, "≥ 0.45×"),
        Figure::rates(
            "200 MB of stream-json, plain text to a file",
            shown,
            shown_baseline,
            "≥ 0.4×",
        ),
        Figure::rates(
            "50 MB of stream-json from a terminal, -q",
            drawn,
            drawn_baseline,
            "≥ 0.85×",
        ),
    ]
}

fn run_quietly() -> Command {
    let mut command = ralph();
    command.args(["run", "-q", "-p", "x y"]);
    command
}

/// The throughput of the reference reader on a session of this size.
fn reference(name: &str, megabytes: u64) -> f64 {
    let corpus = corpus(megabytes).display().to_string();
    let raw = scratch().join("reference.raw");
    let _ = std::fs::remove_file(&raw);
    sync_disk();
    let mut command = helper(name);
    rate(
        megabytes,
        time(command.args([&corpus, &raw.display().to_string()])),
    )
}

pub(crate) fn unusual_lines() -> Vec<Figure> {
    let long = scratch().join("long.jsonl");
    let text = "z".repeat(50_000_000);
    let line = json!({ "type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "session_id": "s",
        "result": format!("{text}\nLOOP_COMPLETE") });
    let _ = std::fs::write(&long, format!("{line}\n"));
    let one_line = || {
        let directory = workspace("long", &["emit", &long.display().to_string()], "claude");
        rate(
            50,
            time(ralph().args(["run", "-q", "-p", "x y"]).current_dir(directory)),
        )
    };
    let many = || {
        let directory = workspace("short", &["lines", "1000000"], "plain");
        1.0 / time(ralph().args(["run", "-q", "-p", "x y"]).current_dir(directory)).as_secs_f64()
    };
    let normal = || {
        let directory = stream_workspace("stream", 50);
        rate(
            50,
            time(ralph().args(["run", "-q", "-p", "x y"]).current_dir(directory)),
        )
    };
    let (ours, baseline) = interleaved(9, one_line, normal);
    let (lines, _) = interleaved(3, many, || 0.0);
    vec![
        Figure::rates("one line of 50 MB", ours, baseline, "≥ 0.5×"),
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
                let directory = stream_workspace("memory", megabytes);
                peak_of(ralph().args(["run", "-q", "-p", "x y"]).current_dir(directory))
            };
            let peaks: Vec<u64> = std::iter::repeat_with(peak).take(repeats).collect();
            let label = format!("peak memory at {megabytes} MB, ralph and supervisor together");
            Figure::plain(
                &label,
                format!("{:.1} MB", median(peaks) as f64 / 1e6),
                "≤ 20 MB, growth < 5 %",
            )
        })
        .collect()
}

/// The sum of the peak memory of a command and of its supervisors.
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
        let pids = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        supervisors = supervisors.max(pids.filter(|pid| is_supervisor(*pid)).map(high_water).sum());
        // Polls without sleeping: a short session ends within a few polls, and its peak is at the end.
        std::thread::yield_now();
    }
    own + supervisors
}

/// A child that has not called exec yet shares the memory of its parent, which is already counted.
fn is_supervisor(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "supervisor")
}

pub(crate) fn high_water(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}
