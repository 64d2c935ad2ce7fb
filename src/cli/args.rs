//! The command line: what can be asked for.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::{Partial, PartialCli, PartialEventLoop, SplitError, split_words};
use crate::engine::Asking;

use super::run::Rehearsal;

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
    /// Let an agent explore this codebase and write codebase_map.md; nothing else may change
    Understand(Box<UnderstandArguments>),
    /// Write a commented ralph.yml and PROMPT.md; overwrites nothing
    Init,
    /// Tell a run something while it is at work: a message for the next prompt, or an order
    Tell(TellArguments),
    /// List the agents: found, version, how each would be called
    Agents(ListArguments),
    /// Check agents and configuration; exit 1 if something needed is broken
    Doctor(ListArguments),
    /// List, check or begin driver scripts
    Drivers(Box<DriversArguments>),
    /// Show every setting and its origin; convert another Ralph's file
    Config(Box<SettingsArguments>),
    /// Run any agent, and speak as claude does: for tools that expect claude
    #[command(disable_help_flag = true)]
    AsClaude(AsClaudeArguments),
    /// Allow what this repository's configuration would execute
    Trust(Box<TrustArguments>),
    /// List the hats, show one, check how they hang together, draw them
    Hats(HatsArguments),
    /// List the gates, or run them by hand as the loop would
    Gates(GatesArguments),
    /// Show the whole loop on a throw-away project, with a built-in scripted agent
    Demo(DemoArguments),
    /// Print the events of an agent's raw output
    Transcript(TranscriptArguments),
    /// Show a recorded run, or an agent's raw output, as `ralph run` would have shown it
    Replay(ReplayArguments),
    /// Print the JSON Schema of the journal's records, or of ralph.yml
    Schema {
        #[arg(value_enum)]
        of: SchemaOf,
    },
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
    /// Stop when this many tokens have been used
    #[arg(long, value_name = "N")]
    pub(super) max_tokens: Option<u64>,
    /// Go on with a run that has ended in whatever way [default: the newest of this directory]
    #[arg(long = "continue", value_name = "RUN", num_args = 0..=1, conflicts_with = "dry_run")]
    pub(super) resume: Option<Option<String>>,
    /// Go on even if the configuration has changed since
    #[arg(long, requires = "resume")]
    pub(super) yes: bool,
    /// Ask between iterations: go on, go on without asking, or quit
    #[arg(long, conflicts_with = "json")]
    pub(super) interactive: bool,
    /// Show the exact call that an iteration would make; start nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// With --dry-run: print the first iteration's prompt, exactly, and nothing else
    #[arg(long, requires = "dry_run", conflicts_with = "json")]
    pub(super) show_prompt: bool,
    #[command(flatten)]
    pub(super) show: ShowArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: ralph understand 3")]
pub(super) struct UnderstandArguments {
    /// How many iterations at most [default: 5]
    #[arg(value_name = "N")]
    pub(super) iterations: Option<u64>,
    #[command(flatten)]
    pub(super) choice: ChoiceArguments,
    /// Show the exact call that an iteration would make; start nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) show: ShowArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: ralph tell \"the tests live in spec/, not in tests/\"")]
pub(super) struct TellArguments {
    /// The message, or the run and the message [default run: the newest of this directory]
    #[arg(value_name = "[RUN] TEXT", num_args = 0..=2)]
    pub(super) words: Vec<String>,
    /// Rest when the iteration that runs now has ended
    #[arg(long, group = "order")]
    pub(super) pause: bool,
    /// Go on after a pause
    #[arg(long, group = "order")]
    pub(super) resume: bool,
    /// Wait no longer, for a usage limit or anything else
    #[arg(long, group = "order")]
    pub(super) wake: bool,
    /// Stop the iteration that runs now, and go on with the next
    #[arg(long, group = "order")]
    pub(super) stop_iteration: bool,
}

/// How a run is shown.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct ShowArguments {
    /// Print the journal's records as JSON lines, live, and nothing else
    #[arg(long)]
    pub(super) json: bool,
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
    /// Which agent: auto, a built-in name, custom, or driver:NAME
    #[arg(long, value_name = "NAME")]
    pub(super) agent: Option<String>,
    /// Your own agent's command line; the prompt is added as its last argument
    #[arg(long, value_name = "COMMAND")]
    pub(super) agent_cmd: Option<String>,
    /// How to read the agent's output: auto, plain, rtf1, claude, jq …
    #[arg(long, value_name = "FORMAT")]
    pub(super) transcript: Option<String>,
    /// What of each JSON line to read; goes with --transcript jq
    #[arg(long, value_name = "FILTER")]
    pub(super) jq_filter: Option<String>,
    /// Look for driver scripts here first
    #[arg(long, value_name = "DIR")]
    pub(super) driver_dir: Option<PathBuf>,
    /// The model that the agent is to use
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,
    /// Use this file instead of the nearest ralph.yml
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Run what this repository's configuration says, without asking (also: RALPH_TRUST=1)
    #[arg(long)]
    pub(super) trust: bool,
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

/// Whose configuration, and how it is shown.
#[derive(Debug, Args)]
pub(super) struct ConfigArguments {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Use this file instead of the nearest ralph.yml
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct HatsArguments {
    #[command(subcommand)]
    pub(super) command: Option<HatsCommand>,
    #[command(flatten)]
    pub(super) config: ConfigArguments,
}

#[derive(Debug, Subcommand)]
pub(super) enum HatsCommand {
    /// All hats (the default)
    List(ConfigArguments),
    /// One hat, with its instructions
    Show {
        name: String,
        #[command(flatten)]
        config: ConfigArguments,
    },
    /// What is wrong with them; exit 2 if no run could be made
    Validate(ConfigArguments),
    /// Who hands which topic to whom
    Graph {
        /// As a mermaid flowchart
        #[arg(long, conflicts_with = "json")]
        mermaid: bool,
        #[command(flatten)]
        config: ConfigArguments,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct GatesArguments {
    #[command(subcommand)]
    pub(super) command: Option<GatesCommand>,
    #[command(flatten)]
    pub(super) config: ConfigArguments,
}

#[derive(Debug, Subcommand)]
pub(super) enum GatesCommand {
    /// All gates (the default)
    List(ConfigArguments),
    /// Run all gates, or one; exit 1 if one fails
    Run {
        name: Option<String>,
        /// Run what this repository's configuration says, without asking (also: RALPH_TRUST=1)
        #[arg(long)]
        trust: bool,
        #[command(flatten)]
        config: ConfigArguments,
    },
}

#[derive(Debug, Args)]
pub(super) struct DriversArguments {
    #[command(subcommand)]
    pub(super) command: DriversCommand,
    #[command(flatten)]
    pub(super) choice: ChoiceArguments,
}

#[derive(Debug, Subcommand)]
pub(super) enum DriversCommand {
    /// The drivers of this project, and those that come with ralph
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Source a driver, call its hooks, compile its filter; exit 1 if something is broken
    Check {
        /// Which one [default: the configured one, or else all]
        name: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a commented skeleton to .ralph/drivers/NAME.sh
    New { name: String },
}

#[derive(Debug, Args)]
pub(super) struct SettingsArguments {
    #[command(subcommand)]
    pub(super) command: ConfigCommand,
    #[command(flatten)]
    pub(super) choice: ChoiceArguments,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Every setting as it is
    Show {
        /// Say where each comes from: file and line, variable, or command line
        #[arg(long)]
        origin: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the ralph.yml that says the same as another Ralph's file
    Convert {
        #[arg(long, value_enum)]
        from: ForeignName,
        /// The file [default: the one of this project]
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ForeignName {
    Ralphrc,
    Ralphex,
}

#[derive(Debug, Args)]
pub(super) struct AsClaudeArguments {
    /// --agent NAME [-p PROMPT] [--model MODEL]; whatever else claude would take is ignored
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub(super) words: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(super) struct TrustArguments {
    /// List what would be executed here, what is allowed, and why
    #[arg(long)]
    pub(super) show: bool,
    /// Take back what was allowed for the files here
    #[arg(long, conflicts_with = "show")]
    pub(super) revoke: bool,
    /// Print JSON; goes with --show
    #[arg(long, requires = "show")]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) choice: ChoiceArguments,
}

#[derive(Debug, Args)]
pub(super) struct DemoArguments {
    /// Keep the demo's project and say where it is
    #[arg(long)]
    pub(super) keep: bool,
    /// Show thinking and tool output in full
    #[arg(short, long)]
    pub(super) verbose: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: ralph transcript session.jsonl --transcript claude --json | jq -r .type")]
pub(super) struct TranscriptArguments {
    /// What the agent printed; `-` reads stdin
    pub(super) file: PathBuf,
    /// How to read it: plain, rtf1, claude … Nothing is guessed: `auto` is what the run's own header says for a
    /// file in a run's directory (…/iterations/0001/stdout.raw), and plain for any other
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(super) transcript: String,
    /// Print each event as one line of JSON, and nothing else
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ralph replay latest --speed 10\n  ralph replay 20261115-2045\n  ralph replay session.jsonl --transcript claude"
)]
pub(super) struct ReplayArguments {
    /// A run (`latest`, its id or the beginning of it, its directory, its journal), or a file of raw output
    #[arg(value_name = "RUN|FILE")]
    pub(super) what: PathBuf,
    /// How to read raw output, as for `ralph transcript`; a run needs no format [default: auto]
    #[arg(long, value_name = "FORMAT")]
    pub(super) transcript: Option<String>,
    /// Wait between the records as long as it took then, so many times as fast [default: do not wait]
    #[arg(long, value_name = "TIMES", value_parser = speed)]
    pub(super) speed: Option<f64>,
    /// Print the journal's records as JSON lines, and nothing else
    #[arg(long)]
    pub(super) json: bool,
    /// Show thinking and tool output in full
    #[arg(short, long, conflicts_with = "json")]
    pub(super) verbose: bool,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
        _ => Err("must be a number greater than 0, such as 1 or 10".to_owned()),
    }
}

/// What there is a schema of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// A record of the journal, and of `ralph run --json`
    Events,
    /// `ralph.yml`
    Config,
}

impl ChoiceArguments {
    /// These flags as a layer of configuration.
    pub(super) fn wishes(&self) -> Result<Partial, SplitError> {
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

impl RunArguments {
    pub(super) fn rehearsal(&self) -> Rehearsal {
        match (self.dry_run, self.show_prompt) {
            (false, _) => Rehearsal::None,
            (true, false) => Rehearsal::Call,
            (true, true) => Rehearsal::Prompt,
        }
    }

    pub(super) fn asking(&self) -> Asking {
        if self.interactive {
            Asking::BetweenIterations
        } else {
            Asking::Never
        }
    }

    pub(super) fn wishes(&self) -> Result<Partial, SplitError> {
        let mut wishes = self.choice.wishes()?;
        wishes.event_loop = PartialEventLoop {
            prompt: self.prompt.clone(),
            prompt_file: self.prompt_file.clone(),
            max_iterations: self.max_iterations,
            max_runtime_seconds: self.max_runtime,
            max_cost_usd: self.max_cost,
            max_tokens: self.max_tokens,
            ..PartialEventLoop::default()
        };
        Ok(wishes)
    }
}
