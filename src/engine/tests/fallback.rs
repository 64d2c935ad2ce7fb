//! Tests for agents that take the place of one that cannot work.

use super::*;
use crate::event::{AgentChangeReason, Record};
use proptest::prelude::*;

const FIVE_HOURS: u64 = 5 * 3600;

/// Claude, with codex and opencode as fallbacks.
fn three_agents() -> Policy {
    let mut rules = policy();
    rules.limits.runtime = secs(1_000_000);
    rules.agents = Agents {
        rules: vec![agent("claude"), agent("codex"), agent("opencode")],
        by_hat: std::collections::BTreeMap::new(),
        fallback: vec![1, 2],
        fallback_after: secs(600),
    };
    rules
}

fn started(policy: Policy) -> TestRun {
    let mut run = TestRun::with(policy);
    run.step(0, Input::Started(Box::new(header())));
    run
}

/// Answers the request for the prompt; returns the agent that is launched, unless the run waits.
fn launched(run: &mut TestRun, seconds: u64) -> Option<usize> {
    match run.step(seconds, Input::Prompt(Ok("task".into()))).pop() {
        Some(Action::Launch { agent, .. }) => Some(agent),
        None => None,
        other => panic!("unexpected: {other:?}"),
    }
}

fn limited(run: &mut TestRun, seconds: u64, resets_at: u64) -> Vec<Action> {
    run.meta(
        seconds,
        Meta::RateLimit {
            status: RateLimitStatus::Rejected,
            resets_at: Some(Timestamp::from_second(resets_at.cast_signed()).unwrap()),
            limit: None,
            utilization: None,
        },
    );
    run.meta(seconds, finished(false));
    run.exit(seconds)
}

fn not_logged_in(run: &mut TestRun, seconds: u64) -> Vec<Action> {
    run.meta(seconds, error(ErrorClass::Auth, "please log in"));
    run.meta(seconds, finished(false));
    run.exit(seconds)
}

fn changes(run: &TestRun) -> Vec<(&str, &str, AgentChangeReason)> {
    let changes = run.emitted.iter().filter_map(|event| match event {
        RunEvent::AgentChanged { from, to, why, .. } => Some((from.as_str(), to.as_str(), *why)),
        _ => None,
    });
    changes.collect()
}

#[test]
fn a_late_reset_changes_the_agent_and_the_reset_changes_it_back() {
    let mut run = started(three_agents());
    assert_eq!(launched(&mut run, 0), Some(0));
    assert_eq!(limited(&mut run, 10, FIVE_HOURS), [Action::ReadPrompt], "no wait");
    assert_eq!(launched(&mut run, 10), Some(1));
    assert_eq!(run.iteration(60, "more to do"), [Action::ReadPrompt]);
    assert_eq!(launched(&mut run, 60), Some(1), "still limited");
    assert_eq!(run.iteration(FIVE_HOURS + 2, "more to do"), [Action::ReadPrompt]);
    assert_eq!(
        launched(&mut run, FIVE_HOURS + 2),
        Some(0),
        "back to the first agent"
    );
    assert_eq!(
        changes(&run),
        [
            ("claude", "codex", AgentChangeReason::Limit),
            ("codex", "claude", AgentChangeReason::Available),
        ]
    );
    let attempts = run.emitted.iter().filter_map(|event| match event {
        RunEvent::IterationStarted {
            iteration, attempt, ..
        } => Some((*iteration, *attempt)),
        _ => None,
    });
    assert_eq!(attempts.collect::<Vec<_>>(), [(1, 1), (1, 2), (2, 1), (3, 1)]);
}

#[test]
fn an_early_reset_is_waited_for() {
    let mut run = started(three_agents());
    assert_eq!(launched(&mut run, 0), Some(0));
    assert_eq!(limited(&mut run, 10, 600), []);
    assert_eq!(run.engine.deadline(), Some(secs(601)));
    assert_eq!(run.step(601, Input::Tick), [Action::ReadPrompt]);
    assert_eq!(launched(&mut run, 601), Some(0));
    assert_eq!(changes(&run), []);
}

#[test]
fn a_failed_task_never_changes_the_agent() {
    let mut run = started(three_agents());
    launched(&mut run, 0);
    run.meta(1, error(ErrorClass::Other, "the tests fail"));
    run.meta(1, finished(false));
    run.exit(1);
    let due = run.engine.deadline().unwrap();
    assert_eq!(run.step_at(due, Input::Tick), [Action::ReadPrompt]);
    assert_eq!(launched(&mut run, due.as_secs() + 1), Some(0));
}

#[test]
fn when_all_agents_are_limited_the_earliest_reset_is_waited_for() {
    let mut run = started(three_agents());
    launched(&mut run, 0);
    limited(&mut run, 1, FIVE_HOURS);
    assert_eq!(launched(&mut run, 1), Some(1));
    limited(&mut run, 2, 7200);
    assert_eq!(launched(&mut run, 2), Some(2));
    assert_eq!(limited(&mut run, 3, 10_000), [Action::ReadPrompt]);
    assert_eq!(launched(&mut run, 3), None);
    assert_eq!(run.engine.deadline(), Some(secs(7201)));
    assert_eq!(run.step(7201, Input::Tick), [Action::ReadPrompt]);
    assert_eq!(launched(&mut run, 7201), Some(1), "codex resets first");
}

#[test]
fn an_agent_that_is_not_logged_in_is_replaced_and_the_iteration_repeated() {
    let mut run = started(three_agents());
    launched(&mut run, 0);
    assert_eq!(not_logged_in(&mut run, 1), [Action::ReadPrompt]);
    assert_eq!(launched(&mut run, 1), Some(1));
    assert_eq!(run.iteration(2, "LOOP_COMPLETE"), complete());
    assert_eq!(
        changes(&run),
        [("claude", "codex", AgentChangeReason::NotLoggedIn)]
    );
    assert!(matches!(
        run.emitted.last(),
        Some(RunEvent::RunEnded { iterations: 1, .. })
    ));
}

#[test]
fn a_run_whose_agents_are_all_logged_out_ends() {
    let mut run = started(three_agents());
    for agent in 0..3 {
        assert_eq!(launched(&mut run, 1), Some(agent));
        let next = not_logged_in(&mut run, 1);
        let ended = matches!(next[..], [Action::Finish(RunOutcome::AuthRequired { .. })]);
        assert_eq!(ended, agent == 2, "{next:?}");
    }
}

#[test]
fn a_missing_program_is_replaced_in_the_next_iteration() {
    let mut run = started(three_agents());
    launched(&mut run, 0);
    assert_eq!(run.step(1, Input::ProgramMissing), []);
    let error = "not found".to_owned();
    run.step(1, Input::CouldNotStart { error });
    let due = run.engine.deadline().unwrap();
    run.step_at(due, Input::Tick);
    assert_eq!(launched(&mut run, 60), Some(1));
    assert_eq!(
        changes(&run),
        [("claude", "codex", AgentChangeReason::ProgramMissing)]
    );
}

#[test]
fn wake_tries_the_limited_agents_at_once() {
    let mut rules = three_agents();
    rules.agents.fallback = vec![1];
    let mut run = started(rules);
    launched(&mut run, 0);
    limited(&mut run, 1, FIVE_HOURS);
    launched(&mut run, 1);
    limited(&mut run, 2, 7200);
    assert_eq!(launched(&mut run, 2), None);
    assert_eq!(run.step(100, wake()), [Action::ReadPrompt]);
    assert_eq!(launched(&mut run, 100), Some(0));
}

#[test]
fn a_resumed_run_continues_with_the_replacement() {
    let mut run = started(three_agents());
    launched(&mut run, 0);
    limited(&mut run, 10, FIVE_HOURS);
    for killed_before_the_change in [true, false] {
        if !killed_before_the_change {
            assert_eq!(launched(&mut run, 10), Some(1));
        }
        let mut restored = RestoredRun::default();
        for (seq, event) in (1..).zip(&run.emitted) {
            let (at, event) = (Timestamp::UNIX_EPOCH, event.clone());
            restored.fold(&Record {
                seq,
                at,
                chain: None,
                event,
            });
        }
        let mut again = TestRun {
            engine: Engine::resume(three_agents(), restored),
            emitted: Vec::new(),
            reported_usd: Vec::new(),
        };
        let (header, changed) = (Box::new(header()), Vec::new());
        assert_eq!(
            again.step(20, Input::Resumed { header, changed }),
            [Action::ReadPrompt],
            "{killed_before_the_change}"
        );
        assert_eq!(launched(&mut again, 20), Some(1), "{killed_before_the_change}");
    }
}

/// What an attempt of the simulated agents leads to.
#[derive(Debug, Clone, Copy)]
enum Attempted {
    Works,
    Fails,
    Limited { resets_in: u64 },
    LoggedOut,
    Missing,
}

fn attempted() -> impl Strategy<Value = Attempted> {
    prop_oneof![
        3 => Just(Attempted::Works),
        1 => Just(Attempted::Fails),
        3 => (1_u64..40_000).prop_map(|resets_in| Attempted::Limited { resets_in }),
        1 => Just(Attempted::LoggedOut),
        1 => Just(Attempted::Missing),
    ]
}

proptest! {
    /// No agent is launched while its limit is known to hold, or after it was found to be logged out or missing while
    /// another agent could work; and every run ends.
    #[test]
    fn a_limited_agent_is_never_launched(attempts in proptest::collection::vec(attempted(), 1..60)) {
        let mut rules = three_agents();
        rules.limits.iterations = 20;
        let limit_wait = rules.limits.limit_wait.as_secs();
        let mut run = started(rules);
        let (mut at, mut limited_until, mut unusable) = (0_u64, [0_u64; 3], [false; 3]);
        let mut attempts = attempts.into_iter();
        let mut steps = 0;
        'run: loop {
            steps += 1;
            prop_assert!(steps < 1000, "the run does not end");
            let Some(agent) = launched(&mut run, at) else {
                let due = run.engine.deadline().expect("a run that waits has a deadline");
                at = due.as_secs() + 1;
                let next = run.step(at, Input::Tick);
                prop_assert_eq!(&next[..], &[Action::ReadPrompt][..]);
                continue;
            };
            prop_assert!(at >= limited_until[agent], "agent {} at {}: {:?}", agent, at, limited_until);
            prop_assert!(!unusable[agent] || unusable.iter().all(|unusable| *unusable));
            at += 1;
            let next = match attempts.next().unwrap_or(Attempted::Works) {
                Attempted::Works => run.iteration(at, "more to do"),
                Attempted::Fails => {
                    run.meta(at, finished(false));
                    run.exit(at)
                }
                Attempted::Limited { resets_in } => {
                    limited_until[agent] = at + resets_in.min(limit_wait);
                    limited(&mut run, at, at + resets_in)
                }
                Attempted::LoggedOut => {
                    unusable[agent] = true;
                    not_logged_in(&mut run, at)
                }
                Attempted::Missing => {
                    unusable[agent] = true;
                    run.step(at, Input::ProgramMissing);
                    run.step(at, Input::CouldNotStart { error: "gone".into() })
                }
            };
            match next.last() {
                Some(Action::ReadPrompt) => {}
                Some(Action::Finish(_)) => break 'run,
                None => {
                    let due = run.engine.deadline().expect("a run that waits has a deadline");
                    at = at.max(due.as_secs() + 1);
                    match run.step(at, Input::Tick).last() {
                        Some(Action::ReadPrompt) => {}
                        Some(Action::Finish(_)) => break 'run,
                        other => prop_assert!(false, "{other:?}"),
                    }
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}
