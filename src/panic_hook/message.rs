//! What is said of a mistake: one line, in which nothing can be obeyed by a terminal.

use std::panic::PanicHookInfo;
use std::path::Path;

/// More of a message would bury the rest of the line.
const LONGEST: usize = 300;

/// What went wrong, and where.
pub(super) fn of(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("something that has no words");
    let place = panic
        .location()
        .map(|place| format!("{}:{}", place.file(), place.line()));
    one_line(message, &place.unwrap_or_else(|| "nowhere".to_owned()))
}

fn one_line(message: &str, place: &str) -> String {
    let is_harmless = |letter: char| {
        !letter.is_control()
            && !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let message: String = message
        .chars()
        .take(LONGEST)
        .map(|letter| if is_harmless(letter) { letter } else { ' ' })
        .collect();
    format!("{} ({place})", message.trim())
}

pub(super) fn fatal(panic: &str, journal: Option<&Path>, repository: &str) -> String {
    let journal = journal.map(|journal| {
        format!(
            " What was recorded is in {}; `ralph run --continue` goes on with it.",
            journal.display()
        )
    });
    let journal = journal.unwrap_or_default();
    format!(
        "error: a mistake in ralph: {panic}.{journal} {}",
        please(repository)
    )
}

pub(super) fn excused(panic: &str, repository: &str) -> String {
    format!(
        "error: a mistake in ralph: {panic}. The screen is lost, the run goes on. {}",
        please(repository)
    )
}

fn please(repository: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let system = std::env::consts::OS;
    match repository {
        "" => format!("Please report this line to those who make ralph (version {version}, {system})."),
        repository => {
            format!("Please report this line at {repository}/issues (version {version}, {system}).")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_on_one_line_and_is_never_obeyed() {
        let nasty = "byte index 1 in `\u{1b}]0;t\u{7}\u{202e}é\n`";
        assert_eq!(
            one_line(nasty, "src/x.rs:7"),
            "byte index 1 in ` ]0;t  é ` (src/x.rs:7)"
        );
        assert!(one_line(&"x".repeat(9999), "y").len() < LONGEST + 10);
    }

    #[test]
    fn the_line_has_all_that_a_report_needs() {
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
