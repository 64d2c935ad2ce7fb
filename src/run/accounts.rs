//! The accounts of a run's agents: asks their ledgers for places, reports limits to them, and sums what all runs cost.

use std::path::PathBuf;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::engine::{OwnWait, PlaceAnswer, PlaceEnd};
use crate::event::{LimitReport, QuotaFact, StartKind};
use crate::policy::{Account, Admission, Budgets, QuotaRules, Spend, Urgency};
use crate::store::{AccountName, Run, SpendEntry, StateDirectory, StoreError};

/// The accounts of a run and the rules for sharing them.
#[derive(Debug, Clone)]
pub struct RunAccounts {
    /// In the order of the agents. `None` if nothing is known about the account.
    pub of_agents: Vec<Option<AccountName>>,
    /// The names of the agents.
    pub agents: Vec<String>,
    pub rules: QuotaRules,
    pub budgets: Budgets,
    pub zone: TimeZone,
}

/// Something to do with the account of an agent.
#[derive(Debug)]
pub(super) enum AccountEffect {
    Request { agent: usize, urgency: Urgency },
    Release { agent: usize, end: PlaceEnd },
    Limit { agent: usize, report: LimitReport },
    Wait(OwnWait),
    Spend { agent: usize, usd: f64 },
}

/// Access to the ledgers.
pub(super) struct Accounts {
    state: StateDirectory,
    run: String,
    directory: PathBuf,
    project: PathBuf,
    own: RunAccounts,
}

impl Accounts {
    pub(super) fn new(run: &Run, own: RunAccounts) -> Self {
        Self {
            state: run.project().state().clone(),
            run: run.id().to_owned(),
            directory: run.directory().to_owned(),
            project: run.project().root().to_owned(),
            own,
        }
    }

    /// Asks for a place, and takes it. A ledger that cannot be used is an error only if the user has configured rules.
    pub(super) fn request(&self, agent: usize, urgency: Urgency) -> Result<PlaceAnswer, StoreError> {
        let spend = match self.own.budgets.is_set() {
            true => Some(self.spend()?),
            false => None,
        };
        let unlimited = PlaceAnswer {
            agent,
            admission: Admission::Start(StartKind::Normal),
            at: Timestamp::now(),
            spend,
        };
        let Some(name) = &self.own.of_agents[agent] else {
            return Ok(unlimited);
        };
        let decide = |account: &mut Account, at: Timestamp| {
            let admission = account.request(at, &self.run, &self.own.rules, urgency);
            let fact = match &admission {
                Admission::Start(start) => Some(QuotaFact::Started {
                    start: *start,
                    directory: self.directory.clone(),
                }),
                Admission::Wait(wait) => {
                    let reason = wait.cause.describe(&name.label());
                    let until = wait.cause.is_limit().then_some(wait.until);
                    let known = account.waiting().get(&self.run);
                    let is_known = known.is_some_and(|known| known.reason == reason && known.until == until);
                    (!is_known).then(|| self.waiting(reason, until))
                }
            };
            (
                fact.into_iter().collect(),
                PlaceAnswer {
                    agent,
                    admission,
                    at,
                    spend,
                },
            )
        };
        match self.state.ledger(name).update(&self.run, decide) {
            Ok(answer) => Ok(answer),
            Err(error) if self.has_rules() => Err(error),
            Err(error) => {
                tracing::warn!(%error, "the ledger of the account cannot be used");
                Ok(unlimited)
            }
        }
    }

    fn has_rules(&self) -> bool {
        self.own.rules.parallel.is_some() || self.own.rules.reserve.0 > 0
    }

    fn waiting(&self, reason: String, until: Option<Timestamp>) -> QuotaFact {
        QuotaFact::Waiting {
            directory: self.directory.clone(),
            reason,
            until,
        }
    }

    pub(super) fn release(&self, agent: usize, end: PlaceEnd) {
        self.report(
            agent,
            match end {
                PlaceEnd::Attempt(result) => QuotaFact::Ended { result },
                PlaceEnd::GaveUp => QuotaFact::WaitEnded,
            },
        );
    }

    pub(super) fn limit(&self, agent: usize, report: LimitReport) {
        self.report(agent, QuotaFact::Limit(report));
    }

    pub(super) fn wait(&self, wait: OwnWait) {
        self.report(wait.agent, self.waiting(wait.reason, wait.until));
    }

    /// A fact that is lost costs other runs at most a rejected request.
    fn report(&self, agent: usize, fact: QuotaFact) {
        if let Some(name) = &self.own.of_agents[agent] {
            let updated = self.state.ledger(name).update(&self.run, |_, _| (vec![fact], ()));
            crate::ok_or_log!(updated, "cannot write the ledger of the account");
        }
    }

    /// Adds to what all runs have cost; returns the sums if there are budgets.
    pub(super) fn add_spend(&self, agent: usize, usd: f64) -> Result<Option<Spend>, StoreError> {
        let account = match &self.own.of_agents[agent] {
            Some(name) => name.label(),
            None => AccountName::new(&self.own.agents[agent], None).label(),
        };
        let added = self.state.spending().add(SpendEntry {
            at: Timestamp::now(),
            account,
            project: self.project.clone(),
            usd,
        });
        if self.own.budgets.is_set() {
            added?;
            return self.spend().map(Some);
        }
        crate::ok_or_log!(added, "cannot store the cost");
        Ok(None)
    }

    fn spend(&self) -> Result<Spend, StoreError> {
        let (now, zone) = (Timestamp::now(), &self.own.zone);
        self.state.spending().totals(now, zone, &self.project)
    }
}
