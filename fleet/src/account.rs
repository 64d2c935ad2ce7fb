//! `AccountState::step`: which tasks of an account may run. Pure: it reads no clock, and its state can be serialized.
//!
//! The first usage limit pauses all tasks of the account. After the reset one task goes first; when it works, the others follow
//! one by one.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Time between a stated reset and the first task.
const AFTER_RESET: Duration = Duration::from_secs(5);
/// How long the first task must work before the others follow.
const PROBATION: Duration = Duration::from_secs(60);
/// Time between two of the others.
const STAGGER: Duration = Duration::from_secs(2);
/// First and longest wait if no reset is stated.
const UNKNOWN_RESET: (Duration, Duration) = (Duration::from_secs(300), Duration::from_secs(3600));

/// What happens to an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum AccountInput {
    /// A task wants to start.
    Wanted {
        task: String,
    },
    /// A task has ended, or gave its place back.
    Released {
        task: String,
    },
    /// A task has reached the usage limit, and gave its place back.
    Limited {
        task: String,
        resets_in: Option<Duration>,
    },
    /// A task has ended an iteration.
    Worked {
        task: String,
    },
    /// The user knows that the limit is gone.
    Resumed,
    Tick,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AccountAction {
    Grant {
        task: String,
    },
    /// Ask a task to stop after its iteration.
    Pause {
        task: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AccountState {
    max_parallel: usize,
    waiting: VecDeque<String>,
    working: BTreeSet<String>,
    limit: Limit,
    /// Limits without a stated reset, or of a scout, in a row.
    limits_in_a_row: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Limit {
    None,
    /// No task starts before this time.
    Until(Duration),
    /// One task tries whether the limit is gone; the others follow at this time.
    Scout {
        task: String,
        until: Duration,
    },
    /// The next task may start at this time.
    Stagger(Duration),
}

impl AccountState {
    pub(crate) fn new(max_parallel: usize) -> Self {
        Self {
            max_parallel: max_parallel.max(1),
            waiting: VecDeque::new(),
            working: BTreeSet::new(),
            limit: Limit::None,
            limits_in_a_row: 0,
        }
    }

    /// `at` is the time since the account's workflow started.
    #[must_use]
    pub(crate) fn step(&mut self, at: Duration, input: AccountInput) -> Vec<AccountAction> {
        let mut actions = Vec::new();
        match input {
            AccountInput::Wanted { task } => {
                if !self.working.contains(&task) && !self.waiting.contains(&task) {
                    self.waiting.push_back(task);
                } else if self.working.contains(&task) {
                    // The grant was lost.
                    actions.push(AccountAction::Grant { task });
                }
            }
            AccountInput::Released { task } => self.release(at, &task),
            AccountInput::Limited { task, resets_in } => self.limited(at, task, resets_in, &mut actions),
            AccountInput::Worked { task } => self.worked(at, &task),
            AccountInput::Resumed => {
                self.limit = Limit::None;
                self.limits_in_a_row = 0;
            }
            AccountInput::Tick => {}
        }
        self.pass_time(at);
        self.grant(at, &mut actions);
        actions
    }

    /// When `Tick` is due.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        match &self.limit {
            _ if self.waiting.is_empty() => None,
            Limit::None => None,
            Limit::Until(due) | Limit::Stagger(due) | Limit::Scout { until: due, .. } => Some(*due),
        }
    }

    /// Whether all tasks wait for the reset.
    pub(crate) fn is_limited(&self) -> bool {
        matches!(self.limit, Limit::Until(_))
    }

    pub(crate) fn working(&self) -> usize {
        self.working.len()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn release(&mut self, at: Duration, task: &str) {
        self.working.remove(task);
        self.waiting.retain(|waiting| waiting != task);
        if let Limit::Scout { task: scout, .. } = &self.limit
            && scout == task
        {
            // The next task is the scout.
            self.limit = Limit::Until(at);
        }
    }

    fn limited(
        &mut self,
        at: Duration,
        task: String,
        resets_in: Option<Duration>,
        actions: &mut Vec<AccountAction>,
    ) {
        self.working.remove(&task);
        self.limits_in_a_row += 1;
        let wait = resets_in.map_or_else(|| unknown_wait(self.limits_in_a_row), |wait| wait + AFTER_RESET);
        let was_limited = self.is_limited();
        let until = match self.limit {
            // Another window may reset later.
            Limit::Until(before) => before.max(at + wait),
            _ => at + wait,
        };
        self.limit = Limit::Until(until);
        if !was_limited {
            let pause = |task: &String| AccountAction::Pause { task: task.clone() };
            actions.extend(self.working.iter().map(pause));
        }
        if !self.waiting.contains(&task) {
            self.waiting.push_front(task);
        }
    }

    fn worked(&mut self, at: Duration, task: &str) {
        if let Limit::Scout { task: scout, .. } = &self.limit
            && scout == task
        {
            self.limits_in_a_row = 0;
            self.limit = Limit::Stagger(at);
        }
    }

    fn pass_time(&mut self, at: Duration) {
        match &self.limit {
            Limit::Scout { until, .. } if *until <= at => self.limit = Limit::Stagger(at),
            Limit::Stagger(_) if self.waiting.is_empty() => self.limit = Limit::None,
            _ => {}
        }
    }

    fn grant(&mut self, at: Duration, actions: &mut Vec<AccountAction>) {
        while self.working.len() < self.max_parallel {
            let may_start = match &self.limit {
                Limit::None => true,
                Limit::Until(due) | Limit::Stagger(due) => *due <= at,
                Limit::Scout { .. } => false,
            };
            if !may_start {
                return;
            }
            let Some(task) = self.waiting.pop_front() else {
                return;
            };
            self.limit = match &self.limit {
                Limit::None => Limit::None,
                Limit::Stagger(_) => Limit::Stagger(at + STAGGER),
                Limit::Until(_) | Limit::Scout { .. } => Limit::Scout {
                    task: task.clone(),
                    until: at + PROBATION,
                },
            };
            self.working.insert(task.clone());
            actions.push(AccountAction::Grant { task });
        }
    }
}

fn unknown_wait(limits: u32) -> Duration {
    let (first, longest) = UNKNOWN_RESET;
    first
        .saturating_mul(1 << limits.saturating_sub(1).min(8))
        .min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn wanted(task: &str) -> AccountInput {
        AccountInput::Wanted { task: task.into() }
    }

    fn grant(task: &str) -> AccountAction {
        AccountAction::Grant { task: task.into() }
    }

    fn pause(task: &str) -> AccountAction {
        AccountAction::Pause { task: task.into() }
    }

    fn limited(task: &str, seconds: u64) -> AccountInput {
        let resets_in = Some(secs(seconds));
        AccountInput::Limited {
            task: task.into(),
            resets_in,
        }
    }

    fn worked(task: &str) -> AccountInput {
        AccountInput::Worked { task: task.into() }
    }

    #[test]
    fn the_first_limit_pauses_all_and_after_the_reset_one_goes_first() {
        let mut account = AccountState::new(3);
        for task in ["a", "b", "c"] {
            assert_eq!(account.step(secs(0), wanted(task)), [grant(task)]);
        }
        assert_eq!(account.step(secs(0), wanted("d")), []);
        assert_eq!(
            account.step(secs(10), limited("b", 100)),
            [pause("a"), pause("c")]
        );
        assert_eq!(
            account.step(secs(11), limited("a", 90)),
            [],
            "only the first one pauses the others"
        );
        assert_eq!(
            account.step(secs(12), AccountInput::Released { task: "c".into() }),
            []
        );
        assert_eq!(account.step(secs(12), wanted("c")), []);
        assert_eq!(account.deadline(), Some(secs(115)));
        assert_eq!(account.step(secs(114), AccountInput::Tick), []);
        assert_eq!(
            account.step(secs(115), AccountInput::Tick),
            [grant("a")],
            "the scout"
        );
        assert_eq!(account.step(secs(116), AccountInput::Tick), []);
        assert_eq!(account.step(secs(120), worked("a")), [grant("b")]);
        assert_eq!(account.deadline(), Some(secs(122)));
        assert_eq!(account.step(secs(122), AccountInput::Tick), [grant("d")]);
        assert_eq!(account.step(secs(124), AccountInput::Tick), [], "three at most");
    }

    #[test]
    fn a_scout_that_is_limited_again_costs_the_others_nothing() {
        let mut account = AccountState::new(2);
        let _ = account.step(secs(0), wanted("a"));
        let _ = account.step(secs(0), wanted("b"));
        let _ = account.step(secs(1), limited("a", 10));
        let _ = account.step(secs(2), limited("b", 10));
        assert_eq!(account.step(secs(17), AccountInput::Tick), [grant("b")]);
        assert_eq!(account.step(secs(18), limited("b", 10)), []);
        assert_eq!(account.step(secs(33), AccountInput::Tick), [grant("b")]);
        assert_eq!(
            account.step(secs(33) + PROBATION, AccountInput::Tick),
            [grant("a")]
        );
    }

    #[test]
    fn a_scout_that_ends_is_followed_by_another_scout() {
        let mut account = AccountState::new(4);
        for task in ["a", "b", "c"] {
            let _ = account.step(secs(0), wanted(task));
        }
        for task in ["a", "b", "c"] {
            let _ = account.step(secs(1), limited(task, 10));
        }
        assert_eq!(account.step(secs(16), AccountInput::Tick), [grant("c")]);
        let over = AccountInput::Released { task: "c".into() };
        assert_eq!(account.step(secs(17), over), [grant("b")]);
    }

    #[test]
    fn without_a_stated_reset_the_wait_doubles_up_to_an_hour() {
        let waits: Vec<u64> = (1..=6).map(|limits| unknown_wait(limits).as_secs()).collect();
        assert_eq!(waits, [300, 600, 1200, 2400, 3600, 3600]);
    }

    #[test]
    fn in_any_order_no_task_starts_while_the_account_is_limited_and_all_start_in_the_end() {
        for seed in 0..500_u64 {
            let mut account = AccountState::new(3);
            let mut number = seed;
            let mut next = |limit: u64| {
                number = number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (number >> 33) % limit
            };
            let (mut at, mut working, mut limited_until) = (secs(0), BTreeSet::new(), secs(0));
            for _ in 0..60 {
                at += secs(next(20));
                let task = format!("t{}", next(6));
                let input = match next(4) {
                    0 | 1 => AccountInput::Wanted { task },
                    2 if working.remove(&task) => {
                        let wait = secs(next(50));
                        limited_until = limited_until.max(at + wait);
                        AccountInput::Limited {
                            task,
                            resets_in: Some(wait),
                        }
                    }
                    3 if working.remove(&task) => AccountInput::Released { task },
                    _ => AccountInput::Tick,
                };
                for action in account.step(at, input) {
                    if let AccountAction::Grant { task } = action {
                        assert!(
                            at >= limited_until || working.contains(&task),
                            "seed {seed}: {task} at {at:?}"
                        );
                        working.insert(task);
                        assert!(working.len() <= 3, "seed {seed}");
                    }
                }
            }
            for _ in 0..1000 {
                let mut granted = Vec::new();
                for task in std::mem::take(&mut working) {
                    granted.extend(account.step(at, AccountInput::Released { task }));
                }
                if let Some(due) = account.deadline() {
                    at = at.max(due);
                    granted.extend(account.step(at, AccountInput::Tick));
                }
                for action in granted {
                    if let AccountAction::Grant { task } = action {
                        working.insert(task);
                    }
                }
            }
            assert_eq!(account.waiting(), 0, "seed {seed}");
        }
    }
}
