//! The runs of all projects. Facts about ended runs are remembered, so that a long list is read once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;

use crate::run::{ActivityFollower, ListTotals, LiveState, OutcomeName, ProjectRow, RunRow};
use crate::store::{Project, RunEntry, RunIndex, RunState, StateDirectory, is_running, par_map};

/// A row with what the run is doing, if it is running.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct ListedRun {
    #[serde(flatten)]
    pub(super) row: ProjectRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) live: Option<LiveState>,
}

/// All runs, newest first, with totals.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Overview {
    pub(super) runs: Vec<ListedRun>,
    /// The number of runs, including those that are not listed.
    pub(super) count: usize,
    /// The number of runs by outcome, whatever the filter by outcome is. `attention` counts the running ones that wait for something.
    pub(super) outcomes: BTreeMap<String, usize>,
    /// The projects and agents of all runs, for filters.
    pub(super) projects: BTreeMap<String, String>,
    pub(super) agents: BTreeSet<String>,
    pub(super) totals: ListTotals,
}

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub(super) struct ListFilter {
    /// One or more outcomes, separated by commas.
    pub(super) outcome: Option<String>,
    pub(super) project: Option<String>,
    pub(super) agent: Option<String>,
    /// Part of the id, the project, the agent or the prompt.
    pub(super) text: Option<String>,
    pub(super) limit: usize,
    pub(super) offset: usize,
}

/// The remembered facts.
#[derive(Debug, Default)]
pub(super) struct Listing {
    known: Mutex<HashMap<PathBuf, KnownRun>>,
    followers: Mutex<HashMap<PathBuf, ActivityFollower>>,
}

#[derive(Debug, Clone)]
struct KnownRun {
    stamp: Stamp,
    row: ProjectRow,
}

/// Changes whenever the journal changes.
type Stamp = Option<(u64, SystemTime)>;

impl Listing {
    /// Lists the runs that match. Totals include the matching runs that are not listed.
    pub(super) fn overview(&self, state: &StateDirectory, filter: &ListFilter, zone: &TimeZone) -> Overview {
        let mut runs: Vec<ListedRun> = state
            .projects()
            .iter()
            .flat_map(|project| self.project_rows(project))
            .collect();
        let (mut projects, mut agents, mut outcomes) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        for run in &runs {
            if !projects.contains_key(&run.row.project_root) {
                projects.insert(run.row.project_root.clone(), run.row.project.clone());
            }
            if let Some(agent) = run
                .row
                .run
                .agent
                .as_ref()
                .filter(|agent| !agents.contains(*agent))
            {
                agents.insert(agent.clone());
            }
        }
        let matcher = Matcher::new(filter);
        runs.retain(|run| matcher.matches_all_but_outcome(&run.row));
        for run in &runs {
            *outcomes.entry(outcome_name(&run.row)).or_default() += 1;
            if run.live.as_ref().is_some_and(LiveState::needs_attention) {
                *outcomes.entry("attention".to_owned()).or_default() += 1;
            }
        }
        runs.retain(|run| matcher.matches_outcome(run));
        runs.sort_by(|one, other| other.row.run.id.cmp(&one.row.run.id));
        let mut totals = ListTotals::default();
        for run in &runs {
            totals.add(&run.row, zone);
        }
        let count = runs.len();
        let runs = runs.into_iter().skip(filter.offset).take(filter.limit).collect();
        Overview {
            runs,
            count,
            outcomes,
            projects,
            agents,
            totals,
        }
    }

    /// The state of a run that is executed by a live process.
    pub(super) fn live_state(&self, directory: &Path) -> Option<LiveState> {
        let mut followers = lock(&self.followers);
        if !is_running(directory) {
            followers.remove(directory);
            return None;
        }
        if !followers.contains_key(directory) {
            let follower = ActivityFollower::open(&directory.join("events.jsonl")).ok()?;
            followers.insert(directory.to_owned(), follower);
        }
        let follower = followers.get_mut(directory)?;
        follower.advance().ok()?;
        Some(follower.state())
    }

    fn project_rows(&self, project: &Project) -> Vec<ListedRun> {
        let index = RunIndex::load(project);
        let ids: Vec<&str> = index.newest_first().collect();
        par_map(&ids, |id| self.listed_run(project, &index, id))
    }

    fn listed_run(&self, project: &Project, index: &RunIndex, id: &str) -> ListedRun {
        let directory = index.directory(id);
        let stamp = journal_stamp(&directory);
        let known = lock(&self.known).get(&directory).cloned();
        let mut row = match known {
            // Whether a run without an end has died does not show in its journal.
            Some(known) if known.stamp == stamp && stamp.is_some() => {
                if known.row.run.outcome != OutcomeName::Running {
                    return ListedRun {
                        row: known.row,
                        live: None,
                    };
                }
                known.row
            }
            _ => self.read_row(project, index, &directory),
        };
        let live = match row.run.outcome {
            OutcomeName::Running => self.live_state(&directory),
            _ => None,
        };
        match &live {
            Some(live) => row.run.totals = Some(live.totals.clone()),
            None if row.run.outcome == OutcomeName::Running => {
                row = self.read_row(project, index, &directory);
            }
            None => {}
        }
        let known = KnownRun {
            stamp,
            row: row.clone(),
        };
        lock(&self.known).insert(directory, known);
        ListedRun { row, live }
    }

    /// Reads a run. The totals of a running one come from its follower instead of the whole journal.
    fn read_row(&self, project: &Project, index: &RunIndex, directory: &Path) -> ProjectRow {
        let entry = RunEntry::read(directory);
        let run = match entry.state {
            RunState::Running => RunRow::without_totals(directory, &entry),
            _ => RunRow::read(index, &entry),
        };
        ProjectRow {
            project: project.name(),
            project_root: project.root().display().to_string(),
            run,
        }
    }
}

/// A filter that is ready to be compared with many runs.
struct Matcher<'a> {
    filter: &'a ListFilter,
    text: Option<String>,
}

impl<'a> Matcher<'a> {
    fn new(filter: &'a ListFilter) -> Self {
        Self {
            filter,
            text: filter.text.as_deref().map(str::to_lowercase),
        }
    }

    fn matches_outcome(&self, run: &ListedRun) -> bool {
        let Some(wanted) = &self.filter.outcome else {
            return true;
        };
        let outcome = outcome_name(&run.row);
        let needs_attention = run.live.as_ref().is_some_and(LiveState::needs_attention);
        wanted
            .split(',')
            .any(|wanted| wanted == outcome || (wanted == "attention" && needs_attention))
    }

    fn matches_all_but_outcome(&self, row: &ProjectRow) -> bool {
        let matches = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
        };
        let contains = |text: &str| {
            let fields = [
                Some(row.run.id.as_str()),
                Some(row.project.as_str()),
                row.run.agent.as_deref(),
                row.run.prompt.as_deref(),
            ];
            fields
                .into_iter()
                .flatten()
                .any(|field| field.to_lowercase().contains(text))
        };
        matches(&self.filter.project, Some(&row.project_root))
            && matches(&self.filter.agent, row.run.agent.as_deref())
            && self.text.as_deref().is_none_or(contains)
    }
}

fn outcome_name(row: &ProjectRow) -> String {
    let name = serde_json::to_value(row.run.outcome).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

fn journal_stamp(directory: &Path) -> Stamp {
    let metadata = std::fs::symlink_metadata(directory.join("events.jsonl")).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The maps are caches: after a panic they are still usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
