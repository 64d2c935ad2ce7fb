//! F6: CPU time and wake-ups while ralph waits.

use std::process::Stdio;
use std::time::Duration;

use crate::sample::{Figure, ralph, workspace};

const SECONDS: u64 = 10;

pub(crate) fn idle() -> Vec<Figure> {
    let mut figures = measure_waiting("the agent is silent", &["silent", "20"], "plain");
    figures.extend(measure_waiting("a usage limit lasts", &["limited"], "claude"));
    figures
}

fn measure_waiting(why: &str, agent: &[&str], transcript: &str) -> Vec<Figure> {
    let directory = workspace("quiet", agent, transcript);
    let mut command = ralph();
    command.args(["run", "-q", "-p", "x y"]).current_dir(directory);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return Vec::new() };
    std::thread::sleep(Duration::from_secs(2));
    let before = CpuUse::of(child.id());
    std::thread::sleep(Duration::from_secs(SECONDS));
    let after = CpuUse::of(child.id());
    assert!(matches!(child.try_wait(), Ok(None)), "ralph is still waiting");
    let _ = child.kill();
    let _ = child.wait();
    let share = share(&before, &after, SECONDS);
    let wakes = (after.wakes - before.wakes) as f64 / SECONDS as f64;
    vec![
        Figure::plain(
            &format!("CPU time while {why}"),
            format!("{share:.2} %"),
            "≤ 0.1 %",
        ),
        Figure::plain(
            &format!("wake-ups per second while {why}"),
            format!("{wakes:.1}"),
            "≤ 2",
        ),
    ]
}

/// CPU time and voluntary context switches of all threads of a process.
pub(crate) struct CpuUse {
    pub(crate) time: Duration,
    pub(crate) wakes: u64,
}

impl CpuUse {
    pub(crate) fn of(pid: u32) -> Self {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
        let threads: Vec<_> = threads
            .into_iter()
            .flatten()
            .flatten()
            .map(|thread| thread.path())
            .collect();
        let read = |file: &str| -> Vec<String> {
            let files = threads.iter().map(|thread| thread.join(file));
            files
                .filter_map(|file| std::fs::read_to_string(file).ok())
                .collect()
        };
        let nanoseconds = read("schedstat")
            .iter()
            .filter_map(|line| line.split(' ').next()?.parse::<u64>().ok())
            .sum();
        let wakes = read("status")
            .iter()
            .filter_map(|status| {
                let line = status
                    .lines()
                    .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
                line.trim().parse::<u64>().ok()
            })
            .sum();
        Self {
            // schedstat omits ended threads, and stat counts in units of 10 ms. Neither is too high, so take the larger.
            time: Duration::from_nanos(nanoseconds).max(ticks(pid)),
            wakes,
        }
    }
}

fn ticks(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// The share of a core, in percent.
pub(crate) fn share(before: &CpuUse, after: &CpuUse, seconds: u64) -> f64 {
    after.time.saturating_sub(before.time).as_secs_f64() / seconds as f64 * 100.0
}
