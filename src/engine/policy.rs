//! Everything that determines how the engine decides in one run.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::policy::{CostRules, Gate, Limits, OnDeclaredFailure, Session, Timing};

use super::ending::HookKind;
use super::hats::Hats;
use super::marker::Markers;

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
    pub costs: CostRules,
    pub timing: Timing,
    pub markers: Markers,
    pub gates: Vec<Gate>,
    pub hats: Hats,
    pub transcript: TranscriptFeatures,
    /// Hint for the user when the agent is not logged in.
    pub auth_hint: String,
    /// How the agent's usage-limit messages begin; searched only after a failure.
    pub limit_phrases: Vec<&'static str>,
    pub on_declared_failure: OnDeclaredFailure,
    pub session: Session,
    pub session_source: SessionSource,
    /// How to allow a tool that the agent was denied; shown once.
    pub permission_denial_help: Option<String>,
    pub workspace_checks: WorkspaceChecks,
    /// The hooks that are configured.
    pub hooks: BTreeSet<HookKind>,
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
