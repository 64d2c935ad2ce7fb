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
