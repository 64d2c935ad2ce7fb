//! Arguments of the commands for snapshots: diff and restore.

use std::path::PathBuf;

use clap::Args;

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
