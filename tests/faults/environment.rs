//! ralph in unusual environments: as the first process of a container, under `nohup`, over hundreds of iterations.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::process::helpers::wait_until;
use crate::sandbox::skip::skip;
use crate::sandbox::{DEADLINE, Running, Sandbox, claude};

const SOON: Duration = Duration::from_secs(10);

fn completing() -> Sandbox {
    Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"))
}

/// The first process of a container has no visible parent or session, and inherits every orphan.
#[test]
fn ralph_works_as_the_first_process_of_a_container() {
    let sandbox = Sandbox::new().with_agent("claude").with_script(
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
        return skip("pid namespaces (unshare --user --pid) are not permitted");
    }
    let mut inner = sandbox.command_for("/usr/bin/unshare");
    inner
        .args(namespaces)
        .arg(env!("CARGO_BIN_EXE_ralph"))
        .args(["run", "-p", "x"]);
    Running::start(&mut inner).finish().exits_with(0);
    assert_eq!(sandbox.records("agent_ended")[0]["swept"], 2);
}

/// `nohup` ignores SIGHUP, and a script ignores SIGINT in its background jobs: Ctrl-C is for the foreground.
#[test]
fn signals_that_were_ignored_at_the_start_stay_ignored() {
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let starts = [
        (Signal::HUP, format!("trap '' HUP; exec {ralph} run -p x")),
        (Signal::INT, format!("trap '' INT; exec {ralph} run -p x")),
        (Signal::TERM, format!("trap '' TERM; exec {ralph} run -p x")),
    ];
    for (signal, script) in starts {
        let sandbox = Sandbox::new().with_agent("claude").with_script(
            "default",
            &format!("wait-for go\n{}", claude::session("LOOP_COMPLETE")),
        );
        let mut command = sandbox.command_for("/bin/sh");
        command.arg("-c").arg(script);
        let running = Running::start(&mut command);
        sandbox.wait_for_processes(1);
        running.signal(signal);
        fs::write(sandbox.path("agent/go"), "").expect("a file");
        let output = running.finish().exits_with(0);
        let ended = &sandbox.records("run_ended")[0];
        assert_eq!(ended["outcome"], "complete", "{signal:?}: {output:?}");
    }
}

#[test]
fn open_files_and_threads_do_not_grow_over_many_iterations() {
    assert_files_and_threads_do_not_grow_over(60);
}

#[test]
#[ignore = "slow: just slow"]
fn open_files_and_threads_do_not_grow_over_five_hundred_iterations() {
    eprintln!("{}", assert_files_and_threads_do_not_grow_over(500));
}

/// Compares open files and threads of an early and a late iteration; returns the figures.
fn assert_files_and_threads_do_not_grow_over(iterations: u64) -> String {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file(
            "ralph.yml",
            "event_loop: { cooldown_seconds: 0, max_no_progress: 0 }\n",
        )
        .with_script("default", &claude::session("not yet"))
        .with_script(
            "5",
            &format!("touch early\nwait-for continue\n{}", claude::session("not yet")),
        )
        .with_script(
            &iterations.to_string(),
            &format!(
                "touch late\nwait-for finish\n{}",
                claude::session("LOOP_COMPLETE")
            ),
        );
    // The test reads the output only at the end: a report of every iteration would fill the pipe.
    let running = sandbox.start(&["run", "-q", "-p", "x", "-n", "600"]);
    // Resources of the previous iteration may not be released yet, and some of this iteration not be acquired: take the
    // minimum and the maximum of several samples.
    let held = |name: &str| {
        let file = sandbox.path(&format!("agent/{name}"));
        wait_until("an iteration", DEADLINE * 10, || file.exists());
        let count = |what: &str| {
            let sample = || fs::read_dir(format!("/proc/{}/{what}", running.pid())).map(Iterator::count);
            let samples: Vec<usize> = (0..50)
                .map(|_| {
                    std::thread::sleep(Duration::from_millis(4));
                    sample().expect("a running ralph")
                })
                .collect();
            (samples.iter().min().copied(), samples.iter().max().copied())
        };
        (count("fd"), count("task"))
    };
    let early = held("early");
    fs::write(sandbox.path("agent/continue"), "").expect("a file");
    let late = held("late");
    fs::write(sandbox.path("agent/finish"), "").expect("a file");
    running.finish().exits_with(0);
    assert!(late.0.0 <= early.0.1, "open files: {early:?}, then {late:?}");
    assert!(late.1.0 <= early.1.1, "threads: {early:?}, then {late:?}");
    format!("files and threads: {early:?} in iteration 5, {late:?} in iteration {iterations}")
}

#[test]
fn a_completed_loop_leaves_no_process() {
    let sandbox = completing();
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    sandbox.wait_until_processes_exit(SOON);
}
