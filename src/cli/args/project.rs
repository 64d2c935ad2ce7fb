//! Arguments of the commands for the project: agents, hats, gates, drivers, config, init and trust.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use crate::policy::Seconds;

use super::{AgentArguments, ConfigArguments, ListArguments};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct AgentsArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<AgentsCommand>,
    #[command(flatten)]
    pub(in crate::cli) list: ListArguments,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum AgentsCommand {
    /// Send an agent a short prompt and report whether it works; exit 1 if it fails or is inconclusive
    Test(AgentTestArguments),
    /// Write the agent's output without its texts, to attach to a bug report
    Report(AgentReportArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AgentReportArguments {
    /// The run [default: the newest in this directory]
    #[arg(value_name = "RUN")]
    pub(in crate::cli) run: Option<PathBuf>,
    /// The iteration [default: the last]
    #[arg(long, value_name = "N")]
    pub(in crate::cli) iteration: Option<u64>,
    /// The file to write [default: ralph-report-RUN-N.txt]
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AgentTestArguments {
    /// A built-in name, custom, or driver:NAME [default: the agent that `ralph run` uses]
    #[arg(value_name = "NAME", conflicts_with = "agent")]
    pub(in crate::cli) name: Option<String>,
    /// Timeout of one call, such as 90s or 2m
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = up_to_an_hour)]
    pub(in crate::cli) timeout: Seconds,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) choice: AgentArguments,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct HatsArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<HatsCommand>,
    #[command(flatten)]
    pub(in crate::cli) config: ConfigArguments,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum HatsCommand {
    /// List all hats (the default)
    List(ConfigArguments),
    /// Show one hat with its instructions
    Show {
        /// The hat
        name: String,
        #[command(flatten)]
        config: ConfigArguments,
    },
    /// Check the hats for problems; exit 2 if they cannot be run
    Validate(ConfigArguments),
    /// Draw which hat publishes which topic to which hat
    Graph {
        /// Print a Mermaid flowchart
        #[arg(long, conflicts_with = "json")]
        mermaid: bool,
        #[command(flatten)]
        config: ConfigArguments,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct GatesArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<GatesCommand>,
    #[command(flatten)]
    pub(in crate::cli) config: ConfigArguments,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum GatesCommand {
    /// List all gates (the default)
    List(ConfigArguments),
    /// Run all gates, or one; exit 1 if one fails
    Run {
        /// The gate [default: all]
        name: Option<String>,
        /// Run this repository's commands without asking (also: RALPH_TRUST=1)
        #[arg(long)]
        trust: bool,
        #[command(flatten)]
        config: ConfigArguments,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct DriversArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: DriversCommand,
    #[command(flatten)]
    pub(in crate::cli) choice: AgentArguments,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum DriversCommand {
    /// List the drivers of this project and the built-in ones
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Source a driver, call its hooks, compile its filter; exit 1 if a check fails
    Check {
        /// The driver [default: the configured one, otherwise all]
        name: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a commented skeleton to .ralph/drivers/NAME.sh
    New {
        /// The name of the new driver
        name: String,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SettingsArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: ConfigCommand,
    #[command(flatten)]
    pub(in crate::cli) choice: AgentArguments,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ConfigCommand {
    /// Print every setting and its value
    Show {
        /// Print the origin of each setting: file and line, variable, or command line
        #[arg(long)]
        origin: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Convert another Ralph's configuration to ralph.yml and print it
    Convert {
        /// The program whose configuration is converted
        #[arg(long, value_enum)]
        from: ImportArgument,
        /// The file to convert [default: this project's file]
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct InitArguments {
    /// Convert a .ralphrc to ralph.yml [default: this project's file]
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with = "from_ralphex")]
    from_ralphrc: Option<Option<PathBuf>>,
    /// Convert a ralphex configuration to ralph.yml [default: this project's file, otherwise your own]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    from_ralphex: Option<Option<PathBuf>>,
    /// Convert a ralph.yml of ralph-orchestrator
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from_ralphrc", "from_ralphex"])]
    from_orchestrator: Option<PathBuf>,
    /// Convert a kstrl.toml to ralph.yml [default: this project's file]
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        conflicts_with_all = ["from_ralphrc", "from_ralphex", "from_orchestrator"]
    )]
    from_kstrl: Option<Option<PathBuf>>,
}

impl InitArguments {
    /// The kind of file to convert, and its path if given.
    pub(in crate::cli) fn from(&self) -> Option<(ImportArgument, Option<&Path>)> {
        let ralphrc = self
            .from_ralphrc
            .as_ref()
            .map(|file| (ImportArgument::Ralphrc, file));
        let ralphex = self
            .from_ralphex
            .as_ref()
            .map(|file| (ImportArgument::Ralphex, file));
        let kstrl = self.from_kstrl.as_ref().map(|file| (ImportArgument::Kstrl, file));
        let orchestrator = self
            .from_orchestrator
            .as_deref()
            .map(|file| (ImportArgument::Orchestrator, Some(file)));
        let others = ralphrc.or(ralphex).or(kstrl);
        others
            .map(|(name, file)| (name, file.as_deref()))
            .or(orchestrator)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ImportArgument {
    Ralphrc,
    Ralphex,
    Orchestrator,
    Kstrl,
}

impl fmt::Display for ImportArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ralphrc => "ralphrc",
            Self::Ralphex => "ralphex",
            Self::Orchestrator => "orchestrator",
            Self::Kstrl => "kstrl",
        })
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TrustArguments {
    /// List the commands that would run here, which are allowed, and why
    #[arg(long)]
    pub(in crate::cli) show: bool,
    /// Revoke trust for the files here
    #[arg(long, conflicts_with = "show")]
    pub(in crate::cli) revoke: bool,
    /// Print JSON (requires --show)
    #[arg(long, requires = "show")]
    pub(in crate::cli) json: bool,
    /// Use the tasks file of a bench instead of the configuration here
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) tasks: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) choice: AgentArguments,
}

fn up_to_an_hour(text: &str) -> Result<Seconds, String> {
    match text.parse::<Seconds>() {
        Ok(timeout @ Seconds(1..=3600)) => Ok(timeout),
        Ok(_) => Err("expected a duration from 1s to 1h".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
