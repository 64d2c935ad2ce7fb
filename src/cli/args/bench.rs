//! Asking for a bench.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(in crate::cli) struct BenchArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum BenchCommand {
    /// Let agents try the tasks of a file, each in a workspace of its own, and verify what they did
    Run(BenchRunArguments),
    /// Show the table of a bench again
    Report(BenchReportArguments),
    /// List the benches, the newest first
    List(BenchListArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BenchRunArguments {
    /// The file that says which tasks there are
    #[arg(value_name = "TASKS", required_unless_present = "resume")]
    pub(in crate::cli) tasks: Option<PathBuf>,
    /// Which agents: of the file, built-in, NAME@MODEL, driver:NAME [default: all of the file, or auto]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', conflicts_with = "resume")]
    pub(in crate::cli) agent: Vec<String>,
    /// Only these tasks
    #[arg(long, value_name = "TASK,…", value_delimiter = ',', conflicts_with = "resume")]
    pub(in crate::cli) only: Vec<String>,
    /// How often each agent tries each task [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(in crate::cli) repeat: Option<u64>,
    /// How many run at the same time [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(in crate::cli) jobs: Option<u64>,
    /// Stop when the whole bench has cost this much
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(in crate::cli) max_cost: Option<f64>,
    /// Go on with a bench that was cut off: only what is missing runs [default: the newest]
    #[arg(long = "continue", value_name = "BENCH", num_args = 0..=1)]
    pub(in crate::cli) resume: Option<Option<String>>,
    /// Remove each workspace once it is verified; the journals stay
    #[arg(long)]
    pub(in crate::cli) discard: bool,
    /// Run what the tasks file says, without asking (also: RALPH_TRUST=1)
    #[arg(long)]
    pub(in crate::cli) trust: bool,
    /// Print JSON in place of the table
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) place: BenchPlace,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BenchReportArguments {
    /// Which bench: `latest`, its id, the beginning of it, or its directory
    #[arg(value_name = "BENCH", default_value = "latest")]
    pub(in crate::cli) bench: String,
    /// Print JSON, with every cell
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) place: BenchPlace,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BenchListArguments {
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) place: BenchPlace,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BenchPlace {
    /// Where benches are kept [default: ~/.local/state/ralph/bench]
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) dir: Option<PathBuf>,
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("a number of dollars above 0 is needed, such as 2.50".to_owned()),
    }
}
