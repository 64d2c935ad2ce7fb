//! Tests that no process of the tree survives, whatever ends the child.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use ralph::event::ProcessEnd;
use ralph::process::{Child, Supervisors};
use rustix::process::{Pid, Signal, kill_process};

use super::helpers::{
    ChildFixture, DEADLINE, PROMPTLY, PTY, fake_agent_spec, is_alive, supervisors, wait_until,
};

/// One leftover of each kind.
pub(super) const LEFTOVERS: &str = "fork-and-hold-stdout 3600\nfork-setsid 3600\ndouble-fork 3600\n";
const PROCESSES: usize = 4;

#[test]
fn leftovers_of_a_normal_exit_are_swept_without_delay() {
    for transport in [ralph::process::Transport::Pipe, PTY] {
        let fixture =
            ChildFixture::with_script(&format!("{LEFTOVERS}say done\nexit 5")).with_transport(transport);
        let running = fixture.spawn();
        running.wait_for("done");
        let since = Instant::now();
        let finished = running.finish();
        assert!(since.elapsed() < PROMPTLY, "{:?}", since.elapsed());
        assert_eq!(finished.ended.end, ProcessEnd::Exited { code: 5 });
        assert!(finished.ended.stdout_complete);
        assert_eq!(fixture.pids().len(), PROCESSES);
        fixture.assert_no_process_is_left();
        // On a PTY the kernel sends SIGHUP to the first leftover, which may exit before it is counted.
        assert!((2..=3).contains(&finished.ended.swept), "{:?}", finished.ended);
    }
}

/// The test itself opens the child's stdout, so the holder is not part of the child's process tree.
#[test]
fn a_foreign_process_that_holds_stdout_delays_the_exit_only_briefly() {
    for holder_writes in [false, true] {
        let fixture = ChildFixture::with_script("say ready\nwait-for go\nsay last words");
        let running = fixture.spawn();
        running.wait_for("ready");
        let path = format!("/proc/{}/fd/1", running.child.pid());
        let mut stdout = fs::OpenOptions::new().write(true).open(path).unwrap();
        let writer = std::thread::spawn(move || {
            while holder_writes && stdout.write_all(&[b'.'; 4096]).is_ok() {}
            stdout
        });
        fs::write(fixture.path("go"), "").unwrap();
        let finished = running.finish();
        assert_eq!(finished.ended.end, ProcessEnd::Exited { code: 0 });
        assert!(!finished.ended.stdout_complete);
        assert!(String::from_utf8_lossy(&finished.stdout).contains("last words\n"));
        // ralph closes its end of the pipe when the child has exited, which ends the writer.
        drop(writer.join());
    }
}

#[test]
fn leftovers_that_ignore_sigterm_are_killed() {
    let fixture = ChildFixture::with_script(&format!("ignore TERM\n{LEFTOVERS}say done"));
    let running = fixture.spawn();
    running.wait_for("done");
    let since = Instant::now();
    let finished = running.finish();
    assert!(since.elapsed() < PROMPTLY, "{:?}", since.elapsed());
    assert_eq!(finished.ended.swept, 3);
    fixture.assert_no_process_is_left();
}

#[test]
fn stop_ends_the_whole_tree() {
    let fixture = ChildFixture::with_script(&format!("{LEFTOVERS}say ready\nhang"));
    let running = fixture.spawn();
    running.wait_for("ready");
    running.child.stop(DEADLINE);
    running.child.stop(DEADLINE);
    let finished = running.finish();
    assert_eq!(finished.ended.end, ProcessEnd::Signaled { signal: 15 });
    fixture.assert_no_process_is_left();
}

#[test]
fn a_child_that_ignores_sigterm_is_killed_after_the_grace() {
    let fixture = ChildFixture::with_script(&format!("ignore TERM\n{LEFTOVERS}say ready\nhang"));
    let running = fixture.spawn();
    running.wait_for("ready");
    let since = Instant::now();
    running.child.stop(Duration::from_millis(300));
    let finished = running.finish();
    assert!(since.elapsed() >= Duration::from_millis(300));
    assert_eq!(finished.ended.end, ProcessEnd::Signaled { signal: 9 });
    fixture.assert_no_process_is_left();
}

#[test]
fn a_second_stop_shortens_the_grace_and_kill_ends_it() {
    for end in [
        |child: &Child| child.stop(Duration::ZERO),
        |child: &Child| child.kill(),
    ] {
        let fixture = ChildFixture::with_script("ignore TERM\nsay ready\nhang");
        let running = fixture.spawn();
        running.wait_for("ready");
        running.child.stop(Duration::from_secs(3600));
        end(&running.child);
        assert_eq!(running.finish().ended.end, ProcessEnd::Signaled { signal: 9 });
    }
}

#[test]
fn a_stopped_child_can_be_stopped() {
    let fixture = ChildFixture::with_script("say ready\nstop-self\nhang");
    let running = fixture.spawn();
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
    let fixture =
        ChildFixture::with_script(&format!("ignore TERM\n{LEFTOVERS}say ready\nhang")).with_transport(PTY);
    let running = fixture.spawn();
    running.wait_for("ready");
    running.child.kill();
    assert_eq!(running.finish().ended.end, ProcessEnd::Signaled { signal: 9 });
    fixture.assert_no_process_is_left();
}

#[test]
fn dropping_a_child_kills_its_tree() {
    let fixture = ChildFixture::with_script(&format!("ignore TERM\n{LEFTOVERS}hang"));
    let running = fixture.spawn();
    fixture.wait_for_processes(PROCESSES);
    drop(running);
    wait_until("the exit of the process tree", PROMPTLY, || {
        !fixture.pids().into_iter().any(is_alive)
    });
}

#[test]
fn the_exit_status_is_known_even_when_the_supervisor_is_signaled() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let fixture = ChildFixture::with_script(&format!("{LEFTOVERS}say ready\nhang"));
        let running = fixture.spawn();
        running.wait_for("ready");
        kill_process(supervisor_of(&running.child), signal).unwrap();
        assert_eq!(running.finish().ended.end, ProcessEnd::Signaled { signal: 15 });
        fixture.assert_no_process_is_left();
    }
}

#[test]
fn a_supervisor_survives_sigusr1() {
    let fixture = ChildFixture::with_script("say ready\nwait-for go\nexit 4");
    let running = fixture.spawn();
    running.wait_for("ready");
    kill_process(supervisor_of(&running.child), Signal::USR1).unwrap();
    fs::write(fixture.path("go"), "").unwrap();
    assert_eq!(running.finish().ended.end, ProcessEnd::Exited { code: 4 });
}

#[test]
fn the_tree_ends_when_the_supervisor_is_killed() {
    let fixture = ChildFixture::with_script(&format!("ignore TERM\n{LEFTOVERS}say ready\nhang"));
    let running = fixture.spawn();
    running.wait_for("ready");
    let since = Instant::now();
    kill_process(supervisor_of(&running.child), Signal::KILL).unwrap();
    let finished = running.finish();
    assert!(since.elapsed() < PROMPTLY, "{:?}", since.elapsed());
    assert_eq!(finished.ended.end, ProcessEnd::Signaled { signal: 9 });
    fixture.assert_no_process_is_left();
}

#[test]
fn the_tree_ends_when_ralph_is_killed() {
    let fixture = ChildFixture::with_script(&format!("ignore TERM\n{LEFTOVERS}hang"));
    let mut ralph = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "process::tree::helper_process_with_a_child",
            "--ignored",
            "--nocapture",
        ])
        .env("RALPH_TEST_FIXTURE", fixture.path(""))
        .spawn()
        .unwrap();
    fixture.wait_for_processes(PROCESSES);
    ralph.kill().unwrap();
    wait_until("the exit of the process tree", PROMPTLY, || {
        !fixture.pids().into_iter().any(is_alive)
    });
    ralph.wait().unwrap();
}

#[test]
fn no_agent_survives_when_ralph_and_the_supervisor_are_killed_together() {
    let fixture = ChildFixture::with_script("ignore TERM\nhang");
    let mut ralph = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "process::tree::helper_process_with_a_child",
            "--ignored",
            "--nocapture",
        ])
        .env("RALPH_TEST_FIXTURE", fixture.path(""))
        .spawn()
        .unwrap();
    fixture.wait_for_processes(1);
    let agent = fixture.pids()[0];
    let supervisor = parent_of(agent);
    // A stopped ralph cannot clean up after its supervisor.
    kill_process(Pid::from_child(&ralph), Signal::STOP).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    ralph.kill().unwrap();
    ralph.wait().unwrap();
    wait_until("the exit of the agent", PROMPTLY, || !is_alive(agent));
}

/// Not a test: other tests start it as a process with a child, and kill it.
#[test]
#[ignore = "a helper process that other tests start"]
fn helper_process_with_a_child() {
    if let Some(directory) = std::env::var_os("RALPH_TEST_FIXTURE") {
        let supervisors = supervisors();
        let _child = Child::spawn(&supervisors, &fake_agent_spec(directory.as_ref()), |_| {}).unwrap();
        std::thread::sleep(DEADLINE);
    }
}

#[test]
fn nothing_but_the_three_streams_reaches_the_child() {
    let mut fixture = ChildFixture::with_script("");
    fixture.spec.program = "/bin/ls".into();
    fixture.spec.args = vec!["/proc/self/fd".into()];
    let finished = fixture.spawn().finish();
    // Descriptor 3 is the directory that `ls` lists.
    assert_eq!(String::from_utf8_lossy(&finished.stdout), "0\n1\n2\n3\n");
}

#[test]
fn the_child_has_default_signals() {
    assert_default_signals_under(&supervisors());
}

/// As under `nohup`. The signals include those that the supervisor itself handles.
#[test]
fn the_child_has_default_signals_even_if_ralph_was_started_with_ignored_ones() {
    let fixture = ChildFixture::with_script("");
    let ignoring = fixture.path("ignoring");
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let script = format!("#!/bin/sh\ntrap '' HUP INT QUIT USR1 PIPE TERM CHLD TSTP\nexec {ralph} \"$@\"\n");
    fs::write(&ignoring, script).unwrap();
    fs::set_permissions(&ignoring, fs::Permissions::from_mode(0o755)).unwrap();
    assert_default_signals_under(&Supervisors::at(ignoring));
}

fn assert_default_signals_under(supervisor: &Supervisors) {
    let mut fixture = ChildFixture::with_script("");
    fixture.spec.program = "/bin/cat".into();
    fixture.spec.args = vec!["/proc/self/status".into()];
    // The second child of a supervisor must have the same signals as the first.
    for _ in 0..2 {
        let finished = fixture.try_spawn_with(supervisor).expect("a child").finish();
        let status = String::from_utf8_lossy(&finished.stdout).into_owned();
        // 32 and 33 are reserved by the C library.
        let ours = !(0b11_u64 << 31);
        for mask in ["SigBlk:\t", "SigIgn:\t", "SigCgt:\t"] {
            let value = status.lines().find_map(|line| line.strip_prefix(mask));
            let signals = value.and_then(|value| u64::from_str_radix(value, 16).ok());
            assert_eq!(signals.map(|signals| signals & ours), Some(0), "{mask}{value:?}");
        }
    }
}

#[test]
fn the_supervisor_has_a_recognizable_name_and_holds_no_stream() {
    let fixture = ChildFixture::with_script("say ready\nhang");
    let running = fixture.spawn();
    running.wait_for("ready");
    let supervisor = supervisor_of(&running.child).as_raw_pid();
    let command_line = fs::read_to_string(format!("/proc/{supervisor}/cmdline")).unwrap();
    assert!(command_line.starts_with("agent-supervisor\0"), "{command_line}");
    // `pkill -f ralph` must not match it.
    assert!(!command_line.contains("ralph"), "{command_line}");
    assert_eq!(
        fs::read_to_string(format!("/proc/{supervisor}/comm")).unwrap(),
        "supervisor\n"
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

pub(super) fn supervisor_of(child: &Child) -> Pid {
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
