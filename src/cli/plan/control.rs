//! `ralph plan status`, `tell`, `retry`, `skip` and `stop`: show and control a plan that another process runs.

use std::time::Duration;

use jiff::Timestamp;

use crate::cli::args::{PlanStatusArguments, PlanStopArguments, PlanTaskArguments, PlanTellArguments};
use crate::cli::context::current_project;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::event::Command;
use crate::plan::{PlanError, StoredPlan};
use crate::store::{Inbox, is_running};
use crate::ui::{Terminal, pretty_json};

/// How often `--watch` reads the journal.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

fn find(plan: Option<&str>) -> Result<StoredPlan, CliError> {
    Ok(StoredPlan::find(&current_project()?, plan)?)
}

pub(super) fn status(arguments: &PlanStatusArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let mut shown = String::new();
    loop {
        let status = find(arguments.plan.as_deref())?.status();
        let text = if arguments.json {
            pretty_json(&status)
        } else {
            status.text(terminal)
        };
        if text != shown {
            let gap = if shown.is_empty() { "" } else { "\n" };
            terminal
                .print(&format!("{gap}{text}"))
                .map_err(CliError::Output)?;
            shown = text;
        }
        if !arguments.watch || !status.is_running {
            return Ok(Exit::Success);
        }
        std::thread::sleep(WATCH_INTERVAL);
    }
}

pub(super) fn tell(arguments: &PlanTellArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    if arguments.text.trim().is_empty() {
        return Err(CliError::EmptyCommand);
    }
    let plan = find(arguments.plan.as_deref())?;
    let run = plan.run_of(&arguments.task)?;
    let task = plan.task_id(&arguments.task)?;
    if !is_running(&run) {
        return Err(PlanError::NotRunning { task }.into());
    }
    let inbox = Inbox::new(&run);
    let text = arguments.text.clone();
    let request = inbox.sender("tell").request(Command::Message { text });
    inbox.put(request, Timestamp::now())?;
    print(
        terminal,
        &format!("Sent to {task}; messages are added to the next prompt.\n"),
    )
}

pub(super) fn retry(arguments: &PlanTaskArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let plan = find(arguments.plan.as_deref())?;
    let task = plan.retry(&arguments.task)?;
    confirm(&plan, &format!("{task} will run again"), terminal)
}

pub(super) fn skip(arguments: &PlanTaskArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let plan = find(arguments.plan.as_deref())?;
    let task = plan.skip(&arguments.task)?;
    confirm(&plan, &format!("{task} will be skipped"), terminal)
}

pub(super) fn stop(arguments: &PlanStopArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let plan = find(arguments.plan.as_deref())?;
    if arguments.task.is_none() && !plan.is_running() {
        return print(terminal, "The plan is not running.\n");
    }
    match plan.stop(arguments.task.as_deref())? {
        Some(task) => confirm(&plan, &format!("{task} will be stopped and parked"), terminal),
        None => print(
            terminal,
            "The plan stops; to resume it: ralph plan run --continue\n",
        ),
    }
}

fn confirm(plan: &StoredPlan, what: &str, terminal: &Terminal) -> Result<Exit, CliError> {
    let when = if plan.is_running() {
        ""
    } else {
        " when the plan is resumed: ralph plan run --continue"
    };
    print(terminal, &format!("{what}{when}.\n"))
}

fn print(terminal: &Terminal, text: &str) -> Result<Exit, CliError> {
    terminal.print(text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}
