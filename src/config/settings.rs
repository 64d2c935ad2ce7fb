//! What the rest of `ralph` reads: every wish resolved, every default filled in. How a wish is written, checked
//! or layered is not here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All that was wished for, defaults included.
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

/// Which agent, and how it is called.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cli {
    /// `auto`, the name of a built-in agent, `custom`, or `driver:NAME`. Whether it exists is not checked here.
    pub backend: String,
    pub command: Option<String>,
    pub args: Vec<String>,
    pub prompt_mode: PromptMode,
    pub prompt_flag: Option<String>,
    pub default_mode: Mode,
    /// Interactive mode only; 0 is never.
    pub idle_timeout_secs: u64,
    /// `None` leaves the choice to the agent's row.
    pub transcript: Option<String>,
    /// What of each line to read, for `transcript: jq`.
    pub jq_filter: Option<String>,
    pub pty_mode: bool,
    /// Where to look for driver scripts first; absolute.
    pub driver_dir: Option<PathBuf>,
    pub claude_command: Option<String>,
    /// `Some("")` clears the default arguments; `None` leaves them.
    pub claude_args: Option<String>,
    pub model: Option<String>,
    /// What followed `--` on the command line.
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
            idle_timeout_secs: 30,
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

/// How a custom command gets its prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptMode {
    #[default]
    Arg,
    Stdin,
}

/// Whether somebody sits in front of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Autonomous,
    Interactive,
}

/// What is set for one agent by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AdapterSettings {
    /// Whether auto-detection may choose it.
    pub enabled: bool,
    /// Seconds that one iteration may take.
    pub timeout: Option<u64>,
    /// Seconds without a byte of output; 0 is never.
    pub idle_timeout: Option<u64>,
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

/// The task, its limits, and when it is over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventLoop {
    /// At most one of `prompt` and `prompt_file` is set: the one that the later layer wished for.
    pub prompt: Option<String>,
    /// Absolute.
    pub prompt_file: Option<PathBuf>,
    /// Empty is the built-in set of markers.
    pub completion_promise: Vec<String>,
    pub completion_match: CompletionMatch,
    pub max_iterations: u64,
    pub max_runtime_seconds: u64,
    pub max_cost_usd: Option<f64>,
    pub max_tokens: Option<u64>,
    pub max_consecutive_failures: u64,
    pub cooldown_seconds: u64,
    pub stop_grace_seconds: u64,
    pub result_grace_seconds: u64,
    pub on_declared_failure: OnFailure,
    pub max_line_bytes: u64,
    /// Iterations in a row that change nothing; 0 is no limit.
    pub max_no_progress: u64,
    /// Globs, relative to the workspace; empty allows everything.
    pub allowed_paths: Vec<String>,
}

impl Default for EventLoop {
    fn default() -> Self {
        Self {
            prompt: None,
            prompt_file: None,
            completion_promise: Vec::new(),
            completion_match: CompletionMatch::default(),
            max_iterations: 100,
            max_runtime_seconds: 14_400,
            max_cost_usd: None,
            max_tokens: None,
            max_consecutive_failures: 5,
            cooldown_seconds: 0,
            stop_grace_seconds: 5,
            result_grace_seconds: 30,
            on_declared_failure: OnFailure::default(),
            max_line_bytes: 256 * 1024 * 1024,
            max_no_progress: 5,
            allowed_paths: Vec::new(),
        }
    }
}

/// Where a completion marker counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompletionMatch {
    /// Alone on a line of the final message.
    #[default]
    Line,
    /// Anywhere in what the agent said.
    Anywhere,
}

/// What follows when the agent itself says that it failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    #[default]
    Stop,
    Retry,
}

/// A command that must succeed before a claim to be done is believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// A name of your choice, given once.
    pub name: String,
    /// The command; exit code 0 is success.
    pub run: String,
    /// How long it may take.
    #[serde(default = "Gate::default_timeout")]
    #[schemars(range(min = 1), extend("format" = "seconds"))]
    pub timeout: u64,
    /// Where it runs; relative to this file. Without it, where `ralph` was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "path"))]
    pub cwd: Option<PathBuf>,
    /// A variable in its environment, beside those that `ralph` has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

impl Gate {
    pub(super) fn default_timeout() -> u64 {
        600
    }
}

/// Commands that are told what happens in a run. They get a JSON document on stdin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hooks {
    pub on_start: Option<String>,
    pub on_iteration: Option<String>,
    pub on_complete: Option<String>,
    pub on_fail: Option<String>,
    pub on_rate_limit: Option<String>,
    /// Seconds.
    pub timeout: u64,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            on_start: None,
            on_iteration: None,
            on_complete: None,
            on_fail: None,
            on_rate_limit: None,
            timeout: 30,
        }
    }
}

/// A role that the agent takes on when a topic calls for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Hat {
    pub description: String,
    pub triggers: Vec<String>,
    pub publishes: Vec<String>,
    pub instructions: String,
    pub default_publishes: Option<String>,
    pub max_activations: Option<u64>,
}

/// Whether an iteration remembers the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Session {
    #[default]
    Fresh,
    Continue,
}

/// What a driver script finds in its variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DriverSettings {
    pub output_format: OutputFormat,
    /// `None` leaves it to the driver.
    pub permission_mode: Option<String>,
    /// Names and patterns, with commas between them.
    pub allowed_tools: Option<String>,
}

/// How a driver's agent is to print.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    #[default]
    Json,
    Text,
}

impl OutputFormat {
    /// The word that drivers know.
    pub fn word(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}
