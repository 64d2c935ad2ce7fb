//! Tests for runs in which hats work with agents of their own.

use super::*;
use crate::engine::hats::tests::hat;

/// The planner works with the run's agent, the reviewer with another one.
fn team() -> Policy {
    let mut rules = policy();
    rules.hats = Hats::new(vec![
        hat("planner", &["task.start", "*"], &["plan.ready"]),
        hat("reviewer", &["plan.ready"], &["review.done"]),
    ])
    .unwrap();
    rules.agents.rules.push(agent("codex (o5)"));
    rules.agents.by_hat = [("planner".to_owned(), 0), ("reviewer".to_owned(), 1)].into();
    rules
}

/// Launches the next iteration; returns its agent and the session that it resumes.
fn launched(run: &mut TestRun, seconds: u64) -> (usize, Option<String>) {
    match run.step(seconds, Input::Prompt(Ok("task".into()))).pop() {
        Some(Action::Launch { agent, session, .. }) => (agent, session),
        other => panic!("expected a launch: {other:?}"),
    }
}

fn started(policy: Policy) -> TestRun {
    let mut run = TestRun::with(policy);
    run.step(0, Input::Started(Box::new(header())));
    run
}

fn session(id: &str) -> Meta {
    Meta::Session {
        session_id: id.into(),
        model: None,
        version: None,
    }
}

fn publishes(topic: &str) -> String {
    format!("<event topic=\"{topic}\">go</event>")
}

#[test]
fn each_hat_works_with_its_own_agent() {
    let mut run = started(team());
    assert_eq!(launched(&mut run, 0), (0, None));
    assert_eq!(run.iteration(1, &publishes("plan.ready")), [Action::ReadPrompt]);
    assert_eq!(launched(&mut run, 1), (1, None));
    assert_eq!(run.iteration(2, &publishes("review.done")), [Action::ReadPrompt]);
    assert_eq!(launched(&mut run, 2), (0, None));
    let labels = run.emitted.iter().filter_map(|event| match event {
        RunEvent::IterationStarted { agent, .. } => agent.as_deref(),
        _ => None,
    });
    assert_eq!(labels.collect::<Vec<_>>(), ["fake", "codex (o5)", "fake"]);
}

#[test]
fn an_agent_never_receives_the_session_of_another_one() {
    let mut rules = team();
    rules.session = Session::Continue;
    let mut run = started(rules.clone());
    assert_eq!(launched(&mut run, 0), (0, None));
    run.meta(1, session("plan-1"));
    run.iteration(1, &publishes("plan.ready"));
    assert_eq!(
        launched(&mut run, 1),
        (1, None),
        "the reviewer has no session yet"
    );
    run.meta(2, session("review-1"));
    run.iteration(2, &publishes("review.done"));
    assert_eq!(launched(&mut run, 2), (0, Some("plan-1".into())));
    run.iteration(3, &publishes("plan.ready"));

    // The same holds after a restart.
    let mut restored = RestoredRun::default();
    for (seq, event) in (1..).zip(run.emitted) {
        let at = Timestamp::UNIX_EPOCH;
        restored.fold(&crate::event::Record::new(seq, at, event));
    }
    let mut engine = Engine::resume(rules, restored);
    let (header, changed) = (Box::new(header()), Vec::new());
    engine.step(secs(3), Input::Resumed { header, changed });
    let launch = engine.step(secs(3), Input::Prompt(Ok("task".into()))).pop();
    assert!(
        matches!(&launch, Some(Action::Launch { agent: 1, session: Some(id), .. }) if id == "review-1"),
        "{launch:?}"
    );
}

#[test]
fn a_resumed_run_with_another_agent_starts_a_new_session() {
    let mut rules = policy();
    rules.session = Session::Continue;
    let mut run = TestRun::launched(rules.clone());
    run.meta(1, session("abc"));
    run.iteration(1, "more to do");
    let mut restored = RestoredRun::default();
    for (seq, event) in (1..).zip(run.emitted) {
        let at = Timestamp::UNIX_EPOCH;
        restored.fold(&crate::event::Record::new(seq, at, event));
    }
    rules.agents = Agents::single(agent("codex"));
    let mut engine = Engine::resume(rules, restored);
    let (header, changed) = (Box::new(header()), Vec::new());
    engine.step(secs(3), Input::Resumed { header, changed });
    let launch = engine.step(secs(3), Input::Prompt(Ok("task".into()))).pop();
    assert!(
        matches!(&launch, Some(Action::Launch { session: None, .. })),
        "{launch:?}"
    );
}
