//! Tests for accounts that several runs share, and for budgets over runs.

use super::*;
use crate::event::{AttemptResult, LimitReport, StartKind};
use crate::policy::{Admission, Percent, QuotaCause, QuotaWait, Spend, Urgency};

const HOUR: u64 = 3600;

fn shared() -> Policy {
    let mut rules = policy();
    rules.agents.rules[0].account = Some("fake (me)".into());
    rules
}

/// A run that asks for its first place.
fn asking(policy: Policy) -> TestRun {
    let mut run = TestRun::with(policy);
    run.step(0, Input::Started(Box::new(header())));
    assert_eq!(
        run.step(0, Input::Prompt(Ok("task".into()))),
        [request(0, Urgency::Normal)]
    );
    run
}

fn request(agent: usize, urgency: Urgency) -> Action {
    Action::RequestPlace { agent, urgency }
}

fn release(agent: usize, result: AttemptResult) -> Action {
    let end = PlaceEnd::Attempt(result);
    Action::ReleasePlace { agent, end }
}

fn answered(admission: Admission, spend: Option<Spend>) -> Input {
    let at = Timestamp::UNIX_EPOCH;
    Input::PlaceAnswered(PlaceAnswer {
        agent: 0,
        admission,
        at,
        spend,
    })
}

fn granted() -> Input {
    answered(Admission::Start(StartKind::Normal), None)
}

fn wait(seconds: u64, cause: QuotaCause) -> Input {
    let until = Timestamp::from_second(seconds.cast_signed()).unwrap();
    answered(Admission::Wait(QuotaWait { cause, until }), None)
}

fn limited() -> QuotaCause {
    QuotaCause::Limited { window: None }
}

fn parallel() -> QuotaCause {
    QuotaCause::Parallel { running: 3 }
}

fn waits(run: &TestRun) -> Vec<(u64, &str)> {
    let waits = run.emitted.iter().filter_map(|event| match event {
        RunEvent::Waiting {
            why: WaitReason::Quota,
            wait_ms,
            reason: Some(reason),
        } => Some((*wait_ms, reason.as_str())),
        _ => None,
    });
    waits.collect()
}

fn is_launch(actions: &[Action]) -> bool {
    matches!(actions, [.., Action::Launch { .. }])
}

#[test]
fn a_granted_place_launches_the_agent_and_its_end_releases_it() {
    let mut run = asking(shared());
    let launch = run.step(0, granted());
    assert!(is_launch(&launch) && launch.len() == 1, "{launch:?}");
    assert_eq!(
        run.iteration(9, "more to do"),
        [release(0, AttemptResult::Worked), Action::ReadPrompt]
    );
    assert_eq!(
        run.step(9, Input::Prompt(Ok("task".into()))),
        [request(0, Urgency::Normal)]
    );
    run.step(9, granted());
    assert_eq!(
        run.iteration(12, "LOOP_COMPLETE")[0],
        release(0, AttemptResult::Worked)
    );
}

#[test]
fn a_run_waits_for_the_account_with_the_reason_and_reads_the_prompt_again() {
    let mut run = asking(shared());
    assert_eq!(run.step(0, wait(60, limited())), []);
    assert_eq!(run.engine.deadline(), Some(secs(60)));
    assert_eq!(run.step(60, Input::Tick), [request(0, Urgency::Normal)]);
    assert_eq!(run.engine.deadline(), None, "the answer is pending");
    assert_eq!(run.step(60, wait(2, parallel())), []);
    assert_eq!(run.step(62, Input::Tick), [request(0, Urgency::Normal)]);
    assert_eq!(run.step(62, wait(2, parallel())), []);
    assert_eq!(run.step(64, Input::Tick), [request(0, Urgency::Normal)]);
    assert_eq!(run.step(64, granted()), [Action::ReadPrompt]);
    assert!(
        is_launch(&run.step(64, Input::Prompt(Ok("new task".into())))),
        "it has a place"
    );
    assert_eq!(
        waits(&run),
        [
            (60_000, "the usage limit of fake (me) is reached"),
            (0, "3 other runs use fake (me) (quota.parallel)"),
        ],
        "the second wait for other runs is not reported again"
    );
}

#[test]
fn the_time_of_the_wait_is_no_runtime() {
    let mut rules = shared();
    rules.limits.runtime = secs(100);
    let mut run = asking(rules);
    run.step(0, wait(HOUR, limited()));
    run.step(HOUR, Input::Tick);
    assert_eq!(run.step(HOUR, granted()), [Action::ReadPrompt]);
    assert!(is_launch(&run.step(HOUR, Input::Prompt(Ok("task".into())))));
}

#[test]
fn the_user_ends_the_wait() {
    let mut run = asking(shared());
    assert_eq!(run.step(0, wake()), [], "the answer is pending");
    assert_eq!(run.step(1, wait(HOUR, limited())), [request(0, Urgency::Now)]);
    let mut run = asking(shared());
    run.step(0, wait(HOUR, limited()));
    assert_eq!(run.step(5, wake()), [request(0, Urgency::Now)]);
    assert_eq!(run.step(5, granted()), [Action::ReadPrompt]);
}

#[test]
fn an_interrupt_during_the_wait_ends_the_run_and_the_registration() {
    let mut run = asking(shared());
    run.step(0, wait(HOUR, limited()));
    let end = PlaceEnd::GaveUp;
    let gave_up = Action::ReleasePlace { agent: 0, end };
    let over = Action::Finish(RunOutcome::Interrupted { by: Interrupt::Int });
    assert_eq!(run.step(5, stop_by(Interrupt::Int)), [gave_up, over]);
}

#[test]
fn a_rejection_is_reported_at_once_and_the_run_waits_for_its_own_limit() {
    let mut run = asking(shared());
    run.step(0, granted());
    let resets_at = Some(Timestamp::from_second(100).unwrap());
    let rejected = |limit: &str| Meta::RateLimit {
        status: RateLimitStatus::Rejected,
        resets_at,
        limit: Some(limit.into()),
        utilization: None,
    };
    let report = |window: &str| Action::ReportLimit {
        agent: 0,
        report: LimitReport {
            status: RateLimitStatus::Rejected,
            window: Some(window.into()),
            utilization: None,
            resets_at,
        },
    };
    assert_eq!(run.meta(1, rejected("five_hour")), [report("five_hour")]);
    assert_eq!(run.meta(1, rejected("five_hour")), [], "it is known");
    assert_eq!(run.meta(1, rejected("seven_day")), [report("seven_day")]);
    run.meta(2, finished(false));
    let ended = run.exit(2);
    assert_eq!(ended[0], release(0, AttemptResult::Limited));
    assert!(
        matches!(ended[1], Action::ReportWait(OwnWait { agent: 0, .. })),
        "{ended:?}"
    );
    assert_eq!(run.engine.deadline(), Some(secs(101)));
    assert_eq!(run.step(101, Input::Tick), [Action::ReadPrompt]);
    assert_eq!(
        run.step(101, Input::Prompt(Ok("task".into()))),
        [request(0, Urgency::Normal)]
    );
}

#[test]
fn a_limit_that_only_the_message_states_is_reported() {
    let mut run = asking(shared());
    run.step(0, granted());
    run.meta(1, error(ErrorClass::RateLimit, "429"));
    run.meta(2, finished(false));
    let ended = run.exit(2);
    assert!(
        matches!(ended[0], Action::ReportLimit { agent: 0, .. }),
        "{ended:?}"
    );
    assert_eq!(ended[1], release(0, AttemptResult::Limited));
}

#[test]
fn a_woken_run_does_not_wait_for_the_ledger_either() {
    let mut run = asking(shared());
    run.step(0, granted());
    run.meta(1, error(ErrorClass::RateLimit, "429"));
    run.meta(2, finished(false));
    run.exit(2);
    assert_eq!(run.step(3, wake()), [Action::ReadPrompt]);
    assert_eq!(
        run.step(3, Input::Prompt(Ok("task".into()))),
        [request(0, Urgency::Now)]
    );
}

#[test]
fn an_agent_that_fails_before_it_works_does_not_show_that_the_limit_is_over() {
    let mut run = asking(shared());
    run.step(0, granted());
    run.meta(1, error(ErrorClass::Network, "no connection"));
    run.meta(1, finished(false));
    assert_eq!(run.exit(2), [release(0, AttemptResult::Unknown)]);
    let mut run = asking(shared());
    run.step(0, granted());
    let error = "no such file".to_owned();
    assert_eq!(
        run.step(1, Input::CouldNotStart { error }),
        [release(0, AttemptResult::Unknown)]
    );
}

#[test]
fn a_late_reset_of_the_account_changes_the_agent_and_other_waits_do_not() {
    let mut rules = shared();
    rules.limits.runtime = secs(100 * HOUR);
    rules.agents.rules.push(agent("other"));
    rules.agents.fallback = vec![1];
    rules.agents.fallback_after = secs(600);
    let mut run = asking(rules.clone());
    let reserved = QuotaCause::Reserved {
        window: Some("five_hour".into()),
        utilization: 0.83,
        reserve: Percent(20),
    };
    assert_eq!(
        run.step(0, wait(600, reserved.clone())),
        [],
        "early enough to wait for"
    );
    let mut run = asking(rules.clone());
    assert_eq!(run.step(0, wait(HOUR, parallel())), [], "depends on other runs");
    let mut run = asking(rules);
    assert_eq!(run.step(0, wait(HOUR, reserved)), [Action::ReadPrompt]);
    let launch = run.step(0, Input::Prompt(Ok("task".into())));
    assert!(
        matches!(launch[..], [Action::Launch { agent: 1, .. }]),
        "{launch:?}"
    );
    assert_eq!(run.iteration(2 * HOUR, "more to do"), [Action::ReadPrompt]);
    assert_eq!(
        run.step(2 * HOUR, Input::Prompt(Ok("task".into()))),
        [request(0, Urgency::Normal)],
        "back to the first agent"
    );
}

fn budgeted() -> Policy {
    let mut rules = policy();
    rules.budgets.per_day_usd = Some(10.0);
    rules
}

fn spent(day_usd: f64) -> Option<Spend> {
    let project_usd = 0.0;
    Some(Spend { day_usd, project_usd })
}

fn day() -> RunLimit {
    RunLimit::DayCost { max_usd: 10.0 }
}

#[test]
fn a_day_whose_budget_is_used_up_starts_no_agent() {
    let start = Admission::Start(StartKind::Normal);
    let mut run = asking(budgeted());
    let mut ended = vec![release(0, AttemptResult::Unknown)];
    ended.append(&mut limit_reached(day()));
    assert_eq!(run.step(0, answered(start, spent(10.0))), ended);
}

#[test]
fn the_agent_is_stopped_when_all_runs_together_use_up_the_budget() {
    let start = Admission::Start(StartKind::Normal);
    let mut run = asking(budgeted());
    assert!(is_launch(&run.step(0, answered(start, spent(6.0)))));
    assert_eq!(run.spend(1, 1.5), []);
    // Another run has spent 2 dollars in the meantime.
    assert_eq!(run.step(1, Input::SpendRead(spent(9.5).unwrap())), []);
    assert_eq!(run.spend(2, 0.5), stop());
    assert_eq!(run.reported_usd, [1.5, 0.5]);
    run.exit(3);
    assert_eq!(
        *run.last_outcome(),
        IterationOutcome::LimitReached { limit: day() }
    );
}

#[test]
fn the_spending_of_others_stops_the_agent_too() {
    let start = Admission::Start(StartKind::Normal);
    let mut run = asking(budgeted());
    run.step(0, answered(start, spent(6.0)));
    assert_eq!(run.step(5, Input::SpendRead(spent(10.0).unwrap())), stop());
}

#[test]
fn every_cent_is_reported_once() {
    let start = Admission::Start(StartKind::Normal);
    let mut run = asking(shared());
    run.step(0, answered(start, None));
    run.spend(1, 0.01);
    run.spend(2, 0.06);
    run.spend(3, 0.02);
    let total = Usage {
        cost_usd: Usd::new(0.5),
        scope: UsageScope::Iteration,
        ..Usage::default()
    };
    run.step(4, Input::Transcript(TranscriptEvent::usage(total)));
    run.iteration(5, "more to do");
    let reported = run.reported_usd;
    assert!((reported.iter().sum::<f64>() - 0.5).abs() < 1e-9, "{reported:?}");
    assert_eq!(reported.len(), 2, "small amounts are not reported one by one");
}
