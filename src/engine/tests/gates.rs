//! Tests for gates, which check completion claims.

use super::*;

#[test]
fn output_of_a_failed_gate_is_in_the_next_prompt() {
    let mut run = TestRun::launched(Policy {
        gates: vec![gate("test"), gate("lint")],
        ..policy()
    });
    assert_eq!(run.iteration(1, "LOOP_COMPLETE"), [Action::RunGate(gate("test"))]);
    let failed = Some(ProcessEnd::Exited { code: 101 });
    let ended = Input::GateEnded {
        end: failed,
        output: "2 tests failed".into(),
    };
    assert_eq!(run.step(3, ended), [Action::ReadPrompt]);
    assert_eq!(
        *run.last_outcome(),
        IterationOutcome::Continued {
            rejected_by: Some("test".into())
        }
    );
    let prompt = run.launch(3, 2, 1);
    assert!(
        prompt.contains("exit code 101 after 2 s") && prompt.contains("2 tests failed"),
        "{prompt}"
    );

    assert_eq!(run.iteration(4, "LOOP_COMPLETE"), [Action::RunGate(gate("test"))]);
    let passed = || Input::GateEnded {
        end: Some(OK),
        output: String::new(),
    };
    assert_eq!(run.step(5, passed()), [Action::RunGate(gate("lint"))]);
    assert_eq!(run.step(6, passed()), complete());
}

#[test]
fn gates_can_time_out_fail_to_start_and_be_interrupted() {
    let gated = || Policy {
        gates: vec![gate("test")],
        ..policy()
    };
    let mut run = TestRun::launched(gated());
    run.iteration(1, "LOOP_COMPLETE");
    assert_eq!(run.engine.deadline(), Some(secs(61)));
    assert_eq!(run.step(61, Input::Tick), stop());
    let end = Some(ProcessEnd::Signaled { signal: 15 });
    assert_eq!(
        run.step(
            62,
            Input::GateEnded {
                end,
                output: String::new()
            }
        ),
        [Action::ReadPrompt]
    );
    assert!(run.launch(62, 2, 1).contains("which timed out"));

    run.iteration(63, "LOOP_COMPLETE");
    assert_eq!(
        run.step(
            64,
            Input::GateEnded {
                end: None,
                output: "no such file".into()
            }
        ),
        [Action::ReadPrompt]
    );
    assert!(run.launch(64, 3, 1).contains("could not be started"));

    run.iteration(65, "LOOP_COMPLETE");
    assert_eq!(run.step(66, stop_by(Interrupt::Int)), stop());
    let over = [Action::Finish(RunOutcome::Interrupted { by: Interrupt::Int })];
    assert_eq!(
        run.step(
            67,
            Input::GateEnded {
                end: Some(OK),
                output: String::new()
            }
        ),
        over
    );
}
