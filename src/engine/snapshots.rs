//! Requests snapshots of the project and reports them.

use super::*;

/// The state of the engine that concerns snapshots.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    /// The snapshot at the start was requested.
    started: bool,
    /// The last problem that was reported, so that it is reported once.
    problem: Option<String>,
}

impl Engine {
    /// Requests the snapshot before the first agent of this process starts.
    pub(super) fn take_first_snapshot(&mut self, out: &mut Vec<Action>) {
        if self.policy.snapshots == Check::Off || self.snapshots.started {
            return;
        }
        self.snapshots.started = true;
        out.push(Action::TakeSnapshot {
            iteration: self.iteration.saturating_sub(1),
            moment: SnapshotMoment::Start,
        });
    }

    pub(super) fn snapshot_taken(
        &mut self,
        at: Duration,
        moment: SnapshotMoment,
        taken: Result<Box<SnapshotRecord>, String>,
        out: &mut Vec<Action>,
    ) {
        if let EngineState::Finished | EngineState::Ending(_) = self.state {
            return;
        }
        match taken {
            Ok(snapshot) => out.push(Action::Emit(RunEvent::Snapshot(snapshot))),
            Err(reason) if self.snapshots.problem.as_ref() != Some(&reason) => {
                out.push(Action::Emit(RunEvent::Notice {
                    level: NoticeLevel::Warning,
                    text: format!("no snapshot was taken: {reason}"),
                }));
                self.snapshots.problem = Some(reason);
            }
            Err(_) => {}
        }
        // Only the snapshot after an agent is one of the checks that its evaluation waits for.
        match moment {
            SnapshotMoment::Start | SnapshotMoment::Restored => {}
            SnapshotMoment::End => self.snapshot_inspected(at, out),
        }
    }
}
