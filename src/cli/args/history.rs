//! Arguments of the commands for past runs: runs, show, logs, clean and export.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::Span;
use jiff::civil::{Date, DateTime};

use crate::run::OutcomeName;

#[derive(Debug, Args)]
pub(in crate::cli) struct RunsArguments {
    /// List the runs of all projects, with totals by day, project and agent
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// List only runs of this agent
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) agent: Option<String>,
    /// List only runs with this outcome (repeatable)
    #[arg(long, value_enum, value_name = "OUTCOME")]
    pub(in crate::cli) outcome: Vec<OutcomeName>,
    /// List only runs started at this time or later: 2d, 12h, 2026-11-15, 2026-11-15T20:00
    #[arg(long, value_name = "WHEN", value_parser = parse_time)]
    pub(in crate::cli) since: Option<TimeArgument>,
    /// List only runs started at this time or earlier; a date includes the whole day
    #[arg(long, value_name = "WHEN", value_parser = parse_time)]
    pub(in crate::cli) until: Option<TimeArgument>,
    /// Maximum number of runs to list; 0 lists all
    #[arg(short, long, value_name = "N", default_value_t = 20)]
    pub(in crate::cli) number: usize,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ShowRunArguments {
    /// The run: its id, a prefix of the id, or its directory [default: the newest]
    #[arg(value_name = "RUN")]
    pub(in crate::cli) run: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ReceiptArguments {
    /// The run [default: the newest]
    #[arg(value_name = "RUN")]
    pub(in crate::cli) run: Option<PathBuf>,
    /// Print the receipt itself, as JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Copy the receipt, and its signature, to this file
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Sign the receipt with this SSH key, into a file with the extension .sig beside it
    #[arg(long, value_name = "KEY")]
    pub(in crate::cli) sign: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct VerifyArguments {
    /// The run: its id, a prefix of the id, or its directory; or a receipt, whose gates run again [default: the newest run]
    #[arg(value_name = "RUN|RECEIPT")]
    pub(in crate::cli) run: Option<PathBuf>,
    /// Also check that the journal had this hash at some time
    #[arg(long, value_name = "SHA256", value_parser = parse_sha256)]
    pub(in crate::cli) head: Option<String>,
    /// With a receipt: require a signature by one of these keys (a file of allowed signers, as git uses it)
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) signers: Option<PathBuf>,
    /// With a receipt: run its gates even if nothing here confirms their commands
    #[arg(long)]
    pub(in crate::cli) trust: bool,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LogsArguments {
    /// The run: its id, a prefix of the id, or its directory [default: the newest]
    #[arg(value_name = "RUN")]
    pub(in crate::cli) run: Option<PathBuf>,
    /// Follow the output until the run ends
    #[arg(short, long)]
    pub(in crate::cli) follow: bool,
    /// Print only this iteration
    #[arg(short, long, value_name = "N")]
    pub(in crate::cli) iteration: Option<u64>,
    /// Print only entries with this tag (repeatable)
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_name = "TAG",
        conflicts_with = "raw"
    )]
    pub(in crate::cli) tag: Vec<TagName>,
    /// Print the agent's raw output (control sequences are removed on a terminal)
    #[arg(long, conflicts_with_all = ["follow", "json", "verbose"])]
    pub(in crate::cli) raw: bool,
    /// Print the journal's records as JSON lines
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Show thinking and tool output in full
    #[arg(short, long, conflicts_with = "json")]
    pub(in crate::cli) verbose: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CleanArguments {
    /// Number of newest runs to keep [default: 20, or 0 with --older-than]
    #[arg(long, value_name = "N")]
    pub(in crate::cli) keep: Option<usize>,
    /// Remove only runs started before this time: 30d, 12h, 2026-11-01
    #[arg(long, value_name = "WHEN", value_parser = parse_time)]
    pub(in crate::cli) older_than: Option<TimeArgument>,
    /// Show what would be removed without removing it
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ExportArguments {
    /// The run: its id, a prefix of the id, or its directory [default: the newest run]
    #[arg(value_name = "RUN")]
    pub(in crate::cli) run: Option<PathBuf>,
    /// Markdown, a self-contained HTML page, a JSON document, or an OpenTelemetry trace [default: by the file's extension, else md]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(in crate::cli) format: Option<ExportFormat>,
    /// Write to this file, readable only by you [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Overwrite the file
    #[arg(long, requires = "output")]
    pub(in crate::cli) force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ExportFormat {
    Md,
    Html,
    Json,
    Otlp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum TagName {
    Ai,
    Think,
    Sys,
    Tool,
    Prompt,
    User,
}

/// A point in time given on the command line.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) enum TimeArgument {
    /// An age relative to now.
    Ago(Span),
    Day(Date),
    At(DateTime),
}

fn parse_sha256(text: &str) -> Result<String, String> {
    let digits = text.trim().strip_prefix("sha256:").unwrap_or(text.trim());
    match digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(digits.to_ascii_lowercase()),
        false => Err("expected 64 hexadecimal digits, as `ralph verify` prints them".to_owned()),
    }
}

fn parse_time(text: &str) -> Result<TimeArgument, String> {
    let text = text.trim();
    if let Ok(date) = text.parse::<Date>()
        && text.len() <= 10
    {
        return Ok(TimeArgument::Day(date));
    }
    let ago = text
        .parse::<Span>()
        .ok()
        .filter(|span| !span.is_negative() && !span.is_zero());
    ago.map(TimeArgument::Ago)
        .or_else(|| text.parse().ok().map(TimeArgument::At))
        .ok_or_else(|| {
            "expected an age (2d, 12h, 90m), a date (2026-11-15) or a time (2026-11-15T20:00)".to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spans_dates_or_times() {
        for text in ["2d", "12h", "90m", "1w", "1h 30m"] {
            assert!(matches!(parse_time(text), Ok(TimeArgument::Ago(_))), "{text}");
        }
        assert!(matches!(parse_time("2026-11-15"), Ok(TimeArgument::Day(_))));
        for text in ["2026-11-15T20:00", "2026-11-15 20:00:01"] {
            assert!(matches!(parse_time(text), Ok(TimeArgument::At(_))), "{text}");
        }
        for text in ["", "soon", "-2d", "0s", "2026-13-01", "12"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
