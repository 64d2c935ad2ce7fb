//! The main loop of a run: prompt, launch, agent exit, then the next iteration, a wait or the end.

use super::*;

impl Engine {
    /// Begins the current iteration, unless a limit forbids it or the run has to pause.
    pub(super) fn begin_iteration(&mut self, at: Duration, out: &mut Vec<Action>) {
        match self.limit_reached(at) {
            Some(limit) => self.finish(at, RunOutcome::LimitReached { limit }, out),
            None if self.pause_or_ask(at, out) => {}
            None => {
                self.state = EngineState::ReadingPrompt;
                self.take_first_snapshot(out);
                if self.policy.workspace_checks != WorkspaceChecks::default() {
                    out.push(Action::ScanWorkspace);
                }
                if self.checks_disk() {
                    out.push(Action::CheckDisk);
                }
                out.push(Action::ReadPrompt);
            }
        }
    }

    pub(super) fn prompt_read(
        &mut self,
        at: Duration,
        prompt: Result<String, String>,
        out: &mut Vec<Action>,
    ) {
        let EngineState::ReadingPrompt = self.state else {
            return;
        };
        let task = match prompt {
            Ok(task) => task,
            Err(reason) => return self.finish(at, RunOutcome::Failed { reason }, out),
        };
        let Some(hat) = self.activate_next_hat(at, out) else {
            return;
        };
        let Some(agent) = self.choose_agent(at, hat.as_deref(), out) else {
            return;
        };
        if !self.may_launch(agent) {
            return self.request_place(at, agent, (task, hat), out);
        }
        self.launch(at, agent, (task, hat), out);
    }

    /// Composes the prompt and launches the agent.
    pub(super) fn launch(
        &mut self,
        at: Duration,
        agent: usize,
        (task, hat): (String, Option<String>),
        out: &mut Vec<Action>,
    ) {
        self.leave_other_accounts(agent, out);
        self.agent = agent;
        let gates = gates::visible_commands(&self.policy.gates);
        self.notes.findings = review::findings_section(&self.reviews);
        let mut prompt = prompt::compose(&task, self.policy.prompt_rules(), &gates, &self.notes);
        if self.policy.questions.instructions == QuestionInstructions::InPrompt {
            prompt::add_question_instructions(&mut prompt);
        }
        self.user_messages.add_to(&mut prompt);
        self.task = task;
        let (iteration, attempt_number) = (self.iteration, self.attempt_number);
        let prompt_bytes = prompt.len() as u64;
        out.push(Action::Emit(RunEvent::IterationStarted {
            iteration,
            attempt: attempt_number,
            hat: hat.clone(),
            agent: self.policy.agents.label_of(self.agent),
            prompt_bytes,
        }));
        let (agent, source) = (self.agent, self.agent().session_source);
        let session = self.sessions.next(agent, self.policy.session, source);
        let mut attempt = Attempt::new(at, prompt.clone(), self.agent());
        attempt.disallowed_tools = self.hat_queue.disallowed_tools().to_vec();
        attempt.session_usage_before = self.sessions.usage(agent);
        self.state = EngineState::AgentRunning(Box::new(attempt));
        out.push(Action::Launch {
            iteration,
            attempt: attempt_number,
            hat,
            agent,
            prompt,
            session,
        });
    }

    pub(super) fn transcript_event(
        &mut self,
        at: Duration,
        mut event: TranscriptEvent,
        out: &mut Vec<Action>,
    ) {
        if let EngineState::GateRunning(_) = self.state {
            return self.reviewer_event(at, event, out);
        }
        self.note_session(&event);
        let unknown_output = self.unknown_output.entry(self.agent).or_default();
        if unknown_output.note(&event) == Recording::CountOnly {
            return;
        }
        let EngineState::AgentRunning(attempt) = &mut self.state else {
            return;
        };
        let iteration = self.iteration;
        attempt.complete_usage(&mut event, &self.policy.agents.rules[self.agent].costs);
        let cost_before = attempt.usage.cost_usd;
        let topics = attempt.apply_event(&event, &self.policy.markers);
        let repeats_failures = attempt.repeats_failed_results();
        let is_step = matches!(&event, TranscriptEvent::Usage { usage } if usage.scope == UsageScope::Step);
        let spending = is_step && !attempt.has_finished();
        let spent = (attempt.usage.cost_usd != cost_before).then(|| attempt.usage.clone());
        self.report_limit(&event, out);
        out.push(Action::Emit(RunEvent::Transcript { iteration, event }));
        if let Some(spent) = spent {
            self.report_spend(&spent, SpendMoment::Running, out);
        }
        self.publish(topics, out);
        // A total arrives when the agent is about to exit by itself, and it may have completed the task. Only step
        // figures stop it.
        if spending && let Some(limit) = self.budget_exceeded() {
            self.stop(at, StopCause::Limit(limit), out);
        }
        // The agent keeps reporting a failed result without exiting.
        if repeats_failures {
            self.stop(at, StopCause::Lingering, out);
        }
    }

    /// Counts the ended iteration and decides what comes next.
    pub(super) fn end_iteration(&mut self, at: Duration, outcome: IterationOutcome, out: &mut Vec<Action>) {
        let Some(attempt) = std::mem::replace(&mut self.state, EngineState::Finished).into_attempt() else {
            return;
        };
        let mut session_notices = Vec::new();
        let lost_session = self.close_session(&attempt, &outcome, &mut session_notices);
        let (started, mut usage) = (attempt.started, attempt.usage);
        self.warn_about_missing_costs_of(self.agent, &usage, attempt.cost.unpriced(), out);
        if !attempt.review_usage.is_empty() {
            usage.add(&attempt.review_usage);
        }
        self.spent.add(&usage);
        self.report_spend(&usage, SpendMoment::Ended, out);
        let falls_back = self.falls_back_from_login(&outcome);
        let is_counted = !matches!(
            outcome,
            IterationOutcome::RateLimited { .. } | IterationOutcome::Overloaded { .. }
        );
        if is_counted && !lost_session && !falls_back {
            self.iterations_ended += 1;
        }
        self.end_hat_activation(&outcome, out);
        out.push(Action::Emit(RunEvent::IterationEnded {
            iteration: self.iteration,
            attempt: self.attempt_number,
            outcome: outcome.clone(),
            duration_ms: millis(at - started),
            usage: Box::new(usage),
        }));
        self.notes.violated_paths = restore::violated_paths(&outcome);
        out.append(&mut session_notices);
        if let Some(by) = self.interrupted {
            return self.finish(at, RunOutcome::Interrupted { by }, out);
        }
        if lost_session || falls_back {
            self.attempt_number += 1;
            return self.begin_iteration(at, out);
        }
        self.take_checkpoint(at, outcome, out);
    }

    /// Ends the run, or starts or schedules what follows an ended iteration.
    pub(super) fn continue_after(&mut self, at: Duration, outcome: IterationOutcome, out: &mut Vec<Action>) {
        if let Some(outcome) = self.final_outcome.take() {
            return self.finish(at, outcome, out);
        }
        match outcome {
            IterationOutcome::Completed { marker } => self.finish(at, RunOutcome::Complete { marker }, out),
            IterationOutcome::Continued { .. } => {
                self.failures_in_a_row = 0;
                self.limit_is_over();
                self.next_iteration(at, WaitReason::Cooldown, self.policy.timing.cooldown, out);
            }
            IterationOutcome::Skipped => {
                self.next_iteration(at, WaitReason::Cooldown, self.policy.timing.cooldown, out);
            }
            IterationOutcome::RateLimited { resets_at, message } => {
                self.usage_limit_reached(at, resets_at, message, out);
            }
            IterationOutcome::Overloaded { .. } => self.wait_for_limit(at, WaitReason::Overload, None, out),
            IterationOutcome::AuthRequired { message } => {
                let message = format!("{message} {}", self.agent().auth_hint).trim().to_owned();
                self.finish(at, RunOutcome::AuthRequired { message }, out);
            }
            IterationOutcome::LimitReached { limit } => {
                self.finish(at, RunOutcome::LimitReached { limit }, out)
            }
            IterationOutcome::Failed { .. }
            | IterationOutcome::TimedOut { .. }
            | IterationOutcome::CouldNotStart { .. }
            | IterationOutcome::Interrupted => self.retry_after_failure(at, &outcome, out),
        }
    }

    fn retry_after_failure(&mut self, at: Duration, outcome: &IterationOutcome, out: &mut Vec<Action>) {
        if let IterationOutcome::Failed {
            failure: IterationFailure::Declared { marker },
        } = outcome
            && self.policy.on_declared_failure == OnDeclaredFailure::Stop
        {
            let reason = format!("the agent reported failure ({marker})");
            return self.finish(at, RunOutcome::Failed { reason }, out);
        }
        self.failures_in_a_row += 1;
        if self.failures_in_a_row >= self.policy.limits.consecutive_failures {
            let reason = match self.failures_in_a_row {
                1 => "the iteration failed (max_consecutive_failures: 1)".to_owned(),
                failures => format!("{failures} iterations failed in a row (max_consecutive_failures)"),
            };
            return self.finish(at, RunOutcome::Failed { reason }, out);
        }
        let wait = self
            .failure_backoff
            .after(self.failures_in_a_row)
            .max(self.policy.timing.cooldown);
        self.next_iteration(at, WaitReason::Backoff, wait, out);
    }

    fn next_iteration(&mut self, at: Duration, why: WaitReason, wait: Duration, out: &mut Vec<Action>) {
        self.attempt_number = 1;
        self.iteration += 1;
        self.mark_iteration_boundary();
        // Check the limits before a pointless wait, not after it.
        if let Some(limit) = self.limit_reached(at) {
            return self.finish(at, RunOutcome::LimitReached { limit }, out);
        }
        if wait.is_zero() {
            return self.begin_iteration(at, out);
        }
        self.wait(at, why, wait, out);
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
