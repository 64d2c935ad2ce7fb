//! Snapshots at the start of a run and after each agent.

use super::*;

fn with_snapshots() -> Policy {
    Policy {
        snapshots: Check::On,
        ..policy()
    }
}

fn snapshot(iteration: u64, moment: SnapshotMoment) -> SnapshotRecord {
    SnapshotRecord {
        iteration,
        moment,
        id: "a1".repeat(32),
        files: 0,
        added: 0,
        removed: 0,
        bytes: 0,
        total_files: 3,
        changes: Vec::new(),
    }
}

fn taken(iteration: u64, moment: SnapshotMoment) -> Input {
    let taken = Ok(Box::new(snapshot(iteration, moment)));
    Input::SnapshotTaken { moment, taken }
}

fn failed(moment: SnapshotMoment) -> Input {
    let taken = Err("git is gone".to_owned());
    Input::SnapshotTaken { moment, taken }
}

use SnapshotMoment::{End, Start};

#[test]
fn snapshots_are_taken_before_the_first_agent_and_after_each_one() {
    let mut run = TestRun::with(with_snapshots());
    let take = |iteration, moment| Action::TakeSnapshot { iteration, moment };
    let begin = run.step(0, Input::Started(Box::new(header())));
    assert_eq!(begin, [take(0, Start), Action::ReadPrompt]);
    assert_eq!(run.step(0, taken(0, Start)), []);
    run.launch(0, 1, 1);
    assert_eq!(run.iteration(1, "not yet"), [take(1, End)]);
    assert_eq!(run.step(2, taken(1, End)), [Action::ReadPrompt]);
    run.launch(2, 2, 1);
    assert_eq!(run.iteration(3, "not yet"), [take(2, End)]);
    let recorded: Vec<(u64, SnapshotMoment)> = run
        .emitted
        .iter()
        .filter_map(|event| match event {
            RunEvent::Snapshot(snapshot) => Some((snapshot.iteration, snapshot.moment)),
            _ => None,
        })
        .collect();
    assert_eq!(recorded, [(0, Start), (1, End)]);
}

#[test]
fn a_snapshot_that_fails_is_reported_once_and_stops_nothing() {
    let mut run = TestRun::with(with_snapshots());
    run.step(0, Input::Started(Box::new(header())));
    assert_eq!(run.step(0, failed(Start)), []);
    run.launch(0, 1, 1);
    run.iteration(1, "not yet");
    assert_eq!(run.step(2, failed(End)), [Action::ReadPrompt]);
    let problems = run.emitted.iter().filter(|event| {
        matches!(event, RunEvent::Notice { text, .. } if text == "no snapshot was taken: git is gone")
    });
    assert_eq!(problems.count(), 1);
}

#[test]
fn an_interrupt_does_not_wait_for_a_snapshot() {
    let mut run = TestRun::with(with_snapshots());
    run.step(0, Input::Started(Box::new(header())));
    run.launch(0, 1, 1);
    run.iteration(1, "not yet");
    let over = [Action::Finish(RunOutcome::Interrupted { by: Interrupt::Int })];
    assert_eq!(run.step(2, stop_by(Interrupt::Int)), over);
    assert_eq!(run.step(3, taken(1, End)), []);
}

/// A policy with two gates that restores the files when a gate breaks.
fn restoring() -> Policy {
    Policy {
        gates: vec![gate("test"), gate("lint")],
        on_rejected: OnRejected::Restore,
        ..with_snapshots()
    }
}

fn snapshot_with_id(iteration: u64, moment: SnapshotMoment, id: &str) -> Box<SnapshotRecord> {
    let record = SnapshotRecord {
        id: id.to_owned(),
        ..snapshot(iteration, moment)
    };
    Box::new(record)
}

fn gate_ended(code: i32) -> Input {
    Input::GateEnded(GateEnd {
        end: Some(ProcessEnd::Exited { code }),
        ..GateEnd::default()
    })
}

/// Runs an iteration whose claim is checked, with a snapshot of this id.
fn claim(run: &mut TestRun, second: u64, iteration: u64, id: &str) {
    run.launch(second, iteration, 1);
    run.iteration(second, "LOOP_COMPLETE");
    let taken = Ok(snapshot_with_id(iteration, End, id));
    let moment = End;
    let gate = [Action::RunGate(gate("test"))];
    assert_eq!(run.step(second, Input::SnapshotTaken { moment, taken }), gate);
}

/// In iteration 1, the first gate passes; in iteration 2, it fails.
fn broken_gate(policy: Policy) -> TestRun {
    let mut run = TestRun::with(policy);
    run.step(0, Input::Started(Box::new(header())));
    run.step(0, taken(0, Start));
    claim(&mut run, 0, 1, "one");
    assert_eq!(run.step(1, gate_ended(0)), [Action::RunGate(gate("lint"))]);
    assert_eq!(
        run.step(1, gate_ended(1)),
        [Action::ReadPrompt],
        "lint never passed"
    );
    claim(&mut run, 2, 2, "two");
    run
}

#[test]
fn files_are_restored_when_an_iteration_breaks_a_gate_that_passed_before() {
    let mut run = broken_gate(restoring());
    let restore = Action::RestoreSnapshot {
        iteration: 2,
        id: "one".into(),
    };
    assert_eq!(run.step(3, gate_ended(1)), [restore]);
    assert_eq!(run.engine.deadline(), None, "no gate runs");
    let record = snapshot_with_id(2, SnapshotMoment::Restored, "one");
    assert_eq!(
        run.step(4, Input::SnapshotRestored(Ok(record))),
        [Action::ReadPrompt]
    );
    let prompt = run.launch(4, 3, 1);
    assert!(
        prompt.contains("All files were restored to their state from then"),
        "{prompt}"
    );
    run.iteration(5, "LOOP_COMPLETE");
    let taken = Ok(snapshot_with_id(3, End, "three"));
    run.step(5, Input::SnapshotTaken { moment: End, taken });
    assert!(matches!(&run.step(6, gate_ended(1))[..], [Action::RestoreSnapshot { id, .. }] if id == "one"));
    let failed = Input::SnapshotRestored(Err("disk full".into()));
    assert_eq!(run.step(7, failed), [Action::ReadPrompt]);
    let prompt = run.launch(7, 4, 1);
    assert!(!prompt.contains("All files were restored"), "{prompt}");
}

#[test]
fn files_are_kept_by_default_and_when_nothing_changed_since_the_gate_passed() {
    let keep = Policy {
        on_rejected: OnRejected::Keep,
        ..restoring()
    };
    assert_eq!(broken_gate(keep).step(3, gate_ended(1)), [Action::ReadPrompt]);
    let mut run = broken_gate(restoring());
    assert_eq!(run.step(3, gate_ended(0)), [Action::RunGate(gate("lint"))]);
    assert_eq!(
        run.step(3, gate_ended(1)),
        [Action::ReadPrompt],
        "lint never passed"
    );
}

#[test]
fn an_interrupt_waits_until_the_files_are_restored() {
    let mut run = broken_gate(restoring());
    run.step(3, gate_ended(1));
    assert_eq!(run.step(4, stop_by(Interrupt::Int)), []);
    let record = snapshot_with_id(2, SnapshotMoment::Restored, "one");
    let over = [Action::Finish(RunOutcome::Interrupted { by: Interrupt::Int })];
    assert_eq!(run.step(5, Input::SnapshotRestored(Ok(record))), over);
}
