//! Sentences that describe how iterations, gates and runs ended.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::{Tone, units};
use crate::event::{
    ErrorClass, Failure, GateResult, Interrupt, IterationOutcome, Limit, Pause, ProcessEnd, RunEvent,
    RunOutcome, TimeLimit, USERS_WORD,
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

    fn paused(sentence: impl Into<String>) -> Self {
        Self::new("!", Tone::Warning, sentence)
    }
}

/// The cost of a run that has a budget but whose agent reported no cost.
pub fn blind_budget(max_usd: f64) -> String {
    format!(
        "unknown; the limit of {} was not enforced",
        units::dollars(max_usd)
    )
}

/// The gates that passed in the latest iteration; unknown until the start of an iteration was seen.
#[derive(Debug, Clone, Default)]
pub struct PassedGates(Option<Vec<String>>);

impl PassedGates {
    pub fn new(names: Vec<String>) -> Self {
        Self(Some(names))
    }

    pub fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::IterationStarted { .. } => self.0 = Some(Vec::new()),
            RunEvent::GateEnded {
                name,
                result: GateResult::Passed,
                ..
            } => self.0.get_or_insert_default().push(name.clone()),
            _ => {}
        }
    }

    fn done_sentence(&self) -> String {
        match self.0.as_deref() {
            None => "Done.".to_owned(),
            Some([]) => "Done, but unverified: no gates are configured.".to_owned(),
            Some(names) => format!("Done. All gates passed ({}).", names.join(", ")),
        }
    }
}

/// How an iteration ended. `now` and `zone` are used to print times of day.
pub fn iteration_verdict(outcome: &IterationOutcome, now: Timestamp, zone: &TimeZone) -> Verdict {
    match outcome {
        IterationOutcome::Completed { marker } if marker == USERS_WORD => {
            Verdict::good("done: confirmed by the user")
        }
        IterationOutcome::Completed { marker } => Verdict::good(format!("done: the agent printed {marker}")),
        IterationOutcome::Continued { rejected_by: None } => Verdict::new("→", Tone::Accent, "not done yet"),
        IterationOutcome::Continued {
            rejected_by: Some(gate),
        } => Verdict::bad(format!(
            "rejected: the agent reported done, but the gate {gate} failed"
        )),
        IterationOutcome::Failed { failure } => Verdict::bad(format!("failed: {}", failure_words(failure))),
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
            Verdict::paused(with_message(format!("rate limited{until}, not counted"), message))
        }
        IterationOutcome::AuthRequired { message } => {
            Verdict::bad(with_message("the agent is not logged in".into(), message))
        }
        IterationOutcome::LimitReached { limit } => {
            Verdict::paused(format!("stopped at the run's limit of {}", limit_words(*limit)))
        }
        IterationOutcome::Interrupted => Verdict::paused("interrupted"),
        IterationOutcome::Skipped => Verdict::paused("skipped on request"),
        IterationOutcome::CouldNotStart { error } => {
            Verdict::bad(with_message("could not start the agent".into(), error))
        }
    }
}

/// How an iteration ended, in a word or two.
pub fn iteration_word(outcome: &IterationOutcome) -> &'static str {
    match outcome {
        IterationOutcome::Completed { .. } => "done",
        IterationOutcome::Continued { rejected_by: None } => "not done",
        IterationOutcome::Continued { rejected_by: Some(_) } => "rejected",
        IterationOutcome::Failed { .. } => "failed",
        IterationOutcome::TimedOut { .. } => "timed out",
        IterationOutcome::RateLimited { .. } => "rate limited",
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
        RunOutcome::Failed { reason } => Verdict::bad(format!("Failed: {}.", trimmed(reason))),
        RunOutcome::AuthRequired { message } => Verdict::bad(format!(
            "{}.",
            with_message("Stopped: the agent is not logged in".into(), trimmed(message))
        )),
        RunOutcome::LimitReached { limit } => {
            Verdict::paused(format!("Stopped at the limit of {}.", limit_words(*limit)))
        }
        RunOutcome::Interrupted { by } => Verdict::paused(match by {
            Interrupt::Int => "Interrupted by Ctrl-C.",
            Interrupt::Term => "Stopped by a termination signal.",
            Interrupt::Hup => "Stopped: the terminal was closed.",
            Interrupt::Quit => "Stopped on request.",
        }),
    }
}

/// The command that continues the run, if it is not done.
pub fn run_advice(outcome: &RunOutcome, run_id: &str) -> Option<String> {
    let resume = format!("ralph run --continue {run_id}");
    match outcome {
        RunOutcome::AuthRequired { .. } => Some(format!("log the agent in, then: {resume}")),
        RunOutcome::LimitReached { limit } => Some(format!("raise {}, then: {resume}", limit_key(*limit))),
        RunOutcome::Interrupted { .. } | RunOutcome::Failed { .. } => Some(format!("to resume: {resume}")),
        RunOutcome::Complete { .. } => None,
    }
}

pub(super) fn end_words(end: ProcessEnd) -> String {
    match end {
        ProcessEnd::Exited { .. } => format!("the agent ended with {end}"),
        ProcessEnd::Signaled { .. } => format!("the agent was {end}"),
    }
}

fn failure_words(failure: &Failure) -> String {
    match failure {
        Failure::Exit { end, message } => with_message(end_words(*end), message),
        Failure::AgentError { message } => with_message("the agent reported an error".into(), message),
        Failure::Declared { marker } => format!("the agent printed {marker}"),
        Failure::NoOutput => "the agent ended without any output".into(),
        Failure::OutsideAllowedPaths { files, more } => {
            let others = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "the agent changed files outside allowed_paths: {}{others}",
                files.join(", ")
            )
        }
        Failure::NoTerminalEvent => "the agent's output ended before its final event".into(),
    }
}

pub(super) fn limit_words(limit: Limit) -> String {
    match limit {
        Limit::Iterations { max } => units::count(max, "iteration"),
        Limit::Runtime { max_seconds } => units::duration(Duration::from_secs(max_seconds)),
        Limit::Cost { max_usd } => units::dollars(max_usd),
        Limit::Tokens { max } => units::count(max, "token"),
    }
}

fn limit_key(limit: Limit) -> &'static str {
    match limit {
        Limit::Iterations { .. } => "max_iterations",
        Limit::Runtime { .. } => "max_runtime_seconds",
        Limit::Cost { .. } => "max_cost_usd",
        Limit::Tokens { .. } => "max_tokens",
    }
}

/// Why a gate did not pass; `None` when it passed.
pub fn gate_words(result: GateResult) -> Option<String> {
    match result {
        GateResult::Passed => None,
        GateResult::Failed { end } => Some(end.to_string()),
        GateResult::TimedOut => Some("timed out".into()),
        GateResult::CouldNotStart => Some("could not start".into()),
    }
}

pub(super) fn pause_words(why: Pause) -> &'static str {
    match why {
        Pause::Cooldown => "cooldown",
        Pause::Backoff => "backing off after a failure",
        Pause::RateLimit => "rate limit",
    }
}

pub(super) fn error_words(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Auth => "not logged in",
        ErrorClass::RateLimit => "rate limit",
        ErrorClass::Overload => "service overloaded",
        ErrorClass::BadRequest => "bad request",
        ErrorClass::TooLong => "too long for the model",
        ErrorClass::Network => "network",
        ErrorClass::Refused => "the model declined",
        ErrorClass::MaxTurns => "out of turns",
        ErrorClass::Budget => "budget used up",
        ErrorClass::Other => "error",
    }
}

fn with_message(what: String, message: &str) -> String {
    match message.trim() {
        "" => what,
        message => format!("{what}: {message}"),
    }
}

/// Removes a final full stop, because the sentence adds one.
fn trimmed(reason: &str) -> &str {
    reason.trim().trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

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
            failed(Failure::Exit {
                end: ProcessEnd::Exited { code: 2 },
                message: "bad flag".into(),
            }),
            failed(Failure::Exit {
                end: ProcessEnd::Signaled { signal: 9 },
                message: String::new(),
            }),
            failed(Failure::AgentError {
                message: "overloaded".into(),
            }),
            failed(Failure::Declared {
                marker: "TASK_FAILED".into(),
            }),
            failed(Failure::NoOutput),
            failed(Failure::NoTerminalEvent),
            failed(Failure::OutsideAllowedPaths {
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
            IterationOutcome::AuthRequired {
                message: "run claude login".into(),
            },
            IterationOutcome::LimitReached {
                limit: Limit::Cost { max_usd: 5.0 },
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
        ✗ rejected: the agent reported done, but the gate tests failed
        ✗ failed: the agent ended with exit code 2: bad flag
        ✗ failed: the agent was killed by signal 9
        ✗ failed: the agent reported an error: overloaded
        ✗ failed: the agent printed TASK_FAILED
        ✗ failed: the agent ended without any output
        ✗ failed: the agent's output ended before its final event
        ✗ failed: the agent changed files outside allowed_paths: src/a.rs, b and 3 more
        ✗ timed out: still running after 5m00s
        ✗ timed out: no output for 10m00s
        ! rate limited until 00:00, not counted: usage limit
        ! rate limited, not counted
        ✗ the agent is not logged in: run claude login
        ! stopped at the run's limit of $5.00
        ! interrupted
        ! skipped on request
        ✗ could not start the agent: no such file
        ");
    }

    #[test]
    fn a_done_run_names_the_gates_that_passed_in_its_last_iteration() {
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
        };
        let started = RunEvent::IterationStarted {
            iteration: 1,
            attempt: 1,
            hat: None,
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
            limited(Limit::Iterations { max: 100 }),
            limited(Limit::Runtime { max_seconds: 14_400 }),
            limited(Limit::Cost { max_usd: 20.0 }),
            limited(Limit::Tokens { max: 1_000_000 }),
            RunOutcome::Interrupted { by: Interrupt::Int },
            RunOutcome::Interrupted { by: Interrupt::Term },
            RunOutcome::Interrupted { by: Interrupt::Hup },
            RunOutcome::Interrupted { by: Interrupt::Quit },
        ];
        let lines: Vec<String> = outcomes
            .iter()
            .map(|outcome| {
                let verdict = run_verdict(outcome, &PassedGates::default());
                let advice = run_advice(outcome, "RUN").unwrap_or_default();
                format!("{} {} [{advice}]", verdict.mark, verdict.sentence)
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        ✓ Done. []
        ✗ Failed: 5 failures in a row. [to resume: ralph run --continue RUN]
        ✗ Stopped: the agent is not logged in: run `claude /login`. [log the agent in, then: ralph run --continue RUN]
        ✗ Stopped: the agent is not logged in. [log the agent in, then: ralph run --continue RUN]
        ! Stopped at the limit of 100 iterations. [raise max_iterations, then: ralph run --continue RUN]
        ! Stopped at the limit of 4h00m. [raise max_runtime_seconds, then: ralph run --continue RUN]
        ! Stopped at the limit of $20.00. [raise max_cost_usd, then: ralph run --continue RUN]
        ! Stopped at the limit of 1,000,000 tokens. [raise max_tokens, then: ralph run --continue RUN]
        ! Interrupted by Ctrl-C. [to resume: ralph run --continue RUN]
        ! Stopped by a termination signal. [to resume: ralph run --continue RUN]
        ! Stopped: the terminal was closed. [to resume: ralph run --continue RUN]
        ! Stopped on request. [to resume: ralph run --continue RUN]
        ");
    }
}
