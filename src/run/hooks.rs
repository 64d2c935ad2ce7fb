//! Runs hooks: commands of the user that are notified of events. They run in parallel with the loop, one after the other, each
//! with a time limit. A hook that fails causes a notice and nothing else.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::engine::HookKind;
use crate::event::{RunEvent, RunHeader};
use crate::failpoint;
use crate::policy::{Hooks, Seconds};
use crate::process::{Bounds, Environment, ProcessSpec, Stdin, Supervisors, Transport, capture};
use crate::ui::{PassedGates, clean::clean, iteration_verdict, run_verdict, units};

use super::host::Host;
use super::queue::Message;

/// The version of the document that hooks receive.
const VERSION: u32 = 1;
/// The maximum length of a hook's message in characters; it may quote the agent.
const MAX_MESSAGE_CHARS: usize = 500;

/// The hooks, and the directory in which they run.
#[derive(Debug, Clone, Default)]
pub struct HookCommands {
    pub hooks: Hooks,
    pub directory: PathBuf,
}

/// Returns the command for this kind of hook.
fn command_of(hooks: &Hooks, kind: HookKind) -> Option<&str> {
    let command = match kind {
        HookKind::Start => &hooks.on_start,
        HookKind::Iteration => &hooks.on_iteration,
        HookKind::Complete => &hooks.on_complete,
        HookKind::Fail => &hooks.on_fail,
        HookKind::RateLimit => &hooks.on_rate_limit,
        HookKind::Ask => &hooks.on_ask,
    };
    command.as_deref()
}

/// Runs hooks one after the other on a thread of their own.
pub(super) struct HookRunner {
    /// Distinguishes this thread's reports from those of the thread that it replaces.
    pub(super) generation: u64,
    commands: HookCommands,
    jobs: Sender<HookJob>,
}

struct HookJob {
    name: &'static str,
    spec: ProcessSpec,
}

impl HookRunner {
    /// Starts the thread. It reports the end of each hook to the queue.
    pub(super) fn spawn(
        generation: u64,
        commands: HookCommands,
        host: &Host,
        queue: Sender<Message>,
    ) -> io::Result<Self> {
        let (jobs, next) = mpsc::channel::<HookJob>();
        let bounds = Bounds {
            timeout: commands.hooks.timeout.duration(),
            grace: Duration::from_millis(500),
            max_bytes: 4096,
        };
        let (supervisors, panics) = (host.supervisors().clone(), host.panics().clone());
        let work = move || {
            for job in next {
                failpoint!(panics, Hooks);
                let problem = run_hook(&supervisors, &job, bounds);
                if queue.send(Message::HookEnded { generation, problem }).is_err() {
                    break;
                }
            }
        };
        host.panics().spawn("hooks", work)?;
        Ok(Self {
            generation,
            commands,
            jobs,
        })
    }

    /// Queues the hook of this kind.
    pub(super) fn run(&self, kind: HookKind, event: &RunEvent, header: &RunHeader, gates: &PassedGates) {
        let Some(command) = command_of(&self.commands.hooks, kind) else {
            return;
        };
        let (name, now) = (kind.name(), Timestamp::now());
        let message = on_one_line(&sentence(event, header, gates, now));
        let mut document = json!({
            "version": VERSION,
            "event": name,
            "message": message,
            "run_id": header.run_id,
            "workspace": header.workspace,
            "agent": header.agent,
            "at": now,
            "record": event,
        });
        if let (HookKind::Complete, Some(names)) = (kind, gates.names()) {
            document["verification"] = json!({
                "verified": !names.is_empty(),
                "gates": names,
                "tree": gates.tree(),
            });
        }
        let environment = Environment {
            remove: Vec::new(),
            set: vec![
                ("RALPH_RUN_ID".into(), header.run_id.clone().into()),
                ("RALPH_HOOK".into(), name.into()),
                ("RALPH_HOOK_MESSAGE".into(), message.into()),
            ],
        };
        let spec = ProcessSpec {
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), OsString::from(command)],
            environment,
            cwd: self.commands.directory.clone(),
            stdin: Stdin::Bytes(format!("{document}\n").into_bytes()),
            stdout: Transport::Pipe,
        };
        // If the thread has panicked, the run is being aborted.
        drop(self.jobs.send(HookJob { name, spec }));
    }
}

/// Describes an event in one sentence.
fn sentence(event: &RunEvent, header: &RunHeader, gates: &PassedGates, now: Timestamp) -> String {
    match event {
        RunEvent::RunResumed(_) => format!("Resumed with {}.", header.agent),
        RunEvent::IterationEnded {
            iteration, outcome, ..
        } => {
            let verdict = iteration_verdict(outcome, now, &crate::ui::local_time_zone());
            format!("Iteration {iteration}: {}", verdict.sentence)
        }
        RunEvent::RunEnded {
            outcome,
            iterations,
            duration_ms,
            usage,
        } => {
            let time = units::duration(Duration::from_millis(*duration_ms));
            let cost = usage.cost_usd.map(|cost| format!(", {}", units::dollars(cost)));
            let (iterations, cost) = (units::count(*iterations, "iteration"), cost.unwrap_or_default());
            format!(
                "{} {iterations}, {time}{cost}.",
                run_verdict(outcome, gates).sentence
            )
        }
        RunEvent::QuestionAsked { question, .. } => format!("The agent asks: {question}"),
        _ => format!("Started with {}.", header.agent),
    }
}

/// Joins the text to one line without control characters, for a variable or a notification.
fn on_one_line(text: &str) -> String {
    let text = clean(text);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Runs one hook; returns the problem, if any.
fn run_hook(supervisors: &Supervisors, job: &HookJob, bounds: Bounds) -> Option<String> {
    let name = job.name;
    match capture(supervisors, &job.spec, bounds) {
        Err(error) => Some(format!("the hook on_{name} could not start: {error}")),
        Ok(captured) => match captured.end {
            Some(end) if end.success() => None,
            Some(end) => {
                let stderr = String::from_utf8_lossy(&captured.stderr);
                let last = stderr.trim().lines().last().unwrap_or_default().to_owned();
                let colon = if last.is_empty() { "" } else { ": " };
                Some(format!("the hook on_{name} failed with {end}{colon}{last}"))
            }
            None => {
                let timeout = Seconds(bounds.timeout.as_secs());
                Some(format!(
                    "the hook on_{name} was stopped after {timeout} (hooks.timeout)"
                ))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_one_short_line_without_control_characters() {
        let line = on_one_line("failed:\u{1b}]0;title\u{7}\n a\0b\tc");
        assert_eq!(line, "failed: ab c");
        let long = on_one_line(&"é".repeat(MAX_MESSAGE_CHARS + 1));
        assert_eq!(long.chars().count(), MAX_MESSAGE_CHARS + 1);
        assert!(long.ends_with('…'));
    }
}
