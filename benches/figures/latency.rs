//! F5: latency from the agent printing a line to a reader receiving it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::helpers::monotonic;
use crate::sample::{Figure, helper, median, quantile, ralph, workspace};

const TICKS: &str = "100";
/// Several rounds, because the placement of threads on cores differs from start to start and affects the result.
const ROUNDS: usize = 7;

pub(crate) fn from_line_to_reader() -> Vec<Figure> {
    let directory = || workspace("latency", &["tick", TICKS], "plain");
    let on_stdout = || {
        let mut command = ralph();
        delays(
            command
                .args(["run", "--json", "-p", "x y"])
                .current_dir(directory()),
        )
    };
    let baseline = || delays(helper("tick").arg(TICKS));
    let (mut printed, mut journaled, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.extend(baseline());
        printed.extend(on_stdout());
        journaled.extend(delays_in_the_journal(&directory()));
    }
    let baseline = median(bare);
    [("on ralph's stdout", printed), ("in the journal", journaled)]
        .into_iter()
        .flat_map(|(destination, delays)| {
            let p99 = quantile(delays.clone(), 0.99);
            [
                Figure::times(
                    &format!("agent's line {destination}, median"),
                    median(delays),
                    baseline,
                    "≤ 4×",
                ),
                Figure::plain(
                    "the same, 99th percentile",
                    format!("{:.2} ms", p99.as_secs_f64() * 1e3),
                    "≤ 2 ms",
                ),
            ]
        })
        .collect()
}

/// The age of each line when it appears in the journal, for a reader that polls continuously.
fn delays_in_the_journal(workspace: &Path) -> Vec<Duration> {
    let mut command = ralph();
    command.args(["run", "-q", "-p", "x y"]).current_dir(workspace);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let Ok(mut child) = child else {
        return vec![Duration::ZERO];
    };
    let journal = workspace.join(".agent/events.jsonl");
    let mut file = None;
    let (mut delays, mut text) = (Vec::new(), Vec::new());
    while matches!(child.try_wait(), Ok(None)) {
        if file.is_none() {
            file = File::open(&journal).ok();
        }
        let grown = file.as_mut().and_then(|file| file.read_to_end(&mut text).ok());
        let now = monotonic();
        if grown.is_some_and(|bytes| bytes > 0) {
            let lines = String::from_utf8_lossy(&text);
            delays.extend(lines.lines().filter_map(|line| age(line, now)));
            text.clear();
        }
        // No sleep: the shortest one takes about 60 µs, which would be measured too.
        std::thread::yield_now();
    }
    delays
}

/// The age of a line that contains its own time.
fn age(line: &str, now: u64) -> Option<Duration> {
    let (_, rest) = line
        .split_once("at ")
        .filter(|(_, rest)| rest.starts_with(char::is_numeric))?;
    let digits = rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    Some(Duration::from_nanos(now.saturating_sub(digits.parse().ok()?)))
}

/// The age of each line when it is read from stdout.
fn delays(command: &mut Command) -> Vec<Duration> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        return vec![Duration::ZERO];
    };
    let Some(out) = child.stdout.take() else {
        return vec![Duration::ZERO];
    };
    let lines = BufReader::new(out).lines().map_while(Result::ok);
    let delays = lines.filter_map(|line| age(&line, monotonic()));
    let delays: Vec<Duration> = delays.collect();
    let _ = child.wait();
    delays
}
