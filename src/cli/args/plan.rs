//! Arguments of `ralph plan`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(in crate::cli) struct PlanArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: PlanCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum PlanCommand {
    /// Check a plan without running it, and list its tasks
    Check(PlanCheckArguments),
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
