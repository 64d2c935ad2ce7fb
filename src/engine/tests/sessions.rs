//! Tests for agent sessions that continue across iterations.

use super::*;
use crate::event::Record;

fn continuing() -> TestRun {
    let mut policy = policy();
    policy.session = Session::Continue;
    TestRun::launched(policy)
}

fn session(id: &str) -> Meta {
    Meta::Session {
        session_id: id.into(),
        model: None,
        version: None,
    }
}

/// Launches the next iteration; returns the session that it resumes.
fn resumed(run: &mut TestRun, seconds: u64) -> Option<String> {
    match run.step(seconds, Input::Prompt(Ok("task".into()))).pop() {
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

fn notices(run: &TestRun) -> usize {
    let notice = |event: &&RunEvent| matches!(event, RunEvent::Notice { .. });
    run.emitted.iter().filter(notice).count()
}

#[test]
fn next_iteration_resumes_the_last_session() {
    let mut run = continuing();
    assert_eq!(run.meta(1, session("abc")), []);
    assert_eq!(run.iteration(2, "more to do"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut run, 2).as_deref(), Some("abc"));
}

#[test]
fn fresh_session_rule_never_resumes() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.meta(1, session("abc")), []);
    assert_eq!(run.iteration(2, "more to do"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut run, 2), None);
}

#[test]
fn invalid_session_id_is_not_resumed_and_reported_once() {
    let mut run = continuing();
    assert_eq!(run.meta(1, session("--dangerous")), []);
    assert_eq!(run.iteration(2, "more"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut run, 2), None);
    assert_eq!(run.iteration(3, "more"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut run, 3), None);
    assert_eq!(notices(&run), 1);
}

#[test]
fn lost_session_does_not_count_as_an_iteration() {
    let mut run = continuing();
    assert_eq!(run.meta(1, session("abc")), []);
    assert_eq!(run.iteration(2, "more"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut run, 2).as_deref(), Some("abc"));
    let end = ProcessEnd::Exited { code: 1 };
    assert_eq!(
        run.step(
            3,
            Input::AgentEnded {
                end: end.into(),
                swept: 0
            }
        ),
        [Action::ReadPrompt]
    );
    assert_eq!(resumed(&mut run, 3), None);
    assert_eq!(notices(&run), 1);
    assert_eq!(run.meta(4, session("def")), []);
    assert_eq!(run.iteration(4, "more"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut run, 4).as_deref(), Some("def"));
    let started: Vec<(u64, u64)> = run
        .emitted
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
fn overloaded_service_keeps_the_session() {
    let mut run = continuing();
    assert_eq!(run.meta(1, session("abc")), []);
    assert_eq!(run.iteration(2, "more"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut run, 2).as_deref(), Some("abc"));
    let error = Meta::Error {
        class: ErrorClass::Overload,
        message: "busy".into(),
        status: Some(529),
    };
    assert_eq!(run.meta(3, error), []);
    let end = ProcessEnd::Exited { code: 1 };
    assert_eq!(
        run.step(
            3,
            Input::AgentEnded {
                end: end.into(),
                swept: 0
            }
        ),
        []
    );
    assert_eq!(run.step(80, Input::Tick), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut run, 80).as_deref(), Some("abc"));
}

#[test]
fn earlier_usage_of_a_session_is_not_counted_again() {
    let mut run = continuing();
    for (second, total) in [(1, 1000), (2, 2500), (3, 4500)] {
        assert_eq!(run.meta(second, session("abc")), []);
        assert_eq!(run.step(second, session_usage(total)), []);
        assert_eq!(run.iteration(second, "more"), [Action::ReadPrompt]);
        assert_eq!(resumed(&mut run, second).as_deref(), Some("abc"));
    }
    let used: Vec<Option<u64>> = run
        .emitted
        .iter()
        .filter_map(|event| match event {
            RunEvent::IterationEnded { usage, .. } => Some(usage.tokens()),
            _ => None,
        })
        .collect();
    assert_eq!(used, [Some(1000), Some(1500), Some(2000)]);
    let emitted: Vec<(Option<u64>, UsageScope)> = run
        .emitted
        .iter()
        .filter_map(|event| match event {
            RunEvent::Transcript {
                event: TranscriptEvent::Usage { usage },
                ..
            } => Some((usage.tokens(), usage.scope)),
            _ => None,
        })
        .collect();
    assert_eq!(
        emitted,
        [1000, 1500, 2000].map(|tokens| (Some(tokens), UsageScope::Iteration))
    );
}

#[test]
fn resumed_run_subtracts_the_usage_of_its_session() {
    let mut run = continuing();
    assert_eq!(run.meta(1, session("abc")), []);
    assert_eq!(run.step(1, session_usage(1000)), []);
    assert_eq!(run.iteration(1, "more"), [Action::ReadPrompt]);
    assert_eq!(resumed(&mut run, 1).as_deref(), Some("abc"));
    assert_eq!(run.step(2, session_usage(1400)), []);
    let mut restored = RestoredRun::default();
    for (seq, event) in run.emitted.iter().enumerate() {
        restored.fold(&Record {
            chain: None,
            seq: seq as u64 + 1,
            at: Timestamp::UNIX_EPOCH,
            event: event.clone(),
        });
    }
    assert_eq!(restored.used().tokens(), Some(1400));
    let mut policy = policy();
    policy.session = Session::Continue;
    let mut engine = Engine::resume(policy, restored);
    let _ = engine.step(
        Duration::ZERO,
        Input::Resumed {
            header: Box::new(header()),
            changed: Vec::new(),
        },
    );
    let _ = engine.step(Duration::ZERO, Input::Prompt(Ok("task".into())));
    let emitted = engine.step(Duration::ZERO, session_usage(2000));
    assert!(
        matches!(&emitted[..], [Action::Emit(RunEvent::Transcript { event: TranscriptEvent::Usage { usage }, .. })]
            if usage.tokens() == Some(600)),
        "{emitted:?}"
    );
}
