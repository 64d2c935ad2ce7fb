//! Which agents of a run can work now, and which agent takes the place of another.

use std::collections::BTreeMap;

use super::*;
use crate::event::AgentChangeReason;

/// Why an agent cannot work now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unavailable {
    LimitedUntil(Duration),
    NotLoggedIn,
    ProgramMissing,
}

/// The availability of the agents, and the replacements in effect.
#[derive(Debug, Default)]
pub(super) struct Health {
    unavailable: BTreeMap<usize, Unavailable>,
    /// The agent that works in place of another one.
    replaced_by: BTreeMap<usize, usize>,
}

/// The agent that works next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum AgentChoice {
    Agent(usize),
    /// Every agent that could work is limited; the first limit ends at this time.
    WaitUntil(Duration),
}

impl Health {
    /// Chooses the wanted agent, or else the first fallback that can work. An agent that is not logged in and has no
    /// replacement is chosen again, so that its error ends the run.
    pub(super) fn choose(&self, wanted: usize, fallback: &[usize], at: Duration) -> AgentChoice {
        if fallback.is_empty() {
            return AgentChoice::Agent(wanted);
        }
        let candidates = || std::iter::once(wanted).chain(fallback.iter().copied());
        if let Some(available) = candidates().find(|agent| self.is_available(*agent, at)) {
            return AgentChoice::Agent(available);
        }
        let resets = candidates().filter_map(|agent| match self.unavailable.get(&agent) {
            Some(Unavailable::LimitedUntil(until)) => Some(*until),
            Some(Unavailable::NotLoggedIn | Unavailable::ProgramMissing) | None => None,
        });
        resets
            .min()
            .map_or(AgentChoice::Agent(wanted), AgentChoice::WaitUntil)
    }

    fn is_available(&self, agent: usize, at: Duration) -> bool {
        match self.unavailable.get(&agent) {
            None => true,
            Some(Unavailable::LimitedUntil(until)) => at >= *until,
            Some(Unavailable::NotLoggedIn | Unavailable::ProgramMissing) => false,
        }
    }

    /// Whether an agent other than those that are not logged in or missing could work, now or after a limit.
    fn has_usable_agent(&self, wanted: usize, fallback: &[usize]) -> bool {
        let mut candidates = std::iter::once(wanted).chain(fallback.iter().copied());
        candidates.any(|agent| {
            !matches!(
                self.unavailable.get(&agent),
                Some(Unavailable::NotLoggedIn | Unavailable::ProgramMissing)
            )
        })
    }

    pub(super) fn limit(&mut self, agent: usize, until: Duration) {
        self.unavailable.insert(agent, Unavailable::LimitedUntil(until));
    }

    /// Forgets all limits, because the user wants the agents to be tried now.
    pub(super) fn forget_limits(&mut self) {
        self.unavailable
            .retain(|_, why| !matches!(why, Unavailable::LimitedUntil(_)));
    }
}

impl Engine {
    /// Chooses the agent of the coming iteration; reports a change. `None` if the run waits instead.
    pub(super) fn choose_agent(
        &mut self,
        at: Duration,
        hat: Option<&str>,
        out: &mut Vec<Action>,
    ) -> Option<usize> {
        let agents = &self.policy.agents;
        let wanted = agents.of_hat(hat);
        let chosen = match self.health.choose(wanted, &agents.fallback, at) {
            AgentChoice::Agent(chosen) => chosen,
            AgentChoice::WaitUntil(until) => {
                self.wait(at, WaitReason::RateLimit, until.saturating_sub(at), out);
                return None;
            }
        };
        let before = self.health.replaced_by.get(&wanted).copied().unwrap_or(wanted);
        if before != chosen {
            let (why, until) = match self.health.unavailable.get(&before) {
                Some(Unavailable::LimitedUntil(until)) if at < *until => (
                    AgentChangeReason::Limit,
                    self.policy.started_at.checked_add(*until).ok(),
                ),
                Some(Unavailable::NotLoggedIn) => (AgentChangeReason::NotLoggedIn, None),
                Some(Unavailable::ProgramMissing) => (AgentChangeReason::ProgramMissing, None),
                Some(Unavailable::LimitedUntil(_)) | None => (AgentChangeReason::Available, None),
            };
            self.health.replaced_by.insert(wanted, chosen);
            let label = |agent: usize| self.policy.agents.rules[agent].label.clone();
            out.push(Action::Emit(RunEvent::AgentChanged {
                from: label(before),
                to: label(chosen),
                why,
                until,
            }));
        }
        Some(chosen)
    }

    /// Notes that the current agent is limited. Returns true if the iteration is repeated at once, because the limit ends
    /// too late to wait for it and another agent may be able to work.
    pub(super) fn falls_back_from_limit(&mut self, at: Duration, wait: Duration) -> bool {
        if self.policy.agents.fallback.is_empty() {
            return false;
        }
        self.health.limit(self.agent, at.saturating_add(wait));
        wait > self.policy.agents.fallback_after
    }

    /// Notes that the current agent is not logged in. Returns true if another agent repeats the iteration.
    pub(super) fn falls_back_from_login(&mut self, outcome: &IterationOutcome) -> bool {
        let IterationOutcome::AuthRequired { .. } = outcome else {
            return false;
        };
        if self.policy.agents.fallback.is_empty() || self.interrupted.is_some() {
            return false;
        }
        self.health
            .unavailable
            .insert(self.agent, Unavailable::NotLoggedIn);
        let wanted = self
            .policy
            .agents
            .of_hat(self.hat_queue.active_hat().map(|hat| hat.name.as_str()));
        self.health.has_usable_agent(wanted, &self.policy.agents.fallback)
    }

    /// Notes that the program of the current agent is gone. The failed iteration counts; the next one has another agent.
    pub(super) fn program_missing(&mut self) {
        self.health
            .unavailable
            .insert(self.agent, Unavailable::ProgramMissing);
    }
}
