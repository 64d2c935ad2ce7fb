//! Shows a plan: one line per event, and below them the running tasks; or the records as JSON lines.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use super::driver::RunningTask;
use super::step::{ParkReason, Plan, PlanEvent, PlanOutcome, PlanRecord, Rejection, TaskState};
use crate::event::Interrupt;
use crate::ui::{LiveLines, Terminal, Tone, units};

/// Where a plan is shown.
pub struct PlanScreen {
    lines: LiveLines<io::Stderr>,
    json: Option<Box<dyn Write>>,
}

impl PlanScreen {
    /// Prints lines for a person.
    pub fn lines(terminal: &Terminal) -> Self {
        Self {
            lines: terminal.live_lines(),
            json: None,
        }
    }

    /// Prints the records on stdout, and nothing else.
    pub fn json(terminal: &Terminal) -> Self {
        Self {
            lines: terminal.live_lines(),
            json: Some(Box::new(terminal.writer())),
        }
    }

    pub(super) fn show(&mut self, record: &PlanRecord, plan: &Plan) -> io::Result<()> {
        if let Some(json) = &mut self.json {
            serde_json::to_writer(&mut *json, record)?;
            json.write_all(b"\n")?;
            return json.flush();
        }
        match describe(&record.event, plan) {
            Some((mark, tone, text)) => self.lines.print_line(mark, tone, &text),
            None => Ok(()),
        }
    }

    /// Draws the running tasks and the totals.
    pub(super) fn draw(&mut self, plan: &Plan, running: &BTreeMap<String, RunningTask>, elapsed: Duration) {
        if self.json.is_some() || !self.lines.is_live() {
            return;
        }
        let lines = live_lines(plan, running, elapsed);
        // The journal has everything that is shown.
        let _ = self.lines.show(&lines);
    }

    pub(super) fn print_stopping(&mut self) {
        if self.json.is_none() {
            let _ = self
                .lines
                .print_line("·", Tone::Warning, "stopping; press Ctrl-C again to kill");
        }
    }

    pub(super) fn finish(&mut self) {
        let _ = self.lines.clear();
    }
}

fn live_lines(plan: &Plan, running: &BTreeMap<String, RunningTask>, elapsed: Duration) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (id, task) in running {
        let doing = match task.iteration {
            0 => "starting".to_owned(),
            iteration => format!("iteration {iteration}"),
        };
        let agent = plan.task(id).and_then(|task| task.task.agent.clone());
        let agent = agent.map(|agent| format!(" · {agent}")).unwrap_or_default();
        let cost = match task.cost_usd {
            cost if cost > 0.0 => format!(" · {}", units::dollars(cost)),
            _ => String::new(),
        };
        lines.push(format!(
            "  {id}{agent} · {doing}{cost} · {}",
            units::countdown(task.since.elapsed())
        ));
    }
    let count = |is: fn(&TaskState) -> bool| plan.tasks().iter().filter(|task| is(&task.state)).count();
    let merging: Vec<&str> = plan
        .tasks()
        .iter()
        .filter(|task| task.state == TaskState::Merging)
        .map(|task| task.task.id.as_str())
        .collect();
    if !merging.is_empty() {
        let queued = count(|state| *state == TaskState::Verified);
        let queued = if queued > 0 {
            format!(" · {queued} queued")
        } else {
            String::new()
        };
        lines.push(format!("  merging {}{queued}", merging.join(", ")));
    }
    let parked = count(|state| matches!(state, TaskState::Parked { .. }));
    let parked = if parked > 0 {
        format!(" · {parked} parked")
    } else {
        String::new()
    };
    let cost = if plan.spent() > 0.0 {
        format!(" · {}", units::dollars(plan.spent()))
    } else {
        String::new()
    };
    lines.push(format!(
        "{}/{} done{parked}{cost} · {} · Ctrl-C to stop",
        count(|state| *state == TaskState::Done),
        count(|state| *state != TaskState::Removed),
        units::countdown(elapsed)
    ));
    lines
}

/// An event as a line; `None` if it is not shown.
pub(super) fn describe(event: &PlanEvent, plan: &Plan) -> Option<(&'static str, Tone, String)> {
    let title = |id: &str| {
        plan.task(id)
            .map_or_else(|| id.to_owned(), |task| format!("{id} · {}", task.task.title))
    };
    Some(match event {
        PlanEvent::PlanStarted(header) => {
            let place = match &header.branch {
                Some(branch) => format!(
                    "{} in parallel, on branch {branch}",
                    units::count(header.jobs as u64, "task")
                ),
                None => "one task after the other, in this directory".to_owned(),
            };
            ("▸", Tone::Accent, format!("Plan {}: {place}", header.source))
        }
        PlanEvent::PlanResumed => ("▸", Tone::Accent, "Resuming the plan".to_owned()),
        PlanEvent::TaskChosen { task, title, attempt } => {
            let again = if *attempt > 1 {
                format!(" · attempt {attempt}")
            } else {
                String::new()
            };
            ("▸", Tone::Plain, format!("{task} · {title}{again}"))
        }
        PlanEvent::TaskDone { task } => {
            let cost = plan.task(task).map_or(0.0, |task| task.cost_usd);
            let cost = if cost > 0.0 {
                format!(" · {}", units::dollars(cost))
            } else {
                String::new()
            };
            ("✓", Tone::Good, format!("{}{cost}", title(task)))
        }
        PlanEvent::TaskRejected { task, rejection, .. } => (
            "↻",
            Tone::Warning,
            format!("{task} · runs again: {}", rejection_text(rejection)),
        ),
        PlanEvent::TaskParked { task, why, .. } => {
            ("✗", Tone::Bad, format!("{task} · parked: {}", park_text(why)))
        }
        PlanEvent::TaskReopened { task } => ("·", Tone::Faint, format!("{task} · open again")),
        PlanEvent::TaskSkipped { task } => ("·", Tone::Faint, format!("{task} · skipped")),
        PlanEvent::TaskRemoved { task } => ("·", Tone::Faint, format!("{task} · removed from the plan")),
        PlanEvent::TaskStopped { task, .. } => (
            "·",
            Tone::Warning,
            format!("{task} · stopped; the task stays open"),
        ),
        PlanEvent::Warning { text } => ("!", Tone::Warning, text.clone()),
        PlanEvent::PlanEnded { outcome } => return Some(ending(outcome, plan)),
        PlanEvent::TasksRead { .. }
        | PlanEvent::TaskRun { .. }
        | PlanEvent::TaskVerified { .. }
        | PlanEvent::TaskCommitted { .. }
        | PlanEvent::MergePrepared { .. }
        | PlanEvent::TaskMerged { .. }
        | PlanEvent::CommandReceived { .. } => return None,
    })
}

fn ending(outcome: &PlanOutcome, plan: &Plan) -> (&'static str, Tone, String) {
    let count = |is: fn(&TaskState) -> bool| plan.tasks().iter().filter(|task| is(&task.state)).count();
    let done = count(|state| *state == TaskState::Done);
    let parked = count(|state| matches!(state, TaskState::Parked { .. }));
    let all = count(|state| *state != TaskState::Removed);
    let cost = if plan.spent() > 0.0 {
        format!(" · {}", units::dollars(plan.spent()))
    } else {
        String::new()
    };
    let figures = format!(
        "{done} of {} done, {parked} parked{cost}",
        units::count(all as u64, "task")
    );
    match outcome {
        PlanOutcome::Complete => ("✓", Tone::Good, format!("The plan is complete: {figures}")),
        PlanOutcome::Incomplete => ("✗", Tone::Bad, format!("The plan is not complete: {figures}")),
        PlanOutcome::OutOfBudget => ("✗", Tone::Warning, format!("The budget is used up: {figures}")),
        PlanOutcome::Interrupted { by } => {
            let by = match by {
                Interrupt::Int => "Ctrl-C",
                Interrupt::Term => "SIGTERM",
                Interrupt::Hup => "SIGHUP",
                Interrupt::Quit => "a command",
            };
            ("·", Tone::Warning, format!("Stopped by {by}: {figures}"))
        }
    }
}

pub(super) fn park_text(why: &ParkReason) -> String {
    match why {
        ParkReason::Failed { reason } => reason.clone(),
        ParkReason::Need { need } => format!("it needs {need}"),
        ParkReason::Rejected { rejection } => format!("could not be merged: {}", rejection_text(rejection)),
        ParkReason::Stopped => "stopped by the user".to_owned(),
    }
}

pub(super) fn rejection_text(rejection: &Rejection) -> String {
    match rejection {
        Rejection::Conflict { files, .. } => format!("conflict in {}", files.join(", ")),
        Rejection::GateFailed { gate, .. } => format!("gate {gate} failed on the merged work"),
        Rejection::Moved => "the branch moved".to_owned(),
        Rejection::Stopped => "stopped".to_owned(),
        Rejection::Failed { reason } => reason.clone(),
    }
}
