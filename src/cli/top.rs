//! `ralph top`: shows the active runs of all projects of this machine, and attaches to one.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::event::pause_label;
use crate::run::{Activity, ActivityFollower, Host, LiveState};
use crate::store::{Project, RunIndex, RunState};
use crate::ui::clean::clean;
use crate::ui::tui::{ListEvent, ListPage, ListScreen};
use crate::ui::{Cell, Table, Terminal, Tone, pretty_json, units};

use super::args::TopArguments;
use super::common::ignore_broken_pipe;
use super::context::current_project;
use super::error::CliError;
use super::exit::Exit;
use super::front_end::{terminal_guard, theme_here};
use super::viewer;

/// Only the newest runs of a project can be active.
const NEWEST: usize = 20;
const REFRESH: Duration = Duration::from_secs(1);
/// Projects are searched for new runs less often than the known runs are read.
const SEARCH_EVERY: u32 = 3;
const COLUMNS: [&str; 7] = ["PROJECT", "RUN", "AGENT", "STATE", "ITERATION", "TIME", "COST"];

/// An active run.
#[derive(Debug, Serialize)]
struct TopRow {
    project: String,
    id: String,
    agent: Option<String>,
    began: Option<Timestamp>,
    max_iterations: Option<u64>,
    directory: PathBuf,
    #[serde(flatten)]
    live: LiveState,
}

/// The active runs, with what has been read of their journals.
#[derive(Default)]
struct ActiveRuns {
    followed: HashMap<PathBuf, ActivityFollower>,
}

pub(super) fn top(arguments: &TopArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let project = current_project()?;
    let mut active = ActiveRuns::default();
    if arguments.json || arguments.once || !terminal.supports_tui() {
        let rows = active.rows(&project);
        let text = if arguments.json {
            pretty_json(&rows)
        } else {
            listing(&rows, terminal)
        };
        let printed = terminal.print(&text);
        return printed.map(|()| Exit::Success).or_else(ignore_broken_pipe);
    }
    while let Some(directory) = choose(&mut active, &project, terminal, host)? {
        viewer::view(&directory, terminal, host)?;
    }
    Ok(Exit::Success)
}

/// Shows the list until the user chooses a run; `None` if the user closes it.
fn choose(
    active: &mut ActiveRuns,
    project: &Project,
    terminal: &Terminal,
    host: &Host,
) -> Result<Option<PathBuf>, CliError> {
    let mut screen = terminal
        .list_screen(theme_here(host), terminal_guard(host))
        .map_err(CliError::Output)?;
    choose_on(&mut screen, active, project).map_err(CliError::Output)
}

fn choose_on(
    screen: &mut ListScreen,
    active: &mut ActiveRuns,
    project: &Project,
) -> std::io::Result<Option<PathBuf>> {
    let mut rows = active.rows(project);
    for round in 1_u32.. {
        match screen.show(&page(&rows), REFRESH)? {
            ListEvent::Chosen(index) => return Ok(rows.get(index).map(|row| row.directory.clone())),
            ListEvent::Closed => return Ok(None),
            ListEvent::Refresh if round.is_multiple_of(SEARCH_EVERY) => rows = active.rows(project),
            ListEvent::Refresh => active.read_again(&mut rows),
        }
    }
    Ok(None)
}

impl ActiveRuns {
    /// The active runs of all projects, newest first.
    fn rows(&mut self, project: &Project) -> Vec<TopRow> {
        let mut projects = project.state().projects();
        if !projects.contains(project) {
            projects.push(project.clone());
        }
        let mut rows: Vec<TopRow> = projects
            .iter()
            .flat_map(|project| self.of_project(project))
            .collect();
        rows.sort_by(|one, other| other.id.cmp(&one.id));
        self.followed
            .retain(|directory, _| rows.iter().any(|row| row.directory == *directory));
        rows
    }

    fn of_project(&mut self, project: &Project) -> Vec<TopRow> {
        let index = RunIndex::load(project);
        let newest: Vec<String> = index.newest_first().take(NEWEST).map(str::to_owned).collect();
        let entries = newest.iter().map(|id| index.entry(id));
        let running = entries.filter(|entry| entry.state == RunState::Running);
        let rows = running.filter_map(|entry| {
            let directory = index.directory(&entry.id);
            let live = self.read(&directory)?;
            let header = entry.header.as_ref();
            Some(TopRow {
                project: project.name(),
                agent: header.map(|header| header.agent.clone()),
                max_iterations: header.map(|header| header.max_iterations),
                began: entry.began,
                id: entry.id,
                directory,
                live,
            })
        });
        rows.collect()
    }

    fn read_again(&mut self, rows: &mut [TopRow]) {
        for row in rows {
            if let Some(live) = self.read(&row.directory) {
                row.live = live;
            }
        }
    }

    /// The state of a run; `None` if its journal cannot be read.
    fn read(&mut self, directory: &PathBuf) -> Option<LiveState> {
        if !self.followed.contains_key(directory) {
            let follower = ActivityFollower::open(&directory.join("events.jsonl"));
            let follower = crate::ok_or_log!(follower, "cannot follow a run")?;
            self.followed.insert(directory.clone(), follower);
        }
        let follower = self.followed.get_mut(directory)?;
        crate::ok_or_log!(follower.advance(), "cannot read the journal of a run");
        Some(follower.state())
    }
}

/// What a run does or waits for.
fn state_of(live: &LiveState, now: Timestamp) -> (String, Tone) {
    match &live.activity {
        Activity::Starting => ("starting".into(), Tone::Plain),
        Activity::Agent { tool: None } => ("working".into(), Tone::Accent),
        Activity::Agent { tool: Some(tool) } => (format!("working · {}", clean(tool)), Tone::Accent),
        Activity::Gate { name } => (format!("gate {}", clean(name)), Tone::Accent),
        Activity::Waiting { why, until, reason } => {
            // How long other runs need is unknown.
            let left = match *until > now {
                true => format!(" {}", units::countdown(units::since(now, *until))),
                false => String::new(),
            };
            let why = reason.as_deref().unwrap_or_else(|| pause_label(*why));
            (format!("waiting{left} · {}", clean(why)), Tone::Warning)
        }
        Activity::Paused => ("paused".into(), Tone::Warning),
        Activity::Asking | Activity::Question { .. } => ("waiting for your answer".into(), Tone::Warning),
        Activity::Stopping { .. } => ("stopping".into(), Tone::Warning),
    }
}

fn cells(row: &TopRow, now: Timestamp) -> Vec<(String, Tone)> {
    let max = row
        .max_iterations
        .map(|max| format!("/{max}"))
        .unwrap_or_default();
    let hat = row.live.hat.as_ref().map(|hat| format!(" · {}", clean(hat)));
    let took = row.began.map(|began| units::countdown(units::since(began, now)));
    let cost = row.live.totals.usage.cost_usd.map(units::dollars);
    vec![
        (clean(&row.project).into_owned(), Tone::Plain),
        (row.id.clone(), Tone::Accent),
        (
            clean(row.agent.as_deref().unwrap_or_default()).into_owned(),
            Tone::Plain,
        ),
        state_of(&row.live, now),
        (
            format!("{}{max}{}", row.live.iteration, hat.unwrap_or_default()),
            Tone::Plain,
        ),
        (took.unwrap_or_default(), Tone::Plain),
        (cost.unwrap_or_default(), Tone::Plain),
    ]
}

fn page(rows: &[TopRow]) -> ListPage {
    let now = Timestamp::now();
    let time = now.to_zoned(crate::ui::local_time_zone()).strftime("%H:%M:%S");
    ListPage {
        title: [
            format!(
                "{} on this machine",
                units::count(rows.len() as u64, "active run")
            ),
            time.to_string(),
        ],
        header: COLUMNS.to_vec(),
        rows: rows.iter().map(|row| cells(row, now)).collect(),
        empty: NO_RUNS.to_owned(),
    }
}

const NO_RUNS: &str = "No run is active. Past runs: ralph runs --all";

fn listing(rows: &[TopRow], terminal: &Terminal) -> String {
    if rows.is_empty() {
        return format!("{NO_RUNS}\n");
    }
    let now = Timestamp::now();
    let mut table = Table::new(COLUMNS);
    for row in rows {
        table.row(cells(row, now).iter().map(|(text, tone)| Cell::new(text, *tone)));
    }
    terminal.render(&table)
}
