//! Asking for a run, and talking to one.

use std::path::PathBuf;

use clap::Args;

use crate::cli::run::DryRun;
use crate::config::{Mode, Partial, PartialCli, PartialEventLoop, SplitError, split_words};
use crate::engine::Asking;

/// Where the limits stand in the help: there are too many options for one list.
const LIMITS: &str = "Limits";

#[derive(Debug, Args)]
pub(in crate::cli) struct RunArguments {
    /// What the agent is to do
    #[arg(
        short,
        long,
        value_name = "TEXT",
        conflicts_with = "prompt_file",
        allow_hyphen_values = true
    )]
    pub(in crate::cli) prompt: Option<String>,
    /// Read it from a file, anew for each iteration [default: PROMPT.md]
    #[arg(short = 'P', long, value_name = "FILE")]
    pub(in crate::cli) prompt_file: Option<PathBuf>,
    /// Go on with a run, however it has ended [default: the newest of this directory]
    #[arg(long = "continue", value_name = "RUN", num_args = 0..=1, conflicts_with = "dry_run")]
    pub(in crate::cli) resume: Option<Option<String>>,
    /// Go on even if the configuration has changed since
    #[arg(long, requires = "resume")]
    pub(in crate::cli) yes: bool,
    /// Whether the agent works by itself, or on its own screen, which you see and type into [default: autonomous]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(in crate::cli) mode: Option<ModeArgument>,
    /// Ask between iterations: go on, go on without asking, or quit
    #[arg(long, conflicts_with = "json")]
    pub(in crate::cli) interactive: bool,
    /// Show the exact call that an iteration would make; start nothing
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// With --dry-run: print the first iteration's prompt, exactly, and nothing else
    #[arg(long, requires = "dry_run", conflicts_with = "json")]
    pub(in crate::cli) show_prompt: bool,
    #[command(flatten)]
    pub(in crate::cli) choice: AgentArguments,
    /// Stop after this many iterations [default: 100]
    #[arg(short = 'n', long, value_name = "N", help_heading = LIMITS)]
    pub(in crate::cli) max_iterations: Option<u64>,
    /// Stop after this many seconds [default: 14400]
    #[arg(long, value_name = "SECONDS", help_heading = LIMITS)]
    pub(in crate::cli) max_runtime: Option<u64>,
    /// Stop when this much has been spent
    #[arg(long, value_name = "USD", help_heading = LIMITS)]
    pub(in crate::cli) max_cost: Option<f64>,
    /// Stop when this many tokens have been used
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(in crate::cli) max_tokens: Option<u64>,
    #[command(flatten)]
    pub(in crate::cli) show: DisplayArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum ModeArgument {
    Autonomous,
    Interactive,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct UnderstandArguments {
    /// How many iterations at most [default: 5]
    #[arg(value_name = "N")]
    pub(in crate::cli) iterations: Option<u64>,
    /// Show the exact call that an iteration would make; start nothing
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    #[command(flatten)]
    pub(in crate::cli) choice: AgentArguments,
    #[command(flatten)]
    pub(in crate::cli) show: DisplayArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TellArguments {
    /// The message, or the run and the message [default run: the newest of this directory]
    #[arg(value_name = "[RUN] TEXT", num_args = 0..=2)]
    pub(in crate::cli) words: Vec<String>,
    /// Rest when the iteration that runs now has ended
    #[arg(long, group = "order")]
    pub(in crate::cli) pause: bool,
    /// Go on after a pause
    #[arg(long, group = "order")]
    pub(in crate::cli) resume: bool,
    /// Wait no longer, for a usage limit or anything else
    #[arg(long, group = "order")]
    pub(in crate::cli) wake: bool,
    /// Stop the iteration that runs now, and go on with the next
    #[arg(long, group = "order")]
    pub(in crate::cli) stop_iteration: bool,
}

/// How a run is shown.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Display")]
pub(in crate::cli) struct DisplayArguments {
    /// Print the journal's records as JSON lines, live, and nothing else
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) screen: TuiArguments,
    /// Print only the final report
    #[arg(short, long, conflicts_with_all = ["verbose", "json"])]
    pub(in crate::cli) quiet: bool,
    /// Show thinking and tool output in full
    #[arg(short, long, conflicts_with = "json")]
    pub(in crate::cli) verbose: bool,
}

/// On the whole terminal, or line by line.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Display")]
pub(in crate::cli) struct TuiArguments {
    /// Show the run on the whole terminal (the default on one)
    #[arg(long, overrides_with = "no_tui", conflicts_with_all = ["json", "quiet", "verbose", "dry_run"])]
    pub(in crate::cli) tui: bool,
    /// Print the run line by line
    #[arg(long, overrides_with = "tui")]
    pub(in crate::cli) no_tui: bool,
}

/// Which agent, by whose configuration.
#[derive(Debug, Args)]
#[command(next_help_heading = "Agent")]
pub(in crate::cli) struct AgentArguments {
    /// Which agent: auto, a built-in name, custom, or driver:NAME
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) agent: Option<String>,
    /// Your own agent's command line; the prompt is added as its last argument
    #[arg(long, value_name = "COMMAND")]
    pub(in crate::cli) agent_cmd: Option<String>,
    /// How to read the agent's output: auto, plain, rtf1, claude, jq …
    #[arg(long, value_name = "FORMAT")]
    pub(in crate::cli) transcript: Option<String>,
    /// What of each JSON line to read; goes with --transcript jq
    #[arg(long, value_name = "FILTER")]
    pub(in crate::cli) jq_filter: Option<String>,
    /// Look for driver scripts here first
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) driver_dir: Option<PathBuf>,
    /// The model that the agent is to use
    #[arg(long, value_name = "MODEL")]
    pub(in crate::cli) model: Option<String>,
    /// Use this file instead of the nearest ralph.yml
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) config: Option<PathBuf>,
    /// Run what this repository would have run, without asking (RALPH_TRUST=1)
    #[arg(long)]
    pub(in crate::cli) trust: bool,
    /// Arguments for the agent itself, after `--`
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

    pub(in crate::cli) fn asking(&self) -> Asking {
        if self.interactive {
            Asking::BetweenIterations
        } else {
            Asking::Never
        }
    }

    pub(in crate::cli) fn overrides(&self) -> Result<Partial, SplitError> {
        let mut overrides = self.choice.overrides()?;
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
            ..PartialEventLoop::default()
        };
        Ok(overrides)
    }
}

impl AgentArguments {
    /// These flags as a layer of configuration.
    pub(in crate::cli) fn overrides(&self) -> Result<Partial, SplitError> {
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
        Ok(Partial {
            cli,
            ..Partial::default()
        })
    }
}
