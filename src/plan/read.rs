//! Reads the tasks of a source: from its file, or from the output of its command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::PlanError;
use super::source::{self, Source, SourceCommand};
use super::task::{SourceTask, Task};
use crate::agent;
use crate::files::{self, FileError, ReadRule};
use crate::process::{Bounds, Environment, ProcessSpec, Stdin, Supervisors, Transport, capture};

/// How long the command of a source may take.
const TIMEOUT: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(2);
/// Maximum size of a source.
const MAX_BYTES: u64 = 16 << 20;

/// A source that has been read: its text, and its tasks in order.
#[derive(Debug, Clone)]
pub struct PlanText {
    pub(crate) text: String,
    pub(crate) tasks: Vec<SourceTask>,
}

impl PlanText {
    /// The tasks, and whether the source marks them as done.
    pub fn tasks(&self) -> impl Iterator<Item = (&Task, TaskMark, usize)> {
        self.tasks.iter().map(|task| {
            let mark = if task.done { TaskMark::Done } else { TaskMark::Open };
            (&task.task, mark, task.line)
        })
    }
}

/// What the source shows about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskMark {
    Open,
    Done,
}

/// Reads and checks a source.
pub fn read_plan(source: &Source, supervisors: &Supervisors, cwd: &Path) -> Result<PlanText, PlanError> {
    let (text, name) = match source {
        Source::File(path) => (read_file(path)?, shown_path(path, cwd)),
        Source::Command(command) => (run_command(command, supervisors, cwd)?, command.to_string()),
    };
    let tasks = source::read(&text, source.format(), &name, &agent::names())?;
    Ok(PlanText { text, tasks })
}

fn read_file(path: &Path) -> Result<String, PlanError> {
    files::read_text(path, ReadRule::following(MAX_BYTES)).map_err(|error| match error {
        error if error.is_missing() => PlanError::NotFound {
            path: path.to_owned(),
        },
        error => PlanError::Unreadable {
            path: path.to_owned(),
            source: FileError::into_io(error),
        },
    })
}

/// The path as the user would type it.
fn shown_path(path: &Path, cwd: &Path) -> String {
    path.strip_prefix(cwd).unwrap_or(path).display().to_string()
}

fn run_command(command: &SourceCommand, supervisors: &Supervisors, cwd: &Path) -> Result<String, PlanError> {
    let words = command.words();
    let failed = |why: String| PlanError::Command {
        name: command.to_string(),
        why,
    };
    let captured = run_words(&words, supervisors, cwd).map_err(failed)?;
    Ok(captured)
}

/// Runs a program and returns what it printed; an error if it failed.
pub(crate) fn run_words(words: &[String], supervisors: &Supervisors, cwd: &Path) -> Result<String, String> {
    let spec = ProcessSpec {
        program: PathBuf::from(&words[0]),
        args: words[1..].iter().map(Into::into).collect(),
        environment: Environment::default(),
        cwd: cwd.to_owned(),
        stdin: Stdin::Null,
        stdout: Transport::Pipe,
        confinement: None,
    };
    let bounds = Bounds {
        timeout: TIMEOUT,
        grace: GRACE,
        max_bytes: usize::try_from(MAX_BYTES).unwrap_or(usize::MAX),
    };
    let captured = capture(supervisors, &spec, bounds).map_err(|error| error.to_string())?;
    let last_line = || {
        let text = String::from_utf8_lossy(&captured.stderr).into_owned();
        text.lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default()
            .to_owned()
    };
    match captured.end {
        Some(end) if end.success() && captured.stdout_omitted.is_none() => {
            String::from_utf8(captured.stdout).map_err(|_| "its output is not valid UTF-8".to_owned())
        }
        Some(end) if end.success() => Err(format!("its output is larger than {MAX_BYTES} bytes")),
        Some(end) => Err(format!("{} ended with {end}: {}", words[0], last_line())),
        None => Err(format!("{} timed out after {} s", words[0], TIMEOUT.as_secs())),
    }
}
