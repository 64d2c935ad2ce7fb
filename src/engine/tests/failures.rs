//! Tests for failed iterations, retries and declared failures.

use super::*;

#[test]
fn exit_code_and_terminal_event_must_both_succeed() {
    let failed = |run: &TestRun| match run.last_outcome() {
        IterationOutcome::Failed { failure } => failure.clone(),
        other => panic!("{other:?}"),
    };

    let mut run = TestRun::launched(policy());
    assert_eq!(run.agent_message(1, "LOOP_COMPLETE"), []);
    run.exit(1);
    assert_eq!(
        failed(&run),
        IterationFailure::NoTerminalEvent,
        "a stream without a terminal event is truncated"
    );

    let mut run = TestRun::launched(policy());
    assert_eq!(run.agent_message(1, "LOOP_COMPLETE"), []);
    assert_eq!(run.result(1), []);
    run.step(1, Input::Stderr("boom".into()));
    let end = ProcessEnd::Exited { code: 3 };
    run.step(
        1,
        Input::AgentEnded {
            end: end.into(),
            swept: 0,
        },
    );
    assert_eq!(
        failed(&run),
        IterationFailure::Exit {
            end: end.into(),
            message: "boom".into()
        }
    );

    let mut run = TestRun::launched(policy());
    assert_eq!(run.agent_message(1, "LOOP_COMPLETE"), []);
    assert_eq!(run.meta(1, finished(false)), []);
    run.exit(1);
    assert!(
        matches!(failed(&run), IterationFailure::AgentError { .. }),
        "is_error with exit 0 is a failure"
    );

    let mut run = TestRun::launched(policy());
    assert_eq!(run.result(1), []);
    run.exit(1);
    assert_eq!(
        failed(&run),
        IterationFailure::NoOutput,
        "exit 0 without output is a failure"
    );
}

#[test]
fn failures_are_retried_with_growing_waits_up_to_the_limit() {
    let mut run = TestRun::launched(policy());
    let mut now = Duration::ZERO;
    let mut waits = Vec::new();
    for failures in 1..=4 {
        let exit = Input::AgentEnded {
            end: ProcessEnd::Exited { code: 1 }.into(),
            swept: 0,
        };
        assert_eq!(run.step_at(now, exit), []);
        let until = run.engine.deadline().expect("a wait has an end");
        assert_eq!(
            run.step_at(until - Duration::from_millis(1), Input::Tick),
            [],
            "not early"
        );
        assert_eq!(run.step_at(until, Input::Tick), [Action::ReadPrompt]);
        waits.push((until - now).as_secs_f64());
        now = until;
        run.step_at(now, Input::Prompt(Ok("task".into())));
        assert_eq!(run.engine.failures_in_a_row, failures);
    }
    assert!(waits.is_sorted() && (1.6..20.0).contains(&waits[3]), "{waits:?}");
    let exit = Input::AgentEnded {
        end: ProcessEnd::Exited { code: 1 }.into(),
        swept: 0,
    };
    let reason = "5 iterations failed in a row (max_consecutive_failures)".to_owned();
    assert_eq!(
        run.step_at(now, exit),
        [Action::Finish(RunOutcome::Failed { reason })]
    );
}

#[test]
fn successful_iteration_resets_the_failure_count() {
    let mut run = TestRun::launched(policy());
    run.step(
        1,
        Input::AgentEnded {
            end: ProcessEnd::Signaled { signal: 9 }.into(),
            swept: 0,
        },
    );
    assert_eq!(run.step(10, Input::Tick), [Action::ReadPrompt]);
    run.launch(10, 2, 1);
    assert_eq!(run.iteration(20, "better"), [Action::ReadPrompt]);
    assert_eq!(run.engine.failures_in_a_row, 0);
}

#[test]
fn declared_failure_ends_the_run_or_is_retried_as_configured() {
    let mut run = TestRun::launched(policy());
    let reason = "the agent reported failure (<<<RALPHEX:FAILED>>>)".to_owned();
    assert_eq!(
        run.iteration(1, "<<<RALPHEX:FAILED>>>"),
        [Action::Finish(RunOutcome::Failed { reason })]
    );

    let mut run = TestRun::launched(Policy {
        on_declared_failure: OnDeclaredFailure::Retry,
        ..policy()
    });
    assert_eq!(run.iteration(1, "<<<RALPHEX:FAILED>>>"), []);
    assert_eq!(run.step(10, Input::Tick), [Action::ReadPrompt]);
}

#[test]
fn missing_login_ends_the_run_with_a_hint() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.meta(1, error(ErrorClass::Auth, "Not logged in.")), []);
    assert_eq!(run.meta(1, finished(false)), []);
    let message = "Not logged in. Run `agent login`.".to_owned();
    assert_eq!(
        run.exit(1),
        [Action::Finish(RunOutcome::AuthRequired { message })]
    );
}

#[test]
fn transient_error_does_not_fail_a_successful_iteration() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.meta(1, error(ErrorClass::RateLimit, "slow down")), []);
    let allowed = Meta::RateLimit {
        status: RateLimitStatus::Allowed,
        resets_at: None,
        limit: None,
        utilization: None,
    };
    assert_eq!(run.meta(1, allowed), []);
    assert_eq!(run.iteration(2, "LOOP_COMPLETE"), complete());
}

fn exits_with_stderr(lines: &[&str]) -> TestRun {
    let mut rules = policy();
    rules.agents.rules[0].transcript = TranscriptFeatures {
        messages: MessageBoundaries::LinesOnly,
        end: EndSignal::ExitOnly,
    };
    let mut run = TestRun::launched(rules);
    for line in lines {
        run.step(1, Input::Stderr((*line).into()));
    }
    let end = ProcessEnd::Exited { code: 1 };
    run.step(
        2,
        Input::AgentEnded {
            end: end.into(),
            swept: 0,
        },
    );
    run
}

#[test]
fn rejected_key_on_stderr_of_any_agent_ends_the_run() {
    let line = "error: failed to run prompt: provider.auth_error: 401 Incorrect API key provided.";
    let run = exits_with_stderr(&["hello", line, "See log: /home/me/.kimi-code/logs/kimi-code.log"]);
    let expected = IterationOutcome::AuthRequired { message: line.into() };
    assert_eq!(*run.last_outcome(), expected);
    assert!(matches!(run.engine.state, EngineState::Finished));
}

#[test]
fn usage_limit_and_overload_on_stderr_of_any_agent_are_waited_for() {
    let line = "openai.RateLimitError: Error code: 429 - {}";
    let run = exits_with_stderr(&[line, "    at main (cli.js:1:2)", "Node.js v20.20.2"]);
    assert!(
        matches!(run.last_outcome(), IterationOutcome::RateLimited { message, .. } if message == line),
        "{:?}",
        run.last_outcome()
    );
    let line = "Error: 529 Overloaded";
    let expected = IterationOutcome::Overloaded { message: line.into() };
    assert_eq!(*exits_with_stderr(&[line]).last_outcome(), expected);
}

#[test]
fn failure_names_the_line_of_stderr_that_states_the_cause() {
    let run = exits_with_stderr(&["TypeError: boom", "    at main (cli.js:10:5)", "Node.js v20.20.2"]);
    let IterationOutcome::Failed {
        failure: IterationFailure::Exit { message, .. },
    } = run.last_outcome()
    else {
        panic!("{:?}", run.last_outcome())
    };
    assert_eq!(message, "TypeError: boom");
}

#[test]
fn refusal_is_a_failure_of_its_own() {
    let mut run = TestRun::launched(policy());
    run.meta(1, error(ErrorClass::Refused, "I cannot help with that."));
    run.meta(1, finished(false));
    run.exit(1);
    let failure = IterationFailure::Refused {
        message: "I cannot help with that.".into(),
    };
    assert_eq!(*run.last_outcome(), IterationOutcome::Failed { failure });
}
