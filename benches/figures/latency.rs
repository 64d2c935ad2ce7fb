//! F5: from the agent's line to whoever reads it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::helpers::monotonic;
use crate::sample::{Figure, median, part, quantile, ralph, workspace};

const TICKS: &str = "100";
/// Where the scheduler puts a program's threads is decided anew each time, and makes a difference.
const ROUNDS: usize = 7;

pub(crate) fn from_line_to_reader() -> Vec<Figure> {
    let place = || workspace("latency", &["tick", TICKS], "plain");
    let on_stdout = || {
        let mut command = ralph();
        delays(command.args(["run", "--json", "-p", "x y"]).current_dir(place()))
    };
    let floor = || delays(part("tick").arg(TICKS));
    let (mut printed, mut kept, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.extend(floor());
        printed.extend(on_stdout());
        kept.extend(delays_in_the_journal(&place()));
    }
    let floor = median(bare);
    [("on ralph's stdout", printed), ("in the journal", kept)]
        .into_iter()
        .flat_map(|(place, delays)| {
            let p99 = quantile(delays.clone(), 0.99);
            [
                Figure::times(
                    &format!("agent's line {place}, median"),
                    median(delays),
                    floor,
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

/// How old each line is when it stands in the journal, for a reader that looks all the time.
fn delays_in_the_journal(place: &Path) -> Vec<Duration> {
    let mut command = ralph();
    command.args(["run", "-q", "-p", "x y"]).current_dir(place);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let Ok(mut child) = child else {
        return vec![Duration::ZERO];
    };
    let journal = place.join(".agent/events.jsonl");
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
        // A sleep of a few microseconds would take sixty, and all of them would be counted.
        std::thread::yield_now();
    }
    delays
}

/// How long ago a line was said that tells when.
fn age(line: &str, now: u64) -> Option<Duration> {
    let (_, rest) = line
        .split_once("at ")
        .filter(|(_, rest)| rest.starts_with(char::is_numeric))?;
    let digits = rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    Some(Duration::from_nanos(now.saturating_sub(digits.parse().ok()?)))
}

/// How old each line is when it is read.
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
