//! The lines by which codex's transcript for people is divided, in all the forms that it has had.

use crate::event::ToolStatus;

/// A line that begins something else than the line before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    User,
    Answer,
    Thought,
    System,
    Tool,
    /// `exec`, alone or with its command on the same line.
    Exec(Option<String>),
    /// `tool name(arguments)`, as calls of MCP tools were announced.
    Call(String),
    Patch,
    /// `tokens used`, alone or with the figure on the same line.
    Tokens(Option<u64>),
    /// The end of a tool call, by the words of the line that ends it.
    Ended(Ended),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    /// What went before the verdict: nothing, or the call again.
    pub(super) call: String,
    pub(super) status: ToolStatus,
    pub(super) duration_ms: Option<u64>,
}

/// Takes off the time that earlier versions put before every line of their own.
pub(super) fn without_time(line: &str) -> (&str, bool) {
    let stamped = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    match stamped {
        Some((time, rest)) if is_time(time) => (rest, true),
        _ => (line, false),
    }
}

/// `2025-08-12T10:00:00`, with or without fractions.
fn is_time(text: &str) -> bool {
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

/// Words that are marks in every form of the transcript.
pub(super) fn mark(line: &str) -> Option<Mark> {
    let line = line.trim_end();
    match line {
        "user" | "User instructions:" => Some(Mark::User),
        "codex" | "assistant" | "final" => Some(Mark::Answer),
        "thinking" | "analysis" => Some(Mark::Thought),
        "system" => Some(Mark::System),
        "tool" => Some(Mark::Tool),
        "exec" => Some(Mark::Exec(None)),
        "apply patch" => Some(Mark::Patch),
        "tokens used" => Some(Mark::Tokens(None)),
        _ => {
            let figure = line.strip_prefix("tokens used: ")?;
            Some(Mark::Tokens(Some(figure_in(figure)?)))
        }
    }
}

/// Marks that only a line with a time is: without one, they could be anybody's words.
pub(super) fn stamped_mark(line: &str) -> Option<Mark> {
    if let Some(found) = mark(line).or_else(|| ended(line).map(Mark::Ended)) {
        return Some(found);
    }
    if let Some(command) = line.strip_prefix("exec ") {
        return Some(Mark::Exec(Some(command.to_owned())));
    }
    line.strip_prefix("tool ").map(|call| Mark::Call(call.to_owned()))
}

/// Words of today's version that may stand right after a tool's output. The older ones, all common words, are
/// taken for output unless an empty line goes before them.
pub(super) fn may_follow_output(mark: &Mark) -> bool {
    match mark {
        Mark::Answer | Mark::Exec(_) | Mark::Patch | Mark::Tokens(_) | Mark::Call(_) | Mark::Ended(_) => true,
        Mark::User | Mark::Thought | Mark::System | Mark::Tool => false,
    }
}

/// `… succeeded in 12ms:`, `… exited 3 in 1.20s:`, `patch: completed`.
pub(super) fn ended(line: &str) -> Option<Ended> {
    if let Some(verdict) = line.strip_prefix("patch: ") {
        let good = verdict.trim_end() == "completed";
        return Some(Ended {
            call: String::new(),
            status: if good { ToolStatus::Ok } else { ToolStatus::Fail },
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
    Some(Ended {
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
        reason = "`as` saturates, and no command runs for less than no time"
    )]
    let milliseconds = (seconds * 1000.0).round() as u64;
    minutes.checked_mul(60_000)?.checked_add(milliseconds)
}

/// `4,945`.
pub(super) fn figure_in(text: &str) -> Option<u64> {
    let digits: String = text.trim().chars().filter(|c| *c != ',').collect();
    digits.parse().ok()
}

/// Splits `command in /directory` where the directory begins. A quote after it belongs to the command.
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
    fn the_end_of_a_command_is_read_in_every_form() {
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
            let expected = Ended {
                call: call.to_owned(),
                status,
                duration_ms: Some(duration),
            };
            assert_eq!(ended(line), Some(expected), "{line}");
        }
        for line in [
            "it succeeded in 3 tries:",
            "done in 3ms:",
            "in 3ms:",
            "succeeded in 3ms",
            "",
        ] {
            assert_eq!(ended(line), None, "{line}");
        }
    }

    #[test]
    fn the_directory_is_told_from_the_command() {
        let split = command_before_directory;
        assert_eq!(split("bash -lc 'ls' in /tmp/demo", None), Some("bash -lc 'ls'"));
        assert_eq!(split("bash -lc 'for f in /etc/*; do'", None), None);
        assert_eq!(split("ls in my dir", Some("my dir")), Some("ls"));
        assert_eq!(split("bash -lc 'cat <<EOF", None), None);
    }

    #[test]
    fn a_time_before_a_line_is_taken_off() {
        assert_eq!(without_time("[2025-08-12T10:00:00] codex"), ("codex", true));
        assert_eq!(without_time("[note] codex"), ("[note] codex", false));
        assert_eq!(
            without_time("[2025-08-12T10:00:00]"),
            ("[2025-08-12T10:00:00]", false)
        );
    }
}
