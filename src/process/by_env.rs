//! Finds and stops processes by a variable in their environment: the leftovers of a run whose ralph and supervisor were
//! killed together.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid};

use super::tree::{send, table};

/// Poll interval while waiting for the processes to exit.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Stops every process whose environment has all of these variables, except this one and its ancestors: SIGTERM, then SIGKILL
/// after the grace. Without a value, any value counts. Returns their number. Supported only on Linux; elsewhere there are none.
pub fn stop_by_env(variables: &[(&str, Option<&str>)], grace: Duration) -> usize {
    let found = find(variables);
    if found.is_empty() {
        return 0;
    }
    send(&found, Signal::TERM);
    send(&found, Signal::CONT);
    let deadline = Instant::now() + grace;
    while Instant::now() < deadline && !find(variables).is_empty() {
        std::thread::sleep(POLL_INTERVAL);
    }
    // Repeat, because they may have started others in the meantime.
    let deadline = Instant::now() + grace;
    loop {
        let left = find(variables);
        if left.is_empty() || Instant::now() > deadline {
            return found.len();
        }
        send(&left, Signal::KILL);
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Finds the running processes with the variables, except this one and its ancestors.
#[cfg(target_os = "linux")]
fn find(variables: &[(&str, Option<&str>)]) -> Vec<Pid> {
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
        .filter(|entry| !entry.dead && !own_pids.contains(&entry.pid))
        .filter(|entry| {
            let environment = environment(entry.pid);
            let mut wanted = variables.iter();
            wanted.all(|(name, value)| contains(&environment, name, *value))
        })
        .map(|entry| entry.pid)
        .collect()
}

/// Whether a process was started with this variable.
#[cfg(target_os = "linux")]
pub(super) fn has_variable(pid: Pid, name: &str, value: &str) -> bool {
    contains(&environment(pid), name, Some(value))
}

/// The environment with which a process was started; empty if it cannot be read.
#[cfg(target_os = "linux")]
fn environment(pid: Pid) -> Vec<u8> {
    std::fs::read(format!("/proc/{}/environ", pid.as_raw_pid())).unwrap_or_default()
}

#[cfg(target_os = "linux")]
fn contains(environment: &[u8], name: &str, value: Option<&str>) -> bool {
    environment.split(|byte| *byte == 0).any(|variable| {
        let text = variable.strip_prefix(name.as_bytes());
        let text = text.and_then(|text| text.strip_prefix(b"="));
        text.is_some_and(|text| value.is_none_or(|value| text == value.as_bytes()))
    })
}

#[cfg(not(target_os = "linux"))]
fn find(_: &[(&str, Option<&str>)]) -> Vec<Pid> {
    Vec::new()
}
