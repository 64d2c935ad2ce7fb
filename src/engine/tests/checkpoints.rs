//! The checkpoint command between iterations, and the end of a run at a usage limit.

use super::*;

fn with_checkpoint() -> Policy {
    Policy {
        checkpoint: Some(gate("checkpoint")),
        ..policy()
    }
}

fn run_checkpoint() -> Vec<Action> {
    vec![Action::RunCheckpoint(gate("checkpoint"))]
}

fn exited(code: i32, output: &str) -> Input {
    Input::GateEnded(GateEnd {
        end: Some(ProcessEnd::Exited { code }),
        output: output.into(),
        ..GateEnd::default()
    })
}

fn refused(reason: &str) -> Vec<Action> {
    let reason = reason.to_owned();
    vec![Action::Finish(RunOutcome::CheckpointRefused { reason })]
}

fn limited(resets_at: Option<Timestamp>) -> Meta {
    Meta::RateLimit {
        status: RateLimitStatus::Rejected,
        resets_at,
        limit: None,
        utilization: None,
    }
}

#[test]
fn the_next_iteration_starts_after_the_checkpoint() {
    let mut run = TestRun::launched(with_checkpoint());
    assert_eq!(run.iteration(1, "more to do"), run_checkpoint());
    assert_eq!(run.engine.deadline(), Some(secs(61)));
    assert_eq!(run.step(3, exited(0, "")), [Action::ReadPrompt]);
    run.launch(3, 2, 1);
    assert_eq!(run.iteration(4, "LOOP_COMPLETE"), run_checkpoint());
    assert_eq!(run.step(5, exited(0, "")), complete());
}

#[test]
fn a_checkpoint_that_was_not_saved_is_reported_and_the_run_continues() {
    let mut run = TestRun::launched(with_checkpoint());
    run.iteration(1, "more to do");
    let end = exited(75, "pushing\nno route to host\n");
    assert_eq!(run.step(2, end), [Action::ReadPrompt]);
    let text = "the checkpoint was not saved: no route to host".to_owned();
    let level = NoticeLevel::Warning;
    assert!(run.emitted.contains(&RunEvent::Notice { level, text }));
}

#[test]
fn a_refused_checkpoint_ends_the_run_even_if_the_work_is_done() {
    for text in ["more to do", "LOOP_COMPLETE"] {
        let mut run = TestRun::launched(with_checkpoint());
        run.iteration(1, text);
        assert_eq!(run.step(2, exited(1, "stale info\n")), refused("stale info"));
    }
    let mut run = TestRun::launched(with_checkpoint());
    run.iteration(1, "more to do");
    let lost = Input::GateEnded(GateEnd::default());
    assert_eq!(run.step(2, lost), refused("it could not be started"));
}

#[test]
fn a_checkpoint_that_hangs_is_stopped_and_refused() {
    let mut run = TestRun::launched(with_checkpoint());
    run.iteration(1, "more to do");
    assert_eq!(run.step(61, Input::Tick), stop());
    assert_eq!(run.step(62, exited(0, "")), refused("timed out"));
}

#[test]
fn an_interrupt_stops_the_checkpoint_and_a_second_one_kills_it() {
    let mut run = TestRun::launched(with_checkpoint());
    run.iteration(1, "more to do");
    assert_eq!(run.step(2, stop_by(Interrupt::Term)), stop());
    assert_eq!(run.step(3, stop_by(Interrupt::Term)), [Action::Kill]);
    let by = Interrupt::Term;
    let over = vec![Action::Finish(RunOutcome::Interrupted { by })];
    assert_eq!(run.step(4, exited(143, "")), over);
}

#[test]
fn a_request_to_stop_the_iteration_does_not_stop_its_checkpoint() {
    let mut run = TestRun::launched(with_checkpoint());
    run.iteration(1, "more to do");
    assert_eq!(run.step(2, command(Command::StopIteration)), []);
    assert_eq!(run.step(3, exited(0, "")), [Action::ReadPrompt]);
}

#[test]
fn with_on_limit_exit_the_run_ends_at_a_usage_limit() {
    let mut rules = policy();
    rules.on_limit = OnLimit::Exit;
    let resets_at = Timestamp::from_second(7200).ok();
    let mut run = TestRun::launched(rules);
    run.meta(1, limited(resets_at));
    run.meta(1, finished(false));
    let actions = run.exit(2);
    assert!(
        matches!(
            &actions[..],
            [Action::Finish(RunOutcome::RateLimited { resets_at: stated, .. })] if *stated == resets_at
        ),
        "{actions:?}"
    );
    assert!(matches!(
        run.emitted.last(),
        Some(RunEvent::RunEnded { iterations: 0, .. })
    ));
}
