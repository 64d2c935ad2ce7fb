//! Usage limits that are told in words: when they count, and until when they last.

use super::*;

fn resets_at(talk: &Talk) -> Option<String> {
    match talk.last_outcome() {
        IterationOutcome::RateLimited { resets_at, .. } => resets_at.map(|time| time.to_string()),
        other => panic!("not a rate limit: {other:?}"),
    }
}

const FAILED: ProcessEnd = ProcessEnd::Exited { code: 1 };

fn fails(talk: &mut Talk, seconds: u64) -> Vec<Action> {
    talk.say(
        seconds,
        Input::Exited {
            end: FAILED,
            swept: 0,
        },
    )
}

#[test]
fn a_limit_told_on_stderr_waits_until_its_stated_end_and_is_not_counted() {
    let mut talk = Talk::launched(policy());
    talk.say(1, Input::Stderr("You've hit your usage limit.".into()));
    talk.say(1, Input::Stderr("Try again at 2:00 AM.".into()));
    assert_eq!(fails(&mut talk, 10), []);
    assert_eq!(resets_at(&talk).as_deref(), Some("1970-01-01T02:00:00Z"));
    assert_eq!(
        talk.engine.deadline(),
        Some(secs(7201)),
        "a second later than stated"
    );
    assert_eq!(talk.say(7201, Input::Tick), [Action::ReadPrompt]);
    talk.launch(7201, 1, 2);
}

#[test]
fn the_users_zone_is_the_zone_of_a_time_without_one() {
    let mut rules = policy();
    rules.zone = jiff::tz::TimeZone::fixed(jiff::tz::Offset::constant(-2));
    let mut talk = Talk::launched(rules);
    talk.say(
        1,
        Input::Stderr("Error: You've hit your usage limit, resets 11pm".into()),
    );
    fails(&mut talk, 10);
    assert_eq!(resets_at(&talk).as_deref(), Some("1970-01-01T01:00:00Z"));
}

#[test]
fn an_error_event_of_no_known_class_may_tell_it_too() {
    let mut talk = Talk::launched(policy());
    let message = "You've hit your usage limit. Try again in 3h 12m.";
    assert_eq!(talk.meta(1, error(ErrorClass::Other, message)), []);
    assert_eq!(talk.meta(1, finished(false)), []);
    talk.exits(60);
    assert_eq!(resets_at(&talk).as_deref(), Some("1970-01-01T03:13:00Z"));
}

#[test]
fn a_limit_told_in_structure_may_leave_its_end_to_the_words() {
    let mut talk = Talk::launched(policy());
    assert_eq!(
        talk.meta(1, error(ErrorClass::RateLimit, "any words · resets 1am")),
        []
    );
    fails(&mut talk, 2);
    assert_eq!(resets_at(&talk).as_deref(), Some("1970-01-01T01:00:00Z"));
}

#[test]
fn an_overloaded_service_is_waited_for() {
    let mut talk = Talk::launched(policy());
    let overloaded = Meta::Error {
        class: ErrorClass::Overload,
        message: "Overloaded".into(),
        status: Some(529),
    };
    assert_eq!(talk.meta(1, overloaded), []);
    fails(&mut talk, 2);
    assert_eq!(resets_at(&talk), None);
    assert!(matches!(
        talk.told.last(),
        Some(RunEvent::Waiting {
            why: Pause::RateLimit,
            ..
        })
    ));
}

#[test]
fn a_limit_that_is_always_over_in_a_second_is_soon_waited_for_longer() {
    let mut talk = Talk::launched(policy());
    let mut waits = Vec::new();
    for attempt in 2..8 {
        talk.say(
            0,
            Input::Stderr("You've hit your usage limit, try again in 1s".into()),
        );
        fails(&mut talk, 0);
        waits.push(talk.engine.deadline().expect("a wait").as_secs());
        assert_eq!(talk.say(0, Input::WakeUp), [Action::ReadPrompt]);
        talk.launch(0, 1, attempt);
    }
    assert_eq!(waits[..3], [2, 2, 2]);
    assert!(waits[3] >= 48 && waits[4] >= 96 && waits[5] >= 192, "{waits:?}");
}

#[test]
fn the_same_words_mean_nothing_in_an_iteration_that_succeeded() {
    let mut talk = Talk::launched(policy());
    talk.say(1, Input::Stderr("You've hit your usage limit.".into()));
    assert_eq!(
        talk.meta(1, error(ErrorClass::Other, "429 Too Many Requests")),
        []
    );
    assert_eq!(talk.iteration(2, "Recovered.\nLOOP_COMPLETE"), complete());
}

#[test]
fn what_the_assistant_or_a_tool_says_is_no_failure_channel() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.agent_says(1, "You've hit your usage limit."), []);
    talk.say(1, Input::Stderr("panicked at src/main.rs".into()));
    fails(&mut talk, 2);
    assert!(matches!(talk.last_outcome(), IterationOutcome::Failed { .. }));
}

#[test]
fn a_failure_of_another_kind_is_not_explained_by_an_old_line() {
    let mut talk = Talk::launched(policy());
    talk.say(1, Input::Stderr("You've hit your usage limit.".into()));
    assert_eq!(talk.meta(1, error(ErrorClass::BadRequest, "no such model")), []);
    fails(&mut talk, 2);
    assert!(matches!(talk.last_outcome(), IterationOutcome::Failed { .. }));

    let mut talk = Talk::launched(policy());
    talk.say(1, Input::Stderr("You've hit your usage limit.".into()));
    for line in 0..20 {
        talk.say(1, Input::Stderr(format!("frame {line}")));
    }
    fails(&mut talk, 2);
    assert!(matches!(talk.last_outcome(), IterationOutcome::Failed { .. }));
}

#[test]
fn tickets_and_dependencies_fail_as_what_they_are() {
    for line in [
        "error[E0432]: unresolved import `ratelimit`",
        "RAL-17: 429 Too Many Requests is not handled",
        "429 Too Many Requests tests failed",
    ] {
        let mut talk = Talk::launched(policy());
        talk.say(1, Input::Stderr(line.into()));
        fails(&mut talk, 2);
        assert!(
            matches!(talk.last_outcome(), IterationOutcome::Failed { .. }),
            "{line}"
        );
    }
}

/// The deadline passed long ago, because nobody was awake to see it.
#[test]
fn a_machine_that_slept_through_the_wait_goes_on_when_it_wakes_and_its_sleep_is_no_runtime() {
    let mut rules = policy();
    rules.limits.runtime = secs(100);
    let mut talk = Talk::launched(rules);
    talk.say(
        1,
        Input::Stderr("You've hit your usage limit. Try again in 60s".into()),
    );
    fails(&mut talk, 2);
    let eight_hours = 8 * 3600;
    assert_eq!(talk.say(eight_hours, Input::Tick), [Action::ReadPrompt]);
    talk.launch(eight_hours, 1, 2);
    assert_eq!(talk.iteration(eight_hours + 90, "LOOP_COMPLETE"), complete());
}

/// It may take a while to go after it has told when its limit ends.
#[test]
fn a_limit_that_has_just_ended_is_over_and_one_of_yesterday_says_nothing() {
    let rejected_until = |second: i64| {
        let mut talk = Talk::launched(Policy {
            started_at: Timestamp::from_second(1_000_000).expect("a time"),
            ..policy()
        });
        let resets_at = Timestamp::from_second(1_000_000 + second).ok();
        let rejected = Meta::RateLimit {
            status: RateLimitStatus::Rejected,
            resets_at,
            limit: None,
        };
        assert_eq!(talk.meta(1, rejected), []);
        fails(&mut talk, 10);
        talk.engine.deadline().expect("a wait") - secs(10)
    };
    assert_eq!(rejected_until(12), secs(3));
    assert_eq!(rejected_until(8), secs(1));
    assert!(
        rejected_until(-80_000) > secs(30),
        "about a minute, as where nothing is said"
    );
}

#[test]
fn a_usage_limit_is_waited_out_and_the_same_iteration_runs_again_uncounted() {
    let mut rules = policy();
    rules.limits.runtime = secs(100);
    let mut talk = Talk::launched(rules);
    let resets_at = Some(Timestamp::from_second(5000).expect("a time"));
    assert_eq!(
        talk.meta(
            10,
            Meta::RateLimit {
                status: RateLimitStatus::Rejected,
                resets_at,
                limit: None
            }
        ),
        []
    );
    assert_eq!(talk.meta(10, finished(false)), []);
    assert_eq!(talk.exits(10), []);
    assert_eq!(
        *talk.last_outcome(),
        IterationOutcome::RateLimited {
            resets_at,
            message: String::new()
        }
    );
    assert_eq!(
        talk.engine.deadline(),
        Some(secs(5001)),
        "longer than max_runtime_seconds, which it does not use up"
    );
    assert_eq!(talk.say(5001, Input::Tick), [Action::ReadPrompt]);
    talk.launch(5001, 1, 2);
    assert_eq!(talk.iteration(5010, "LOOP_COMPLETE"), complete());
    assert!(matches!(
        talk.told.last(),
        Some(RunEvent::RunEnded { iterations: 1, .. })
    ));
}

#[test]
fn the_user_can_end_a_wait_early() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.meta(1, error(ErrorClass::RateLimit, "429")), []);
    assert_eq!(talk.meta(1, finished(false)), []);
    assert_eq!(talk.exits(1), []);
    assert!(
        talk.engine.deadline().is_some_and(|due| due >= secs(49)),
        "no stated reset: about a minute"
    );
    assert_eq!(talk.say(5, Input::WakeUp), [Action::ReadPrompt]);
    talk.launch(5, 1, 2);
}
