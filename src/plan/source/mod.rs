//! Where the tasks of a plan come from: Markdown, ralphex plan files, prd.json, and the output of commands.

mod commands;
mod markdown;
mod marks;
mod prd;
mod ralphex;
mod settings;

pub(crate) use commands::{SourceCommand, close_command};
pub(crate) use marks::{set_marks, unmark};

use std::path::{Path, PathBuf};

use super::check::{self, Problem, Problems};
use super::task::SourceTask;

/// A source of tasks, as named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    File(PathBuf),
    /// The output of a command.
    Command(SourceCommand),
}

/// How the text of a source is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceFormat {
    Markdown,
    Prd,
    Issues(commands::IssueFormat),
}

/// The tasks of a source and its mistakes so far.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ParsedSource {
    pub(crate) tasks: Vec<SourceTask>,
    pub(crate) problems: Vec<Problem>,
}

impl Source {
    /// `beads:`, `gh:LABEL` and `cmd:COMMAND` are commands; everything else is a file.
    pub fn of(name: &str, cwd: &Path) -> Self {
        match SourceCommand::of(name) {
            Some(command) => Self::Command(command),
            None => Self::File(cwd.join(name)),
        }
    }

    pub(crate) fn format(&self) -> SourceFormat {
        match self {
            Self::Command(command) => SourceFormat::Issues(command.format()),
            Self::File(path) if path.extension().is_some_and(|extension| extension == "json") => {
                SourceFormat::Prd
            }
            Self::File(_) => SourceFormat::Markdown,
        }
    }

    /// A short name for branches and directories.
    pub fn plan_name(&self) -> String {
        let name = match self {
            Self::File(path) => path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            Self::Command(command) => command.plan_name(),
        };
        let slug = super::task::slug(&name);
        if slug.is_empty() { "plan".to_owned() } else { slug }
    }
}

/// Parses and checks the text of a source. `name` is shown in errors, `agents` are the names of the built-in agents.
pub(crate) fn read(
    text: &str,
    format: SourceFormat,
    name: &str,
    agents: &[&str],
) -> Result<Vec<SourceTask>, Problems> {
    let ParsedSource {
        mut tasks,
        mut problems,
    } = match format {
        SourceFormat::Markdown if ralphex::is_ralphex(text) => ralphex::parse(text),
        SourceFormat::Markdown => markdown::parse(text),
        SourceFormat::Prd => prd::parse(text),
        SourceFormat::Issues(format) => commands::parse(text, format),
    };
    check::check(&mut tasks, agents, &mut problems);
    if tasks.is_empty() && problems.is_empty() && !matches!(format, SourceFormat::Issues(_)) {
        problems.push(
            Problem::new(1, "no tasks found")
                .with_help("write each task as a list item with a box: - [ ] Add a test"),
        );
    }
    match problems.is_empty() {
        true => Ok(tasks),
        false => Err(Problems {
            source: name.to_owned(),
            problems,
        }),
    }
}

/// Converts offsets to line numbers.
pub(crate) struct Lines(Vec<usize>);

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        Self(memchr::memchr_iter(b'\n', text.as_bytes()).collect())
    }

    /// The line of an offset, starting at 1.
    pub(crate) fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|newline| *newline < offset) + 1
    }
}

#[cfg(test)]
mod tests;
