//! Recognizes the lines that separate sections of codex's human-readable transcript, in all versions.

use crate::event::ToolStatus;

/// A line that starts a new section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Separator {
    User,
    Answer,
    Reasoning,
    System,
    Tool,
    /// `exec`, alone or with its command on the same line.
    Exec(Option<String>),
    /// `tool name(arguments)`: a call of an MCP tool.
    Call(String),
    Patch,
    /// `tokens used`, alone or with the count on the same line.
    Tokens(Option<u64>),
    /// The end of a tool call.
    CommandEnd(CommandEnd),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandEnd {
    /// The text before the status: empty, or the repeated call.
    pub(super) call: String,
    pub(super) status: ToolStatus,
    pub(super) duration_ms: Option<u64>,
}

/// Removes the timestamp that earlier versions print before their own lines. Returns whether there was one.
pub(super) fn strip_timestamp(line: &str) -> (&str, bool) {
    let split = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    match split {
        Some((time, rest)) if is_timestamp(time) => (rest, true),
        _ => (line, false),
    }
}

/// `2025-08-12T10:00:00`, with or without fractions.
fn is_timestamp(text: &str) -> bool {
    let shape = "0000-00-00T00:00:00";
    text.len() >= shape.len()
        && text
            .bytes()
            .zip(shape.bytes())
            .all(|(given, expected)| match expected {
                b'0' => given.is_ascii_digit(),
                fixed => given == fixed,
            })
}

/// The separators that are valid in all versions.
pub(super) fn separator(line: &str) -> Option<Separator> {
    let line = line.trim_end();
    match line {
        "user" | "User instructions:" => Some(Separator::User),
        "codex" | "assistant" | "final" => Some(Separator::Answer),
        "thinking" | "analysis" => Some(Separator::Reasoning),
        "system" => Some(Separator::System),
        "tool" => Some(Separator::Tool),
        "exec" => Some(Separator::Exec(None)),
        "apply patch" => Some(Separator::Patch),
        "tokens used" => Some(Separator::Tokens(None)),
        _ => {
            let count = line.strip_prefix("tokens used: ")?;
            Some(Separator::Tokens(Some(parse_count(count)?)))
        }
    }
}

/// Also recognizes the separators that are only valid in lines with a timestamp, because the text alone is ambiguous.
pub(super) fn timestamped_separator(line: &str) -> Option<Separator> {
    if let Some(found) = separator(line).or_else(|| command_end(line).map(Separator::CommandEnd)) {
        return Some(found);
    }
    if let Some(command) = line.strip_prefix("exec ") {
        return Some(Separator::Exec(Some(command.to_owned())));
    }
    line.strip_prefix("tool ")
        .map(|call| Separator::Call(call.to_owned()))
}

/// True for the separators of current versions, which may directly follow a tool's output. The older ones are common words
/// and count as output, unless an empty line precedes them.
pub(super) fn may_follow_output(separator: &Separator) -> bool {
    match separator {
        Separator::Answer
        | Separator::Exec(_)
        | Separator::Patch
        | Separator::Tokens(_)
        | Separator::Call(_)
        | Separator::CommandEnd(_) => true,
        Separator::User | Separator::Reasoning | Separator::System | Separator::Tool => false,
    }
}

/// `… succeeded in 12ms:`, `… exited 3 in 1.20s:`, `patch: completed`.
pub(super) fn command_end(line: &str) -> Option<CommandEnd> {
    if let Some(verdict) = line.strip_prefix("patch: ") {
        let success = verdict.trim_end() == "completed";
        return Some(CommandEnd {
            call: String::new(),
            status: if success { ToolStatus::Ok } else { ToolStatus::Fail },
            duration_ms: None,
        });
    }
    let line = line.trim_end().strip_suffix(':')?;
    let (rest, duration) = line.rsplit_once(" in ")?;
    let duration_ms = milliseconds(duration)?;
    let (call, verdict) = match rest.rsplit_once(' ') {
        Some((call, number)) if number.parse::<i32>().is_ok() => (call.strip_suffix("exited")?, number),
        Some((call, word)) => (call, word),
        None => ("", rest),
    };
    let status = match verdict {
        "succeeded" | "success" | "0" => ToolStatus::Ok,
        "failed" => ToolStatus::Fail,
        number if number.parse::<i32>().is_ok() => ToolStatus::Fail,
        _ => return None,
    };
    Some(CommandEnd {
        call: call.trim().to_owned(),
        status,
        duration_ms: Some(duration_ms),
    })
}

/// `12ms`, `1.25s`, `1m 05s`.
fn milliseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some(number) = text.strip_suffix("ms") {
        return number.parse().ok();
    }
    let (minutes, seconds) = match text.split_once('m') {
        Some((minutes, seconds)) => (minutes.trim().parse::<u64>().ok()?, seconds.trim()),
        None => (0, text),
    };
    let seconds: f64 = seconds.strip_suffix('s')?.parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, and durations are not negative"
    )]
    let milliseconds = (seconds * 1000.0).round() as u64;
    minutes.checked_mul(60_000)?.checked_add(milliseconds)
}

/// `4,945`.
pub(super) fn parse_count(text: &str) -> Option<u64> {
    let digits: String = text.trim().chars().filter(|c| *c != ',').collect();
    digits.parse().ok()
}

/// The command in `command in /directory`. A quote after ` in /` means that it is part of the command.
pub(super) fn command_before_directory<'a>(text: &'a str, directory: Option<&str>) -> Option<&'a str> {
    if let Some(command) = directory.and_then(|directory| text.strip_suffix(directory)?.strip_suffix(" in "))
    {
        return Some(command);
    }
    let (command, directory) = text.rsplit_once(" in /")?;
    (!directory.contains(['\'', '"', ';'])).then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_end_is_parsed_in_all_versions() {
        let cases = [
            (" succeeded in 0ms:", "", ToolStatus::Ok, 0),
            (" exited 3 in 1.20s:", "", ToolStatus::Fail, 1200),
            (
                "bash -lc 'ls' in /tmp succeeded in 12ms:",
                "bash -lc 'ls' in /tmp",
                ToolStatus::Ok,
                12,
            ),
            (
                "bash -lc 'x' exited 1 in 1m 05s:",
                "bash -lc 'x'",
                ToolStatus::Fail,
                65_000,
            ),
            (
                "server.find({}) success in 7ms:",
                "server.find({})",
                ToolStatus::Ok,
                7,
            ),
        ];
        for (line, call, status, duration) in cases {
            let expected = CommandEnd {
                call: call.to_owned(),
                status,
                duration_ms: Some(duration),
            };
            assert_eq!(command_end(line), Some(expected), "{line}");
        }
        for line in [
            "it succeeded in 3 tries:",
            "done in 3ms:",
            "in 3ms:",
            "succeeded in 3ms",
            "",
        ] {
            assert_eq!(command_end(line), None, "{line}");
        }
    }

    #[test]
    fn directory_is_split_from_the_command() {
        let split = command_before_directory;
        assert_eq!(split("bash -lc 'ls' in /tmp/demo", None), Some("bash -lc 'ls'"));
        assert_eq!(split("bash -lc 'for f in /etc/*; do'", None), None);
        assert_eq!(split("ls in my dir", Some("my dir")), Some("ls"));
        assert_eq!(split("bash -lc 'cat <<EOF", None), None);
    }

    #[test]
    fn timestamp_is_removed() {
        assert_eq!(strip_timestamp("[2025-08-12T10:00:00] codex"), ("codex", true));
        assert_eq!(strip_timestamp("[note] codex"), ("[note] codex", false));
        assert_eq!(
            strip_timestamp("[2025-08-12T10:00:00]"),
            ("[2025-08-12T10:00:00]", false)
        );
    }
}
