//! Checks the configured allowed tools against the patterns of a driver.

use super::{Driver, DriverError, Supported};

/// Checks the comma-separated allowed tools. Returns a warning if the setting has no effect; an unknown tool is an
/// error.
pub fn check_tools(driver: &Driver, allowed: &str) -> Result<Option<String>, DriverError> {
    let requested: Vec<&str> = allowed
        .split(',')
        .map(str::trim)
        .filter(|tool| !tool.is_empty())
        .collect();
    if requested.is_empty() {
        return Ok(None);
    }
    if driver.supports.tool_allowlist == Supported::No {
        return Ok(Some(format!(
            "{} does not support tool allowlists; driver.allowed_tools has no effect",
            driver.display_name
        )));
    }
    match requested.into_iter().find(|tool| !is_valid(tool, &driver.tools)) {
        Some(tool) => Err(DriverError::UnknownTool {
            tool: tool.to_owned(),
            driver: driver.display_name.clone(),
            valid: driver.tools.clone(),
        }),
        None => Ok(None),
    }
}

/// True if a pattern equals the tool or matches it with `*` as a wildcard. `Name(…)` is valid if any pattern has the
/// same `Name`, because the agent itself evaluates the part in parentheses.
fn is_valid(tool: &str, patterns: &[String]) -> bool {
    let name = |tool: &str| tool.split('(').next().unwrap_or_default().to_owned();
    let is_call = tool.ends_with(')') && tool.contains('(');
    patterns.iter().any(|pattern| {
        pattern == tool
            || matches(pattern, tool)
            || (is_call && tool.len() > name(tool).len() + 2 && name(pattern) == name(tool))
    })
}

/// `*` matches any text, including none.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(rest) = text.strip_prefix(head) else {
        return false;
    };
    (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(tail, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_is_valid_if_a_driver_pattern_matches() {
        let patterns = ["Read", "Bash(git *)", "mcp__*"].map(str::to_owned);
        for (tool, valid) in [
            ("Read", true),
            ("read", false),
            ("Bash(git *)", true),
            ("Bash(git status)", true),
            ("Bash(npm test)", true),
            ("Bash()", false),
            ("Bash", false),
            ("mcp__files__read", true),
            ("Write", false),
        ] {
            assert_eq!(is_valid(tool, &patterns), valid, "{tool}");
        }
    }
}
