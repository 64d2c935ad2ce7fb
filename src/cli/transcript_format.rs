//! Resolves the transcript format and jq filter of an agent.

use crate::agent::{FilterCode, ResolvedAgent};
use crate::transcript::jq::Filter;
use crate::transcript::{self, Format};

use super::error::CliError;

/// Finds the format and compiles the filter. If a driver's filter does not compile, adds a warning and uses raw lines.
pub(super) fn resolve_format(
    agent: &mut ResolvedAgent,
) -> Result<(&'static Format, Option<Filter>), CliError> {
    let filter = match &agent.filter {
        None => None,
        Some(FilterCode::User(code)) => Some(Filter::compile(code)?),
        Some(FilterCode::Driver { code, script }) => match Filter::compile(code) {
            Ok(filter) => Some(filter),
            Err(error) => {
                let warning = format!("driver {script}: {error}; the filter is not used");
                agent.warnings.push(warning);
                if agent.format == "jq" {
                    agent.format = "plain".to_owned();
                }
                None
            }
        },
    };
    let unknown = || CliError::UnknownTranscript {
        name: agent.format.clone(),
    };
    Ok((transcript::find(&agent.format).ok_or_else(unknown)?, filter))
}
