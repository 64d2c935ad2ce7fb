//! The state of all accounts, for people and for the web page.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::{AccountName, StateDirectory, StoreError};
use crate::policy::Account;

/// The state of one account.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AccountReport {
    pub agent: String,
    /// `None` for the only account of this user.
    pub account: Option<String>,
    /// Until when runs wait because a request was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_until: Option<Timestamp>,
    pub windows: Vec<WindowReport>,
    /// The runs whose agents use the account now.
    pub running: Vec<RunningReport>,
    /// The runs that wait for the account.
    pub waiting: Vec<WaitingReport>,
    pub spent_today_usd: f64,
    /// The costs of the days that had any, with the newest day last.
    pub spent_by_day: BTreeMap<Date, f64>,
}

/// The state of one usage limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowReport {
    /// The name of the limit, if it has one.
    pub window: Option<String>,
    /// The used share, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    pub reported_at: Timestamp,
    /// Whether a request was rejected and no later one has worked.
    pub rejected: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunningReport {
    pub run: String,
    pub directory: PathBuf,
    pub since: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitingReport {
    pub run: String,
    pub directory: PathBuf,
    pub since: Timestamp,
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl StateDirectory {
    /// The state of all accounts. Changes no file.
    pub fn account_reports(&self, now: Timestamp, zone: &TimeZone) -> Result<Vec<AccountReport>, StoreError> {
        let mut spent = self.spending().by_account(zone)?;
        let mut reports = Vec::new();
        for name in self.accounts() {
            let account = self.ledger(&name).read()?;
            let days = spent.remove(&name.label()).unwrap_or_default();
            reports.push(report(name, &account, days, (now, zone)));
        }
        // Agents without an account that could be found out.
        for (agent, days) in spent {
            let name = AccountName::new(&agent, None);
            reports.push(report(name, &Account::default(), days, (now, zone)));
        }
        Ok(reports)
    }
}

fn report(
    name: AccountName,
    account: &Account,
    spent_by_day: BTreeMap<Date, f64>,
    (now, zone): (Timestamp, &TimeZone),
) -> AccountReport {
    let today = now.to_zoned(zone.clone()).date();
    let windows = account.windows().iter().map(|(window, state)| {
        let has_reset = state.resets_at.is_some_and(|reset| reset <= now);
        WindowReport {
            window: window.clone(),
            utilization: state.utilization.filter(|_| !has_reset),
            resets_at: state.resets_at.filter(|_| !has_reset),
            reported_at: state.reported_at,
            rejected: state.rejected.is_some_and(|rejection| rejection.until > now),
        }
    });
    let running = account.places().iter().map(|(run, place)| RunningReport {
        run: run.clone(),
        directory: place.directory.clone(),
        since: place.since,
    });
    let waiting = account.waiting().iter().map(|(run, waiting)| WaitingReport {
        run: run.clone(),
        directory: waiting.directory.clone(),
        since: waiting.since,
        reason: waiting.reason.clone(),
        until: waiting.until,
    });
    AccountReport {
        limited_until: account.limited_until(now),
        windows: windows.collect(),
        running: running.collect(),
        waiting: waiting.collect(),
        spent_today_usd: spent_by_day.get(&today).copied().unwrap_or_default(),
        spent_by_day,
        agent: name.agent().to_owned(),
        account: name.account().map(str::to_owned),
    }
}

impl WaitingReport {
    pub fn project(&self) -> Option<String> {
        project_of(&self.directory)
    }
}

/// The name of the project of a run directory: `projects/NAME-HASH/runs/ID`.
fn project_of(run: &Path) -> Option<String> {
    let project = run.parent()?.parent()?.file_name()?.to_str()?;
    Some(
        project
            .rsplit_once('-')
            .map_or(project, |(name, _)| name)
            .to_owned(),
    )
}
