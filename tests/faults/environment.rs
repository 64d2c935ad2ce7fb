//! ralph itself in unfriendly places.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::process::stage::wait_until;
use crate::sandbox::{DEADLINE, Running, Sandbox, claude};

const SOON: Duration = Duration::from_secs(10);

fn completing() -> Sandbox {
    Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("LOOP_COMPLETE"))
}

/// The first process of a container has no parent, belongs to no session that it can see, and inherits every orphan.
#[test]
fn the_first_process_of_a_container_runs_and_ends_as_any_other() {
    let sandbox = Sandbox::new().with_agent("claude").playing(
        "default",
        &format!(
            "fork-setsid 1000\ndouble-fork 1000\n{}",
            claude::session("LOOP_COMPLETE")
        ),
    );
    let namespaces = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let possible = Command::new("/usr/bin/unshare")
        .args(namespaces)
        .arg("true")
        .stderr(Stdio::null())
        .status();
    if !possible.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no pid namespaces here");
        return;
    }
    let mut inner = sandbox.command_of("/usr/bin/unshare");
    inner
        .args(namespaces)
        .arg(env!("CARGO_BIN_EXE_ralph"))
        .args(["run", "-p", "x"]);
    Running::start(&mut inner).finish().exits_with(0);
    assert_eq!(sandbox.records("agent_ended")[0]["swept"], 2);
}

/// Under `nohup` the terminal's end is no reason to stop.
#[test]
fn an_ignored_hangup_stays_ignored() {
    let sandbox = Sandbox::new().with_agent("claude").playing(
        "default",
        &format!("wait-for go\n{}", claude::session("LOOP_COMPLETE")),
    );
    let mut command = sandbox.command_of("/bin/sh");
    command.arg("-c").arg(format!(
        "trap '' HUP; exec {} run -p x",
        env!("CARGO_BIN_EXE_ralph")
    ));
    let running = Running::start(&mut command);
    sandbox.wait_for_processes(1);
    running.signal(Signal::HUP);
    fs::write(sandbox.path("play/go"), "").expect("a file");
    running.finish().exits_with(0);
}

#[test]
fn open_files_and_threads_stay_the_same_over_many_iterations() {
    files_and_threads_stay_the_same_over(60);
}

#[test]
#[ignore = "takes its time: just slow"]
fn open_files_and_threads_stay_the_same_over_five_hundred_iterations() {
    eprintln!("{}", files_and_threads_stay_the_same_over(500));
}

/// Files and threads do not grow with the number of iterations; the figures.
fn files_and_threads_stay_the_same_over(iterations: u64) -> String {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file(
            "ralph.yml",
            "event_loop: { cooldown_seconds: 0, max_no_progress: 0 }\n",
        )
        .playing("default", &claude::session("not yet"))
        .playing(
            "5",
            &format!("touch early\nwait-for go-on\n{}", claude::session("not yet")),
        )
        .playing(
            &iterations.to_string(),
            &format!(
                "touch late\nwait-for finish\n{}",
                claude::session("LOOP_COMPLETE")
            ),
        );
    // Nobody reads along: a report of every iteration would fill the pipe.
    let running = sandbox.start(&["run", "-q", "-p", "x", "-n", "600"]);
    // What the iteration before has left may still be on its way out, and what this one needs not yet be there: the least
    // and the most of some looks.
    let held = |name: &str| {
        let file = sandbox.path(&format!("play/{name}"));
        wait_until("an iteration", DEADLINE * 10, || file.exists());
        let count = |what: &str| {
            let look = || fs::read_dir(format!("/proc/{}/{what}", running.pid())).map(Iterator::count);
            let looks: Vec<usize> = (0..50)
                .map(|_| {
                    std::thread::sleep(Duration::from_millis(4));
                    look().expect("a running ralph")
                })
                .collect();
            (looks.iter().min().copied(), looks.iter().max().copied())
        };
        (count("fd"), count("task"))
    };
    let early = held("early");
    fs::write(sandbox.path("play/go-on"), "").expect("a file");
    let late = held("late");
    fs::write(sandbox.path("play/finish"), "").expect("a file");
    running.finish().exits_with(0);
    assert!(late.0.0 <= early.0.1, "open files: {early:?}, then {late:?}");
    assert!(late.1.0 <= early.1.1, "threads: {early:?}, then {late:?}");
    format!("files and threads: {early:?} in iteration 5, {late:?} in iteration {iterations}")
}

#[test]
fn a_loop_that_completes_leaves_no_process_at_all() {
    let sandbox = completing();
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    sandbox.wait_until_all_are_gone(SOON);
}
