//! Accounts that several runs share: the request for a place before each launch, the wait for it, and the reports of what
//! the agent said about its limits and what it spent.

use super::iteration::millis;
use super::*;
use crate::event::{AttemptResult, LimitReport, RateLimitStatus};
use crate::policy::{Admission, QuotaWait, Spend, Urgency};

/// The answer to [`Action::RequestPlace`].
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceAnswer {
    /// The agent of the request.
    pub agent: usize,
    pub admission: Admission,
    /// The time of the answer on the clock of the machine.
    pub at: Timestamp,
    /// What all runs have spent, if there are budgets.
    pub spend: Option<Spend>,
}

/// How a run stops using an account or waiting for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceEnd {
    /// The agent has ended.
    Attempt(AttemptResult),
    /// The run does not wait any more.
    GaveUp,
}

/// A wait for a limit that the run has reached itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnWait {
    pub agent: usize,
    /// Explanation for the user.
    pub reason: String,
    pub until: Option<Timestamp>,
}

/// A launch that waits for a place.
#[derive(Debug)]
pub(super) struct PlaceWait {
    agent: usize,
    task: String,
    hat: Option<String>,
    since: Duration,
    /// When to ask again; `None` while the answer is pending.
    pub(super) ask_at: Option<Duration>,
    /// The reason that was reported, and the time until which the run waits.
    announced: Option<(String, Duration)>,
}

/// The use of accounts by a run.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The agent for whose account the run has a place.
    held: Option<usize>,
    /// The agent for whose account the run is registered as waiting.
    waiting: Option<usize>,
    /// The user wants the next attempt at once.
    urgency: Option<Urgency>,
    /// What all runs have spent, as it was last read.
    spend: Option<Spend>,
    /// The part of the running attempt's cost that was reported.
    reported_usd: f64,
    /// The last report about each limit.
    reported: BTreeMap<Option<String>, LimitReport>,
}

/// Without budgets, costs below this amount are reported at the end of the attempt.
const REPORTED_USD: f64 = 0.05;
/// A later end of a wait is reported again only if it differs by this much.
const SAME_WAIT: Duration = Duration::from_secs(2);

impl Engine {
    /// Whether the agent can be launched: its account is not shared, or the run has a place.
    pub(super) fn may_launch(&self, agent: usize) -> bool {
        let has_account = self.policy.agents.rules[agent].account.is_some();
        let is_free = !has_account && !self.policy.budgets.is_set();
        is_free || self.places.held == Some(agent)
    }

    /// Asks for a place before the launch.
    pub(super) fn request_place(
        &mut self,
        at: Duration,
        agent: usize,
        (task, hat): (String, Option<String>),
        out: &mut Vec<Action>,
    ) {
        self.leave_other_accounts(agent, out);
        self.state = EngineState::AwaitingPlace(Box::new(PlaceWait {
            agent,
            task,
            hat,
            since: at,
            ask_at: None,
            announced: None,
        }));
        self.ask_for_place(out);
    }

    fn ask_for_place(&mut self, out: &mut Vec<Action>) {
        let EngineState::AwaitingPlace(wait) = &mut self.state else {
            return;
        };
        wait.ask_at = None;
        let urgency = self.places.urgency.take().unwrap_or(Urgency::Normal);
        out.push(Action::RequestPlace {
            agent: wait.agent,
            urgency,
        });
    }

    pub(super) fn place_answered(&mut self, at: Duration, answer: PlaceAnswer, out: &mut Vec<Action>) {
        self.places.spend = answer.spend.or(self.places.spend);
        let agent = answer.agent;
        let is_awaited = matches!(&self.state, EngineState::AwaitingPlace(wait) if wait.agent == agent);
        if !is_awaited {
            // The run was paused or ended in the meantime.
            let is_over = matches!(self.state, EngineState::Finished);
            if let (Admission::Start(_), false) = (&answer.admission, is_over)
                && self.places.held != Some(agent)
            {
                let end = PlaceEnd::Attempt(AttemptResult::Unknown);
                out.push(Action::ReleasePlace { agent, end });
            }
            return;
        }
        match answer.admission {
            Admission::Start(_) => {
                (self.places.held, self.places.waiting) = (Some(agent), None);
                self.place_granted(at, out);
            }
            Admission::Wait(_) if self.places.urgency.is_some() => self.ask_for_place(out),
            Admission::Wait(wait) => self.wait_for_place(at, answer.at, &wait, out),
        }
    }

    fn place_granted(&mut self, at: Duration, out: &mut Vec<Action>) {
        let EngineState::AwaitingPlace(wait) = std::mem::replace(&mut self.state, EngineState::ReadingPrompt)
        else {
            return;
        };
        if let Some(limit) = self.budget_exceeded() {
            return self.finish(at, RunOutcome::LimitReached { limit }, out);
        }
        if wait.announced.is_none() {
            return self.launch(at, wait.agent, (wait.task, wait.hat), out);
        }
        // Prompt and limits may have changed during the wait.
        self.waited += at - wait.since;
        out.push(Action::Emit(RunEvent::WaitEnded));
        self.begin_iteration(at, out);
    }

    fn wait_for_place(&mut self, at: Duration, now: Timestamp, answer: &QuotaWait, out: &mut Vec<Action>) {
        let EngineState::AwaitingPlace(wait) = &mut self.state else {
            return;
        };
        let length = Duration::try_from(answer.until.duration_since(now)).unwrap_or_default();
        let until = at.saturating_add(length);
        let (agent, since) = (wait.agent, wait.since);
        if answer.cause.is_limit() && self.falls_back_from_account(at, agent, length) {
            if wait_was_announced(&self.state) {
                self.waited += at - since;
                out.push(Action::Emit(RunEvent::WaitEnded));
            }
            return self.begin_iteration(at, out);
        }
        let EngineState::AwaitingPlace(wait) = &mut self.state else {
            return;
        };
        wait.ask_at = Some(until);
        let account = self.policy.agents.rules[agent].account.as_deref();
        let reason = answer.cause.describe(account.unwrap_or_default());
        let is_known = wait.announced.as_ref().is_some_and(|(known, known_until)| {
            *known == reason && (!answer.cause.is_limit() || until.abs_diff(*known_until) <= SAME_WAIT)
        });
        if is_known {
            return;
        }
        wait.announced = Some((reason.clone(), until));
        self.places.waiting = Some(agent);
        out.push(Action::Emit(RunEvent::Waiting {
            why: WaitReason::Quota,
            // How long other runs need is unknown.
            wait_ms: if answer.cause.is_limit() {
                millis(length)
            } else {
                0
            },
            reason: Some(reason),
        }));
    }

    /// Notes a limit that another run has reached, or the reserve. Returns true if another agent may be able to work.
    fn falls_back_from_account(&mut self, at: Duration, agent: usize, wait: Duration) -> bool {
        let agents = &self.policy.agents;
        if agents.fallback.is_empty() || wait <= agents.fallback_after {
            return false;
        }
        self.health.limit(agent, at.saturating_add(wait));
        let EngineState::AwaitingPlace(wait) = &self.state else {
            return false;
        };
        let wanted = self.policy.agents.of_hat(wait.hat.as_deref());
        let choice = self.health.choose(wanted, &self.policy.agents.fallback, at);
        matches!(choice, health::AgentChoice::Agent(_))
    }

    /// The user ends the wait for a place.
    pub(super) fn wake_place_wait(&mut self, out: &mut Vec<Action>) {
        if let EngineState::AwaitingPlace(wait) = &self.state {
            let is_asked = wait.ask_at.is_none();
            self.force_next_place();
            self.health.forget_limits();
            if !is_asked {
                self.useless_wakes += 1;
                self.ask_for_place(out);
            }
        }
    }

    /// The user ended a wait for a limit, so the next attempt does not wait for the account either.
    pub(super) fn force_next_place(&mut self) {
        self.places.urgency = Some(Urgency::Now);
    }

    pub(super) fn place_due(&mut self, out: &mut Vec<Action>) {
        self.ask_for_place(out);
    }

    /// Registers a wait for a limit that this run has reached itself.
    pub(super) fn report_own_wait(&mut self, at: Duration, wait: Duration, out: &mut Vec<Action>) {
        let agent = self.agent;
        if let Some(account) = &self.policy.agents.rules[agent].account {
            self.places.waiting = Some(agent);
            out.push(Action::ReportWait(OwnWait {
                agent,
                reason: format!("the usage limit of {account} is reached"),
                until: self.policy.started_at.checked_add(at.saturating_add(wait)).ok(),
            }));
        }
    }

    /// Reports what the agent says about its limits, unless it is known.
    pub(super) fn report_limit(&mut self, event: &TranscriptEvent, out: &mut Vec<Action>) {
        let TranscriptEvent::Meta {
            meta:
                Meta::RateLimit {
                    status,
                    resets_at,
                    limit,
                    utilization,
                },
        } = event
        else {
            return;
        };
        self.report(
            LimitReport {
                status: *status,
                window: limit.clone(),
                utilization: *utilization,
                resets_at: *resets_at,
            },
            out,
        );
    }

    fn report(&mut self, report: LimitReport, out: &mut Vec<Action>) {
        if self.places.held != Some(self.agent) || self.agent().account.is_none() {
            return;
        }
        let known = self.places.reported.insert(report.window.clone(), report.clone());
        if known.as_ref() != Some(&report) {
            out.push(Action::ReportLimit {
                agent: self.agent,
                report,
            });
        }
    }

    /// Releases the place after the agent has ended, and reports a limit that only its message states.
    pub(super) fn attempt_evaluated(
        &mut self,
        attempt: &Attempt,
        verdict: &AttemptVerdict,
        out: &mut Vec<Action>,
    ) {
        let result = match verdict {
            AttemptVerdict::Ended(IterationOutcome::RateLimited { resets_at, .. }) => {
                if !attempt.was_rejected() {
                    let report = LimitReport {
                        status: RateLimitStatus::Rejected,
                        window: None,
                        utilization: None,
                        resets_at: *resets_at,
                    };
                    self.places.reported.clear();
                    self.report(report, out);
                }
                AttemptResult::Limited
            }
            AttemptVerdict::Ended(
                IterationOutcome::Overloaded { .. }
                | IterationOutcome::AuthRequired { .. }
                | IterationOutcome::CouldNotStart { .. },
            ) => AttemptResult::Unknown,
            AttemptVerdict::Ended(_) | AttemptVerdict::CompletionClaimed { .. } => {
                match attempt.has_responded() {
                    true => AttemptResult::Worked,
                    false => AttemptResult::Unknown,
                }
            }
        };
        self.places.reported.clear();
        self.release_place(PlaceEnd::Attempt(result), out);
    }

    fn release_place(&mut self, end: PlaceEnd, out: &mut Vec<Action>) {
        if let Some(agent) = self.places.held.take() {
            out.push(Action::ReleasePlace { agent, end });
        }
    }

    /// Releases a place that no launch uses, and ends a registered wait.
    pub(super) fn leave_account(&mut self, out: &mut Vec<Action>) {
        self.release_place(PlaceEnd::Attempt(AttemptResult::Unknown), out);
        if let Some(agent) = self.places.waiting.take() {
            let end = PlaceEnd::GaveUp;
            out.push(Action::ReleasePlace { agent, end });
        }
    }

    /// Releases places for other agents than the one that works next.
    pub(super) fn leave_other_accounts(&mut self, agent: usize, out: &mut Vec<Action>) {
        if self.places.held.is_some_and(|held| held != agent) {
            self.release_place(PlaceEnd::Attempt(AttemptResult::Unknown), out);
        }
        if let Some(agent) = self.places.waiting.take_if(|waiting| *waiting != agent) {
            let end = PlaceEnd::GaveUp;
            out.push(Action::ReleasePlace { agent, end });
        }
    }

    /// Releases a place that is not used any more. Called at the end of each step.
    pub(super) fn release_unused_place(&mut self, out: &mut Vec<Action>) {
        match &self.state {
            EngineState::ReadingPrompt
            | EngineState::AwaitingPlace(_)
            | EngineState::Checkpointing(_)
            | EngineState::AgentRunning(_)
            | EngineState::Inspecting(_) => {}
            // A wait for a limit stays registered.
            EngineState::Waiting { .. } => self.release_place(PlaceEnd::Attempt(AttemptResult::Unknown), out),
            EngineState::New
            | EngineState::GateRunning(_)
            | EngineState::RollingBack(_)
            | EngineState::AwaitingConfirmation(_)
            | EngineState::Paused { .. }
            | EngineState::Ending(_)
            | EngineState::Finished => self.leave_account(out),
        }
    }

    /// Reports the cost of the running attempt, as far as it is not reported yet.
    pub(super) fn report_spend(&mut self, spent: &Usage, moment: SpendMoment, out: &mut Vec<Action>) {
        let total = spent.cost_usd.unwrap_or_default().get();
        let usd = total - self.places.reported_usd;
        let is_due = match moment {
            SpendMoment::Running => self.policy.budgets.is_set() || usd >= REPORTED_USD,
            SpendMoment::Ended => true,
        };
        if is_due && usd > 0.0 {
            self.places.reported_usd = total;
            if let Some(spend) = &mut self.places.spend {
                spend.add(usd);
            }
            let agent = self.agent;
            out.push(Action::ReportSpend { agent, usd });
        }
        if moment == SpendMoment::Ended {
            self.places.reported_usd = 0.0;
        }
    }

    /// What all runs have spent. Stops the agent if a budget is used up.
    pub(super) fn spend_read(&mut self, at: Duration, spend: Spend, out: &mut Vec<Action>) {
        self.places.spend = Some(spend);
        if let EngineState::AgentRunning(attempt) = &self.state
            && !attempt.has_finished()
            && let Some(limit) = self.budget_exceeded()
        {
            self.stop(at, StopCause::Limit(limit), out);
        }
    }

    /// The budget over all runs that is used up. `running` is the cost of the running attempt.
    pub(super) fn shared_budget_exceeded(&self, running: Option<&Usage>) -> Option<RunLimit> {
        let spend = self.places.spend?;
        let running = running.and_then(|usage| usage.cost_usd).unwrap_or_default().get();
        let unreported = (running - self.places.reported_usd).max(0.0);
        self.policy.budgets.exceeded(spend, unreported)
    }
}

/// When a cost is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpendMoment {
    Running,
    Ended,
}

fn wait_was_announced(state: &EngineState) -> bool {
    matches!(state, EngineState::AwaitingPlace(wait) if wait.announced.is_some())
}
