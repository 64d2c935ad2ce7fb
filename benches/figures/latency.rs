//! F5: from the agent's line to whoever reads it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::parts::monotonic;
use crate::sample::{Figure, median, part, quantile, ralph, workspace};

const TICKS: &str = "200";

pub(crate) fn from_line_to_reader() -> Vec<Figure> {
    let floor = delays(part("tick").arg(TICKS));
    let place = workspace("latency", &["tick", TICKS], "plain");
    let ours = delays(ralph().args(["run", "--json", "-p", "x y"]).current_dir(place));
    let p99 = quantile(ours.clone(), 0.99);
    vec![
        Figure::times(
            "agent's line to ralph's stdout, median",
            median(ours),
            median(floor),
            "≤ 4×",
        ),
        Figure::plain(
            "the same, 99th percentile",
            format!("{:.2} ms", p99.as_secs_f64() * 1e3),
            "≤ 2 ms",
        ),
    ]
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
    let delays = lines.filter_map(|line| {
        let now = monotonic();
        let (_, rest) = line
            .split_once("at ")
            .filter(|(_, rest)| rest.starts_with(char::is_numeric))?;
        let digits = rest.chars().take_while(char::is_ascii_digit).collect::<String>();
        Some(Duration::from_nanos(now.saturating_sub(digits.parse().ok()?)))
    });
    let delays: Vec<Duration> = delays.collect();
    let _ = child.wait();
    delays
}
