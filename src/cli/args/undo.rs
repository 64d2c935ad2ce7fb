//! Arguments of the commands for snapshots: diff, restore, fork and race.

use std::path::PathBuf;

use clap::Args;

use super::run::{AgentArguments, DisplayArguments, RunArguments};

#[derive(Debug, Args)]
pub(in crate::cli) struct DiffArguments {
    /// The run [default: the newest], then an iteration N, or N..M for the changes from the end of N to the end of M
    #[arg(value_name = "RUN] [N|N..M", num_args = 0..=2)]
    pub(in crate::cli) selection: Vec<String>,
    /// List the changed files with their added and removed lines
    #[arg(long)]
    pub(in crate::cli) stat: bool,
    /// Print the changed files as JSON
    #[arg(long, conflicts_with = "stat")]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RestoreArguments {
    /// The run and the iteration whose end is restored (@0: before the first one), or a snapshot id
    #[arg(value_name = "RUN@N", required_unless_present = "resume")]
    pub(in crate::cli) what: Option<String>,
    /// Restore only these files and directories
    #[arg(value_name = "PATH")]
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Overwrite files that were changed since the run ended; their content is recorded first
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// List what would be written and removed, and change nothing
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Complete a restore that was interrupted
    #[arg(long = "continue", conflicts_with_all = ["what", "paths", "dry_run"])]
    pub(in crate::cli) resume: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "dry_run")]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ForkArguments {
    /// The run and the iteration after which the fork continues (@0: before the first one)
    #[arg(value_name = "RUN@N")]
    pub(in crate::cli) what: String,
    /// Create the fork in this empty directory [default: a worktree in ~/.cache]
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) into: Option<PathBuf>,
    /// Only create the fork; `ralph run --continue` in its directory starts it
    #[arg(long)]
    pub(in crate::cli) no_run: bool,
    #[command(flatten)]
    pub(in crate::cli) run: ForkRunArguments,
}

/// How the fork runs.
#[derive(Debug, Args)]
pub(in crate::cli) struct ForkRunArguments {
    /// Another task for the agent
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(in crate::cli) prompt: Option<String>,
    /// Continue even if the configuration has changed
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// Stop after this many iterations, including those before the fork
    #[arg(short = 'n', long, value_name = "N")]
    pub(in crate::cli) max_iterations: Option<u64>,
    /// Stop at this cost in dollars, including that before the fork
    #[arg(long, value_name = "USD")]
    pub(in crate::cli) max_cost: Option<f64>,
    #[command(flatten)]
    pub(in crate::cli) choice: AgentArguments,
    #[command(flatten)]
    pub(in crate::cli) show: DisplayArguments,
}

impl ForkRunArguments {
    /// The arguments of `ralph run --continue`.
    pub(in crate::cli) fn run_arguments(&self) -> RunArguments {
        RunArguments {
            prompt: self.prompt.clone(),
            yes: self.yes,
            max_iterations: self.max_iterations,
            max_cost: self.max_cost,
            show: self.show.clone(),
            ..RunArguments::of(self.choice.clone())
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RaceArguments {
    /// The run and the iteration after which the forks continue (@0: before the first one)
    #[arg(value_name = "RUN@N")]
    pub(in crate::cli) what: String,
    /// The agents, separated by commas
    #[arg(long = "agent", value_name = "NAMES", required = true, value_delimiter = ',')]
    pub(in crate::cli) agents: Vec<String>,
    /// Another task for the agents
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(in crate::cli) prompt: Option<String>,
    /// Continue even if the configuration has changed
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// Run this repository's commands without asking (also: RALPH_TRUST=1)
    #[arg(long)]
    pub(in crate::cli) trust: bool,
    /// Stop each run after this many iterations, including those before the fork
    #[arg(short = 'n', long, value_name = "N")]
    pub(in crate::cli) max_iterations: Option<u64>,
    /// Stop each run at this cost in dollars, including that before the fork
    #[arg(long, value_name = "USD")]
    pub(in crate::cli) max_cost: Option<f64>,
    /// Print the result as JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

impl RaceArguments {
    /// The flags of one contender.
    pub(in crate::cli) fn run_arguments(&self, agent: &str) -> RunArguments {
        RunArguments {
            prompt: self.prompt.clone(),
            max_iterations: self.max_iterations,
            max_cost: self.max_cost,
            ..RunArguments::of(AgentArguments::named(agent))
        }
    }

    /// The command line of one contender.
    pub(in crate::cli) fn words(&self, agent: &str, run: &str) -> Vec<String> {
        let mut words: Vec<String> = ["run", "--continue", run, "--json", "--agent", agent]
            .map(str::to_owned)
            .to_vec();
        let mut option = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                words.push(format!("{name}={value}"));
            }
        };
        option("--prompt", self.prompt.clone());
        option(
            "--max-iterations",
            self.max_iterations.map(|number| number.to_string()),
        );
        option("--max-cost", self.max_cost.map(|cost| cost.to_string()));
        let flags = [(self.yes, "--yes"), (self.trust, "--trust")];
        let given = flags.into_iter().filter(|(is_given, _)| *is_given);
        words.extend(given.map(|(_, flag)| flag.to_owned()));
        words
    }
}
