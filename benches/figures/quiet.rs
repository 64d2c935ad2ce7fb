//! F6: what waiting costs.

use std::process::Stdio;
use std::time::Duration;

use crate::sample::{Figure, ralph, workspace};

const SECONDS: u64 = 10;

pub(crate) fn idle() -> Vec<Figure> {
    let mut figures = waiting("the agent is silent", &["silent", "20"], "plain");
    figures.extend(waiting("a usage limit lasts", &["limited"], "claude"));
    figures
}

fn waiting(why: &str, agent: &[&str], transcript: &str) -> Vec<Figure> {
    let place = workspace("quiet", agent, transcript);
    let mut command = ralph();
    command.args(["run", "-q", "-p", "x y"]).current_dir(place);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return Vec::new() };
    std::thread::sleep(Duration::from_secs(2));
    let before = Spent::of(child.id());
    std::thread::sleep(Duration::from_secs(SECONDS));
    let after = Spent::of(child.id());
    assert!(matches!(child.try_wait(), Ok(None)), "it was to wait");
    let _ = child.kill();
    let _ = child.wait();
    let share = (after.ticks - before.ticks) as f64 / (SECONDS as f64 * 100.0) * 100.0;
    let wakes = (after.wakes - before.wakes) as f64 / SECONDS as f64;
    vec![
        Figure::plain(
            &format!("processor time while {why}"),
            format!("{share:.2} %"),
            "≤ 0.1 %",
        ),
        Figure::plain(
            &format!("wake-ups a second while {why}"),
            format!("{wakes:.1}"),
            "≤ 2",
        ),
    ]
}

/// Processor time in hundredths of a second, and how often each thread gave the processor up.
pub(crate) struct Spent {
    pub(crate) ticks: u64,
    pub(crate) wakes: u64,
}

impl Spent {
    pub(crate) fn of(pid: u32) -> Self {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let field = |index: usize| {
            fields
                .get(index)
                .and_then(|field| field.parse::<u64>().ok())
                .unwrap_or(0)
        };
        let threads = std::fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        let wakes = threads
            .filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok())
            .filter_map(|status| {
                let line = status
                    .lines()
                    .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
                line.trim().parse::<u64>().ok()
            })
            .sum();
        Self {
            ticks: field(11) + field(12),
            wakes,
        }
    }
}
