//! `ralph quota`: the accounts of this user's agents, with their usage limits, the runs that use them or wait, and what
//! they cost.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::policy::Percent;
use crate::store::{AccountReport, WindowReport, state_directory};
use crate::ui::{Cell, Table, Terminal, Tone, pretty_json, units};

use super::args::QuotaArguments;
use super::common::ignore_broken_pipe;
use super::error::CliError;
use super::exit::Exit;

/// How many days of costs are listed.
const LISTED_DAYS: usize = 7;

pub(super) fn quota(arguments: &QuotaArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let (now, zone) = (Timestamp::now(), crate::ui::local_time_zone());
    let reports = state_directory()?.account_reports(now, &zone)?;
    let text = match arguments.json {
        true => pretty_json(&reports),
        false => text(&reports, now, &zone, terminal),
    };
    terminal
        .print(&text)
        .map(|()| Exit::Success)
        .or_else(ignore_broken_pipe)
}

fn text(reports: &[AccountReport], now: Timestamp, zone: &TimeZone, terminal: &Terminal) -> String {
    if reports.is_empty() {
        return "No account has been used yet. Runs of agents that report their limits or costs are listed here.\n"
            .to_owned();
    }
    let mut text = terminal.render(&accounts(reports, now, zone));
    let waiting = reports.iter().any(|report| !report.waiting.is_empty());
    if waiting {
        text.push('\n');
        text.push_str(&terminal.render(&waiting_runs(reports, now, zone)));
    }
    if let Some(costs) = costs(reports) {
        text.push('\n');
        text.push_str(&terminal.render(&costs));
    }
    text
}

fn accounts(reports: &[AccountReport], now: Timestamp, zone: &TimeZone) -> Table {
    let mut table = Table::new([
        "AGENT", "ACCOUNT", "LIMIT", "USED", "RESETS", "STATE", "RUNNING", "TODAY",
    ]);
    for report in reports {
        let unnamed = [None];
        let windows: Vec<Option<&WindowReport>> = match report.windows.is_empty() {
            true => unnamed.to_vec(),
            false => report.windows.iter().map(Some).collect(),
        };
        for (index, window) in windows.into_iter().enumerate() {
            let first = |text: String| Cell::from(if index == 0 { text } else { String::new() });
            let (state, tone) = state(report, window, now, zone);
            table.row([
                first(report.agent.clone()),
                first(report.account.clone().unwrap_or_else(|| "default".to_owned())),
                Cell::from(
                    window
                        .and_then(|window| window.window.clone())
                        .unwrap_or_else(|| "-".to_owned()),
                ),
                Cell::from(used(window)),
                Cell::from(resets(window, now, zone)),
                Cell::new(&state, tone),
                first(report.running.len().to_string()),
                first(units::dollars(report.spent_today_usd)),
            ]);
        }
    }
    table
}

fn used(window: Option<&WindowReport>) -> String {
    let used = window.and_then(|window| window.utilization);
    used.map_or_else(|| "-".to_owned(), |used| Percent::of_share(used).to_string())
}

fn resets(window: Option<&WindowReport>, now: Timestamp, zone: &TimeZone) -> String {
    let reset = window.and_then(|window| window.resets_at);
    reset.map_or_else(|| "-".to_owned(), |reset| units::clock(reset, now, zone))
}

fn state(
    report: &AccountReport,
    window: Option<&WindowReport>,
    now: Timestamp,
    zone: &TimeZone,
) -> (String, Tone) {
    match window {
        Some(window) if window.rejected => {
            let until = report.limited_until.map(|until| units::clock(until, now, zone));
            let text = format!("reached, waits until {}", until.unwrap_or_default());
            (text, Tone::Bad)
        }
        Some(_) => ("free".to_owned(), Tone::Good),
        None => ("no limit reported".to_owned(), Tone::Faint),
    }
}

fn waiting_runs(reports: &[AccountReport], now: Timestamp, zone: &TimeZone) -> Table {
    let mut table = Table::new(["WAITING RUN", "PROJECT", "SINCE", "UNTIL", "REASON"]);
    for waiting in reports.iter().flat_map(|report| &report.waiting) {
        let until = waiting.until.map(|until| units::clock(until, now, zone));
        table.row([
            Cell::from(waiting.run.clone()),
            Cell::from(waiting.project().unwrap_or_default()),
            Cell::from(units::clock(waiting.since, now, zone)),
            Cell::from(until.unwrap_or_else(|| "-".to_owned())),
            Cell::from(waiting.reason.clone()),
        ]);
    }
    table
}

/// The costs of the last days, if there are any.
fn costs(reports: &[AccountReport]) -> Option<Table> {
    let mut days: Vec<_> = reports
        .iter()
        .flat_map(|report| report.spent_by_day.keys().copied())
        .collect();
    days.sort_unstable();
    days.dedup();
    let days = &days[days.len().saturating_sub(LISTED_DAYS)..];
    if days.is_empty() {
        return None;
    }
    let header: Vec<String> = days
        .iter()
        .map(|day| day.strftime("%a %-d %b").to_string())
        .collect();
    let mut table = Table::new(
        ["COST PER DAY"]
            .into_iter()
            .chain(header.iter().map(String::as_str)),
    );
    for report in reports.iter().filter(|report| !report.spent_by_day.is_empty()) {
        let name = match &report.account {
            Some(account) => format!("{} ({account})", report.agent),
            None => report.agent.clone(),
        };
        let costs = days.iter().map(|day| {
            let cost = report.spent_by_day.get(day);
            Cell::from(cost.map_or_else(|| "-".to_owned(), |cost| units::dollars(*cost)))
        });
        table.row([Cell::from(name)].into_iter().chain(costs));
    }
    Some(table)
}
