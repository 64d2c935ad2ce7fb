//! Parses the output of an agent: bytes become lines, lines become transcript events.

use std::path::{Path, PathBuf};

use crate::engine::Input;
use crate::event::{Meta, StreamName, Tag, TranscriptEvent};
use crate::process::LineSplitter;
use crate::transcript::Adapter;

use super::screen_text::ScreenText;

/// The parser of one attempt's output.
pub(super) struct AgentOutput {
    stdout: LineSplitter,
    stderr: LineSplitter,
    adapter: Box<dyn Adapter>,
    /// The screen that an interactive agent draws on.
    screen: Option<ScreenText>,
    /// The file to which the agent writes its usage.
    usage_file: Option<PathBuf>,
}

impl AgentOutput {
    pub(super) fn new(adapter: Box<dyn Adapter>, max_line_bytes: usize) -> Self {
        Self {
            stdout: LineSplitter::new(max_line_bytes),
            stderr: LineSplitter::new(max_line_bytes),
            adapter,
            screen: None,
            usage_file: None,
        }
    }

    /// Creates the parser for an agent that draws on a screen instead of printing lines.
    pub(super) fn of_screen(mut self) -> Self {
        self.screen = Some(ScreenText::default());
        self
    }

    pub(super) fn set_usage_file(&mut self, file: Option<PathBuf>) {
        self.usage_file = file;
    }

    /// Appends the events and the stderr lines that the bytes complete.
    pub(super) fn parse(
        &mut self,
        stream: StreamName,
        bytes: &[u8],
        events: &mut Vec<TranscriptEvent>,
        stderr: &mut Vec<String>,
    ) {
        match stream {
            StreamName::Stdout => {
                let adapter = &mut self.adapter;
                match &mut self.screen {
                    Some(screen) => screen.feed(bytes, |line| adapter.feed(line, events)),
                    None => self.stdout.feed(bytes, |line| {
                        read_line(adapter.as_mut(), line.bytes, line.cut, events)
                    }),
                }
            }
            StreamName::Stderr => self.stderr.feed(bytes, |line| stderr.push(lossy(line.bytes))),
        }
    }

    /// Parses the rest after the agent has ended: lines without a line ending, and events that the adapter has buffered.
    pub(super) fn finish(mut self) -> Vec<Input> {
        let (adapter, mut events) = (&mut self.adapter, Vec::new());
        self.stdout
            .finish(|line| read_line(adapter.as_mut(), line.bytes, line.cut, &mut events));
        if let Some(screen) = &mut self.screen {
            screen.finish(|line| adapter.feed(line, &mut events));
        }
        read_usage(self.usage_file.as_deref(), adapter.as_mut(), &mut events);
        adapter.flush(&mut events);
        let mut inputs: Vec<Input> = events.into_iter().map(Input::Transcript).collect();
        self.stderr
            .finish(|line| inputs.push(Input::Stderr(lossy(line.bytes))));
        inputs
    }
}

/// Parses one line of an agent's stdout. A truncated line is not parsed; the raw file contains all of it.
pub(super) fn read_line(
    adapter: &mut dyn Adapter,
    bytes: &[u8],
    cut: u64,
    events: &mut Vec<TranscriptEvent>,
) {
    if cut > 0 {
        events.push(TranscriptEvent::meta(Meta::Cut {
            bytes: cut + bytes.len() as u64,
        }));
        let beginning: String = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        events.push(TranscriptEvent::line(Tag::Sys, format!("{beginning}…")));
        return;
    }
    match std::str::from_utf8(bytes) {
        Ok(line) => adapter.feed(line, events),
        Err(_) => adapter.feed(&String::from_utf8_lossy(bytes), events),
    }
}

/// Parses the usage that an agent wrote to a file, as one more line of its output. The content is untrusted and optional.
pub(super) fn read_usage(file: Option<&Path>, adapter: &mut dyn Adapter, events: &mut Vec<TranscriptEvent>) {
    let Some(file) = file.filter(|file| {
        let metadata = file.symlink_metadata();
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST_USAGE)
    }) else {
        return;
    };
    if let Ok(text) = std::fs::read_to_string(file) {
        adapter.feed(text.trim(), events);
    }
}

/// A usage file has a few kilobytes at most.
const LARGEST_USAGE: u64 = 1 << 20;

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
