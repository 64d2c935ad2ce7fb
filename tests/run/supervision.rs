//! Options for programs that start ralph: checkpoints, the end at a usage limit, run ids, command ids and the lifeline.

use std::fs;
use std::os::fd::AsFd;
use std::process::Stdio;

use ralph::event::{Command as RunCommand, RunEvent, RunOutcome};
use rustix::io::{FdFlags, fcntl_setfd};

use crate::sandbox::{DEADLINE, Running, Sandbox};

const CONFIG: &str = "event_loop: {prompt: x}\n";
/// Records how many iterations the journal contains when the command runs, and how many prompts the agent has received.
const COUNT: &str = "grep -c '\"type\":\"iteration_ended\"' .agent/events.jsonl >> saved; test ! -e refuse || { echo stale info; exit 1; }";

#[test]
fn the_checkpoint_command_sees_each_ended_iteration_and_can_end_the_run() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", CONFIG).with_script("1", "say more");
    let output = sandbox.ralph(&["run", "--checkpoint", COUNT]);
    assert_eq!(output.exit(), 0, "{}", output.text());
    let saved = |sandbox: &Sandbox| fs::read_to_string(sandbox.work().join("saved")).expect("checkpoints");
    assert_eq!(saved(&sandbox), "1\n2\n");

    let sandbox = Sandbox::scripted("say more", CONFIG).with_file("refuse", "");
    let output = sandbox.ralph(&["run", "--checkpoint", COUNT]).exits_with(8);
    assert!(output.text().contains("stale info"), "{}", output.text());
    assert_eq!(saved(&sandbox), "1\n");
    let reason = "stale info".to_owned();
    assert_eq!(sandbox.run_end().0, RunOutcome::CheckpointRefused { reason });
    fs::remove_file(sandbox.work().join("refuse")).expect("the file");
    sandbox.ralph(&["run", "--continue", "-n", "2"]).exits_with(3);
    assert_eq!(
        saved(&sandbox),
        "1\n2\n",
        "a resumed run keeps its checkpoint command"
    );
}

#[test]
fn a_run_with_on_limit_exit_ends_with_the_reset_and_is_resumed_without_a_wait() {
    let limit = r#"say {"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":4102444800,"rateLimitType":"five_hour"}}
say {"type":"result","subtype":"success","is_error":true,"result":"limit reached","num_turns":1}
exit 1"#;
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", CONFIG).with_script("1", limit);
    let arguments = ["run", "--transcript", "claude", "--on-limit", "exit"];
    let output = sandbox.ralph(&arguments).exits_with(7);
    assert!(output.text().contains("usage limit"), "{}", output.text());
    let (outcome, iterations, _) = sandbox.run_end();
    let resets = "2100-01-01T00:00:00Z".parse().ok();
    assert!(
        matches!(&outcome, RunOutcome::RateLimited { resets_at, .. } if *resets_at == resets),
        "{outcome:?}"
    );
    assert_eq!(
        iterations, 0,
        "an iteration that reached the limit does not count"
    );
    let done = r#"say {"type":"result","subtype":"success","is_error":false,"result":"LOOP_COMPLETE","num_turns":1}"#;
    sandbox.script("2", done);
    sandbox.ralph(&["run", "--continue"]).exits_with(0);
}

#[test]
fn a_run_has_the_id_that_its_caller_chose() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", CONFIG);
    let id = "20261115-204501-billing";
    sandbox.ralph(&["run", "--run-id", id]).exits_with(0);
    assert_eq!(sandbox.run_id(), id);
    let output = sandbox.ralph(&["run", "--run-id", id]).exits_with(2);
    assert!(output.text().contains("already exists"), "{}", output.text());
    let output = sandbox.ralph(&["run", "--run-id", "../x"]).exits_with(2);
    assert!(
        output.text().contains("20261115-204501-billing"),
        "{}",
        output.text()
    );
}

#[test]
fn a_command_that_arrives_twice_with_one_id_is_applied_once() {
    let sandbox =
        Sandbox::scripted("say LOOP_COMPLETE", CONFIG).with_script("1", "touch first\nwait-for go\nsay more");
    let child = sandbox.start(&["run"]);
    sandbox.wait_for_file(&sandbox.path("agent").join("first"));
    for _ in 0..2 {
        sandbox
            .ralph(&["tell", "--id", "order-7", "use tabs"])
            .exits_with(0);
    }
    fs::write(sandbox.path("agent").join("go"), "").expect("a file for the agent");
    assert_eq!(child.finish().exit(), 0);
    let received = sandbox
        .history()
        .into_iter()
        .filter_map(|record| match record.event {
            RunEvent::CommandReceived { id, command } => Some((id, command)),
            _ => None,
        });
    let text = "use tabs".to_owned();
    assert_eq!(
        received.collect::<Vec<_>>(),
        [("order-7".to_owned(), RunCommand::Message { text })]
    );
}

#[test]
fn a_run_ends_when_the_program_that_started_it_has_ended() {
    let sandbox = Sandbox::scripted("touch first\nhang", CONFIG);
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
    fcntl_setfd(reader.as_fd(), FdFlags::empty()).expect("a descriptor that is inherited");
    let number = std::os::fd::AsRawFd::as_raw_fd(&reader).to_string();
    let mut command = sandbox.command(&["run", "--while-open", &number]);
    let mut child = Running::start(command.stdin(Stdio::null()));
    drop(reader);
    sandbox.wait_for_file(&sandbox.path("agent").join("first"));
    drop(writer);
    assert!(child.has_ended_within(DEADLINE), "the run has not ended");
    child.finish().exits_with(143);
    sandbox.wait_until_processes_exit(DEADLINE);
    let output = sandbox.ralph(&["run", "--while-open", "77"]).exits_with(2);
    assert!(output.text().contains("--while-open"), "{}", output.text());
}
