//! The checkpoint after each iteration: a command of the user that must have exited before the next iteration starts.

use super::*;

/// The exit code of a checkpoint command that could not save, but lets the run continue.
const NOT_SAVED: ProcessEnd = ProcessEnd::Exited { code: 75 };
/// Maximum length of a reason in an outcome or a notice.
const MAX_REASON: usize = 500;

/// A running checkpoint command.
#[derive(Debug)]
pub(super) struct Checkpoint {
    /// How the iteration ended.
    outcome: IterationOutcome,
    /// When the command is stopped.
    pub(super) due: Duration,
    pub(super) stop_request: Option<StopRequest>,
}

impl Engine {
    /// Runs the checkpoint command of an ended iteration, if one is configured, before anything follows.
    pub(super) fn take_checkpoint(&mut self, at: Duration, outcome: IterationOutcome, out: &mut Vec<Action>) {
        let Some(command) = self.policy.checkpoint.clone() else {
            return self.continue_after(at, outcome, out);
        };
        self.state = EngineState::Checkpointing(Box::new(Checkpoint {
            outcome,
            due: at.saturating_add(command.timeout.duration()),
            stop_request: None,
        }));
        out.push(Action::RunCheckpoint(command));
    }

    /// The checkpoint command has exited. In any other state, nothing runs that could end.
    pub(super) fn checkpoint_ended(&mut self, at: Duration, ended: &GateEnd, out: &mut Vec<Action>) {
        let checkpoint = match std::mem::replace(&mut self.state, EngineState::Finished) {
            EngineState::Checkpointing(checkpoint) => *checkpoint,
            state => return self.state = state,
        };
        if let Some(by) = self.interrupted {
            return self.finish(at, RunOutcome::Interrupted { by }, out);
        }
        match ended.end {
            Some(end) if end.success() && checkpoint.stop_request.is_none() => {}
            Some(NOT_SAVED) if checkpoint.stop_request.is_none() => {
                out.push(Action::Emit(RunEvent::Notice {
                    level: NoticeLevel::Warning,
                    text: format!("the checkpoint was not saved: {}", reason(ended, &checkpoint)),
                }));
            }
            Some(_) | None => {
                let reason = reason(ended, &checkpoint);
                return self.finish(at, RunOutcome::CheckpointRefused { reason }, out);
            }
        }
        self.continue_after(at, checkpoint.outcome, out);
    }
}

/// The last line of the output, or how the command ended.
fn reason(ended: &GateEnd, checkpoint: &Checkpoint) -> String {
    let last = ended.output.lines().rev().find(|line| !line.trim().is_empty());
    let end = || match ended.end {
        _ if checkpoint.stop_request.is_some() => "timed out".to_owned(),
        Some(end) => end.to_string(),
        None => "it could not be started".to_owned(),
    };
    let text = last.map_or_else(end, |line| line.trim().to_owned());
    text.chars().take(MAX_REASON).collect()
}
