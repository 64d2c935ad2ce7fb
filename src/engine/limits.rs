//! What cuts a run short: deadlines, budgets, interrupts; and the gates, which have deadlines of their own.

use super::iteration::millis;
use super::prices::NoPrice;
use super::*;

impl Engine {
    pub(super) fn tick(&mut self, at: Duration, out: &mut Vec<Action>) {
        if self.deadline().is_none_or(|due| at < due) {
            return;
        }
        let out_of_time = at >= self.runtime_deadline();
        let runtime = Limit::Runtime {
            max_seconds: self.policy.limits.runtime.as_secs(),
        };
        match &self.state {
            State::New | State::Reading | State::Resting { .. } | State::Confirming(_) | State::Over => {}
            State::Waiting { why, .. } => match why {
                Pause::Cooldown | Pause::Backoff if out_of_time => {
                    self.finish(at, RunOutcome::LimitReached { limit: runtime }, out);
                }
                Pause::Cooldown | Pause::Backoff | Pause::RateLimit => self.end_wait(at, out),
            },
            State::Working(work) => {
                let due = work.deadline(&self.policy.timing).filter(|(when, _)| at >= *when);
                let overdue = work.stopping.is_some();
                match due {
                    _ if overdue => self.kill_again(at, out),
                    _ if out_of_time => self.stop(at, StopCause::Limit(runtime), out),
                    Some((_, cause)) => self.stop(at, cause, out),
                    None => {}
                }
            }
            State::Gating(gating) if gating.stopping.is_some() => self.kill_again(at, out),
            State::Gating(_) if out_of_time => self.stop(at, StopCause::Limit(runtime), out),
            State::Gating(_) => self.stop(at, StopCause::Timeout(TimeLimit::Wall), out),
        }
    }

    /// First: tell the user, ask the agent to end. Second: kill it at once.
    pub(super) fn interrupt(&mut self, at: Duration, by: Interrupt, out: &mut Vec<Action>) {
        let before = self.interrupted.replace(by);
        // A terminal goes away once, however often that is said.
        if (before, by) == (Some(Interrupt::Hup), Interrupt::Hup) {
            return;
        }
        let again = before.is_some();
        match &self.state {
            State::Working(_) | State::Gating(_) if again => out.push(Action::Kill),
            State::Working(_) | State::Gating(_) => {
                let reason = match by {
                    Interrupt::Int => "interrupted; a second Ctrl-C kills the agent at once",
                    Interrupt::Term => "told to terminate",
                    Interrupt::Hup => "the terminal went away",
                    Interrupt::Quit => "as you asked",
                };
                out.push(Action::Emit(RunEvent::Stopping {
                    reason: reason.to_owned(),
                }));
                self.stop(at, StopCause::Interrupt, out);
            }
            State::Confirming(_) => self.leave_question(at, out),
            State::New | State::Reading | State::Waiting { .. } | State::Resting { .. } => {
                self.finish(at, RunOutcome::Interrupted { by }, out);
            }
            State::Over => {}
        }
    }

    /// Stops the running child once; an interrupt takes precedence over any earlier cause.
    pub(super) fn stop(&mut self, at: Duration, cause: StopCause, out: &mut Vec<Action>) {
        let stopping = match &mut self.state {
            State::Working(work) => &mut work.stopping,
            State::Gating(gating) => &mut gating.stopping,
            State::New
            | State::Reading
            | State::Waiting { .. }
            | State::Resting { .. }
            | State::Confirming(_)
            | State::Over => return,
        };
        match stopping {
            None => {
                *stopping = Some(Stopping { cause, at });
                out.push(Action::Stop {
                    grace: self.policy.timing.stop_grace,
                });
            }
            Some(stopping) if cause == StopCause::Interrupt => stopping.cause = cause,
            Some(_) => {}
        }
    }

    fn kill_again(&mut self, at: Duration, out: &mut Vec<Action>) {
        let stopping = match &mut self.state {
            State::Working(work) => &mut work.stopping,
            State::Gating(gating) => &mut gating.stopping,
            State::New
            | State::Reading
            | State::Waiting { .. }
            | State::Resting { .. }
            | State::Confirming(_)
            | State::Over => return,
        };
        if let Some(stopping) = stopping {
            stopping.at = at;
        }
        out.push(Action::Kill);
    }

    pub(super) fn runtime_deadline(&self) -> Duration {
        self.policy.limits.runtime.saturating_add(self.waited)
    }

    /// A limit that forbids another iteration.
    pub(super) fn limit_reached(&self, at: Duration) -> Option<Limit> {
        let Limits {
            iterations, runtime, ..
        } = self.policy.limits;
        if self.iteration > iterations {
            return Some(Limit::Iterations { max: iterations });
        }
        if at >= self.runtime_deadline() {
            return Some(Limit::Runtime {
                max_seconds: runtime.as_secs(),
            });
        }
        self.budget_crossed()
    }

    /// A budget that what was spent so far, the running iteration included, has used up.
    pub(super) fn budget_crossed(&self) -> Option<Limit> {
        let running = match &self.state {
            State::Working(work) => Some(&work.usage),
            State::Gating(gating) => Some(&gating.work.usage),
            State::Confirming(confirming) => Some(&confirming.work.usage),
            State::New | State::Reading | State::Waiting { .. } | State::Resting { .. } | State::Over => None,
        };
        let cost = |usage: &Usage| usage.cost_usd.unwrap_or(0.0);
        let tokens = |usage: &Usage| usage.tokens().unwrap_or(0);
        let total_cost = cost(&self.spent) + cost(&self.abandoned) + running.map_or(0.0, cost);
        let total_tokens = tokens(&self.spent)
            .saturating_add(tokens(&self.abandoned))
            .saturating_add(running.map_or(0, tokens));
        if let Some(max_usd) = self.policy.limits.cost_usd
            && total_cost >= max_usd - 1e-9
        {
            return Some(Limit::Cost { max_usd });
        }
        self.policy
            .limits
            .tokens
            .filter(|max| total_tokens >= *max)
            .map(|max| Limit::Tokens { max })
    }

    /// A budget that can never fire is no budget: said before the first iteration, while somebody may be watching.
    pub(super) fn warn_of_a_blind_budget(&mut self, out: &mut Vec<Action>) {
        let Some(max_usd) = self.policy.limits.cost_usd else {
            return;
        };
        if let CostFigures::Impossible { why } = &self.policy.costs.figures {
            let text = format!("max_cost_usd (${max_usd}) cannot be enforced: {why}");
            self.warn_once(text, out);
        }
    }

    /// What an iteration used and nobody can put a price on.
    pub(super) fn warn_of_missing_costs(
        &mut self,
        usage: &Usage,
        unpriced: BTreeSet<NoPrice>,
        out: &mut Vec<Action>,
    ) {
        let explained = !unpriced.is_empty();
        for why in unpriced {
            self.warn_once(format!("not all costs are known: {why}"), out);
        }
        let foreseen = self.policy.costs.figures != CostFigures::Possible;
        if let Some(max_usd) = self.policy.limits.cost_usd
            && usage.tokens().is_some()
            && usage.cost_usd.is_none()
            && !foreseen
            && !explained
        {
            let text = format!(
                "the agent reported no cost for what it used: that does not count towards max_cost_usd (${max_usd})"
            );
            self.warn_once(text, out);
        }
    }

    fn warn_once(&mut self, text: String, out: &mut Vec<Action>) {
        if self.told_about_costs.insert(text.clone()) {
            let level = Level::Warning;
            out.push(Action::Emit(RunEvent::Notice { level, text }));
        }
    }

    /// The agent claims to be done: every gate must agree, one after the other.
    pub(super) fn ask_gates(&mut self, at: Duration, marker: String, out: &mut Vec<Action>) {
        let State::Working(work) = std::mem::replace(&mut self.state, State::Over) else {
            return;
        };
        let gating = Gating {
            work: *work,
            marker,
            index: 0,
            started: at,
            stopping: None,
        };
        self.state = State::Gating(Box::new(gating));
        self.run_gate(at, out);
    }

    fn run_gate(&mut self, at: Duration, out: &mut Vec<Action>) {
        let State::Gating(gating) = &mut self.state else {
            return;
        };
        let Some(gate) = self.policy.gates.get(gating.index) else {
            let outcome = IterationOutcome::Completed {
                marker: std::mem::take(&mut gating.marker),
            };
            return self.settle(at, outcome, out);
        };
        gating.started = at;
        let (name, command) = (gate.name.clone(), gate.command.clone());
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
        let State::Gating(gating) = &mut self.state else {
            return;
        };
        let gate = &self.policy.gates[gating.index];
        let cause = gating.stopping.map(|stopping| stopping.cause);
        let result = match end {
            _ if matches!(cause, Some(StopCause::Timeout(_))) => GateResult::TimedOut,
            None => GateResult::CouldNotStart,
            Some(end) if end.success() => GateResult::Passed,
            Some(end) => GateResult::Failed { end },
        };
        let took = at - gating.started;
        let output = prompt::trim_middle(output, OUTPUT_BUDGET);
        out.push(Action::Emit(RunEvent::GateEnded {
            iteration: self.iteration,
            name: gate.name.clone(),
            result,
            duration_ms: millis(took),
            output: output.clone(),
        }));
        match cause {
            Some(StopCause::Skip) => return self.settle(at, IterationOutcome::Skipped, out),
            Some(StopCause::Interrupt) => return self.settle(at, IterationOutcome::Interrupted, out),
            Some(StopCause::Limit(limit)) => {
                return self.settle(at, IterationOutcome::LimitReached { limit }, out);
            }
            Some(StopCause::Timeout(_) | StopCause::Lingering) | None => {}
        }
        if result == GateResult::Passed {
            gating.index += 1;
            return self.run_gate(at, out);
        }
        let rejected_by = Some(gate.name.clone());
        self.notes.refused = Some(Refused {
            command: gate.command.clone(),
            result,
            seconds: took.as_secs(),
            output,
        });
        self.settle(at, IterationOutcome::Continued { rejected_by }, out);
    }
}
