//! The merged settings with all defaults, as the rest of ralph reads them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::{Gate, Hat, Hooks, MarkerPlacement, OnDeclaredFailure, Seconds, Session};

/// All settings, including defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Settings {
    pub cli: Cli,
    pub adapters: BTreeMap<String, AdapterSettings>,
    pub event_loop: EventLoop,
    pub gates: Vec<Gate>,
    pub hooks: Hooks,
    pub hats: BTreeMap<String, Hat>,
    pub session: Session,
    pub driver: DriverSettings,
    /// The user's price list, as an absolute path.
    pub pricing: Option<PathBuf>,
}

/// The agent and how to call it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cli {
    /// `auto`, the name of a built-in agent, `custom`, or `driver:NAME`. Not checked here.
    pub backend: String,
    pub command: Option<String>,
    pub args: Vec<String>,
    pub prompt_mode: PromptMode,
    pub prompt_flag: Option<String>,
    pub default_mode: Mode,
    /// Interactive mode only; 0 disables the timeout.
    pub idle_timeout_secs: Seconds,
    /// `None` selects the agent's own format.
    pub transcript: Option<String>,
    /// The filter for `transcript: jq`.
    pub jq_filter: Option<String>,
    pub pty_mode: bool,
    /// The directory to search first for driver scripts; absolute.
    pub driver_dir: Option<PathBuf>,
    pub claude_command: Option<String>,
    /// `Some("")` removes the default arguments; `None` keeps them.
    pub claude_args: Option<String>,
    pub model: Option<String>,
    /// The arguments after `--` on the command line.
    pub extra_args: Vec<String>,
}

impl Default for Cli {
    fn default() -> Self {
        Self {
            backend: "auto".to_owned(),
            command: None,
            args: Vec::new(),
            prompt_mode: PromptMode::default(),
            prompt_flag: None,
            default_mode: Mode::default(),
            idle_timeout_secs: Seconds(30),
            transcript: None,
            jq_filter: None,
            pty_mode: false,
            driver_dir: None,
            claude_command: None,
            claude_args: None,
            model: None,
            extra_args: Vec::new(),
        }
    }
}

/// How a custom command receives its prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptMode {
    #[default]
    Arg,
    Stdin,
}

/// Whether the agent runs headless or in its own TUI.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Autonomous,
    Interactive,
}

/// Settings of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AdapterSettings {
    /// Whether auto-detection may select it.
    pub enabled: bool,
    /// Maximum duration of an iteration.
    pub timeout: Option<Seconds>,
    /// Maximum time without output; 0 disables the timeout.
    pub idle_timeout: Option<Seconds>,
    pub model: Option<String>,
    pub args: Vec<String>,
}

impl Default for AdapterSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            timeout: None,
            idle_timeout: None,
            model: None,
            args: Vec::new(),
        }
    }
}

/// The task, its limits, and its completion.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventLoop {
    /// At most one of `prompt` and `prompt_file` is set: the one from the later layer.
    pub prompt: Option<String>,
    /// Absolute.
    pub prompt_file: Option<PathBuf>,
    /// Empty selects the built-in markers.
    pub completion_promise: Vec<String>,
    pub completion_match: MarkerPlacement,
    pub max_iterations: u64,
    pub max_runtime_seconds: Seconds,
    pub max_cost_usd: Option<f64>,
    pub max_tokens: Option<u64>,
    pub max_consecutive_failures: u64,
    pub cooldown_seconds: Seconds,
    /// The longest wait for a usage limit.
    pub max_wait_seconds: Seconds,
    pub stop_grace_seconds: Seconds,
    pub result_grace_seconds: Seconds,
    pub on_declared_failure: OnDeclaredFailure,
    pub max_line_bytes: u64,
    /// Maximum number of consecutive iterations without changes; 0 disables the limit.
    pub max_no_progress: u64,
    /// Path patterns relative to the workspace; empty allows all paths.
    pub allowed_paths: Vec<String>,
}

impl Default for EventLoop {
    fn default() -> Self {
        Self {
            prompt: None,
            prompt_file: None,
            completion_promise: Vec::new(),
            completion_match: MarkerPlacement::default(),
            max_iterations: 100,
            max_runtime_seconds: Seconds(14_400),
            max_cost_usd: None,
            max_tokens: None,
            max_consecutive_failures: 5,
            cooldown_seconds: Seconds(0),
            max_wait_seconds: Seconds(28_800),
            stop_grace_seconds: Seconds(5),
            result_grace_seconds: Seconds(30),
            on_declared_failure: OnDeclaredFailure::default(),
            max_line_bytes: 256 * 1024 * 1024,
            max_no_progress: 5,
            allowed_paths: Vec::new(),
        }
    }
}

/// Values of the variables that driver scripts read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DriverSettings {
    pub output_format: OutputFormat,
    /// `None` selects the driver's default.
    pub permission_mode: Option<String>,
    /// Comma-separated names and patterns.
    pub allowed_tools: Option<String>,
}

/// The output format that a driver requests from its agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    #[default]
    Json,
    Text,
}

impl OutputFormat {
    /// The value of `CLAUDE_OUTPUT_FORMAT` for driver scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}
