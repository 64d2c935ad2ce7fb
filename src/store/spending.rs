//! What the runs of a user have cost, per day, account and project.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::ledger::LockedFile;
use super::{StateDirectory, StoreError};
use crate::policy::Spend;

/// A line of the file: the cost of an attempt, or a part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpendEntry {
    pub at: Timestamp,
    /// The agent and its account, for the user.
    pub account: String,
    /// The root of the project.
    pub project: PathBuf,
    pub usd: f64,
}

/// What the runs of this user have cost.
#[derive(Debug, Clone)]
pub struct Spending {
    file: LockedFile,
}

impl StateDirectory {
    pub fn spending(&self) -> Spending {
        Spending {
            file: LockedFile::new(self, "spend"),
        }
    }
}

impl Spending {
    pub fn add(&self, entry: SpendEntry) -> Result<(), StoreError> {
        let mut locked = self.file.lock()?;
        locked.append(&[entry])?;
        locked.shorten(sums)
    }

    /// The cost of all runs of this day, and of all runs of the project.
    pub fn totals(&self, now: Timestamp, zone: &TimeZone, project: &Path) -> Result<Spend, StoreError> {
        let today = date(now, zone);
        let mut totals = Spend::default();
        for entry in self.entries()? {
            if date(entry.at, zone) == today {
                totals.day_usd += entry.usd;
            }
            if entry.project == project {
                totals.project_usd += entry.usd;
            }
        }
        Ok(totals)
    }

    /// The costs of each account by day.
    pub fn by_account(&self, zone: &TimeZone) -> Result<BTreeMap<String, BTreeMap<Date, f64>>, StoreError> {
        let mut accounts: BTreeMap<String, BTreeMap<Date, f64>> = BTreeMap::new();
        for entry in self.entries()? {
            let days = accounts.entry(entry.account).or_default();
            *days.entry(date(entry.at, zone)).or_default() += entry.usd;
        }
        Ok(accounts)
    }

    fn entries(&self) -> Result<Vec<SpendEntry>, StoreError> {
        let mut entries: Vec<SpendEntry> = self.file.read_unlocked()?;
        entries.retain(|entry| entry.usd.is_finite() && entry.usd > 0.0);
        Ok(entries)
    }
}

fn date(at: Timestamp, zone: &TimeZone) -> Date {
    at.to_zoned(zone.clone()).date()
}

/// Sums the entries of each hour, which keeps the sums of days in every time zone with full hours.
fn sums(entries: Vec<SpendEntry>) -> Vec<SpendEntry> {
    let mut sums: BTreeMap<(i64, String, PathBuf), f64> = BTreeMap::new();
    for entry in entries {
        let hour = entry.at.as_second().div_euclid(3600);
        *sums.entry((hour, entry.account, entry.project)).or_default() += entry.usd;
    }
    let entry = |((hour, account, project), usd): ((i64, String, PathBuf), f64)| SpendEntry {
        at: Timestamp::from_second(hour * 3600).unwrap_or_default(),
        account,
        project,
        usd,
    };
    sums.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_version_1_are_read() {
        let golden = include_str!("../../tests/golden/spend.v1.jsonl").trim_end();
        let entry: SpendEntry = serde_json::from_str(golden).unwrap();
        assert_eq!(serde_json::to_string(&entry).unwrap(), golden);
    }

    #[test]
    fn days_and_projects_are_summed() {
        let base = tempfile::tempdir().unwrap();
        let spending = StateDirectory::at(base.path().join("state")).spending();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let entry = |time: &str, account: &str, project: &str, usd| SpendEntry {
            at: at(time),
            account: account.into(),
            project: project.into(),
            usd,
        };
        for added in [
            entry("2026-11-14T23:30:00Z", "a", "/p", 1.0),
            entry("2026-11-15T08:00:00Z", "a", "/p", 2.0),
            entry("2026-11-15T09:00:00Z", "b", "/q", 4.0),
            entry("2026-11-15T09:00:00Z", "b", "/q", f64::NAN),
        ] {
            spending.add(added).unwrap();
        }
        let now = at("2026-11-15T10:00:00Z");
        let totals = spending.totals(now, &TimeZone::UTC, Path::new("/p")).unwrap();
        assert_eq!(
            totals,
            Spend {
                day_usd: 6.0,
                project_usd: 3.0
            }
        );
        let berlin = TimeZone::fixed(jiff::tz::offset(1));
        let totals = spending.totals(now, &berlin, Path::new("/q")).unwrap();
        assert_eq!(
            totals,
            Spend {
                day_usd: 7.0,
                project_usd: 4.0
            }
        );
        let by_account = spending.by_account(&TimeZone::UTC).unwrap();
        assert_eq!(by_account["a"].values().copied().collect::<Vec<_>>(), [1.0, 2.0]);
    }

    #[test]
    fn a_long_file_is_replaced_by_sums() {
        let base = tempfile::tempdir().unwrap();
        let spending = StateDirectory::at(base.path().join("state")).spending();
        let start: Timestamp = "2026-11-15T00:00:00Z".parse().unwrap();
        let entry = |index: i32| SpendEntry {
            at: start + jiff::SignedDuration::from_secs(i64::from(index) * 10),
            account: "claude".into(),
            project: "/home/me/a/project/with/a/long/name".into(),
            usd: 0.25,
        };
        let mut locked = spending.file.lock().unwrap();
        locked.append(&(0..4000).map(entry).collect::<Vec<_>>()).unwrap();
        drop(locked);
        spending.add(entry(4000)).unwrap();
        assert!(spending.entries().unwrap().len() < 20);
        let now = start + jiff::SignedDuration::from_secs(3600);
        let totals = spending.totals(
            now,
            &TimeZone::UTC,
            Path::new("/home/me/a/project/with/a/long/name"),
        );
        assert_eq!(
            totals.unwrap(),
            Spend {
                day_usd: 1000.25,
                project_usd: 1000.25
            }
        );
    }
}
