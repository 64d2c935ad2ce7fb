//! Detects a rate limit: recognizes usage-limit messages in the error output of a failed agent.
//!
//! Only phrases from the agent's own table row count, and only at the beginning of a message: tickets, tests and
//! dependencies mention limits too.

/// The usage-limit message in a text, from its first line to the end of the text.
pub(crate) fn limit_message<'a>(text: &'a str, phrases: &[&str]) -> Option<&'a str> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if begins_with_phrase(line, phrases) {
            return Some(text[start..].trim());
        }
        start += line.len();
    }
    None
}

fn begins_with_phrase(line: &str, phrases: &[&str]) -> bool {
    let line = line.trim().to_lowercase().replace('’', "'");
    let message = without_prefixes(&line);
    phrases.iter().any(|phrase| {
        message
            .strip_prefix(&*phrase.to_lowercase())
            .is_some_and(|rest| phrase.ends_with(' ') || ends_message(rest))
    })
}

/// Strips prefixes such as `[API Error: …`, `✗ ERROR: …` and `Request failed: …`.
fn without_prefixes(line: &str) -> &str {
    let mut rest = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    while let Some((prefix, after)) = rest.split_once(": ") {
        let words: Vec<&str> = prefix.split_whitespace().collect();
        let is_error_prefix = words.last().is_some_and(|last| {
            ["error", "failed", "exception", "fatal"]
                .iter()
                .any(|word| last.ends_with(word))
        });
        if words.len() > 3 || !is_error_prefix {
            break;
        }
        rest = after.trim_start_matches(|c: char| !c.is_alphanumeric());
    }
    rest
}

/// Whether the phrase is followed by the end, punctuation or a retry time. A longer sentence is about something else.
fn ends_message(rest: &str) -> bool {
    const MAY_FOLLOW: &[&str] = &["try", "please", "retry", "reset", "resets", "until", "wait"];
    let Some(first) = rest.chars().next() else {
        return true;
    };
    if first != ' ' {
        return !first.is_alphanumeric() && first != '_' && first != '-';
    }
    let rest = rest.trim_start();
    let word = rest
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default();
    word.is_empty() || MAY_FOLLOW.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{AGENTS, GENERAL_LIMIT_PHRASES};

    fn phrases(agent: &str) -> Vec<&'static str> {
        let row = AGENTS.iter().find(|row| row.name == agent).expect("an agent");
        row.limit_phrases
            .iter()
            .chain(GENERAL_LIMIT_PHRASES)
            .copied()
            .collect()
    }

    #[test]
    fn limit_messages_of_each_agent_are_recognized() {
        for (agent, text) in [
            ("claude", "Claude AI usage limit reached|1751300000"),
            ("claude", "You've hit your limit · resets 8:20pm (Asia/Shanghai)"),
            ("claude", "You’ve hit your weekly limit ∙ resets Oct 6, 1pm"),
            (
                "claude",
                "5-hour limit reached ∙ resets 3pm\n /upgrade to increase your usage limit",
            ),
            (
                "claude",
                "API Error: Request rejected (429) · Rate limit reached for requests",
            ),
            (
                "claude",
                r#"API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}}"#,
            ),
            (
                "codex",
                "ERROR: exceeded retry limit, last status: 429 Too Many Requests",
            ),
            (
                "codex",
                "ERROR: You've hit your usage limit. Try again in 3 days 2 hours.",
            ),
            (
                "codex",
                "stream error: Rate limit reached for gpt-5 in organization org-x on tokens per min",
            ),
            (
                "gemini",
                "[API Error: You exceeded your current quota, please check your plan]\nPlease wait.",
            ),
            (
                "gemini",
                "You have exhausted your capacity on this model. Your quota will reset after 18h31m10s.",
            ),
            ("copilot", "Rate limit reached for requests"),
            ("opencode", "Error: Rate limit reached for requests"),
            (
                "kiro",
                "ThrottlingException: Too many requests, please wait before trying again.",
            ),
            ("cursor", "You've hit your usage limit"),
            ("amp", "Error: 429 Too Many Requests"),
        ] {
            assert!(limit_message(text, &phrases(agent)).is_some(), "{agent}: {text}");
        }
    }

    #[test]
    fn prose_tickets_and_dependencies_are_ignored() {
        for text in [
            "RAL-17: handle \"rate limit exceeded\" from the billing API",
            "Rate limit exceeded handling is broken in the login form",
            "error: rate limit exceeded tests failed",
            "Too many requests tests: 3 failed",
            "error[E0432]: unresolved import `ratelimit`",
            "   Compiling ratelimit v0.10.0",
            "error: package `ratelimit v0.10.0` cannot be built",
            "error: test rate_limit_exceeded_is_shown failed",
            "rate_limit_error_is_mapped ... FAILED",
            "src/quota.rs:429: quota exceeded",
            "429 lines were changed",
            "Error: 429 is not a valid port",
            "API Error: Connection error.",
            "We have usage limit reached as a state in the machine",
            "test usage limit reached ... FAILED",
            "I wrote the docs on what to do when you've hit your usage limit",
            "",
        ] {
            for agent in AGENTS {
                assert_eq!(
                    limit_message(text, &phrases(agent.name)),
                    None,
                    "{}: {text}",
                    agent.name
                );
            }
        }
    }

    #[test]
    fn message_extends_to_the_end_of_the_text() {
        let text = "Retrying…\nYou've hit your usage limit.\nTry again at 3:45 PM.\n";
        assert_eq!(
            limit_message(text, &phrases("codex")),
            Some("You've hit your usage limit.\nTry again at 3:45 PM.")
        );
    }
}
