//! The engine's tests: conversations between what happened and what is to be done.

mod hats;
mod limits;
mod typed;

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
        assert_eq!(talk.say(0, Input::Started(header())), [Action::ReadPrompt]);
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
        self.say(seconds, Input::Transcript(TranscriptEvent::Usage { usage }))
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
    assert_eq!(
        talk.say(1, Input::Transcript(TranscriptEvent::Usage { usage: total })),
        []
    );
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
fn exit_code_and_terminal_event_are_judged_together() {
    let failed = |talk: &Talk| match talk.last_outcome() {
        IterationOutcome::Failed { failure } => failure.clone(),
        other => panic!("{other:?}"),
    };

    let mut talk = Talk::launched(policy());
    assert_eq!(talk.agent_says(1, "LOOP_COMPLETE"), []);
    talk.exits(1);
    assert_eq!(
        failed(&talk),
        Failure::NoTerminalEvent,
        "a stream without its end was cut off"
    );

    let mut talk = Talk::launched(policy());
    assert_eq!(talk.agent_says(1, "LOOP_COMPLETE"), []);
    assert_eq!(talk.result(1), []);
    talk.say(1, Input::Stderr("boom".into()));
    let end = ProcessEnd::Exited { code: 3 };
    talk.say(1, Input::Exited { end, swept: 0 });
    assert_eq!(
        failed(&talk),
        Failure::Exit {
            end,
            message: "boom".into()
        }
    );

    let mut talk = Talk::launched(policy());
    assert_eq!(talk.agent_says(1, "LOOP_COMPLETE"), []);
    assert_eq!(talk.meta(1, finished(false)), []);
    talk.exits(1);
    assert!(
        matches!(failed(&talk), Failure::AgentError { .. }),
        "is_error with exit 0 is a failure"
    );

    let mut talk = Talk::launched(policy());
    assert_eq!(talk.result(1), []);
    talk.exits(1);
    assert_eq!(
        failed(&talk),
        Failure::NoOutput,
        "exit 0 without output is a failure"
    );
}

#[test]
fn failures_are_retried_with_growing_waits_until_there_are_too_many() {
    let mut talk = Talk::launched(policy());
    let mut now = Duration::ZERO;
    let mut waits = Vec::new();
    for failures in 1..=4 {
        let exit = Input::Exited {
            end: ProcessEnd::Exited { code: 1 },
            swept: 0,
        };
        assert_eq!(talk.at(now, exit), []);
        let until = talk.engine.deadline().expect("a wait has an end");
        assert_eq!(
            talk.at(until - Duration::from_millis(1), Input::Tick),
            [],
            "not a moment early"
        );
        assert_eq!(talk.at(until, Input::Tick), [Action::ReadPrompt]);
        waits.push((until - now).as_secs_f64());
        now = until;
        talk.at(now, Input::Prompt(Ok("task".into())));
        assert_eq!(talk.engine.failures_in_a_row, failures);
    }
    assert!(waits.is_sorted() && (1.6..20.0).contains(&waits[3]), "{waits:?}");
    let exit = Input::Exited {
        end: ProcessEnd::Exited { code: 1 },
        swept: 0,
    };
    let reason = "5 iterations failed in a row (max_consecutive_failures)".to_owned();
    assert_eq!(
        talk.at(now, exit),
        [Action::Finish(RunOutcome::Failed { reason })]
    );
}

#[test]
fn one_good_iteration_forgives_the_failures_before_it() {
    let mut talk = Talk::launched(policy());
    talk.say(
        1,
        Input::Exited {
            end: ProcessEnd::Signaled { signal: 9 },
            swept: 0,
        },
    );
    assert_eq!(talk.say(10, Input::Tick), [Action::ReadPrompt]);
    talk.launch(10, 2, 1);
    assert_eq!(talk.iteration(20, "better"), [Action::ReadPrompt]);
    assert_eq!(talk.engine.failures_in_a_row, 0);
}

#[test]
fn an_agent_that_says_it_failed_ends_the_run_or_is_retried_as_configured() {
    let mut talk = Talk::launched(policy());
    let reason = "the agent gave up: it said <<<RALPHEX:FAILED>>>".to_owned();
    assert_eq!(
        talk.iteration(1, "<<<RALPHEX:FAILED>>>"),
        [Action::Finish(RunOutcome::Failed { reason })]
    );

    let mut talk = Talk::launched(Policy {
        on_declared_failure: OnDeclaredFailure::Retry,
        ..policy()
    });
    assert_eq!(talk.iteration(1, "<<<RALPHEX:FAILED>>>"), []);
    assert_eq!(talk.say(10, Input::Tick), [Action::ReadPrompt]);
}

#[test]
fn a_missing_login_stops_at_once_with_help() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.meta(1, error(ErrorClass::Auth, "Not logged in.")), []);
    assert_eq!(talk.meta(1, finished(false)), []);
    let message = "Not logged in. Run `agent login`.".to_owned();
    assert_eq!(
        talk.exits(1),
        [Action::Finish(RunOutcome::AuthRequired { message })]
    );
}

#[test]
fn an_error_in_passing_does_not_fail_an_iteration_that_succeeded() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.meta(1, error(ErrorClass::RateLimit, "slow down")), []);
    let allowed = Meta::RateLimit {
        status: RateLimitStatus::Allowed,
        resets_at: None,
        limit: None,
    };
    assert_eq!(talk.meta(1, allowed), []);
    assert_eq!(talk.iteration(2, "LOOP_COMPLETE"), complete());
}

#[test]
fn a_usage_limit_is_waited_out_and_the_same_iteration_runs_again_uncounted() {
    let mut rules = policy();
    rules.limits.runtime = secs(100);
    let mut talk = Talk::launched(rules);
    let resets_at = Some(Timestamp::from_second(5000).expect("a time"));
    assert_eq!(
        talk.meta(
            10,
            Meta::RateLimit {
                status: RateLimitStatus::Rejected,
                resets_at,
                limit: None
            }
        ),
        []
    );
    assert_eq!(talk.meta(10, finished(false)), []);
    assert_eq!(talk.exits(10), []);
    assert_eq!(
        *talk.last_outcome(),
        IterationOutcome::RateLimited {
            resets_at,
            message: String::new()
        }
    );
    assert_eq!(
        talk.engine.deadline(),
        Some(secs(5001)),
        "longer than max_runtime_seconds, which it does not use up"
    );
    assert_eq!(talk.say(5001, Input::Tick), [Action::ReadPrompt]);
    talk.launch(5001, 1, 2);
    assert_eq!(talk.iteration(5010, "LOOP_COMPLETE"), complete());
    assert!(matches!(
        talk.told.last(),
        Some(RunEvent::RunEnded { iterations: 1, .. })
    ));
}

#[test]
fn the_user_can_end_a_wait_early() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.meta(1, error(ErrorClass::RateLimit, "429")), []);
    assert_eq!(talk.meta(1, finished(false)), []);
    assert_eq!(talk.exits(1), []);
    assert!(
        talk.engine.deadline().is_some_and(|due| due >= secs(49)),
        "no stated reset: about a minute"
    );
    assert_eq!(talk.say(5, Input::Woken), [Action::ReadPrompt]);
    talk.launch(5, 1, 2);
}

#[test]
fn silence_has_a_limit_that_is_longer_while_a_tool_runs() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.say(100, Input::Heard), []);
    assert_eq!(talk.engine.deadline(), Some(secs(700)));
    let tool = ToolStart {
        id: "t".into(),
        name: "shell".into(),
        input: None,
        parent: None,
    };
    assert_eq!(
        talk.say(100, Input::Transcript(TranscriptEvent::ToolStart { tool })),
        []
    );
    assert_eq!(talk.engine.deadline(), Some(secs(3700)));
    assert_eq!(talk.say(3699, Input::Tick), []);
    assert_eq!(talk.say(3700, Input::Tick), stop());
    talk.say(
        3701,
        Input::Exited {
            end: ProcessEnd::Signaled { signal: 15 },
            swept: 0,
        },
    );
    let expected = IterationOutcome::TimedOut {
        limit: TimeLimit::Idle,
        after_seconds: 3701,
    };
    assert_eq!(*talk.last_outcome(), expected);
}

#[test]
fn the_wall_limit_holds_however_busy_the_agent_is() {
    let mut rules = policy();
    rules.timing.wall = Some(secs(60));
    let mut talk = Talk::launched(rules);
    assert_eq!(talk.say(59, Input::Heard), []);
    assert_eq!(talk.say(60, Input::Tick), stop());
    assert_eq!(talk.agent_says(61, "LOOP_COMPLETE"), []);
    assert_eq!(talk.exits(61), []);
    assert!(matches!(
        talk.last_outcome(),
        IterationOutcome::TimedOut {
            limit: TimeLimit::Wall,
            ..
        }
    ));
}

#[test]
fn an_agent_that_lingers_after_its_result_is_judged_by_the_result() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.agent_says(1, "LOOP_COMPLETE"), []);
    assert_eq!(talk.say(1, Input::Heard), []);
    assert_eq!(talk.result(1), []);
    assert_eq!(
        talk.say(20, Input::Heard),
        [],
        "any further output gives it another 30 seconds"
    );
    assert_eq!(talk.engine.deadline(), Some(secs(50)));
    assert_eq!(talk.say(50, Input::Tick), stop());
    assert_eq!(
        talk.say(
            51,
            Input::Exited {
                end: ProcessEnd::Signaled { signal: 15 },
                swept: 0
            }
        ),
        complete()
    );
}

#[test]
fn an_agent_that_fails_again_and_again_and_does_not_go_is_stopped() {
    let mut talk = Talk::launched(policy());
    let start = Input::Transcript(TranscriptEvent::ToolStart {
        tool: ToolStart {
            id: "t".into(),
            name: "Bash".into(),
            input: None,
            parent: None,
        },
    });
    for second in 1..=4 {
        assert_eq!(talk.meta(second, finished(false)), []);
    }
    assert_eq!(talk.say(5, start), [], "work between failures is no circle");
    for second in 6..=9 {
        assert_eq!(talk.meta(second, finished(false)), []);
    }
    assert_eq!(talk.meta(10, finished(false)), stop());
    assert_eq!(talk.meta(11, finished(false)), [], "told once");
}

#[test]
fn the_runtime_limit_stops_an_agent_in_mid_iteration() {
    let mut rules = policy();
    rules.limits.runtime = secs(30);
    let mut talk = Talk::launched(rules);
    assert_eq!(talk.say(29, Input::Heard), []);
    assert_eq!(talk.engine.deadline(), Some(secs(30)));
    assert_eq!(talk.say(30, Input::Tick), stop());
    assert_eq!(talk.exits(31), limit_reached(Limit::Runtime { max_seconds: 30 }));
}

#[test]
fn a_budget_is_enforced_at_the_message_that_crosses_it() {
    let mut rules = policy();
    rules.limits.cost_usd = Some(0.05);
    let mut talk = Talk::launched(rules);
    for second in 1..5 {
        assert_eq!(talk.spends(second, 0.01), []);
    }
    assert_eq!(talk.spends(5, 0.01), stop());
    assert_eq!(talk.exits(6), limit_reached(Limit::Cost { max_usd: 0.05 }));
    match talk.told.last() {
        Some(RunEvent::RunEnded { usage, .. }) => {
            assert!((usage.cost_usd.unwrap_or(0.0) - 0.05).abs() < 1e-9)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_agent_that_has_given_its_result_is_not_stopped_for_what_it_cost() {
    let mut rules = policy();
    rules.limits.cost_usd = Some(0.05);
    let mut talk = Talk::launched(rules);
    assert_eq!(talk.agent_says(1, "LOOP_COMPLETE"), []);
    assert_eq!(talk.result(2), []);
    assert_eq!(talk.spends(2, 1.0), []);
    assert_eq!(talk.exits(3), complete());
}

#[test]
fn a_budget_is_enforced_by_priced_figures_too() {
    let mut rules = policy();
    rules.limits.cost_usd = Some(2.0);
    let price = Price {
        input: 1.0,
        output: 1.0,
        cache_read: None,
        cache_write: None,
    };
    rules.costs.prices = Some(Prices::new([("m".into(), price)]));
    let mut talk = Talk::launched(rules);
    let million = || {
        Input::Transcript(TranscriptEvent::Usage {
            usage: Usage {
                prompt_tokens: Some(1_000_000),
                completion_tokens: Some(0),
                model: Some("m".into()),
                ..Usage::default()
            },
        })
    };
    assert_eq!(talk.say(1, million()), []);
    assert_eq!(talk.say(2, million()), stop());
    assert_eq!(talk.exits(3), limit_reached(Limit::Cost { max_usd: 2.0 }));
}

#[test]
fn a_budget_without_any_figure_is_complained_about_once() {
    let mut rules = policy();
    rules.limits.cost_usd = Some(2.0);
    rules.costs.figures = CostFigures::Impossible { why: "it is".into() };
    let mut talk = Talk::launched(rules);
    let _ = talk.iteration(1, "going on");
    let told = talk
        .told
        .iter()
        .filter(|event| matches!(event, RunEvent::Notice { .. }));
    assert_eq!(told.count(), 1);

    let mut rules = policy();
    rules.limits.cost_usd = Some(2.0);
    let mut talk = Talk::launched(rules);
    for iteration in 1..=2 {
        let usage = Usage {
            total_tokens: Some(10),
            ..Usage::default()
        };
        assert_eq!(
            talk.say(iteration, Input::Transcript(TranscriptEvent::Usage { usage })),
            []
        );
        assert_eq!(talk.iteration(iteration, "going on"), [Action::ReadPrompt]);
        talk.launch(iteration, iteration + 1, 1);
    }
    let told = talk
        .told
        .iter()
        .filter(|event| matches!(event, RunEvent::Notice { .. }));
    assert_eq!(told.count(), 1);
}

#[test]
fn second_interrupt_kills() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.say(9, Input::Interrupted(Interrupt::Int)), stop());
    assert_eq!(talk.say(9, Input::Interrupted(Interrupt::Int)), [Action::Kill]);
    let end = ProcessEnd::Signaled { signal: 9 };
    let by = Interrupt::Int;
    let over = [Action::Finish(RunOutcome::Interrupted { by })];
    assert_eq!(talk.say(9, Input::Exited { end, swept: 0 }), over);
    assert_eq!(*talk.last_outcome(), IterationOutcome::Interrupted);
    assert_eq!(
        talk.say(10, Input::Interrupted(Interrupt::Int)),
        [],
        "over is over"
    );
}

#[test]
fn a_terminal_that_is_said_to_be_gone_twice_kills_nobody() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.say(9, Input::Interrupted(Interrupt::Hup)), stop());
    assert_eq!(talk.say(9, Input::Interrupted(Interrupt::Hup)), []);
    assert_eq!(talk.say(10, Input::Interrupted(Interrupt::Int)), [Action::Kill]);
}

#[test]
fn an_interrupt_during_a_timeout_stop_ends_the_run() {
    let mut rules = policy();
    rules.timing.wall = Some(secs(10));
    let mut talk = Talk::launched(rules);
    assert_eq!(talk.say(10, Input::Tick), stop());
    assert_eq!(talk.say(11, Input::Interrupted(Interrupt::Term)), []);
    assert_eq!(
        talk.exits(12),
        [Action::Finish(RunOutcome::Interrupted { by: Interrupt::Term })]
    );
}

#[test]
fn an_interrupt_while_waiting_ends_the_run_at_once() {
    let mut rules = policy();
    rules.timing.cooldown = secs(60);
    let mut talk = Talk::launched(rules);
    assert_eq!(talk.iteration(1, "go on"), []);
    let by = Interrupt::Hup;
    assert_eq!(
        talk.say(2, Input::Interrupted(by)),
        [Action::Finish(RunOutcome::Interrupted { by })]
    );
}

#[test]
fn a_child_that_outlives_its_stop_is_killed_again() {
    let mut talk = Talk::launched(policy());
    assert_eq!(talk.say(9, Input::Interrupted(Interrupt::Int)), stop());
    assert_eq!(talk.engine.deadline(), Some(secs(9) + GRACE + OVERDUE));
    assert_eq!(talk.say(24, Input::Tick), [Action::Kill]);
    assert_eq!(talk.engine.deadline(), Some(secs(24) + GRACE + OVERDUE));
}

#[test]
fn a_gate_that_fails_sends_its_output_into_the_next_prompt() {
    let mut talk = Talk::launched(Policy {
        gates: vec![gate("test"), gate("lint")],
        ..policy()
    });
    assert_eq!(
        talk.iteration(1, "LOOP_COMPLETE"),
        [Action::RunGate(gate("test"))]
    );
    let failed = Some(ProcessEnd::Exited { code: 101 });
    let ended = Input::GateEnded {
        end: failed,
        output: "2 tests failed".into(),
    };
    assert_eq!(talk.say(3, ended), [Action::ReadPrompt]);
    assert_eq!(
        *talk.last_outcome(),
        IterationOutcome::Continued {
            rejected_by: Some("test".into())
        }
    );
    let prompt = talk.launch(3, 2, 1);
    assert!(
        prompt.contains("exit code 101 after 2 s") && prompt.contains("2 tests failed"),
        "{prompt}"
    );

    assert_eq!(
        talk.iteration(4, "LOOP_COMPLETE"),
        [Action::RunGate(gate("test"))]
    );
    let passed = || Input::GateEnded {
        end: Some(OK),
        output: String::new(),
    };
    assert_eq!(talk.say(5, passed()), [Action::RunGate(gate("lint"))]);
    assert_eq!(talk.say(6, passed()), complete());
}

#[test]
fn gates_time_out_fail_to_start_and_obey_interrupts() {
    let gated = || Policy {
        gates: vec![gate("test")],
        ..policy()
    };
    let mut talk = Talk::launched(gated());
    talk.iteration(1, "LOOP_COMPLETE");
    assert_eq!(talk.engine.deadline(), Some(secs(61)));
    assert_eq!(talk.say(61, Input::Tick), stop());
    let end = Some(ProcessEnd::Signaled { signal: 15 });
    assert_eq!(
        talk.say(
            62,
            Input::GateEnded {
                end,
                output: String::new()
            }
        ),
        [Action::ReadPrompt]
    );
    assert!(talk.launch(62, 2, 1).contains("did not end in time"));

    talk.iteration(63, "LOOP_COMPLETE");
    assert_eq!(
        talk.say(
            64,
            Input::GateEnded {
                end: None,
                output: "no such file".into()
            }
        ),
        [Action::ReadPrompt]
    );
    assert!(talk.launch(64, 3, 1).contains("could not be started"));

    talk.iteration(65, "LOOP_COMPLETE");
    assert_eq!(talk.say(66, Input::Interrupted(Interrupt::Int)), stop());
    let over = [Action::Finish(RunOutcome::Interrupted { by: Interrupt::Int })];
    assert_eq!(
        talk.say(
            67,
            Input::GateEnded {
                end: Some(OK),
                output: String::new()
            }
        ),
        over
    );
}

#[test]
fn a_prompt_that_cannot_be_read_ends_the_run() {
    let mut talk = Talk::with(policy());
    talk.say(0, Input::Started(header()));
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

mod sessions {
    use super::*;

    fn continuing() -> Talk {
        let mut policy = policy();
        policy.session = SessionRule::Continue;
        Talk::launched(policy)
    }

    fn session(id: &str) -> Meta {
        Meta::Session {
            session_id: id.into(),
            model: None,
            version: None,
        }
    }

    /// The session in which the next iteration is launched.
    fn resumed(talk: &mut Talk, seconds: u64) -> Option<String> {
        match talk.say(seconds, Input::Prompt(Ok("task".into()))).pop() {
            Some(Action::Launch { session, .. }) => session,
            other => panic!("expected a launch: {other:?}"),
        }
    }

    fn session_usage(prompt_tokens: u64) -> Input {
        Input::Transcript(TranscriptEvent::Usage {
            usage: Usage {
                prompt_tokens: Some(prompt_tokens),
                scope: UsageScope::Session,
                ..Usage::default()
            },
        })
    }

    fn notices(talk: &Talk) -> usize {
        let notice = |event: &&RunEvent| matches!(event, RunEvent::Notice { .. });
        talk.told.iter().filter(notice).count()
    }

    #[test]
    fn the_next_iteration_goes_on_in_the_last_session() {
        let mut talk = continuing();
        assert_eq!(talk.meta(1, session("abc")), []);
        assert_eq!(talk.iteration(2, "more to do"), [Action::ReadPrompt]);
        assert_eq!(resumed(&mut talk, 2).as_deref(), Some("abc"));
    }

    #[test]
    fn a_fresh_run_never_resumes() {
        let mut talk = Talk::launched(policy());
        assert_eq!(talk.meta(1, session("abc")), []);
        assert_eq!(talk.iteration(2, "more to do"), [Action::ReadPrompt]);
        assert_eq!(resumed(&mut talk, 2), None);
    }

    #[test]
    fn a_nameless_or_dangerous_session_is_not_resumed_and_that_is_said_once() {
        let mut talk = continuing();
        assert_eq!(talk.meta(1, session("--dangerous")), []);
        assert_eq!(talk.iteration(2, "more"), [Action::ReadPrompt]);
        assert_eq!(resumed(&mut talk, 2), None);
        assert_eq!(talk.iteration(3, "more"), [Action::ReadPrompt]);
        assert_eq!(resumed(&mut talk, 3), None);
        assert_eq!(notices(&talk), 1);
    }

    #[test]
    fn a_session_that_is_not_there_any_more_costs_no_iteration() {
        let mut talk = continuing();
        assert_eq!(talk.meta(1, session("abc")), []);
        assert_eq!(talk.iteration(2, "more"), [Action::ReadPrompt]);
        assert_eq!(resumed(&mut talk, 2).as_deref(), Some("abc"));
        let end = ProcessEnd::Exited { code: 1 };
        assert_eq!(talk.say(3, Input::Exited { end, swept: 0 }), [Action::ReadPrompt]);
        assert_eq!(resumed(&mut talk, 3), None);
        assert_eq!(notices(&talk), 1);
        assert_eq!(talk.meta(4, session("def")), []);
        assert_eq!(talk.iteration(4, "more"), [Action::ReadPrompt]);
        assert_eq!(resumed(&mut talk, 4).as_deref(), Some("def"));
        let started: Vec<(u64, u64)> = talk
            .told
            .iter()
            .filter_map(|event| match event {
                RunEvent::IterationStarted {
                    iteration, attempt, ..
                } => Some((*iteration, *attempt)),
                _ => None,
            })
            .collect();
        assert_eq!(started, [(1, 1), (2, 1), (2, 2), (3, 1)]);
    }

    #[test]
    fn an_overloaded_service_does_not_cost_the_session() {
        let mut talk = continuing();
        assert_eq!(talk.meta(1, session("abc")), []);
        assert_eq!(talk.iteration(2, "more"), [Action::ReadPrompt]);
        assert_eq!(resumed(&mut talk, 2).as_deref(), Some("abc"));
        let error = Meta::Error {
            class: ErrorClass::Overload,
            message: "busy".into(),
            status: Some(529),
        };
        assert_eq!(talk.meta(3, error), []);
        let end = ProcessEnd::Exited { code: 1 };
        assert_eq!(talk.say(3, Input::Exited { end, swept: 0 }), []);
        assert_eq!(talk.say(80, Input::Tick), [Action::ReadPrompt]);
        assert_eq!(resumed(&mut talk, 80).as_deref(), Some("abc"));
    }

    #[test]
    fn what_a_session_used_before_is_not_counted_again() {
        let mut talk = continuing();
        for (second, total) in [(1, 1000), (2, 2500), (3, 4500)] {
            assert_eq!(talk.meta(second, session("abc")), []);
            assert_eq!(talk.say(second, session_usage(total)), []);
            assert_eq!(talk.iteration(second, "more"), [Action::ReadPrompt]);
            assert_eq!(resumed(&mut talk, second).as_deref(), Some("abc"));
        }
        let used: Vec<Option<u64>> = talk
            .told
            .iter()
            .filter_map(|event| match event {
                RunEvent::IterationEnded { usage, .. } => Some(usage.tokens()),
                _ => None,
            })
            .collect();
        assert_eq!(used, [Some(1000), Some(1500), Some(2000)]);
    }
}
