//! Checks the tasks of a source: ids, needs, cycles and agents. Reports all problems at once.

use std::collections::BTreeMap;
use std::fmt;

use super::task::{SourceTask, is_valid_id, slug};

/// How similar two names must be for one to be suggested for the other.
const SIMILAR: f64 = 0.7;

/// A mistake in a source of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub(crate) line: usize,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Problem {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
            help: None,
        }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// All mistakes of a source, in the order of their lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    pub(crate) source: String,
    pub(crate) problems: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:{}: {}", self.source, problem.line, problem.message)?;
            if let Some(help) = &problem.help {
                write!(f, "\n  {help}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Resolves the needs of all tasks to ids and checks the whole list. `agents` are the names of the built-in agents.
pub(crate) fn check(tasks: &mut [SourceTask], agents: &[&str], problems: &mut Vec<Problem>) {
    check_ids(tasks, problems);
    for task in tasks.iter() {
        check_agent(task, agents, problems);
    }
    let names = Names::of(tasks);
    let mut resolved = Vec::with_capacity(tasks.len());
    for task in tasks.iter() {
        let mut needs: Vec<String> = Vec::new();
        for need in &task.task.needs {
            match names.resolve(need) {
                Ok(index) => needs.push(tasks[index].task.id.clone()),
                Err(problem) => problems.push(problem.at(need, task, tasks)),
            }
        }
        needs.extend(task.after.map(|index| tasks[index].task.id.clone()));
        let mut unique = Vec::with_capacity(needs.len());
        for need in needs {
            if !unique.contains(&need) {
                unique.push(need);
            }
        }
        resolved.push(unique);
    }
    for (task, needs) in tasks.iter_mut().zip(resolved) {
        task.task.needs = needs;
    }
    check_cycles(tasks, problems);
    problems.sort_by_key(|problem| problem.line);
}

fn check_ids(tasks: &[SourceTask], problems: &mut Vec<Problem>) {
    let mut seen: BTreeMap<String, &SourceTask> = BTreeMap::new();
    for task in tasks {
        let id = &task.task.id;
        if !is_valid_id(id) {
            problems.push(
                Problem::new(task.line, format!("invalid id `{id}`"))
                    .with_help("use letters, digits, `-`, `_` and `.`, at most 80 of them"),
            );
        }
        // Some file systems ignore case, and ids name files and branches.
        let Some(first) = seen.insert(id.to_ascii_lowercase(), task) else {
            continue;
        };
        let message = if first.task.title == task.task.title {
            format!("duplicate task `{}`, as in line {}", task.task.title, first.line)
        } else {
            format!("duplicate id `{id}`, already used in line {}", first.line)
        };
        problems.push(
            Problem::new(task.line, message)
                .with_help("change the title, or give one of the two another `id`"),
        );
    }
}

fn check_agent(task: &SourceTask, agents: &[&str], problems: &mut Vec<Problem>) {
    let Some(agent) = &task.task.agent else { return };
    let is_known = agents.contains(&agent.as_str())
        || ["auto", "custom"].contains(&agent.as_str())
        || agent.starts_with("driver:");
    if !is_known {
        let problem = Problem::new(task.line, format!("unknown agent `{agent}`"));
        problems.push(match similar(agent, agents.iter().copied()) {
            Some(name) => problem.with_help(format!("did you mean `{name}`?")),
            None => problem.with_help("to list the agents: ralph agents"),
        });
    }
}

/// The names by which a task can be referred to.
struct Names {
    ids: BTreeMap<String, usize>,
    titles: BTreeMap<String, Vec<usize>>,
}

enum NeedError {
    Unknown,
    Ambiguous(Vec<usize>),
}

impl Names {
    fn of(tasks: &[SourceTask]) -> Self {
        let mut names = Self {
            ids: BTreeMap::new(),
            titles: BTreeMap::new(),
        };
        for (index, task) in tasks.iter().enumerate() {
            if names.ids.contains_key(&task.task.id) {
                continue;
            }
            names.ids.insert(task.task.id.clone(), index);
            names
                .titles
                .entry(slug(&task.task.title))
                .or_default()
                .push(index);
        }
        names
    }

    /// A task is named by its id, or by its title if only one task has it.
    fn resolve(&self, name: &str) -> Result<usize, NeedError> {
        if let Some(index) = self.ids.get(name) {
            return Ok(*index);
        }
        match self.titles.get(&slug(name)).map(Vec::as_slice) {
            _ if slug(name).is_empty() => Err(NeedError::Unknown),
            Some([index]) => Ok(*index),
            Some(several) => Err(NeedError::Ambiguous(several.to_vec())),
            None => Err(NeedError::Unknown),
        }
    }
}

impl NeedError {
    fn at(self, need: &str, task: &SourceTask, tasks: &[SourceTask]) -> Problem {
        match self {
            Self::Unknown => {
                let problem = Problem::new(
                    task.line,
                    format!(
                        "`{}` needs `{need}`, which is not a task of this plan",
                        task.task.title
                    ),
                );
                let ids = tasks.iter().map(|task| task.task.id.as_str());
                let titles = tasks.iter().map(|task| task.task.title.as_str());
                match similar(need, ids.chain(titles)) {
                    Some(name) => problem.with_help(format!("did you mean `{name}`?")),
                    None => problem.with_help("name a task by its id or its title"),
                }
            }
            Self::Ambiguous(several) => {
                let ids: Vec<&str> = several
                    .iter()
                    .map(|index| tasks[*index].task.id.as_str())
                    .collect();
                Problem::new(
                    task.line,
                    format!(
                        "`{}` needs `{need}`, which several tasks are called",
                        task.task.title
                    ),
                )
                .with_help(format!("use an id: {}", ids.join(", ")))
            }
        }
    }
}

fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|known| (strsim::jaro_winkler(name, known), known));
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (best.0 >= SIMILAR).then_some(best.1)
}

/// Reports each cycle once, at its first task.
fn check_cycles(tasks: &[SourceTask], problems: &mut Vec<Problem>) {
    let index: BTreeMap<&str, usize> = tasks
        .iter()
        .enumerate()
        .rev()
        .map(|(at, task)| (task.task.id.as_str(), at))
        .collect();
    let needs: Vec<Vec<usize>> = tasks
        .iter()
        .map(|task| {
            task.task
                .needs
                .iter()
                .filter_map(|need| index.get(need.as_str()).copied())
                .collect()
        })
        .collect();
    let mut state = vec![Visit::New; tasks.len()];
    for start in 0..tasks.len() {
        if state[start] != Visit::New {
            continue;
        }
        // The path from `start`, with the position of the next need of each task.
        let mut path = vec![(start, 0)];
        state[start] = Visit::OnPath;
        while let Some((task, next)) = path.last_mut() {
            let Some(need) = needs[*task].get(*next).copied() else {
                state[*task] = Visit::Finished;
                path.pop();
                continue;
            };
            *next += 1;
            match state[need] {
                Visit::New => {
                    state[need] = Visit::OnPath;
                    path.push((need, 0));
                }
                Visit::OnPath => {
                    let from = path.iter().position(|(task, _)| *task == need).unwrap_or(0);
                    let cycle: Vec<usize> = path[from..].iter().map(|(task, _)| *task).collect();
                    problems.push(cycle_problem(&cycle, tasks));
                }
                Visit::Finished => {}
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    OnPath,
    Finished,
}

fn cycle_problem(cycle: &[usize], tasks: &[SourceTask]) -> Problem {
    let first = cycle
        .iter()
        .copied()
        .min_by_key(|task| tasks[*task].line)
        .unwrap_or_default();
    let start = cycle.iter().position(|task| *task == first).unwrap_or_default();
    let around = cycle[start..].iter().chain(&cycle[..start]).chain([&first]);
    let names: Vec<&str> = around.map(|task| tasks[*task].task.id.as_str()).collect();
    Problem::new(
        tasks[first].line,
        format!("the needs form a cycle: {}", names.join(" → ")),
    )
    .with_help("remove one of these needs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::task::Task;

    fn task(line: usize, id: &str, needs: &[&str]) -> SourceTask {
        SourceTask {
            task: Task {
                id: id.to_owned(),
                title: format!("The {id}"),
                needs: needs.iter().map(|need| (*need).to_owned()).collect(),
                ..Task::default()
            },
            line,
            ..SourceTask::default()
        }
    }

    fn checked(mut tasks: Vec<SourceTask>) -> String {
        let mut problems = Vec::new();
        check(&mut tasks, &["claude", "codex"], &mut problems);
        let source = "PLAN.md".to_owned();
        Problems { source, problems }.to_string()
    }

    #[test]
    fn all_problems_are_reported_at_once_in_order() {
        let mut wrong_agent = task(9, "z", &[]);
        wrong_agent.task.agent = Some("claud".into());
        let tasks = vec![
            task(1, "a", &["c"]),
            task(2, "b", &["a"]),
            task(3, "c", &["The b"]),
            task(5, "d", &["dd", "d"]),
            task(7, "A", &[]),
            wrong_agent,
            task(11, "not valid", &["The a"]),
        ];
        insta::assert_snapshot!(checked(tasks), @"
        PLAN.md:1: the needs form a cycle: a → c → b → a
          remove one of these needs
        PLAN.md:5: `The d` needs `dd`, which is not a task of this plan
          did you mean `d`?
        PLAN.md:5: the needs form a cycle: d → d
          remove one of these needs
        PLAN.md:7: duplicate id `A`, already used in line 1
          change the title, or give one of the two another `id`
        PLAN.md:9: unknown agent `claud`
          did you mean `claude`?
        PLAN.md:11: invalid id `not valid`
          use letters, digits, `-`, `_` and `.`, at most 80 of them
        PLAN.md:11: `The not valid` needs `The a`, which several tasks are called
          use an id: a, A
        ");
    }

    #[test]
    fn long_chain_is_checked_without_recursion() {
        let next = |n: usize| {
            if n < 19_999 {
                vec![format!("t{}", n + 1)]
            } else {
                Vec::new()
            }
        };
        let mut tasks: Vec<SourceTask> = (0..20_000).map(|n| task(n + 1, &format!("t{n}"), &[])).collect();
        for (n, task) in tasks.iter_mut().enumerate() {
            task.task.needs = next(n);
        }
        assert_eq!(checked(tasks), "");
    }
}
