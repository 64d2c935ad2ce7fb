//! The engine's tests: conversations between what happened and what is to be done.

mod budgets;
mod completion;
mod deadlines;
mod failures;
mod gates;
mod hats;
mod interactive;
mod interrupts;
mod properties;
mod rate_limits;
mod resume;
mod sessions;

use super::*;
use crate::event::{ErrorClass, Flow, Meta, RateLimitStatus, Tag, ToolStart};

const GRACE: Duration = Duration::from_secs(5);
const OK: ProcessEnd = ProcessEnd::Exited { code: 0 };

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn policy() -> Policy {
    Policy {
        started_at: Timestamp::UNIX_EPOCH,
        zone: jiff::tz::TimeZone::UTC,
        seed: 1,
        limits: Limits {
            iterations: 100,
            runtime: secs(14_400),
            cost_usd: None,
            tokens: None,
            consecutive_failures: 5,
            no_progress: 5,
        },
        costs: CostRules {
            prices: None,
            model: None,
            figures: CostFigures::Possible,
        },
        timing: Timing {
            wall: None,
            idle: Some(secs(600)),
            idle_in_tool: Some(secs(3600)),
            after_result: secs(30),
            stop_grace: GRACE,
            cooldown: Duration::ZERO,
        },
        markers: Markers::new(Vec::new(), Placement::Line),
        gates: Vec::new(),
        hats: Hats::default(),
        reading: Reading {
            messages: Messages::Delimited,
            ending: Ending::TerminalEvent,
        },
        auth_hint: "Run `agent login`.".into(),
        limit_phrases: vec!["You've hit your usage limit", "429 Too Many Requests"],
        on_declared_failure: OnDeclaredFailure::Stop,
        session: SessionRule::Fresh,
    }
}

pub(super) fn header() -> RunHeader {
    RunHeader {
        version: 1,
        run_id: "r".into(),
        ralph: "0".into(),
        agent: "fake".into(),
        agent_version: None,
        transcript: "rtf1".into(),
        workspace: "/w".into(),
        max_iterations: 100,
        max_runtime_seconds: None,
        max_tokens: None,
        max_cost_usd: None,
    }
}

pub(super) fn gate(name: &str) -> GateRule {
    GateRule {
        name: name.into(),
        command: format!("run {name}"),
        timeout: secs(60),
        cwd: None,
        environment: Vec::new(),
    }
}

/// A conversation: says what the engine wants done, without the telling of it.
struct Talk {
    engine: Engine,
    told: Vec<RunEvent>,
}

impl Talk {
    fn with(policy: Policy) -> Self {
        Self {
            engine: Engine::new(policy),
            told: Vec::new(),
        }
    }

    /// Into the first iteration.
    fn launched(policy: Policy) -> Self {
        let mut talk = Self::with(policy);
        assert_eq!(
            talk.say(0, Input::Started(Box::new(header()))),
            [Action::ReadPrompt]
        );
        talk.launch(0, 1, 1);
        talk
    }

    fn say(&mut self, seconds: u64, input: Input) -> Vec<Action> {
        self.at(secs(seconds), input)
    }

    fn at(&mut self, at: Duration, input: Input) -> Vec<Action> {
        let mut todo = Vec::new();
        for action in self.engine.step(at, input) {
            match action {
                Action::Emit(event) => self.told.push(event),
                action => todo.push(action),
            }
        }
        todo
    }

    fn launch(&mut self, seconds: u64, iteration: u64, attempt: u64) -> String {
        match &self.say(seconds, Input::Prompt(Ok("task".into())))[..] {
            [
                Action::Launch {
                    iteration: i,
                    attempt: a,
                    prompt,
                    ..
                },
            ] if (*i, *a) == (iteration, attempt) => prompt.clone(),
            other => panic!("expected the launch of iteration {iteration}, attempt {attempt}: {other:?}"),
        }
    }

    fn agent_says(&mut self, seconds: u64, text: &str) -> Vec<Action> {
        self.say(
            seconds,
            Input::Transcript(TranscriptEvent::message(Tag::Ai, text)),
        )
    }

    fn meta(&mut self, seconds: u64, meta: Meta) -> Vec<Action> {
        self.say(seconds, Input::Transcript(TranscriptEvent::meta(meta)))
    }

    fn result(&mut self, seconds: u64) -> Vec<Action> {
        self.meta(seconds, finished(true))
    }

    fn exits(&mut self, seconds: u64) -> Vec<Action> {
        self.say(seconds, Input::Exited { end: OK, swept: 0 })
    }

    /// A whole iteration that says one thing.
    fn iteration(&mut self, seconds: u64, text: &str) -> Vec<Action> {
        assert_eq!(self.agent_says(seconds, text), []);
        assert_eq!(self.result(seconds), []);
        self.exits(seconds)
    }

    fn last_outcome(&self) -> &IterationOutcome {
        let ended = self.told.iter().rev().find_map(|event| match event {
            RunEvent::IterationEnded { outcome, .. } => Some(outcome),
            _ => None,
        });
        ended.expect("an iteration has ended")
    }

    fn spends(&mut self, seconds: u64, cost_usd: f64) -> Vec<Action> {
        let usage = Usage {
            cost_usd: Some(cost_usd),
            ..Usage::default()
        };
        self.say(seconds, Input::Transcript(TranscriptEvent::usage(usage)))
    }
}

fn finished(success: bool) -> Meta {
    Meta::Finished {
        success,
        reason: None,
        text: None,
        turns: None,
        duration_ms: None,
    }
}

fn error(class: ErrorClass, message: &str) -> Meta {
    Meta::Error {
        class,
        message: message.into(),
        status: None,
    }
}

fn complete() -> Vec<Action> {
    vec![Action::Finish(RunOutcome::Complete {
        marker: "LOOP_COMPLETE".into(),
    })]
}

fn limit_reached(limit: Limit) -> Vec<Action> {
    vec![Action::Finish(RunOutcome::LimitReached { limit })]
}

fn stop() -> Vec<Action> {
    vec![Action::Stop { grace: GRACE }]
}

#[test]
fn a_run_goes_on_until_the_marker_stands_in_the_final_message() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.iteration(5, "Half of it works."), [Action::ReadPrompt]);
    talk.launch(5, 2, 1);
    assert_eq!(talk.iteration(9, "All of it works.\nLOOP_COMPLETE"), complete());
    assert!(matches!(
        talk.told.last(),
        Some(RunEvent::RunEnded {
            iterations: 2,
            duration_ms: 9000,
            ..
        })
    ));
}

#[test]
fn completing_on_the_last_allowed_iteration_is_success() {
    let mut rules = policy();
    rules.limits.iterations = 1;
    rules.limits.cost_usd = Some(0.01);
    let mut talk = Talk::launched(rules.clone());
    let total = Usage {
        cost_usd: Some(9.0),
        scope: UsageScope::Iteration,
        ..Usage::default()
    };
    assert_eq!(talk.say(1, Input::Transcript(TranscriptEvent::usage(total))), []);
    assert_eq!(talk.iteration(1, "LOOP_COMPLETE"), complete());

    let mut talk = Talk::launched(rules);
    assert_eq!(
        talk.iteration(1, "more to do"),
        limit_reached(Limit::Iterations { max: 1 })
    );
}

#[test]
fn a_marker_that_does_not_count_is_told_and_explained_in_the_next_prompt() {
    let mut talk = Talk::launched(policy());
    assert_eq!(
        talk.iteration(1, "I will print LOOP_COMPLETE later."),
        [Action::ReadPrompt]
    );
    assert!(
        talk.told
            .iter()
            .any(|event| matches!(event, RunEvent::MarkerIgnored { .. }))
    );
    assert!(talk.launch(1, 2, 1).contains("in the middle of a sentence"));
    assert_eq!(talk.iteration(2, "nothing new"), [Action::ReadPrompt]);
    assert!(
        !talk.launch(2, 3, 1).contains("in the middle of a sentence"),
        "said once, not for ever"
    );
}

#[test]
fn a_prompt_that_cannot_be_read_ends_the_run() {
    let mut talk = Talk::with(policy());
    talk.say(0, Input::Started(Box::new(header())));
    let reason = "cannot read PROMPT.md".to_owned();
    assert_eq!(
        talk.say(0, Input::Prompt(Err(reason.clone()))),
        [Action::Finish(RunOutcome::Failed { reason })]
    );
}

#[test]
fn topics_are_told_where_they_were_said() {
    let mut talk = Talk::launched(policy());
    talk.iteration(1, "<event topic=\"plan.ready\">three steps</event>");
    let topic = talk.told.iter().find_map(|event| match event {
        RunEvent::Topic { event, .. } => Some(event.topic.as_str()),
        _ => None,
    });
    assert_eq!(topic, Some("plan.ready"));
}

#[test]
fn without_messages_the_last_lines_decide() {
    let reading = Reading {
        messages: Messages::Absent,
        ending: Ending::ExitOnly,
    };
    let mut talk = Talk::launched(Policy { reading, ..policy() });
    for line in ["working", "LOOP_COMPLETE", "took 3 s"] {
        let event = TranscriptEvent::Text {
            tag: Tag::Ai,
            text: line.into(),
            flow: Flow::Line,
            parent: None,
        };
        assert_eq!(talk.say(1, Input::Transcript(event)), []);
    }
    assert_eq!(talk.exits(2), complete());
}
