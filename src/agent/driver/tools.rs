//! Checks the configured allowed tools against the patterns of a driver.

use super::{Driver, Supported};

/// Checks the comma-separated allowed tools. Returns a warning if the setting has no effect, or if the driver does not list
/// a tool: a newer version of the agent may have it.
pub fn check_tools(driver: &Driver, allowed: &str) -> Option<String> {
    let requested: Vec<&str> = allowed
        .split(',')
        .map(str::trim)
        .filter(|tool| !tool.is_empty())
        .collect();
    if requested.is_empty() {
        return None;
    }
    if driver.supports.tool_allowlist == Supported::No {
        return Some(format!(
            "{} does not support tool allowlists; driver.allowed_tools has no effect",
            driver.display_name
        ));
    }
    let unknown = requested
        .into_iter()
        .find(|tool| !is_valid(tool, &driver.tools))?;
    Some(format!(
        "driver.allowed_tools: {} lists no tool `{unknown}`; it is passed on unchanged",
        driver.display_name
    ))
}

/// True if a pattern equals the tool or matches it with `*` as a wildcard. `Name(…)` is valid if any pattern has the
/// same `Name`, because the agent itself evaluates the part in parentheses.
fn is_valid(tool: &str, patterns: &[String]) -> bool {
    let name = |tool: &str| tool.split('(').next().unwrap_or_default().to_owned();
    // A tool of an MCP server, whose names no driver can list.
    if tool.starts_with("mcp__") && tool.len() > "mcp__".len() {
        return true;
    }
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
