//! Conversations of several runs with one account.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::event::{AttemptResult, LimitReport, QuotaEntry, QuotaFact, RateLimitStatus};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds.cast_signed()).unwrap()
}

fn rules() -> QuotaRules {
    QuotaRules {
        reserve: Percent(0),
        parallel: None,
        longest_wait: Duration::from_secs(8 * 3600),
    }
}

/// An account and its ledger.
#[derive(Default)]
struct Ledger {
    account: Account,
    entries: Vec<QuotaEntry>,
}

impl Ledger {
    fn add(&mut self, seconds: u64, run: &str, fact: QuotaFact) {
        let (at, run) = (at(seconds), run.to_owned());
        let entry = QuotaEntry { at, run, fact };
        self.account.apply(&entry);
        self.entries.push(entry);
        assert_eq!(
            self.account,
            Account::of(&self.entries),
            "the ledger has the whole state"
        );
    }

    fn ask(&mut self, seconds: u64, run: &str, rules: &QuotaRules) -> Admission {
        self.account.request(at(seconds), run, rules, Urgency::Normal)
    }

    /// Requests a place and takes it.
    fn start(&mut self, seconds: u64, run: &str) -> StartKind {
        match self.ask(seconds, run, &rules()) {
            Admission::Start(start) => {
                let directory = run.into();
                self.add(seconds, run, QuotaFact::Started { start, directory });
                start
            }
            Admission::Wait(wait) => panic!("{run} waits: {wait:?}"),
        }
    }

    /// Requests a place that is not available; returns the cause and the time to ask again.
    fn wait(&mut self, seconds: u64, run: &str) -> (QuotaCause, i64) {
        match self.ask(seconds, run, &rules()) {
            Admission::Start(start) => panic!("{run} starts: {start:?}"),
            Admission::Wait(QuotaWait { cause, until }) => (cause, (until - at(0)).get_seconds()),
        }
    }

    fn end(&mut self, seconds: u64, run: &str, result: AttemptResult) {
        self.add(seconds, run, QuotaFact::Ended { result });
    }

    fn limit(&mut self, seconds: u64, run: &str, report: LimitReport) {
        self.add(seconds, run, QuotaFact::Limit(report));
    }

    fn rejected(&mut self, seconds: u64, run: &str, resets: Option<u64>) {
        self.limit(
            seconds,
            run,
            report(RateLimitStatus::Rejected, "five_hour", None, resets),
        );
        self.end(seconds, run, AttemptResult::Limited);
    }
}

fn report(
    status: RateLimitStatus,
    window: &str,
    utilization: Option<f64>,
    resets: Option<u64>,
) -> LimitReport {
    LimitReport {
        status,
        window: Some(window.into()),
        utilization,
        resets_at: resets.map(at),
    }
}

fn limited() -> QuotaCause {
    let window = Some("five_hour".into());
    QuotaCause::Limited { window }
}

fn first(run: &str) -> QuotaCause {
    QuotaCause::First { run: run.into() }
}

#[test]
fn a_rejection_pauses_all_runs_and_after_the_reset_one_goes_first() {
    let mut ledger = Ledger::default();
    for run in ["a", "b", "c", "d"] {
        assert_eq!(ledger.start(0, run), StartKind::Normal);
    }
    ledger.rejected(10, "a", Some(100));
    assert_eq!(ledger.wait(11, "a"), (limited(), 101));
    assert_eq!(
        ledger.wait(11, "e"),
        (limited(), 101),
        "also a run that starts now"
    );
    ledger.rejected(12, "b", Some(100));
    ledger.end(13, "c", AttemptResult::Worked);
    assert_eq!(
        ledger.wait(14, "c"),
        (limited(), 101),
        "it had started before the limit"
    );
    assert_eq!(ledger.start(101, "e"), StartKind::First);
    assert_eq!(ledger.wait(101, "a"), (first("e"), 103));
    assert_eq!(ledger.wait(130, "b"), (first("e"), 132));
    ledger.end(140, "e", AttemptResult::Worked);
    assert_eq!(ledger.start(140, "a"), StartKind::Normal);
    assert_eq!(ledger.wait(140, "b"), (QuotaCause::Spread, 142));
    assert_eq!(ledger.start(142, "b"), StartKind::Normal);
    assert_eq!(ledger.wait(143, "c"), (QuotaCause::Spread, 144));
    assert_eq!(ledger.start(144, "c"), StartKind::Normal);
    ledger.start(200, "f");
    assert_eq!(ledger.start(200, "g"), StartKind::Normal, "normal again");
}

#[test]
fn a_first_run_that_is_limited_again_costs_the_others_nothing() {
    let mut ledger = Ledger::default();
    ledger.start(0, "a");
    ledger.rejected(1, "a", Some(100));
    assert_eq!(ledger.start(101, "b"), StartKind::First);
    ledger.rejected(102, "b", Some(500));
    assert_eq!(ledger.wait(103, "a"), (limited(), 501));
    assert_eq!(ledger.start(501, "a"), StartKind::First);
}

#[test]
fn the_next_run_goes_first_when_the_first_one_dies_or_fails() {
    let mut ledger = Ledger::default();
    ledger.start(0, "a");
    ledger.rejected(1, "a", Some(100));
    assert_eq!(ledger.start(101, "b"), StartKind::First);
    ledger.account.forget("b");
    assert_eq!(
        ledger.account.request(at(102), "c", &rules(), Urgency::Normal),
        Admission::Start(StartKind::First)
    );
    let directory = "c".into();
    let started = QuotaFact::Started {
        start: StartKind::First,
        directory,
    };
    ledger.account.apply(&QuotaEntry {
        at: at(102),
        run: "c".into(),
        fact: started,
    });
    let result = AttemptResult::Unknown;
    let ended = QuotaFact::Ended { result };
    ledger.account.apply(&QuotaEntry {
        at: at(103),
        run: "c".into(),
        fact: ended,
    });
    assert_eq!(
        ledger.account.request(at(104), "a", &rules(), Urgency::Normal),
        Admission::Start(StartKind::First)
    );
}

#[test]
fn a_first_run_that_works_for_a_minute_does_not_hold_up_the_others() {
    let mut ledger = Ledger::default();
    ledger.start(0, "a");
    ledger.rejected(1, "a", Some(100));
    ledger.start(101, "b");
    assert_eq!(ledger.wait(160, "a"), (first("b"), 161));
    assert_eq!(ledger.start(161, "a"), StartKind::Normal);
    assert_eq!(ledger.wait(162, "c"), (QuotaCause::Spread, 163));
}

#[test]
fn two_windows_in_one_answer_close_the_account_until_the_later_reset() {
    let mut ledger = Ledger::default();
    ledger.start(0, "a");
    ledger.limit(
        1,
        "a",
        report(RateLimitStatus::Rejected, "seven_day", None, Some(9000)),
    );
    ledger.limit(
        1,
        "a",
        report(RateLimitStatus::Rejected, "five_hour", None, Some(300)),
    );
    ledger.end(1, "a", AttemptResult::Limited);
    let window = Some("seven_day".into());
    assert_eq!(ledger.wait(400, "b"), (QuotaCause::Limited { window }, 9001));
    assert_eq!(ledger.start(9001, "b"), StartKind::First);
    ledger.end(9010, "b", AttemptResult::Worked);
    assert_eq!(ledger.account.limited_until(at(0)), None, "both are over");
}

#[test]
fn the_reserve_is_not_used() {
    let mut ledger = Ledger::default();
    let rules = QuotaRules {
        reserve: Percent(20),
        ..rules()
    };
    let allowed = |used, window| report(RateLimitStatus::Allowed, window, Some(used), Some(1000));
    ledger.start(0, "a");
    ledger.limit(1, "a", allowed(0.79, "five_hour"));
    assert_eq!(ledger.ask(2, "b", &rules), Admission::Start(StartKind::Normal));
    ledger.limit(3, "a", allowed(0.8, "five_hour"));
    ledger.limit(3, "a", allowed(0.1, "seven_day"));
    let Admission::Wait(wait) = ledger.ask(4, "b", &rules) else {
        panic!("it uses the reserve")
    };
    assert_eq!(wait.until, at(1001));
    assert_eq!(
        wait.cause.describe("claude"),
        "80% of the five_hour limit of claude is used, and 20% is reserved (quota.reserve)"
    );
    ledger.end(5, "a", AttemptResult::Worked);
    assert_eq!(ledger.ask(1001, "b", &rules), Admission::Start(StartKind::First));
    assert_eq!(
        ledger.ask(6, "c", &self::rules()),
        Admission::Start(StartKind::Normal),
        "no reserve, no wait"
    );
}

#[test]
fn at_most_as_many_agents_as_allowed_run() {
    let mut ledger = Ledger::default();
    let rules = QuotaRules {
        parallel: Some(2),
        ..rules()
    };
    ledger.start(0, "a");
    assert_eq!(
        ledger.ask(1, "a", &rules),
        Admission::Start(StartKind::Normal),
        "its own place"
    );
    ledger.start(1, "b");
    let Admission::Wait(wait) = ledger.ask(2, "c", &rules) else {
        panic!("three agents run")
    };
    assert_eq!(
        (wait.cause, wait.until),
        (QuotaCause::Parallel { running: 2 }, at(4))
    );
    ledger.account.forget("b");
    assert_eq!(
        ledger.ask(4, "c", &rules),
        Admission::Start(StartKind::Normal),
        "it has died"
    );
}

#[test]
fn a_limit_without_a_stated_reset_is_tried_at_growing_intervals() {
    let mut ledger = Ledger::default();
    let mut now = 0;
    for wait in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
        ledger.start(now, "a");
        ledger.rejected(now, "a", None);
        assert_eq!(ledger.wait(now, "b"), (limited(), (now + wait).cast_signed()));
        now += wait;
    }
    ledger.start(now, "a");
    ledger.end(now, "a", AttemptResult::Worked);
    ledger.rejected(now + 5, "a", None);
    assert_eq!(ledger.wait(now + 5, "b"), (limited(), (now + 65).cast_signed()));
}

#[test]
fn an_agent_that_always_states_an_early_reset_is_not_tried_at_that_pace() {
    let mut ledger = Ledger::default();
    let mut now = 0;
    for wait in [2, 2, 2, 60, 120] {
        ledger.start(now, "a");
        ledger.rejected(now, "a", Some(now + 1));
        assert_eq!(ledger.wait(now, "b").1, (now + wait).cast_signed());
        now += wait;
    }
}

#[test]
fn the_user_can_end_every_wait_and_a_distant_reset_is_tried_early() {
    let mut ledger = Ledger::default();
    ledger.start(0, "a");
    ledger.rejected(0, "a", Some(1_000_000));
    let forced = ledger.account.request(at(1), "b", &rules(), Urgency::Now);
    assert_eq!(forced, Admission::Start(StartKind::Forced));
    assert_eq!(ledger.wait(1, "a"), (limited(), 8 * 3600));
    assert_eq!(ledger.start(8 * 3600, "a"), StartKind::First);
    ledger.end(8 * 3600 + 1, "a", AttemptResult::Worked);
    assert_eq!(
        ledger.start(8 * 3600 + 3, "b"),
        StartKind::Normal,
        "the limit was lifted early"
    );
}

#[test]
fn a_clock_that_is_set_back_changes_the_length_of_no_wait() {
    let mut ledger = Ledger::default();
    ledger.start(10_000, "a");
    ledger.rejected(10_000, "a", Some(10_100));
    assert_eq!(ledger.wait(10_040, "b"), (limited(), 10_101));
    // An hour back: 60 seconds are left.
    assert_eq!(ledger.wait(6_440, "b"), (limited(), 6_501));
    let waiting = QuotaFact::Waiting {
        directory: "b".into(),
        reason: "limit".into(),
        until: None,
    };
    ledger.entries.clear();
    ledger.account.apply(&QuotaEntry {
        at: at(6_440),
        run: "b".into(),
        fact: waiting,
    });
    assert_eq!(ledger.start_unchecked(6_501, "b"), StartKind::First);
}

impl Ledger {
    /// Like `start`, for a ledger whose entries are not complete.
    fn start_unchecked(&mut self, seconds: u64, run: &str) -> StartKind {
        match self.ask(seconds, run, &rules()) {
            Admission::Start(start) => start,
            Admission::Wait(wait) => panic!("{run} waits: {wait:?}"),
        }
    }
}

/// What happens to a simulated run after it has started an agent.
#[derive(Debug, Clone, Copy)]
enum Attempt {
    Works { seconds: u64 },
    Dies,
    FailsToStart,
}

fn attempt() -> impl Strategy<Value = Attempt> {
    prop_oneof![
        4 => (1_u64..200).prop_map(|seconds| Attempt::Works { seconds }),
        1 => Just(Attempt::Dies),
        1 => Just(Attempt::FailsToStart),
    ]
}

/// Runs that share an account, and a provider that rejects all requests in some periods.
struct Simulation {
    ledger: Ledger,
    rules: QuotaRules,
    /// Begin and end of each period in which requests are rejected.
    periods: Vec<(u64, u64)>,
    /// Whether the nth rejection states its reset.
    states_reset: [bool; 4],
    now: u64,
    /// When the agent of a run ends.
    running: BTreeMap<usize, (u64, Attempt)>,
    /// When a run asks for a place.
    asking: BTreeMap<usize, u64>,
    attempts: std::vec::IntoIter<Attempt>,
    rejected: usize,
    /// The last reset after which no request has worked.
    unproven: Option<u64>,
}

impl Simulation {
    /// Advances to the next event; false if there is none.
    fn step(&mut self) -> bool {
        let earliest = |times: &mut dyn Iterator<Item = (usize, u64)>| times.map(|(run, at)| (at, run)).min();
        let ask = earliest(&mut self.asking.iter().map(|(run, at)| (*run, *at)));
        let end = earliest(&mut self.running.iter().map(|(run, (at, _))| (*run, *at)));
        match (ask, end) {
            (None, None) => return false,
            (ask, Some((at, run))) if ask.is_none_or(|ask| at <= ask.0) => {
                self.now = self.now.max(at);
                self.end(run);
            }
            (Some((at, run)), _) => {
                self.now = self.now.max(at);
                self.ask(run);
            }
            (None, Some(_)) => unreachable!("covered by the second arm"),
        }
        true
    }

    /// The agent of a run ends, or the run dies.
    fn end(&mut self, run: usize) {
        let (_, attempt) = self.running.remove(&run).unwrap();
        let (now, name) = (self.now, run.to_string());
        let since = self.ledger.account.places()[&name].since;
        let period = self.periods.iter().find(|(from, to)| (*from..*to).contains(&now));
        match (attempt, period) {
            (Attempt::Dies, _) => return self.ledger.end(now, &name, AttemptResult::Unknown),
            (Attempt::FailsToStart, _) => self.ledger.end(now, &name, AttemptResult::Unknown),
            (Attempt::Works { .. }, Some((_, to))) => {
                self.rejected += 1;
                let stated = self.states_reset[self.rejected % 4].then_some(*to);
                self.ledger.rejected(now, &name, stated);
                let until = self.ledger.account.limited_until(at(now)).unwrap();
                self.unproven = u64::try_from((until - at(0)).get_seconds()).ok();
            }
            (Attempt::Works { .. }, None) => {
                self.unproven.take_if(|reset| since >= at(*reset));
                self.ledger.end(now, &name, AttemptResult::Worked);
            }
        }
        self.asking.insert(run, now);
    }

    fn ask(&mut self, run: usize) {
        let (now, name) = (self.now, run.to_string());
        match self.ledger.ask(now, &name, &self.rules) {
            Admission::Start(start) => {
                self.check_start();
                let directory = name.clone().into();
                self.ledger
                    .add(now, &name, QuotaFact::Started { start, directory });
                self.asking.remove(&run);
                match self.attempts.next() {
                    Some(attempt @ Attempt::Works { seconds }) => {
                        self.running.insert(run, (now + seconds, attempt));
                    }
                    Some(attempt) => {
                        self.running.insert(run, (now, attempt));
                    }
                    // The run is over.
                    None => self.ledger.end(now, &name, AttemptResult::Unknown),
                }
            }
            Admission::Wait(wait) => {
                assert!(wait.until > at(now), "a wait of no length: {wait:?}");
                let until = (wait.until - at(0)).get_seconds();
                self.asking.insert(run, u64::try_from(until).unwrap());
            }
        }
    }

    fn check_start(&self) {
        let places = self.ledger.account.places();
        let running = places.len() as u64;
        assert!(self.rules.parallel.is_none_or(|parallel| running < parallel));
        if let Some(reset) = self.unproven {
            assert!(
                self.now >= reset,
                "started at {}, limited until {reset}",
                self.now
            );
            let since = places.values().map(|place| place.since);
            let first = since.filter(|since| *since >= at(reset)).min();
            let is_unproven = first.is_some_and(|first| at(self.now) < first + PROBATION);
            assert!(!is_unproven, "two runs after a reset");
        }
    }
}

proptest! {
    /// No agent starts while the account is known to be limited, never more than `parallel` at the same time, only one
    /// after a reset until it has worked, and every run gets its turn.
    #[test]
    fn no_agent_starts_while_the_account_is_closed(
        limits in proptest::collection::vec((1_u64..2000, 1_u64..3000), 0..6),
        attempts in proptest::collection::vec(attempt(), 1..80),
        parallel in proptest::option::of(1_u64..4),
        runs in 1_usize..8,
        states_reset in any::<[bool; 4]>(),
    ) {
        let mut begin = 0;
        let periods = limits.into_iter().map(|(gap, length)| {
            let from = begin + gap;
            begin = from + length;
            (from, begin)
        });
        let mut simulation = Simulation {
            ledger: Ledger::default(),
            rules: QuotaRules { parallel, ..rules() },
            periods: periods.collect(),
            states_reset,
            now: 0,
            running: BTreeMap::new(),
            asking: (0..runs).map(|run| (run, 0)).collect(),
            attempts: attempts.into_iter(),
            rejected: 0,
            unproven: None,
        };
        let mut steps = 0;
        while simulation.step() {
            steps += 1;
            prop_assert!(steps < 20_000, "the runs do not end");
        }
    }
}
