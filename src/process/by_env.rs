//! Finds and stops processes by a variable in their environment: the leftovers of a run whose ralph and supervisor were
//! killed together.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid};

use super::tree::{send, table};

/// Poll interval while waiting for the processes to exit.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Stops every process whose environment has this variable with this value, except this one and its ancestors: SIGTERM,
/// then SIGKILL after the grace. Returns their number. Supported only on Linux; elsewhere there are none.
pub fn stop_by_env(name: &str, value: &str, grace: Duration) -> usize {
    let found = find(name, value);
    if found.is_empty() {
        return 0;
    }
    send(&found, Signal::TERM);
    send(&found, Signal::CONT);
    let deadline = Instant::now() + grace;
    while Instant::now() < deadline && !find(name, value).is_empty() {
        std::thread::sleep(POLL_INTERVAL);
    }
    // Repeat, because they may have started others in the meantime.
    let deadline = Instant::now() + grace;
    loop {
        let left = find(name, value);
        if left.is_empty() || Instant::now() > deadline {
            return found.len();
        }
        send(&left, Signal::KILL);
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Finds the running processes with the variable, except this one and its ancestors.
#[cfg(target_os = "linux")]
fn find(name: &str, value: &str) -> Vec<Pid> {
    let table = table();
    let parent = |pid: Pid| {
        table
            .iter()
            .find(|entry| entry.pid == pid)
            .and_then(|entry| entry.parent)
    };
    let own_pids: Vec<Pid> = std::iter::successors(Some(getpid()), |pid| parent(*pid))
        .take(table.len() + 1)
        .collect();
    table
        .iter()
        .filter(|entry| !entry.dead && !own_pids.contains(&entry.pid) && has_variable(entry.pid, name, value))
        .map(|entry| entry.pid)
        .collect()
}

/// Whether a process was started with this variable.
#[cfg(target_os = "linux")]
pub(super) fn has_variable(pid: Pid, name: &str, value: &str) -> bool {
    let wanted = format!("{name}={value}");
    let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_pid()));
    environment.is_ok_and(|text| {
        text.split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes())
    })
}

#[cfg(not(target_os = "linux"))]
fn find(_: &str, _: &str) -> Vec<Pid> {
    Vec::new()
}
