//! The command-line arguments.

mod bench;
mod command_groups;
mod emit;
mod examples;
mod history;
mod plan;
mod playback;
mod project;
mod review;
mod run;
mod short_help;
mod undo;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(super) use bench::{
    BenchArguments, BenchCommand, BenchListArguments, BenchLocation, BenchReportArguments, BenchRunArguments,
};
pub(super) use command_groups::with_command_groups;
pub(super) use emit::{EmitArguments, ToolsArguments, WaveArguments, WaveCommand};
pub(super) use examples::with_examples;
pub(super) use history::{
    CleanArguments, ExportArguments, ExportFormat, LogsArguments, ReceiptArguments, RunsArguments,
    ShowRunArguments, TagName, TimeArgument, VerifyArguments,
};
pub(super) use plan::{
    PlanArguments, PlanCheckArguments, PlanCommand, PlanRunArguments, PlanStatusArguments, PlanStopArguments,
    PlanTaskArguments, PlanTellArguments,
};
pub(super) use playback::{AttachArguments, ReplayArguments, TopArguments, TranscriptArguments};
pub(super) use project::{
    AgentReportArguments, AgentTestArguments, AgentsArguments, AgentsCommand, ConfigCommand,
    DriversArguments, DriversCommand, GatesArguments, GatesCommand, HatsArguments, HatsCommand,
    ImportArgument, InitArguments, SettingsArguments, TrustArguments,
};
pub(super) use review::{ReviewArguments, ReviewFormat};
pub(super) use run::{
    AgentArguments, DisplayArguments, RunArguments, TellArguments, TuiArguments, UnderstandArguments,
};
pub(super) use short_help::{shorten_if_requested, without_agent_options};
pub(super) use undo::{DiffArguments, ForkArguments, RaceArguments, RestoreArguments};

/// Runs a headless coding agent in a loop until the work is verified as done.
#[derive(Debug, Parser)]
#[command(name = "ralph", version)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: CliCommand,

    /// When to use color
    #[arg(long, global = true, value_enum, default_value_t = ColorArgument::Auto, value_name = "WHEN")]
    pub(super) color: ColorArgument,
}

#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Run the loop (the default when only flags are given)
    Run(Box<RunArguments>),
    /// Have an agent explore this codebase and write codebase_map.md (no other changes)
    Understand(Box<UnderstandArguments>),
    /// Write a commented ralph.yml and PROMPT.md (never overwrites)
    Init(InitArguments),
    /// Send a message or command to a running loop
    Tell(TellArguments),
    /// Publish an event into the run that calls this (for agents)
    #[command(hide = true)]
    Emit(EmitArguments),
    /// Publish several events with one topic, as ralph-orchestrator's agents do
    #[command(hide = true)]
    Wave(WaveArguments),
    /// Explain what replaces ralph-orchestrator's tools
    #[command(hide = true)]
    Tools(ToolsArguments),
    /// List the runs of this directory, newest first
    Runs(RunsArguments),
    /// Show what a run did, iteration by iteration
    Show(ShowRunArguments),
    /// Show the changes of a run or of one iteration
    Diff(DiffArguments),
    /// Restore the files as they were after an iteration
    Restore(RestoreArguments),
    /// Have other agents review the changes of a run, and print their findings
    Review(Box<ReviewArguments>),
    /// Continue a run from the end of an iteration, as a new run in a worktree
    Fork(Box<ForkArguments>),
    /// Continue a run with several agents side by side; the first verified one wins
    Race(RaceArguments),
    /// Print a run's output (-f to follow)
    Logs(LogsArguments),
    /// Print the receipt of a run: what was verified, on which files
    Receipt(ReceiptArguments),
    /// Check a run's journal, or a receipt and its gates; exit 1 if something was changed
    Verify(VerifyArguments),
    /// Remove old runs
    Clean(CleanArguments),
    /// Export a run as Markdown, HTML or JSON
    Export(ExportArguments),
    /// List agents with their version and command line, or test one
    Agents(Box<AgentsArguments>),
    /// Check agents, configuration and environment; exit 1 if a required check fails
    Doctor(DoctorArguments),
    /// List, check or create driver scripts
    Drivers(Box<DriversArguments>),
    /// Show every setting and its origin, or convert another Ralph's configuration
    Config(Box<SettingsArguments>),
    /// Show the usage limits and costs of your accounts, and which runs wait for them
    Quota(QuotaArguments),
    /// Run any agent behind Claude's CLI interface, for tools that expect claude
    AsClaude(AsClaudeArguments),
    /// Allow the commands that this repository's configuration executes
    Trust(Box<TrustArguments>),
    /// List the hats, show one, validate them and draw the graph
    Hats(HatsArguments),
    /// List the gates, or run them as the loop would
    Gates(GatesArguments),
    /// Benchmark agents on a task file, each in its own workspace
    Bench(BenchArguments),
    /// Run a list of tasks: a Markdown plan, prd.json or issues
    Plan(PlanArguments),
    /// Work on plans that run on many machines (starts ralph-fleet)
    Worker(FleetArguments),
    /// Check an engine that runs plans on many machines (starts ralph-fleet)
    Fleet(FleetArguments),
    /// Demonstrate the loop on a temporary project with a built-in scripted agent
    Demo(DemoArguments),
    /// Watch a run of this directory, whether it is running or has ended
    Attach(AttachArguments),
    /// Show the active runs of all projects; Enter attaches to one
    Top(TopArguments),
    /// Serve a web page with the runs of all projects
    #[cfg(feature = "serve")]
    Serve(ServeArguments),
    /// Print the events of an agent's raw output
    Transcript(TranscriptArguments),
    /// Replay a recorded run, or an agent's raw output, as `ralph run` shows it
    Replay(ReplayArguments),
    /// Print the JSON Schema of the journal's records, of ralph.yml, or of a reviewer's answer
    ///
    /// For completion and validation of ralph.yml in an editor, write the schema to a file and make the first line of
    /// ralph.yml `# yaml-language-server: $schema=ralph.schema.json`.
    Schema {
        #[arg(value_enum)]
        of: SchemaOf,
    },
    /// Print a completion script for your shell
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print a manual page, or write all pages to a directory
    Man(ManArguments),
    /// Read the documentation: list its pages, or print one
    Docs(DocsArguments),
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

#[derive(Debug, Args)]
pub(super) struct DoctorArguments {
    /// Write a file for a bug report: versions, settings and the last debug log, without secrets and prompts
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(super) bundle: Option<PathBuf>,
    /// With --bundle: overwrite an existing FILE
    #[arg(long, requires = "bundle")]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) list: ListArguments,
}

/// The configuration file and the output format.
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
pub(super) struct QuotaArguments {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct AsClaudeArguments {
    /// --agent NAME [-p PROMPT] [--model MODEL]; other claude options are ignored
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub(super) words: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(super) struct FleetArguments {
    /// Options of `ralph-fleet worker` or a command of `ralph-fleet`, which explains them with --help
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub(super) words: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(super) struct DemoArguments {
    /// Keep the demo project and print its path
    #[arg(long)]
    pub(super) keep: bool,
    /// Show the run in the TUI, and keep it open at the end (default on a terminal)
    #[arg(long, overrides_with = "no_tui", conflicts_with = "verbose")]
    pub(super) tui: bool,
    /// Print the run as plain text
    #[arg(long, overrides_with = "tui")]
    pub(super) no_tui: bool,
    /// Show thinking and tool output in full
    #[arg(short, long)]
    pub(super) verbose: bool,
}

#[cfg(feature = "serve")]
#[derive(Debug, Args)]
pub(super) struct ServeArguments {
    /// Open the page in your browser
    #[arg(long)]
    pub(super) open: bool,
    /// Listen on this port of 127.0.0.1; 0 chooses a free one
    #[arg(long, value_name = "PORT", default_value_t = 7411, conflicts_with = "socket")]
    pub(super) port: u16,
    /// Listen on a unix socket that only you can use
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
    /// Allow the page to send commands to runs and to continue them
    #[arg(long)]
    pub(super) steer: bool,
    /// Also answer to this host name, of a reverse proxy on this machine (repeatable)
    #[arg(long, value_name = "HOST")]
    pub(super) proxy_host: Vec<String>,
    /// Listen on this address of a network, encrypted; needs --tls-cert
    #[arg(long, value_name = "IP:PORT", requires = "tls_cert", conflicts_with_all = ["port", "socket"])]
    pub(super) listen: Option<std::net::SocketAddr>,
    /// The certificate for --listen, in PEM format
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(super) tls_cert: Option<PathBuf>,
    /// Its private key [default: in the file of the certificate]
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,
    /// A name of this machine under which --listen is reached (repeatable)
    #[arg(long, value_name = "HOST", requires = "listen")]
    pub(super) host: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// The command to print the page of [default: ralph itself]
    #[arg(value_name = "COMMAND")]
    pub(super) command: Vec<String>,
    /// Write every page to this directory (for packaging)
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(super) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct DocsArguments {
    /// The page, such as gates [default: list the pages]
    #[arg(value_name = "PAGE")]
    pub(super) page: Option<String>,
}

/// The documents that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// A record of the journal, and of `ralph run --json`
    Events,
    /// `ralph.yml`
    Config,
    /// The answer of a reviewer, and of `ralph review`
    Review,
}
