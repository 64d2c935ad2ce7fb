//! Tests for cost budgets, including costs that are unknown.

use super::*;

#[test]
fn budget_stops_the_agent_when_it_is_exceeded() {
    let mut rules = policy();
    rules.limits.cost_usd = Some(0.05);
    let mut run = TestRun::launched(rules);
    for second in 1..5 {
        assert_eq!(run.spend(second, 0.01), []);
    }
    assert_eq!(run.spend(5, 0.01), stop());
    assert_eq!(run.exit(6), limit_reached(RunLimit::Cost { max_usd: 0.05 }));
    match run.emitted.last() {
        Some(RunEvent::RunEnded { usage, .. }) => {
            assert!((usage.cost_usd.unwrap_or_default().get() - 0.05).abs() < 1e-9)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn agent_with_a_result_is_not_stopped_by_the_budget() {
    let mut rules = policy();
    rules.limits.cost_usd = Some(0.05);
    let mut run = TestRun::launched(rules);
    assert_eq!(run.agent_message(1, "LOOP_COMPLETE"), []);
    assert_eq!(run.result(2), []);
    assert_eq!(run.spend(2, 1.0), []);
    assert_eq!(run.exit(3), complete());
}

#[test]
fn budget_applies_to_costs_from_the_price_list() {
    let mut rules = policy();
    rules.limits.cost_usd = Some(2.0);
    let price = Price {
        input: 1.0,
        output: 1.0,
        cache_read: None,
        cache_write: None,
    };
    rules.agents.rules[0].costs.prices = Some(Prices::new([("m".into(), price)]));
    let mut run = TestRun::launched(rules);
    let million = || {
        Input::Transcript(TranscriptEvent::usage(Usage {
            prompt_tokens: Some(1_000_000),
            completion_tokens: Some(0),
            model: Some("m".into()),
            ..Usage::default()
        }))
    };
    assert_eq!(run.step(1, million()), []);
    assert_eq!(run.step(2, million()), stop());
    assert_eq!(run.exit(3), limit_reached(RunLimit::Cost { max_usd: 2.0 }));
}

#[test]
fn unenforceable_budget_is_reported_once() {
    let mut rules = policy();
    rules.limits.cost_usd = Some(2.0);
    rules.agents.rules[0].costs.availability = CostAvailability::Unavailable {
        reason: "no cost".into(),
    };
    let mut run = TestRun::launched(rules);
    let _ = run.iteration(1, "more to do");
    let notices = run
        .emitted
        .iter()
        .filter(|event| matches!(event, RunEvent::Notice { .. }));
    assert_eq!(notices.count(), 1);

    let mut rules = policy();
    rules.limits.cost_usd = Some(2.0);
    let mut run = TestRun::launched(rules);
    for iteration in 1..=2 {
        let usage = Usage {
            total_tokens: Some(10),
            ..Usage::default()
        };
        assert_eq!(
            run.step(iteration, Input::Transcript(TranscriptEvent::usage(usage))),
            []
        );
        assert_eq!(run.iteration(iteration, "more to do"), [Action::ReadPrompt]);
        run.launch(iteration, iteration + 1, 1);
    }
    let notices = run
        .emitted
        .iter()
        .filter(|event| matches!(event, RunEvent::Notice { .. }));
    assert_eq!(notices.count(), 1);
}
