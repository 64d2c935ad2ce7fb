//! The state of an account, rebuilt from the lines of its ledger.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use super::{
    AFTER_RESET, ASK_AGAIN, Admission, CLOCK_TOLERANCE, MAX_TRUSTED_RESETS, PROBATION, QuotaCause,
    QuotaRules, QuotaWait, RESET_TOLERANCE, SPREAD, SPREAD_FOR, UNDATED_UTILIZATION, UNKNOWN_RESET, Urgency,
};
use crate::event::{AttemptResult, LimitReport, QuotaEntry, QuotaFact, RateLimitStatus, StartKind};

/// An account: its usage limits, and the runs that use it or wait for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Account {
    windows: BTreeMap<Option<String>, Window>,
    places: BTreeMap<String, Place>,
    waiting: BTreeMap<String, WaitingRun>,
    /// The time of the last entry.
    last_at: Option<Timestamp>,
    last_start: Option<Timestamp>,
    /// The start of the latest agent that worked.
    worked_since: Option<Timestamp>,
    /// When an agent worked for the first time after a reset.
    reopened_at: Option<Timestamp>,
    /// Rejections of requests without one that worked in between.
    rejections: u32,
}

/// A usage limit of an account.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Window {
    /// The used share, from 0 to 1, as it was last reported.
    pub utilization: Option<f64>,
    pub resets_at: Option<Timestamp>,
    /// When the state was last reported.
    pub reported_at: Timestamp,
    /// When the latest request was rejected, and when the next one is made.
    pub rejected: Option<Rejection>,
}

/// A rejected request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    pub at: Timestamp,
    pub until: Timestamp,
}

/// A run that uses an account.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub since: Timestamp,
    pub start: StartKind,
    pub directory: PathBuf,
}

/// A run that waits for an account.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingRun {
    pub since: Timestamp,
    pub directory: PathBuf,
    pub reason: String,
    pub until: Option<Timestamp>,
}

/// A limit that is in effect, or was until `until`.
struct Closed {
    until: Timestamp,
    cause: QuotaCause,
}

impl Account {
    /// The account after these entries.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a QuotaEntry>) -> Self {
        let mut account = Self::default();
        entries.into_iter().for_each(|entry| account.apply(entry));
        account
    }

    pub fn windows(&self) -> &BTreeMap<Option<String>, Window> {
        &self.windows
    }

    /// The runs that use the account, by id.
    pub fn places(&self) -> &BTreeMap<String, Place> {
        &self.places
    }

    /// The runs that wait for the account, by id.
    pub fn waiting(&self) -> &BTreeMap<String, WaitingRun> {
        &self.waiting
    }

    /// Until when no run may start an agent because a request was rejected.
    pub fn limited_until(&self, at: Timestamp) -> Option<Timestamp> {
        let rejections = self.windows.values().filter_map(|window| window.rejected);
        rejections
            .map(|rejection| rejection.until)
            .filter(|until| *until > at)
            .max()
    }

    /// Applies the next entry of the ledger.
    pub fn apply(&mut self, entry: &QuotaEntry) {
        let (at, run) = (entry.at, &entry.run);
        self.note_time(at);
        match &entry.fact {
            QuotaFact::Limit(report) => self.limit_reported(at, run, report),
            QuotaFact::Started { start, directory } => {
                self.waiting.remove(run);
                self.last_start = Some(at);
                let (start, directory) = (*start, directory.clone());
                let since = at;
                self.places.insert(
                    run.clone(),
                    Place {
                        since,
                        start,
                        directory,
                    },
                );
            }
            QuotaFact::Ended { result } => {
                let place = self.places.remove(run);
                if let (Some(place), AttemptResult::Worked) = (place, result) {
                    self.worked(at, &place);
                }
            }
            QuotaFact::Waiting {
                directory,
                reason,
                until,
            } => {
                let since = self.waiting.get(run).map_or(at, |waiting| waiting.since);
                let (directory, reason, until) = (directory.clone(), reason.clone(), *until);
                let waiting = WaitingRun {
                    since,
                    directory,
                    reason,
                    until,
                };
                self.waiting.insert(run.clone(), waiting);
            }
            QuotaFact::WaitEnded => {
                self.waiting.remove(run);
            }
        }
    }

    /// Removes a run that has died.
    pub fn forget(&mut self, run: &str) {
        self.places.remove(run);
        self.waiting.remove(run);
    }

    /// Whether this run may start an agent now.
    pub fn request(&mut self, at: Timestamp, run: &str, rules: &QuotaRules, urgency: Urgency) -> Admission {
        self.note_time(at);
        if urgency == Urgency::Now {
            return Admission::Start(StartKind::Forced);
        }
        let wait = |cause, until| Admission::Wait(QuotaWait { cause, until });
        let closed = self.closed(rules);
        let latest = closed.into_iter().max_by_key(|closed| closed.until);
        let reset = match latest {
            Some(Closed { until, cause }) if until > at => return wait(cause, until),
            Some(closed) => Some(closed.until),
            None => None,
        };
        let others = || self.places.iter().filter(|(other, _)| *other != run);
        let running = others().count();
        if rules.parallel.is_some_and(|parallel| running as u64 >= parallel) {
            return wait(QuotaCause::Parallel { running }, later(at, ASK_AGAIN));
        }
        if let Some(reset) = reset.filter(|reset| self.worked_since < Some(*reset)) {
            let first = others().filter(|(_, place)| place.since >= reset);
            match first.min_by_key(|(_, place)| place.since) {
                None => return Admission::Start(StartKind::First),
                Some((first, place)) if at < later(place.since, PROBATION) => {
                    let run = first.clone();
                    let until = later(at, ASK_AGAIN).min(later(place.since, PROBATION));
                    return wait(QuotaCause::First { run }, until);
                }
                // It has run long enough without a rejection.
                Some(_) => return self.spread(at),
            }
        }
        match self.reopened_at {
            Some(reopened) if at < later(reopened, SPREAD_FOR) => self.spread(at),
            Some(_) | None => Admission::Start(StartKind::Normal),
        }
    }

    /// Starts one run after the other.
    fn spread(&self, at: Timestamp) -> Admission {
        match self.last_start.map(|last| later(last, SPREAD)) {
            Some(until) if until > at => {
                let cause = QuotaCause::Spread;
                Admission::Wait(QuotaWait { cause, until })
            }
            Some(_) | None => Admission::Start(StartKind::Normal),
        }
    }

    /// The limits that are in effect, or were until a reset.
    fn closed(&self, rules: &QuotaRules) -> Vec<Closed> {
        let mut closed = Vec::new();
        for (name, window) in &self.windows {
            if let Some(rejection) = window.rejected {
                let window = name.clone();
                closed.push(Closed {
                    until: rejection.until.min(later(rejection.at, rules.longest_wait)),
                    cause: QuotaCause::Limited { window },
                });
            }
            let threshold = 1.0 - rules.reserve.share();
            if rules.reserve.0 > 0
                && let Some(utilization) = window.utilization.filter(|used| *used >= threshold - 1e-9)
            {
                let undated = later(window.reported_at, UNDATED_UTILIZATION);
                closed.push(Closed {
                    until: window
                        .resets_at
                        .map_or(undated, |reset| later(reset, AFTER_RESET)),
                    cause: QuotaCause::Reserved {
                        window: name.clone(),
                        utilization,
                        reserve: rules.reserve,
                    },
                });
            }
        }
        closed
    }

    fn limit_reported(&mut self, at: Timestamp, run: &str, report: &LimitReport) {
        let limited_until = self.limited_until(at);
        let window = self.windows.entry(report.window.clone()).or_default();
        window.reported_at = at;
        if report.resets_at.is_some() {
            window.resets_at = report.resets_at;
        }
        match report.status {
            RateLimitStatus::Allowed | RateLimitStatus::Warning => window.utilization = report.utilization,
            RateLimitStatus::Rejected => {
                window.utilization = report.utilization.or(window.utilization);
                // An agent that started before the limit was known shows nothing new.
                let started_before = self
                    .places
                    .get(run)
                    .is_some_and(|place| window.rejected.is_some_and(|known| place.since < known.at));
                if !started_before {
                    self.rejections = self.rejections.saturating_add(1);
                }
                let backoff = |rejections: u32| {
                    let factor = 2_u32.saturating_pow(rejections.saturating_sub(1));
                    later(at, UNKNOWN_RESET.0.saturating_mul(factor).min(UNKNOWN_RESET.1))
                };
                // The agent may take a while to report a reset that has just passed.
                let stated = report
                    .resets_at
                    .filter(|reset| later(*reset, RESET_TOLERANCE) > at);
                let until = match stated.map(|reset| later(reset.max(at), AFTER_RESET)) {
                    Some(stated) if self.rejections <= MAX_TRUSTED_RESETS => stated,
                    Some(stated) => stated.max(backoff(self.rejections - MAX_TRUSTED_RESETS)),
                    None => limited_until.unwrap_or_else(|| backoff(self.rejections)),
                };
                let known = window.rejected.filter(|_| started_before);
                let until = until.max(known.map_or(until, |known| known.until));
                window.rejected = Some(Rejection { at, until });
            }
        }
    }

    /// An agent worked: the limits that were reached before it started are over.
    fn worked(&mut self, at: Timestamp, place: &Place) {
        let mut reopened = false;
        for window in self.windows.values_mut() {
            let is_over = window.rejected.is_some_and(|rejection| match place.start {
                StartKind::Normal => place.since >= rejection.until,
                StartKind::First | StartKind::Forced => place.since > rejection.at,
            });
            if is_over {
                window.rejected = None;
            }
            let has_reset = window
                .resets_at
                .is_some_and(|reset| place.since >= reset && self.worked_since < Some(reset));
            reopened |= is_over || has_reset;
        }
        if reopened {
            self.reopened_at = Some(at);
            self.rejections = 0;
        }
        self.worked_since = self.worked_since.max(Some(place.since));
    }

    /// Shifts all times if the clock was set back, so that every wait keeps its length.
    fn note_time(&mut self, at: Timestamp) {
        let last = self.last_at.unwrap_or(at);
        let back = Duration::try_from(last.duration_since(at)).unwrap_or_default();
        if back <= CLOCK_TOLERANCE {
            self.last_at = Some(last.max(at));
            return;
        }
        self.last_at = Some(at);
        let shift = |time: &mut Timestamp| *time = time.checked_sub(back).unwrap_or(*time);
        for window in self.windows.values_mut() {
            window.resets_at.iter_mut().for_each(shift);
            shift(&mut window.reported_at);
            if let Some(rejection) = &mut window.rejected {
                shift(&mut rejection.at);
                shift(&mut rejection.until);
            }
        }
        self.places.values_mut().for_each(|place| shift(&mut place.since));
        for waiting in self.waiting.values_mut() {
            shift(&mut waiting.since);
            waiting.until.iter_mut().for_each(shift);
        }
        for time in [
            &mut self.last_start,
            &mut self.worked_since,
            &mut self.reopened_at,
        ] {
            time.iter_mut().for_each(shift);
        }
    }
}

fn later(at: Timestamp, wait: Duration) -> Timestamp {
    at.checked_add(wait).unwrap_or(Timestamp::MAX)
}
