//! Parses the lines of an agent's output into `TranscriptEvent`s. The parsers are pure; each format has one file and one
//! row in `FORMATS`. `engine` interprets markers.

mod acp;
mod agy;
mod amp;
mod claude;
mod cline;
mod codex;
mod codex_text;
mod common;
mod copilot;
mod cursor;
mod gemini;
pub mod jq;
mod kimi;
mod opencode;
mod pi;
mod plain;
mod qwen;
mod rtf1;
mod vibe;

use crate::event::{TranscriptEvent, UsageMeaning};

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
    agy::FORMAT,
    qwen::FORMAT,
    pi::FORMAT,
    kimi::FORMAT,
    vibe::FORMAT,
    cline::FORMAT,
    acp::FORMAT,
    jq::FORMAT,
];

/// The format with this `--transcript` name.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The valid values of `--transcript`.
pub fn names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.name)
}

/// Parses one agent session line by line. It never fails: an unreadable line becomes a text event.
pub trait Adapter: Send {
    /// Parses one line, without its line ending, and appends the events to `out`. `out` may contain events of previous
    /// lines: a text delta is appended to the last text in `out` if it continues that text.
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>);

    /// Closes open tool calls and texts after the agent has ended.
    fn flush(&mut self, _out: &mut Vec<TranscriptEvent>) {}
}

/// Wraps an adapter so that it also reports fields which the captured output of its format does not have.
pub fn with_known_fields(format: &Format, adapter: Box<dyn Adapter>) -> Box<dyn Adapter> {
    common::KnownFields::around(format.name, adapter)
}

/// An output format of agents.
#[derive(Debug)]
pub struct Format {
    /// The value of `--transcript`.
    pub name: &'static str,
    pub capabilities: Capabilities,
    pub open: fn(&AdapterContext<'_>) -> Box<dyn Adapter>,
}

/// The information that an adapter has about the iteration.
#[derive(Debug, Clone, Copy)]
pub struct AdapterContext<'a> {
    /// The prompt, for formats that repeat it in the output.
    pub prompt: &'a str,
    /// What the usage of an ACP agent covers.
    pub usage: UsageMeaning,
}

impl<'a> AdapterContext<'a> {
    pub fn new(prompt: &'a str) -> Self {
        Self {
            prompt,
            usage: UsageMeaning::default(),
        }
    }
}

/// The information that a format provides. Front ends and the engine rely only on these capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Distinguishes reasoning and system text from the answer.
    pub roles: bool,
    /// Reports message boundaries.
    pub messages: bool,
    pub tools: bool,
    pub usage: bool,
    /// Reports the cost.
    pub costs: bool,
    pub sessions: bool,
    /// Distinguishes a repeated prompt from the answer.
    pub prompt_hiding: bool,
    /// Ends with a terminal event; without it the output is truncated.
    pub terminal_event: bool,
}

/// Parses a complete transcript, with a separate output for each line.
#[cfg(test)]
fn read_all(format: &str, prompt: &str, text: &str) -> Vec<TranscriptEvent> {
    let format = find(format).expect("the format exists");
    let mut adapter = (format.open)(&AdapterContext::new(prompt));
    let mut out = Vec::new();
    for line in text.split('\n') {
        let mut events = Vec::new();
        adapter.feed(line, &mut events);
        out.append(&mut events);
    }
    adapter.flush(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_row() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/transcript");
        let mut files: Vec<String> = std::fs::read_dir(directory)
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
