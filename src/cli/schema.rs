//! `ralph schema`: prints the JSON Schema of the journal's records, of `ralph.yml` or of a reviewer's answer.

use crate::config;
use crate::event;
use crate::ui::Terminal;
use crate::{agent, transcript};

use super::args::SchemaOf;
use super::error::CliError;
use super::exit::Exit;

pub(super) fn schema(of: SchemaOf, terminal: &Terminal) -> Result<Exit, CliError> {
    let schema = match of {
        SchemaOf::Events => event::schema(),
        SchemaOf::Config => config::schema(&agent::names(), &transcript::names().collect::<Vec<_>>()),
        SchemaOf::Review => event::review_schema(),
    };
    let text = serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n";
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}
