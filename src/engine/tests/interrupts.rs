//! The user, or the system, wants it to end.

use super::*;

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
