//! Finds the line of an agent's error output that names the cause, and its class.
//!
//! Only a line that states an error counts, and only after a failure: tests, tickets and dependencies also mention statuses.

use crate::event::ErrorClass;

/// The line that names the cause: the last one that states an error, otherwise the last one that is not part of a stack
/// trace or a reference to a log.
pub(super) fn cause_line<'a>(lines: impl DoubleEndedIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let mut errors = lines.clone().rev();
    let mut others = lines.clone().rev();
    errors
        .find(|line| !is_noise(line) && states_error(line))
        .or_else(|| others.find(|line| !is_noise(line)))
        .or_else(|| lines.into_iter().next_back())
}

/// The class of a line that states an error: a status, or the words of a service.
pub(super) fn class_of(line: &str) -> Option<ErrorClass> {
    if !states_error(line) {
        return None;
    }
    let text = line.to_lowercase();
    let by_status = statuses(&text).find_map(|status| match status {
        401 | 403 => Some(ErrorClass::Auth),
        429 => Some(ErrorClass::RateLimit),
        529 => Some(ErrorClass::Overload),
        _ => None,
    });
    let by_words = || {
        let found = CLASS_WORDS
            .iter()
            .find(|(_, words)| words.iter().any(|word| text.contains(word)));
        found.map(|(class, _)| *class)
    };
    by_status.or_else(by_words)
}

/// Phrases that services use for these errors, in lower case.
const CLASS_WORDS: &[(ErrorClass, &[&str])] = &[
    (
        ErrorClass::Auth,
        &[
            "authentication_error",
            "authentication failed",
            "auth_error",
            "invalid api key",
            "incorrect api key",
            "invalid_api_key",
            "invalid x-api-key",
            "not logged in",
            "unauthorized",
        ],
    ),
    (
        ErrorClass::RateLimit,
        &["rate_limit", "rate limit", "ratelimit", "too many requests"],
    ),
    (ErrorClass::Overload, &["overloaded"]),
];

/// Words that may precede an HTTP status.
const BEFORE_STATUS: &[&str] = &["http", "status", "code", "error", "statuscode"];

/// The three-digit numbers in a text that may be HTTP statuses: those after a colon or one of `BEFORE_STATUS`.
fn statuses(text: &str) -> impl Iterator<Item = u16> + '_ {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = text
        .char_indices()
        .filter(move |(at, c)| c.is_ascii_digit() && !text[..*at].chars().next_back().is_some_and(is_part));
    starts.filter_map(move |(at, _)| {
        let number = text[at..].split(|c| !is_part(c)).next()?;
        let before = text[..at].trim_end_matches([' ', '(', '[', '"', '=']);
        // `name.rs:401:5` is a position.
        let after_colon = before.ends_with("\":") || (before.ends_with(':') && before.len() < at);
        let stands_alone = !text[at + number.len()..].starts_with(['.', '-', '/']);
        let word = before.rsplit(|c| !is_part(c)).next().unwrap_or_default();
        let is_status = after_colon || BEFORE_STATUS.contains(&word);
        (number.len() == 3 && is_status && stands_alone)
            .then(|| number.parse().ok())
            .flatten()
    })
}

/// True for `Error: …`, `ValueError: …`, `fatal: …`, `x failed: …`, `[API Error: …]` and JSON with an error.
fn states_error(line: &str) -> bool {
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '{');
    if line.starts_with('{') {
        return line.contains("\"error\"");
    }
    let mut rest = line;
    while let Some((prefix, after)) = rest.split_once(':') {
        let words: Vec<&str> = prefix.split_whitespace().collect();
        let last = words.last().copied().unwrap_or_default().to_lowercase();
        let names_error = ["error", "exception", "fatal", "failed", "failure", "panic"]
            .iter()
            .any(|word| last.trim_end_matches(')').ends_with(word));
        if words.len() <= 4 && names_error {
            return true;
        }
        // A prefix such as a time or a program's name.
        if words.len() > 2 {
            return false;
        }
        rest = after;
    }
    false
}

/// Lines of stack traces, source excerpts, and references to logs and help.
fn is_noise(line: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "at ",
        "File \"",
        "Traceback (most recent call last)",
        "Node.js v",
        "node:internal",
        "file://",
        "See log",
        "See logs",
        "For more information",
        "note: run with `RUST_BACKTRACE",
        "stack backtrace:",
        "Stack trace",
    ];
    let line = line.trim();
    BEGINNINGS.iter().any(|beginning| line.starts_with(beginning))
        || line.chars().all(|c| !c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_that_names_the_cause_is_found() {
        for (stderr, expected) in [
            (
                "hello\nerror: failed to run prompt: provider.auth_error: 401 Incorrect API key\nSee log: /x/kimi.log",
                "error: failed to run prompt: provider.auth_error: 401 Incorrect API key",
            ),
            (
                "file:///x/cli.js:10\n    throw new Error(\"boom\");\n    ^\nTypeError: boom\n    at main (cli.js:10:5)\n    at node:internal/x:1\nNode.js v20.20.2",
                "TypeError: boom",
            ),
            (
                "Traceback (most recent call last):\n  File \"x.py\", line 3, in <module>\nValueError: bad key",
                "ValueError: bad key",
            ),
            ("warming up\ncannot find the model\n}", "cannot find the model"),
            ("    at a (b:1:2)", "    at a (b:1:2)"),
        ] {
            assert_eq!(cause_line(stderr.lines()), Some(expected), "{stderr}");
        }
        assert_eq!(cause_line("".lines()), None);
    }

    #[test]
    fn errors_of_services_are_classified() {
        for (line, class) in [
            (
                "error: failed to run prompt: provider.auth_error: 401 Incorrect API key",
                ErrorClass::Auth,
            ),
            (
                "Error: Invalid API key (from env var MISTRAL_API_KEY).",
                ErrorClass::Auth,
            ),
            ("HTTPError: 403 Client Error: Forbidden for url", ErrorClass::Auth),
            (
                "openai.RateLimitError: Error code: 429 - {'error': …}",
                ErrorClass::RateLimit,
            ),
            (
                "[API Error: 429 Rate limit reached for requests]",
                ErrorClass::RateLimit,
            ),
            (
                "2026-11-18T13:00:01Z ERROR request failed: status 529",
                ErrorClass::Overload,
            ),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                ErrorClass::Overload,
            ),
            (
                r#"{"error":{"code":429,"message":"slow down"}}"#,
                ErrorClass::RateLimit,
            ),
            (
                r#"{"ts":"x","type":"error","error":"","statusCode":401}"#,
                ErrorClass::Auth,
            ),
        ] {
            assert_eq!(class_of(line), Some(class), "{line}");
        }
    }

    #[test]
    fn other_lines_have_no_class() {
        for line in [
            "401 tests passed",
            "error: expected 429 rows, found 3",
            "Error: cannot open /tmp/401/x:403.rs",
            "listening on :429",
            "the service was overloaded yesterday",
            "error: port 4290 is in use",
            "error: src/main.rs:401:5 unexpected token",
        ] {
            assert_eq!(class_of(line), None, "{line}");
        }
    }
}
