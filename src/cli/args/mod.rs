//! The command line: what can be asked for.

mod bench;
mod examples;
mod history;
mod playback;
mod project;
mod run;
mod short_help;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(super) use bench::{
    BenchArguments, BenchCommand, BenchListArguments, BenchPlace, BenchReportArguments, BenchRunArguments,
};
pub(super) use examples::with_examples;
pub(super) use history::{
    CleanArguments, ExportArguments, ExportFormat, LogsArguments, OutcomeName, RunsArguments,
    ShowRunArguments, TagName, TimeArgument,
};
pub(super) use playback::{AttachArguments, ReplayArguments, TranscriptArguments};
pub(super) use project::{
    AgentTestArguments, AgentsArguments, AgentsCommand, ConfigCommand, DriversArguments, DriversCommand,
    ForeignName, GatesArguments, GatesCommand, HatsArguments, HatsCommand, InitArguments, SettingsArguments,
    TrustArguments,
};
pub(super) use run::{
    AgentArguments, DisplayArguments, RunArguments, TellArguments, TuiArguments, UnderstandArguments,
};
pub(super) use short_help::shorten_if_requested;

/// Runs a headless coding agent in a loop until the work is verifiably done.
#[derive(Debug, Parser)]
#[command(name = "ralph", version, disable_help_subcommand = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,

    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = ColorArgument::Auto, value_name = "WHEN")]
    pub(super) color: ColorArgument,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the loop (the default when only flags are given)
    Run(Box<RunArguments>),
    /// Let an agent explore this codebase and write codebase_map.md; nothing else may change
    Understand(Box<UnderstandArguments>),
    /// Write a commented ralph.yml and PROMPT.md; overwrites nothing
    Init(InitArguments),
    /// Tell a run something while it is at work: a message for the next prompt, or an order
    Tell(TellArguments),
    /// List the runs of this directory, the newest first
    Runs(RunsArguments),
    /// Show what a run did, iteration by iteration
    Show(ShowRunArguments),
    /// Print what a run showed; -f follows one at work
    Logs(LogsArguments),
    /// Remove old runs
    Clean(CleanArguments),
    /// Write a run down as Markdown, one HTML page, or JSON
    Export(ExportArguments),
    /// List the agents: found, version, how each would be called; or test one
    Agents(Box<AgentsArguments>),
    /// Check agents and configuration; exit 1 if something needed is broken
    Doctor(ListArguments),
    /// List, check or begin driver scripts
    Drivers(Box<DriversArguments>),
    /// Show every setting and its origin; convert another Ralph's file
    Config(Box<SettingsArguments>),
    /// Run any agent, and speak as claude does: for tools that expect claude
    AsClaude(AsClaudeArguments),
    /// Allow what this repository's configuration would execute
    Trust(Box<TrustArguments>),
    /// List the hats, show one, check how they hang together, draw them
    Hats(HatsArguments),
    /// List the gates, or run them by hand as the loop would
    Gates(GatesArguments),
    /// Compare agents: tasks of a file, tried in workspaces of their own, and verified
    Bench(BenchArguments),
    /// Show the whole loop on a throw-away project, with a built-in scripted agent
    Demo(DemoArguments),
    /// Watch a run of this directory: one that another process drives, or one that is over
    Attach(AttachArguments),
    /// Print the events of an agent's raw output
    Transcript(TranscriptArguments),
    /// Show a recorded run, or an agent's raw output, as `ralph run` would have shown it
    Replay(ReplayArguments),
    /// Print the JSON Schema of the journal's records, or of ralph.yml
    ///
    /// With that of ralph.yml an editor completes and checks it: write it to a file, and let the first line of ralph.yml
    /// be `# yaml-language-server: $schema=ralph.schema.json`.
    Schema {
        #[arg(value_enum)]
        of: SchemaOf,
    },
    /// Print a completion script for your shell
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print a page of the manual, or write all of them to a directory
    Man(ManArguments),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorArgument {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) choice: AgentArguments,
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
pub(super) struct AsClaudeArguments {
    /// --agent NAME [-p PROMPT] [--model MODEL]; whatever else claude would take is ignored
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub(super) words: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(super) struct DemoArguments {
    /// Keep the demo's project and say where it is
    #[arg(long)]
    pub(super) keep: bool,
    /// Show the run on the whole terminal, and stay there at its end (the default on one)
    #[arg(long, overrides_with = "no_tui", conflicts_with = "verbose")]
    pub(super) tui: bool,
    /// Print the run line by line
    #[arg(long, overrides_with = "tui")]
    pub(super) no_tui: bool,
    /// Show thinking and tool output in full
    #[arg(short, long)]
    pub(super) verbose: bool,
}

#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// The page of this command [default: ralph itself]
    #[arg(value_name = "COMMAND")]
    pub(super) command: Vec<String>,
    /// Write every page to this directory, as packages want them
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(super) out: Option<PathBuf>,
}

/// What there is a schema of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// A record of the journal, and of `ralph run --json`
    Events,
    /// `ralph.yml`
    Config,
}
