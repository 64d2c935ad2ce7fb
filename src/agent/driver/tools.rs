//! The tools that an agent is allowed, held against those that its driver knows.

use super::{Driver, DriverError, Support};

/// What to tell the user about the allowed tools; an unknown one is an error.
pub fn check_tools(driver: &Driver, allowed: &str) -> Result<Option<String>, DriverError> {
    let wanted: Vec<&str> = allowed
        .split(',')
        .map(str::trim)
        .filter(|tool| !tool.is_empty())
        .collect();
    if wanted.is_empty() {
        return Ok(None);
    }
    if driver.supports.tool_allowlist == Support::No {
        return Ok(Some(format!(
            "{} has no list of allowed tools; driver.allowed_tools has no effect",
            driver.display_name
        )));
    }
    match wanted.into_iter().find(|tool| !is_valid(tool, &driver.tools)) {
        Some(tool) => Err(DriverError::UnknownTool {
            tool: tool.to_owned(),
            driver: driver.display_name.clone(),
            valid: driver.tools.clone(),
        }),
        None => Ok(None),
    }
}

/// A pattern that is the tool, or that fits it with `*` for anything. `Name(…)` is valid where `Name` is known in any
/// form: what stands in the brackets is for the agent to judge.
fn is_valid(tool: &str, patterns: &[String]) -> bool {
    let name = |tool: &str| tool.split('(').next().unwrap_or_default().to_owned();
    let is_call = tool.ends_with(')') && tool.contains('(');
    patterns.iter().any(|pattern| {
        pattern == tool
            || fits(pattern, tool)
            || (is_call && tool.len() > name(tool).len() + 2 && name(pattern) == name(tool))
    })
}

/// `*` stands for anything, nothing included.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(rest) = text.strip_prefix(head) else {
        return false;
    };
    (0..=rest.len()).any(|at| rest.is_char_boundary(at) && fits(tail, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_valid_when_the_driver_knows_it() {
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
