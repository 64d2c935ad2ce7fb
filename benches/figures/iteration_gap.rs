//! F2: the gap between two iterations.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::sample::{Figure, interleaved, median, ralph, scratch, time, workspace};

const ITERATIONS: usize = 100;
const MANY: usize = 1000;
const PREFIX: &str = "turns-";
/// How long directories of earlier measurements are kept. Deleting them right away would slow down the next measurement.
const RETENTION: Duration = Duration::from_secs(3600);
/// Prompt sizes in bytes.
const SHORT: usize = 1_000;
const LONG: usize = 1_000_000;

pub(crate) fn gap_between_iterations() -> Vec<Figure> {
    let (ours, baseline) = interleaved(
        5,
        || median(ralph_gaps(ITERATIONS, SHORT, "")),
        || median(shell_gaps(ITERATIONS)),
    );
    let (with, without) = interleaved(
        5,
        || median(ralph_gaps(ITERATIONS, SHORT, "")),
        || median(ralph_gaps(ITERATIONS, SHORT, "snapshots: off\n")),
    );
    let (long, short) = interleaved(
        3,
        || median(ralph_gaps(ITERATIONS, LONG, "")),
        || median(ralph_gaps(ITERATIONS, SHORT, "")),
    );
    let before = cpu_time_of_children();
    let gaps = ralph_gaps(MANY, SHORT, "");
    let ralph_cpu = cpu_time_of_children() - before;
    let before = cpu_time_of_children();
    shell_gaps(MANY);
    let shell_cpu = cpu_time_of_children() - before;
    remove_old_directories();
    let each = ralph_cpu.saturating_sub(shell_cpu) / u32::try_from(MANY).unwrap_or(u32::MAX);
    let (first, last) = (
        median(gaps[..100].to_vec()),
        median(gaps[gaps.len() - 100..].to_vec()),
    );
    vec![
        Figure::times(
            "gap from agent's end to next agent's start",
            ours,
            baseline,
            "≤ 2.5×",
        ),
        Figure::times("the same, against one without snapshots", with, without, ""),
        Figure::times(
            "the same, last 100 of 1,000 against the first 100",
            last,
            first,
            "flat",
        ),
        Figure::times("the same, a prompt of 1 MB against one of 1 KB", long, short, ""),
        Figure::plain(
            "CPU time per iteration, minus that of a loop in sh",
            format!("{:.2} ms", each.as_secs_f64() * 1e3),
            "≤ 4 ms",
        ),
    ]
}

/// The CPU time of all children that have been waited for, with a resolution of 10 ms.
fn cpu_time_of_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = after_name.split(' ').skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Each measurement uses a new directory. Some file systems check every recently freed inode before they allocate one, so
/// deleting an earlier directory would slow down the measured run.
fn ralph_gaps(iterations: usize, prompt: usize, config: &str) -> Vec<Duration> {
    static DIRECTORIES: AtomicUsize = AtomicUsize::new(0);
    let log = fresh_log("ralph.log");
    let directory = workspace(
        &format!(
            "{PREFIX}{}-{}",
            std::process::id(),
            DIRECTORIES.fetch_add(1, Ordering::Relaxed)
        ),
        &["stamp", &log.display().to_string(), &iterations.to_string()],
        "plain",
    );
    let _ = std::fs::write(directory.join("PROMPT.md"), "make it so\n".repeat(prompt / 11));
    if let Ok(mut file) = std::fs::File::options()
        .append(true)
        .open(directory.join("ralph.yml"))
    {
        let _ = file.write_all(config.as_bytes());
    }
    time(ralph().args(["run", "-q"]).current_dir(&directory));
    gaps(&log)
}

/// Removes the directories of measurements that ended long ago.
fn remove_old_directories() {
    let directories = std::fs::read_dir(scratch()).into_iter().flatten().flatten();
    let old = directories.filter(|entry| {
        let made = entry.metadata().and_then(|metadata| metadata.modified());
        let age = made.ok().and_then(|made| made.elapsed().ok());
        entry.file_name().to_string_lossy().starts_with(PREFIX) && age > Some(RETENTION)
    });
    old.for_each(|entry| drop(std::fs::remove_dir_all(entry.path())));
}

/// The baseline: a loop in sh.
fn shell_gaps(iterations: usize) -> Vec<Duration> {
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
            let (started, ended) = line.split_once(' ')?;
            Some((started.parse().ok()?, ended.parse().ok()?))
        })
        .collect();
    stamps
        .windows(2)
        .map(|pair| Duration::from_nanos(pair[1].0.saturating_sub(pair[0].1)))
        .collect()
}
