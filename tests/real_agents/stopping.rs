//! Stopping an agent ends all of its processes.

use std::time::Instant;

use ralph::event::{IterationOutcome, TimeLimit};

use crate::fixture::Fixture;
use crate::model::{Block, Model, Reply, call_shell, say};
use crate::programs::Program;
use crate::tests_for_programs;

tests_for_programs!(
    a_silent_model_reaches_the_idle_limit,
    a_model_that_stops_halfway_reaches_the_idle_limit
);
tests_for_programs!(all: ctrl_c_during_a_tool_leaves_no_process, background_processes_of_a_tool_end_with_the_agent);

/// Idle limits in seconds, tried in turn until the program has contacted the model, which takes longer on a busy machine.
const IDLE_LIMITS: &[u64] = &[20, 60, 180];

fn assert_idle(cli: Program, reply: fn() -> Reply) {
    let was_contacted = IDLE_LIMITS
        .iter()
        .any(|seconds| contacts_model_before_idle_limit(cli, reply, *seconds));
    assert!(was_contacted, "the model was never contacted");
}

/// Returns whether the program contacted the model before the idle limit ended it.
fn contacts_model_before_idle_limit(cli: Program, reply: fn() -> Reply, seconds: u64) -> bool {
    let model = Model::new(move |_| reply());
    let fixture = Fixture::new(cli, &model.url())
        .with_config("event_loop:\n  max_consecutive_failures: 1\n  stop_grace_seconds: 3")
        .with_config(&format!(
            "adapters:\n  {}:\n    idle_timeout: {seconds}",
            cli.name()
        ));
    let start = Instant::now();
    let ended = fixture.run("Do it.\n");
    ended.assert_code(1);
    assert!(
        matches!(
            ended.outcomes()[..],
            [IterationOutcome::TimedOut {
                limit: TimeLimit::Idle,
                ..
            }]
        ),
        "{}",
        ended.describe()
    );
    assert!(start.elapsed().as_secs() >= seconds);
    fixture.assert_nothing_survives();
    !model.requests().is_empty()
}

fn a_silent_model_reaches_the_idle_limit(cli: Program) {
    assert_idle(cli, || Reply::Silence);
}

fn a_model_that_stops_halfway_reaches_the_idle_limit(cli: Program) {
    assert_idle(cli, || Reply::Blocks(vec![say("I begin with "), Block::Hang]));
}

fn ctrl_c_during_a_tool_leaves_no_process(cli: Program) {
    let model = Model::with_conversations(vec![vec![
        vec![call_shell("tail -f /dev/null")],
        vec![say("Waited.")],
    ]]);
    let fixture = Fixture::new(cli, &model.url());
    let running = fixture.start(b"Wait.\n");
    running.wait_until("the tool", || {
        fixture
            .processes()
            .iter()
            .any(|line| line.starts_with("tail -f /dev/null"))
    });
    running.interrupt();
    let ended = running.end();
    ended.assert_code(130);
    assert!(
        matches!(ended.outcomes()[..], [IterationOutcome::Interrupted]),
        "{}",
        ended.describe()
    );
    fixture.assert_nothing_survives();
}

fn background_processes_of_a_tool_end_with_the_agent(cli: Program) {
    let model = Model::with_conversations(vec![vec![
        vec![call_shell(
            "nohup setsid sleep 1001 >/dev/null 2>&1 & echo started",
        )],
        vec![say("It runs.\nLOOP_COMPLETE")],
    ]]);
    let fixture = Fixture::new(cli, &model.url());
    let ended = fixture.run("Start it.\n");
    ended.assert_code(0);
    fixture.assert_nothing_survives();
}
