//! Reading: lines of an agent's output → `TranscriptEvent`s. Pure; one file and one row per format.
//! No process, no clock, no judgement: what a marker means is decided in `engine`.

use crate::event::TranscriptEvent;

/// Reads one agent session, line by line. Never fails: what it cannot read, it shows.
pub trait Adapter: Send {
    /// One line, without its line ending.
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>);

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
    pub sessions: bool,
    /// Keeps an echoed prompt apart from the answer.
    pub prompt_hiding: bool,
    /// Ends with a terminal event; a stream without it was cut off.
    pub terminal_event: bool,
}
