//! Sentences that describe how iterations, gates and runs ended.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::{
    AgentEnd, CONFIRMED_BY_USER, GateResult, Interrupt, IterationFailure, IterationOutcome, RunEvent,
    RunLimit, RunOutcome, TimeLimit, Tone, WaitReason, units,
};

/// How an iteration or a run ended: a mark, its color, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub mark: &'static str,
    pub tone: Tone,
    pub sentence: String,
}

impl Verdict {
    fn new(mark: &'static str, tone: Tone, sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        Self { mark, tone, sentence }
    }

    fn good(sentence: impl Into<String>) -> Self {
        Self::new("✓", Tone::Good, sentence)
    }

    fn bad(sentence: impl Into<String>) -> Self {
        Self::new("✗", Tone::Bad, sentence)
    }

    fn warning(sentence: impl Into<String>) -> Self {
        Self::new("!", Tone::Warning, sentence)
    }
}

/// The cost of a run that has a budget but whose agent reported no cost.
pub fn unknown_cost(max_usd: f64) -> String {
    format!(
        "not reported; the budget of {} was not enforced",
        units::dollars(max_usd)
    )
}

/// The gates that passed in the latest iteration; unknown before the first `IterationStarted`.
#[derive(Debug, Clone, Default)]
pub struct PassedGates {
    names: Option<Vec<String>>,
    /// The snapshot that all of them verified.
    tree: Option<String>,
}

impl PassedGates {
    pub fn new(names: Vec<String>) -> Self {
        Self {
            names: Some(names),
            tree: None,
        }
    }

    pub fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::IterationStarted { .. } => (self.names, self.tree) = (Some(Vec::new()), None),
            RunEvent::GateEnded {
                name,
                result: GateResult::Passed,
                ..
            } => self.names.get_or_insert_default().push(name.clone()),
            RunEvent::Verification {
                gates,
                tree,
                verified,
                ..
            } => {
                self.names = Some(gates.clone());
                self.tree = tree.clone().filter(|_| *verified);
            }
            _ => {}
        }
    }

    /// The names of the gates; `None` if they are unknown.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// The snapshot that the gates verified.
    pub fn tree(&self) -> Option<&str> {
        self.tree.as_deref()
    }

    fn done_sentence(&self) -> String {
        match self.names.as_deref() {
            None => "Done.".to_owned(),
            Some([]) => "Done, but unverified: no gates are configured.".to_owned(),
            Some(names) => format!("Done. All gates passed ({}).", names.join(", ")),
        }
    }
}

/// How an iteration ended. `now` and `zone` are used to print times of day.
pub fn iteration_verdict(outcome: &IterationOutcome, now: Timestamp, zone: &TimeZone) -> Verdict {
    match outcome {
        IterationOutcome::Completed { marker } if marker == CONFIRMED_BY_USER => {
            Verdict::good("done: confirmed by the user")
        }
        IterationOutcome::Completed { marker } => Verdict::good(format!("done: the agent printed {marker}")),
        IterationOutcome::Continued { rejected_by: None } => Verdict::new("→", Tone::Accent, "not done yet"),
        IterationOutcome::Continued {
            rejected_by: Some(gate),
        } => Verdict::bad(format!(
            "rejected: the agent reported done, but gate `{gate}` failed"
        )),
        IterationOutcome::Failed { failure } => {
            Verdict::bad(format!("failed: {}", describe_failure(failure)))
        }
        IterationOutcome::TimedOut { limit, after_seconds } => {
            let length = units::duration(Duration::from_secs(*after_seconds));
            Verdict::bad(match limit {
                TimeLimit::Wall => format!("timed out: still running after {length}"),
                TimeLimit::Idle => format!("timed out: no output for {length}"),
            })
        }
        IterationOutcome::RateLimited { resets_at, message } => {
            let until = resets_at.map(|at| format!(" until {}", units::clock(at, now, zone)));
            let until = until.unwrap_or_default();
            Verdict::warning(with_message(format!("rate limited{until}, not counted"), message))
        }
        IterationOutcome::Overloaded { message } => {
            Verdict::warning(with_message("service overloaded, not counted".into(), message))
        }
        IterationOutcome::AuthRequired { message } => {
            Verdict::bad(with_message("the agent is not logged in".into(), message))
        }
        IterationOutcome::LimitReached { limit } => {
            Verdict::warning(format!("stopped at the run's {}", limit_label(*limit)))
        }
        IterationOutcome::Interrupted => Verdict::warning("interrupted"),
        IterationOutcome::Skipped => Verdict::warning("skipped on request"),
        IterationOutcome::CouldNotStart { error } => {
            Verdict::bad(with_message("could not start the agent".into(), error))
        }
    }
}

/// How an iteration ended, for a table cell.
pub fn iteration_label(outcome: &IterationOutcome) -> &'static str {
    match outcome {
        IterationOutcome::Completed { .. } => "done",
        IterationOutcome::Continued { rejected_by: None } => "not done",
        IterationOutcome::Continued { rejected_by: Some(_) } => "rejected",
        IterationOutcome::Failed { .. } => "failed",
        IterationOutcome::TimedOut { .. } => "timed out",
        IterationOutcome::RateLimited { .. } => "rate limited",
        IterationOutcome::Overloaded { .. } => "overloaded",
        IterationOutcome::AuthRequired { .. } => "not logged in",
        IterationOutcome::LimitReached { .. } => "limit reached",
        IterationOutcome::Interrupted => "interrupted",
        IterationOutcome::Skipped => "skipped",
        IterationOutcome::CouldNotStart { .. } => "could not start",
    }
}

/// How the run ended, in one sentence.
pub fn run_verdict(outcome: &RunOutcome, gates: &PassedGates) -> Verdict {
    match outcome {
        RunOutcome::Complete { .. } => Verdict::good(gates.done_sentence()),
        RunOutcome::Failed { reason } => Verdict::bad(format!("Failed: {}.", without_full_stop(reason))),
        RunOutcome::Misconfigured { reason } => {
            Verdict::bad(format!("Not started: {}.", without_full_stop(reason)))
        }
        RunOutcome::AuthRequired { message } => Verdict::bad(format!(
            "{}.",
            with_message(
                "Stopped: the agent is not logged in".into(),
                without_full_stop(message)
            )
        )),
        RunOutcome::Unreviewed { gate, reason } => Verdict::bad(format!(
            "Unreviewed: gate `{gate}`: {}.",
            without_full_stop(reason)
        )),
        RunOutcome::LimitReached { limit } => {
            Verdict::warning(format!("Stopped at the {}.", limit_label(*limit)))
        }
        RunOutcome::RateLimited { message, .. } => Verdict::warning(format!(
            "{}.",
            with_message(
                "Stopped: the usage limit is reached".into(),
                without_full_stop(message)
            )
        )),
        RunOutcome::CheckpointRefused { reason } => Verdict::bad(format!(
            "{}.",
            with_message(
                "Stopped: the checkpoint command refused to continue".into(),
                without_full_stop(reason)
            )
        )),
        RunOutcome::Interrupted { by } => Verdict::warning(match by {
            Interrupt::Int => "Interrupted by Ctrl-C.",
            Interrupt::Term => "Stopped by a termination signal.",
            Interrupt::Hup => "Stopped: the terminal was closed.",
            Interrupt::Quit => "Stopped on request.",
        }),
    }
}

/// The command that continues the run, if it is not done.
pub fn next_step(outcome: &RunOutcome, run_id: &str) -> Option<String> {
    let resume = format!("ralph run --continue {run_id}");
    match outcome {
        RunOutcome::AuthRequired { .. } => Some(format!("log the agent in, then: {resume}")),
        RunOutcome::LimitReached { limit } => Some(format!("{}, then: {resume}", limit_remedy(*limit))),
        RunOutcome::Interrupted { .. } | RunOutcome::Failed { .. } => Some(format!("to resume: {resume}")),
        RunOutcome::Unreviewed { .. } => Some(format!("decide about the findings, then: {resume}")),
        RunOutcome::RateLimited { .. } => Some(format!("when the limit has reset: {resume}")),
        RunOutcome::CheckpointRefused { .. } => Some(format!("if this copy is still in charge: {resume}")),
        RunOutcome::Misconfigured { .. } => Some(format!("fix the configuration, then: {resume}")),
        RunOutcome::Complete { .. } => None,
    }
}

pub(super) fn agent_exit(end: &AgentEnd) -> String {
    match end {
        AgentEnd::Exited { .. } => format!("the agent ended with {end}"),
        AgentEnd::Signaled { .. } => format!("the agent was {end}"),
        AgentEnd::Lost { reason } => format!("the connection to the agent was lost: {reason}"),
    }
}

fn describe_failure(failure: &IterationFailure) -> String {
    match failure {
        IterationFailure::Exit { end, message } => with_message(agent_exit(end), message),
        IterationFailure::AgentError { message } => {
            with_message("the agent reported an error".into(), message)
        }
        IterationFailure::Refused { message } => {
            with_message("the model refused the request".into(), message)
        }
        IterationFailure::Declared { marker } => format!("the agent printed {marker}"),
        IterationFailure::NoOutput => "the agent produced no output".into(),
        IterationFailure::OutsideAllowedPaths { files, more } => {
            let others = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "the agent changed files outside allowed_paths: {}{others}",
                files.join(", ")
            )
        }
        IterationFailure::TooMuchOutput { max_bytes } => {
            format!(
                "the agent printed more than {} (max_output_bytes)",
                units::bytes(*max_bytes)
            )
        }
        IterationFailure::DisallowedTool { tool } => {
            format!("the agent used {tool}, which is in disallowed_tools of its hat")
        }
        IterationFailure::NoTerminalEvent => "the agent's output ended before its final event".into(),
        IterationFailure::PathsNotChecked { reason } => {
            format!("cannot tell whether files outside allowed_paths were changed: {reason}")
        }
    }
}

fn limit_label(limit: RunLimit) -> String {
    match limit {
        RunLimit::Iterations { max } => format!("limit of {}", units::count(max, "iteration")),
        RunLimit::Runtime { max_seconds } => {
            format!(
                "time limit of {}",
                units::duration(Duration::from_secs(max_seconds))
            )
        }
        RunLimit::Cost { max_usd } => format!("cost limit of {}", units::dollars(max_usd)),
        RunLimit::Tokens { max } => format!("limit of {}", units::count(max, "token")),
        RunLimit::Disk { min_free_bytes } => {
            format!("limit of {} of free disk space", units::bytes(min_free_bytes))
        }
        RunLimit::DayCost { max_usd } => {
            format!("budget of {} per day for all runs", units::dollars(max_usd))
        }
        RunLimit::ProjectCost { max_usd } => {
            format!(
                "budget of {} for all runs of the project",
                units::dollars(max_usd)
            )
        }
    }
}

fn limit_remedy(limit: RunLimit) -> &'static str {
    match limit {
        RunLimit::Iterations { .. } => "raise max_iterations",
        RunLimit::Runtime { .. } => "raise max_runtime_seconds",
        RunLimit::Cost { .. } => "raise max_cost_usd",
        RunLimit::Tokens { .. } => "raise max_tokens",
        RunLimit::Disk { .. } => "free disk space",
        RunLimit::DayCost { .. } => "raise budgets.per_day_usd",
        RunLimit::ProjectCost { .. } => "raise budgets.per_project_usd",
    }
}

/// Why a gate did not pass; `None` when it passed.
pub fn gate_failure(result: GateResult) -> Option<String> {
    match result {
        GateResult::Passed => None,
        GateResult::Failed { end } => Some(end.to_string()),
        GateResult::TimedOut => Some("timed out".into()),
        GateResult::CouldNotStart => Some("could not start".into()),
        GateResult::Tampered => Some("passes only with changed protected files".into()),
        GateResult::Outdated => Some("files changed after it had passed".into()),
        GateResult::TooFewTests { passed } => Some(match passed {
            0 => "no tests passed".into(),
            1 => "only 1 test passed".into(),
            more => format!("only {more} tests passed"),
        }),
        GateResult::Rejected { findings } => Some(units::count(findings, "open finding")),
        GateResult::Unanswered => Some("no valid answer".into()),
    }
}

pub(crate) fn pause_label(why: WaitReason) -> &'static str {
    match why {
        WaitReason::Cooldown => "cooldown",
        WaitReason::Backoff => "backing off after a failure",
        WaitReason::RateLimit => "rate limit",
        WaitReason::Overload => "service overloaded",
        WaitReason::Quota => "quota",
    }
}

fn with_message(what: String, message: &str) -> String {
    match message.trim() {
        "" => what,
        message => format!("{what}: {message}"),
    }
}

/// Removes a final full stop, because the sentence adds one.
fn without_full_stop(reason: &str) -> &str {
    reason.trim().trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overloaded() -> IterationOutcome {
        let message = "529 Overloaded".into();
        IterationOutcome::Overloaded { message }
    }

    fn too_much_output() -> IterationFailure {
        IterationFailure::TooMuchOutput {
            max_bytes: 8_000_000_000,
        }
    }

    fn every_iteration_outcome() -> Vec<IterationOutcome> {
        let now = Timestamp::UNIX_EPOCH;
        let failed = |failure| IterationOutcome::Failed { failure };
        vec![
            IterationOutcome::Completed {
                marker: "LOOP_COMPLETE".into(),
            },
            IterationOutcome::Continued { rejected_by: None },
            IterationOutcome::Continued {
                rejected_by: Some("tests".into()),
            },
            failed(IterationFailure::Exit {
                end: AgentEnd::Exited { code: 2 },
                message: "bad flag".into(),
            }),
            failed(IterationFailure::Exit {
                end: AgentEnd::Signaled { signal: 9 },
                message: String::new(),
            }),
            failed(IterationFailure::AgentError {
                message: "overloaded".into(),
            }),
            failed(IterationFailure::Declared {
                marker: "TASK_FAILED".into(),
            }),
            failed(IterationFailure::NoOutput),
            failed(IterationFailure::NoTerminalEvent),
            failed(too_much_output()),
            failed(IterationFailure::OutsideAllowedPaths {
                files: vec!["src/a.rs".into(), "b".into()],
                more: 3,
            }),
            IterationOutcome::TimedOut {
                limit: TimeLimit::Wall,
                after_seconds: 300,
            },
            IterationOutcome::TimedOut {
                limit: TimeLimit::Idle,
                after_seconds: 600,
            },
            IterationOutcome::RateLimited {
                resets_at: Some(now),
                message: "usage limit".into(),
            },
            IterationOutcome::RateLimited {
                resets_at: None,
                message: String::new(),
            },
            overloaded(),
            IterationOutcome::AuthRequired {
                message: "run claude login".into(),
            },
            IterationOutcome::LimitReached {
                limit: RunLimit::Cost { max_usd: 5.0 },
            },
            IterationOutcome::Interrupted,
            IterationOutcome::Skipped,
            IterationOutcome::CouldNotStart {
                error: "no such file".into(),
            },
        ]
    }

    #[test]
    fn every_iteration_outcome_has_a_sentence() {
        let lines: Vec<String> = every_iteration_outcome()
            .iter()
            .map(|outcome| iteration_verdict(outcome, Timestamp::UNIX_EPOCH, &TimeZone::UTC))
            .map(|verdict| format!("{} {}", verdict.mark, verdict.sentence))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        ✓ done: the agent printed LOOP_COMPLETE
        → not done yet
        ✗ rejected: the agent reported done, but gate `tests` failed
        ✗ failed: the agent ended with exit code 2: bad flag
        ✗ failed: the agent was killed by signal 9
        ✗ failed: the agent reported an error: overloaded
        ✗ failed: the agent printed TASK_FAILED
        ✗ failed: the agent produced no output
        ✗ failed: the agent's output ended before its final event
        ✗ failed: the agent printed more than 8.0 GB (max_output_bytes)
        ✗ failed: the agent changed files outside allowed_paths: src/a.rs, b and 3 more
        ✗ timed out: still running after 5m00s
        ✗ timed out: no output for 10m00s
        ! rate limited until 00:00, not counted: usage limit
        ! rate limited, not counted
        ! service overloaded, not counted: 529 Overloaded
        ✗ the agent is not logged in: run claude login
        ! stopped at the run's cost limit of $5.00
        ! interrupted
        ! skipped on request
        ✗ could not start the agent: no such file
        ");
    }

    #[test]
    fn done_sentence_names_the_gates_that_passed_in_the_last_iteration() {
        let outcome = RunOutcome::Complete {
            marker: "LOOP_COMPLETE".into(),
        };
        let sentence = |gates: &PassedGates| run_verdict(&outcome, gates).sentence;
        let ended = |name: &str, result| RunEvent::GateEnded {
            iteration: 1,
            name: name.into(),
            result,
            duration_ms: 1,
            output: String::new(),
            details: Box::default(),
        };
        let started = RunEvent::IterationStarted {
            iteration: 1,
            attempt: 1,
            hat: None,
            agent: None,
            prompt_bytes: 0,
        };
        let mut gates = PassedGates::default();
        assert_eq!(sentence(&gates), "Done.");
        gates.apply(&started);
        assert_eq!(sentence(&gates), "Done, but unverified: no gates are configured.");
        gates.apply(&ended("lint", GateResult::Passed));
        gates.apply(&ended("tests", GateResult::TimedOut));
        gates.apply(&started);
        gates.apply(&ended("tests", GateResult::Passed));
        gates.apply(&ended("compile", GateResult::Passed));
        assert_eq!(sentence(&gates), "Done. All gates passed (tests, compile).");
    }

    #[test]
    fn every_run_outcome_has_a_sentence_and_a_next_step() {
        let limited = |limit| RunOutcome::LimitReached { limit };
        let outcomes = [
            RunOutcome::Complete {
                marker: "LOOP_COMPLETE".into(),
            },
            RunOutcome::Failed {
                reason: "5 failures in a row.".into(),
            },
            RunOutcome::AuthRequired {
                message: "run `claude /login`.".into(),
            },
            RunOutcome::AuthRequired {
                message: String::new(),
            },
            limited(RunLimit::Iterations { max: 100 }),
            limited(RunLimit::Runtime { max_seconds: 14_400 }),
            limited(RunLimit::Cost { max_usd: 20.0 }),
            limited(RunLimit::Tokens { max: 1_000_000 }),
            limited(RunLimit::Disk {
                min_free_bytes: 100_000_000,
            }),
            limited(RunLimit::DayCost { max_usd: 50.0 }),
            limited(RunLimit::ProjectCost { max_usd: 200.0 }),
            RunOutcome::Interrupted { by: Interrupt::Int },
            RunOutcome::Interrupted { by: Interrupt::Term },
            RunOutcome::Interrupted { by: Interrupt::Hup },
            RunOutcome::Interrupted { by: Interrupt::Quit },
        ];
        let lines: Vec<String> = outcomes
            .iter()
            .map(|outcome| {
                let verdict = run_verdict(outcome, &PassedGates::default());
                let advice = next_step(outcome, "RUN").unwrap_or_default();
                format!("{} {} [{advice}]", verdict.mark, verdict.sentence)
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        ✓ Done. []
        ✗ Failed: 5 failures in a row. [to resume: ralph run --continue RUN]
        ✗ Stopped: the agent is not logged in: run `claude /login`. [log the agent in, then: ralph run --continue RUN]
        ✗ Stopped: the agent is not logged in. [log the agent in, then: ralph run --continue RUN]
        ! Stopped at the limit of 100 iterations. [raise max_iterations, then: ralph run --continue RUN]
        ! Stopped at the time limit of 4h00m. [raise max_runtime_seconds, then: ralph run --continue RUN]
        ! Stopped at the cost limit of $20.00. [raise max_cost_usd, then: ralph run --continue RUN]
        ! Stopped at the limit of 1,000,000 tokens. [raise max_tokens, then: ralph run --continue RUN]
        ! Stopped at the limit of 100.0 MB of free disk space. [free disk space, then: ralph run --continue RUN]
        ! Stopped at the budget of $50.00 per day for all runs. [raise budgets.per_day_usd, then: ralph run --continue RUN]
        ! Stopped at the budget of $200.00 for all runs of the project. [raise budgets.per_project_usd, then: ralph run --continue RUN]
        ! Interrupted by Ctrl-C. [to resume: ralph run --continue RUN]
        ! Stopped by a termination signal. [to resume: ralph run --continue RUN]
        ! Stopped: the terminal was closed. [to resume: ralph run --continue RUN]
        ! Stopped on request. [to resume: ralph run --continue RUN]
        ");
    }
}
