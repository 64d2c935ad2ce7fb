//! Asking after the parts of a configuration: hats, gates, drivers, settings, trust.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

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
    /// Send an agent one small prompt, and tell whether it works; exit 1 if that is not proven
    Test(AgentTestArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AgentTestArguments {
    /// A built-in name, custom, or driver:NAME [default: the one that `ralph run` would use]
    #[arg(value_name = "NAME", conflicts_with = "agent")]
    pub(in crate::cli) name: Option<String>,
    /// How long one call may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(in crate::cli) timeout: u64,
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
pub(in crate::cli) struct GatesArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<GatesCommand>,
    #[command(flatten)]
    pub(in crate::cli) config: ConfigArguments,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum GatesCommand {
    /// All gates (the default)
    List(ConfigArguments),
    /// Run all gates, or one; exit 1 if one fails
    Run {
        name: Option<String>,
        /// Run what this repository would have run, without asking (RALPH_TRUST=1)
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
pub(in crate::cli) struct SettingsArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: ConfigCommand,
    #[command(flatten)]
    pub(in crate::cli) choice: AgentArguments,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ConfigCommand {
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

#[derive(Debug, Args)]
pub(in crate::cli) struct InitArguments {
    /// Let the ralph.yml say what a .ralphrc says [default: the one of this project]
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with = "from_ralphex")]
    from_ralphrc: Option<Option<PathBuf>>,
    /// Let the ralph.yml say what ralphex's config says [default: the one of this project, or else your own]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    from_ralphex: Option<Option<PathBuf>>,
}

impl InitArguments {
    /// Whose file is to be carried over, and which.
    pub(in crate::cli) fn from(&self) -> Option<(ForeignName, Option<&Path>)> {
        let ralphrc = self
            .from_ralphrc
            .as_ref()
            .map(|file| (ForeignName::Ralphrc, file));
        let ralphex = self
            .from_ralphex
            .as_ref()
            .map(|file| (ForeignName::Ralphex, file));
        ralphrc.or(ralphex).map(|(name, file)| (name, file.as_deref()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ForeignName {
    Ralphrc,
    Ralphex,
}

impl fmt::Display for ForeignName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ralphrc => "ralphrc",
            Self::Ralphex => "ralphex",
        })
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TrustArguments {
    /// List what would be executed here, what is allowed, and why
    #[arg(long)]
    pub(in crate::cli) show: bool,
    /// Take back what was allowed for the files here
    #[arg(long, conflicts_with = "show")]
    pub(in crate::cli) revoke: bool,
    /// Print JSON; goes with --show
    #[arg(long, requires = "show")]
    pub(in crate::cli) json: bool,
    /// The tasks file of a bench, in place of the configuration here
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) tasks: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) choice: AgentArguments,
}
