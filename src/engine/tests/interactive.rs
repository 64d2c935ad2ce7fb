//! The user in front of the agent's own screen: keys, silence, and who says that the work is done.

use super::*;

fn watched() -> Policy {
    let usual = policy();
    Policy {
        timing: Timing {
            idle: Some(secs(30)),
            idle_in_tool: Some(secs(30)),
            ..usual.timing
        },
        reading: Reading {
            messages: Messages::Watched,
            ending: Ending::ExitOnly,
        },
        ..usual
    }
}

const STOP: Action = Action::Stop { grace: GRACE };

fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn draws(talk: &mut Talk, seconds: u64, text: &str) {
    assert_eq!(talk.say(seconds, Input::OutputSeen), []);
    let line = TranscriptEvent::line(Tag::Ai, text);
    assert_eq!(talk.say(seconds, Input::Transcript(line)), []);
}

fn by_the_users_word() -> Vec<Action> {
    vec![Action::Finish(RunOutcome::Complete {
        marker: USERS_WORD.into(),
    })]
}

fn interrupted(by: Interrupt) -> Vec<Action> {
    vec![Action::Finish(RunOutcome::Interrupted { by })]
}

#[test]
fn one_ctrl_c_is_the_agents_and_two_within_a_second_stop_the_run() {
    let mut talk = Talk::launched(watched());
    assert_eq!(talk.at(millis(1000), Input::KeyTyped(Key::Interrupt)), []);
    assert_eq!(talk.at(millis(2001), Input::KeyTyped(Key::Interrupt)), []);
    assert_eq!(talk.at(millis(2500), Input::KeyTyped(Key::Any)), []);
    assert_eq!(talk.at(millis(3001), Input::KeyTyped(Key::Interrupt)), [STOP]);
    assert_eq!(talk.exits(4), interrupted(Interrupt::Int));
    assert_eq!(*talk.last_outcome(), IterationOutcome::Interrupted);
}

#[test]
fn once_the_run_is_stopping_one_more_ctrl_c_kills() {
    let mut talk = Talk::launched(watched());
    assert_eq!(talk.at(millis(0), Input::KeyTyped(Key::Interrupt)), []);
    assert_eq!(talk.at(millis(100), Input::KeyTyped(Key::Interrupt)), [STOP]);
    assert_eq!(
        talk.at(millis(4000), Input::KeyTyped(Key::Interrupt)),
        [Action::Kill]
    );
}

#[test]
fn ctrl_backslash_kills_at_once() {
    let mut talk = Talk::launched(watched());
    assert_eq!(talk.say(1, Input::KeyTyped(Key::Kill)), [Action::Kill]);
    let end = ProcessEnd::Signaled { signal: 9 };
    assert_eq!(
        talk.say(1, Input::Exited { end, swept: 0 }),
        interrupted(Interrupt::Int)
    );
}

#[test]
fn silence_is_broken_by_output_and_by_keys() {
    let mut talk = Talk::launched(watched());
    assert_eq!(talk.engine.deadline(), Some(secs(30)));
    assert_eq!(talk.say(20, Input::OutputSeen), []);
    assert_eq!(talk.engine.deadline(), Some(secs(50)));
    assert_eq!(talk.say(45, Input::KeyTyped(Key::Any)), []);
    assert_eq!(talk.say(50, Input::Tick), []);
    assert_eq!(talk.say(74, Input::Tick), []);
    assert_eq!(talk.say(75, Input::Tick), [STOP]);
    let mut never = watched();
    (never.timing.idle, never.timing.idle_in_tool) = (None, None);
    let runtime = never.limits.runtime;
    assert_eq!(Talk::launched(never).engine.deadline(), Some(runtime));
}

#[test]
fn no_marker_on_a_screen_is_a_claim_wherever_it_stands_and_whoever_wrote_it() {
    for placement in [Placement::Line, Placement::Anywhere] {
        let markers = Markers::new(Vec::new(), placement);
        let mut talk = Talk::launched(Policy { markers, ..watched() });
        draws(&mut talk, 1, "LOOP_COMPLETE");
        draws(&mut talk, 1, "<event topic=\"x\">done</event>");
        assert_eq!(talk.exits(2), [Action::Ask]);
        let topics = talk
            .told
            .iter()
            .filter(|event| matches!(event, RunEvent::Topic { .. }));
        assert_eq!(topics.count(), 0);
        assert_eq!(talk.say(3, Input::Answered(Answer::GoOn)), [Action::ReadPrompt]);
        assert_eq!(
            *talk.last_outcome(),
            IterationOutcome::Continued { rejected_by: None }
        );
    }
}

#[test]
fn who_watched_says_that_the_work_is_done_and_the_gates_have_the_last_word() {
    let mut talk = Talk::launched(Policy {
        gates: vec![gate("test")],
        ..watched()
    });
    draws(&mut talk, 1, "hello");
    assert_eq!(talk.exits(2), [Action::Ask]);
    let done = || Input::Answered(Answer::Done);
    assert_eq!(talk.say(100, done()), [Action::RunGate(gate("test"))]);
    let ended = |code| Input::GateEnded {
        end: Some(ProcessEnd::Exited { code }),
        output: String::new(),
    };
    assert_eq!(talk.say(101, ended(1)), [Action::ReadPrompt]);
    talk.launch(101, 2, 1);
    draws(&mut talk, 102, "hello again");
    assert_eq!(talk.exits(102), [Action::Ask]);
    assert_eq!(talk.say(103, done()), [Action::RunGate(gate("test"))]);
    assert_eq!(talk.say(104, ended(0)), by_the_users_word());
    // The time of the question is not the run's own.
    assert_eq!(talk.engine.waited, secs(98 + 1));
}

#[test]
fn an_agent_that_rested_too_long_may_have_done_the_work() {
    let mut talk = Talk::launched(watched());
    draws(&mut talk, 1, "done, what next?");
    assert_eq!(talk.say(31, Input::Tick), [STOP]);
    assert_eq!(talk.exits(32), [Action::Ask]);
    assert_eq!(talk.say(900, Input::Answered(Answer::GoOn)), []);
    assert!(matches!(
        talk.last_outcome(),
        IterationOutcome::TimedOut {
            limit: TimeLimit::Idle,
            ..
        }
    ));
    let mut talk = Talk::launched(watched());
    draws(&mut talk, 1, "done, what next?");
    assert_eq!(talk.say(31, Input::Tick), [STOP]);
    assert_eq!(talk.exits(32), [Action::Ask]);
    assert_eq!(talk.say(900, Input::Answered(Answer::Done)), by_the_users_word());
}

#[test]
fn an_agent_that_goes_after_a_ctrl_c_was_left_and_has_not_failed() {
    let end = ProcessEnd::Signaled { signal: 2 };
    let exited = || Input::Exited { end, swept: 0 };
    let mut left = Talk::launched(watched());
    draws(&mut left, 1, "hello");
    assert_eq!(left.say(10, Input::KeyTyped(Key::Interrupt)), []);
    assert_eq!(left.say(12, exited()), [Action::Ask]);
    assert_eq!(left.say(13, Input::Answered(Answer::GoOn)), [Action::ReadPrompt]);
    assert_eq!(
        *left.last_outcome(),
        IterationOutcome::Continued { rejected_by: None }
    );
    let mut failed = Talk::launched(watched());
    draws(&mut failed, 1, "hello");
    assert_eq!(failed.say(10, Input::KeyTyped(Key::Interrupt)), []);
    assert_eq!(failed.say(16, exited()), []);
    assert!(matches!(failed.last_outcome(), IterationOutcome::Failed { .. }));
}

#[test]
fn the_question_can_be_left_by_quitting_by_a_signal_or_for_good() {
    let asked = || {
        let mut talk = Talk::launched(watched());
        draws(&mut talk, 1, "hello");
        assert_eq!(talk.exits(2), [Action::Ask]);
        talk
    };
    let mut quits = asked();
    assert_eq!(
        quits.say(3, Input::Answered(Answer::Quit)),
        interrupted(Interrupt::Quit)
    );
    let mut signalled = asked();
    assert_eq!(
        signalled.say(3, Input::Interrupted(Interrupt::Term)),
        interrupted(Interrupt::Term)
    );
    let mut tired = asked();
    assert_eq!(
        tired.say(3, Input::Answered(Answer::GoOnWithoutAsking)),
        [Action::ReadPrompt]
    );
    tired.launch(3, 2, 1);
    draws(&mut tired, 4, "hello");
    assert_eq!(tired.exits(5), [Action::ReadPrompt]);
}

#[test]
fn who_was_asked_at_the_end_is_not_asked_again_before_the_next() {
    let mut talk = Talk::with(watched());
    talk.engine = Engine::new(watched()).asking(Asking::BetweenIterations);
    assert_eq!(
        talk.say(0, Input::Started(Box::new(header()))),
        [Action::ReadPrompt]
    );
    talk.launch(0, 1, 1);
    draws(&mut talk, 1, "hello");
    assert_eq!(talk.exits(2), [Action::Ask]);
    assert_eq!(talk.say(3, Input::Answered(Answer::GoOn)), [Action::ReadPrompt]);
    talk.launch(3, 2, 1);
    // A failure is no occasion to ask whether the work is done, but one to ask whether to go on.
    let end = ProcessEnd::Exited { code: 1 };
    assert_eq!(talk.say(4, Input::Exited { end, swept: 0 }), []);
    assert_eq!(talk.say(60, Input::Tick), [Action::Ask]);
    assert_eq!(talk.say(61, Input::Answered(Answer::Done)), [], "not here");
    assert_eq!(talk.say(62, Input::Answered(Answer::GoOn)), [Action::ReadPrompt]);
}

#[test]
fn keys_mean_nothing_when_nobody_is_there_to_get_them() {
    let mut talk = Talk::launched(watched());
    draws(&mut talk, 1, "hello");
    assert_eq!(talk.exits(2), [Action::Ask]);
    assert_eq!(talk.say(2, Input::KeyTyped(Key::Kill)), []);
}
