//! Sums tokens and cost by role: the hat, and the agent if the run has several. Reviewers are roles of their own.

use schemars::JsonSchema;
use serde::Serialize;

use crate::event::{RunEvent, Usage, units};

/// The usage of each role, in the order in which the roles first worked.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct UsageByRole {
    roles: Vec<RoleUsage>,
    #[serde(skip)]
    current: Option<usize>,
    /// The usage of the reviewers of the current iteration.
    #[serde(skip)]
    reviewed: Usage,
}

/// The usage of one role.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct RoleUsage {
    #[serde(skip_serializing_if = "Option::is_none")]
    hat: Option<String>,
    /// The gate and the reviewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    reviewer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    attempts: u64,
    usage: Usage,
}

impl UsageByRole {
    pub fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::IterationStarted { hat, agent, .. } => {
                self.current = Some(self.index_of(hat.as_ref(), None, agent.as_ref()));
                self.reviewed = Usage::default();
            }
            RunEvent::ReviewEnded {
                gate,
                reviewer,
                agent,
                usage,
                ..
            } => {
                let name = match gate == reviewer {
                    true => gate.clone(),
                    false => format!("{gate}: {reviewer}"),
                };
                let index = self.index_of(None, Some(&name), Some(agent));
                self.count(index, usage);
                self.reviewed.add(usage);
            }
            RunEvent::IterationEnded { usage, .. } => {
                if let Some(index) = self.current.take() {
                    // The usage of an iteration includes that of its reviewers.
                    let reviewed = std::mem::take(&mut self.reviewed);
                    match reviewed.is_empty() {
                        true => self.count(index, usage),
                        false => self.count(index, &usage.since(&reviewed)),
                    }
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, index: usize, usage: &Usage) {
        self.roles[index].attempts += 1;
        self.roles[index].usage.add(usage);
    }

    fn index_of(&mut self, hat: Option<&String>, reviewer: Option<&String>, agent: Option<&String>) -> usize {
        let known = self.roles.iter().position(|role| {
            role.hat.as_ref() == hat && role.reviewer.as_ref() == reviewer && role.agent.as_ref() == agent
        });
        known.unwrap_or_else(|| {
            self.roles.push(RoleUsage {
                hat: hat.cloned(),
                reviewer: reviewer.cloned(),
                agent: agent.cloned(),
                attempts: 0,
                usage: Usage::default(),
            });
            self.roles.len() - 1
        })
    }

    /// Whether the usage is more than one figure.
    pub fn has_several_roles(&self) -> bool {
        self.roles.len() > 1
    }

    pub(super) fn is_single(&self) -> bool {
        !self.has_several_roles()
    }

    /// One line for each role: `reviewer (codex): $0.31 · 41.2k tokens in 3 attempts`.
    pub fn lines(&self) -> Vec<String> {
        self.roles.iter().map(RoleUsage::line).collect()
    }
}

impl RoleUsage {
    fn line(&self) -> String {
        let name = match (self.hat.as_ref().or(self.reviewer.as_ref()), &self.agent) {
            (Some(hat), Some(agent)) => format!("{hat} ({agent})"),
            (Some(name), None) | (None, Some(name)) => name.clone(),
            (None, None) => "without a hat".to_owned(),
        };
        let tokens = self.usage.tokens();
        let known = [
            self.usage.cost_usd.map(units::dollars),
            tokens.map(|tokens| format!("{} tokens", units::tokens(tokens))),
        ];
        let known: Vec<String> = known.into_iter().flatten().collect();
        let figures = match known.is_empty() {
            true => "usage not reported".to_owned(),
            false => known.join(" · "),
        };
        format!("{name}: {figures} in {}", units::count(self.attempts, "attempt"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{IterationOutcome, Usd};

    fn attempt(roles: &mut UsageByRole, hat: Option<&str>, agent: &str, cost: f64) {
        roles.apply(&RunEvent::IterationStarted {
            iteration: 1,
            attempt: 1,
            hat: hat.map(str::to_owned),
            agent: Some(agent.to_owned()),
            prompt_bytes: 0,
        });
        roles.apply(&RunEvent::IterationEnded {
            iteration: 1,
            attempt: 1,
            outcome: IterationOutcome::Skipped,
            duration_ms: 0,
            usage: Box::new(Usage {
                cost_usd: Usd::new(cost),
                ..Usage::default()
            }),
        });
    }

    #[test]
    fn costs_are_summed_by_hat_and_agent() {
        let mut roles = UsageByRole::default();
        attempt(&mut roles, Some("builder"), "claude", 1.0);
        assert!(!roles.has_several_roles());
        attempt(&mut roles, Some("reviewer"), "codex (o5)", 0.25);
        attempt(&mut roles, Some("builder"), "claude", 2.0);
        attempt(&mut roles, None, "claude", 0.5);
        assert_eq!(
            roles.lines(),
            [
                "builder (claude): $3.00 in 2 attempts",
                "reviewer (codex (o5)): $0.25 in 1 attempt",
                "claude: $0.50 in 1 attempt",
            ]
        );
    }
}
