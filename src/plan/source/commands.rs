//! Tasks that commands print: `beads:` (the issues that `bd` reports as ready), `gh:LABEL` (open issues of a GitHub
//! repository) and `cmd:COMMAND` (one JSON object per line).

use std::fmt;

use serde_json::Value;

use super::ParsedSource;
use crate::plan::check::Problem;
use crate::plan::task::{SourceTask, Task, derived_id, slug};

/// Maximum number of issues that are requested.
const MAX_ISSUES: &str = "1000";

/// A command that prints tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceCommand {
    Beads,
    GitHub {
        label: String,
    },
    /// A shell command.
    Shell {
        command: String,
    },
}

/// What a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IssueFormat {
    Beads,
    GitHub,
    Tasks,
}

/// A program and its arguments, without a shell.
pub(crate) type Words = Vec<String>;

impl SourceCommand {
    pub(super) fn of(name: &str) -> Option<Self> {
        let (kind, rest) = name.split_once(':')?;
        match kind {
            "beads" => Some(Self::Beads),
            "gh" => Some(Self::GitHub {
                label: rest.to_owned(),
            }),
            "cmd" => Some(Self::Shell {
                command: rest.to_owned(),
            }),
            _ => None,
        }
    }

    pub(super) fn format(&self) -> IssueFormat {
        match self {
            Self::Beads => IssueFormat::Beads,
            Self::GitHub { .. } => IssueFormat::GitHub,
            Self::Shell { .. } => IssueFormat::Tasks,
        }
    }

    pub(super) fn plan_name(&self) -> String {
        match self {
            Self::Beads => "beads".to_owned(),
            Self::GitHub { label } => format!("gh {label}"),
            Self::Shell { command } => format!("cmd {}", derived_id("", command)),
        }
    }

    /// The command line that prints the tasks.
    pub(crate) fn words(&self) -> Words {
        let words: Vec<&str> = match self {
            Self::Beads => vec!["bd", "ready", "--json", "--limit", MAX_ISSUES],
            Self::GitHub { label } => vec![
                "gh",
                "issue",
                "list",
                "--state",
                "open",
                "--label",
                label,
                "--limit",
                MAX_ISSUES,
                "--json",
                "number,title,body",
            ],
            Self::Shell { command } => vec!["sh", "-c", command],
        };
        words.into_iter().map(str::to_owned).collect()
    }
}

impl fmt::Display for SourceCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beads => f.write_str("beads:"),
            Self::GitHub { label } => write!(f, "gh:{label}"),
            Self::Shell { command } => write!(f, "cmd:{command}"),
        }
    }
}

/// The command that closes an issue in its tracker; `None` if the source has no such command.
pub(crate) fn close_command(source: &SourceCommand, id: &str) -> Option<Words> {
    let words = match source {
        SourceCommand::Beads => ["bd", "close", id, "--reason", "done by ralph; its gates passed"],
        SourceCommand::GitHub { .. } => {
            let number = id.trim_start_matches("gh-");
            ["gh", "issue", "close", number, "--reason=completed"]
        }
        SourceCommand::Shell { .. } => return None,
    };
    Some(words.map(str::to_owned).to_vec())
}

pub(super) fn parse(text: &str, format: IssueFormat) -> ParsedSource {
    match format {
        IssueFormat::Tasks => tasks(text),
        IssueFormat::Beads => issues(text, beads_issue),
        IssueFormat::GitHub => issues(text, github_issue),
    }
}

fn tasks(text: &str) -> ParsedSource {
    let mut source = ParsedSource::default();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.trim().is_empty() {
            continue;
        }
        match task_of(line) {
            Ok((task, done)) => source.tasks.push(SourceTask {
                task,
                line: number,
                done,
                ..SourceTask::default()
            }),
            Err(why) => source.problems.push(
                Problem::new(number, why)
                    .with_help("expected one JSON object per line: {\"title\": \"Add a test\"}"),
            ),
        }
    }
    source
}

fn task_of(line: &str) -> Result<(Task, bool), String> {
    let mut value: Value = serde_json::from_str(line).map_err(|error| format!("invalid JSON: {error}"))?;
    let members = value.as_object_mut().ok_or("not an object")?;
    let done = members.remove("done").is_some_and(|done| done == true);
    let title = members
        .get("title")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .trim()
        .to_owned();
    if title.is_empty() {
        return Err("a task without a `title`".to_owned());
    }
    let id = match members.get("id") {
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(id)) => id.clone(),
        _ => derived_id("", &title),
    };
    members.insert("id".to_owned(), id.into());
    let task = serde_json::from_value(value).map_err(|error| format!("invalid task: {error}"))?;
    Ok((task, done))
}

fn issues(text: &str, read: fn(&Value) -> Option<Task>) -> ParsedSource {
    let mut source = ParsedSource::default();
    let list: Vec<Value> = match serde_json::from_str(text.trim()) {
        Ok(Value::Array(list)) => list,
        Ok(Value::Null) => Vec::new(),
        _ => {
            source
                .problems
                .push(Problem::new(1, "the output is not a JSON list of issues"));
            return source;
        }
    };
    for (index, issue) in list.iter().enumerate() {
        let line = index + 1;
        match read(issue) {
            Some(task) => source.tasks.push(SourceTask {
                task,
                line,
                ..SourceTask::default()
            }),
            None => source
                .problems
                .push(Problem::new(line, "an issue without an id or a title")),
        }
    }
    source
}

fn beads_issue(issue: &Value) -> Option<Task> {
    let text = |name: &str| issue[name].as_str().unwrap_or_default().trim();
    let parts = [
        text("description").to_owned(),
        heading("Design", text("design")),
        heading("Acceptance criteria", text("acceptance_criteria")),
        heading("Notes", text("notes")),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Some(Task {
        id: Some(text("id")).filter(|id| !id.is_empty())?.to_owned(),
        title: Some(text("title")).filter(|title| !title.is_empty())?.to_owned(),
        body: parts.join("\n\n"),
        // 0 is critical there; 1 is first here.
        priority: issue["priority"].as_i64().map(|priority| priority + 1),
        ..Task::default()
    })
}

fn heading(title: &str, text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("{title}:\n{text}")
    }
}

fn github_issue(issue: &Value) -> Option<Task> {
    let title = issue["title"]
        .as_str()
        .filter(|title| !slug(title).is_empty() || !title.trim().is_empty())?;
    Some(Task {
        id: format!("gh-{}", issue["number"].as_u64()?),
        title: title.trim().to_owned(),
        body: issue["body"]
            .as_str()
            .unwrap_or_default()
            .trim()
            .replace("\r\n", "\n"),
        ..Task::default()
    })
}
