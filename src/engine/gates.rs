//! Runs the gates that check the agent's claim to be done, and rejects the claim if one fails.

use super::iteration::millis;
use super::*;
use crate::event::{GateDetails, TestReport};
use crate::gate_output;

/// A gate that is running.
#[derive(Debug)]
pub(super) struct GateRun {
    purpose: GatePurpose,
    pub(super) index: usize,
    pub(super) started: Duration,
    pub(super) stop_request: Option<StopRequest>,
}

/// Why the gates run.
#[derive(Debug)]
enum GatePurpose {
    /// The agent claims to be done.
    Completion { attempt: Box<Attempt>, marker: String },
    /// Gates with `must_fail_first` have to fail before the first iteration.
    FailFirst,
}

impl GateRun {
    /// The attempt whose result is checked.
    pub(super) fn attempt(&self) -> Option<&Attempt> {
        match &self.purpose {
            GatePurpose::Completion { attempt, .. } => Some(attempt),
            GatePurpose::FailFirst => None,
        }
    }

    pub(super) fn into_attempt(self) -> Option<Attempt> {
        match self.purpose {
            GatePurpose::Completion { attempt, .. } => Some(*attempt),
            GatePurpose::FailFirst => None,
        }
    }
}

/// The commands that the agent may know.
pub(super) fn visible_commands(gates: &[Gate]) -> Vec<&str> {
    let visible = gates.iter().filter(|gate| !gate.hidden);
    visible.map(|gate| gate.run.as_str()).collect()
}

impl Engine {
    /// Runs the gates one after the other to check the agent's claim to be done.
    pub(super) fn start_gates(&mut self, at: Duration, marker: String, out: &mut Vec<Action>) {
        let EngineState::AgentRunning(attempt) = std::mem::replace(&mut self.state, EngineState::Finished)
        else {
            return;
        };
        self.run_gates(at, GatePurpose::Completion { attempt, marker }, out);
    }

    /// Runs the gates that have to fail before the first iteration, then begins it.
    pub(super) fn check_gates_first(&mut self, at: Duration, out: &mut Vec<Action>) {
        if self.policy.gates.iter().any(|gate| gate.must_fail_first) {
            out.push(Action::Emit(RunEvent::Notice {
                level: NoticeLevel::Info,
                text: "checking that the gates with must_fail_first fail before the first iteration"
                    .to_owned(),
            }));
            self.run_gates(at, GatePurpose::FailFirst, out);
        } else {
            self.begin_iteration(at, out);
        }
    }

    /// Whether no iteration has started yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.iteration == 1 && self.attempt_number == 1
    }

    fn run_gates(&mut self, at: Duration, purpose: GatePurpose, out: &mut Vec<Action>) {
        self.state = EngineState::GateRunning(Box::new(GateRun {
            purpose,
            index: 0,
            started: at,
            stop_request: None,
        }));
        self.run_gate(at, out);
    }

    /// Runs the gate at the current index, or ends the checks after the last one.
    fn run_gate(&mut self, at: Duration, out: &mut Vec<Action>) {
        let EngineState::GateRunning(gate_run) = &mut self.state else {
            return;
        };
        let gates = &self.policy.gates;
        let next = match &mut gate_run.purpose {
            GatePurpose::Completion { marker, .. } if gate_run.index >= gates.len() => {
                let marker = std::mem::take(marker);
                return self.end_iteration(at, IterationOutcome::Completed { marker }, out);
            }
            GatePurpose::Completion { .. } => gate_run.index,
            GatePurpose::FailFirst => {
                let left = gates.iter().skip(gate_run.index);
                match left.clone().position(|gate| gate.must_fail_first) {
                    Some(skipped) => gate_run.index + skipped,
                    None => return self.begin_iteration(at, out),
                }
            }
        };
        (gate_run.index, gate_run.started) = (next, at);
        let gate = &gates[next];
        out.push(Action::Emit(RunEvent::GateStarted {
            iteration: gate_run.attempt().map_or(0, |_| self.iteration),
            name: gate.name.clone(),
            command: gate.shown_command().to_owned(),
        }));
        out.push(Action::RunGate(gate.clone()));
    }

    pub(super) fn gate_ended(&mut self, at: Duration, ended: GateEnd, out: &mut Vec<Action>) {
        let EngineState::GateRunning(gate_run) = &mut self.state else {
            return;
        };
        let gate = &self.policy.gates[gate_run.index];
        let cause = gate_run
            .stop_request
            .take()
            .map(|stop_request| stop_request.cause);
        let report = ended.tests();
        let result = match cause {
            Some(StopCause::Timeout(_)) => GateResult::TimedOut,
            _ => ended.result(gate, report.as_ref()),
        };
        let took = at - gate_run.started;
        let (output, report) = match gate.hidden {
            true => (String::new(), None),
            false => (prompt::trim_middle(&ended.output, OUTPUT_BUDGET), report),
        };
        let name = gate.name.clone();
        let event = RunEvent::GateEnded {
            iteration: gate_run.attempt().map_or(0, |_| self.iteration),
            name: name.clone(),
            result,
            duration_ms: millis(took),
            output,
            details: Box::new(GateDetails {
                report,
                hidden: gate.hidden,
            }),
        };
        let rejection = GateRejection::of(&event, gate.shown_command());
        out.push(Action::Emit(event));
        if let GatePurpose::FailFirst = gate_run.purpose {
            gate_run.index += 1;
            return match self.first_check_failure(&name, result, cause, &ended.output) {
                Some(outcome) => self.finish(at, outcome, out),
                None => self.run_gate(at, out),
            };
        }
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
        self.notes.gate_rejection = rejection;
        let rejected_by = Some(name);
        self.end_iteration(at, IterationOutcome::Continued { rejected_by }, out);
    }

    /// The outcome of the run if a gate before the first iteration did not fail as required.
    fn first_check_failure(
        &self,
        name: &str,
        result: GateResult,
        cause: Option<StopCause>,
        output: &str,
    ) -> Option<RunOutcome> {
        let misconfigured = |reason| Some(RunOutcome::Misconfigured { reason });
        match (cause, self.interrupted, result) {
            (_, Some(by), _) => Some(RunOutcome::Interrupted { by }),
            (Some(StopCause::Limit(limit)), None, _) => Some(RunOutcome::LimitReached { limit }),
            (_, None, GateResult::Passed) => misconfigured(format!(
                "gate `{name}` has `must_fail_first`, but it passes before any work; it cannot show that the task is done"
            )),
            (_, None, GateResult::CouldNotStart) => misconfigured(format!(
                "gate `{name}` could not be started: {}",
                output.trim_end()
            )),
            (_, None, GateResult::Failed { .. } | GateResult::TimedOut | GateResult::TooFewTests { .. }) => {
                None
            }
        }
    }

    /// What was verified when the run is complete.
    pub(super) fn verification(&self) -> RunEvent {
        let gates: Vec<String> = self.policy.gates.iter().map(|gate| gate.name.clone()).collect();
        RunEvent::Verification {
            verified: !gates.is_empty(),
            gates,
        }
    }
}

impl GateEnd {
    /// The test results. The report file takes precedence over the output.
    pub fn tests(&self) -> Option<TestReport> {
        let from_file = self.report.as_deref().and_then(gate_output::parse);
        from_file.or_else(|| gate_output::parse(&self.output))
    }

    /// The result of a gate that did not time out.
    pub fn result(&self, gate: &Gate, tests: Option<&TestReport>) -> GateResult {
        let passed = tests.map_or(0, |tests| tests.passed);
        match (self.end, gate.min_tests) {
            (None, _) => GateResult::CouldNotStart,
            (Some(end), _) if !end.success() => GateResult::Failed { end },
            (Some(_), Some(required)) if passed < required => GateResult::TooFewTests { passed },
            (Some(_), Some(_) | None) => GateResult::Passed,
        }
    }
}
