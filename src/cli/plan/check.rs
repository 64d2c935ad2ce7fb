//! `ralph plan check`: reports all mistakes of a plan at once, or lists its tasks.

use serde::Serialize;

use crate::cli::args::PlanCheckArguments;
use crate::cli::context::working_directory;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::plan::{Source, Task, TaskMark, read_plan};
use crate::run::Host;
use crate::ui::{Cell, Table, Terminal, Tone, pretty_json, units};

/// A task in the JSON output.
#[derive(Debug, Serialize)]
struct TaskRow<'a> {
    #[serde(flatten)]
    task: &'a Task,
    line: usize,
    state: TaskMark,
}

pub(super) fn check(
    arguments: &PlanCheckArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let cwd = working_directory()?;
    let plan = read_plan(&Source::of(&arguments.plan, &cwd), host.supervisors(), &cwd)?;
    let rows: Vec<TaskRow<'_>> = plan
        .tasks()
        .map(|(task, state, line)| TaskRow { task, line, state })
        .collect();
    let text = if arguments.json {
        pretty_json(&rows)
    } else {
        listing(&rows, terminal)
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

fn listing(rows: &[TaskRow<'_>], terminal: &Terminal) -> String {
    let mut table = Table::new(["", "TASK", "TITLE", "NEEDS", "GATES"]);
    for row in rows {
        let (mark, tone) = match row.state {
            TaskMark::Done => ("✓", Tone::Good),
            TaskMark::Open => ("·", Tone::Faint),
        };
        table.row([
            Cell::new(mark, tone),
            Cell::new(&row.task.id, Tone::Accent),
            Cell::from(row.task.title.as_str()),
            Cell::new(&row.task.needs.join(", "), Tone::Faint),
            Cell::from(row.task.gates.len().to_string()),
        ]);
    }
    let done = rows.iter().filter(|row| row.state == TaskMark::Done).count();
    let count = units::count(rows.len() as u64, "task");
    format!(
        "{}\n{count}, {done} done. No mistakes found.\n",
        terminal.render(&table)
    )
}
