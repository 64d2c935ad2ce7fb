//! Time that an agent has, in silence and in all.

use super::*;

#[test]
fn silence_has_a_limit_that_is_longer_while_a_tool_runs() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.say(100, Input::OutputSeen), []);
    assert_eq!(talk.engine.deadline(), Some(secs(700)));
    let tool = ToolStart {
        id: "t".into(),
        name: "shell".into(),
        input: None,
        parent: None,
    };
    assert_eq!(
        talk.say(100, Input::Transcript(TranscriptEvent::ToolStart { tool })),
        []
    );
    assert_eq!(talk.engine.deadline(), Some(secs(3700)));
    assert_eq!(talk.say(3699, Input::Tick), []);
    assert_eq!(talk.say(3700, Input::Tick), stop());
    talk.say(
        3701,
        Input::Exited {
            end: ProcessEnd::Signaled { signal: 15 },
            swept: 0,
        },
    );
    let expected = IterationOutcome::TimedOut {
        limit: TimeLimit::Idle,
        after_seconds: 3701,
    };
    assert_eq!(*talk.last_outcome(), expected);
}

#[test]
fn the_wall_limit_holds_however_busy_the_agent_is() {
    let mut rules = policy();
    rules.timing.wall = Some(secs(60));
    let mut talk = Talk::launched(rules);
    assert_eq!(talk.say(59, Input::OutputSeen), []);
    assert_eq!(talk.say(60, Input::Tick), stop());
    assert_eq!(talk.agent_says(61, "LOOP_COMPLETE"), []);
    assert_eq!(talk.exits(61), []);
    assert!(matches!(
        talk.last_outcome(),
        IterationOutcome::TimedOut {
            limit: TimeLimit::Wall,
            ..
        }
    ));
}

#[test]
fn an_agent_that_lingers_after_its_result_is_judged_by_the_result() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.agent_says(1, "LOOP_COMPLETE"), []);
    assert_eq!(talk.say(1, Input::OutputSeen), []);
    assert_eq!(talk.result(1), []);
    assert_eq!(
        talk.say(20, Input::OutputSeen),
        [],
        "any further output gives it another 30 seconds"
    );
    assert_eq!(talk.engine.deadline(), Some(secs(50)));
    assert_eq!(talk.say(50, Input::Tick), stop());
    assert_eq!(
        talk.say(
            51,
            Input::Exited {
                end: ProcessEnd::Signaled { signal: 15 },
                swept: 0
            }
        ),
        complete()
    );
}

#[test]
fn an_agent_that_fails_again_and_again_and_does_not_go_is_stopped() {
    let mut talk = Talk::launched(policy());
    let start = Input::Transcript(TranscriptEvent::ToolStart {
        tool: ToolStart {
            id: "t".into(),
            name: "Bash".into(),
            input: None,
            parent: None,
        },
    });
    for second in 1..=4 {
        assert_eq!(talk.meta(second, finished(false)), []);
    }
    assert_eq!(talk.say(5, start), [], "work between failures is no circle");
    for second in 6..=9 {
        assert_eq!(talk.meta(second, finished(false)), []);
    }
    assert_eq!(talk.meta(10, finished(false)), stop());
    assert_eq!(talk.meta(11, finished(false)), [], "told once");
}

#[test]
fn the_runtime_limit_stops_an_agent_in_mid_iteration() {
    let mut rules = policy();
    rules.limits.runtime = secs(30);
    let mut talk = Talk::launched(rules);
    assert_eq!(talk.say(29, Input::OutputSeen), []);
    assert_eq!(talk.engine.deadline(), Some(secs(30)));
    assert_eq!(talk.say(30, Input::Tick), stop());
    assert_eq!(talk.exits(31), limit_reached(Limit::Runtime { max_seconds: 30 }));
}
