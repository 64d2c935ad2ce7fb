//! Checks after the agent has ended and before the attempt is evaluated: the snapshot, the changed paths, and the session
//! to resume.

use super::*;
use crate::event::AgentEnd;

/// An ended agent whose attempt is not evaluated yet.
#[derive(Debug)]
pub(super) struct Inspection {
    pub(super) attempt: Attempt,
    end: AgentEnd,
    swept: u64,
    ended: Duration,
    pending: u32,
}

impl Engine {
    /// Starts the checks that the policy requires, or evaluates the attempt if there are none.
    pub(super) fn agent_ended(&mut self, at: Duration, end: AgentEnd, swept: u64, out: &mut Vec<Action>) {
        if let EngineState::GateRunning(_) = self.state {
            return self.reviewer_ended(at, &end, out);
        }
        let EngineState::AgentRunning(attempt) = std::mem::replace(&mut self.state, EngineState::Finished)
        else {
            return;
        };
        // An agent that was stopped before it started has changed nothing, and the checks would wait for its start.
        let never_started = self.interrupted.is_some() && matches!(end, AgentEnd::Lost { .. });
        let mut checks = match never_started {
            true => Vec::new(),
            false => self.checks_after(&attempt),
        };
        let inspection = Inspection {
            attempt: *attempt,
            end,
            swept,
            ended: at,
            pending: u32::try_from(checks.len()).unwrap_or(u32::MAX),
        };
        self.state = EngineState::Inspecting(Box::new(inspection));
        out.append(&mut checks);
        self.evaluate_if_inspected(at, out);
    }

    /// The checks that the policy requires after an agent.
    fn checks_after(&self, attempt: &Attempt) -> Vec<Action> {
        let mut checks = Vec::new();
        if self.policy.snapshots == Check::On {
            checks.push(Action::TakeSnapshot {
                iteration: self.iteration,
                moment: SnapshotMoment::End,
            });
        }
        if self.policy.workspace_checks.allowed_paths == Check::On {
            checks.push(Action::CheckPaths);
        }
        if self.agent().session_source == SessionSource::Driver {
            let reported = attempt.reported_session.clone();
            let agent = self.agent;
            checks.push(Action::ResolveSession { agent, reported });
        }
        checks
    }

    /// Files outside the allowed paths that the agent changed, or the reason why they are unknown.
    pub(super) fn paths_checked(
        &mut self,
        at: Duration,
        violations: Result<Vec<String>, String>,
        out: &mut Vec<Action>,
    ) {
        let EngineState::Inspecting(inspection) = &mut self.state else {
            return;
        };
        inspection.attempt.paths = match violations {
            Ok(files) if files.is_empty() => PathCheck::Passed,
            Ok(files) => PathCheck::Violated { files },
            Err(reason) => PathCheck::Impossible { reason },
        };
        inspection.pending = inspection.pending.saturating_sub(1);
        self.evaluate_if_inspected(at, out);
    }

    /// The session that the next iteration resumes, as found by the driver.
    pub(super) fn session_resolved(&mut self, at: Duration, id: Option<&str>, out: &mut Vec<Action>) {
        let EngineState::Inspecting(inspection) = &mut self.state else {
            return;
        };
        inspection.pending = inspection.pending.saturating_sub(1);
        let is_new = inspection.attempt.reported_session.as_deref() != id;
        self.sessions.replace(self.agent, id);
        if let Some(id) = id.filter(|_| is_new) {
            // Journaled, so that a resumed run continues the same session.
            let meta = Meta::Session {
                session_id: id.to_owned(),
                model: None,
                version: None,
            };
            out.push(Action::Emit(RunEvent::Transcript {
                iteration: self.iteration,
                event: TranscriptEvent::meta(meta),
            }));
        }
        self.evaluate_if_inspected(at, out);
    }

    pub(super) fn snapshot_inspected(&mut self, at: Duration, out: &mut Vec<Action>) {
        let EngineState::Inspecting(inspection) = &mut self.state else {
            return;
        };
        inspection.pending = inspection.pending.saturating_sub(1);
        self.evaluate_if_inspected(at, out);
    }

    fn evaluate_if_inspected(&mut self, at: Duration, out: &mut Vec<Action>) {
        match std::mem::replace(&mut self.state, EngineState::Finished) {
            EngineState::Inspecting(inspection) if inspection.pending == 0 => {
                self.evaluate(at, *inspection, out);
            }
            state => self.state = state,
        }
    }

    /// Ends the checks because the run is interrupted; results that arrive later are ignored.
    pub(super) fn abandon_inspection(&mut self, at: Duration, out: &mut Vec<Action>) {
        match std::mem::replace(&mut self.state, EngineState::Finished) {
            EngineState::Inspecting(mut inspection) => {
                let cause = StopCause::Interrupt;
                inspection.attempt.stop_request = Some(StopRequest { cause, at });
                self.evaluate(at, *inspection, out);
            }
            state => self.state = state,
        }
    }

    fn evaluate(&mut self, at: Duration, inspection: Inspection, out: &mut Vec<Action>) {
        let Inspection {
            mut attempt,
            end,
            swept,
            ended,
            ..
        } = inspection;
        let iteration = self.iteration;
        let duration_ms = iteration::millis(ended - attempt.started);
        let Evaluation {
            verdict,
            topics,
            ignored,
        } = attempt.evaluate(ended, &end, &self.policy, self.agent());
        self.attempt_evaluated(&attempt, &verdict, out);
        let denied_tool = attempt.denied_tool.take();
        let claims_untested = attempt.test_claim.is_unsupported();
        self.state = EngineState::AgentRunning(Box::new(attempt));
        self.publish(topics, out);
        let completion_topic = self.take_completion_topic();
        let ignored = ignored.filter(|_| completion_topic.is_none());
        let verdict = self.claim_by_topic(verdict, completion_topic);
        out.push(Action::Emit(RunEvent::AgentEnded {
            iteration,
            end,
            duration_ms,
            swept,
        }));
        if claims_untested {
            out.push(Action::Emit(RunEvent::Notice {
                level: NoticeLevel::Info,
                text: "the agent says that tests pass, but it ran nothing after its last change".to_owned(),
            }));
        }
        if let Some(tool) = denied_tool {
            self.explain_denied_tool(&tool, out);
        }
        if let Some((marker, reason)) = &ignored {
            let (marker, reason) = (marker.clone(), (*reason).to_owned());
            out.push(Action::Emit(RunEvent::MarkerIgnored {
                iteration,
                marker,
                reason,
            }));
        }
        self.notes = PromptNotes {
            ignored_marker: ignored.map(|(marker, reason)| (marker, reason.into())),
            ..PromptNotes::default()
        };
        match self.reject_premature_claim(verdict, out) {
            AttemptVerdict::Ended(outcome) => self.end_iteration_or_ask(at, outcome, out),
            AttemptVerdict::CompletionClaimed { marker } => self.start_gates(at, marker, out),
        }
    }

    /// Shows once how to allow a tool that was denied.
    fn explain_denied_tool(&mut self, tool: &str, out: &mut Vec<Action>) {
        let help = &mut self.policy.agents.rules[self.agent].permission_denial_help;
        if let Some(help) = help.take() {
            out.push(Action::Emit(RunEvent::Notice {
                level: NoticeLevel::Warning,
                text: format!("{tool} was denied.\n{help}"),
            }));
        }
    }
}
