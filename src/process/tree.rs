//! The process table, and signals to whole process trees.
//!
//! On Linux the table is `/proc`. A supervisor adopts orphans, so its descendants are all processes that its child has ever
//! started. Elsewhere `ps` prints the table, but orphans become children of init and are found only by their process group: an
//! orphan that has left the group escapes.

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Number of rounds after which a growing tree is signaled as it is.
const ROUNDS: usize = 64;
/// Number of rounds without a new process after which a table with gaps is taken for complete.
const UNCHANGED_ROUNDS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: Pid,
    /// `None` for the first process of a container, whose parent is outside.
    pub(super) parent: Option<Pid>,
    #[cfg(target_os = "linux")]
    pub(super) session: Option<Pid>,
    pub(super) dead: bool,
}

/// The descendants of `root`, or the process group of `leader` without a process table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree {
    pub(super) root: Pid,
    pub(super) leader: Pid,
}

impl Tree {
    /// The number of running processes below the root.
    pub(super) fn size(self) -> usize {
        descendants(&table(), &[self.root]).len()
    }

    /// Sends SIGTERM to all processes, and SIGCONT so that stopped ones receive it.
    pub(super) fn terminate(self) -> Vec<Pid> {
        self.signal_until_all_have_it(&[Signal::TERM, Signal::CONT])
    }

    /// Sends SIGKILL to all processes. Stops them first, so that they cannot start others in the meantime.
    pub(super) fn kill(self) -> Vec<Pid> {
        let stopped = self.signal_until_all_have_it(&[Signal::STOP]);
        send(&stopped, Signal::KILL);
        if stopped.is_empty() {
            let _ = kill_process_group(self.leader, Signal::KILL);
        }
        stopped
    }

    /// Kills orphans that are children of init, where the supervisor does not adopt them.
    pub(super) fn kill_escaped(self) {
        #[cfg(not(target_os = "linux"))]
        let _ = kill_process_group(self.leader, Signal::KILL);
    }

    /// Signals every descendant once, and repeats until there are no new ones.
    fn signal_until_all_have_it(self, signals: &[Signal]) -> Vec<Pid> {
        let mut done: Vec<Pid> = Vec::new();
        let mut known = BTreeSet::new();
        let mut unchanged = 0;
        for _ in 0..ROUNDS {
            let table = table();
            if table.is_empty() {
                for signal in signals {
                    let _ = kill_process_group(self.leader, *signal);
                }
                break;
            }
            let mut new = descendants(&table, &[self.root]);
            new.retain(|pid| known.insert(pid.as_raw_pid()));
            unchanged = if new.is_empty() { unchanged + 1 } else { 0 };
            // A table that hides the processes of other users always has gaps.
            if unchanged > 0 && (!has_gaps(&table) || unchanged == UNCHANGED_ROUNDS) {
                break;
            }
            for signal in signals {
                send(&new, *signal);
            }
            done.extend(new);
        }
        done
    }
}

/// Whether the parent of a process is not in the table. It exited while the table was read, so the process has a new parent, and may
/// belong to a tree although it was not found below its root.
fn has_gaps(table: &[Entry]) -> bool {
    let pids: BTreeSet<i32> = table.iter().map(|entry| entry.pid.as_raw_pid()).collect();
    let mut parents = table
        .iter()
        .filter(|entry| !entry.dead)
        .filter_map(|entry| entry.parent);
    parents.any(|parent| !pids.contains(&parent.as_raw_pid()))
}

/// Sends a signal. It fails for processes that have exited or belong to another user.
pub(super) fn send(pids: &[Pid], signal: Signal) {
    for pid in pids {
        let _ = kill_process(*pid, signal);
    }
}

/// The running descendants of `roots`, without the roots, parents before children.
pub(super) fn descendants(table: &[Entry], roots: &[Pid]) -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<Pid>> = BTreeMap::new();
    for entry in table.iter().filter(|entry| !entry.dead) {
        if let Some(parent) = entry.parent {
            children.entry(parent.as_raw_pid()).or_default().push(entry.pid);
        }
    }
    let mut found: Vec<Pid> = roots.to_vec();
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        // Removed, so that the search ends even if the table has a cycle.
        let below = children.remove(&parent.as_raw_pid()).unwrap_or_default();
        found.extend(below.into_iter().filter(|pid| !roots.contains(pid)));
        next += 1;
    }
    found.split_off(roots.len())
}

/// All visible processes; empty without `/proc`.
#[cfg(target_os = "linux")]
pub(super) fn table() -> Vec<Entry> {
    use std::io::Read;

    let Ok(directory) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    // The needed fields come first; a name has at most 64 bytes.
    let mut stat = [0; 256];
    let entry = |process: std::fs::DirEntry| {
        let pid: i32 = process.file_name().to_str()?.parse().ok()?;
        let mut file = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
        let length = file.read(&mut stat).ok()?;
        parse_stat(Pid::from_raw(pid)?, &stat[..length])
    };
    directory.flatten().filter_map(entry).collect()
}

/// Parses `pid (name) state ppid pgrp session …`. The name may contain any character, including `)`.
#[cfg(target_os = "linux")]
fn parse_stat(pid: Pid, stat: &[u8]) -> Option<Entry> {
    let after_name = memchr::memrchr(b')', stat)? + 1;
    let text = String::from_utf8_lossy(&stat[after_name..]);
    let mut fields = text.split_ascii_whitespace();
    // 0 for a process outside of the container, -1 for one that is just exiting.
    let known = |number: &str| Some(Pid::from_raw(number.parse::<i32>().ok()?.max(0)));
    let state = fields.next()?;
    let parent = known(fields.next()?)?;
    let session = known(fields.nth(1)?)?;
    Some(Entry {
        pid,
        parent,
        session,
        dead: matches!(state, "Z" | "X"),
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn table() -> Vec<Entry> {
    let mut ps = std::process::Command::new("ps");
    let Ok(output) = ps.args(["-A", "-o", "pid=,ppid=,stat="]).output() else {
        return Vec::new();
    };
    let entry = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let pid = Pid::from_raw(fields.next()?.parse().ok()?)?;
        let parent = Pid::from_raw(fields.next()?.parse().ok()?);
        Some(Entry {
            pid,
            parent,
            dead: fields.next()?.starts_with('Z'),
        })
    };
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(entry)
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).expect("a pid")
    }

    #[test]
    fn a_name_may_contain_parentheses_and_spaces() {
        let entry = parse_stat(pid(7), b"7 (a) Z 1 (b\xff) S 5 6 4 0 -1").unwrap();
        assert_eq!(
            entry,
            Entry {
                pid: pid(7),
                parent: Some(pid(5)),
                session: Some(pid(4)),
                dead: false
            }
        );
    }

    #[test]
    fn the_first_process_of_a_container_has_neither_parent_nor_session() {
        let entry = parse_stat(pid(1), b"1 (ralph) S 0 0 0 0 -1").unwrap();
        assert_eq!((entry.parent, entry.session), (None, None));
    }

    #[test]
    fn an_exiting_process_has_no_session() {
        let entry = parse_stat(pid(7), b"7 (a) X 0 -1 -1 0 -1").unwrap();
        assert_eq!((entry.parent, entry.session, entry.dead), (None, None, true));
    }

    #[test]
    fn a_truncated_line_is_no_process() {
        assert_eq!(parse_stat(pid(7), b"7 (a) S 5"), None);
        assert_eq!(parse_stat(pid(7), b"7 (a"), None);
    }

    #[test]
    fn descendants_of_all_generations_are_found_except_dead_ones() {
        let entry = |number, parent, dead| Entry {
            pid: pid(number),
            parent: Some(pid(parent)),
            session: None,
            dead,
        };
        let table = [
            entry(5, 4, false),
            entry(4, 2, false),
            entry(3, 2, true),
            entry(2, 1, false),
            entry(9, 1, false),
        ];
        assert_eq!(descendants(&table, &[pid(2)]), [pid(4), pid(5)]);
    }

    #[test]
    fn the_table_contains_this_process() {
        let me = rustix::process::getpid();
        assert!(table().iter().any(|entry| entry.pid == me && !entry.dead));
    }
}
