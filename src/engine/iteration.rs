//! The course of a run: from prompt to launch, from verdict to the next iteration, a wait, or the end.

use super::*;

impl Engine {
    /// Starts the current iteration, unless a limit forbids it.
    pub(super) fn begin(&mut self, at: Duration, out: &mut Vec<Action>) {
        match self.limit_reached(at) {
            Some(limit) => self.finish(at, RunOutcome::LimitReached { limit }, out),
            None if self.rested(at, out).is_some() => {}
            None => {
                self.state = State::Reading;
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
        let State::Reading = self.state else { return };
        let task = match prompt {
            Ok(task) => task,
            Err(reason) => return self.finish(at, RunOutcome::Failed { reason }, out),
        };
        let Some(hat) = self.put_on_hat(at, out) else {
            return;
        };
        let gates: Vec<&str> = self
            .policy
            .gates
            .iter()
            .map(|gate| gate.command.as_str())
            .collect();
        let mut prompt = prompt::compose(&task, &self.policy.markers, &gates, &self.notes);
        self.letters.add_to(&mut prompt);
        let (iteration, attempt) = (self.iteration, self.attempt);
        let prompt_bytes = prompt.len() as u64;
        out.push(Action::Emit(RunEvent::IterationStarted {
            iteration,
            attempt,
            hat: hat.clone(),
            prompt_bytes,
        }));
        let session = self.sessions.next(self.policy.session);
        let mut work = Attempt::new(at, prompt.clone(), self.policy.reading);
        work.used_before = self.sessions.used();
        self.state = State::Working(Box::new(work));
        out.push(Action::Launch {
            iteration,
            attempt,
            hat,
            prompt,
            session,
        });
    }

    pub(super) fn hear(&mut self, at: Duration, mut event: TranscriptEvent, out: &mut Vec<Action>) {
        self.hear_session(&event);
        let State::Working(work) = &mut self.state else {
            return;
        };
        let iteration = self.iteration;
        work.price(&mut event, &self.policy.costs);
        let topics = work.hear(&event, &self.policy.markers);
        topics.iter().for_each(|topic| self.post.publish(topic));
        let circling = work.goes_in_circles();
        let is_step = matches!(&event, TranscriptEvent::Usage { usage } if usage.scope == UsageScope::Step);
        let spending = is_step && !work.has_finished();
        out.push(Action::Emit(RunEvent::Transcript { iteration, event }));
        out.extend(
            topics
                .into_iter()
                .map(|event| Action::Emit(RunEvent::Topic { iteration, event })),
        );
        // Totals come at the end of the agent's work: it ends by itself, and may well have completed the task.
        if spending && let Some(limit) = self.budget_crossed() {
            self.stop(at, StopCause::Limit(limit), out);
        }
        // It has given its result, many times over, and does not go.
        if circling {
            self.stop(at, StopCause::Lingering, out);
        }
    }

    pub(super) fn exited(&mut self, at: Duration, end: ProcessEnd, swept: u64, out: &mut Vec<Action>) {
        let State::Working(work) = &mut self.state else {
            return;
        };
        let iteration = self.iteration;
        let duration_ms = millis(at - work.started);
        let Judged {
            verdict,
            topics,
            ignored,
        } = work.judge(at, end, &self.policy);
        topics.iter().for_each(|topic| self.post.publish(topic));
        out.extend(
            topics
                .into_iter()
                .map(|event| Action::Emit(RunEvent::Topic { iteration, event })),
        );
        out.push(Action::Emit(RunEvent::AgentEnded {
            iteration,
            end,
            duration_ms,
            swept,
        }));
        if let Some((marker, reason)) = &ignored {
            let (marker, reason) = (marker.clone(), (*reason).to_owned());
            out.push(Action::Emit(RunEvent::MarkerIgnored {
                iteration,
                marker,
                reason,
            }));
        }
        self.notes = Notes {
            ignored: ignored.map(|(marker, reason)| (marker, reason.into())),
            ..Notes::default()
        };
        match self.unless_events_wait(verdict, out) {
            Verdict::Settled(outcome) => self.settle_or_ask(at, outcome, out),
            Verdict::Claimed { marker } => self.ask_gates(at, marker, out),
        }
    }

    /// The iteration is over: count it, and decide what comes next.
    pub(super) fn settle(&mut self, at: Duration, outcome: IterationOutcome, out: &mut Vec<Action>) {
        let work = match std::mem::replace(&mut self.state, State::Over) {
            State::Working(work) => *work,
            State::Gating(gating) => gating.work,
            State::Confirming(confirming) => confirming.work,
            State::New | State::Reading | State::Waiting { .. } | State::Resting { .. } | State::Over => {
                return;
            }
        };
        let mut said = Vec::new();
        let lost_session = self.close_session(&work, &outcome, &mut said);
        let (started, usage) = (work.started, work.usage);
        self.spent.add(&usage);
        self.warn_of_missing_costs(&usage, work.bill.unpriced(), out);
        if !matches!(outcome, IterationOutcome::RateLimited { .. }) && !lost_session {
            self.iterations_ended += 1;
        }
        self.send_events(&outcome, out);
        out.push(Action::Emit(RunEvent::IterationEnded {
            iteration: self.iteration,
            attempt: self.attempt,
            outcome: outcome.clone(),
            duration_ms: millis(at - started),
            usage: Box::new(usage),
        }));
        self.notes.strayed = restore::strayed(&outcome);
        out.append(&mut said);
        if let Some(by) = self.interrupted {
            return self.finish(at, RunOutcome::Interrupted { by }, out);
        }
        if lost_session {
            self.attempt += 1;
            return self.begin(at, out);
        }
        match outcome {
            IterationOutcome::Completed { marker } => self.finish(at, RunOutcome::Complete { marker }, out),
            IterationOutcome::Continued { .. } => {
                self.failures_in_a_row = 0;
                self.limits_in_a_row = 0;
                self.next_iteration(at, Pause::Cooldown, self.policy.timing.cooldown, out);
            }
            IterationOutcome::Skipped => {
                self.next_iteration(at, Pause::Cooldown, self.policy.timing.cooldown, out);
            }
            IterationOutcome::RateLimited { resets_at, .. } => self.wait_for_limit(at, resets_at, out),
            IterationOutcome::AuthRequired { message } => {
                let message = format!("{message} {}", self.policy.auth_hint).trim().to_owned();
                self.finish(at, RunOutcome::AuthRequired { message }, out);
            }
            IterationOutcome::LimitReached { limit } => {
                self.finish(at, RunOutcome::LimitReached { limit }, out)
            }
            IterationOutcome::Failed { .. }
            | IterationOutcome::TimedOut { .. }
            | IterationOutcome::CouldNotStart { .. }
            | IterationOutcome::Interrupted => self.try_again(at, &outcome, out),
        }
    }

    fn try_again(&mut self, at: Duration, outcome: &IterationOutcome, out: &mut Vec<Action>) {
        if let IterationOutcome::Failed {
            failure: Failure::Declared { marker },
        } = outcome
            && self.policy.on_declared_failure == OnDeclaredFailure::Stop
        {
            let reason = format!("the agent gave up: it said {marker}");
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
            .retry
            .after(self.failures_in_a_row)
            .max(self.policy.timing.cooldown);
        self.next_iteration(at, Pause::Backoff, wait, out);
    }

    fn next_iteration(&mut self, at: Duration, why: Pause, wait: Duration, out: &mut Vec<Action>) {
        self.attempt = 1;
        self.iteration += 1;
        self.is_between_iterations();
        // FinalMessage before a pointless wait, not after it.
        if let Some(limit) = self.limit_reached(at) {
            return self.finish(at, RunOutcome::LimitReached { limit }, out);
        }
        if wait.is_zero() {
            return self.begin(at, out);
        }
        self.wait(at, why, wait, out);
    }

    /// The same iteration again when the limit is over; it is not counted.
    fn wait_for_limit(&mut self, at: Duration, resets_at: Option<Timestamp>, out: &mut Vec<Action>) {
        self.limits_in_a_row += 1;
        self.attempt += 1;
        let wait = match resets_at.and_then(|reset| self.until(at, reset)) {
            Some(stated) if self.limits_in_a_row <= BELIEVED => stated + AFTER_RESET,
            Some(stated) => {
                let at_least = self.unstated_limit.after(self.limits_in_a_row - BELIEVED);
                (stated + AFTER_RESET).max(at_least)
            }
            None => self.unstated_limit.after(self.limits_in_a_row),
        };
        self.wait(at, Pause::RateLimit, wait, out);
    }

    /// How long until a limit is said to end; `None` if that is long past. An agent may take its time to go, so what has
    /// just passed is over, and not unknown.
    pub(super) fn until(&self, at: Duration, reset: Timestamp) -> Option<Duration> {
        let now = self.policy.started_at.checked_add(at).ok()?;
        let left = reset.duration_since(now);
        match Duration::try_from(left) {
            Ok(left) => Some(left),
            Err(_) => (left.unsigned_abs() < JUST_PASSED).then_some(Duration::ZERO),
        }
    }

    pub(super) fn wait(&mut self, at: Duration, why: Pause, wait: Duration, out: &mut Vec<Action>) {
        out.push(Action::Emit(RunEvent::Waiting {
            why,
            wait_ms: millis(wait),
        }));
        self.state = State::Waiting {
            since: at,
            until: at + wait,
            why,
        };
    }

    pub(super) fn end_wait(&mut self, at: Duration, out: &mut Vec<Action>) {
        let State::Waiting { since, why, .. } = self.state else {
            return;
        };
        if why == Pause::RateLimit {
            self.waited += at - since;
        }
        out.push(Action::Emit(RunEvent::WaitEnded));
        self.begin(at, out);
    }

    pub(super) fn finish(&mut self, at: Duration, outcome: RunOutcome, out: &mut Vec<Action>) {
        self.state = State::Over;
        out.push(Action::Emit(self.ended(at, outcome.clone())));
        out.push(Action::Finish(outcome));
    }

    /// The last word on a run that cannot go on, because somebody other than the agent has failed.
    pub fn broken_off(&self, at: Duration, reason: String) -> RunEvent {
        self.ended(at, RunOutcome::Failed { reason })
    }

    fn ended(&self, at: Duration, outcome: RunOutcome) -> RunEvent {
        RunEvent::RunEnded {
            outcome,
            iterations: self.iterations_ended,
            duration_ms: millis(at),
            usage: Box::new(self.spent.clone()),
        }
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
