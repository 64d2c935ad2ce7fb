//! Arguments of the transcript, replay and attach commands.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(in crate::cli) struct TranscriptArguments {
    /// File with the agent's raw output; `-` reads stdin
    pub(in crate::cli) file: PathBuf,
    /// Transcript format: plain, rtf1, claude … `auto` takes the format from the run's header for a file in a run
    /// directory (…/iterations/0001/stdout.raw), and is plain for any other file
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(in crate::cli) transcript: String,
    /// Print each event as a JSON line
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ReplayArguments {
    /// A run (`latest`, its id or a prefix of it, its directory, its journal), or a file of raw output
    #[arg(value_name = "RUN|FILE")]
    pub(in crate::cli) what: PathBuf,
    /// Format of raw output, as for `ralph transcript`; not used for runs [default: auto]
    #[arg(long, value_name = "FORMAT")]
    pub(in crate::cli) transcript: Option<String>,
    /// Replay with the recorded timing, this many times as fast [default: no delays]
    #[arg(long, value_name = "TIMES", value_parser = speed)]
    pub(in crate::cli) speed: Option<f64>,
    /// Show it in the TUI, and keep it open at the end
    #[arg(long, conflicts_with_all = ["json", "verbose"])]
    pub(in crate::cli) tui: bool,
    /// Print the journal's records as JSON lines only
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Show thinking and tool output in full
    #[arg(short, long, conflicts_with = "json")]
    pub(in crate::cli) verbose: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AttachArguments {
    /// The run: `latest`, its id, a prefix of the id, or its directory [default: latest]
    #[arg(value_name = "RUN")]
    pub(in crate::cli) run: Option<PathBuf>,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
        _ => Err("expected a number greater than 0, such as 1 or 10".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TopArguments {
    /// Print the list once instead of showing it on the whole terminal
    #[arg(long)]
    pub(in crate::cli) once: bool,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
