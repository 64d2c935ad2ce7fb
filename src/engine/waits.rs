//! Waits between iterations: for a rate limit, after a failure, and the user's requests to end them early.

use super::iteration::millis;
use super::*;

impl Engine {
    /// Ends the run if it must not wait for usage limits and no other agent can take over.
    pub(super) fn usage_limit_reached(
        &mut self,
        at: Duration,
        resets_at: Option<Timestamp>,
        message: String,
        out: &mut Vec<Action>,
    ) {
        match self.policy.on_limit {
            OnLimit::Wait => self.wait_for_limit(at, WaitReason::RateLimit, resets_at, out),
            OnLimit::Exit => {
                let stated = resets_at.and_then(|reset| self.time_until_reset(at, reset));
                let wait = stated.unwrap_or_else(|| self.unknown_reset_backoff.after(1));
                if self.falls_back_from_limit(at, wait) {
                    self.attempt_number += 1;
                    return self.begin_iteration(at, out);
                }
                self.finish(at, RunOutcome::RateLimited { resets_at, message }, out);
            }
        }
    }

    /// Waits until the usage limit resets or the service recovers, then repeats the same iteration, which does not count.
    pub(super) fn wait_for_limit(
        &mut self,
        at: Duration,
        why: WaitReason,
        resets_at: Option<Timestamp>,
        out: &mut Vec<Action>,
    ) {
        self.limits_in_a_row += 1;
        self.attempt_number += 1;
        let stated = resets_at.and_then(|reset| self.time_until_reset(at, reset));
        if let Some(stated) = stated {
            self.report_distant_reset(at, stated, out);
        }
        let wait = match stated {
            Some(stated) if self.limits_in_a_row <= MAX_TRUSTED_RESETS => stated.saturating_add(AFTER_RESET),
            Some(stated) => {
                let at_least = self
                    .unknown_reset_backoff
                    .after(self.limits_in_a_row - MAX_TRUSTED_RESETS);
                stated.saturating_add(AFTER_RESET).max(at_least)
            }
            None => self.unknown_reset_backoff.after(self.limits_in_a_row),
        };
        let wait = wait.min(self.policy.limits.limit_wait);
        if why == WaitReason::RateLimit {
            if self.falls_back_from_limit(at, wait) {
                return self.begin_iteration(at, out);
            }
            self.report_own_wait(at, wait, out);
        }
        self.wait(at, why, wait, out);
    }

    /// Time until a stated reset; zero if it has just passed (the agent may take a while to exit), `None` if it is long
    /// past.
    pub(super) fn time_until_reset(&self, at: Duration, reset: Timestamp) -> Option<Duration> {
        let now = self.policy.started_at.checked_add(at).ok()?;
        let left = reset.duration_since(now);
        match Duration::try_from(left) {
            Ok(left) => Some(left),
            Err(_) => (left.unsigned_abs() < RESET_TOLERANCE).then_some(Duration::ZERO),
        }
    }

    /// Resumes the wait for a reset that was stated before the run was interrupted.
    pub(super) fn wait_for_reset(&mut self, at: Duration, stated: Duration, out: &mut Vec<Action>) {
        self.report_distant_reset(at, stated, out);
        let wait = stated.saturating_add(AFTER_RESET);
        self.wait(
            at,
            WaitReason::RateLimit,
            wait.min(self.policy.limits.limit_wait),
            out,
        );
    }

    /// Reports a stated reset for which the run does not wait, because it is too far away.
    fn report_distant_reset(&self, at: Duration, stated: Duration, out: &mut Vec<Action>) {
        let longest = self.policy.limits.limit_wait;
        if stated <= longest {
            return;
        }
        let reset = self.policy.started_at.checked_add(at.saturating_add(stated));
        let date = reset.map_or_else(
            |_| "never".to_owned(),
            |reset| {
                let local = reset.to_zoned(self.policy.zone.clone());
                local.strftime("at %Y-%m-%d %H:%M %Z").to_string()
            },
        );
        let bound = Seconds(longest.as_secs());
        let text = format!(
            "the usage limit resets {date}; the agent is tried again after {bound} (event_loop.max_wait_seconds)"
        );
        let level = NoticeLevel::Warning;
        out.push(Action::Emit(RunEvent::Notice { level, text }));
    }

    pub(super) fn wait(&mut self, at: Duration, why: WaitReason, wait: Duration, out: &mut Vec<Action>) {
        out.push(Action::Emit(RunEvent::Waiting {
            why,
            wait_ms: millis(wait),
            reason: None,
        }));
        let until = at.saturating_add(wait);
        // After a wake that led straight back to the same limit, a wake ends the next wait only after a delay that
        // doubles with each such wake. Otherwise a process that sends wakes turns the wait into a loop of attempts.
        let earliest = match (is_for_limit(why), self.useless_wakes) {
            (true, wakes @ 1..) => at
                .saturating_add(self.unknown_reset_backoff.after(wakes))
                .min(until),
            (true, 0) | (false, _) => at,
        };
        self.state = EngineState::Waiting {
            since: at,
            until,
            why,
            earliest,
        };
    }

    /// The user or a command asks for the end of the wait.
    pub(super) fn wake_from_wait(&mut self, at: Duration, out: &mut Vec<Action>) {
        let EngineState::Waiting {
            until, why, earliest, ..
        } = &mut self.state
        else {
            return;
        };
        if at < *earliest {
            if *until > *earliest {
                *until = *earliest;
                self.useless_wakes += 1;
                let delay = Seconds((*earliest - at).as_secs().max(1));
                let level = NoticeLevel::Info;
                let text =
                    format!("the last attempt reached the same limit; the agent is tried again in {delay}");
                out.push(Action::Emit(RunEvent::Notice { level, text }));
            }
            return;
        }
        if is_for_limit(*why) {
            self.useless_wakes += 1;
            self.health.forget_limits();
            self.force_next_place();
        }
        self.end_wait(at, out);
    }

    pub(super) fn end_wait(&mut self, at: Duration, out: &mut Vec<Action>) {
        let EngineState::Waiting { since, why, .. } = self.state else {
            return;
        };
        if is_for_limit(why) {
            self.waited += at - since;
        }
        out.push(Action::Emit(RunEvent::WaitEnded));
        self.begin_iteration(at, out);
    }

    /// An iteration got past the limit.
    pub(super) fn limit_is_over(&mut self) {
        self.limits_in_a_row = 0;
        self.useless_wakes = 0;
    }
}

/// Whether a wait is for something that only time resolves. Such waits do not count as runtime.
fn is_for_limit(why: WaitReason) -> bool {
    match why {
        WaitReason::RateLimit | WaitReason::Overload | WaitReason::Quota => true,
        WaitReason::Cooldown | WaitReason::Backoff => false,
    }
}
