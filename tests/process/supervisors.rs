//! Tests of supervisor reuse: a supervisor runs one child after the other, and no child affects the next.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ralph::event::ProcessEnd;
use ralph::process::{ChildEvent, Supervisors};
use rustix::process::{Pid, Signal, kill_process};

use super::helpers::{ChildFixture, DEADLINE, PROMPTLY, PTY, Running, is_alive, supervisors, wait_until};
use super::tree::{LEFTOVERS, parent_of, supervisor_of};

const WAITS: &str = "say ready\nwait-for go\nexit 4";

/// Starts a child that waits for the file `go`. Returns the pid of its supervisor too.
fn waiting_child(fixture: &ChildFixture, supervisors: &Supervisors) -> (Running, i32) {
    let running = fixture.try_spawn_with(supervisors).expect("a child");
    running.wait_for("ready");
    let supervisor = supervisor_of(&running.child).as_raw_pid();
    (running, supervisor)
}

fn release(fixture: &ChildFixture, running: Running) {
    fs::write(fixture.path("go"), "").expect("a file of the fixture");
    let ended = running.finish().ended;
    assert_eq!((ended.end, ended.swept), (ProcessEnd::Exited { code: 4 }, 0));
}

/// Runs one child to its exit; returns the pid of its supervisor.
fn run_one_child(supervisors: &Supervisors) -> i32 {
    let fixture = ChildFixture::with_script(WAITS);
    let (running, supervisor) = waiting_child(&fixture, supervisors);
    release(&fixture, running);
    supervisor
}

#[test]
fn one_supervisor_runs_several_children_in_turn() {
    let supervisors = supervisors();
    let first = run_one_child(&supervisors);
    let on_terminal = ChildFixture::with_script(WAITS).with_transport(PTY);
    let (running, second) = waiting_child(&on_terminal, &supervisors);
    assert_ne!(running.child.pid().cast_signed(), first);
    release(&on_terminal, running);
    assert_eq!((second, run_one_child(&supervisors)), (first, first));
    drop(supervisors);
    wait_until("the exit of the supervisor", PROMPTLY, || !is_alive(first));
}

#[test]
fn a_program_that_cannot_be_started_does_not_end_the_supervisor() {
    let supervisors = supervisors();
    let first = run_one_child(&supervisors);
    let mut fixture = ChildFixture::with_script("");
    fixture.spec.program = "/no/such/program".into();
    assert!(fixture.try_spawn_with(&supervisors).is_err());
    fixture.spec.cwd = "/no/such/directory".into();
    assert!(fixture.try_spawn_with(&supervisors).is_err());
    assert_eq!(run_one_child(&supervisors), first);
}

#[test]
fn leftovers_are_swept_before_the_next_child_and_counted_once() {
    let supervisors = supervisors();
    let with_leftovers = ChildFixture::with_script(&format!("{LEFTOVERS}{WAITS}"));
    let (running, first) = waiting_child(&with_leftovers, &supervisors);
    fs::write(with_leftovers.path("go"), "").unwrap();
    let ended = running.finish().ended;
    with_leftovers.assert_no_process_is_left();
    assert!((2..=3).contains(&ended.swept), "{ended:?}");
    // `run_one_child` asserts that nothing was swept after its child.
    assert_eq!(run_one_child(&supervisors), first);
}

#[test]
fn two_concurrent_children_have_two_supervisors_and_one_is_kept() {
    let supervisors = supervisors();
    let (left, right) = (ChildFixture::with_script(WAITS), ChildFixture::with_script(WAITS));
    let (left_child, one) = waiting_child(&left, &supervisors);
    let (right_child, other) = waiting_child(&right, &supervisors);
    assert_ne!(one, other);
    release(&left, left_child);
    release(&right, right_child);
    wait_until("the exit of the second supervisor", PROMPTLY, || !is_alive(other));
    assert_eq!(run_one_child(&supervisors), one);
}

#[test]
fn a_command_for_an_exited_child_does_not_reach_the_next_child() {
    let supervisors = supervisors();
    let fixture = ChildFixture::with_script("");
    let Running {
        child: former,
        reports,
    } = fixture.try_spawn_with(&supervisors).unwrap();
    while !matches!(reports.recv_timeout(DEADLINE).unwrap(), ChildEvent::Ended(_)) {}
    let next = ChildFixture::with_script(WAITS);
    let (running, _) = waiting_child(&next, &supervisors);
    former.stop(Duration::ZERO);
    former.kill();
    drop(former);
    release(&next, running);
}

/// Commands are sent in a loop until the exit is known, so that many are in flight when the process tree ends.
#[test]
fn a_command_in_flight_when_the_child_exits_does_not_reach_the_next_child() {
    let supervisors = supervisors();
    let fixture = ChildFixture::with_script("exit 7");
    for _ in 0..20 {
        let Running { child, reports } = fixture.try_spawn_with(&supervisors).unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    child.kill();
                }
            });
            let ended = loop {
                match reports.recv_timeout(DEADLINE) {
                    Ok(ChildEvent::Output { .. }) => {}
                    other => break other,
                }
            };
            over.store(true, Ordering::Relaxed);
            assert!(matches!(ended, Ok(ChildEvent::Ended(_))), "{ended:?}");
        });
        let next = fixture.try_spawn_with(&supervisors).unwrap().finish();
        assert_eq!(next.ended.end, ProcessEnd::Exited { code: 7 });
    }
}

#[test]
fn a_killed_idle_supervisor_is_replaced() {
    let supervisors = supervisors();
    let first = run_one_child(&supervisors);
    kill_process(pid(first), Signal::KILL).unwrap();
    // The exit is noticed before the spawn request is sent or while it is being sent; both must work.
    let second = run_one_child(&supervisors);
    assert_ne!(second, first);
    kill_process(pid(second), Signal::KILL).unwrap();
    wait_until("the exit of the supervisor", PROMPTLY, || !is_alive(second));
    assert_ne!(run_one_child(&supervisors), second);
}

#[test]
fn a_signaled_idle_supervisor_exits() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let supervisors = supervisors();
        let first = run_one_child(&supervisors);
        kill_process(pid(first), Signal::USR1).unwrap();
        assert_eq!(run_one_child(&supervisors), first);
        kill_process(pid(first), signal).unwrap();
        wait_until("the exit of the supervisor", PROMPTLY, || !is_alive(first));
        assert_ne!(run_one_child(&supervisors), first);
    }
}

#[test]
fn a_signaled_supervisor_runs_no_further_child() {
    let supervisors = supervisors();
    let fixture = ChildFixture::with_script("say ready\nhang");
    let (running, first) = waiting_child(&fixture, &supervisors);
    kill_process(pid(first), Signal::TERM).unwrap();
    assert_eq!(running.finish().ended.end, ProcessEnd::Signaled { signal: 15 });
    wait_until("the exit of the supervisor", PROMPTLY, || !is_alive(first));
    assert_ne!(run_one_child(&supervisors), first);
}

#[test]
fn an_idle_supervisor_exits_when_ralph_is_killed() {
    let fixture = ChildFixture::with_script("wait-for go");
    let mut ralph = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "process::tree::helper_process_with_a_child",
            "--ignored",
        ])
        .env("RALPH_TEST_FIXTURE", fixture.path(""))
        .spawn()
        .unwrap();
    fixture.wait_for_processes(1);
    let agent = fixture.pids()[0];
    let supervisor = parent_of(agent).as_raw_pid();
    fs::write(fixture.path("go"), "").unwrap();
    wait_until("the exit of the agent", DEADLINE, || {
        !fs::exists(format!("/proc/{agent}")).unwrap()
    });
    assert!(is_alive(supervisor));
    ralph.kill().unwrap();
    ralph.wait().unwrap();
    wait_until("the exit of the supervisor", PROMPTLY, || !is_alive(supervisor));
}

fn pid(number: i32) -> Pid {
    Pid::from_raw(number).expect("a pid")
}
