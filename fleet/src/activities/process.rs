//! The child process `ralph run`: its command line, its records, and commands to it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::PoisonError;

use ralph::fleet::task_prompt;
use tokio::process::{Child, Command};

use super::Shared;
use crate::provision::Provisioned;
use crate::types::{Delivery, DriveSpec};

/// A started run. When `lifeline` is dropped, even because this process was killed, the run ends.
pub(super) struct RalphProcess {
    pub(super) child: Child,
    pub(super) lifeline: Option<OwnedFd>,
}

/// Starts the run of a task, or resumes it.
pub(super) fn start(worker: &Shared, spec: &DriveSpec, place: &Provisioned) -> Result<RalphProcess, String> {
    let lost = |error: std::io::Error| format!("cannot start {}: {error}", worker.ralph.display());
    let start = &spec.task.start;
    let prompt = place.file.with_file_name("prompt.md");
    std::fs::write(&prompt, task_prompt(start, &spec.task.source)).map_err(lost)?;
    let (reader, writer) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|error| lost(error.into()))?;
    // Only the child inherits the read end; both ends are closed on exec in other children.
    let inherited = rustix::io::dup(&reader).map_err(|error| lost(error.into()))?;
    let mut command = Command::new(&worker.ralph);
    command.arg("run");
    match place.is_known {
        true => drop(command.args(["--continue", &spec.task.run_id, "--yes"])),
        false => drop(command.args(["--run-id", &spec.task.run_id])),
    }
    command
        .arg("-P")
        .arg(&prompt)
        .args(["--trust", "--json", "--on-limit", "exit", "--while-open"])
        .arg(inherited.as_raw_fd().to_string())
        .arg("--checkpoint")
        .arg(checkpoint_command(&worker.own, &place.file));
    add_limits(&mut command, spec, place);
    command.args(&spec.task.rules.arguments);
    set_environment(&mut command, place);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(lost)?;
    drop((reader, inherited));
    Ok(RalphProcess {
        child,
        lifeline: Some(writer),
    })
}

fn add_limits(command: &mut Command, spec: &DriveSpec, place: &Provisioned) {
    let task = &spec.task.start.task;
    for gate in &task.gates {
        command.args(["--gate", gate]);
    }
    if let Some(agent) = &task.agent {
        command.args(["--agent", agent]);
    }
    if let Some(model) = &task.model {
        command.args(["--model", model]);
    }
    if let Some(most) = task.limits.max_iterations {
        command.args(["-n", &most.to_string()]);
    }
    if let Some(most) = task.limits.max_tokens {
        command.args(["--max-tokens", &most.to_string()]);
    }
    if let Some(most) = spec.task.start.max_cost_usd {
        // ralph counts what the run has cost on other workers, too.
        let before = spec.spent_before_usd.unwrap_or(place.copy.summary.cost_usd);
        command.args(["--max-cost", &format!("{:.6}", before + most)]);
    }
}

fn set_environment(command: &mut Command, place: &Provisioned) {
    command
        .current_dir(&place.copy.workspace)
        .env("RALPH_STATE_DIR", &place.state)
        .env("RALPH_TRUST", "1")
        // What protects the worker's connection to the engine is of no use to an agent.
        .env_remove("RALPH_FLEET_KEY")
        .env_remove("TEMPORAL_API_KEY")
        .env_remove("TEMPORAL_TLS_CLIENT_KEY_DATA");
}

/// The barrier between two iterations.
fn checkpoint_command(own: &Path, file: &Path) -> String {
    format!("exec {} checkpoint {}", quoted(own), quoted(file))
}

/// A path as one word of the shell.
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// The workspace and the state directory of a run on this worker.
fn place_of(worker: &Shared, run_id: &str) -> Option<(PathBuf, PathBuf)> {
    let running = worker.running.lock().unwrap_or_else(PoisonError::into_inner);
    running.get(run_id).cloned()
}

/// Writes a command into the inbox of a running copy; returns false if the task does not run here any more.
pub(super) async fn deliver(worker: &Shared, delivery: &Delivery) -> bool {
    let Some((workspace, state)) = place_of(worker, &delivery.run_id) else {
        return false;
    };
    let (options, text): (Vec<&String>, Vec<&String>) = delivery
        .command
        .words
        .iter()
        .partition(|word| word.starts_with("--"));
    let status = Command::new(&worker.ralph)
        .args(["tell", "--id", &delivery.command.id])
        .args(options)
        .arg("--")
        .arg(&delivery.run_id)
        .args(text)
        .current_dir(workspace)
        .env("RALPH_STATE_DIR", state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .await;
    status.is_ok_and(|status| status.success())
}
