//! Tests for interrupts by the user or the system.

use super::*;

#[test]
fn second_interrupt_kills() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.step(9, stop_by(Interrupt::Int)), stop());
    assert_eq!(run.step(9, stop_by(Interrupt::Int)), [Action::Kill]);
    let end = ProcessEnd::Signaled { signal: 9 };
    let by = Interrupt::Int;
    let over = [Action::Finish(RunOutcome::Interrupted { by })];
    assert_eq!(
        run.step(
            9,
            Input::AgentEnded {
                end: end.into(),
                swept: 0
            }
        ),
        over
    );
    assert_eq!(*run.last_outcome(), IterationOutcome::Interrupted);
    assert_eq!(run.step(10, stop_by(Interrupt::Int)), [], "the run has ended");
}

#[test]
fn repeated_hangup_does_not_kill() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.step(9, stop_by(Interrupt::Hup)), stop());
    assert_eq!(run.step(9, stop_by(Interrupt::Hup)), []);
    assert_eq!(run.step(10, stop_by(Interrupt::Int)), [Action::Kill]);
}

#[test]
fn interrupt_during_a_timeout_stop_ends_the_run() {
    let mut rules = policy();
    rules.agents.rules[0].timeouts.wall = Some(secs(10));
    let mut run = TestRun::launched(rules);
    assert_eq!(run.step(10, Input::Tick), stop());
    assert_eq!(run.step(11, stop_by(Interrupt::Term)), []);
    assert_eq!(
        run.exit(12),
        [Action::Finish(RunOutcome::Interrupted { by: Interrupt::Term })]
    );
}

#[test]
fn interrupt_while_waiting_ends_the_run_immediately() {
    let mut rules = policy();
    rules.timing.cooldown = secs(60);
    let mut run = TestRun::launched(rules);
    assert_eq!(run.iteration(1, "more to do"), []);
    let by = Interrupt::Hup;
    assert_eq!(
        run.step(2, stop_by(by)),
        [Action::Finish(RunOutcome::Interrupted { by })]
    );
}

#[test]
fn child_that_survives_its_stop_is_killed_again() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.step(9, stop_by(Interrupt::Int)), stop());
    assert_eq!(run.engine.deadline(), Some(secs(9) + GRACE + KILL_AGAIN_AFTER));
    assert_eq!(run.step(24, Input::Tick), [Action::Kill]);
    assert_eq!(run.engine.deadline(), Some(secs(24) + GRACE + KILL_AGAIN_AFTER));
}

#[test]
fn kill_ends_the_run_without_a_grace_period() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.step(9, command(Command::Kill)), [Action::Kill]);
    let end = ProcessEnd::Signaled { signal: 9 };
    let over = [Action::Finish(RunOutcome::Interrupted { by: Interrupt::Quit })];
    assert_eq!(
        run.step(
            9,
            Input::AgentEnded {
                end: end.into(),
                swept: 0
            }
        ),
        over
    );
    assert_eq!(*run.last_outcome(), IterationOutcome::Interrupted);

    let mut run = TestRun::launched(policy());
    assert_eq!(run.step(9, stop_by(Interrupt::Term)), stop());
    assert_eq!(run.step(9, command(Command::Kill)), [Action::Kill]);
    let over = [Action::Finish(RunOutcome::Interrupted { by: Interrupt::Term })];
    assert_eq!(
        run.step(
            9,
            Input::AgentEnded {
                end: end.into(),
                swept: 0
            }
        ),
        over
    );
}

#[test]
fn commands_are_recorded_once_and_never_after_the_end() {
    let mut run = TestRun::launched(policy());
    let command = Command::Stop { by: Interrupt::Int };
    let request = CommandRequest {
        id: "key-1".into(),
        command: command.clone(),
    };
    assert_eq!(run.step(1, Input::Command(request.clone())), stop());
    assert_eq!(
        run.step(1, Input::Command(request)),
        [],
        "a repeated id does not kill"
    );
    let received = RunEvent::CommandReceived {
        id: "key-1".into(),
        command,
    };
    assert_eq!(run.emitted.iter().filter(|event| **event == received).count(), 1);
    run.exit(2);
    run.step(3, wake());
    assert!(matches!(run.emitted.last(), Some(RunEvent::RunEnded { .. })));
}
