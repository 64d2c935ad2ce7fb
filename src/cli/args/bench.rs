//! Arguments of `ralph bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(in crate::cli) struct BenchArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum BenchCommand {
    /// Run the tasks of a file with each agent, each in its own workspace, and verify the results
    Run(BenchRunArguments),
    /// Print the results table of a bench
    Report(BenchReportArguments),
    /// List the benches, newest first
    List(BenchListArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BenchRunArguments {
    /// The tasks file
    #[arg(value_name = "TASKS", required_unless_present = "resume")]
    pub(in crate::cli) tasks: Option<PathBuf>,
    /// Agents to compare: from the file, built-in, NAME@MODEL, driver:NAME [default: all in the file, or auto]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', conflicts_with = "resume")]
    pub(in crate::cli) agent: Vec<String>,
    /// Run only these tasks
    #[arg(long, value_name = "TASK,…", value_delimiter = ',', conflicts_with = "resume")]
    pub(in crate::cli) only: Vec<String>,
    /// Attempts per agent and task [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(in crate::cli) repeat: Option<u64>,
    /// Number of parallel attempts [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(in crate::cli) jobs: Option<u64>,
    /// Stop when the whole bench has cost this many dollars
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(in crate::cli) max_cost: Option<f64>,
    /// Resume an interrupted bench, running only the missing attempts [default: the newest]
    #[arg(long = "continue", value_name = "BENCH", num_args = 0..=1)]
    pub(in crate::cli) resume: Option<Option<String>>,
    /// Remove each workspace after verification; journals are kept
    #[arg(long)]
    pub(in crate::cli) discard: bool,
    /// Run the commands of the tasks file without asking (also: RALPH_TRUST=1)
    #[arg(long)]
    pub(in crate::cli) trust: bool,
    /// Print JSON instead of the table
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) location: BenchLocation,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BenchReportArguments {
    /// The bench: `latest`, its id, a prefix of the id, or its directory
    #[arg(value_name = "BENCH", default_value = "latest")]
    pub(in crate::cli) bench: String,
    /// Print JSON, with every cell
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) location: BenchLocation,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BenchListArguments {
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) location: BenchLocation,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BenchLocation {
    /// Directory for benches [default: ~/.local/state/ralph/bench]
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) dir: Option<PathBuf>,
}

pub(super) fn dollars(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("expected a number of dollars greater than 0, such as 2.50".to_owned()),
    }
}
