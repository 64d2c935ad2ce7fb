//! F2: what lies between two iterations.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::sample::{Figure, interleaved, median, ralph, scratch, time, workspace};

const ITERATIONS: usize = 100;
const MANY: usize = 1000;
const PLACE: &str = "turns-";
/// How long what a measurement left stays, so that the next one has nothing freshly deleted to pay for.
const KEPT: Duration = Duration::from_secs(3600);
/// Bytes of a prompt.
const SHORT: usize = 1_000;
const LONG: usize = 1_000_000;

pub(crate) fn gap_between_iterations() -> Vec<Figure> {
    let (ours, floor) = interleaved(
        5,
        || median(ralphs_gaps(ITERATIONS, SHORT)),
        || median(shells_gaps(ITERATIONS)),
    );
    let (long, short) = interleaved(
        3,
        || median(ralphs_gaps(ITERATIONS, LONG)),
        || median(ralphs_gaps(ITERATIONS, SHORT)),
    );
    let before = spent_by_children();
    let gaps = ralphs_gaps(MANY, SHORT);
    let of_ralph = spent_by_children() - before;
    let before = spent_by_children();
    shells_gaps(MANY);
    let of_shell = spent_by_children() - before;
    clear_away();
    let each = of_ralph.saturating_sub(of_shell) / u32::try_from(MANY).unwrap_or(u32::MAX);
    let (first, last) = (
        median(gaps[..100].to_vec()),
        median(gaps[gaps.len() - 100..].to_vec()),
    );
    vec![
        Figure::times(
            "gap from agent's end to next agent's start",
            ours,
            floor,
            "≤ 2.5×",
        ),
        Figure::times(
            "the same, last 100 of 1,000 against the first 100",
            last,
            first,
            "flat",
        ),
        Figure::times(
            "the same, a prompt of 1 MB against one of 1 KB",
            long,
            short,
            "told",
        ),
        Figure::plain(
            "processor time for an iteration, less what a loop in sh takes",
            format!("{:.2} ms", each.as_secs_f64() * 1e3),
            "≤ 4 ms",
        ),
    ]
}

/// The processor time of all children that have been waited for, in ticks of ten milliseconds.
fn spent_by_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = after_name.split(' ').skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Every time in a place of its own. Some file systems look at each inode that was freed in the last minutes before they
/// give one out, and a run must not pay for what has been deleted to make room for it, now or by an earlier measurement.
fn ralphs_gaps(iterations: usize, prompt: usize) -> Vec<Duration> {
    static PLACES: AtomicUsize = AtomicUsize::new(0);
    let log = fresh_log("ralph.log");
    let place = workspace(
        &format!(
            "{PLACE}{}-{}",
            std::process::id(),
            PLACES.fetch_add(1, Ordering::Relaxed)
        ),
        &["stamp", &log.display().to_string(), &iterations.to_string()],
        "plain",
    );
    let _ = std::fs::write(place.join("PROMPT.md"), "make it so\n".repeat(prompt / 11));
    time(ralph().args(["run", "-q"]).current_dir(&place));
    gaps(&log)
}

/// What was left so long ago that nobody measures any more.
fn clear_away() {
    let places = std::fs::read_dir(scratch()).into_iter().flatten().flatten();
    let old = places.filter(|entry| {
        let made = entry.metadata().and_then(|place| place.modified());
        let age = made.ok().and_then(|made| made.elapsed().ok());
        entry.file_name().to_string_lossy().starts_with(PLACE) && age > Some(KEPT)
    });
    old.for_each(|entry| drop(std::fs::remove_dir_all(entry.path())));
}

/// The floor: a loop in sh.
fn shells_gaps(iterations: usize) -> Vec<Duration> {
    let log = fresh_log("shell.log");
    let program = std::env::current_exe().unwrap_or_default();
    let script = format!(
        "i=0; while [ $i -lt {iterations} ]; do '{}' stamp '{}' {iterations}; i=$((i+1)); done",
        program.display(),
        log.display()
    );
    time(Command::new("sh").args(["-c", &script]));
    gaps(&log)
}

fn fresh_log(name: &str) -> std::path::PathBuf {
    let log = scratch().join(name);
    let _ = std::fs::remove_file(&log);
    log
}

fn gaps(log: &Path) -> Vec<Duration> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let stamps: Vec<(u64, u64)> = text
        .lines()
        .filter_map(|line| {
            let (began, ended) = line.split_once(' ')?;
            Some((began.parse().ok()?, ended.parse().ok()?))
        })
        .collect();
    stamps
        .windows(2)
        .map(|pair| Duration::from_nanos(pair[1].0.saturating_sub(pair[0].1)))
        .collect()
}
