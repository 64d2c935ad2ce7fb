//! Hooks: the user's commands that are told what happens. They run beside the loop, one after the other, each within
//! its time; what goes wrong with them is a notice and nothing more.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

use crate::event::{IterationOutcome, RunEvent, RunHeader, RunOutcome};
use crate::panic_hook;
use crate::process::{Bounds, Environment, ProcessSpec, Stdin, Supervisors, Transport, capture};
use crate::ui::{PassedGates, clean::clean, iteration_verdict, run_verdict, units};

use super::queue::Message;

/// The version of the document that hooks are given.
const VERSION: u32 = 1;
/// More than this many behind, and the next ones are left out.
const MOST_WAITING: usize = 32;
/// The longest sentence a hook is given, in characters; an agent's own words may be in it.
const LONGEST_MESSAGE: usize = 500;

/// The user's commands, by what they want to know.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    pub on_start: Option<String>,
    pub on_iteration: Option<String>,
    pub on_complete: Option<String>,
    pub on_fail: Option<String>,
    pub on_rate_limit: Option<String>,
    pub timeout: Duration,
}

impl Hooks {
    /// The command that wants to know of this event, and under which name.
    fn wanting(&self, event: &RunEvent) -> Option<(&'static str, &String)> {
        let (name, command) = match event {
            RunEvent::RunStarted(_) | RunEvent::RunResumed(_) => ("start", &self.on_start),
            RunEvent::IterationEnded {
                outcome: IterationOutcome::RateLimited { .. },
                ..
            } => ("rate_limit", &self.on_rate_limit),
            RunEvent::IterationEnded { .. } => ("iteration", &self.on_iteration),
            RunEvent::RunEnded {
                outcome: RunOutcome::Complete { .. },
                ..
            } => ("complete", &self.on_complete),
            RunEvent::RunEnded { .. } => ("fail", &self.on_fail),
            _ => return None,
        };
        command.as_ref().map(|command| (name, command))
    }
}

/// Runs hooks in a thread of its own.
pub(super) struct HookRunner {
    hooks: Hooks,
    jobs: Sender<Job>,
    /// Not yet done.
    pub(super) waiting: usize,
}

struct Job {
    name: &'static str,
    spec: ProcessSpec,
}

impl HookRunner {
    pub(super) fn begin(hooks: Hooks, supervisors: Supervisors, inbox: Sender<Message>) -> Self {
        let (jobs, next) = mpsc::channel::<Job>();
        let bounds = Bounds {
            timeout: hooks.timeout,
            grace: Duration::from_millis(500),
            max_bytes: 4096,
        };
        std::thread::spawn(move || {
            for job in next {
                panic_hook::failpoint("hooks");
                let complaint = run(&supervisors, &job, bounds);
                if inbox.send(Message::HookEnded(complaint)).is_err() {
                    break;
                }
            }
        });
        Self {
            hooks,
            jobs,
            waiting: 0,
        }
    }

    /// Lets the hook run that wants to know of this event; a complaint if it cannot.
    pub(super) fn tell(
        &mut self,
        event: &RunEvent,
        header: &RunHeader,
        gates: &PassedGates,
    ) -> Option<String> {
        let (name, command) = self.hooks.wanting(event)?;
        if self.waiting >= MOST_WAITING {
            return Some(format!(
                "the hook on_{name} is left out: {MOST_WAITING} others are still waiting"
            ));
        }
        let now = Timestamp::now();
        let message = on_one_line(&sentence(event, header, gates, now));
        let document = json!({
            "version": VERSION,
            "event": name,
            "message": message,
            "run_id": header.run_id,
            "workspace": header.workspace,
            "agent": header.agent,
            "at": now,
            "record": event,
        });
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
            cwd: PathBuf::from(&header.workspace),
            stdin: Stdin::StdinWriter(format!("{document}\n").into_bytes()),
            stdout: Transport::Pipe,
        };
        if self.jobs.send(Job { name, spec }).is_ok() {
            self.waiting += 1;
        }
        None
    }
}

/// What happened, for people.
fn sentence(event: &RunEvent, header: &RunHeader, gates: &PassedGates, now: Timestamp) -> String {
    match event {
        RunEvent::RunResumed(_) => format!("Goes on with {}.", header.agent),
        RunEvent::IterationEnded {
            iteration, outcome, ..
        } => {
            let verdict = iteration_verdict(outcome, now, &TimeZone::system());
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
        _ => format!("Begins with {}.", header.agent),
    }
}

/// Without anything that a terminal obeys, and fit for a variable and for a line of a notification.
fn on_one_line(text: &str) -> String {
    let text = clean(text);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Runs one hook; says what went wrong.
fn run(supervisors: &Supervisors, job: &Job, bounds: Bounds) -> Option<String> {
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
                let seconds = bounds.timeout.as_secs();
                Some(format!("the hook on_{name} was stopped after {seconds} s"))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_short_line_that_no_terminal_obeys() {
        let told = on_one_line("failed:\u{1b}]0;title\u{7}\n a\0b\tc");
        assert_eq!(told, "failed: ab c");
        let long = on_one_line(&"é".repeat(LONGEST_MESSAGE + 1));
        assert_eq!(long.chars().count(), LONGEST_MESSAGE + 1);
        assert!(long.ends_with('…'));
    }
}
