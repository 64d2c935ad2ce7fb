//! Tests for interactive mode: keys, idle time and the completion question.

use super::*;

fn interactive_policy() -> Policy {
    let mut rules = policy();
    let agent = &mut rules.agents.rules[0];
    (agent.timeouts.idle, agent.timeouts.idle_in_tool) = (Some(secs(30)), Some(secs(30)));
    agent.transcript = TranscriptFeatures {
        messages: MessageBoundaries::Screen,
        end: EndSignal::ExitOnly,
    };
    rules
}

const STOP: Action = Action::Stop { grace: GRACE };

fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn screen_output(run: &mut TestRun, seconds: u64, text: &str) {
    assert_eq!(run.step(seconds, Input::OutputSeen { bytes: 1 }), []);
    let line = TranscriptEvent::line(Tag::Ai, text);
    assert_eq!(run.step(seconds, Input::Transcript(line)), []);
}

fn confirmed_by_user() -> Vec<Action> {
    vec![Action::Finish(RunOutcome::Complete {
        marker: CONFIRMED_BY_USER.into(),
    })]
}

fn interrupted(by: Interrupt) -> Vec<Action> {
    vec![Action::Finish(RunOutcome::Interrupted { by })]
}

#[test]
fn two_ctrl_c_within_a_second_stop_the_run() {
    let mut run = TestRun::launched(interactive_policy());
    assert_eq!(
        run.step_at(millis(1000), Input::KeyTyped(InteractiveKey::Interrupt)),
        []
    );
    assert_eq!(
        run.step_at(millis(2001), Input::KeyTyped(InteractiveKey::Interrupt)),
        []
    );
    assert_eq!(
        run.step_at(millis(2500), Input::KeyTyped(InteractiveKey::Other)),
        []
    );
    assert_eq!(
        run.step_at(millis(3001), Input::KeyTyped(InteractiveKey::Interrupt)),
        [STOP]
    );
    assert_eq!(run.exit(4), interrupted(Interrupt::Int));
    assert_eq!(*run.last_outcome(), IterationOutcome::Interrupted);
}

#[test]
fn ctrl_c_while_stopping_kills() {
    let mut run = TestRun::launched(interactive_policy());
    assert_eq!(
        run.step_at(millis(0), Input::KeyTyped(InteractiveKey::Interrupt)),
        []
    );
    assert_eq!(
        run.step_at(millis(100), Input::KeyTyped(InteractiveKey::Interrupt)),
        [STOP]
    );
    assert_eq!(
        run.step_at(millis(4000), Input::KeyTyped(InteractiveKey::Interrupt)),
        [Action::Kill]
    );
}

#[test]
fn kill_does_not_wait_for_the_agent() {
    let mut run = TestRun::launched(interactive_policy());
    assert_eq!(run.step(1, command(Command::Kill)), [Action::Kill]);
    let end = ProcessEnd::Signaled { signal: 9 };
    assert_eq!(
        run.step(
            1,
            Input::AgentEnded {
                end: end.into(),
                swept: 0
            }
        ),
        interrupted(Interrupt::Quit)
    );
}

#[test]
fn output_and_keys_reset_the_idle_timer() {
    let mut run = TestRun::launched(interactive_policy());
    assert_eq!(run.engine.deadline(), Some(secs(30)));
    assert_eq!(run.step(20, Input::OutputSeen { bytes: 1 }), []);
    assert_eq!(run.engine.deadline(), Some(secs(50)));
    assert_eq!(run.step(45, Input::KeyTyped(InteractiveKey::Other)), []);
    assert_eq!(run.step(50, Input::Tick), []);
    assert_eq!(run.step(74, Input::Tick), []);
    assert_eq!(run.step(75, Input::Tick), [STOP]);
    let mut never = interactive_policy();
    (
        never.agents.rules[0].timeouts.idle,
        never.agents.rules[0].timeouts.idle_in_tool,
    ) = (None, None);
    let runtime = never.limits.runtime;
    assert_eq!(TestRun::launched(never).engine.deadline(), Some(runtime));
}

#[test]
fn markers_and_events_on_the_screen_are_ignored() {
    for placement in [MarkerPlacement::Line, MarkerPlacement::Anywhere] {
        let markers = Markers::new(Vec::new(), placement);
        let mut run = TestRun::launched(Policy {
            markers,
            ..interactive_policy()
        });
        screen_output(&mut run, 1, "LOOP_COMPLETE");
        screen_output(&mut run, 1, "<event topic=\"x\">done</event>");
        assert_eq!(run.exit(2), [Action::AskUser]);
        let topics = run
            .emitted
            .iter()
            .filter(|event| matches!(event, RunEvent::Topic { .. }));
        assert_eq!(topics.count(), 0);
        assert_eq!(run.step(3, answer(Answer::Continue)), [Action::ReadPrompt]);
        assert_eq!(
            *run.last_outcome(),
            IterationOutcome::Continued { rejected_by: None }
        );
    }
}

#[test]
fn user_confirms_completion_and_gates_check_it() {
    let mut run = TestRun::launched(Policy {
        gates: vec![gate("test")],
        ..interactive_policy()
    });
    screen_output(&mut run, 1, "hello");
    assert_eq!(run.exit(2), [Action::AskUser]);
    let done = || answer(Answer::Done);
    assert_eq!(run.step(100, done()), [Action::RunGate(gate("test"))]);
    let ended = |code| {
        Input::GateEnded(GateEnd {
            end: Some(ProcessEnd::Exited { code }),
            output: String::new(),
            ..GateEnd::default()
        })
    };
    assert_eq!(run.step(101, ended(1)), [Action::ReadPrompt]);
    run.launch(101, 2, 1);
    screen_output(&mut run, 102, "hello again");
    assert_eq!(run.exit(102), [Action::AskUser]);
    assert_eq!(run.step(103, done()), [Action::RunGate(gate("test"))]);
    assert_eq!(run.step(104, ended(0)), confirmed_by_user());
    // Time spent on the question is not runtime.
    assert_eq!(run.engine.waited, secs(98 + 1));
}

#[test]
fn user_is_asked_after_an_idle_timeout() {
    let mut run = TestRun::launched(interactive_policy());
    screen_output(&mut run, 1, "done, what next?");
    assert_eq!(run.step(31, Input::Tick), [STOP]);
    assert_eq!(run.exit(32), [Action::AskUser]);
    assert_eq!(run.step(900, answer(Answer::Continue)), []);
    assert!(matches!(
        run.last_outcome(),
        IterationOutcome::TimedOut {
            limit: TimeLimit::Idle,
            ..
        }
    ));
    let mut run = TestRun::launched(interactive_policy());
    screen_output(&mut run, 1, "done, what next?");
    assert_eq!(run.step(31, Input::Tick), [STOP]);
    assert_eq!(run.exit(32), [Action::AskUser]);
    assert_eq!(run.step(900, answer(Answer::Done)), confirmed_by_user());
}

#[test]
fn exit_soon_after_ctrl_c_is_not_a_failure() {
    let end = ProcessEnd::Signaled { signal: 2 };
    let exited = || Input::AgentEnded {
        end: end.into(),
        swept: 0,
    };
    let mut left = TestRun::launched(interactive_policy());
    screen_output(&mut left, 1, "hello");
    assert_eq!(left.step(10, Input::KeyTyped(InteractiveKey::Interrupt)), []);
    assert_eq!(left.step(12, exited()), [Action::AskUser]);
    assert_eq!(left.step(13, answer(Answer::Continue)), [Action::ReadPrompt]);
    assert_eq!(
        *left.last_outcome(),
        IterationOutcome::Continued { rejected_by: None }
    );
    let mut failed = TestRun::launched(interactive_policy());
    screen_output(&mut failed, 1, "hello");
    assert_eq!(failed.step(10, Input::KeyTyped(InteractiveKey::Interrupt)), []);
    assert_eq!(failed.step(16, exited()), []);
    assert!(matches!(failed.last_outcome(), IterationOutcome::Failed { .. }));
}

#[test]
fn question_ends_with_quit_signal_or_continue_without_asking() {
    let asked = || {
        let mut run = TestRun::launched(interactive_policy());
        screen_output(&mut run, 1, "hello");
        assert_eq!(run.exit(2), [Action::AskUser]);
        run
    };
    let mut quits = asked();
    assert_eq!(quits.step(3, answer(Answer::Quit)), interrupted(Interrupt::Quit));
    let mut signaled = asked();
    assert_eq!(
        signaled.step(3, stop_by(Interrupt::Term)),
        interrupted(Interrupt::Term)
    );
    let mut unattended = asked();
    assert_eq!(
        unattended.step(3, answer(Answer::ContinueWithoutAsking)),
        [Action::ReadPrompt]
    );
    unattended.launch(3, 2, 1);
    screen_output(&mut unattended, 4, "hello");
    assert_eq!(unattended.exit(5), [Action::ReadPrompt]);
}

#[test]
fn completion_answer_replaces_the_question_between_iterations() {
    let mut run = TestRun::with(interactive_policy());
    run.engine = Engine::new(interactive_policy()).with_ask_policy(AskPolicy::BetweenIterations);
    assert_eq!(
        run.step(0, Input::Started(Box::new(header()))),
        [Action::ReadPrompt]
    );
    run.launch(0, 1, 1);
    screen_output(&mut run, 1, "hello");
    assert_eq!(run.exit(2), [Action::AskUser]);
    assert_eq!(run.step(3, answer(Answer::Continue)), [Action::ReadPrompt]);
    run.launch(3, 2, 1);
    // After a failure, the user is not asked whether the work is done, but whether to continue.
    let end = ProcessEnd::Exited { code: 1 };
    assert_eq!(
        run.step(
            4,
            Input::AgentEnded {
                end: end.into(),
                swept: 0
            }
        ),
        []
    );
    assert_eq!(run.step(60, Input::Tick), [Action::AskUser]);
    assert_eq!(run.step(61, answer(Answer::Done)), [], "not valid here");
    assert_eq!(run.step(62, answer(Answer::Continue)), [Action::ReadPrompt]);
}

#[test]
fn keys_without_a_running_agent_are_ignored() {
    let mut run = TestRun::launched(interactive_policy());
    screen_output(&mut run, 1, "hello");
    assert_eq!(run.exit(2), [Action::AskUser]);
    assert_eq!(run.step(2, Input::KeyTyped(InteractiveKey::Interrupt)), []);
}
