//! A keeper serves one child after the other, and none of them has to do with another.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ralph::event::ProcessEnd;
use ralph::process::{ChildEvent, Supervisors};
use rustix::process::{Pid, Signal, kill_process};

use super::stage::{DEADLINE, PROMPTLY, PTY, Running, Stage, is_alive, supervisors, wait_until};
use super::tree::{LEFTOVERS, keeper_of, parent_of};

const WAITS: &str = "say ready\nwait-for go\nexit 4";

/// A child that has said that it waits for the word to go on.
fn waiting_child(stage: &Stage, supervisors: &Supervisors) -> (Running, i32) {
    let running = stage.try_spawn_with(supervisors).expect("a child");
    running.wait_for("ready");
    let its_keeper = keeper_of(&running.child).as_raw_pid();
    (running, its_keeper)
}

fn let_it_go(stage: &Stage, running: Running) {
    fs::write(stage.path("go"), "").expect("a file of the stage");
    let ended = running.finish().ended;
    assert_eq!((ended.end, ended.swept), (ProcessEnd::Exited { code: 4 }, 0));
}

/// One whole child; returns who kept it.
fn serve(supervisors: &Supervisors) -> i32 {
    let stage = Stage::playing(WAITS);
    let (running, its_keeper) = waiting_child(&stage, supervisors);
    let_it_go(&stage, running);
    its_keeper
}

#[test]
fn one_keeper_serves_child_after_child() {
    let supervisors = supervisors();
    let first = serve(&supervisors);
    let on_a_terminal = Stage::playing(WAITS).on(PTY);
    let (running, second) = waiting_child(&on_a_terminal, &supervisors);
    assert_ne!(running.child.pid().cast_signed(), first);
    let_it_go(&on_a_terminal, running);
    assert_eq!((second, serve(&supervisors)), (first, first));
    drop(supervisors);
    wait_until("the end of the keeper", PROMPTLY, || !is_alive(first));
}

#[test]
fn a_program_that_cannot_be_started_costs_no_keeper() {
    let supervisors = supervisors();
    let first = serve(&supervisors);
    let mut stage = Stage::playing("");
    stage.spec.program = "/no/such/program".into();
    assert!(stage.try_spawn_with(&supervisors).is_err());
    stage.spec.cwd = "/no/such/directory".into();
    assert!(stage.try_spawn_with(&supervisors).is_err());
    assert_eq!(serve(&supervisors), first);
}

#[test]
fn leftovers_are_swept_before_the_next_child_and_counted_once() {
    let supervisors = supervisors();
    let untidy = Stage::playing(&format!("{LEFTOVERS}{WAITS}"));
    let (running, first) = waiting_child(&untidy, &supervisors);
    fs::write(untidy.path("go"), "").unwrap();
    let ended = running.finish().ended;
    untidy.assert_all_are_gone();
    assert!((2..=3).contains(&ended.swept), "{ended:?}");
    // `serve` wants a child of which nothing had to be swept.
    assert_eq!(serve(&supervisors), first);
}

#[test]
fn two_children_at_a_time_have_two_keepers_of_whom_one_stays() {
    let supervisors = supervisors();
    let (left, right) = (Stage::playing(WAITS), Stage::playing(WAITS));
    let (left_child, one) = waiting_child(&left, &supervisors);
    let (right_child, other) = waiting_child(&right, &supervisors);
    assert_ne!(one, other);
    let_it_go(&left, left_child);
    let_it_go(&right, right_child);
    wait_until("the end of the second", PROMPTLY, || !is_alive(other));
    assert_eq!(serve(&supervisors), one);
}

#[test]
fn an_order_for_a_child_that_is_gone_does_not_reach_the_next() {
    let supervisors = supervisors();
    let stage = Stage::playing("");
    let Running {
        child: former,
        reports,
    } = stage.try_spawn_with(&supervisors).unwrap();
    while !matches!(reports.recv_timeout(DEADLINE).unwrap(), ChildEvent::Ended(_)) {}
    let next = Stage::playing(WAITS);
    let (running, _) = waiting_child(&next, &supervisors);
    former.stop(Duration::ZERO);
    former.kill();
    drop(former);
    let_it_go(&next, running);
}

/// Orders are sent without a pause until the end is known, so that many are under way when the tree is gone.
#[test]
fn an_order_that_is_under_way_when_the_child_ends_does_not_reach_the_next() {
    let supervisors = supervisors();
    let stage = Stage::playing("exit 7");
    for _ in 0..20 {
        let Running { child, reports } = stage.try_spawn_with(&supervisors).unwrap();
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
        let next = stage.try_spawn_with(&supervisors).unwrap().finish();
        assert_eq!(next.ended.end, ProcessEnd::Exited { code: 7 });
    }
}

#[test]
fn a_keeper_that_was_killed_while_it_had_no_child_is_replaced() {
    let supervisors = supervisors();
    let first = serve(&supervisors);
    kill_process(pid(first), Signal::KILL).unwrap();
    // Whether its end is noticed before the errand is sent or while it is being sent.
    let second = serve(&supervisors);
    assert_ne!(second, first);
    kill_process(pid(second), Signal::KILL).unwrap();
    wait_until("the end of the keeper", PROMPTLY, || !is_alive(second));
    assert_ne!(serve(&supervisors), second);
}

#[test]
fn a_keeper_that_is_told_to_go_while_it_has_no_child_goes() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let supervisors = supervisors();
        let first = serve(&supervisors);
        kill_process(pid(first), Signal::USR1).unwrap();
        assert_eq!(serve(&supervisors), first);
        kill_process(pid(first), signal).unwrap();
        wait_until("the end of the keeper", PROMPTLY, || !is_alive(first));
        assert_ne!(serve(&supervisors), first);
    }
}

#[test]
fn a_keeper_that_was_told_to_go_serves_no_other_child() {
    let supervisors = supervisors();
    let stage = Stage::playing("say ready\nhang");
    let (running, first) = waiting_child(&stage, &supervisors);
    kill_process(pid(first), Signal::TERM).unwrap();
    assert_eq!(running.finish().ended.end, ProcessEnd::Signaled { signal: 15 });
    wait_until("the end of the keeper", PROMPTLY, || !is_alive(first));
    assert_ne!(serve(&supervisors), first);
}

#[test]
fn a_killed_ralph_takes_a_keeper_without_a_child_with_it() {
    let stage = Stage::playing("wait-for go");
    let mut ralph = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::tree::another_ralph", "--ignored"])
        .env("RALPH_TEST_STAGE", stage.path(""))
        .spawn()
        .unwrap();
    stage.wait_for_processes(1);
    let agent = stage.pids()[0];
    let supervisors = parent_of(agent).as_raw_pid();
    fs::write(stage.path("go"), "").unwrap();
    wait_until("the end of the agent", DEADLINE, || {
        !fs::exists(format!("/proc/{agent}")).unwrap()
    });
    assert!(is_alive(supervisors));
    ralph.kill().unwrap();
    ralph.wait().unwrap();
    wait_until("the end of the keeper", PROMPTLY, || !is_alive(supervisors));
}

fn pid(number: i32) -> Pid {
    Pid::from_raw(number).expect("a pid")
}
