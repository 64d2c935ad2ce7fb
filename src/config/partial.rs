//! What one layer says: the shape of `ralph.yml`, with everything optional. Laying one layer over the settings
//! made so far is here; where a layer comes from and whether its values make sense is not.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::settings::{
    AdapterSettings, Cli, CompletionMatch, DriverSettings, EventLoop, Gate, Hat, Hooks, Mode, OnFailure,
    OutputFormat, PromptMode, Session, Settings,
};

/// The wishes of one layer. What is `None` was not said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Partial {
    /// Which agent, and how it is called.
    #[serde(default, deserialize_with = "may_be_empty")]
    pub cli: PartialCli,
    /// Settings for one agent by name: a built-in one, or `custom`.
    #[serde(default, deserialize_with = "may_be_empty")]
    pub adapters: BTreeMap<String, PartialAdapter>,
    /// The task, its limits, and its end.
    #[serde(default, deserialize_with = "may_be_empty")]
    pub event_loop: PartialEventLoop,
    /// Commands that must succeed before "done" is believed.
    pub gates: Option<Vec<Gate>>,
    /// Commands that are told what happens, by a JSON document on stdin.
    #[serde(default, deserialize_with = "may_be_empty")]
    pub hooks: PartialHooks,
    /// Roles that topics call for, by names of your choice.
    #[serde(default, deserialize_with = "may_be_empty")]
    pub hats: BTreeMap<String, PartialHat>,
    /// Whether each iteration starts a new session of the agent or resumes the last.
    pub session: Option<Session>,
    /// What a driver script is told, for `backend: driver:NAME`.
    #[serde(default, deserialize_with = "may_be_empty")]
    pub driver: PartialDriver,
    /// Your price list, for agents that do not report what they cost.
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
    /// The program of a custom agent.
    pub command: Option<String>,
    /// Its arguments, which come before the prompt.
    pub args: Option<Vec<String>>,
    /// How a custom agent gets the prompt.
    pub prompt_mode: Option<PromptMode>,
    /// The option that the prompt follows; without it the prompt is a plain argument.
    pub prompt_flag: Option<String>,
    /// Whether the agent works by itself, or on its own screen, which you see and type into ([interactive
    /// mode](agents.md#interactive-mode)); also `--mode`.
    pub default_mode: Option<Mode>,
    /// In interactive mode, how long there may be neither output nor a key; 0 is for ever.
    /// `adapters.NAME.idle_timeout` does not count there.
    #[schemars(extend("format" = "seconds"))]
    pub idle_timeout_secs: Option<u64>,
    /// The format of the agent's output; `auto` takes the one that belongs to the agent.
    pub transcript: Option<String>,
    /// With `transcript: jq`: what of each JSON line to read, as `jq -j` would print it.
    pub jq_filter: Option<String>,
    /// Gives the agent a terminal even if it does not need one.
    pub pty_mode: Option<bool>,
    /// Where driver scripts are looked for first.
    #[serde(default, serialize_with = "path_as_text")]
    #[schemars(extend("format" = "path"))]
    pub driver_dir: Option<PathBuf>,
    /// A program that behaves like `claude` and is called in its place.
    pub claude_command: Option<String>,
    /// Its arguments, cut into words as a shell does; `""` means no arguments at all.
    pub claude_args: Option<String>,
    /// The model to ask the agent for.
    pub model: Option<String>,
    /// Only the command line can say this.
    #[serde(skip_deserializing)]
    pub extra_args: Option<Vec<String>>,
}

/// See [`DriverSettings`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialDriver {
    /// `CLAUDE_OUTPUT_FORMAT` for the script.
    pub output_format: Option<OutputFormat>,
    /// `CLAUDE_PERMISSION_MODE`; empty leaves it to the script.
    pub permission_mode: Option<String>,
    /// `CLAUDE_ALLOWED_TOOLS`: names with commas between them, checked against those that the driver knows.
    pub allowed_tools: Option<String>,
}

/// See [`AdapterSettings`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialAdapter {
    /// Whether `backend: auto` may choose it.
    pub enabled: Option<bool>,
    /// How long one iteration may take, busy or not.
    #[schemars(range(min = 1), extend("format" = "seconds"))]
    pub timeout: Option<u64>,
    /// How long the agent may print nothing; 0 is for ever. Without it, by the format of its output.
    #[schemars(extend("format" = "seconds"))]
    pub idle_timeout: Option<u64>,
    /// The model for this agent.
    pub model: Option<String>,
    /// More arguments for this agent.
    pub args: Option<Vec<String>>,
}

/// See [`EventLoop`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialEventLoop {
    /// The task itself.
    pub prompt: Option<String>,
    /// The file that holds the task; it is read again for each iteration.
    #[serde(default, serialize_with = "path_as_text")]
    #[schemars(extend("format" = "path"))]
    pub prompt_file: Option<PathBuf>,
    /// What the agent says when all is done; it replaces the built-in markers. Empty means those.
    #[serde(default, deserialize_with = "one_or_many")]
    #[schemars(with = "TextOrTexts")]
    pub completion_promise: Option<Vec<String>>,
    /// Whether the marker must stand alone on a line, or may be anywhere.
    pub completion_match: Option<CompletionMatch>,
    /// How often the agent is started.
    #[schemars(range(min = 1))]
    pub max_iterations: Option<u64>,
    /// How long the whole run may take.
    #[schemars(range(min = 1), extend("format" = "seconds"))]
    pub max_runtime_seconds: Option<u64>,
    /// How many dollars the whole run may cost.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_cost_usd: Option<f64>,
    /// How many tokens the whole run may use.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// After how many failures in a row to give up.
    #[schemars(range(min = 1))]
    pub max_consecutive_failures: Option<u64>,
    /// The pause between two iterations.
    #[schemars(extend("format" = "seconds"))]
    pub cooldown_seconds: Option<u64>,
    /// How long an agent that is told to stop may take before it is killed.
    #[schemars(extend("format" = "seconds"))]
    pub stop_grace_seconds: Option<u64>,
    /// How long an agent may linger after its final result.
    #[schemars(extend("format" = "seconds"))]
    pub result_grace_seconds: Option<u64>,
    /// What to do when the agent itself says that it failed.
    pub on_declared_failure: Option<OnFailure>,
    /// The longest line of output that is read whole.
    #[schemars(range(min = 4096, max = 4_294_967_296_u64), extend("format" = "bytes"))]
    pub max_line_bytes: Option<u64>,
    /// After how many iterations in a row that change nothing to give up; 0 is never.
    pub max_no_progress: Option<u64>,
    /// The only files that the agent may change; an iteration that changes others fails. Empty allows all.
    #[schemars(extend("format" = "patterns"))]
    pub allowed_paths: Option<Vec<String>>,
}

/// See [`Hooks`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialHooks {
    /// The run begins, or goes on.
    pub on_start: Option<String>,
    /// An iteration has ended.
    pub on_iteration: Option<String>,
    /// The run is complete.
    pub on_complete: Option<String>,
    /// The run has ended in any other way.
    pub on_fail: Option<String>,
    /// The agent's usage limit was reached.
    pub on_rate_limit: Option<String>,
    /// How long one may take.
    #[schemars(range(min = 1), extend("format" = "seconds"))]
    pub timeout: Option<u64>,
}

/// See [`Hat`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialHat {
    /// What the role is, in a sentence.
    pub description: Option<String>,
    /// The topics, or globs of topics (`build.*`, `*`), that call for it.
    pub triggers: Option<Vec<String>>,
    /// The topics that it may publish.
    pub publishes: Option<Vec<String>>,
    /// What is added to the prompt while it is worn.
    pub instructions: Option<String>,
    /// The topic that is published for it when it published nothing.
    pub default_publishes: Option<String>,
    /// How often it may be worn in one run.
    #[schemars(range(min = 1))]
    pub max_activations: Option<u64>,
}

impl Partial {
    /// Makes every path absolute: what a file says is relative to that file, not to where `ralph` was called.
    pub(super) fn anchor_paths(&mut self, base: &Path) {
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
        for gate in self.gates.iter_mut().flatten() {
            gate.cwd = gate.cwd.take().map(|cwd| base.join(cwd));
        }
    }

    /// Lays this layer over the settings made so far.
    pub(super) fn apply_to(self, settings: &mut Settings) {
        self.cli.apply_to(&mut settings.cli);
        for (name, adapter) in self.adapters {
            adapter.apply_to(settings.adapters.entry(name).or_default());
        }
        self.event_loop.apply_to(&mut settings.event_loop);
        grant(self.gates, &mut settings.gates);
        self.hooks.apply_to(&mut settings.hooks);
        for (name, hat) in self.hats {
            hat.apply_to(settings.hats.entry(name).or_default());
        }
        grant(self.session, &mut settings.session);
        self.driver.apply_to(&mut settings.driver);
        grant(self.pricing, &mut settings.pricing);
    }
}

impl PartialCli {
    fn apply_to(self, cli: &mut Cli) {
        grant(self.backend, &mut cli.backend);
        grant(self.command, &mut cli.command);
        grant(self.args, &mut cli.args);
        grant(self.prompt_mode, &mut cli.prompt_mode);
        grant(self.prompt_flag, &mut cli.prompt_flag);
        grant(self.default_mode, &mut cli.default_mode);
        grant(self.idle_timeout_secs, &mut cli.idle_timeout_secs);
        match self.transcript {
            Some(name) if name == AUTO => cli.transcript = None,
            named => grant(named, &mut cli.transcript),
        }
        grant(self.jq_filter, &mut cli.jq_filter);
        grant(self.pty_mode, &mut cli.pty_mode);
        grant(self.driver_dir, &mut cli.driver_dir);
        grant(self.claude_command, &mut cli.claude_command);
        grant(self.claude_args, &mut cli.claude_args);
        grant(self.model, &mut cli.model);
        grant(self.extra_args, &mut cli.extra_args);
    }
}

impl PartialDriver {
    fn apply_to(self, driver: &mut DriverSettings) {
        grant(self.output_format, &mut driver.output_format);
        grant(self.permission_mode, &mut driver.permission_mode);
        grant(self.allowed_tools, &mut driver.allowed_tools);
    }
}

impl PartialAdapter {
    fn apply_to(self, adapter: &mut AdapterSettings) {
        grant(self.enabled, &mut adapter.enabled);
        grant(self.timeout, &mut adapter.timeout);
        grant(self.idle_timeout, &mut adapter.idle_timeout);
        grant(self.model, &mut adapter.model);
        grant(self.args, &mut adapter.args);
    }
}

impl PartialEventLoop {
    fn apply_to(self, event_loop: &mut EventLoop) {
        // Two ways to say one thing: the later layer's way replaces the earlier layer's, whichever it was.
        if self.prompt.is_some() || self.prompt_file.is_some() {
            event_loop.prompt = self.prompt;
            event_loop.prompt_file = self.prompt_file;
        }
        grant(self.completion_promise, &mut event_loop.completion_promise);
        grant(self.completion_match, &mut event_loop.completion_match);
        grant(self.max_iterations, &mut event_loop.max_iterations);
        grant(self.max_runtime_seconds, &mut event_loop.max_runtime_seconds);
        grant(self.max_cost_usd, &mut event_loop.max_cost_usd);
        grant(self.max_tokens, &mut event_loop.max_tokens);
        grant(
            self.max_consecutive_failures,
            &mut event_loop.max_consecutive_failures,
        );
        grant(self.cooldown_seconds, &mut event_loop.cooldown_seconds);
        grant(self.stop_grace_seconds, &mut event_loop.stop_grace_seconds);
        grant(self.result_grace_seconds, &mut event_loop.result_grace_seconds);
        grant(self.on_declared_failure, &mut event_loop.on_declared_failure);
        grant(self.max_line_bytes, &mut event_loop.max_line_bytes);
        grant(self.max_no_progress, &mut event_loop.max_no_progress);
        grant(self.allowed_paths, &mut event_loop.allowed_paths);
    }
}

impl PartialHooks {
    fn apply_to(self, hooks: &mut Hooks) {
        grant(self.on_start, &mut hooks.on_start);
        grant(self.on_iteration, &mut hooks.on_iteration);
        grant(self.on_complete, &mut hooks.on_complete);
        grant(self.on_fail, &mut hooks.on_fail);
        grant(self.on_rate_limit, &mut hooks.on_rate_limit);
        grant(self.timeout, &mut hooks.timeout);
    }
}

impl PartialHat {
    fn apply_to(self, hat: &mut Hat) {
        grant(self.description, &mut hat.description);
        grant(self.triggers, &mut hat.triggers);
        grant(self.publishes, &mut hat.publishes);
        grant(self.instructions, &mut hat.instructions);
        grant(self.default_publishes, &mut hat.default_publishes);
        grant(self.max_activations, &mut hat.max_activations);
    }
}

/// The transcript name that takes an earlier layer's choice back.
pub(super) const AUTO: &str = "auto";

/// A wish that was expressed replaces the setting; one that was not leaves it alone.
fn grant<Wish, Setting: From<Wish>>(wish: Option<Wish>, setting: &mut Setting) {
    if let Some(wish) = wish {
        *setting = wish.into();
    }
}

/// A section whose every line is commented out is an empty section, not a mistake.
pub(super) fn may_be_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Paths need not be UTF-8, JSON must be.
fn path_as_text<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(to)
}

/// How the schema says `one_or_many`.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only its shape is of use")]
enum TextOrTexts {
    Text(String),
    Texts(Vec<String>),
}

/// One text, or a list of texts. Not an untagged enum: that would lose the place of a mistake in the list.
fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    struct OneOrMany;

    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Option<Vec<String>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("text, or a list of texts")
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
