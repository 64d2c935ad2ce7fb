//! Runs the gates that check the agent's claim to be done, and rejects the claim if one fails.

use super::iteration::millis;
use super::*;

impl Engine {
    /// Runs the gates one after the other to check the agent's claim to be done.
    pub(super) fn start_gates(&mut self, at: Duration, marker: String, out: &mut Vec<Action>) {
        let EngineState::AgentRunning(attempt) = std::mem::replace(&mut self.state, EngineState::Finished)
        else {
            return;
        };
        let gate_run = GateRun {
            attempt: *attempt,
            marker,
            index: 0,
            started: at,
            stop_request: None,
        };
        self.state = EngineState::GateRunning(Box::new(gate_run));
        self.run_gate(at, out);
    }

    fn run_gate(&mut self, at: Duration, out: &mut Vec<Action>) {
        let EngineState::GateRunning(gate_run) = &mut self.state else {
            return;
        };
        let Some(gate) = self.policy.gates.get(gate_run.index) else {
            let outcome = IterationOutcome::Completed {
                marker: std::mem::take(&mut gate_run.marker),
            };
            return self.end_iteration(at, outcome, out);
        };
        gate_run.started = at;
        let (name, command) = (gate.name.clone(), gate.run.clone());
        out.push(Action::Emit(RunEvent::GateStarted {
            iteration: self.iteration,
            name,
            command,
        }));
        out.push(Action::RunGate(gate.clone()));
    }

    pub(super) fn gate_ended(
        &mut self,
        at: Duration,
        end: Option<ProcessEnd>,
        output: &str,
        out: &mut Vec<Action>,
    ) {
        let EngineState::GateRunning(gate_run) = &mut self.state else {
            return;
        };
        let gate = &self.policy.gates[gate_run.index];
        let cause = gate_run.stop_request.map(|stop_request| stop_request.cause);
        let result = match end {
            _ if matches!(cause, Some(StopCause::Timeout(_))) => GateResult::TimedOut,
            None => GateResult::CouldNotStart,
            Some(end) if end.success() => GateResult::Passed,
            Some(end) => GateResult::Failed { end },
        };
        let took = at - gate_run.started;
        let output = prompt::trim_middle(output, OUTPUT_BUDGET);
        out.push(Action::Emit(RunEvent::GateEnded {
            iteration: self.iteration,
            name: gate.name.clone(),
            result,
            duration_ms: millis(took),
            output: output.clone(),
        }));
        match cause {
            Some(StopCause::Skip) => return self.end_iteration(at, IterationOutcome::Skipped, out),
            Some(StopCause::Interrupt) => return self.end_iteration(at, IterationOutcome::Interrupted, out),
            Some(StopCause::Limit(limit)) => {
                return self.end_iteration(at, IterationOutcome::LimitReached { limit }, out);
            }
            Some(StopCause::Timeout(_) | StopCause::Lingering) | None => {}
        }
        if result == GateResult::Passed {
            gate_run.index += 1;
            return self.run_gate(at, out);
        }
        let rejected_by = Some(gate.name.clone());
        self.notes.gate_rejection = Some(GateRejection {
            command: gate.run.clone(),
            result,
            seconds: took.as_secs(),
            output,
        });
        self.end_iteration(at, IterationOutcome::Continued { rejected_by }, out);
    }
}
