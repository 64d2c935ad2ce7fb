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
use crate::policy::{Hooks, Notify, Seconds};
use crate::process::{Bounds, Environment, ProcessSpec, Stdin, Supervisors, Transport, capture};
use crate::ui::{PassedGates, clean::clean, iteration_verdict, run_verdict, units};

use super::host::Host;
use super::notifications::Notification;
use super::queue::Message;

/// The version of the document that hooks receive.
const VERSION: u32 = 1;
/// The maximum length of a hook's message in characters; it may quote the agent.
const MAX_MESSAGE_CHARS: usize = 500;

/// The hooks, and the directory in which they run.
#[derive(Debug, Clone, Default)]
pub struct HookCommands {
    pub hooks: Hooks,
    pub notify: Notify,
    /// The name of the project, for notifications.
    pub project: String,
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

/// The hook and the notifications of one event.
struct HookJob {
    calls: Vec<HookCall>,
}

/// A program to run.
pub(super) struct HookCall {
    /// For messages: `the hook on_fail`.
    pub(super) name: String,
    pub(super) spec: ProcessSpec,
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
                let calls = job.calls.iter();
                let problems: Vec<String> = calls
                    .filter_map(|call| run_hook(&supervisors, call, bounds))
                    .collect();
                let problem = Some(problems.join("; ")).filter(|problem| !problem.is_empty());
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

    /// Queues the hook of this kind and the notifications.
    pub(super) fn run(&self, kind: HookKind, event: &RunEvent, header: &RunHeader, gates: &PassedGates) {
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
        let mut calls = Vec::new();
        if let Some(command) = command_of(&self.commands.hooks, kind) {
            let variables = [("RALPH_RUN_ID", &header.run_id), ("RALPH_HOOK_MESSAGE", &message)];
            let mut set: Vec<(OsString, OsString)> = variables
                .map(|(name, value)| (name.into(), value.into()))
                .to_vec();
            set.push(("RALPH_HOOK".into(), name.into()));
            calls.push(HookCall {
                name: format!("the hook on_{name}"),
                spec: self.spec(command, set, format!("{document}\n").into_bytes()),
            });
        }
        let notification = Notification::of(kind, event, &self.commands, (&message, document));
        for target in notification
            .into_iter()
            .flat_map(|notification| notification.targets())
        {
            calls.push(HookCall {
                spec: self.spec(&target.command, target.variables, target.stdin),
                name: target.name,
            });
        }
        // If the thread has panicked, the run is being aborted.
        drop(self.jobs.send(HookJob { calls }));
    }

    fn spec(&self, command: &str, set: Vec<(OsString, OsString)>, stdin: Vec<u8>) -> ProcessSpec {
        ProcessSpec {
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), OsString::from(command)],
            environment: Environment {
                remove: Vec::new(),
                set,
            },
            cwd: self.commands.directory.clone(),
            stdin: Stdin::Bytes(stdin),
            stdout: Transport::Pipe,
            confinement: None,
        }
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
        RunEvent::Waiting {
            reason: Some(reason), ..
        } => format!("Waiting: {reason}."),
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
fn run_hook(supervisors: &Supervisors, call: &HookCall, bounds: Bounds) -> Option<String> {
    let name = &call.name;
    match capture(supervisors, &call.spec, bounds) {
        Err(error) => Some(format!("{name} could not start: {error}")),
        Ok(captured) => match captured.end {
            Some(end) if end.success() => None,
            Some(end) => {
                let stderr = String::from_utf8_lossy(&captured.stderr);
                let last = stderr.trim().lines().last().unwrap_or_default().to_owned();
                let colon = if last.is_empty() { "" } else { ": " };
                Some(format!("{name} failed with {end}{colon}{last}"))
            }
            None => {
                let timeout = Seconds(bounds.timeout.as_secs());
                Some(format!("{name} was stopped after {timeout} (hooks.timeout)"))
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
