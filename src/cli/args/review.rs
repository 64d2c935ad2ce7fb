//! The arguments of `ralph review`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::event::Severity;
use crate::policy::Seconds;

use super::AgentArguments;

#[derive(Debug, Args)]
pub(in crate::cli) struct ReviewArguments {
    /// A run [default: the newest], an iteration N or N..M of it, or two git revisions A..B
    #[arg(value_name = "RUN|RANGE", num_args = 0..=2)]
    pub(in crate::cli) selection: Vec<String>,
    /// Only the reviewers of this gate [default: of all review gates]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["agent", "prompt_file"])]
    pub(in crate::cli) gate: Option<String>,
    /// A file that says what to look for
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) prompt_file: Option<PathBuf>,
    /// The lowest severity that fails the review: low, medium, high or critical [default: that of the gate, else high]
    #[arg(long, value_name = "SEVERITY", value_parser = severity)]
    pub(in crate::cli) block: Option<Severity>,
    /// Maximum duration of each reviewer
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub(in crate::cli) timeout: Seconds,
    /// Format of the findings
    #[arg(long, value_enum, default_value_t = ReviewFormat::Text, value_name = "FORMAT")]
    pub(in crate::cli) format: ReviewFormat,
    /// Print JSON; same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) choice: AgentArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ReviewFormat {
    Text,
    Json,
    Sarif,
}

impl ReviewArguments {
    pub(in crate::cli) fn format(&self) -> ReviewFormat {
        match self.json {
            true => ReviewFormat::Json,
            false => self.format,
        }
    }
}

fn severity(text: &str) -> Result<Severity, String> {
    serde_json::from_value(serde_json::Value::String(text.to_lowercase()))
        .map_err(|_| "expected low, medium, high or critical".to_owned())
}
