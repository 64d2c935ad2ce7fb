//! The state of a plan as text or JSON.

use std::io::Write;

use temporalio_client::{Client, WorkflowQueryOptions};

use super::{INTERVAL, exit_code, status_of};
use crate::types::{PlanStatus, TaskStatus, task_id};
use crate::workflows::TaskRun;

pub(super) async fn show(client: &Client, plan: &str, watch: bool, json: bool) -> Result<u8, String> {
    let mut shown = String::new();
    loop {
        let status = status_of(client, plan).await?;
        let running = running(client, &status).await;
        let text = match json {
            true => json_text(&status, &running),
            false => text(&status, &running),
        };
        if text != shown {
            print_line(&text)?;
            shown = text;
        }
        if !watch || status.outcome.is_some() {
            return Ok(0);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Without a reader, printing ends with an error instead of a panic.
fn print_line(text: &str) -> Result<(), String> {
    writeln!(std::io::stdout(), "{text}").map_err(|error| format!("cannot print: {error}"))
}

/// Prints the states as they change until the plan ends; returns the exit code of the plan.
pub(super) async fn follow(client: &Client, plan: &str) -> Result<u8, String> {
    let mut shown = Vec::new();
    loop {
        // The engine or all workers may be unavailable for a while; the plan continues when they are back.
        if let Ok(status) = status_of(client, plan).await {
            for row in &status.tasks {
                let line = (row.id.clone(), row.state.clone(), row.attempt);
                if !shown.contains(&line) {
                    let why = row.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
                    print_line(&format!("{:<24} {}{why}", row.id, row.state))?;
                    shown.push(line);
                }
            }
            if let Some(outcome) = &status.outcome {
                print_line(&end_of(&status))?;
                return Ok(exit_code(outcome));
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

fn end_of(status: &PlanStatus) -> String {
    let done = status.tasks.iter().filter(|row| row.state == "done").count();
    format!(
        "{done} of {} tasks done, ${:.2}. To take the result: git fetch {} {}",
        status.tasks.len(),
        status.spent_usd,
        crate::provision::redacted(&status.repo),
        status.branch
    )
}

/// What the workflows of running tasks know.
async fn running(client: &Client, status: &PlanStatus) -> Vec<(String, TaskStatus)> {
    let mut found = Vec::new();
    for row in status.tasks.iter().filter(|row| row.state == "running") {
        let handle = client.get_workflow_handle::<TaskRun>(task_id(&status.plan, &row.id));
        // The task may have ended in the meantime.
        if let Ok(task) = handle
            .query(TaskRun::status, (), WorkflowQueryOptions::default())
            .await
        {
            found.push((row.id.clone(), task));
        }
    }
    found
}

fn json_text(status: &PlanStatus, running: &[(String, TaskStatus)]) -> String {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    value["running"] = running
        .iter()
        .map(|(id, task)| (id.clone(), serde_json::to_value(task).unwrap_or_default()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

fn text(status: &PlanStatus, running: &[(String, TaskStatus)]) -> String {
    let budget = status
        .max_cost_usd
        .map_or(String::new(), |most| format!(" of ${most:.2}"));
    let mut lines = vec![format!(
        "{}  ${:.2}{budget}  {}",
        status.plan, status.spent_usd, status.branch
    )];
    for row in &status.tasks {
        let task = running.iter().find(|(id, _)| *id == row.id).map(|(_, task)| task);
        let place = task.and_then(|task| task.host.as_ref().map(|host| (host, task)));
        let details = match (place, task.and_then(|task| task.waits_for.as_ref()), &row.why) {
            (_, Some(what), _) => format!("waits for {what}"),
            (Some((host, task)), None, _) => {
                format!(
                    "{host}, {} iterations saved, ${:.2}",
                    task.saved_iteration, task.cost_usd
                )
            }
            (None, None, Some(why)) => why.clone(),
            (None, None, None) => String::new(),
        };
        let pending = task.map_or(0, |task| task.pending.len());
        let pending = if pending > 0 {
            format!(", {pending} commands on their way")
        } else {
            String::new()
        };
        lines.push(
            format!("  {:<24} {:<9} {details}{pending}", row.id, row.state)
                .trim_end()
                .to_owned(),
        );
    }
    if status.outcome.is_some() {
        lines.push(end_of(status));
    }
    lines.join("\n")
}
