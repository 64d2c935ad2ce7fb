//! The settings of `ralph.yml`: every key with its type, default, description, environment variable and check.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::section::section;
use crate::policy::{
    Budgets, EnvironmentRules, Gate, Hat, Hooks, MarkerPlacement, Notify, OnDeclaredFailure, OnLimit,
    OnRejected, PartialBudgets, PartialEnvironmentRules, PartialHat, PartialHooks, PartialNotify,
    PartialQuota, PartialSandbox, PartialWorktree, QuotaSettings, START_TOPIC, Sandbox, Seconds, Session,
    Worktree,
};

use super::partial::{StringOrList, null_as_default, one_or_many, path_as_text, switch_or_section};

/// All settings, including defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Settings {
    pub cli: Cli,
    pub adapters: BTreeMap<String, AdapterSettings>,
    pub event_loop: EventLoop,
    pub gates: Vec<Gate>,
    pub hooks: Hooks,
    pub notify: Notify,
    pub quota: QuotaSettings,
    pub budgets: Budgets,
    pub hats: BTreeMap<String, Hat>,
    pub session: Session,
    pub driver: DriverSettings,
    pub snapshots: SnapshotSettings,
    pub worktree: Worktree,
    pub ui: UiSettings,
    pub sandbox: Sandbox,
    pub env: EnvironmentRules,
    /// The user's price list, as an absolute path.
    pub pricing: Option<PathBuf>,
}

/// The settings of one layer. `None` means that the layer does not set the key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialSettings {
    /// The agent and how to call it.
    #[serde(default, deserialize_with = "null_as_default")]
    pub cli: PartialCli,
    /// Settings of individual agents, by name: a built-in agent or `custom`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub adapters: BTreeMap<String, PartialAdapter>,
    /// The task, its limits, and its completion.
    #[serde(default, deserialize_with = "null_as_default")]
    pub event_loop: PartialEventLoop,
    /// Commands that must succeed before the task counts as done.
    pub gates: Option<Vec<Gate>>,
    /// Commands that run on events of a run. They receive a JSON document on stdin.
    #[serde(default, deserialize_with = "null_as_default")]
    pub hooks: PartialHooks,
    /// Notifications on your desktop or phone.
    #[serde(default, deserialize_with = "null_as_default")]
    pub notify: PartialNotify,
    /// How all runs that use the same account share its usage limits.
    #[serde(default, deserialize_with = "null_as_default")]
    pub quota: PartialQuota,
    /// Budgets over all runs of the user. A file of a project can lower those of the user's own file, but not raise them.
    #[serde(default, deserialize_with = "null_as_default")]
    pub budgets: PartialBudgets,
    /// Roles that topics activate, under names of your choice.
    #[serde(default, deserialize_with = "null_as_default")]
    pub hats: BTreeMap<String, PartialHat>,
    /// Start a new agent session in each iteration (`fresh`), or resume the previous one (`continue`).
    pub session: Option<Session>,
    /// Variables for the driver script, for `backend: driver:NAME`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub driver: PartialDriver,
    /// What is recorded before the first iteration and after each one; `off` records nothing.
    #[serde(default, deserialize_with = "switch_or_section")]
    pub snapshots: PartialSnapshots,
    /// Worktrees of the tasks of a plan (`ralph plan run --jobs`).
    #[serde(default, deserialize_with = "null_as_default")]
    pub worktree: PartialWorktree,
    /// How runs are shown.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ui: PartialUi,
    /// What agents and gates may see, change and reach.
    #[serde(default, deserialize_with = "null_as_default")]
    pub sandbox: PartialSandbox,
    /// Which variables of ralph's environment agents and gates receive.
    #[serde(default, deserialize_with = "null_as_default")]
    pub env: PartialEnvironmentRules,
    /// Path of a price list, for agents that do not report their cost.
    #[serde(default, serialize_with = "path_as_text")]
    #[schemars(length(min = 1), extend("format" = "path"))]
    pub pricing: Option<PathBuf>,
}

section! {
    /// The agent and how to call it.
    Cli, PartialCli, "cli" {
        /// `auto`, the name of a built-in agent, `custom`, `acp`, `acp:COMMAND`, or `driver:NAME`.
        #[environment("RALPH_AGENT")]
        #[check(length(min = 1))]
        backend: String = "auto".to_owned(),
        /// The program of a custom agent (`backend: custom` or `backend: acp`).
        #[check(length(min = 1))]
        command: String,
        /// Arguments of the custom agent, placed before the prompt.
        args: Vec<String> = Vec::new(),
        /// How a custom agent receives the prompt: as an argument or on stdin.
        prompt_mode: PromptMode = PromptMode::default(),
        /// The option that precedes the prompt. Without it, the prompt is a positional argument.
        #[check(length(min = 1))]
        prompt_flag: String,
        /// Run the agent headless (`autonomous`), or in its own TUI ([interactive
        /// mode](agents.md#interactive-mode)). Same as `--mode`.
        default_mode: Mode = Mode::default(),
        /// Interactive mode: maximum time without output and key presses; 0 disables the timeout.
        /// `adapters.NAME.idle_timeout` does not apply in interactive mode.
        idle_timeout_secs: Seconds = Seconds(30),
        /// The format of the agent's output. `auto` selects the agent's own format.
        #[environment("RALPH_TRANSCRIPT")]
        transcript: String,
        /// With `transcript: jq`: the jq filter that extracts text from each JSON line, as `jq -j` prints it.
        jq_filter: String,
        /// Run the agent in a pseudo-terminal even if it does not require one.
        pty_mode: bool = false,
        /// The directory to search first for driver scripts.
        #[check(extend("format" = "path"))]
        #[serde(serialize_with = "path_as_text")]
        driver_dir: PathBuf,
        /// A Claude-compatible program to run instead of `claude`.
        #[check(length(min = 1))]
        claude_command: String,
        /// Arguments of `claude_command`, split into words like in a shell. `""` means no arguments.
        claude_args: String,
        /// The model that the agent should use.
        #[environment("RALPH_MODEL")]
        model: String,
        /// Agents that take over, in this order, when the agent of a role cannot work: its usage limit resets late, it is
        /// not logged in, or its program is missing.
        #[check(inner(length(min = 1)))]
        fallback: Vec<String> = Vec::new(),
        /// A usage limit that resets within this time is waited for; `fallback` applies to later resets.
        fallback_after: Seconds = Seconds(600),
        /// Can be set only on the command line, after `--`.
        #[serde(skip_deserializing)]
        extra_args: Vec<String> = Vec::new(),
        /// Can be set only on the command line, with `--gate`.
        #[serde(skip_deserializing)]
        extra_gates: Vec<String> = Vec::new(),
    }
}

section! {
    /// Settings of one agent.
    AdapterSettings, PartialAdapter, "adapters.NAME" {
        /// Whether `backend: auto` may select this agent.
        enabled: bool = true,
        /// Maximum duration of an iteration, even if the agent is active.
        #[check(extend("minimum" = 1))]
        timeout: Seconds,
        /// Maximum time without output; 0 disables the timeout. The default depends on the transcript format.
        idle_timeout: Seconds,
        /// The model that this agent should use.
        model: String,
        /// Additional arguments for this agent.
        args: Vec<String> = Vec::new(),
        /// Additional environment variables for this agent, such as the key of another account.
        env: BTreeMap<String, String> = BTreeMap::new(),
        /// What differs from the sandbox of the run.
        sandbox: PartialSandbox = PartialSandbox::default(),
    }
}

section! {
    /// The task, its limits, and its completion.
    EventLoop, PartialEventLoop, "event_loop" {
        /// The prompt: the task for the agent.
        #[check(length(min = 1))]
        prompt: String,
        /// The file that contains the prompt. It is read again for each iteration.
        #[environment("RALPH_PROMPT_FILE")]
        #[check(length(min = 1), extend("format" = "path"))]
        #[serde(serialize_with = "path_as_text")]
        prompt_file: PathBuf,
        /// Markers that the agent prints when the task is done. They replace the built-in markers; empty selects the
        /// built-in ones.
        #[check(with = "StringOrList")]
        #[serde(default, deserialize_with = "one_or_many")]
        completion_promise: Vec<String> = Vec::new(),
        /// Whether the marker must be alone on its own line (`line`) or may appear `anywhere`.
        completion_match: MarkerPlacement = MarkerPlacement::default(),
        /// Whether `EXIT_SIGNAL: true` in a `RALPH_STATUS` block of the final message also claims completion.
        completion_status_block: bool = false,
        /// Maximum number of iterations.
        #[environment("RALPH_MAX_ITERATIONS")]
        #[check(range(min = 1))]
        max_iterations: u64 = 100,
        /// Maximum duration of the run.
        #[environment("RALPH_MAX_RUNTIME_SECONDS")]
        #[check(extend("minimum" = 1))]
        max_runtime_seconds: Seconds = Seconds(14_400),
        /// Maximum cost of the run, in US dollars.
        #[environment("RALPH_MAX_COST_USD")]
        #[check(extend("exclusiveMinimum" = 0))]
        max_cost_usd: f64,
        /// Maximum number of tokens that the run may use.
        #[check(range(min = 1))]
        max_tokens: u64,
        /// Stop after this many consecutive failed iterations.
        #[check(range(min = 1))]
        max_consecutive_failures: u64 = 5,
        /// Pause between iterations.
        cooldown_seconds: Seconds = Seconds(0),
        /// Longest wait for a usage limit. A limit that resets later is tried again at this time.
        #[check(extend("minimum" = 1))]
        max_wait_seconds: Seconds = Seconds(28_800),
        /// At a usage limit, `wait` for the reset, or `exit` with code 7.
        on_limit: OnLimit = OnLimit::default(),
        /// A command that runs after each iteration; the next one starts when it has exited. Code 0 continues, 75
        /// continues with a warning, any other code ends the run with exit code 8.
        #[check(length(min = 1))]
        checkpoint: String,
        /// Maximum duration of the checkpoint command.
        #[check(extend("minimum" = 1))]
        checkpoint_timeout: Seconds = Seconds(600),
        /// How long to wait for the answer to a question of the agent. Default: no limit.
        #[check(extend("minimum" = 1))]
        ask_timeout: Seconds,
        /// What happens without an answer within `ask_timeout`: `stop` ends the run; any other text is the answer.
        #[check(length(min = 1))]
        ask_default: String = "stop".to_owned(),
        /// Time that an agent has to exit after a stop request before it is killed.
        stop_grace_seconds: Seconds = Seconds(5),
        /// Time that an agent has to exit after its final result.
        result_grace_seconds: Seconds = Seconds(30),
        /// What to do when the agent reports that it failed.
        on_declared_failure: OnDeclaredFailure = OnDeclaredFailure::default(),
        /// What happens to the files when an iteration breaks a gate that passed before: they are kept, or restored to the state in
        /// which the gate passed.
        on_rejected: OnRejected = OnRejected::default(),
        /// Maximum length of an output line. Longer lines are truncated.
        #[check(range(min = 4096, max = 4_294_967_296_u64), extend("format" = "bytes"))]
        max_line_bytes: u64 = 256 * 1024 * 1024,
        /// Stop an agent that prints more than this in one iteration; 0 disables the limit.
        #[check(extend("format" = "bytes"))]
        max_output_bytes: u64 = 8_000_000_000,
        /// End the run when less than this is free on the disk of the project or of the run's files; 0 disables the check.
        #[check(extend("format" = "bytes"))]
        min_free_disk_bytes: u64 = 100_000_000,
        /// Stop after this many consecutive iterations without changes; 0 disables the limit.
        max_no_progress: u64 = 5,
        /// The topic of a run's first event. The hat that claims it is activated first.
        #[check(length(min = 1))]
        starting_event: String = START_TOPIC.to_owned(),
        /// Topics that must have been published before the task counts as done.
        #[check(inner(length(min = 1)))]
        required_events: Vec<String> = Vec::new(),
        /// Rules that are added to every prompt.
        #[check(inner(length(min = 1)))]
        guardrails: Vec<String> = Vec::new(),
        /// Path patterns of the files that the agent may change. An iteration that changes other files fails. Empty
        /// allows all files.
        #[check(inner(length(min = 1)), extend("format" = "patterns"))]
        allowed_paths: Vec<String> = Vec::new(),
        /// Refuse to start a run without gates.
        require_gates: bool = false,
    }
}

section! {
    /// Values of the variables that driver scripts read.
    DriverSettings, PartialDriver, "driver" {
        /// The value of `CLAUDE_OUTPUT_FORMAT` for the script.
        output_format: OutputFormat = OutputFormat::default(),
        /// The value of `CLAUDE_PERMISSION_MODE` for the script. Empty selects the script's default.
        permission_mode: String,
        /// The value of `CLAUDE_ALLOWED_TOOLS` for the script: comma-separated names, checked against the driver's tools.
        allowed_tools: String,
    }
}

section! {
    /// What [snapshots](undo.md) record.
    SnapshotSettings, PartialSnapshots, "snapshots" {
        /// Whether snapshots are taken. `snapshots: off` is the same as `enabled: false`.
        enabled: bool = true,
        /// Path patterns of git-ignored files that snapshots contain nevertheless, relative to the project root.
        #[check(inner(length(min = 1)), extend("format" = "patterns"))]
        include: Vec<String> = Vec::new(),
        /// Maximum size of a project's snapshots, in megabytes. Beyond it, a run continues without snapshots.
        #[check(range(min = 1, max = 1_048_576))]
        max_mb: u64 = 1024,
    }
}

section! {
    /// How runs are shown.
    UiSettings, PartialUi, "ui" {
        /// The colors of the TUI: for a `dark` or a `light` background. `auto` asks the terminal. Without colors: `--color
        /// never` or `NO_COLOR`.
        #[environment("RALPH_THEME")]
        theme: ThemeName = ThemeName::default(),
    }
}

/// The colors of the TUI.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThemeName {
    #[default]
    Auto,
    Dark,
    Light,
}

impl std::str::FromStr for ThemeName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "auto" => Ok(Self::Auto),
            "dark" => Ok(Self::Dark),
            "light" => Ok(Self::Light),
            _ => Err(()),
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
