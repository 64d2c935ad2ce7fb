//! Processes that cost others the night: helpers that hold stdout, agents that do not go, signals to a whole group.

use std::fs;
use std::os::unix::process::CommandExt;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::common::{EITHER, speaking_claude};
use crate::process::stage::wait_until;
use crate::sandbox::{DEADLINE, Running, claude};

const SOON: Duration = Duration::from_secs(10);

/// The next step does not wait for what the agent has left behind, and that is gone, too.
fn nobody_waits_for(leftover: &str) {
    for on in EITHER {
        let sandbox = speaking_claude(on);
        sandbox.script(
            "default",
            &format!("{leftover}{}", claude::session("LOOP_COMPLETE")),
        );
        sandbox.ralph(&["run", "-p", "x y", "-q"]).exits_with(0);
        sandbox.wait_until_all_are_gone(SOON);
    }
}

#[test]
fn a_grandchild_that_holds_stdout_is_not_waited_for() {
    nobody_waits_for("fork-and-hold-stdout 100000\n");
}

#[test]
fn a_grandchild_in_a_session_of_its_own_is_not_waited_for() {
    nobody_waits_for("fork-setsid 100000\n");
}

/// Ends a run by a signal to ralph while the agent is at work.
fn nothing_is_left_of(script: &str, signal: Signal, code: i32) {
    for on in EITHER {
        let sandbox = speaking_claude(on);
        sandbox.script("default", script);
        let ralph = sandbox.start(&["run", "-p", "x y", "-q"]);
        sandbox.wait_for_processes(1);
        ralph.signal(signal);
        ralph.finish().exits_with(code);
        sandbox.wait_until_all_are_gone(SOON);
    }
}

#[test]
fn an_interrupted_run_leaves_no_agent() {
    let script = format!("{}hang\n", claude::init());
    nothing_is_left_of(&script, Signal::INT, 130);
    nothing_is_left_of(&script, Signal::TERM, 143);
}

#[test]
fn an_interrupted_run_leaves_no_agent_that_ignores_the_signal() {
    let script = format!("ignore TERM\n{}hang\n", claude::init());
    nothing_is_left_of(&script, Signal::INT, 130);
}

/// What a terminal does at Ctrl-C: every process of the group hears it, the script that started ralph included.
#[test]
fn a_wrapper_that_traps_the_interrupt_lives_on_and_the_agent_does_not() {
    let sandbox = speaking_claude(super::common::On::Terminal);
    sandbox.script("default", &format!("{}hang\n", claude::init()));
    let script = format!(
        "trap 'echo trapped > trapped' INT\n{} run -p 'x y' -q\necho $? > after\n",
        env!("CARGO_BIN_EXE_ralph")
    );
    fs::write(sandbox.work().join("wrapper.sh"), script).expect("a script");
    let mut command = sandbox.command_of("/bin/sh");
    let mut wrapper = Running::start(command.arg("wrapper.sh").process_group(0));
    sandbox.wait_for_processes(1);
    let group = Pid::from_raw(wrapper.pid()).expect("a group");
    kill_process_group(group, Signal::INT).expect("a signal");
    wait_until("the wrapper to go on", DEADLINE, || {
        sandbox.work().join("after").exists()
    });
    assert!(wrapper.has_ended_within(SOON));
    let read = |name: &str| fs::read_to_string(sandbox.work().join(name)).expect("a file");
    assert_eq!(read("after").trim(), "130");
    assert_eq!(read("trapped").trim(), "trapped");
    sandbox.wait_until_all_are_gone(SOON);
}
