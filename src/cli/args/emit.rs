//! Arguments of the commands that agents call.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(in crate::cli) struct EmitArguments {
    /// The topic, such as build.done; a completion marker claims that the task is done
    #[arg(value_name = "TOPIC")]
    pub(in crate::cli) topic: String,
    /// What the next hat needs to know
    #[arg(
        value_name = "PAYLOAD",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub(in crate::cli) payload: String,
    /// Deliver the event to this hat, whatever its triggers are
    #[arg(long, value_name = "HAT")]
    pub(in crate::cli) target: Option<String>,
    /// Ignored: a payload is always passed on unchanged
    #[arg(short, long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct WaveArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: WaveCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum WaveCommand {
    /// Publish one event for each payload
    Emit {
        /// The topic of all events
        topic: String,
        /// One payload for each event
        #[arg(long, num_args = 1.., required = true, allow_hyphen_values = true)]
        payloads: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ToolsArguments {
    /// The arguments of ralph-orchestrator's `tools`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub(in crate::cli) words: Vec<std::ffi::OsString>,
}
