//! Processes that carry a mark in their environment, wherever they stand in the process table: what a dead ralph may
//! have left behind, should its keeper have been killed together with it.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid};

use super::tree::{send, table};

/// How often to look whether they have gone.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Stops every process whose environment has this variable with this value, but for this one and its ancestors:
/// SIGTERM, then after the grace SIGKILL. Returns how many there were. Only on Linux can one see that.
pub fn stop_marked(name: &str, value: &str, grace: Duration) -> usize {
    let mark = format!("{name}={value}");
    let found = marked(mark.as_bytes());
    if found.is_empty() {
        return 0;
    }
    send(&found, Signal::TERM);
    send(&found, Signal::CONT);
    let deadline = Instant::now() + grace;
    while Instant::now() < deadline && !marked(mark.as_bytes()).is_empty() {
        std::thread::sleep(LOOK_AGAIN);
    }
    // They may have started others meanwhile: again until there is none, but not for ever.
    let deadline = Instant::now() + grace;
    loop {
        let left = marked(mark.as_bytes());
        if left.is_empty() || Instant::now() > deadline {
            return found.len();
        }
        send(&left, Signal::KILL);
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The living processes with the mark, without us and those that we descend from.
#[cfg(target_os = "linux")]
fn marked(mark: &[u8]) -> Vec<Pid> {
    let table = table();
    let parent = |pid: Pid| {
        table
            .iter()
            .find(|entry| entry.pid == pid)
            .and_then(|entry| entry.parent)
    };
    let ours: Vec<Pid> = std::iter::successors(Some(getpid()), |pid| parent(*pid))
        .take(table.len() + 1)
        .collect();
    let carries = |pid: Pid| {
        let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_pid()));
        environment.is_ok_and(|text| text.split(|byte| *byte == 0).any(|variable| variable == mark))
    };
    table
        .iter()
        .filter(|entry| !entry.dead && !ours.contains(&entry.pid) && carries(entry.pid))
        .map(|entry| entry.pid)
        .collect()
}

#[cfg(not(target_os = "linux"))]
fn marked(_: &[u8]) -> Vec<Pid> {
    Vec::new()
}
