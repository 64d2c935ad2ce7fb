//! In which format, and with which filter, an agent's output is read.

use crate::agent::{FilterCode, ResolvedAgent};
use crate::transcript::jq::Filter;
use crate::transcript::{self, Format};

use super::error::CliError;

/// Finds the format and compiles the filter. A driver's filter that does not compile leaves the raw lines, and a
/// warning with the agent.
pub(super) fn resolve_format(
    agent: &mut ResolvedAgent,
) -> Result<(&'static Format, Option<Filter>), CliError> {
    let filter = match &agent.filter {
        None => None,
        Some(FilterCode::User(code)) => Some(Filter::compile(code)?),
        Some(FilterCode::Driver { code, place }) => match Filter::compile(code) {
            Ok(filter) => Some(filter),
            Err(error) => {
                let warning = format!("the driver {place}: {error}; it is not used");
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
