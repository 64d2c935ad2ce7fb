//! `event_loop.on_rejected: restore`: restores the files when an iteration breaks a gate that passed before.

use std::collections::BTreeMap;

use super::*;
use crate::policy::OnRejected;

/// The snapshots on which gates passed last. Derived from events, so that a resumed run knows them.
#[derive(Debug, Default)]
pub(super) struct PassedSnapshots {
    newest: Option<PassedSnapshot>,
    by_gate: BTreeMap<String, PassedSnapshot>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PassedSnapshot {
    iteration: u64,
    id: String,
}

/// A rejected attempt whose files are being restored.
#[derive(Debug)]
pub(super) struct Rollback {
    pub(super) attempt: Attempt,
    gate: String,
    to: u64,
}

impl PassedSnapshots {
    pub(super) fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Snapshot(snapshot) => {
                self.newest = Some(PassedSnapshot {
                    iteration: snapshot.iteration,
                    id: snapshot.id.clone(),
                });
            }
            // Gates before the first iteration have to fail.
            RunEvent::GateEnded {
                iteration: 1..,
                name,
                result: GateResult::Passed,
                ..
            } => {
                if let Some(newest) = &self.newest {
                    self.by_gate.insert(name.clone(), newest.clone());
                }
            }
            _ => {}
        }
    }

    /// The files on which the gate passed, if they differ from the newest ones.
    fn before_failure(&self, gate: &str) -> Option<&PassedSnapshot> {
        let passed = self.by_gate.get(gate)?;
        let is_same = self.newest.as_ref().is_some_and(|newest| newest.id == passed.id);
        (!is_same).then_some(passed)
    }
}

impl Engine {
    /// Rejects the claim because a gate failed. The files are restored first if the gate passed before and the policy
    /// requires it.
    pub(super) fn reject_claim(
        &mut self,
        at: Duration,
        gate: String,
        result: GateResult,
        out: &mut Vec<Action>,
    ) {
        let is_broken = match result {
            GateResult::Failed { .. }
            | GateResult::TimedOut
            | GateResult::Tampered
            | GateResult::TooFewTests { .. } => true,
            GateResult::Passed
            | GateResult::CouldNotStart
            | GateResult::Outdated
            | GateResult::Rejected { .. }
            | GateResult::Unanswered => false,
        };
        let passed = match self.policy.on_rejected {
            OnRejected::Restore if is_broken => self.passed_snapshots.before_failure(&gate).cloned(),
            OnRejected::Restore | OnRejected::Keep => None,
        };
        let rejected_by = Some(gate.clone());
        let Some(passed) = passed else {
            return self.end_iteration(at, IterationOutcome::Continued { rejected_by }, out);
        };
        let Some(attempt) = std::mem::replace(&mut self.state, EngineState::Finished).into_attempt() else {
            return;
        };
        self.state = EngineState::RollingBack(Box::new(Rollback {
            attempt,
            gate,
            to: passed.iteration,
        }));
        out.push(Action::RestoreSnapshot {
            iteration: self.iteration,
            id: passed.id,
        });
    }

    pub(super) fn snapshot_restored(
        &mut self,
        at: Duration,
        restored: Result<Box<SnapshotRecord>, String>,
        out: &mut Vec<Action>,
    ) {
        let EngineState::RollingBack(rollback) = &self.state else {
            return;
        };
        let (gate, to) = (rollback.gate.clone(), rollback.to);
        let (level, text) = match &restored {
            Ok(_) => (
                NoticeLevel::Info,
                format!("gate `{gate}` passed after iteration {to}; the files are restored to that state"),
            ),
            Err(reason) => (
                NoticeLevel::Warning,
                format!("the files were not restored to the state after iteration {to}: {reason}"),
            ),
        };
        out.push(Action::Emit(RunEvent::Notice { level, text }));
        if let Ok(snapshot) = restored {
            self.notes.files_restored = Restored::Yes;
            out.push(Action::Emit(RunEvent::Snapshot(snapshot)));
        }
        let rejected_by = Some(gate);
        self.end_iteration(at, IterationOutcome::Continued { rejected_by }, out);
    }
}
