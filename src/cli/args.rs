//! The command line: what can be asked for.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::{Partial, PartialCli, PartialEventLoop, SplitError, split_words};

/// Runs a headless coding agent in a loop until the work is verifiably done.
#[derive(Debug, Parser)]
#[command(
    name = "ralph",
    version,
    disable_help_subcommand = true,
    after_help = "Try it without an agent: ralph demo\nRun it on your project:  ralph run -p \"make the tests pass\""
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,

    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = ColourWish::Auto, value_name = "WHEN")]
    pub(super) color: ColourWish,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the loop (the default when only flags are given)
    Run(Box<RunArguments>),
    /// List the agents: found, version, how each would be called
    Agents(ListArguments),
    /// Check agents and configuration; exit 1 if something needed is broken
    Doctor(ListArguments),
    /// Show the whole loop on a throw-away project, with a built-in scripted agent
    Demo(DemoArguments),
    /// Watch a run of this directory: one that another process drives, or one that is over
    Attach(AttachArguments),
    /// Print a completion script for your shell
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ColourWish {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: ralph run --agent codex -p \"make the tests pass\" --max-iterations 20")]
pub(super) struct RunArguments {
    /// What the agent is to do
    #[arg(
        short,
        long,
        value_name = "TEXT",
        conflicts_with = "prompt_file",
        allow_hyphen_values = true
    )]
    pub(super) prompt: Option<String>,
    /// Read the prompt from a file, anew for each iteration [default: PROMPT.md]
    #[arg(short = 'P', long, value_name = "FILE")]
    pub(super) prompt_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) choice: ChoiceArguments,
    /// Stop after this many iterations [default: 100]
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) max_iterations: Option<u64>,
    /// Stop after this many seconds [default: 14400]
    #[arg(long, value_name = "SECONDS")]
    pub(super) max_runtime: Option<u64>,
    /// Stop when this much has been spent
    #[arg(long, value_name = "USD")]
    pub(super) max_cost: Option<f64>,
    /// Show the exact call that an iteration would make; start nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print the journal's records as JSON lines, live, and nothing else
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) screen: ScreenArguments,
    /// Print only the final report
    #[arg(short, long, conflicts_with_all = ["verbose", "json"])]
    pub(super) quiet: bool,
    /// Show thinking and tool output in full
    #[arg(short, long, conflicts_with = "json")]
    pub(super) verbose: bool,
}

/// Which agent, by whose configuration.
#[derive(Debug, Args)]
pub(super) struct ChoiceArguments {
    /// Which agent: auto, a built-in name, or custom
    #[arg(long, value_name = "NAME")]
    pub(super) agent: Option<String>,
    /// Your own agent's command line; the prompt is added as its last argument
    #[arg(long, value_name = "COMMAND")]
    pub(super) agent_cmd: Option<String>,
    /// How to read the agent's output: auto, plain, rtf1, claude …
    #[arg(long, value_name = "FORMAT")]
    pub(super) transcript: Option<String>,
    /// The model that the agent is to use
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,
    /// Use this file instead of the nearest ralph.yml
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Arguments for the agent itself, after `--`
    #[arg(last = true, value_name = "ARGS")]
    pub(super) extra: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) choice: ChoiceArguments,
}

/// On the whole terminal, or line by line.
#[derive(Debug, Args)]
pub(super) struct ScreenArguments {
    /// Show the run on the whole terminal (the default on one)
    #[arg(long, overrides_with = "no_tui", conflicts_with_all = ["json", "quiet", "verbose", "dry_run"])]
    pub(super) tui: bool,
    /// Print the run line by line
    #[arg(long, overrides_with = "tui")]
    pub(super) no_tui: bool,
}

#[derive(Debug, Args)]
pub(super) struct AttachArguments {
    /// The run: its id, the beginning of it, or its directory [default: the newest]
    #[arg(value_name = "RUN")]
    pub(super) run: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct DemoArguments {
    /// Keep the demo's project and say where it is
    #[arg(long)]
    pub(super) keep: bool,
    /// Show the run on the whole terminal, and stay there at its end
    #[arg(long, overrides_with = "no_tui", conflicts_with = "verbose")]
    pub(super) tui: bool,
    /// Print the run line by line
    #[arg(long, overrides_with = "tui")]
    pub(super) no_tui: bool,
    /// Show thinking and tool output in full
    #[arg(short, long)]
    pub(super) verbose: bool,
}

impl ChoiceArguments {
    /// These flags as a layer of configuration.
    pub(super) fn wishes(&self) -> Result<Partial, SplitError> {
        let mut cli = PartialCli {
            backend: self.agent.clone(),
            transcript: self.transcript.clone(),
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

impl RunArguments {
    pub(super) fn wishes(&self) -> Result<Partial, SplitError> {
        let mut wishes = self.choice.wishes()?;
        wishes.event_loop = PartialEventLoop {
            prompt: self.prompt.clone(),
            prompt_file: self.prompt_file.clone(),
            max_iterations: self.max_iterations,
            max_runtime_seconds: self.max_runtime,
            max_cost_usd: self.max_cost,
            ..PartialEventLoop::default()
        };
        Ok(wishes)
    }
}
