//! Agents whose sessions go on from one iteration to the next.

use super::*;

fn continuing() -> Talk {
    let mut policy = policy();
    policy.session = SessionRule::Continue;
    Talk::launched(policy)
}

fn session(id: &str) -> Meta {
    Meta::Session {
        session_id: id.into(),
        model: None,
        version: None,
    }
}

/// The session in which the next iteration is launched.
fn resumed(talk: &mut Talk, seconds: u64) -> Option<String> {
    match talk.say(seconds, Input::Prompt(Ok("task".into()))).pop() {
        Some(Action::Launch { session, .. }) => session,
        other => panic!("expected a launch: {other:?}"),
    }
}

fn session_usage(prompt_tokens: u64) -> Input {
    Input::Transcript(TranscriptEvent::usage(Usage {
        prompt_tokens: Some(prompt_tokens),
        scope: UsageScope::Session,
        ..Usage::default()
    }))
}

fn notices(talk: &Talk) -> usize {
    let notice = |event: &&RunEvent| matches!(event, RunEvent::Notice { .. });
    talk.told.iter().filter(notice).count()
}

#[test]
fn the_next_iteration_goes_on_in_the_last_session() {
    let mut talk = continuing();
    assert_eq!(talk.meta(1, session("abc")), []);
    assert_eq!(talk.iteration(2, "more to do"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut talk, 2).as_deref(), Some("abc"));
}

#[test]
fn a_fresh_run_never_resumes() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.meta(1, session("abc")), []);
    assert_eq!(talk.iteration(2, "more to do"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut talk, 2), None);
}

#[test]
fn a_nameless_or_dangerous_session_is_not_resumed_and_that_is_said_once() {
    let mut talk = continuing();
    assert_eq!(talk.meta(1, session("--dangerous")), []);
    assert_eq!(talk.iteration(2, "more"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut talk, 2), None);
    assert_eq!(talk.iteration(3, "more"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut talk, 3), None);
    assert_eq!(notices(&talk), 1);
}

#[test]
fn a_session_that_is_not_there_any_more_costs_no_iteration() {
    let mut talk = continuing();
    assert_eq!(talk.meta(1, session("abc")), []);
    assert_eq!(talk.iteration(2, "more"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut talk, 2).as_deref(), Some("abc"));
    let end = ProcessEnd::Exited { code: 1 };
    assert_eq!(talk.say(3, Input::Exited { end, swept: 0 }), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut talk, 3), None);
    assert_eq!(notices(&talk), 1);
    assert_eq!(talk.meta(4, session("def")), []);
    assert_eq!(talk.iteration(4, "more"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut talk, 4).as_deref(), Some("def"));
    let started: Vec<(u64, u64)> = talk
        .told
        .iter()
        .filter_map(|event| match event {
            RunEvent::IterationStarted {
                iteration, attempt, ..
            } => Some((*iteration, *attempt)),
            _ => None,
        })
        .collect();
    assert_eq!(started, [(1, 1), (2, 1), (2, 2), (3, 1)]);
}

#[test]
fn an_overloaded_service_does_not_cost_the_session() {
    let mut talk = continuing();
    assert_eq!(talk.meta(1, session("abc")), []);
    assert_eq!(talk.iteration(2, "more"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut talk, 2).as_deref(), Some("abc"));
    let error = Meta::Error {
        class: ErrorClass::Overload,
        message: "busy".into(),
        status: Some(529),
    };
    assert_eq!(talk.meta(3, error), []);
    let end = ProcessEnd::Exited { code: 1 };
    assert_eq!(talk.say(3, Input::Exited { end, swept: 0 }), []);
    assert_eq!(talk.say(80, Input::Tick), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut talk, 80).as_deref(), Some("abc"));
}

#[test]
fn what_a_session_used_before_is_not_counted_again() {
    let mut talk = continuing();
    for (second, total) in [(1, 1000), (2, 2500), (3, 4500)] {
        assert_eq!(talk.meta(second, session("abc")), []);
        assert_eq!(talk.say(second, session_usage(total)), []);
        assert_eq!(talk.iteration(second, "more"), [Action::ReadPrompt]);
        assert_eq!(resumed(&mut talk, second).as_deref(), Some("abc"));
    }
    let used: Vec<Option<u64>> = talk
        .told
        .iter()
        .filter_map(|event| match event {
            RunEvent::IterationEnded { usage, .. } => Some(usage.tokens()),
            _ => None,
        })
        .collect();
    assert_eq!(used, [Some(1000), Some(1500), Some(2000)]);
}
