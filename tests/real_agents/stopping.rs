//! When an agent must go, all of it goes.

use std::time::Instant;

use ralph::event::{IterationOutcome, TimeLimit};

use crate::fixture::Fixture;
use crate::model::{Block, Model, Reply, call_shell, say};
use crate::programs::Program;
use crate::proven_with;

proven_with!(
    a_silent_model_meets_the_idle_limit,
    a_model_that_stops_halfway_meets_the_idle_limit
);
proven_with!(
    ctrl_c_during_a_tool_leaves_nothing,
    what_a_tool_left_running_goes_with_the_agent
);

/// The shortest patience in which the program gets to ask its model at all, however busy the machine is.
const PATIENCE: &[u64] = &[20, 60, 180];

fn assert_idle(cli: Program, reply: fn() -> Reply) {
    let was_asked = PATIENCE.iter().any(|seconds| idles(cli, reply, *seconds));
    assert!(was_asked, "the model was never asked");
}

/// Whether the model was asked before the idle limit ended the agent.
fn idles(cli: Program, reply: fn() -> Reply, seconds: u64) -> bool {
    let model = Model::new(move |_| reply());
    let fixture = Fixture::new(cli, &model.url())
        .with_config("event_loop:\n  max_consecutive_failures: 1\n  stop_grace_seconds: 3")
        .with_config(&format!(
            "adapters:\n  {}:\n    idle_timeout: {seconds}",
            cli.name()
        ));
    let began = Instant::now();
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
        ended.story()
    );
    assert!(began.elapsed().as_secs() >= seconds);
    fixture.assert_nothing_survives();
    !model.asked().is_empty()
}

fn a_silent_model_meets_the_idle_limit(cli: Program) {
    assert_idle(cli, || Reply::Silence);
}

fn a_model_that_stops_halfway_meets_the_idle_limit(cli: Program) {
    assert_idle(cli, || Reply::Blocks(vec![say("I begin with "), Block::Hang]));
}

fn ctrl_c_during_a_tool_leaves_nothing(cli: Program) {
    let model = Model::playing(vec![vec![vec![call_shell("sleep 1000")], vec![say("Slept.")]]]);
    let fixture = Fixture::new(cli, &model.url());
    let running = fixture.start(b"Sleep.\n");
    running.wait_until("the tool", || {
        fixture
            .processes()
            .iter()
            .any(|line| line.starts_with("sleep 1000"))
    });
    running.interrupt();
    let ended = running.end();
    ended.assert_code(130);
    assert!(
        matches!(ended.outcomes()[..], [IterationOutcome::Interrupted]),
        "{}",
        ended.story()
    );
    fixture.assert_nothing_survives();
}

fn what_a_tool_left_running_goes_with_the_agent(cli: Program) {
    let model = Model::playing(vec![vec![
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
