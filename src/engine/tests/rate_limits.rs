//! Tests for usage limits: detection in error output, reset times and waits.

use super::*;

fn resets_at(run: &TestRun) -> Option<String> {
    match run.last_outcome() {
        IterationOutcome::RateLimited { resets_at, .. } => resets_at.map(|time| time.to_string()),
        other => panic!("not a rate limit: {other:?}"),
    }
}

const FAILED: ProcessEnd = ProcessEnd::Exited { code: 1 };

fn fail(run: &mut TestRun, seconds: u64) -> Vec<Action> {
    run.step(
        seconds,
        Input::AgentEnded {
            end: FAILED.into(),
            swept: 0,
        },
    )
}

#[test]
fn limit_on_stderr_waits_until_the_stated_reset_and_is_not_counted() {
    let mut run = TestRun::launched(policy());
    run.step(1, Input::Stderr("You've hit your usage limit.".into()));
    run.step(1, Input::Stderr("Try again at 2:00 AM.".into()));
    assert_eq!(fail(&mut run, 10), []);
    assert_eq!(resets_at(&run).as_deref(), Some("1970-01-01T02:00:00Z"));
    assert_eq!(
        run.engine.deadline(),
        Some(secs(7201)),
        "a second later than stated"
    );
    assert_eq!(run.step(7201, Input::Tick), [Action::ReadPrompt]);
    run.launch(7201, 1, 2);
}

#[test]
fn reset_time_without_a_zone_is_in_the_users_zone() {
    let mut rules = policy();
    rules.zone = jiff::tz::TimeZone::fixed(jiff::tz::Offset::constant(-2));
    let mut run = TestRun::launched(rules);
    run.step(
        1,
        Input::Stderr("Error: You've hit your usage limit, resets 11pm".into()),
    );
    fail(&mut run, 10);
    assert_eq!(resets_at(&run).as_deref(), Some("1970-01-01T01:00:00Z"));
}

#[test]
fn limit_message_in_an_unclassified_error_is_recognized() {
    let mut run = TestRun::launched(policy());
    let message = "You've hit your usage limit. Try again in 3h 12m.";
    assert_eq!(run.meta(1, error(ErrorClass::Other, message)), []);
    assert_eq!(run.meta(1, finished(false)), []);
    run.exit(60);
    assert_eq!(resets_at(&run).as_deref(), Some("1970-01-01T03:13:00Z"));
}

#[test]
fn structured_limit_may_state_its_reset_in_the_message() {
    let mut run = TestRun::launched(policy());
    assert_eq!(
        run.meta(1, error(ErrorClass::RateLimit, "any words · resets 1am")),
        []
    );
    fail(&mut run, 2);
    assert_eq!(resets_at(&run).as_deref(), Some("1970-01-01T01:00:00Z"));
}

#[test]
fn overloaded_service_causes_a_wait() {
    let mut run = TestRun::launched(policy());
    let overloaded = Meta::Error {
        class: ErrorClass::Overload,
        message: "Overloaded".into(),
        status: Some(529),
    };
    assert_eq!(run.meta(1, overloaded), []);
    fail(&mut run, 2);
    let message = "Overloaded".to_owned();
    assert_eq!(*run.last_outcome(), IterationOutcome::Overloaded { message });
    assert!(matches!(
        run.emitted.last(),
        Some(RunEvent::Waiting {
            why: WaitReason::Overload,
            ..
        })
    ));
    let due = run.engine.deadline().expect("a wait");
    assert_eq!(run.step_at(due, Input::Tick), [Action::ReadPrompt]);
    run.launch(due.as_secs() + 1, 1, 2);
}

#[test]
fn repeated_short_resets_cause_longer_waits() {
    let mut run = TestRun::launched(policy());
    let mut waits = Vec::new();
    let mut now = 0;
    for attempt in 2..8 {
        run.step(
            now,
            Input::Stderr("You've hit your usage limit, try again in 1s".into()),
        );
        fail(&mut run, now);
        let due = run.engine.deadline().expect("a wait").as_secs() + 1;
        waits.push(due - now - 1);
        assert_eq!(run.step(due, Input::Tick), [Action::ReadPrompt]);
        run.launch(due, 1, attempt);
        now = due;
    }
    assert_eq!(waits[..3], [2, 2, 2]);
    assert!(waits[3] >= 48 && waits[4] >= 96 && waits[5] >= 192, "{waits:?}");
}

#[test]
fn limit_message_in_a_successful_iteration_is_ignored() {
    let mut run = TestRun::launched(policy());
    run.step(1, Input::Stderr("You've hit your usage limit.".into()));
    assert_eq!(run.meta(1, error(ErrorClass::Other, "429 Too Many Requests")), []);
    assert_eq!(run.iteration(2, "Recovered.\nLOOP_COMPLETE"), complete());
}

#[test]
fn limit_message_in_assistant_text_is_ignored() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.agent_message(1, "You've hit your usage limit."), []);
    run.step(1, Input::Stderr("panicked at src/main.rs".into()));
    fail(&mut run, 2);
    assert!(matches!(run.last_outcome(), IterationOutcome::Failed { .. }));
}

#[test]
fn old_stderr_line_does_not_explain_another_failure() {
    let mut run = TestRun::launched(policy());
    run.step(1, Input::Stderr("You've hit your usage limit.".into()));
    assert_eq!(run.meta(1, error(ErrorClass::BadRequest, "no such model")), []);
    fail(&mut run, 2);
    assert!(matches!(run.last_outcome(), IterationOutcome::Failed { .. }));

    let mut run = TestRun::launched(policy());
    run.step(1, Input::Stderr("You've hit your usage limit.".into()));
    for line in 0..20 {
        run.step(1, Input::Stderr(format!("frame {line}")));
    }
    fail(&mut run, 2);
    assert!(matches!(run.last_outcome(), IterationOutcome::Failed { .. }));
}

#[test]
fn similar_texts_are_ordinary_failures() {
    for line in [
        "error[E0432]: unresolved import `ratelimit`",
        "RAL-17: 429 Too Many Requests is not handled",
        "429 Too Many Requests tests failed",
    ] {
        let mut run = TestRun::launched(policy());
        run.step(1, Input::Stderr(line.into()));
        fail(&mut run, 2);
        assert!(
            matches!(run.last_outcome(), IterationOutcome::Failed { .. }),
            "{line}"
        );
    }
}

/// The machine was suspended, so the tick comes long after the deadline.
#[test]
fn suspend_during_a_wait_does_not_count_as_runtime() {
    let mut rules = policy();
    rules.limits.runtime = secs(100);
    let mut run = TestRun::launched(rules);
    run.step(
        1,
        Input::Stderr("You've hit your usage limit. Try again in 60s".into()),
    );
    fail(&mut run, 2);
    let eight_hours = 8 * 3600;
    assert_eq!(run.step(eight_hours, Input::Tick), [Action::ReadPrompt]);
    run.launch(eight_hours, 1, 2);
    assert_eq!(run.iteration(eight_hours + 90, "LOOP_COMPLETE"), complete());
}

/// The agent may take a while to exit after it has reported its limit.
#[test]
fn reset_that_just_passed_ends_the_wait_and_an_old_one_is_unknown() {
    let rejected_until = |second: i64| {
        let mut run = TestRun::launched(Policy {
            started_at: Timestamp::from_second(1_000_000).expect("a time"),
            ..policy()
        });
        let resets_at = Timestamp::from_second(1_000_000 + second).ok();
        let rejected = Meta::RateLimit {
            status: RateLimitStatus::Rejected,
            resets_at,
            limit: None,
            utilization: None,
        };
        assert_eq!(run.meta(1, rejected), []);
        fail(&mut run, 10);
        run.engine.deadline().expect("a wait") - secs(10)
    };
    assert_eq!(rejected_until(12), secs(3));
    assert_eq!(rejected_until(8), secs(1));
    assert!(
        rejected_until(-80_000) > secs(30),
        "about a minute, like an unknown reset"
    );
}

#[test]
fn iteration_is_repeated_uncounted_after_a_usage_limit() {
    let mut rules = policy();
    rules.limits.runtime = secs(100);
    let mut run = TestRun::launched(rules);
    let resets_at = Some(Timestamp::from_second(5000).expect("a time"));
    assert_eq!(
        run.meta(
            10,
            Meta::RateLimit {
                status: RateLimitStatus::Rejected,
                resets_at,
                limit: None,
                utilization: None,
            }
        ),
        []
    );
    assert_eq!(run.meta(10, finished(false)), []);
    assert_eq!(run.exit(10), []);
    assert_eq!(
        *run.last_outcome(),
        IterationOutcome::RateLimited {
            resets_at,
            message: String::new()
        }
    );
    assert_eq!(
        run.engine.deadline(),
        Some(secs(5001)),
        "the wait may exceed max_runtime_seconds"
    );
    assert_eq!(run.step(5001, Input::Tick), [Action::ReadPrompt]);
    run.launch(5001, 1, 2);
    assert_eq!(run.iteration(5010, "LOOP_COMPLETE"), complete());
    assert!(matches!(
        run.emitted.last(),
        Some(RunEvent::RunEnded { iterations: 1, .. })
    ));
}

#[test]
fn user_can_end_a_wait_early() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.meta(1, error(ErrorClass::RateLimit, "429")), []);
    assert_eq!(run.meta(1, finished(false)), []);
    assert_eq!(run.exit(1), []);
    assert!(
        run.engine.deadline().is_some_and(|due| due >= secs(49)),
        "no stated reset: about a minute"
    );
    assert_eq!(run.step(5, wake()), [Action::ReadPrompt]);
    run.launch(5, 1, 2);
}

fn rejected(resets_at: Option<Timestamp>) -> Meta {
    Meta::RateLimit {
        status: RateLimitStatus::Rejected,
        resets_at,
        limit: None,
        utilization: None,
    }
}

#[test]
fn a_reset_in_the_distant_future_is_reported_with_its_date_and_tried_at_the_bound() {
    let mut run = TestRun::launched(policy());
    let distant = "2099-01-01T00:00:00Z".parse().ok();
    assert_eq!(run.meta(10, rejected(distant)), []);
    fail(&mut run, 10);
    assert_eq!(run.engine.deadline(), Some(secs(10 + 8 * 3600)));
    let notices: Vec<&String> = run.emitted.iter().filter_map(notice).collect();
    assert_eq!(
        notices,
        [
            "the usage limit resets at 2099-01-01 00:00 UTC; the agent is tried again after 8h (event_loop.max_wait_seconds)"
        ]
    );
}

#[test]
fn a_stated_duration_and_an_unknown_reset_do_not_exceed_the_longest_wait() {
    let mut rules = policy();
    rules.limits.limit_wait = secs(30);
    for message in [
        "You've hit your usage limit. Try again in 800 hours.",
        "You've hit your usage limit.",
    ] {
        let mut run = TestRun::launched(rules.clone());
        run.step(1, Input::Stderr(message.into()));
        fail(&mut run, 10);
        assert_eq!(run.engine.deadline(), Some(secs(40)), "{message}");
    }
}

fn notice(event: &RunEvent) -> Option<&String> {
    match event {
        RunEvent::Notice { text, .. } => Some(text),
        _ => None,
    }
}

/// The number of attempts that a process causes by sending a wake every second for an hour.
#[test]
fn constant_wakes_do_not_turn_a_wait_into_a_loop_of_attempts() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.meta(0, rejected(Timestamp::from_second(36_000).ok())), []);
    fail(&mut run, 0);
    let mut attempts = 1;
    for second in 1..3600 {
        let woken = run.step(second, wake());
        let ticked = run.step(second, Input::Tick);
        if woken.is_empty() && ticked.is_empty() {
            continue;
        }
        attempts += 1;
        run.launch(second, 1, attempts);
        assert_eq!(
            run.meta(second, rejected(Timestamp::from_second(36_000).ok())),
            []
        );
        fail(&mut run, second);
    }
    assert!((4..10).contains(&attempts), "{attempts} attempts in an hour");
}

#[test]
fn a_wake_after_the_limit_is_over_takes_effect_at_once() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.meta(1, error(ErrorClass::RateLimit, "429")), []);
    fail(&mut run, 1);
    assert_eq!(run.step(2, wake()), [Action::ReadPrompt]);
    run.launch(2, 1, 2);
    assert_eq!(run.iteration(3, "hm"), [Action::ReadPrompt]);
    run.launch(3, 2, 1);
    assert_eq!(run.meta(4, error(ErrorClass::RateLimit, "429")), []);
    fail(&mut run, 4);
    assert_eq!(run.step(5, wake()), [Action::ReadPrompt]);
}
