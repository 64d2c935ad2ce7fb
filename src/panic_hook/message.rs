//! The report of a panic: one line, without anything that a terminal would interpret.

use std::panic::PanicHookInfo;
use std::path::Path;

/// Maximum length of the message, in characters.
const LONGEST: usize = 300;

/// Returns the message and the place of a panic.
pub(super) fn describe(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("panic without a message");
    let place = panic
        .location()
        .map(|place| format!("{}:{}", place.file(), place.line()));
    one_line(message, &place.unwrap_or_else(|| "unknown place".to_owned()))
}

fn one_line(message: &str, place: &str) -> String {
    let is_printable = |letter: char| {
        !letter.is_control()
            && !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let message: String = message
        .chars()
        .take(LONGEST)
        .map(|letter| if is_printable(letter) { letter } else { ' ' })
        .collect();
    format!("{} ({place})", message.trim())
}

pub(super) fn fatal(panic: &str, journal: Option<&Path>, repository: &str) -> String {
    let journal = journal.map(|journal| {
        format!(
            " The run is recorded in {}; resume it with `ralph run --continue`.",
            journal.display()
        )
    });
    let journal = journal.unwrap_or_default();
    format!(
        "error: ralph has a bug: {panic}.{journal} {}",
        report_to(repository)
    )
}

pub(super) fn recoverable(panic: &str, repository: &str) -> String {
    format!(
        "error: ralph has a bug: {panic}. The TUI has ended; the run continues without it. {}",
        report_to(repository)
    )
}

fn report_to(repository: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let system = std::env::consts::OS;
    match repository {
        "" => format!("Please report this line to the maintainers (version {version}, {system})."),
        repository => {
            format!("Please report this line at {repository}/issues (version {version}, {system}).")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_on_one_line_without_control_characters() {
        let nasty = "byte index 1 in `\u{1b}]0;t\u{7}\u{202e}é\n`";
        assert_eq!(
            one_line(nasty, "src/x.rs:7"),
            "byte index 1 in ` ]0;t  é ` (src/x.rs:7)"
        );
        assert!(one_line(&"x".repeat(9999), "y").len() < LONGEST + 10);
    }

    #[test]
    fn the_line_contains_the_place_journal_version_and_address() {
        let line = fatal("bad (src/x.rs:7)", Some(Path::new("/w/events.jsonl")), "");
        let version = env!("CARGO_PKG_VERSION");
        for part in [
            "bad (src/x.rs:7)",
            "/w/events.jsonl",
            "--continue",
            version,
            "report",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(!line.contains('\n'));
        assert!(fatal("bad", None, "https://example.com/r").contains("https://example.com/r/issues"));
    }
}
