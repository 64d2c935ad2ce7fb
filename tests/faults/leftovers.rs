//! Processes that outlive their agent: helpers that hold stdout, agents that ignore signals, signals to a process group.

use std::fs;
use std::os::unix::process::CommandExt;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::common::{AgentStdout, BOTH, claude_stream_on};
use crate::process::helpers::wait_until;
use crate::sandbox::{DEADLINE, Running, claude};

const SOON: Duration = Duration::from_secs(10);

/// Asserts that a run does not wait for a leftover of the agent, and that the leftover ends.
fn assert_not_waited_for(leftover: &str) {
    for stdout in BOTH {
        let sandbox = claude_stream_on(stdout);
        sandbox.script(
            "default",
            &format!("{leftover}{}", claude::session("LOOP_COMPLETE")),
        );
        sandbox.ralph(&["run", "-p", "x y", "-q"]).exits_with(0);
        sandbox.wait_until_processes_exit(SOON);
    }
}

#[test]
fn a_grandchild_that_holds_stdout_is_not_waited_for() {
    assert_not_waited_for("fork-and-hold-stdout 100000\n");
}

#[test]
fn a_grandchild_in_its_own_session_is_not_waited_for() {
    assert_not_waited_for("fork-setsid 100000\n");
}

/// Signals ralph while the agent is running and asserts that no process survives.
fn assert_nothing_survives(script: &str, signal: Signal, code: i32) {
    for stdout in BOTH {
        let sandbox = claude_stream_on(stdout);
        sandbox.script("default", script);
        let ralph = sandbox.start(&["run", "-p", "x y", "-q"]);
        sandbox.wait_for_processes(1);
        ralph.signal(signal);
        ralph.finish().exits_with(code);
        sandbox.wait_until_processes_exit(SOON);
    }
}

#[test]
fn an_interrupted_run_leaves_no_agent() {
    let script = format!("{}hang\n", claude::init());
    assert_nothing_survives(&script, Signal::INT, 130);
    assert_nothing_survives(&script, Signal::TERM, 143);
}

#[test]
fn an_interrupted_run_leaves_no_agent_that_ignores_the_signal() {
    let script = format!("ignore TERM\n{}hang\n", claude::init());
    assert_nothing_survives(&script, Signal::INT, 130);
}

/// A terminal sends Ctrl-C to the whole process group, including the script that started ralph.
#[test]
fn a_wrapper_that_traps_sigint_survives_and_the_agent_does_not() {
    let sandbox = claude_stream_on(AgentStdout::Terminal);
    sandbox.script("default", &format!("{}hang\n", claude::init()));
    let script = format!(
        "trap 'echo trapped > trapped' INT\n{} run -p 'x y' -q\necho $? > after\n",
        env!("CARGO_BIN_EXE_ralph")
    );
    fs::write(sandbox.work().join("wrapper.sh"), script).expect("a script");
    let mut command = sandbox.command_for("/bin/sh");
    let mut wrapper = Running::start(command.arg("wrapper.sh").process_group(0));
    sandbox.wait_for_processes(1);
    let group = Pid::from_raw(wrapper.pid()).expect("a group");
    kill_process_group(group, Signal::INT).expect("a signal");
    wait_until("the wrapper to continue", DEADLINE, || {
        sandbox.work().join("after").exists()
    });
    assert!(wrapper.has_ended_within(SOON));
    let read = |name: &str| fs::read_to_string(sandbox.work().join(name)).expect("a file");
    assert_eq!(read("after").trim(), "130");
    assert_eq!(read("trapped").trim(), "trapped");
    sandbox.wait_until_processes_exit(SOON);
}
