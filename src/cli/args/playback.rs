//! Asking for what was recorded.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(in crate::cli) struct TranscriptArguments {
    /// What the agent printed; `-` reads stdin
    pub(in crate::cli) file: PathBuf,
    /// How to read it: plain, rtf1, claude … Nothing is guessed: `auto` is what the run's own header says for a
    /// file in a run's directory (…/iterations/0001/stdout.raw), and plain for any other
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(in crate::cli) transcript: String,
    /// Print each event as one line of JSON, and nothing else
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ReplayArguments {
    /// A run (`latest`, its id or the beginning of it, its directory, its journal), or a file of raw output
    #[arg(value_name = "RUN|FILE")]
    pub(in crate::cli) what: PathBuf,
    /// How to read raw output, as for `ralph transcript`; a run needs no format [default: auto]
    #[arg(long, value_name = "FORMAT")]
    pub(in crate::cli) transcript: Option<String>,
    /// Wait between the records as long as it took then, so many times as fast [default: do not wait]
    #[arg(long, value_name = "TIMES", value_parser = speed)]
    pub(in crate::cli) speed: Option<f64>,
    /// Show it on the whole terminal, and stay there at its end
    #[arg(long, conflicts_with_all = ["json", "verbose"])]
    pub(in crate::cli) tui: bool,
    /// Print the journal's records as JSON lines, and nothing else
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Show thinking and tool output in full
    #[arg(short, long, conflicts_with = "json")]
    pub(in crate::cli) verbose: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AttachArguments {
    /// The run: `latest`, its id or the beginning of it, or its directory [default: latest]
    #[arg(value_name = "RUN")]
    pub(in crate::cli) run: Option<PathBuf>,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
        _ => Err("must be a number greater than 0, such as 1 or 10".to_owned()),
    }
}
