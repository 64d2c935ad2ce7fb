//! Iterations that fail: what counts as one, and what follows.

use super::*;

#[test]
fn exit_code_and_terminal_event_are_judged_together() {
    let failed = |talk: &Talk| match talk.last_outcome() {
        IterationOutcome::Failed { failure } => failure.clone(),
        other => panic!("{other:?}"),
    };

    let mut talk = Talk::launched(policy());
    assert_eq!(talk.agent_says(1, "LOOP_COMPLETE"), []);
    talk.exits(1);
    assert_eq!(
        failed(&talk),
        Failure::NoTerminalEvent,
        "a stream without its end was cut off"
    );

    let mut talk = Talk::launched(policy());
    assert_eq!(talk.agent_says(1, "LOOP_COMPLETE"), []);
    assert_eq!(talk.result(1), []);
    talk.say(1, Input::Stderr("boom".into()));
    let end = ProcessEnd::Exited { code: 3 };
    talk.say(1, Input::Exited { end, swept: 0 });
    assert_eq!(
        failed(&talk),
        Failure::Exit {
            end,
            message: "boom".into()
        }
    );

    let mut talk = Talk::launched(policy());
    assert_eq!(talk.agent_says(1, "LOOP_COMPLETE"), []);
    assert_eq!(talk.meta(1, finished(false)), []);
    talk.exits(1);
    assert!(
        matches!(failed(&talk), Failure::AgentError { .. }),
        "is_error with exit 0 is a failure"
    );

    let mut talk = Talk::launched(policy());
    assert_eq!(talk.result(1), []);
    talk.exits(1);
    assert_eq!(
        failed(&talk),
        Failure::NoOutput,
        "exit 0 without output is a failure"
    );
}

#[test]
fn failures_are_retried_with_growing_waits_until_there_are_too_many() {
    let mut talk = Talk::launched(policy());
    let mut now = Duration::ZERO;
    let mut waits = Vec::new();
    for failures in 1..=4 {
        let exit = Input::Exited {
            end: ProcessEnd::Exited { code: 1 },
            swept: 0,
        };
        assert_eq!(talk.at(now, exit), []);
        let until = talk.engine.deadline().expect("a wait has an end");
        assert_eq!(
            talk.at(until - Duration::from_millis(1), Input::Tick),
            [],
            "not a moment early"
        );
        assert_eq!(talk.at(until, Input::Tick), [Action::ReadPrompt]);
        waits.push((until - now).as_secs_f64());
        now = until;
        talk.at(now, Input::Prompt(Ok("task".into())));
        assert_eq!(talk.engine.failures_in_a_row, failures);
    }
    assert!(waits.is_sorted() && (1.6..20.0).contains(&waits[3]), "{waits:?}");
    let exit = Input::Exited {
        end: ProcessEnd::Exited { code: 1 },
        swept: 0,
    };
    let reason = "5 iterations failed in a row (max_consecutive_failures)".to_owned();
    assert_eq!(
        talk.at(now, exit),
        [Action::Finish(RunOutcome::Failed { reason })]
    );
}

#[test]
fn one_good_iteration_forgives_the_failures_before_it() {
    let mut talk = Talk::launched(policy());
    talk.say(
        1,
        Input::Exited {
            end: ProcessEnd::Signaled { signal: 9 },
            swept: 0,
        },
    );
    assert_eq!(talk.say(10, Input::Tick), [Action::ReadPrompt]);
    talk.launch(10, 2, 1);
    assert_eq!(talk.iteration(20, "better"), [Action::ReadPrompt]);
    assert_eq!(talk.engine.failures_in_a_row, 0);
}

#[test]
fn an_agent_that_says_it_failed_ends_the_run_or_is_retried_as_configured() {
    let mut talk = Talk::launched(policy());
    let reason = "the agent gave up: it said <<<RALPHEX:FAILED>>>".to_owned();
    assert_eq!(
        talk.iteration(1, "<<<RALPHEX:FAILED>>>"),
        [Action::Finish(RunOutcome::Failed { reason })]
    );

    let mut talk = Talk::launched(Policy {
        on_declared_failure: OnDeclaredFailure::Retry,
        ..policy()
    });
    assert_eq!(talk.iteration(1, "<<<RALPHEX:FAILED>>>"), []);
    assert_eq!(talk.say(10, Input::Tick), [Action::ReadPrompt]);
}

#[test]
fn a_missing_login_stops_at_once_with_help() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.meta(1, error(ErrorClass::Auth, "Not logged in.")), []);
    assert_eq!(talk.meta(1, finished(false)), []);
    let message = "Not logged in. Run `agent login`.".to_owned();
    assert_eq!(
        talk.exits(1),
        [Action::Finish(RunOutcome::AuthRequired { message })]
    );
}

#[test]
fn an_error_in_passing_does_not_fail_an_iteration_that_succeeded() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.meta(1, error(ErrorClass::RateLimit, "slow down")), []);
    let allowed = Meta::RateLimit {
        status: RateLimitStatus::Allowed,
        resets_at: None,
        limit: None,
    };
    assert_eq!(talk.meta(1, allowed), []);
    assert_eq!(talk.iteration(2, "LOOP_COMPLETE"), complete());
}
