//! Arguments of `ralph plan`.

use clap::{Args, Subcommand};

use super::AgentArguments;

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: PlanCommand,
    /// Run the plan on the workers of an engine: temporal://HOST:PORT/NAMESPACE (see docs/fleet.md)
    #[arg(long, value_name = "URL", global = true)]
    pub(in crate::cli) engine: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum PlanCommand {
    /// Check a plan without running it, and list its tasks
    Check(PlanCheckArguments),
    /// Run the tasks of a plan
    Run(Box<PlanRunArguments>),
    /// Show the state of each task
    Status(PlanStatusArguments),
    /// Send a message to the running agent of a task
    Tell(PlanTellArguments),
    /// Run a parked or skipped task again
    Retry(PlanTaskArguments),
    /// Do not run a task; tasks that need it run without it
    Skip(PlanTaskArguments),
    /// Stop the run of a task and park it; without a task, stop the plan
    Stop(PlanStopArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanCheckArguments {
    /// A Markdown file, a ralphex plan, prd.json, beads:, gh:LABEL or cmd:COMMAND
    #[arg(value_name = "PLAN")]
    pub(in crate::cli) plan: String,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanRunArguments {
    /// A Markdown file, a ralphex plan, prd.json, beads:, gh:LABEL or cmd:COMMAND
    #[arg(value_name = "PLAN", required_unless_present = "resume")]
    pub(in crate::cli) plan: Option<String>,
    /// Run this many tasks in parallel, each in a worktree [default: one, in this directory]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(in crate::cli) jobs: Option<u64>,
    /// Run only these tasks
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub(in crate::cli) only: Vec<String>,
    /// Resume a plan [default: the one that was started last]
    #[arg(long = "continue")]
    pub(in crate::cli) resume: bool,
    /// When the plan is complete, merge its branch into yours
    #[arg(long)]
    pub(in crate::cli) merge: bool,
    /// Close each finished task in its tracker (beads:, gh:)
    #[arg(long)]
    pub(in crate::cli) close: bool,
    /// Stop when the plan has cost this many dollars
    #[arg(long, value_name = "USD", value_parser = super::bench::dollars)]
    pub(in crate::cli) max_cost: Option<f64>,
    /// Print the plan's records as JSON lines
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) choice: AgentArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanStatusArguments {
    /// The plan [default: the one that was started last]
    #[arg(value_name = "PLAN")]
    pub(in crate::cli) plan: Option<String>,
    /// Print it again whenever it changes, until the plan ends
    #[arg(long, conflicts_with = "json")]
    pub(in crate::cli) watch: bool,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanTellArguments {
    /// The task; the start of its id is enough
    #[arg(value_name = "TASK")]
    pub(in crate::cli) task: String,
    /// The message, which is added to the agent's next prompt
    #[arg(value_name = "TEXT")]
    pub(in crate::cli) text: String,
    /// The plan [default: the one that was started last]
    #[arg(long, value_name = "PLAN")]
    pub(in crate::cli) plan: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanTaskArguments {
    /// The task; the start of its id is enough
    #[arg(value_name = "TASK")]
    pub(in crate::cli) task: String,
    /// The plan [default: the one that was started last]
    #[arg(long, value_name = "PLAN")]
    pub(in crate::cli) plan: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanStopArguments {
    /// The task [default: the whole plan]
    #[arg(value_name = "TASK")]
    pub(in crate::cli) task: Option<String>,
    /// The plan [default: the one that was started last]
    #[arg(long, value_name = "PLAN")]
    pub(in crate::cli) plan: Option<String>,
}
