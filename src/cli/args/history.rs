//! Asking for runs that were: listing, looking at, reading, exporting and removing them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::Span;
use jiff::civil::{Date, DateTime};

#[derive(Debug, Args)]
pub(in crate::cli) struct RunsArguments {
    /// Only runs of this agent
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) agent: Option<String>,
    /// Only runs that ended so; may be given several times
    #[arg(long, value_enum, value_name = "OUTCOME")]
    pub(in crate::cli) outcome: Vec<OutcomeName>,
    /// Only runs that began at this time or later: 2d, 12h, 2026-11-15, 2026-11-15T20:00
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(in crate::cli) since: Option<TimeArgument>,
    /// Only runs that began at this time or earlier; a date means the whole day
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(in crate::cli) until: Option<TimeArgument>,
    /// Show so many at most; 0 shows all
    #[arg(short, long, value_name = "N", default_value_t = 20)]
    pub(in crate::cli) number: usize,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ShowRunArguments {
    /// Which run: its id, the beginning of it, or its directory [default: the newest]
    #[arg(value_name = "RUN")]
    pub(in crate::cli) run: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LogsArguments {
    /// Which run: its id, the beginning of it, or its directory [default: the newest]
    #[arg(value_name = "RUN")]
    pub(in crate::cli) run: Option<PathBuf>,
    /// Go on with what a run at work adds, until it ends
    #[arg(short, long)]
    pub(in crate::cli) follow: bool,
    /// Only this iteration
    #[arg(short, long, value_name = "N")]
    pub(in crate::cli) iteration: Option<u64>,
    /// Only what was said under this tag; may be given several times
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_name = "TAG",
        conflicts_with = "raw"
    )]
    pub(in crate::cli) tag: Vec<TagName>,
    /// The agent's own output, byte for byte (on a terminal without what it would obey)
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
    /// Keep the newest so many [default: 20, or 0 with --older-than]
    #[arg(long, value_name = "N")]
    pub(in crate::cli) keep: Option<usize>,
    /// Remove only runs that began before this: 30d, 12h, 2026-11-01
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(in crate::cli) older_than: Option<TimeArgument>,
    /// Say what would be removed; remove nothing
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ExportArguments {
    /// Which run: `latest`, its id, the beginning of it, or its directory
    #[arg(value_name = "RUN")]
    pub(in crate::cli) run: PathBuf,
    /// As what: a Markdown text, one HTML page that needs nothing else, or one JSON document
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ExportFormat::Md)]
    pub(in crate::cli) format: ExportFormat,
    /// Write to this file, which only you may read [default: stdout]
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
}

/// How a run stands, in one word. What each means is in docs/runs.md: a word on each would fill a screen of help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::cli) enum OutcomeName {
    Complete,
    Failed,
    Auth,
    Limit,
    Interrupted,
    Running,
    Died,
    Broken,
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

/// A point in time as people say it.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) enum TimeArgument {
    /// So long ago.
    Ago(Span),
    Day(Date),
    At(DateTime),
}

fn moment(text: &str) -> Result<TimeArgument, String> {
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
            "say how long ago (2d, 12h, 90m), a date (2026-11-15) or a time (2026-11-15T20:00)".to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_spans_dates_or_times() {
        for text in ["2d", "12h", "90m", "1w", "1h 30m"] {
            assert!(matches!(moment(text), Ok(TimeArgument::Ago(_))), "{text}");
        }
        assert!(matches!(moment("2026-11-15"), Ok(TimeArgument::Day(_))));
        for text in ["2026-11-15T20:00", "2026-11-15 20:00:01"] {
            assert!(matches!(moment(text), Ok(TimeArgument::At(_))), "{text}");
        }
        for text in ["", "soon", "-2d", "0s", "2026-13-01", "12"] {
            assert!(moment(text).is_err(), "{text}");
        }
    }
}
