//! Limits and interrupts: deadlines, budgets, and what Ctrl-C and other interrupts do to a run.

use super::*;
use crate::policy::{Limits, MissingPrice};

impl Engine {
    pub(super) fn tick(&mut self, at: Duration, out: &mut Vec<Action>) {
        if self.deadline().is_none_or(|due| at < due) {
            return;
        }
        let out_of_time = at >= self.runtime_deadline();
        let runtime = RunLimit::Runtime {
            max_seconds: self.policy.limits.runtime.as_secs(),
        };
        match &self.state {
            EngineState::New
            | EngineState::ReadingPrompt
            | EngineState::Inspecting(_)
            | EngineState::RollingBack(_)
            | EngineState::AwaitingConfirmation(_)
            | EngineState::Finished => {}
            EngineState::AwaitingPlace(_) => self.place_due(out),
            EngineState::Paused { .. } => self.question_expired(at, out),
            EngineState::Ending(_) => self.end_now(out),
            EngineState::Waiting { why, .. } => match why {
                WaitReason::Cooldown | WaitReason::Backoff if out_of_time => {
                    self.finish(at, RunOutcome::LimitReached { limit: runtime }, out);
                }
                WaitReason::Cooldown
                | WaitReason::Backoff
                | WaitReason::RateLimit
                | WaitReason::Overload
                | WaitReason::Quota => {
                    self.end_wait(at, out);
                }
            },
            EngineState::AgentRunning(attempt) => {
                let due = attempt
                    .deadline(&self.policy.timing)
                    .filter(|(when, _)| at >= *when);
                let overdue = attempt.stop_request.is_some();
                match due {
                    _ if overdue => self.kill_again(at, out),
                    _ if out_of_time => self.stop(at, StopCause::Limit(runtime), out),
                    Some((_, cause)) => self.stop(at, cause, out),
                    None => self.check_disk_again(at, out),
                }
            }
            EngineState::Checkpointing(checkpoint) if checkpoint.stop_request.is_some() => {
                self.kill_again(at, out);
            }
            EngineState::Checkpointing(_) => self.stop(at, StopCause::Timeout(TimeLimit::Wall), out),
            EngineState::GateRunning(gate_run) if gate_run.stop_request.is_some() => self.kill_again(at, out),
            EngineState::GateRunning(gate_run) if gate_run.is_review() => self.review_tick(at, out),
            EngineState::GateRunning(_) if out_of_time => self.stop(at, StopCause::Limit(runtime), out),
            EngineState::GateRunning(_) => self.stop(at, StopCause::Timeout(TimeLimit::Wall), out),
        }
    }

    /// The first interrupt asks the agent to exit; the second kills it.
    pub(super) fn interrupt(&mut self, at: Duration, by: Interrupt, out: &mut Vec<Action>) {
        let before = self.interrupted.replace(by);
        // A repeated hangup is not a second request: the terminal can close only once.
        if (before, by) == (Some(Interrupt::Hup), Interrupt::Hup) {
            return;
        }
        let again = before.is_some();
        if !again {
            self.interrupted_at = at;
        }
        match &self.state {
            EngineState::AgentRunning(_) | EngineState::GateRunning(_) | EngineState::Checkpointing(_)
                if again =>
            {
                out.push(Action::Kill);
            }
            EngineState::AgentRunning(_) | EngineState::GateRunning(_) | EngineState::Checkpointing(_) => {
                let reason = match by {
                    Interrupt::Int => "interrupted; press Ctrl-C again to kill the agent",
                    Interrupt::Term => "received SIGTERM",
                    Interrupt::Hup => "the terminal was closed",
                    Interrupt::Quit => "stop requested",
                };
                out.push(Action::Emit(RunEvent::Stopping {
                    reason: reason.to_owned(),
                }));
                self.stop(at, StopCause::Interrupt, out);
            }
            // The restore is completed first, so that no half of it is left.
            EngineState::RollingBack(_) => {}
            EngineState::AwaitingConfirmation(_) => self.decline_completion(at, out),
            EngineState::Inspecting(_) => self.abandon_inspection(at, out),
            EngineState::Ending(_) => self.end_now(out),
            EngineState::New
            | EngineState::ReadingPrompt
            | EngineState::AwaitingPlace(_)
            | EngineState::Waiting { .. }
            | EngineState::Paused { .. } => {
                self.finish(at, RunOutcome::Interrupted { by }, out);
            }
            EngineState::Finished => {}
        }
    }

    /// Kills the running child and ends the run.
    pub(super) fn kill(&mut self, at: Duration, out: &mut Vec<Action>) {
        if self.gates_have_no_child() {
            return self.interrupt(at, Interrupt::Quit, out);
        }
        let stop_request = match &mut self.state {
            EngineState::AgentRunning(attempt) => &mut attempt.stop_request,
            EngineState::GateRunning(gate_run) => &mut gate_run.stop_request,
            EngineState::Checkpointing(checkpoint) => &mut checkpoint.stop_request,
            EngineState::New
            | EngineState::ReadingPrompt
            | EngineState::AwaitingPlace(_)
            | EngineState::Waiting { .. }
            | EngineState::Paused { .. }
            | EngineState::Inspecting(_)
            | EngineState::RollingBack(_)
            | EngineState::AwaitingConfirmation(_)
            | EngineState::Ending(_)
            | EngineState::Finished => return self.interrupt(at, Interrupt::Quit, out),
        };
        let cause = StopCause::Interrupt;
        *stop_request = Some(StopRequest { cause, at });
        if self.interrupted.is_none() {
            self.interrupted = Some(Interrupt::Quit);
            let reason = "kill requested".to_owned();
            out.push(Action::Emit(RunEvent::Stopping { reason }));
        }
        out.push(Action::Kill);
    }

    /// Stops the running child once. An interrupt overrides any earlier cause.
    pub(super) fn stop(&mut self, at: Duration, cause: StopCause, out: &mut Vec<Action>) {
        if self.gates_have_no_child() {
            return self.end_stopped(at, cause, out);
        }
        let stop_request = match &mut self.state {
            EngineState::AgentRunning(attempt) => &mut attempt.stop_request,
            EngineState::GateRunning(gate_run) => &mut gate_run.stop_request,
            // There is no iteration to skip.
            EngineState::Checkpointing(_) if cause == StopCause::Skip => return,
            EngineState::Checkpointing(checkpoint) => &mut checkpoint.stop_request,
            EngineState::New
            | EngineState::ReadingPrompt
            | EngineState::AwaitingPlace(_)
            | EngineState::Inspecting(_)
            | EngineState::Waiting { .. }
            | EngineState::Paused { .. }
            | EngineState::RollingBack(_)
            | EngineState::AwaitingConfirmation(_)
            | EngineState::Ending(_)
            | EngineState::Finished => return,
        };
        match stop_request {
            None => {
                *stop_request = Some(StopRequest { cause, at });
                if let (StopCause::Lingering, EngineState::AgentRunning(attempt)) = (cause, &self.state) {
                    let (level, text) = attempt.lingering_notice(&self.policy.timing);
                    out.push(Action::Emit(RunEvent::Notice { level, text }));
                }
                out.push(Action::Stop {
                    grace: self.policy.timing.stop_grace,
                });
            }
            Some(stop_request) if cause == StopCause::Interrupt => stop_request.cause = cause,
            Some(_) => {}
        }
    }

    fn kill_again(&mut self, at: Duration, out: &mut Vec<Action>) {
        let stop_request = match &mut self.state {
            EngineState::AgentRunning(attempt) => &mut attempt.stop_request,
            EngineState::GateRunning(gate_run) => &mut gate_run.stop_request,
            EngineState::Checkpointing(checkpoint) => &mut checkpoint.stop_request,
            EngineState::New
            | EngineState::ReadingPrompt
            | EngineState::AwaitingPlace(_)
            | EngineState::Inspecting(_)
            | EngineState::Waiting { .. }
            | EngineState::Paused { .. }
            | EngineState::RollingBack(_)
            | EngineState::AwaitingConfirmation(_)
            | EngineState::Ending(_)
            | EngineState::Finished => return,
        };
        if let Some(stop_request) = stop_request {
            stop_request.at = at;
        }
        out.push(Action::Kill);
    }

    pub(super) fn runtime_deadline(&self) -> Duration {
        self.policy.limits.runtime.saturating_add(self.waited)
    }

    /// Stops an agent that prints more than it may.
    pub(super) fn output_seen(&mut self, at: Duration, bytes: u64, out: &mut Vec<Action>) {
        let max_bytes = self.policy.limits.output_bytes;
        let attempt = match &mut self.state {
            EngineState::AgentRunning(attempt) => attempt,
            EngineState::GateRunning(gate_run) => {
                match gate_run.review.as_mut().and_then(ReviewRun::running_mut) {
                    Some(attempt) => attempt,
                    None => return,
                }
            }
            _ => return,
        };
        if attempt.count_output(at, bytes) > max_bytes && max_bytes > 0 {
            self.stop(at, StopCause::Output { max_bytes }, out);
        }
    }

    pub(super) fn checks_disk(&self) -> bool {
        self.policy.limits.free_disk_bytes > 0
    }

    fn check_disk_again(&mut self, at: Duration, out: &mut Vec<Action>) {
        if let EngineState::AgentRunning(attempt) = &mut self.state
            && self.policy.limits.free_disk_bytes > 0
            && at >= attempt.disk_check_at
        {
            attempt.disk_check_at = at + DISK_CHECK_INTERVAL;
            out.push(Action::CheckDisk);
        }
    }

    /// Ends the run before the disk is full, while its files can still be written.
    pub(super) fn disk_checked(&mut self, at: Duration, free_bytes: u64, out: &mut Vec<Action>) {
        let min_free_bytes = self.policy.limits.free_disk_bytes;
        if free_bytes >= min_free_bytes {
            return;
        }
        let limit = RunLimit::Disk { min_free_bytes };
        match &self.state {
            EngineState::ReadingPrompt | EngineState::AwaitingPlace(_) => {
                self.finish(at, RunOutcome::LimitReached { limit }, out);
            }
            EngineState::AgentRunning(_) => self.stop(at, StopCause::Limit(limit), out),
            EngineState::New
            | EngineState::Inspecting(_)
            | EngineState::Checkpointing(_)
            | EngineState::GateRunning(_)
            | EngineState::RollingBack(_)
            | EngineState::Waiting { .. }
            | EngineState::Paused { .. }
            | EngineState::AwaitingConfirmation(_)
            | EngineState::Ending(_)
            | EngineState::Finished => {}
        }
    }

    /// The limit that forbids another iteration, if any.
    pub(super) fn limit_reached(&self, at: Duration) -> Option<RunLimit> {
        let Limits {
            iterations, runtime, ..
        } = self.policy.limits;
        if self.iteration > iterations {
            return Some(RunLimit::Iterations { max: iterations });
        }
        if at >= self.runtime_deadline() {
            return Some(RunLimit::Runtime {
                max_seconds: runtime.as_secs(),
            });
        }
        self.budget_exceeded()
    }

    /// The budget that has been used up, including the running iteration.
    pub(super) fn budget_exceeded(&self) -> Option<RunLimit> {
        let of_gates;
        let running = match &self.state {
            EngineState::AgentRunning(attempt) => Some(&attempt.usage),
            EngineState::GateRunning(gate_run) => {
                of_gates = gate_run.usage();
                Some(&of_gates)
            }
            EngineState::Inspecting(inspection) => Some(&inspection.attempt.usage),
            EngineState::RollingBack(rollback) => Some(&rollback.attempt.usage),
            EngineState::AwaitingConfirmation(pending) => Some(&pending.attempt.usage),
            EngineState::New
            | EngineState::ReadingPrompt
            | EngineState::Checkpointing(_)
            | EngineState::AwaitingPlace(_)
            | EngineState::Waiting { .. }
            | EngineState::Paused { .. }
            | EngineState::Ending(_)
            | EngineState::Finished => None,
        };
        let mut total = self.spent.clone();
        if let Some(usage) = running {
            total.add(usage);
        }
        let total_tokens = total.tokens().unwrap_or(0);
        if let Some(max_usd) = self.policy.limits.cost_usd
            && total.cost_usd.unwrap_or_default().get() >= max_usd - 1e-9
        {
            return Some(RunLimit::Cost { max_usd });
        }
        let tokens = self.policy.limits.tokens.filter(|max| total_tokens >= *max);
        tokens
            .map(|max| RunLimit::Tokens { max })
            .or_else(|| self.shared_budget_exceeded(running))
    }

    /// Warns before the first iteration if the cost budget can never take effect.
    pub(super) fn warn_about_unenforceable_budget(&mut self, out: &mut Vec<Action>) {
        let budgets = &self.policy.budgets;
        let budget = match (
            self.policy.limits.cost_usd,
            budgets.per_day_usd,
            budgets.per_project_usd,
        ) {
            (Some(max_usd), ..) => format!("max_cost_usd (${max_usd})"),
            (None, Some(max_usd), _) => format!("budgets.per_day_usd (${max_usd})"),
            (None, None, Some(max_usd)) => format!("budgets.per_project_usd (${max_usd})"),
            (None, None, None) => return,
        };
        let agents = self.policy.agents.rules.iter();
        let warnings: Vec<String> = agents
            .filter_map(|agent| match &agent.costs.availability {
                CostAvailability::Unavailable { reason } => {
                    Some(format!("{budget} cannot be enforced: {reason}"))
                }
                CostAvailability::Available => None,
            })
            .collect();
        for text in warnings {
            self.warn_once(text, out);
        }
    }

    /// Warns about usage without a known cost.
    pub(super) fn warn_about_missing_costs_of(
        &mut self,
        agent: usize,
        usage: &Usage,
        unpriced: BTreeSet<MissingPrice>,
        out: &mut Vec<Action>,
    ) {
        let explained = !unpriced.is_empty();
        for why in unpriced {
            self.warn_once(format!("not all costs are known: {why}"), out);
        }
        let announced = self.policy.agents.rules[agent].costs.availability != CostAvailability::Available;
        if let Some(max_usd) = self.policy.limits.cost_usd
            && usage.tokens().is_some()
            && usage.cost_usd.is_none()
            && !announced
            && !explained
        {
            let text = format!(
                "the agent reported no cost for its usage, which does not count towards max_cost_usd (${max_usd})"
            );
            self.warn_once(text, out);
        }
    }

    fn warn_once(&mut self, text: String, out: &mut Vec<Action>) {
        if self.cost_warnings.insert(text.clone()) {
            let level = NoticeLevel::Warning;
            out.push(Action::Emit(RunEvent::Notice { level, text }));
        }
    }
}
