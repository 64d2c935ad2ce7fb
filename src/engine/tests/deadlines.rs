//! Tests for idle, wall-clock and runtime deadlines.

use super::*;

#[test]
fn idle_limit_is_longer_while_a_tool_runs() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.step(100, Input::OutputSeen { bytes: 1 }), []);
    assert_eq!(run.engine.deadline(), Some(secs(700)));
    let tool = ToolStart {
        id: "t".into(),
        name: "shell".into(),
        input: None,
        parent: None,
    };
    assert_eq!(
        run.step(100, Input::Transcript(TranscriptEvent::ToolStart { tool })),
        []
    );
    assert_eq!(run.engine.deadline(), Some(secs(3700)));
    assert_eq!(run.step(3699, Input::Tick), []);
    assert_eq!(run.step(3700, Input::Tick), stop());
    run.step(
        3701,
        Input::AgentEnded {
            end: ProcessEnd::Signaled { signal: 15 }.into(),
            swept: 0,
        },
    );
    let expected = IterationOutcome::TimedOut {
        limit: TimeLimit::Idle,
        after_seconds: 3701,
    };
    assert_eq!(*run.last_outcome(), expected);
}

#[test]
fn wall_limit_applies_despite_output() {
    let mut rules = policy();
    rules.agents.rules[0].timeouts.wall = Some(secs(60));
    let mut run = TestRun::launched(rules);
    assert_eq!(run.step(59, Input::OutputSeen { bytes: 1 }), []);
    assert_eq!(run.step(60, Input::Tick), stop());
    assert_eq!(run.agent_message(61, "LOOP_COMPLETE"), []);
    assert_eq!(run.exit(61), []);
    assert!(matches!(
        run.last_outcome(),
        IterationOutcome::TimedOut {
            limit: TimeLimit::Wall,
            ..
        }
    ));
}

#[test]
fn agent_that_lingers_after_its_result_is_evaluated_by_the_result() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.agent_message(1, "LOOP_COMPLETE"), []);
    assert_eq!(run.step(1, Input::OutputSeen { bytes: 1 }), []);
    assert_eq!(run.result(1), []);
    assert_eq!(
        run.step(20, Input::OutputSeen { bytes: 1 }),
        [],
        "further output restarts the 30 seconds"
    );
    assert_eq!(run.engine.deadline(), Some(secs(50)));
    assert_eq!(run.step(50, Input::Tick), stop());
    assert_eq!(
        run.step(
            51,
            Input::AgentEnded {
                end: ProcessEnd::Signaled { signal: 15 }.into(),
                swept: 0
            }
        ),
        complete()
    );
}

#[test]
fn agent_that_repeats_failed_results_is_stopped() {
    let mut run = TestRun::launched(policy());
    let start = Input::Transcript(TranscriptEvent::ToolStart {
        tool: ToolStart {
            id: "t".into(),
            name: "Bash".into(),
            input: None,
            parent: None,
        },
    });
    for second in 1..=4 {
        assert_eq!(run.meta(second, finished(false)), []);
    }
    assert_eq!(
        run.step(5, start),
        [],
        "a tool call between failures resets the count"
    );
    for second in 6..=9 {
        assert_eq!(run.meta(second, finished(false)), []);
    }
    assert_eq!(run.meta(10, finished(false)), stop());
    assert_eq!(run.meta(11, finished(false)), [], "stopped once");
}

#[test]
fn runtime_limit_stops_a_running_agent() {
    let mut rules = policy();
    rules.limits.runtime = secs(30);
    let mut run = TestRun::launched(rules);
    assert_eq!(run.step(29, Input::OutputSeen { bytes: 1 }), []);
    assert_eq!(run.engine.deadline(), Some(secs(30)));
    assert_eq!(run.step(30, Input::Tick), stop());
    assert_eq!(run.exit(31), limit_reached(RunLimit::Runtime { max_seconds: 30 }));
}

fn background_tasks(tasks: &[&str]) -> Meta {
    Meta::BackgroundTasks {
        tasks: tasks.iter().map(ToString::to_string).collect(),
    }
}

fn killed(run: &mut TestRun, seconds: u64) -> Vec<Action> {
    let end = ProcessEnd::Signaled { signal: 15 };
    run.step(
        seconds,
        Input::AgentEnded {
            end: end.into(),
            swept: 0,
        },
    )
}

fn notices(run: &TestRun) -> Vec<&str> {
    let notices = run.emitted.iter().filter_map(|event| match event {
        RunEvent::Notice { text, .. } => Some(text.as_str()),
        _ => None,
    });
    notices.collect()
}

#[test]
fn background_task_is_waited_for_after_the_result() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.meta(1, background_tasks(&["run tests"])), []);
    assert_eq!(run.agent_message(1, "The tests are running."), []);
    assert_eq!(run.step(1, Input::OutputSeen { bytes: 1 }), []);
    assert_eq!(run.result(1), []);
    assert_eq!(run.step(91, Input::Tick), []);
    assert_eq!(run.step(91, Input::OutputSeen { bytes: 1 }), []);
    assert_eq!(run.meta(91, background_tasks(&[])), []);
    assert_eq!(run.engine.deadline(), Some(secs(121)));
    let session = Meta::Session {
        session_id: "s".into(),
        model: None,
        version: None,
    };
    assert_eq!(run.meta(91, session), []);
    assert_eq!(
        run.engine.deadline(),
        Some(secs(691)),
        "the next turn has the usual limit"
    );
    assert_eq!(run.agent_message(95, "Tests passed.\nLOOP_COMPLETE"), []);
    assert_eq!(run.result(95), []);
    assert_eq!(run.exit(95), complete());
    assert_eq!(notices(&run), [""; 0]);
}

#[test]
fn background_task_that_never_ends_is_stopped_by_the_idle_limit_and_reported() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.meta(1, background_tasks(&["npm run dev", "watch"])), []);
    assert_eq!(run.agent_message(1, "The server runs.\nLOOP_COMPLETE"), []);
    assert_eq!(run.step(1, Input::OutputSeen { bytes: 1 }), []);
    assert_eq!(run.result(1), []);
    assert_eq!(run.engine.deadline(), Some(secs(3601)));
    assert_eq!(run.step(3601, Input::Tick), stop());
    assert_eq!(
        notices(&run),
        [
            "stopped the agent after 1h without output (adapters.NAME.idle_timeout); \
          2 background tasks were still running: npm run dev, watch"
        ]
    );
    assert_eq!(killed(&mut run, 3602), complete(), "the result counts");
}

#[test]
fn stopped_lingering_agent_is_reported() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.agent_message(1, "Half done."), []);
    assert_eq!(run.step(1, Input::OutputSeen { bytes: 1 }), []);
    assert_eq!(run.result(1), []);
    assert_eq!(run.step(31, Input::Tick), stop());
    assert_eq!(
        notices(&run),
        ["stopped the agent 30s after its result (event_loop.result_grace_seconds)"]
    );
}

#[test]
fn agent_that_prints_too_much_is_stopped_and_fails_the_iteration() {
    let mut rules = policy();
    rules.limits.output_bytes = 1000;
    let mut run = TestRun::launched(rules);
    assert_eq!(run.step(1, Input::OutputSeen { bytes: 1000 }), []);
    assert_eq!(run.step(2, Input::OutputSeen { bytes: 1 }), stop());
    assert_eq!(run.step(2, Input::OutputSeen { bytes: 1 }), [], "stopped once");
    run.step(
        3,
        Input::AgentEnded {
            end: ProcessEnd::Signaled { signal: 15 }.into(),
            swept: 0,
        },
    );
    let failure = IterationFailure::TooMuchOutput { max_bytes: 1000 };
    assert_eq!(*run.last_outcome(), IterationOutcome::Failed { failure });
}

#[test]
fn disk_space_is_checked_before_each_iteration_and_while_an_agent_works() {
    let mut rules = policy();
    rules.limits.free_disk_bytes = 100;
    let mut run = TestRun::with(rules);
    assert_eq!(
        run.step(0, Input::Started(Box::new(header()))),
        [Action::CheckDisk, Action::ReadPrompt]
    );
    assert_eq!(run.step(0, Input::DiskChecked { free_bytes: 100 }), []);
    run.launch(0, 1, 1);
    assert_eq!(run.engine.deadline(), Some(secs(10)));
    assert_eq!(run.step(10, Input::Tick), [Action::CheckDisk]);
    assert_eq!(run.engine.deadline(), Some(secs(20)));
    assert_eq!(run.step(10, Input::DiskChecked { free_bytes: 99 }), stop());
    run.step(
        11,
        Input::AgentEnded {
            end: ProcessEnd::Signaled { signal: 15 }.into(),
            swept: 0,
        },
    );
    let limit = RunLimit::Disk { min_free_bytes: 100 };
    assert_eq!(*run.last_outcome(), IterationOutcome::LimitReached { limit });
}

#[test]
fn no_agent_starts_when_the_disk_is_almost_full() {
    let mut rules = policy();
    rules.limits.free_disk_bytes = 100;
    let mut run = TestRun::with(rules);
    run.step(0, Input::Started(Box::new(header())));
    let limit = RunLimit::Disk { min_free_bytes: 100 };
    let ended = run.step(0, Input::DiskChecked { free_bytes: 99 });
    assert!(
        ended.contains(&Action::Finish(RunOutcome::LimitReached { limit })),
        "{ended:?}"
    );
    assert_eq!(run.step(0, Input::Prompt(Ok("task".into()))), []);
}
