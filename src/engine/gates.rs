//! Runs the gates that check the agent's claim to be done, and rejects the claim if one fails.

use super::iteration::millis;
use super::*;
use crate::engine::review::AfterRound;
use crate::event::{Finding, GateDetails, TestReport};
use crate::gate_output;

/// A gate that is running.
#[derive(Debug)]
pub(super) struct GateRun {
    purpose: GatePurpose,
    pub(super) index: usize,
    pub(super) started: Duration,
    pub(super) stop_request: Option<StopRequest>,
    version: GateVersion,
    /// The protected files that the agent changed, while the gate runs without these changes.
    protected_changes: Vec<String>,
    /// The first gate that checked a snapshot, and the snapshot.
    checked: Option<(usize, String)>,
    /// The review, while the current gate is one.
    pub(super) review: Option<ReviewRun>,
    /// The usage of the reviewers that have ended.
    pub(super) review_usage: Usage,
    pub(super) started_reviewers: u64,
}

/// How a review ended.
pub(super) struct GateEndReport {
    pub(super) result: GateResult,
    pub(super) output: String,
    /// The snapshot that was reviewed.
    pub(super) tree: Option<String>,
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

    /// The attempt, with the usage of its reviewers.
    pub(super) fn into_attempt(self) -> Option<Attempt> {
        let review_usage = self.review_usage();
        match self.purpose {
            GatePurpose::Completion { mut attempt, .. } => {
                attempt.review_usage = review_usage;
                Some(*attempt)
            }
            GatePurpose::FailFirst => None,
        }
    }

    /// The usage of all reviewers, including the running one.
    fn review_usage(&self) -> Usage {
        let mut usage = self.review_usage.clone();
        if let Some(running) = self.review.as_ref().and_then(ReviewRun::usage) {
            usage.add(running);
        }
        usage
    }

    /// The usage of the attempt and of its reviewers.
    pub(super) fn usage(&self) -> Usage {
        let mut usage = self.review_usage();
        if let Some(attempt) = self.attempt() {
            usage.add(&attempt.usage);
        }
        usage
    }

    pub(super) fn is_review(&self) -> bool {
        self.review.is_some()
    }
}

/// What follows from the end of a gate's command.
enum Judgment {
    /// The gate runs again with the protected files from the start of the run.
    RunProtected,
    Ended {
        result: GateResult,
        paths: Vec<String>,
    },
}

impl GateRun {
    /// A gate passes if it does so with both versions of the protected files, and if they do not change while it runs.
    fn judge(&mut self, result: GateResult, cause: Option<StopCause>, ended: &GateEnd) -> Judgment {
        let version = std::mem::replace(&mut self.version, GateVersion::AsLeft);
        let changes = std::mem::take(&mut self.protected_changes);
        let (result, paths) = match (result, version) {
            (GateResult::Passed, _) if !ended.altered.is_empty() => {
                (GateResult::Tampered, ended.altered.clone())
            }
            (GateResult::Passed, GateVersion::AsLeft)
                if cause.is_none() && !ended.protected_changes.is_empty() =>
            {
                self.version = GateVersion::Protected;
                self.protected_changes.clone_from(&ended.protected_changes);
                return Judgment::RunProtected;
            }
            (GateResult::Failed { .. } | GateResult::TooFewTests { .. }, GateVersion::Protected) => {
                (GateResult::Tampered, changes)
            }
            (result, GateVersion::AsLeft | GateVersion::Protected) => (result, Vec::new()),
        };
        if let (GateResult::Passed, Some(tree)) = (result, &ended.tree) {
            self.checked.get_or_insert((self.index, tree.clone()));
        }
        Judgment::Ended { result, paths }
    }
}

/// The commands that the agent may know.
pub(super) fn visible_commands(gates: &[Gate]) -> Vec<&str> {
    let visible = gates.iter().filter(|gate| !gate.hidden && !gate.is_review());
    visible.map(|gate| gate.run.as_str()).collect()
}

impl Engine {
    pub fn gates(&self) -> &[Gate] {
        &self.policy.gates
    }

    /// The findings of all reviews in their current state.
    pub fn findings(&self) -> &[Finding] {
        self.reviews.findings()
    }

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
            version: GateVersion::AsLeft,
            protected_changes: Vec::new(),
            checked: None,
            review: None,
            review_usage: Usage::default(),
            started_reviewers: 0,
        }));
        self.run_gate(at, out);
    }

    /// Runs the gate at the current index, or ends the checks after the last one.
    fn run_gate(&mut self, at: Duration, out: &mut Vec<Action>) {
        let EngineState::GateRunning(gate_run) = &mut self.state else {
            return;
        };
        let gates = &self.policy.gates;
        let next = match &gate_run.purpose {
            GatePurpose::Completion { .. } if gate_run.index >= gates.len() => {
                return self.all_gates_passed(at, out);
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
        gate_run.review = None;
        let gate = gates[next].clone();
        out.push(Action::Emit(RunEvent::GateStarted {
            iteration: gate_run.attempt().map_or(0, |_| self.iteration),
            name: gate.name.clone(),
            command: gate.shown_command(),
        }));
        match gate.is_review() {
            true => self.start_review(&gate, out),
            false => out.push(Action::RunGate(gate)),
        }
    }

    pub(super) fn gate_ended(&mut self, at: Duration, ended: GateEnd, out: &mut Vec<Action>) {
        let gate_run = match &mut self.state {
            EngineState::GateRunning(gate_run) if !gate_run.is_review() => gate_run,
            _ => return self.checkpoint_ended(at, &ended, out),
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
        let (result, paths) = match gate_run.judge(result, cause, &ended) {
            Judgment::RunProtected => {
                gate_run.started = at;
                return out.push(Action::RunProtectedGate(gate.clone()));
            }
            Judgment::Ended { result, paths } => (result, paths),
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
                tree: ended.tree,
                paths: if gate.hidden { Vec::new() } else { paths },
            }),
        };
        let rejection = GateRejection::of(&event, &gate.shown_command());
        out.push(Action::Emit(event));
        if let GatePurpose::FailFirst = gate_run.purpose {
            gate_run.index += 1;
            return match self.first_check_failure(&name, result, cause, &ended.output) {
                Some(outcome) => self.finish(at, outcome, out),
                None => self.run_gate(at, out),
            };
        }
        if let Some(cause @ (StopCause::Skip | StopCause::Interrupt | StopCause::Limit(_))) = cause {
            return self.end_stopped(at, cause, out);
        }
        if result == GateResult::Passed {
            gate_run.index += 1;
            return self.run_gate(at, out);
        }
        self.notes.gate_rejection = rejection;
        self.reject_claim(at, name, result, out);
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
            (
                _,
                None,
                GateResult::Failed { .. }
                | GateResult::TimedOut
                | GateResult::TooFewTests { .. }
                | GateResult::Tampered
                | GateResult::Outdated
                | GateResult::Rejected { .. }
                | GateResult::Unanswered,
            ) => None,
        }
    }

    /// Compares the project with what the gates checked, or completes the iteration.
    fn all_gates_passed(&mut self, at: Duration, out: &mut Vec<Action>) {
        let EngineState::GateRunning(gate_run) = &self.state else {
            return;
        };
        let tree = gate_run.checked.as_ref().map(|(_, tree)| tree.clone());
        if tree.is_some() || self.policy.snapshots == Check::On {
            out.push(Action::CheckTree { tree });
        } else {
            self.complete_iteration(at, out);
        }
    }

    /// Whether the gates wait for an effect or a limit, so that there is no child to stop.
    pub(super) fn gates_have_no_child(&self) -> bool {
        let EngineState::GateRunning(gate_run) = &self.state else {
            return false;
        };
        self.is_checking_tree() || gate_run.review.as_ref().is_some_and(ReviewRun::has_no_child)
    }

    /// Whether all gates have passed and the project is compared with what they checked. No child runs.
    fn is_checking_tree(&self) -> bool {
        matches!(&self.state, EngineState::GateRunning(gate_run) if gate_run.index >= self.policy.gates.len())
    }

    /// A review has ended.
    pub(super) fn review_ended(
        &mut self,
        at: Duration,
        end: GateEndReport,
        next: AfterRound,
        out: &mut Vec<Action>,
    ) {
        let EngineState::GateRunning(gate_run) = &mut self.state else {
            return;
        };
        let Some(gate) = self.policy.gates.get(gate_run.index) else {
            return;
        };
        let GateEndReport { result, output, tree } = end;
        if let (GateResult::Passed, Some(tree)) = (result, &tree) {
            gate_run.checked.get_or_insert((gate_run.index, tree.clone()));
        }
        let name = gate.name.clone();
        let event = RunEvent::GateEnded {
            iteration: self.iteration,
            name: name.clone(),
            result,
            duration_ms: millis(at - gate_run.started),
            output: prompt::trim_middle(&output, OUTPUT_BUDGET),
            details: Box::new(GateDetails {
                tree,
                ..GateDetails::default()
            }),
        };
        let rejection = GateRejection::of(&event, &gate.shown_command());
        gate_run.index += usize::from(result.passed());
        gate_run.review = None;
        out.push(Action::Emit(event));
        match next {
            AfterRound::Pass => return self.run_gate(at, out),
            AfterRound::Repeat => {}
            AfterRound::GiveUp { reason } => {
                let gate = name.clone();
                self.final_outcome = Some(RunOutcome::Unreviewed { gate, reason });
            }
        }
        self.notes.gate_rejection = rejection;
        let rejected_by = Some(name);
        self.end_iteration(at, IterationOutcome::Continued { rejected_by }, out);
    }

    /// Ends the iteration because the gates were stopped.
    pub(super) fn end_stopped(&mut self, at: Duration, cause: StopCause, out: &mut Vec<Action>) {
        let outcome = match cause {
            StopCause::Skip => IterationOutcome::Skipped,
            StopCause::Limit(limit) => IterationOutcome::LimitReached { limit },
            StopCause::Interrupt
            | StopCause::Timeout(_)
            | StopCause::Lingering
            | StopCause::Output { .. } => IterationOutcome::Interrupted,
        };
        self.end_iteration(at, outcome, out);
    }

    fn complete_iteration(&mut self, at: Duration, out: &mut Vec<Action>) {
        if let EngineState::GateRunning(gate_run) = &mut self.state
            && let GatePurpose::Completion { marker, .. } = &mut gate_run.purpose
        {
            let marker = std::mem::take(marker);
            self.end_iteration(at, IterationOutcome::Completed { marker }, out);
        }
    }

    /// Accepts the agent's claim if the project is still what the gates checked.
    pub(super) fn tree_checked(
        &mut self,
        at: Duration,
        checked: Result<CheckedTree, String>,
        out: &mut Vec<Action>,
    ) {
        let expected = match &self.state {
            EngineState::GateRunning(gate_run) if self.is_checking_tree() => gate_run.checked.clone(),
            _ => return,
        };
        let paths = match (checked, &expected) {
            (Ok(checked), Some(_)) if !checked.changed.is_empty() => checked.changed,
            (Ok(checked), _) => {
                self.checked_tree = Some(checked);
                return self.complete_iteration(at, out);
            }
            // Only the list of changed tests is missing.
            (Err(_), None) => return self.complete_iteration(at, out),
            (Err(reason), Some(_)) => vec![format!("(unknown: {reason})")],
        };
        let Some(gate) = expected.and_then(|(index, _)| self.policy.gates.get(index)) else {
            return;
        };
        let (name, command) = (gate.name.clone(), gate.shown_command());
        let event = RunEvent::GateEnded {
            iteration: self.iteration,
            name: name.clone(),
            result: GateResult::Outdated,
            duration_ms: 0,
            output: String::new(),
            details: Box::new(GateDetails {
                hidden: gate.hidden,
                paths,
                ..GateDetails::default()
            }),
        };
        self.notes.gate_rejection = GateRejection::of(&event, &command);
        out.push(Action::Emit(event));
        let rejected_by = Some(name);
        self.end_iteration(at, IterationOutcome::Continued { rejected_by }, out);
    }

    /// What was verified when the run is complete.
    pub(super) fn verification(&self) -> RunEvent {
        let checked = self.checked_tree.clone().unwrap_or_default();
        let gates: Vec<String> = self.policy.gates.iter().map(|gate| gate.name.clone()).collect();
        RunEvent::Verification {
            verified: !gates.is_empty(),
            gates,
            tree: Some(checked.tree).filter(|tree| !tree.is_empty()),
            changed_checks: checked.changed_checks,
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
