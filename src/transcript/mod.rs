//! Reading: lines of an agent's output → `TranscriptEvent`s. Pure; one file and one row per format.
//! No process, no clock, no judgement: what a marker means is decided in `engine`.

mod amp;
mod claude;
mod codex;
mod codex_text;
mod common;
mod copilot;
mod cursor;
mod gemini;
pub mod jq;
mod opencode;
mod plain;
mod rtf1;

use crate::event::TranscriptEvent;

/// Every format, one row each.
pub static FORMATS: &[Format] = &[
    plain::FORMAT,
    rtf1::FORMAT,
    claude::FORMAT,
    codex::FORMAT,
    codex_text::FORMAT,
    gemini::FORMAT,
    opencode::FORMAT,
    copilot::FORMAT,
    cursor::FORMAT,
    amp::FORMAT,
    jq::FORMAT,
];

/// The format that `--transcript` calls by this name.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// What may be said after `--transcript`.
pub fn names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.name)
}

/// Reads one agent session, line by line. Never fails: what it cannot read, it shows.
pub trait Adapter: Send {
    /// One line, without its line ending. `out` may hold what the lines before it said: a piece that goes on with the
    /// last text there becomes a part of it, so what arrives together is told together.
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>);

    /// Everybody has seen what was told, and the next thing may be told in its room.
    fn take_back(&mut self, _event: TranscriptEvent) {}

    /// The agent has ended: whatever is still open is closed.
    fn flush(&mut self, _out: &mut Vec<TranscriptEvent>) {}
}

/// One way in which agents write down what they do.
#[derive(Debug)]
pub struct Format {
    /// What `--transcript` calls it.
    pub name: &'static str,
    pub capabilities: Capabilities,
    pub open: fn(&Opening<'_>) -> Box<dyn Adapter>,
}

/// What an adapter may know of the iteration that it reads.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// The prompt as sent, for formats that echo it.
    pub prompt: &'a str,
}

/// What a format can tell. Nothing is drawn, and nothing is demanded, that a format cannot give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Tells reasoning and system text from the answer.
    pub roles: bool,
    /// Says where one message ends and the next begins.
    pub messages: bool,
    pub tools: bool,
    pub usage: bool,
    /// Says itself what it costs.
    pub costs: bool,
    pub sessions: bool,
    /// Keeps an echoed prompt apart from the answer.
    pub prompt_hiding: bool,
    /// Ends with a terminal event; a stream without it was cut off.
    pub terminal_event: bool,
}

/// Reads a whole transcript whose lines arrive one by one, for the tests of the formats.
#[cfg(test)]
fn read_all(format: &str, prompt: &str, text: &str) -> Vec<TranscriptEvent> {
    let format = find(format).expect("a format of this name");
    let mut adapter = (format.open)(&Opening { prompt });
    let mut out = Vec::new();
    for line in text.split('\n') {
        let mut said = Vec::new();
        adapter.feed(line, &mut said);
        out.append(&mut said);
    }
    adapter.flush(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_room_has_a_row() {
        let room = concat!(env!("CARGO_MANIFEST_DIR"), "/src/transcript");
        let mut files: Vec<String> = std::fs::read_dir(room)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .map(|file| file.trim_end_matches(".rs").replace('_', "-"))
            .filter(|file| file != "mod" && file != "common")
            .collect();
        files.sort_unstable();
        let mut rows: Vec<&str> = names().collect();
        rows.sort_unstable();
        assert_eq!(files, rows);
    }

    #[test]
    fn formats_are_found_by_name() {
        assert_eq!(find("claude").map(|format| format.name), Some("claude"));
        assert!(find("Claude").is_none());
    }
}
