//! How things ended, in sentences. Every outcome has one; a new outcome does not compile without one.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::{Tone, units};
use crate::event::{
    ErrorClass, Failure, GateResult, Interrupt, IterationOutcome, Limit, Pause, ProcessEnd, RunOutcome,
    TimeLimit, USERS_WORD,
};

/// An end, judged: a mark to find it by, and what happened.
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

/// Nobody knows what the run cost, though it was not to cost more than this.
pub fn blind_budget(max_usd: f64) -> String {
    format!(
        "unknown; the limit of {} was not enforced",
        units::dollars(max_usd)
    )
}

/// How an iteration ended. `now` and `zone` are for times of day.
pub fn iteration_verdict(outcome: &IterationOutcome, now: Timestamp, zone: &TimeZone) -> Verdict {
    match outcome {
        IterationOutcome::Completed { marker } if marker == USERS_WORD => {
            Verdict::good("complete: you said so")
        }
        IterationOutcome::Completed { marker } => Verdict::good(format!("complete: the agent gave {marker}")),
        IterationOutcome::Continued { rejected_by: None } => {
            Verdict::new("→", Tone::Accent, "not done yet, going on")
        }
        IterationOutcome::Continued {
            rejected_by: Some(gate),
        } => Verdict::bad(format!(
            "rejected: the agent says that it is done, but the gate {gate} failed"
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
        IterationOutcome::Skipped => Verdict::paused("stopped as you asked, going on with the next"),
        IterationOutcome::CouldNotStart { error } => {
            Verdict::bad(with_message("could not start the agent".into(), error))
        }
    }
}

/// How an iteration ended, in a word or two.
pub fn iteration_word(outcome: &IterationOutcome) -> &'static str {
    match outcome {
        IterationOutcome::Completed { .. } => "complete",
        IterationOutcome::Continued { rejected_by: None } => "going on",
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
pub fn run_verdict(outcome: &RunOutcome) -> Verdict {
    match outcome {
        RunOutcome::Complete { marker } if marker == USERS_WORD => Verdict::good("Complete: you said so."),
        RunOutcome::Complete { marker } => Verdict::good(format!("Complete: the agent gave {marker}.")),
        RunOutcome::Failed { reason } => Verdict::bad(format!("Gave up: {}.", trimmed(reason))),
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
            Interrupt::Hup => "Stopped: the terminal went away.",
            Interrupt::Quit => "Stopped as you asked.",
        }),
    }
}

/// What the user can do now, where that is not plain.
pub fn run_advice(outcome: &RunOutcome, run_id: &str) -> Option<String> {
    let go_on = format!("ralph run --continue {run_id}");
    match outcome {
        RunOutcome::AuthRequired { .. } => Some(format!("log the agent in, then: {go_on}")),
        RunOutcome::LimitReached { limit } => Some(format!("raise {}, then: {go_on}", limit_key(*limit))),
        RunOutcome::Interrupted { .. } | RunOutcome::Failed { .. } => Some(format!("to go on: {go_on}")),
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
        Failure::Declared { marker } => format!("the agent gave {marker}"),
        Failure::NoOutput => "the agent ended without any output".into(),
        Failure::OutsideAllowedPaths { files, more } => {
            let others = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "the agent changed what it may not (allowed_paths): {}{others}",
                files.join(", ")
            )
        }
        Failure::NoTerminalEvent => "the agent's output broke off before its final event".into(),
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

/// How a gate ended; nothing to add to its mark when it passed.
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

/// A reason that brings its own full stop does not get a second one.
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
        ✓ complete: the agent gave LOOP_COMPLETE
        → not done yet, going on
        ✗ rejected: the agent says that it is done, but the gate tests failed
        ✗ failed: the agent ended with exit code 2: bad flag
        ✗ failed: the agent was killed by signal 9
        ✗ failed: the agent reported an error: overloaded
        ✗ failed: the agent gave TASK_FAILED
        ✗ failed: the agent ended without any output
        ✗ failed: the agent's output broke off before its final event
        ✗ failed: the agent changed what it may not (allowed_paths): src/a.rs, b and 3 more
        ✗ timed out: still running after 5m00s
        ✗ timed out: no output for 10m00s
        ! rate limited until 00:00, not counted: usage limit
        ! rate limited, not counted
        ✗ the agent is not logged in: run claude login
        ! stopped at the run's limit of $5.00
        ! interrupted
        ! stopped as you asked, going on with the next
        ✗ could not start the agent: no such file
        ");
    }

    #[test]
    fn every_run_outcome_has_a_sentence_and_says_what_to_do() {
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
                let verdict = run_verdict(outcome);
                let advice = run_advice(outcome, "RUN").unwrap_or_default();
                format!("{} {} [{advice}]", verdict.mark, verdict.sentence)
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        ✓ Complete: the agent gave LOOP_COMPLETE. []
        ✗ Gave up: 5 failures in a row. [to go on: ralph run --continue RUN]
        ✗ Stopped: the agent is not logged in: run `claude /login`. [log the agent in, then: ralph run --continue RUN]
        ✗ Stopped: the agent is not logged in. [log the agent in, then: ralph run --continue RUN]
        ! Stopped at the limit of 100 iterations. [raise max_iterations, then: ralph run --continue RUN]
        ! Stopped at the limit of 4h00m. [raise max_runtime_seconds, then: ralph run --continue RUN]
        ! Stopped at the limit of $20.00. [raise max_cost_usd, then: ralph run --continue RUN]
        ! Stopped at the limit of 1,000,000 tokens. [raise max_tokens, then: ralph run --continue RUN]
        ! Interrupted by Ctrl-C. [to go on: ralph run --continue RUN]
        ! Stopped by a termination signal. [to go on: ralph run --continue RUN]
        ! Stopped: the terminal went away. [to go on: ralph run --continue RUN]
        ! Stopped as you asked. [to go on: ralph run --continue RUN]
        ");
    }
}
