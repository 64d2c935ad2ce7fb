//! Whatever ends the child, nothing that it started is left.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use ralph::event::ProcessEnd;
use ralph::process::{Child, Supervisors};
use rustix::process::{Pid, Signal, kill_process};

use super::stage::{DEADLINE, PROMPTLY, PTY, Stage, is_alive, spec_on, supervisors, wait_until};

/// One of each kind.
pub(super) const LEFTOVERS: &str = "fork-and-hold-stdout 3600\nfork-setsid 3600\ndouble-fork 3600\n";
const PROCESSES: usize = 4;

#[test]
fn leftovers_of_a_normal_exit_are_swept_and_delay_nothing() {
    for transport in [ralph::process::Transport::Pipe, PTY] {
        let stage = Stage::playing(&format!("{LEFTOVERS}say done\nexit 5")).on(transport);
        let running = stage.spawn();
        running.wait_for("done");
        let since = Instant::now();
        let finished = running.finish();
        assert!(since.elapsed() < PROMPTLY, "{:?}", since.elapsed());
        assert_eq!(finished.ended.end, ProcessEnd::Exited { code: 5 });
        assert!(finished.ended.stdout_complete);
        assert_eq!(stage.pids().len(), PROCESSES);
        stage.assert_all_are_gone();
        // On a PTY the kernel hangs up on the first of them, which may then be gone before it is counted.
        assert!((2..=3).contains(&finished.ended.swept), "{:?}", finished.ended);
    }
}

/// The test opens the child's stdout for itself, and so holds it as no process of the tree could.
#[test]
fn a_stranger_that_holds_stdout_delays_the_end_only_briefly() {
    for stranger_talks in [false, true] {
        let stage = Stage::playing("say ready\nwait-for go\nsay last words");
        let running = stage.spawn();
        running.wait_for("ready");
        let path = format!("/proc/{}/fd/1", running.child.pid());
        let mut stdout = fs::OpenOptions::new().write(true).open(path).unwrap();
        let talk = std::thread::spawn(move || {
            while stranger_talks && stdout.write_all(&[b'.'; 4096]).is_ok() {}
            stdout
        });
        fs::write(stage.path("go"), "").unwrap();
        let finished = running.finish();
        assert_eq!(finished.ended.end, ProcessEnd::Exited { code: 0 });
        assert!(!finished.ended.stdout_complete);
        assert!(String::from_utf8_lossy(&finished.stdout).contains("last words\n"));
        // Our end is closed with the child's end, which is what silences the stranger.
        drop(talk.join());
    }
}

#[test]
fn leftovers_that_ignore_sigterm_are_killed() {
    let stage = Stage::playing(&format!("ignore TERM\n{LEFTOVERS}say done"));
    let running = stage.spawn();
    running.wait_for("done");
    let since = Instant::now();
    let finished = running.finish();
    assert!(since.elapsed() < PROMPTLY, "{:?}", since.elapsed());
    assert_eq!(finished.ended.swept, 3);
    stage.assert_all_are_gone();
}

#[test]
fn stop_ends_the_whole_tree() {
    let stage = Stage::playing(&format!("{LEFTOVERS}say ready\nhang"));
    let running = stage.spawn();
    running.wait_for("ready");
    running.child.stop(DEADLINE);
    running.child.stop(DEADLINE);
    let finished = running.finish();
    assert_eq!(finished.ended.end, ProcessEnd::Signaled { signal: 15 });
    stage.assert_all_are_gone();
}

#[test]
fn a_child_that_ignores_sigterm_is_killed_after_the_grace() {
    let stage = Stage::playing(&format!("ignore TERM\n{LEFTOVERS}say ready\nhang"));
    let running = stage.spawn();
    running.wait_for("ready");
    let since = Instant::now();
    running.child.stop(Duration::from_millis(300));
    let finished = running.finish();
    assert!(since.elapsed() >= Duration::from_millis(300));
    assert_eq!(finished.ended.end, ProcessEnd::Signaled { signal: 9 });
    stage.assert_all_are_gone();
}

#[test]
fn a_second_stop_shortens_the_grace_and_kill_ends_it() {
    for hasten in [
        |child: &Child| child.stop(Duration::ZERO),
        |child: &Child| child.kill(),
    ] {
        let stage = Stage::playing("ignore TERM\nsay ready\nhang");
        let running = stage.spawn();
        running.wait_for("ready");
        running.child.stop(Duration::from_secs(3600));
        hasten(&running.child);
        assert_eq!(running.finish().ended.end, ProcessEnd::Signaled { signal: 9 });
    }
}

#[test]
fn a_stopped_child_can_be_stopped() {
    let stage = Stage::playing("say ready\nstop-self\nhang");
    let running = stage.spawn();
    running.wait_for("ready");
    wait_until("SIGSTOP", DEADLINE, || {
        fs::read_to_string(format!("/proc/{}/stat", running.child.pid()))
            .is_ok_and(|stat| stat.contains(") T "))
    });
    running.child.stop(DEADLINE);
    assert_eq!(running.finish().ended.end, ProcessEnd::Signaled { signal: 15 });
}

#[test]
fn kill_ends_the_whole_tree_at_once() {
    let stage = Stage::playing(&format!("ignore TERM\n{LEFTOVERS}say ready\nhang")).on(PTY);
    let running = stage.spawn();
    running.wait_for("ready");
    running.child.kill();
    assert_eq!(running.finish().ended.end, ProcessEnd::Signaled { signal: 9 });
    stage.assert_all_are_gone();
}

#[test]
fn dropping_a_child_kills_its_tree() {
    let stage = Stage::playing(&format!("ignore TERM\n{LEFTOVERS}hang"));
    let running = stage.spawn();
    stage.wait_for_processes(PROCESSES);
    drop(running);
    wait_until("the end of the tree", PROMPTLY, || {
        !stage.pids().into_iter().any(is_alive)
    });
}

#[test]
fn the_exit_status_is_known_even_when_the_keeper_is_signalled() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let stage = Stage::playing(&format!("{LEFTOVERS}say ready\nhang"));
        let running = stage.spawn();
        running.wait_for("ready");
        kill_process(keeper_of(&running.child), signal).unwrap();
        assert_eq!(running.finish().ended.end, ProcessEnd::Signaled { signal: 15 });
        stage.assert_all_are_gone();
    }
}

#[test]
fn a_keeper_does_not_mind_a_signal_that_is_meant_for_ralph() {
    let stage = Stage::playing("say ready\nwait-for go\nexit 4");
    let running = stage.spawn();
    running.wait_for("ready");
    kill_process(keeper_of(&running.child), Signal::USR1).unwrap();
    fs::write(stage.path("go"), "").unwrap();
    assert_eq!(running.finish().ended.end, ProcessEnd::Exited { code: 4 });
}

#[test]
fn a_killed_keeper_takes_everything_with_it() {
    let stage = Stage::playing(&format!("ignore TERM\n{LEFTOVERS}say ready\nhang"));
    let running = stage.spawn();
    running.wait_for("ready");
    let since = Instant::now();
    kill_process(keeper_of(&running.child), Signal::KILL).unwrap();
    let finished = running.finish();
    assert!(since.elapsed() < PROMPTLY, "{:?}", since.elapsed());
    assert_eq!(finished.ended.end, ProcessEnd::Signaled { signal: 9 });
    stage.assert_all_are_gone();
}

#[test]
fn a_killed_ralph_takes_everything_with_it() {
    let stage = Stage::playing(&format!("ignore TERM\n{LEFTOVERS}hang"));
    let mut ralph = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "process::tree::another_ralph",
            "--ignored",
            "--nocapture",
        ])
        .env("RALPH_TEST_STAGE", stage.path(""))
        .spawn()
        .unwrap();
    stage.wait_for_processes(PROCESSES);
    ralph.kill().unwrap();
    wait_until("the end of the tree", PROMPTLY, || {
        !stage.pids().into_iter().any(is_alive)
    });
    ralph.wait().unwrap();
}

#[test]
fn even_ralph_and_keeper_killed_together_leave_no_agent_at_work() {
    let stage = Stage::playing("ignore TERM\nhang");
    let mut ralph = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "process::tree::another_ralph",
            "--ignored",
            "--nocapture",
        ])
        .env("RALPH_TEST_STAGE", stage.path(""))
        .spawn()
        .unwrap();
    stage.wait_for_processes(1);
    let agent = stage.pids()[0];
    let supervisor = parent_of(agent);
    // A ralph that is stopped can do nothing for the orphans of its keeper.
    kill_process(Pid::from_child(&ralph), Signal::STOP).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    ralph.kill().unwrap();
    ralph.wait().unwrap();
    wait_until("the end of the agent", PROMPTLY, || !is_alive(agent));
}

/// Not a test: a process that has a child, or had one, for others to kill.
#[test]
#[ignore = "is started by another test"]
fn another_ralph() {
    if let Some(directory) = std::env::var_os("RALPH_TEST_STAGE") {
        let supervisors = supervisors();
        let _child = Child::spawn(&supervisors, &spec_on(directory.as_ref()), |_| {}).unwrap();
        std::thread::sleep(DEADLINE);
    }
}

#[test]
fn nothing_but_the_three_streams_reaches_the_child() {
    let mut stage = Stage::playing("");
    stage.spec.program = "/bin/ls".into();
    stage.spec.args = vec!["/proc/self/fd".into()];
    let finished = stage.spawn().finish();
    // The fourth is the directory that is being listed.
    assert_eq!(String::from_utf8_lossy(&finished.stdout), "0\n1\n2\n3\n");
}

#[test]
fn signals_of_the_child_are_untouched() {
    assert_no_signal_is_changed_under(&supervisors());
}

/// As under `nohup`, or a program that ignores more than that. What a keeper catches itself is among it.
#[test]
fn signals_of_the_child_are_untouched_even_if_they_were_ignored_before_ralph() {
    let stage = Stage::playing("");
    let ignoring = stage.path("ignoring");
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let script = format!("#!/bin/sh\ntrap '' HUP INT QUIT USR1 PIPE TERM CHLD TSTP\nexec {ralph} \"$@\"\n");
    fs::write(&ignoring, script).unwrap();
    fs::set_permissions(&ignoring, fs::Permissions::from_mode(0o755)).unwrap();
    assert_no_signal_is_changed_under(&Supervisors::at(ignoring));
}

fn assert_no_signal_is_changed_under(supervisor: &Supervisors) {
    let mut stage = Stage::playing("");
    stage.spec.program = "/bin/cat".into();
    stage.spec.args = vec!["/proc/self/status".into()];
    // The second child of a keeper has what the first one has.
    for _ in 0..2 {
        let finished = stage.try_spawn_with(supervisor).expect("a child").finish();
        let status = String::from_utf8_lossy(&finished.stdout).into_owned();
        // 32 and 33 belong to the C library, which lets nobody touch them.
        let ours = !(0b11_u64 << 31);
        for mask in ["SigBlk:\t", "SigIgn:\t", "SigCgt:\t"] {
            let value = status.lines().find_map(|line| line.strip_prefix(mask));
            let signals = value.and_then(|value| u64::from_str_radix(value, 16).ok());
            assert_eq!(signals.map(|signals| signals & ours), Some(0), "{mask}{value:?}");
        }
    }
}

#[test]
fn the_keeper_is_recognisable_and_holds_no_stream() {
    let stage = Stage::playing("say ready\nhang");
    let running = stage.spawn();
    running.wait_for("ready");
    let supervisor = keeper_of(&running.child).as_raw_pid();
    assert!(
        fs::read(format!("/proc/{supervisor}/cmdline"))
            .unwrap()
            .starts_with(b"ralph-keeper\0")
    );
    assert_eq!(
        fs::read_to_string(format!("/proc/{supervisor}/comm")).unwrap(),
        "agent-keeper\n"
    );
    let is_pipe = |entry: fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().starts_with("pipe:"))
    };
    assert!(
        !fs::read_dir(format!("/proc/{supervisor}/fd"))
            .unwrap()
            .flatten()
            .any(is_pipe)
    );
}

pub(super) fn keeper_of(child: &Child) -> Pid {
    parent_of(child.pid().cast_signed())
}

pub(super) fn parent_of(pid: i32) -> Pid {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a running process");
    let parent = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
    parent.and_then(Pid::from_raw).expect("a parent")
}
