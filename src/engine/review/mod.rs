//! Reviews: gates in which other agents judge the change. Each reviewer works in a checkout of the snapshot; the engine
//! decides about what it reports.

mod answer;
mod decide;
mod log;
mod prompt;
mod single;
mod touched;

#[cfg(test)]
pub(super) mod tests;

pub(super) use decide::AfterRound;
pub(super) use log::ReviewLog;
pub(super) use prompt::findings_section;
pub use single::{SingleReview, decide_single_review, review_answer_in};
pub use touched::TouchedLines;

use std::collections::BTreeMap;

use decide::{ReviewRules, Round, RoundDecision, decide};
use prompt::ReviewerPrompt;

use super::gates::GateEndReport;
use super::iteration::millis;
use super::*;
use crate::event::{AgentEnd, Finding, ReviewAnswer, ReviewerResult, Severity, iteration_verdict};

/// How often a reviewer is asked for a valid answer in one round.
const MAX_TRIES: u64 = 2;

/// Who reviews in which gate.
#[derive(Debug, Clone, Default)]
pub struct Reviewers {
    pub by_gate: BTreeMap<String, Vec<GateReviewer>>,
}

/// One reviewer of a gate.
#[derive(Debug, Clone)]
pub struct GateReviewer {
    pub name: String,
    /// The index of the agent in [`Agents::rules`].
    pub agent: usize,
    /// What the reviewer looks for, as the file says at the start of this process.
    pub instructions: Option<String>,
}

/// What a round of reviewers judges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewMaterial {
    /// The snapshot in the checkout.
    pub tree: String,
    /// The directory of the checkout, which reviewers may write in front of file names.
    pub directory: String,
    /// The change since the start of the run.
    pub patch: String,
    /// The name of the file with the patch in the checkout.
    pub patch_file: String,
    /// What changed since the first round; `None` in the first round.
    pub touched: Option<TouchedLines>,
    /// The files that changed since the previous round.
    pub changed: Vec<String>,
    /// The instructions of reviewers as they were at the start of the run, by name.
    pub instructions: BTreeMap<String, String>,
}

/// A reviewer that has to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewerLaunch {
    pub iteration: u64,
    pub attempt: u64,
    /// The number of the launch in this attempt, for its files.
    pub number: u64,
    pub reviewer: String,
    /// The index of the agent in [`Agents::rules`].
    pub agent: usize,
    pub prompt: String,
}

/// A review that is running.
#[derive(Debug)]
pub(super) struct ReviewRun {
    phase: ReviewPhase,
    material: ReviewMaterial,
    /// The index of the current reviewer.
    reviewer: usize,
    tries: u64,
    /// Why its previous answer was not valid.
    problem: Option<String>,
    answers: Vec<(String, Option<ReviewAnswer>)>,
    problems: Vec<String>,
    limits_in_a_row: u64,
}

#[derive(Debug)]
enum ReviewPhase {
    /// The checkout is being prepared.
    Preparing,
    Running(Box<Attempt>),
    /// The reviewer has answered; the checkout is being compared.
    Checking(Result<ReviewAnswer, String>),
    /// The reviewer reached a usage limit.
    Waiting {
        since: Duration,
        until: Duration,
    },
}

impl ReviewRun {
    fn new() -> Self {
        Self {
            phase: ReviewPhase::Preparing,
            material: ReviewMaterial::default(),
            reviewer: 0,
            tries: 0,
            problem: None,
            answers: Vec::new(),
            problems: Vec::new(),
            limits_in_a_row: 0,
        }
    }

    fn running(&self) -> Option<&Attempt> {
        match &self.phase {
            ReviewPhase::Running(attempt) => Some(attempt),
            ReviewPhase::Preparing | ReviewPhase::Checking(_) | ReviewPhase::Waiting { .. } => None,
        }
    }

    pub(super) fn running_mut(&mut self) -> Option<&mut Attempt> {
        match &mut self.phase {
            ReviewPhase::Running(attempt) => Some(attempt),
            ReviewPhase::Preparing | ReviewPhase::Checking(_) | ReviewPhase::Waiting { .. } => None,
        }
    }

    /// The usage of the running reviewer.
    pub(super) fn usage(&self) -> Option<&Usage> {
        self.running().map(|attempt| &attempt.usage)
    }

    /// Whether no child runs, so that nothing has to be stopped.
    pub(super) fn has_no_child(&self) -> bool {
        self.running().is_none()
    }
}

impl Engine {
    fn review_rules(&self, gate: &Gate) -> ReviewRules {
        let reviewers = self.reviewers_of(&gate.name).len();
        let quorum = gate.quorum.and_then(|quorum| usize::try_from(quorum).ok());
        ReviewRules {
            gate: gate.name.clone(),
            block: gate.block.unwrap_or(Severity::High),
            rounds: gate.rounds.unwrap_or(Gate::DEFAULT_ROUNDS),
            // Without reviewers, nothing is approved.
            quorum: quorum.unwrap_or(reviewers).max(1),
        }
    }

    fn reviewers_of(&self, gate: &str) -> &[GateReviewer] {
        self.policy.reviewers.by_gate.get(gate).map_or(&[], Vec::as_slice)
    }

    /// The gate that is running, with its review.
    fn review(&mut self) -> Option<&mut ReviewRun> {
        match &mut self.state {
            EngineState::GateRunning(gate_run) => gate_run.review.as_mut(),
            _ => None,
        }
    }

    fn review_gate(&self) -> Option<&Gate> {
        match &self.state {
            EngineState::GateRunning(gate_run) => self.policy.gates.get(gate_run.index),
            _ => None,
        }
    }

    /// Starts a round. The gate is the current one.
    pub(super) fn start_review(&mut self, gate: &Gate, out: &mut Vec<Action>) {
        self.apply_emitted(out);
        let rounds = self.reviews.rounds(&gate.name);
        if let EngineState::GateRunning(gate_run) = &mut self.state {
            gate_run.review = Some(ReviewRun::new());
        }
        out.push(Action::PrepareReview {
            gate: Box::new(gate.clone()),
            first_round: rounds.first_tree,
            last_round: rounds.last_tree,
        });
    }

    pub(super) fn review_prepared(
        &mut self,
        at: Duration,
        prepared: Result<Box<ReviewMaterial>, String>,
        out: &mut Vec<Action>,
    ) {
        let Some(review) = self.review() else {
            return;
        };
        let ReviewPhase::Preparing = review.phase else {
            return;
        };
        match prepared {
            Ok(material) => {
                review.material = *material;
                self.start_reviewer(at, out);
            }
            Err(reason) => {
                review.problems = vec![reason];
                let gate = self
                    .review_gate()
                    .map(|gate| gate.name.clone())
                    .unwrap_or_default();
                let names: Vec<String> = self
                    .reviewers_of(&gate)
                    .iter()
                    .map(|reviewer| reviewer.name.clone())
                    .collect();
                if let Some(review) = self.review() {
                    review.answers = names.into_iter().map(|name| (name, None)).collect();
                }
                self.decide_round(at, out);
            }
        }
    }

    /// Starts the current reviewer, or decides after the last one.
    fn start_reviewer(&mut self, at: Duration, out: &mut Vec<Action>) {
        // A review costs money, so it does not start without a budget.
        if let Some(limit) = self.budget_exceeded() {
            return self.end_stopped(at, StopCause::Limit(limit), out);
        }
        let Some(gate) = self.review_gate().cloned() else {
            return;
        };
        let worker = self.agent;
        let reviewers = self.reviewers_of(&gate.name).to_vec();
        let Some(review) = self.review() else {
            return;
        };
        let Some(reviewer) = reviewers.get(review.reviewer) else {
            return self.decide_round(at, out);
        };
        if reviewer.agent == worker && !gate.same {
            // The configuration was checked, so this is an agent that the check did not know.
            let problem = "the reviewer is the agent that did the work".to_owned();
            review.answers.push((reviewer.name.clone(), None));
            review.problems.push(format!("{}: {problem}", reviewer.name));
            review.reviewer += 1;
            return self.start_reviewer(at, out);
        }
        review.tries += 1;
        self.launch_reviewer(at, &gate, reviewer, out);
    }

    fn launch_reviewer(&mut self, at: Duration, gate: &Gate, reviewer: &GateReviewer, out: &mut Vec<Action>) {
        let Some(review) = self.review() else {
            return;
        };
        let (material, problem) = (review.material.clone(), review.problem.take());
        let own = material
            .instructions
            .get(&reviewer.name)
            .or(reviewer.instructions.as_ref());
        let earlier: Vec<&Finding> = self.reviews.of_gate(&gate.name).collect();
        let prompt = ReviewerPrompt {
            task: &self.task,
            instructions: own.map(String::as_str),
            patch: &material.patch,
            patch_file: &material.patch_file,
            earlier: &earlier,
            problem: problem.as_deref(),
        }
        .compose();
        let round = self.reviews.rounds(&gate.name).failed + 1;
        let agent = &self.policy.agents.rules[reviewer.agent];
        out.push(Action::Emit(RunEvent::ReviewStarted {
            iteration: self.iteration,
            gate: gate.name.clone(),
            reviewer: reviewer.name.clone(),
            agent: agent.label.clone(),
            round,
            rounds: gate.rounds.unwrap_or(Gate::DEFAULT_ROUNDS),
        }));
        let attempt = Attempt::new(at, prompt.clone(), agent);
        let EngineState::GateRunning(gate_run) = &mut self.state else {
            return;
        };
        gate_run.started_reviewers += 1;
        let number = gate_run.started_reviewers;
        if let Some(review) = &mut gate_run.review {
            review.phase = ReviewPhase::Running(Box::new(attempt));
        }
        out.push(Action::LaunchReviewer(Box::new(ReviewerLaunch {
            iteration: self.iteration,
            attempt: self.attempt_number,
            number,
            reviewer: reviewer.name.clone(),
            agent: reviewer.agent,
            prompt,
        })));
    }

    fn current_reviewer(&self) -> Option<GateReviewer> {
        let gate = self.review_gate()?;
        let EngineState::GateRunning(gate_run) = &self.state else {
            return None;
        };
        let index = gate_run.review.as_ref()?.reviewer;
        self.reviewers_of(&gate.name).get(index).cloned()
    }

    /// When the review has to be continued or stopped, and what stops it.
    pub(super) fn review_deadline(
        &self,
        review: &ReviewRun,
        gate_due: Duration,
    ) -> (Duration, Option<StopCause>) {
        let runtime = (
            self.runtime_deadline(),
            Some(StopCause::Limit(RunLimit::Runtime {
                max_seconds: self.policy.limits.runtime.as_secs(),
            })),
        );
        let attempt = match &review.phase {
            ReviewPhase::Waiting { until, .. } => return (*until, None),
            ReviewPhase::Preparing | ReviewPhase::Checking(_) => return runtime,
            ReviewPhase::Running(attempt) => attempt,
        };
        // The timeout of a gate applies to each reviewer.
        let gate_due = attempt.started + gate_due;
        let gate = (gate_due, Some(StopCause::Timeout(TimeLimit::Wall)));
        let own = attempt
            .deadline(&self.policy.timing)
            .map(|(due, cause)| (due, Some(cause)));
        [Some(runtime), Some(gate), own]
            .into_iter()
            .flatten()
            .min_by_key(|(due, _)| *due)
            .unwrap_or(runtime)
    }

    /// A reviewer reached the next deadline of the review.
    pub(super) fn review_tick(&mut self, at: Duration, out: &mut Vec<Action>) {
        let EngineState::GateRunning(gate_run) = &self.state else {
            return;
        };
        let (Some(review), Some(gate)) = (&gate_run.review, self.policy.gates.get(gate_run.index)) else {
            return;
        };
        match self.review_deadline(review, gate.timeout.duration()) {
            (due, _) if at < due => {}
            (_, None) => self.end_review_wait(at, out),
            (_, Some(cause)) => self.stop(at, cause, out),
        }
    }

    pub(super) fn reviewer_stderr(&mut self, text: &str) {
        if let Some(ReviewPhase::Running(attempt)) = self.review().map(|review| &mut review.phase) {
            attempt.push_stderr_line(text);
        }
    }

    /// Processes an event of the running reviewer. Its topics and markers mean nothing.
    pub(super) fn reviewer_event(&mut self, at: Duration, mut event: TranscriptEvent, out: &mut Vec<Action>) {
        let Some(reviewer) = self.current_reviewer() else {
            return;
        };
        let unknown_output = self.unknown_output.entry(reviewer.agent).or_default();
        if unknown_output.note(&event) == Recording::CountOnly {
            return;
        }
        let (costs, markers) = (
            self.policy.agents.rules[reviewer.agent].costs.clone(),
            self.policy.markers.clone(),
        );
        let Some(ReviewPhase::Running(attempt)) = self.review().map(|review| &mut review.phase) else {
            return;
        };
        attempt.complete_usage(&mut event, &costs);
        drop(attempt.apply_event(&event, &markers));
        let repeats_failures = attempt.repeats_failed_results();
        let is_step = matches!(&event, TranscriptEvent::Usage { usage } if usage.scope == UsageScope::Step);
        let spending = is_step && !attempt.has_finished();
        out.push(Action::Emit(RunEvent::ReviewTranscript {
            iteration: self.iteration,
            reviewer: reviewer.name,
            event,
        }));
        if spending && let Some(limit) = self.budget_exceeded() {
            self.stop(at, StopCause::Limit(limit), out);
        }
        if repeats_failures {
            self.stop(at, StopCause::Lingering, out);
        }
    }

    pub(super) fn reviewer_could_not_start(&mut self, at: Duration, error: &str, out: &mut Vec<Action>) {
        if let EngineState::GateRunning(gate_run) = &mut self.state
            && let Some(cause @ (StopCause::Skip | StopCause::Interrupt | StopCause::Limit(_))) =
                gate_run.stop_request.take().map(|request| request.cause)
        {
            self.close_reviewer(at, ReviewerResult::Stopped, out);
            return self.end_stopped(at, cause, out);
        }
        let problem = format!("it could not be started: {error}");
        self.close_reviewer(
            at,
            ReviewerResult::Unanswered {
                problem: problem.clone(),
            },
            out,
        );
        self.reviewer_failed(at, problem, out);
    }

    /// The reviewer has ended: its final message is its answer.
    pub(super) fn reviewer_ended(&mut self, at: Duration, end: &AgentEnd, out: &mut Vec<Action>) {
        let Some(reviewer) = self.current_reviewer() else {
            return;
        };
        let EngineState::GateRunning(gate_run) = &mut self.state else {
            return;
        };
        let Some(ReviewRun {
            phase: ReviewPhase::Running(attempt),
            ..
        }) = &mut gate_run.review
        else {
            return;
        };
        let stop_request = gate_run.stop_request.take();
        attempt.stop_request = stop_request;
        let rules = &self.policy.agents.rules[reviewer.agent];
        let text = attempt.final_text();
        let verdict = attempt.evaluate(at, end, &self.policy, rules).verdict;
        if let Some(cause @ (StopCause::Skip | StopCause::Interrupt | StopCause::Limit(_))) =
            stop_request.map(|stop_request| stop_request.cause)
        {
            self.close_reviewer(at, ReviewerResult::Stopped, out);
            return self.end_stopped(at, cause, out);
        }
        self.reviewer_verdict(at, verdict, &text, out);
    }

    /// Decides what follows from the end of a reviewer that was not stopped from outside.
    fn reviewer_verdict(&mut self, at: Duration, verdict: AttemptVerdict, text: &str, out: &mut Vec<Action>) {
        let outcome = match verdict {
            AttemptVerdict::CompletionClaimed { .. } => None,
            AttemptVerdict::Ended(outcome) => Some(outcome),
        };
        match outcome {
            Some(IterationOutcome::RateLimited { resets_at, message }) => {
                self.close_reviewer(at, ReviewerResult::Limited { message }, out);
                self.reviewer_limited(at, WaitReason::RateLimit, resets_at, out);
            }
            Some(IterationOutcome::Overloaded { message }) => {
                self.close_reviewer(at, ReviewerResult::Limited { message }, out);
                self.reviewer_limited(at, WaitReason::Overload, None, out);
            }
            Some(IterationOutcome::AuthRequired { message }) => {
                let problem = "it is not logged in".to_owned();
                self.close_reviewer(at, ReviewerResult::Unanswered { problem }, out);
                self.reviewer_not_logged_in(at, &message, out);
            }
            Some(
                outcome @ (IterationOutcome::Failed { .. }
                | IterationOutcome::TimedOut { .. }
                | IterationOutcome::CouldNotStart { .. }),
            ) if !is_declared_failure(&outcome) => {
                let problem = iteration_verdict(&outcome, self.policy.started_at, &self.policy.zone).sentence;
                let result = ReviewerResult::Unanswered {
                    problem: problem.clone(),
                };
                self.close_reviewer(at, result, out);
                self.reviewer_failed(at, problem, out);
            }
            Some(_) | None => {
                let answer = answer::parse(text);
                let result = match &answer {
                    Ok(answer) => ReviewerResult::Answered {
                        findings: answer.findings.len() as u64,
                    },
                    Err(problem) => ReviewerResult::Unanswered {
                        problem: problem.clone(),
                    },
                };
                self.close_reviewer(at, result, out);
                if let Some(review) = self.review() {
                    review.phase = ReviewPhase::Checking(answer);
                    out.push(Action::CheckReview);
                }
            }
        }
    }

    /// Records the end of the current reviewer, and adds its usage to that of the iteration.
    fn close_reviewer(&mut self, at: Duration, result: ReviewerResult, out: &mut Vec<Action>) {
        let (Some(reviewer), Some(gate)) = (self.current_reviewer(), self.review_gate().cloned()) else {
            return;
        };
        let Some(review) = self.review() else {
            return;
        };
        let phase = std::mem::replace(&mut review.phase, ReviewPhase::Preparing);
        let ReviewPhase::Running(attempt) = phase else {
            review.phase = phase;
            return;
        };
        let round = self.reviews.rounds(&gate.name).failed + 1;
        out.push(Action::Emit(RunEvent::ReviewEnded {
            iteration: self.iteration,
            gate: gate.name,
            reviewer: reviewer.name,
            agent: self.policy.agents.rules[reviewer.agent].label.clone(),
            round,
            result,
            duration_ms: millis(at - attempt.started),
            usage: Box::new(attempt.usage.clone()),
        }));
        self.warn_about_missing_costs_of(reviewer.agent, &attempt.usage, attempt.cost.unpriced(), out);
        if let EngineState::GateRunning(gate_run) = &mut self.state {
            gate_run.review_usage.add(&attempt.usage);
        }
    }

    /// The checkout has been compared with the snapshot after the reviewer.
    pub(super) fn review_checked(&mut self, at: Duration, altered: &[String], out: &mut Vec<Action>) {
        let directory = self.review().map(|review| review.material.directory.clone());
        let Some(reviewer) = self.current_reviewer() else {
            return;
        };
        let Some(review) = self.review() else {
            return;
        };
        let ReviewPhase::Checking(answer) = std::mem::replace(&mut review.phase, ReviewPhase::Preparing)
        else {
            return;
        };
        let answer = match altered {
            [] => answer,
            files => Err(format!("it changed files of its checkout: {}", files.join(", "))),
        };
        match answer {
            Ok(mut answer) => {
                for finding in &mut answer.findings {
                    remove_directory(&mut finding.file, directory.as_deref().unwrap_or_default());
                }
                review.answers.push((reviewer.name, Some(answer)));
                (review.tries, review.limits_in_a_row) = (0, 0);
                review.reviewer += 1;
                self.start_reviewer(at, out);
            }
            Err(problem) => self.reviewer_failed(at, problem, out),
        }
    }

    /// Asks the reviewer once more, or continues without its answer.
    fn reviewer_failed(&mut self, at: Duration, problem: String, out: &mut Vec<Action>) {
        let Some(reviewer) = self.current_reviewer() else {
            return;
        };
        let Some(review) = self.review() else {
            return;
        };
        if review.tries < MAX_TRIES {
            review.problem = Some(problem);
        } else {
            review.answers.push((reviewer.name.clone(), None));
            review.problems.push(format!("{}: {problem}", reviewer.name));
            (review.tries, review.limits_in_a_row) = (0, 0);
            review.reviewer += 1;
        }
        self.start_reviewer(at, out);
    }

    /// Waits for the limit of the reviewer, then starts it again. This is no try.
    fn reviewer_limited(
        &mut self,
        at: Duration,
        why: WaitReason,
        resets_at: Option<Timestamp>,
        out: &mut Vec<Action>,
    ) {
        let stated = resets_at.and_then(|reset| self.time_until_reset(at, reset));
        let Some(review) = self.review() else {
            return;
        };
        review.tries = review.tries.saturating_sub(1);
        review.limits_in_a_row += 1;
        let limits = review.limits_in_a_row;
        let wait = match stated {
            Some(stated) if limits <= MAX_TRUSTED_RESETS => stated.saturating_add(AFTER_RESET),
            Some(stated) => stated
                .saturating_add(AFTER_RESET)
                .max(self.unknown_reset_backoff.after(limits)),
            None => self.unknown_reset_backoff.after(limits),
        };
        let wait = wait.min(self.policy.limits.limit_wait);
        out.push(Action::Emit(RunEvent::Waiting {
            why,
            wait_ms: millis(wait),
            reason: None,
        }));
        if let Some(review) = self.review() {
            review.phase = ReviewPhase::Waiting {
                since: at,
                until: at.saturating_add(wait),
            };
        }
    }

    /// The limit of the reviewer is over, or the user wants to try now.
    pub(super) fn end_review_wait(&mut self, at: Duration, out: &mut Vec<Action>) {
        let Some(review) = self.review() else {
            return;
        };
        let ReviewPhase::Waiting { since, .. } = review.phase else {
            return;
        };
        review.phase = ReviewPhase::Preparing;
        self.waited += at - since;
        out.push(Action::Emit(RunEvent::WaitEnded));
        self.start_reviewer(at, out);
    }

    fn reviewer_not_logged_in(&mut self, at: Duration, message: &str, out: &mut Vec<Action>) {
        let agent = self
            .current_reviewer()
            .map_or(self.agent, |reviewer| reviewer.agent);
        let rules = &self.policy.agents.rules[agent];
        let message = format!("reviewer {}: {message} {}", rules.label, rules.auth_hint);
        self.final_outcome = Some(RunOutcome::AuthRequired {
            message: message.trim().to_owned(),
        });
        let rejected_by = self.review_gate().map(|gate| gate.name.clone());
        self.end_iteration(at, IterationOutcome::Continued { rejected_by }, out);
    }

    /// Decides about the answers of all reviewers.
    fn decide_round(&mut self, at: Duration, out: &mut Vec<Action>) {
        let Some(gate) = self.review_gate().cloned() else {
            return;
        };
        let rules = self.review_rules(&gate);
        self.apply_emitted(out);
        let iteration = self.iteration;
        let EngineState::GateRunning(gate_run) = &self.state else {
            return;
        };
        let Some(review) = &gate_run.review else {
            return;
        };
        let round = Round {
            iteration,
            answers: &review.answers,
            touched: review.material.touched.as_ref(),
            changed: &review.material.changed,
        };
        let RoundDecision {
            findings,
            result,
            next,
        } = decide(&rules, &self.reviews, &round);
        let report = GateEndReport {
            result,
            output: review.problems.join("\n"),
            tree: Some(review.material.tree.clone()).filter(|tree| !tree.is_empty()),
        };
        for finding in findings {
            out.push(Action::Emit(RunEvent::Finding(Box::new(finding))));
        }
        self.review_ended(at, report, next, out);
    }
}

/// A marker for failure in the answer of a reviewer means nothing.
fn is_declared_failure(outcome: &IterationOutcome) -> bool {
    matches!(
        outcome,
        IterationOutcome::Failed {
            failure: IterationFailure::Declared { .. } | IterationFailure::DisallowedTool { .. }
        }
    )
}

/// Makes the name of a file relative to the checkout.
fn remove_directory(file: &mut Option<String>, directory: &str) {
    let relative = file.as_deref().and_then(|file| {
        let below = file.strip_prefix(directory).filter(|_| !directory.is_empty())?;
        Some(below.trim_start_matches('/').to_owned())
    });
    if let Some(relative) = relative {
        *file = Some(relative).filter(|file| !file.is_empty());
    }
}
