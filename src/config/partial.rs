//! The settings of one layer: the structure of `ralph.yml` with every key optional, and how a layer is merged into
//! `Settings`. Field comments are the descriptions in the JSON schema and in `docs/config.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::policy::{Gate, Hat, Hooks, MarkerPlacement, OnDeclaredFailure, Seconds, Session};

use super::settings::{
    AdapterSettings, Cli, DriverSettings, EventLoop, Mode, OutputFormat, PromptMode, Settings,
};

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
    /// Roles that topics activate, under names of your choice.
    #[serde(default, deserialize_with = "null_as_default")]
    pub hats: BTreeMap<String, PartialHat>,
    /// Start a new agent session in each iteration (`fresh`), or resume the previous one (`continue`).
    pub session: Option<Session>,
    /// Variables for the driver script, for `backend: driver:NAME`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub driver: PartialDriver,
    /// Path of a price list, for agents that do not report their cost.
    #[serde(default, serialize_with = "path_as_text")]
    #[schemars(extend("format" = "path"))]
    pub pricing: Option<PathBuf>,
}

/// See [`Cli`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialCli {
    /// `auto`, the name of a built-in agent, `custom`, or `driver:NAME`.
    pub backend: Option<String>,
    /// The program of a custom agent (`backend: custom`).
    pub command: Option<String>,
    /// Arguments of the custom agent, placed before the prompt.
    pub args: Option<Vec<String>>,
    /// How a custom agent receives the prompt: as an argument or on stdin.
    pub prompt_mode: Option<PromptMode>,
    /// The option that precedes the prompt. Without it, the prompt is a positional argument.
    pub prompt_flag: Option<String>,
    /// Run the agent headless (`autonomous`), or in its own TUI ([interactive
    /// mode](agents.md#interactive-mode)). Same as `--mode`.
    pub default_mode: Option<Mode>,
    /// Interactive mode: maximum time without output and key presses; 0 disables the timeout.
    /// `adapters.NAME.idle_timeout` does not apply in interactive mode.
    pub idle_timeout_secs: Option<Seconds>,
    /// The format of the agent's output. `auto` selects the agent's own format.
    pub transcript: Option<String>,
    /// With `transcript: jq`: the jq filter that extracts text from each JSON line, as `jq -j` prints it.
    pub jq_filter: Option<String>,
    /// Run the agent in a pseudo-terminal even if it does not require one.
    pub pty_mode: Option<bool>,
    /// The directory to search first for driver scripts.
    #[serde(default, serialize_with = "path_as_text")]
    #[schemars(extend("format" = "path"))]
    pub driver_dir: Option<PathBuf>,
    /// A Claude-compatible program to run instead of `claude`.
    pub claude_command: Option<String>,
    /// Arguments of `claude_command`, split into words like in a shell. `""` means no arguments.
    pub claude_args: Option<String>,
    /// The model that the agent should use.
    pub model: Option<String>,
    /// Can be set only on the command line, after `--`.
    #[serde(skip_deserializing)]
    pub extra_args: Option<Vec<String>>,
}

/// See [`DriverSettings`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialDriver {
    /// The value of `CLAUDE_OUTPUT_FORMAT` for the script.
    pub output_format: Option<OutputFormat>,
    /// The value of `CLAUDE_PERMISSION_MODE` for the script. Empty selects the script's default.
    pub permission_mode: Option<String>,
    /// The value of `CLAUDE_ALLOWED_TOOLS` for the script: comma-separated names, checked against the driver's tools.
    pub allowed_tools: Option<String>,
}

/// See [`AdapterSettings`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialAdapter {
    /// Whether `backend: auto` may select this agent.
    pub enabled: Option<bool>,
    /// Maximum duration of an iteration, even if the agent is active.
    #[schemars(extend("minimum" = 1))]
    pub timeout: Option<Seconds>,
    /// Maximum time without output; 0 disables the timeout. The default depends on the transcript format.
    pub idle_timeout: Option<Seconds>,
    /// The model that this agent should use.
    pub model: Option<String>,
    /// Additional arguments for this agent.
    pub args: Option<Vec<String>>,
}

/// See [`EventLoop`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialEventLoop {
    /// The prompt: the task for the agent.
    pub prompt: Option<String>,
    /// The file that contains the prompt. It is read again for each iteration.
    #[serde(default, serialize_with = "path_as_text")]
    #[schemars(extend("format" = "path"))]
    pub prompt_file: Option<PathBuf>,
    /// Markers that the agent prints when the task is done. They replace the built-in markers; empty selects the
    /// built-in ones.
    #[serde(default, deserialize_with = "one_or_many")]
    #[schemars(with = "StringOrList")]
    pub completion_promise: Option<Vec<String>>,
    /// Whether the marker must be alone on its own line (`line`) or may appear `anywhere`.
    pub completion_match: Option<MarkerPlacement>,
    /// Maximum number of iterations.
    #[schemars(range(min = 1))]
    pub max_iterations: Option<u64>,
    /// Maximum duration of the run.
    #[schemars(extend("minimum" = 1))]
    pub max_runtime_seconds: Option<Seconds>,
    /// Maximum cost of the run, in US dollars.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_cost_usd: Option<f64>,
    /// Maximum number of tokens that the run may use.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// Stop after this many consecutive failed iterations.
    #[schemars(range(min = 1))]
    pub max_consecutive_failures: Option<u64>,
    /// Pause between iterations.
    pub cooldown_seconds: Option<Seconds>,
    /// Longest wait for a usage limit. A limit that resets later is tried again at this time.
    #[schemars(extend("minimum" = 1))]
    pub max_wait_seconds: Option<Seconds>,
    /// Time that an agent has to exit after a stop request before it is killed.
    pub stop_grace_seconds: Option<Seconds>,
    /// Time that an agent has to exit after its final result.
    pub result_grace_seconds: Option<Seconds>,
    /// What to do when the agent reports that it failed.
    pub on_declared_failure: Option<OnDeclaredFailure>,
    /// Maximum length of an output line. Longer lines are truncated.
    #[schemars(range(min = 4096, max = 4_294_967_296_u64), extend("format" = "bytes"))]
    pub max_line_bytes: Option<u64>,
    /// Stop after this many consecutive iterations without changes; 0 disables the limit.
    pub max_no_progress: Option<u64>,
    /// Path patterns of the files that the agent may change. An iteration that changes other files fails. Empty
    /// allows all files.
    #[schemars(extend("format" = "patterns"))]
    pub allowed_paths: Option<Vec<String>>,
}

/// See [`Hooks`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialHooks {
    /// Runs when the run starts or resumes.
    pub on_start: Option<String>,
    /// Runs after each iteration.
    pub on_iteration: Option<String>,
    /// Runs when the task is done.
    pub on_complete: Option<String>,
    /// Runs when the run ends without completing the task.
    pub on_fail: Option<String>,
    /// Runs when the agent reaches its usage limit.
    pub on_rate_limit: Option<String>,
    /// Maximum duration of a hook.
    #[schemars(extend("minimum" = 1))]
    pub timeout: Option<Seconds>,
}

/// See [`Hat`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialHat {
    /// A one-sentence description of the role.
    pub description: Option<String>,
    /// The topics, or topic patterns (`build.*`, `*`), that activate the hat.
    pub triggers: Option<Vec<String>>,
    /// The topics that the hat may publish.
    pub publishes: Option<Vec<String>>,
    /// Text that is added to the prompt while the hat is active.
    pub instructions: Option<String>,
    /// The topic to publish if the hat publishes none.
    pub default_publishes: Option<String>,
    /// Maximum number of activations per run.
    #[schemars(range(min = 1))]
    pub max_activations: Option<u64>,
}

impl PartialSettings {
    /// Makes paths absolute. Paths in a file are relative to the directory of that file.
    pub(super) fn make_paths_absolute(&mut self, base: &Path) {
        for path in [
            &mut self.event_loop.prompt_file,
            &mut self.pricing,
            &mut self.cli.driver_dir,
        ]
        .into_iter()
        .flatten()
        {
            *path = base.join(&path);
        }
        for program in [&mut self.cli.command, &mut self.cli.claude_command] {
            // A plain name is searched for in PATH. No shell expands `~`, which the error for a missing program explains.
            let is_path = |path: &&mut String| path.contains('/') && !path.starts_with('~');
            if let Some(path) = program.as_mut().filter(is_path) {
                let relative = path.strip_prefix("./").unwrap_or(path);
                *path = base.join(relative).to_string_lossy().into_owned();
            }
        }
        for gate in self.gates.iter_mut().flatten() {
            gate.cwd = gate.cwd.take().map(|cwd| base.join(cwd));
        }
    }

    /// Merges this layer into the settings of the lower layers.
    pub(super) fn apply_to(self, settings: &mut Settings) {
        self.cli.apply_to(&mut settings.cli);
        for (name, adapter) in self.adapters {
            adapter.apply_to(settings.adapters.entry(name).or_default());
        }
        self.event_loop.apply_to(&mut settings.event_loop);
        override_with(self.gates, &mut settings.gates);
        self.hooks.apply_to(&mut settings.hooks);
        for (name, hat) in self.hats {
            let hats = &mut settings.hats;
            hat.apply_to(hats.entry(name.clone()).or_insert_with(|| Hat::named(&name)));
        }
        override_with(self.session, &mut settings.session);
        self.driver.apply_to(&mut settings.driver);
        override_with(self.pricing, &mut settings.pricing);
    }
}

impl PartialCli {
    fn apply_to(self, cli: &mut Cli) {
        override_with(self.backend, &mut cli.backend);
        override_with(self.command, &mut cli.command);
        override_with(self.args, &mut cli.args);
        override_with(self.prompt_mode, &mut cli.prompt_mode);
        override_with(self.prompt_flag, &mut cli.prompt_flag);
        override_with(self.default_mode, &mut cli.default_mode);
        override_with(self.idle_timeout_secs, &mut cli.idle_timeout_secs);
        match self.transcript {
            Some(name) if name == AUTO => cli.transcript = None,
            named => override_with(named, &mut cli.transcript),
        }
        override_with(self.jq_filter, &mut cli.jq_filter);
        override_with(self.pty_mode, &mut cli.pty_mode);
        override_with(self.driver_dir, &mut cli.driver_dir);
        override_with(self.claude_command, &mut cli.claude_command);
        override_with(self.claude_args, &mut cli.claude_args);
        override_with(self.model, &mut cli.model);
        override_with(self.extra_args, &mut cli.extra_args);
    }
}

impl PartialDriver {
    fn apply_to(self, driver: &mut DriverSettings) {
        override_with(self.output_format, &mut driver.output_format);
        override_with(self.permission_mode, &mut driver.permission_mode);
        override_with(self.allowed_tools, &mut driver.allowed_tools);
    }
}

impl PartialAdapter {
    fn apply_to(self, adapter: &mut AdapterSettings) {
        override_with(self.enabled, &mut adapter.enabled);
        override_with(self.timeout, &mut adapter.timeout);
        override_with(self.idle_timeout, &mut adapter.idle_timeout);
        override_with(self.model, &mut adapter.model);
        override_with(self.args, &mut adapter.args);
    }
}

impl PartialEventLoop {
    fn apply_to(self, event_loop: &mut EventLoop) {
        // A prompt from this layer replaces both the prompt and the prompt file of lower layers.
        if self.prompt.is_some() || self.prompt_file.is_some() {
            event_loop.prompt = self.prompt;
            event_loop.prompt_file = self.prompt_file;
        }
        override_with(self.completion_promise, &mut event_loop.completion_promise);
        override_with(self.completion_match, &mut event_loop.completion_match);
        override_with(self.max_iterations, &mut event_loop.max_iterations);
        override_with(self.max_runtime_seconds, &mut event_loop.max_runtime_seconds);
        override_with(self.max_cost_usd, &mut event_loop.max_cost_usd);
        override_with(self.max_tokens, &mut event_loop.max_tokens);
        override_with(
            self.max_consecutive_failures,
            &mut event_loop.max_consecutive_failures,
        );
        override_with(self.cooldown_seconds, &mut event_loop.cooldown_seconds);
        override_with(self.max_wait_seconds, &mut event_loop.max_wait_seconds);
        override_with(self.stop_grace_seconds, &mut event_loop.stop_grace_seconds);
        override_with(self.result_grace_seconds, &mut event_loop.result_grace_seconds);
        override_with(self.on_declared_failure, &mut event_loop.on_declared_failure);
        override_with(self.max_line_bytes, &mut event_loop.max_line_bytes);
        override_with(self.max_no_progress, &mut event_loop.max_no_progress);
        override_with(self.allowed_paths, &mut event_loop.allowed_paths);
    }
}

impl PartialHooks {
    fn apply_to(self, hooks: &mut Hooks) {
        override_with(self.on_start, &mut hooks.on_start);
        override_with(self.on_iteration, &mut hooks.on_iteration);
        override_with(self.on_complete, &mut hooks.on_complete);
        override_with(self.on_fail, &mut hooks.on_fail);
        override_with(self.on_rate_limit, &mut hooks.on_rate_limit);
        override_with(self.timeout, &mut hooks.timeout);
    }
}

impl PartialHat {
    fn apply_to(self, hat: &mut Hat) {
        override_with(self.description, &mut hat.description);
        override_with(self.triggers, &mut hat.triggers);
        override_with(self.publishes, &mut hat.publishes);
        override_with(self.instructions, &mut hat.instructions);
        override_with(self.default_publishes, &mut hat.default_publishes);
        override_with(self.max_activations, &mut hat.max_activations);
    }
}

/// The transcript name that resets the choice of a lower layer.
pub(super) const AUTO: &str = "auto";

/// Overwrites the setting if the layer sets a value.
fn override_with<Value, Setting: From<Value>>(value: Option<Value>, setting: &mut Setting) {
    if let Some(value) = value {
        *setting = value.into();
    }
}

/// Accepts `null` for a section whose lines are all commented out.
pub(super) fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Serializes a path lossily, because paths may not be UTF-8 but JSON must be.
fn path_as_text<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(to)
}

/// The JSON schema of `one_or_many`.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only the derived schema is used")]
enum StringOrList {
    String(String),
    List(Vec<String>),
}

/// Accepts a string or a list of strings. An untagged enum would lose the location of an error in the list.
fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    struct OneOrMany;

    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Option<Vec<String>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string or a list of strings")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Some(vec![text.to_owned()]))
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let mut texts = Vec::new();
            while let Some(text) = items.next_element()? {
                texts.push(text);
            }
            Ok(Some(texts))
        }
    }

    from.deserialize_any(OneOrMany)
}
