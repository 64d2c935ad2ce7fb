//! The checks that must pass before a claim is believed.

use super::*;

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
