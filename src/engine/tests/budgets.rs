//! Money: when it is spent, and when nobody can know.

use super::*;

#[test]
fn a_budget_is_enforced_at_the_message_that_crosses_it() {
    let mut rules = policy();
    rules.limits.cost_usd = Some(0.05);
    let mut talk = Talk::launched(rules);
    for second in 1..5 {
        assert_eq!(talk.spends(second, 0.01), []);
    }
    assert_eq!(talk.spends(5, 0.01), stop());
    assert_eq!(talk.exits(6), limit_reached(Limit::Cost { max_usd: 0.05 }));
    match talk.told.last() {
        Some(RunEvent::RunEnded { usage, .. }) => {
            assert!((usage.cost_usd.unwrap_or(0.0) - 0.05).abs() < 1e-9)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_agent_that_has_given_its_result_is_not_stopped_for_what_it_cost() {
    let mut rules = policy();
    rules.limits.cost_usd = Some(0.05);
    let mut talk = Talk::launched(rules);
    assert_eq!(talk.agent_says(1, "LOOP_COMPLETE"), []);
    assert_eq!(talk.result(2), []);
    assert_eq!(talk.spends(2, 1.0), []);
    assert_eq!(talk.exits(3), complete());
}

#[test]
fn a_budget_is_enforced_by_priced_figures_too() {
    let mut rules = policy();
    rules.limits.cost_usd = Some(2.0);
    let price = Price {
        input: 1.0,
        output: 1.0,
        cache_read: None,
        cache_write: None,
    };
    rules.costs.prices = Some(Prices::new([("m".into(), price)]));
    let mut talk = Talk::launched(rules);
    let million = || {
        Input::Transcript(TranscriptEvent::usage(Usage {
            prompt_tokens: Some(1_000_000),
            completion_tokens: Some(0),
            model: Some("m".into()),
            ..Usage::default()
        }))
    };
    assert_eq!(talk.say(1, million()), []);
    assert_eq!(talk.say(2, million()), stop());
    assert_eq!(talk.exits(3), limit_reached(Limit::Cost { max_usd: 2.0 }));
}

#[test]
fn a_budget_without_any_figure_is_complained_about_once() {
    let mut rules = policy();
    rules.limits.cost_usd = Some(2.0);
    rules.costs.figures = CostFigures::Impossible { why: "it is".into() };
    let mut talk = Talk::launched(rules);
    let _ = talk.iteration(1, "going on");
    let told = talk
        .told
        .iter()
        .filter(|event| matches!(event, RunEvent::Notice { .. }));
    assert_eq!(told.count(), 1);

    let mut rules = policy();
    rules.limits.cost_usd = Some(2.0);
    let mut talk = Talk::launched(rules);
    for iteration in 1..=2 {
        let usage = Usage {
            total_tokens: Some(10),
            ..Usage::default()
        };
        assert_eq!(
            talk.say(iteration, Input::Transcript(TranscriptEvent::usage(usage))),
            []
        );
        assert_eq!(talk.iteration(iteration, "going on"), [Action::ReadPrompt]);
        talk.launch(iteration, iteration + 1, 1);
    }
    let told = talk
        .told
        .iter()
        .filter(|event| matches!(event, RunEvent::Notice { .. }));
    assert_eq!(told.count(), 1);
}
