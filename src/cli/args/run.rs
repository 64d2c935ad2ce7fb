//! Arguments of the run, understand and tell commands.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::cli::run_request::DryRun;
use crate::config::{Mode, PartialCli, PartialEventLoop, PartialSettings, SplitError, split_words};
use crate::engine::AskPolicy;
use crate::files::ReadRule;
use crate::policy::{NetworkAccess, OnLimit, PartialSandbox, SandboxMode, Seconds};
use crate::store::NewRunId;

/// Help heading of the limits.
const LIMITS: &str = "Limits";

#[derive(Debug, Default, Args)]
pub(in crate::cli) struct RunArguments {
    /// The task for the agent in quotes; `-` reads it from stdin
    #[arg(value_name = "TASK", conflicts_with_all = ["prompt", "prompt_file", "resume"])]
    pub(in crate::cli) task: Vec<String>,
    /// The task, as an option
    #[arg(
        short,
        long,
        value_name = "TEXT",
        conflicts_with = "prompt_file",
        allow_hyphen_values = true
    )]
    pub(in crate::cli) prompt: Option<String>,
    /// Read the prompt from a file before each iteration [default: PROMPT.md]
    #[arg(short = 'P', long, value_name = "FILE")]
    pub(in crate::cli) prompt_file: Option<PathBuf>,
    /// Resume a run [default: the newest in this directory]
    #[arg(long = "continue", value_name = "RUN", num_args = 0..=1, conflicts_with = "dry_run")]
    pub(in crate::cli) resume: Option<Option<String>>,
    /// Resume even if the configuration has changed
    #[arg(long, requires = "resume")]
    pub(in crate::cli) yes: bool,
    /// Accept "done" only if this command succeeds (repeatable)
    #[arg(long = "gate", value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    pub(in crate::cli) gates: Vec<String>,
    /// Resume although the journal is damaged
    #[arg(long, requires = "resume")]
    pub(in crate::cli) accept_damage: bool,
    /// Run headless, or in the agent's own TUI [default: autonomous]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(in crate::cli) mode: Option<ModeArgument>,
    /// Ask between iterations: continue, continue without asking, or quit
    #[arg(long)]
    pub(in crate::cli) interactive: bool,
    /// Print the agent's command line without running it
    #[arg(long, conflicts_with = "tui")]
    pub(in crate::cli) dry_run: bool,
    /// With --dry-run: print only the exact prompt of the first iteration
    #[arg(long, requires = "dry_run")]
    pub(in crate::cli) show_prompt: bool,
    #[command(flatten)]
    pub(in crate::cli) choice: AgentArguments,
    /// Stop after this many iterations [default: 100]
    #[arg(short = 'n', long, value_name = "N", help_heading = LIMITS)]
    pub(in crate::cli) max_iterations: Option<u64>,
    /// Stop after this time, such as 90m or 8h [default: 4h]
    #[arg(long, value_name = "DURATION", help_heading = LIMITS)]
    pub(in crate::cli) max_runtime: Option<Seconds>,
    /// Stop when the cost reaches this many dollars
    #[arg(long, value_name = "USD", help_heading = LIMITS)]
    pub(in crate::cli) max_cost: Option<f64>,
    /// Stop after this many tokens
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(in crate::cli) max_tokens: Option<u64>,
    #[command(flatten)]
    pub(in crate::cli) supervision: SupervisionArguments,
    #[command(flatten)]
    pub(in crate::cli) show: DisplayArguments,
}

/// Options for programs that start ralph.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Supervision")]
pub(in crate::cli) struct SupervisionArguments {
    /// At a usage limit, wait for the reset or exit with code 7 [default: wait]
    #[arg(long, value_enum, value_name = "ACTION")]
    pub(in crate::cli) on_limit: Option<OnLimitArgument>,
    /// Run this command after each iteration and wait for it; it can end the run
    #[arg(long, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    pub(in crate::cli) checkpoint: Option<String>,
    /// The id of the new run: a time and a name, such as 20261115-204501-billing
    #[arg(long, value_name = "ID", conflicts_with_all = ["resume", "dry_run"])]
    pub(in crate::cli) run_id: Option<NewRunId>,
    /// Stop as on SIGTERM when this file descriptor reaches its end
    #[arg(long, value_name = "FD", value_parser = clap::value_parser!(i32).range(3..))]
    pub(in crate::cli) while_open: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum OnLimitArgument {
    Wait,
    Exit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum ModeArgument {
    Autonomous,
    Interactive,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct UnderstandArguments {
    /// Maximum number of iterations [default: 5]
    #[arg(value_name = "N")]
    pub(in crate::cli) iterations: Option<u64>,
    /// Print the agent's command line without running it
    #[arg(long, conflicts_with = "tui")]
    pub(in crate::cli) dry_run: bool,
    #[command(flatten)]
    pub(in crate::cli) choice: AgentArguments,
    #[command(flatten)]
    pub(in crate::cli) show: DisplayArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TellArguments {
    /// The message, or the run and the message [default run: the newest in this directory]
    #[arg(value_name = "[RUN] TEXT", num_args = 0..=2)]
    pub(in crate::cli) words: Vec<String>,
    /// Pause after the current iteration
    #[arg(long, group = "command")]
    pub(in crate::cli) pause: bool,
    /// Resume after a pause
    #[arg(long, group = "command")]
    pub(in crate::cli) resume: bool,
    /// End the current wait (for a usage limit or a retry)
    #[arg(long, group = "command")]
    pub(in crate::cli) wake: bool,
    /// Stop the current iteration and start the next
    #[arg(long, group = "command")]
    pub(in crate::cli) stop_iteration: bool,
    /// Stop the agent and end the run
    #[arg(long, group = "command")]
    pub(in crate::cli) stop: bool,
    /// Kill the agent at once and end the run
    #[arg(long, group = "command")]
    pub(in crate::cli) kill: bool,
    /// Answer a question of the agent, or of ralph: continue, always, done or quit
    #[arg(long, group = "command", value_name = "TEXT")]
    pub(in crate::cli) answer: Option<String>,
    /// An id of your own: a run applies all commands with the same id once
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(in crate::cli) id: Option<String>,
}

/// Output options.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Display")]
pub(in crate::cli) struct DisplayArguments {
    /// Print the journal's records as JSON lines, live; with =FILE, write them to the file as well
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = STDOUT)]
    pub(in crate::cli) json: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) screen: TuiArguments,
    /// Print only the final report
    #[arg(short, long, conflicts_with = "verbose")]
    pub(in crate::cli) quiet: bool,
    /// Show thinking and tool output in full
    #[arg(short, long)]
    pub(in crate::cli) verbose: bool,
}

/// `--json` without a file.
const STDOUT: &str = "-";

impl DisplayArguments {
    /// Whether records are the only output.
    pub(in crate::cli) fn json_on_stdout(&self) -> bool {
        self.json.as_deref() == Some(Path::new(STDOUT))
    }

    /// The file that records are written to.
    pub(in crate::cli) fn record_file(&self) -> Option<&Path> {
        self.json.as_deref().filter(|path| *path != Path::new(STDOUT))
    }

    /// The flag that cannot be combined with records on stdout.
    pub(in crate::cli) fn conflict_with_json(&self) -> Option<&'static str> {
        let flags = [
            (self.screen.tui, "--tui"),
            (self.quiet, "--quiet"),
            (self.verbose, "--verbose"),
        ];
        let given = flags.into_iter().find(|(is_given, _)| *is_given);
        given.map(|(_, flag)| flag).filter(|_| self.json_on_stdout())
    }
}

impl RunArguments {
    /// The flag that cannot be combined with records on stdout.
    pub(in crate::cli) fn conflict_with_json(&self) -> Option<&'static str> {
        let flags = [
            (self.interactive, "--interactive"),
            (self.show_prompt, "--show-prompt"),
        ];
        let given = flags.into_iter().find(|(is_given, _)| *is_given);
        let given = given.map(|(_, flag)| flag).filter(|_| self.show.json_on_stdout());
        given.or_else(|| self.show.conflict_with_json())
    }
}

/// TUI or plain text.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Display")]
pub(in crate::cli) struct TuiArguments {
    /// Show the run in the TUI (default on a terminal)
    #[arg(long, overrides_with = "no_tui", conflicts_with_all = ["quiet", "verbose"])]
    pub(in crate::cli) tui: bool,
    /// Print the run as plain text
    #[arg(long, overrides_with = "tui")]
    pub(in crate::cli) no_tui: bool,
}

/// The agent and its configuration.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Agent")]
pub(in crate::cli) struct AgentArguments {
    /// The agent: auto, a built-in name, custom, acp:COMMAND, or driver:NAME
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) agent: Option<String>,
    /// Command line of a custom agent; the prompt is its last argument
    #[arg(long, value_name = "COMMAND")]
    pub(in crate::cli) agent_cmd: Option<String>,
    /// Format of the agent's output: auto, plain, rtf1, claude, jq …
    #[arg(long, value_name = "FORMAT")]
    pub(in crate::cli) transcript: Option<String>,
    /// jq filter for each JSON line (with --transcript jq)
    #[arg(long, value_name = "FILTER")]
    pub(in crate::cli) jq_filter: Option<String>,
    /// Directory to search first for driver scripts
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) driver_dir: Option<PathBuf>,
    /// The model for the agent to use
    #[arg(long, value_name = "MODEL")]
    pub(in crate::cli) model: Option<String>,
    /// What the agent may change and see: off, workspace or strict
    #[arg(long, value_name = "MODE")]
    pub(in crate::cli) sandbox: Option<SandboxMode>,
    /// What the agent may reach: open, none, or hosts separated by commas
    #[arg(long, value_name = "HOSTS")]
    pub(in crate::cli) net: Option<NetworkAccess>,
    /// Use this file instead of the nearest ralph.yml
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) config: Option<PathBuf>,
    /// Run this repository's commands without asking (also: RALPH_TRUST=1)
    #[arg(long)]
    pub(in crate::cli) trust: bool,
    /// Extra arguments for the agent, after `--`
    #[arg(last = true, value_name = "ARGS")]
    pub(in crate::cli) extra: Vec<String>,
}

impl RunArguments {
    pub(in crate::cli) fn dry_run_mode(&self) -> DryRun {
        match (self.dry_run, self.show_prompt) {
            (false, _) => DryRun::None,
            (true, false) => DryRun::Call,
            (true, true) => DryRun::Prompt,
        }
    }

    pub(in crate::cli) fn asking(&self) -> AskPolicy {
        if self.interactive {
            AskPolicy::BetweenIterations
        } else {
            AskPolicy::Never
        }
    }

    /// Only the agent.
    pub(in crate::cli) fn of(choice: AgentArguments) -> Self {
        Self {
            choice,
            ..Self::default()
        }
    }

    /// Makes the positional task the prompt. The error is a message for the user.
    pub(in crate::cli) fn take_task(&mut self) -> Result<(), String> {
        self.prompt = match &*std::mem::take(&mut self.task) {
            [] => return Ok(()),
            [task] if task == "-" => Some(read_task(std::io::stdin().lock())?),
            [task] => Some(task.clone()),
            words => {
                let task = words.join(" ");
                return Err(format!(
                    "the task must be one argument; put it in quotes: ralph run \"{task}\""
                ));
            }
        };
        Ok(())
    }

    pub(in crate::cli) fn overrides(&self) -> Result<PartialSettings, SplitError> {
        let mut overrides = self.choice.overrides()?;
        overrides.cli.extra_gates = (!self.gates.is_empty()).then(|| self.gates.clone());
        overrides.cli.default_mode = self.mode.map(|mode| match mode {
            ModeArgument::Autonomous => Mode::Autonomous,
            ModeArgument::Interactive => Mode::Interactive,
        });
        overrides.event_loop = PartialEventLoop {
            prompt: self.prompt.clone(),
            prompt_file: self.prompt_file.clone(),
            max_iterations: self.max_iterations,
            max_runtime_seconds: self.max_runtime,
            max_cost_usd: self.max_cost,
            max_tokens: self.max_tokens,
            on_limit: self.supervision.on_limit.map(|action| match action {
                OnLimitArgument::Wait => OnLimit::Wait,
                OnLimitArgument::Exit => OnLimit::Exit,
            }),
            checkpoint: self.supervision.checkpoint.clone(),
            ..PartialEventLoop::default()
        };
        Ok(overrides)
    }
}

/// Reads a task from stdin.
fn read_task(stdin: impl Read) -> Result<String, String> {
    let mut text = String::new();
    let limit = ReadRule::PROMPT.max_bytes;
    let read = stdin.take(limit + 1).read_to_string(&mut text);
    match read {
        Err(error) => Err(format!("cannot read the task from stdin: {error}")),
        Ok(_) if text.len() as u64 > limit => Err("the task on stdin is too long".to_owned()),
        Ok(_) => Ok(text),
    }
}

impl AgentArguments {
    /// Only the name of an agent.
    pub(in crate::cli) fn named(agent: &str) -> Self {
        Self {
            agent: Some(agent.to_owned()),
            ..Self::default()
        }
    }

    /// Returns these flags as a configuration layer.
    pub(in crate::cli) fn overrides(&self) -> Result<PartialSettings, SplitError> {
        let mut cli = PartialCli {
            backend: self.agent.clone(),
            transcript: self
                .transcript
                .clone()
                .or_else(|| self.jq_filter.as_ref().map(|_| "jq".to_owned())),
            jq_filter: self.jq_filter.clone(),
            driver_dir: self.driver_dir.clone(),
            model: self.model.clone(),
            extra_args: (!self.extra.is_empty()).then(|| self.extra.clone()),
            ..PartialCli::default()
        };
        if let Some(command) = &self.agent_cmd {
            let mut words = split_words(command)?.into_iter();
            cli.backend = cli.backend.or_else(|| Some(crate::agent::CUSTOM.to_owned()));
            cli.command = Some(words.next().unwrap_or_default());
            cli.args = Some(words.collect());
        }
        Ok(PartialSettings {
            cli,
            sandbox: PartialSandbox {
                mode: self.sandbox,
                net: self.net.clone(),
                ..PartialSandbox::default()
            },
            ..PartialSettings::default()
        })
    }
}
