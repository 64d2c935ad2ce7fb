//! Everything that determines how the engine decides in one run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::policy::{
    AttemptTimeouts, Budgets, CostRules, Gate, Limits, OnDeclaredFailure, OnLimit, OnRejected, Session,
    Timing,
};

use super::ending::HookKind;
use super::hats::Hats;
use super::marker::Markers;
use super::prompt::PromptRules;
use super::review::Reviewers;
use super::unknown_output::AgentVersions;

/// The rules of one run.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Wall-clock time at which the run's clock was zero; converts stated reset times into waits.
    pub started_at: Timestamp,
    /// The time zone of stated reset times that do not name one.
    pub zone: TimeZone,
    /// Seeds the jitter of waits.
    pub seed: u64,
    pub limits: Limits,
    /// Budgets over all runs of the user.
    pub budgets: Budgets,
    pub timing: Timing,
    pub markers: Markers,
    pub gates: Vec<Gate>,
    pub hats: Hats,
    /// Topics that must have been published before the task counts as done.
    pub required_events: Vec<String>,
    /// Rules that are part of every prompt.
    pub guardrails: Vec<String>,
    pub agents: Agents,
    pub reviewers: Reviewers,
    pub on_declared_failure: OnDeclaredFailure,
    pub on_limit: OnLimit,
    /// The command that runs after each iteration, before the next one starts.
    pub checkpoint: Option<Gate>,
    pub on_rejected: OnRejected,
    pub session: Session,
    pub workspace_checks: WorkspaceChecks,
    /// Whether a snapshot is taken at the start and after each agent.
    pub snapshots: Check,
    pub questions: QuestionRules,
    /// The hooks that are configured.
    pub hooks: BTreeSet<HookKind>,
}

/// The agents of a run, and the roles in which they work.
#[derive(Debug, Clone)]
pub struct Agents {
    /// Not empty. The first one is the agent of the run: it works without a hat, and with every hat that names no agent.
    pub rules: Vec<AgentRules>,
    /// The agents of the hats that name one, as indices of `rules`.
    pub by_hat: BTreeMap<String, usize>,
    /// The agents that take the place of one that cannot work, in order of preference.
    pub fallback: Vec<usize>,
    /// A usage limit that resets sooner is waited for.
    pub fallback_after: Duration,
}

/// The rules that depend on the agent.
#[derive(Debug, Clone)]
pub struct AgentRules {
    /// The name of the agent, without its model.
    pub name: String,
    /// The agent and its model, as the user reads it. Unique in the run.
    pub label: String,
    /// The agent and its account, as the user reads them; `None` if no limits are shared with other runs.
    pub account: Option<String>,
    pub costs: CostRules,
    pub timeouts: AttemptTimeouts,
    pub transcript: TranscriptFeatures,
    /// Hint for the user when the agent is not logged in.
    pub auth_hint: String,
    /// How the agent's usage-limit messages begin; searched only after a failure.
    pub limit_phrases: Vec<&'static str>,
    pub session_source: SessionSource,
    /// How to allow a tool that the agent was denied; shown once.
    pub permission_denial_help: Option<String>,
    pub versions: AgentVersions,
}

impl Agents {
    /// A run with one agent.
    #[cfg(any(test, feature = "test-support"))]
    pub fn single(rules: AgentRules) -> Self {
        Self {
            rules: vec![rules],
            by_hat: BTreeMap::new(),
            fallback: Vec::new(),
            fallback_after: Duration::ZERO,
        }
    }

    /// The agent that works with a hat, or without one.
    pub fn of_hat(&self, hat: Option<&str>) -> usize {
        hat.and_then(|hat| self.by_hat.get(hat)).copied().unwrap_or(0)
    }

    /// The agent with this label, if it is still configured. Without a label, the agent of the run.
    pub fn find(&self, label: Option<&str>) -> Option<usize> {
        match label {
            Some(label) => self.rules.iter().position(|rules| rules.label == label),
            None => Some(0),
        }
    }

    /// The label of an agent, if the run has several.
    pub fn label_of(&self, agent: usize) -> Option<String> {
        (self.rules.len() > 1).then(|| self.rules[agent].label.clone())
    }
}

impl Policy {
    pub(crate) fn prompt_rules(&self) -> PromptRules<'_> {
        PromptRules {
            markers: &self.markers,
            guardrails: &self.guardrails,
        }
    }

    /// Whether an event with this topic claims completion: the topic is a completion marker and no hat's trigger.
    pub(crate) fn claims_completion(&self, topic: &str) -> bool {
        self.markers.is_completion(topic) && !self.hats.names(topic)
    }
}

/// What the agent's transcript format can express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranscriptFeatures {
    pub messages: MessageBoundaries,
    pub end: EndSignal,
}

/// Whether a transcript format delimits messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageBoundaries {
    Delimited,
    /// Only lines; the last few of them count as the final message.
    LinesOnly,
    /// The screen of an interactive agent. It mixes the prompt, typed text, tool output and messages, so no marker is
    /// reliable; the user confirms completion.
    Screen,
}

/// How the end of a transcript is recognized. A format with a terminal event is truncated without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndSignal {
    TerminalEvent,
    ExitOnly,
}

/// Where the id of the session to resume comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionSource {
    #[default]
    Transcript,
    /// A driver script, which decides by itself whether sessions are resumed.
    Driver,
}

/// What happens with questions of the agent to the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuestionRules {
    /// How long the run waits for an answer; `None` if there is no limit.
    pub timeout: Option<Duration>,
    /// The answer if none arrives in time. Without it, the run ends.
    pub default: Option<String>,
    pub instructions: QuestionInstructions,
}

/// Whether the prompt explains how to ask the user a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QuestionInstructions {
    #[default]
    Omitted,
    InPrompt,
}

/// What is compared in the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkspaceChecks {
    /// Iterations without a change.
    pub progress: Check,
    /// Changes outside the allowed paths.
    pub allowed_paths: Check,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Check {
    #[default]
    Off,
    On,
}
