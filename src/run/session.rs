//! One child at work: its bytes become raw files, lines and events. Two kinds: an agent, and a gate.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::engine::Input;
use crate::event::{Meta, StreamName, Tag, TranscriptEvent};
use crate::panic_hook;
use crate::process::{Child, LineSplitter};
use crate::store::RawOutput;
use crate::transcript::Adapter;

use super::queue::Generation;
use super::screen_text::ScreenText;

/// The child that runs now.
pub(super) struct Session {
    pub(super) generation: Generation,
    pub(super) child: Child,
    pub(super) work: SessionKind,
}

pub(super) enum SessionKind {
    /// Shared with the threads that drain its streams: they read and keep what they drain, beside the loop that judges it.
    Agent(Arc<AgentSession>),
    Gate(Excerpt),
}

/// What an agent prints, byte for byte.
pub(super) struct Raw {
    pub(super) stdout: RawOutput,
    pub(super) stderr: RawOutput,
}

pub(super) struct AgentSession {
    stdout: Mutex<Reading>,
    stderr: Mutex<LineSplitter>,
    exchange: Mutex<RecycleBin>,
    raw: Raw,
    /// The agent's own directory for temporary files; goes when the agent has gone.
    _scratch: TempDir,
    /// Where it will have written what it used.
    usage_file: Option<PathBuf>,
}

/// What was said and has been seen. It goes back to the thread that made it: memory that one thread takes and another one
/// gives back has both of them wait for each other.
#[derive(Default)]
pub(super) struct Recycled {
    /// The list in which it came, empty by now.
    pub(super) list: Vec<TranscriptEvent>,
    pub(super) events: Vec<TranscriptEvent>,
}

/// What some bytes of the agent's say.
pub(super) enum Parsed {
    Events(Vec<TranscriptEvent>),
    /// What it prints beside its transcript.
    Stderr(Vec<String>),
}

/// Where the thread that reads and the one that judges meet.
#[derive(Default)]
struct RecycleBin {
    spent: Vec<Recycled>,
    empty: Vec<Vec<TranscriptEvent>>,
}

impl Recycled {
    /// What is large is not kept until the agent speaks again.
    pub(super) fn add(&mut self, event: TranscriptEvent) {
        const LARGE: usize = 16 * 1024;
        let bytes = match &event {
            TranscriptEvent::Text { text, .. } | TranscriptEvent::ToolOutput { text, .. } => text.len(),
            TranscriptEvent::ToolStart { tool } => {
                tool.input.as_ref().map_or(0, |input| input.as_str().len())
            }
            TranscriptEvent::ToolEnd { .. } | TranscriptEvent::Usage { .. } => 0,
            TranscriptEvent::Meta { .. } => LARGE,
        };
        if bytes < LARGE {
            self.events.push(event);
        }
    }
}

/// The output in which an agent tells what it does.
struct Reading {
    lines: LineSplitter,
    adapter: Box<dyn Adapter>,
    /// Where it is a screen.
    screen: Option<ScreenText>,
}

impl AgentSession {
    pub(super) fn new(
        adapter: Box<dyn Adapter>,
        max_line_bytes: usize,
        raw: Raw,
        scratch: TempDir,
        usage_file: Option<PathBuf>,
    ) -> Self {
        let reading = Reading {
            lines: LineSplitter::new(max_line_bytes),
            adapter,
            screen: None,
        };
        Self {
            stdout: Mutex::new(reading),
            stderr: Mutex::new(LineSplitter::new(max_line_bytes)),
            exchange: Mutex::default(),
            raw,
            _scratch: scratch,
            usage_file,
        }
    }

    /// The same, drawing on a screen instead of printing lines.
    pub(super) fn on_a_screen(self) -> Self {
        held(&self.stdout).screen = Some(ScreenText::default());
        self
    }

    /// Tells what the bytes say.
    pub(super) fn take(&self, stream: StreamName, bytes: &[u8]) -> Parsed {
        panic_hook::failpoint("adapter");
        match stream {
            StreamName::Stdout => {
                let mut events = self.room();
                held(&self.stdout).take(bytes, &mut events);
                Parsed::Events(events)
            }
            StreamName::Stderr => {
                let mut lines = Vec::new();
                held(&self.stderr).feed(bytes, |line| lines.push(lossy(line.bytes)));
                Parsed::Stderr(lines)
            }
        }
    }

    /// Keeps the bytes as they came.
    pub(super) fn keep(&self, stream: StreamName, bytes: &[u8]) -> io::Result<()> {
        match stream {
            StreamName::Stdout => self.raw.stdout.append(bytes),
            StreamName::Stderr => self.raw.stderr.append(bytes),
        }
    }

    /// Takes back what was made of some bytes, when everybody has seen it; gives room for what comes next.
    pub(super) fn take_back(&self, spent: Recycled) -> Recycled {
        let mut exchange = held(&self.exchange);
        exchange.spent.push(spent);
        Recycled {
            list: Vec::new(),
            events: exchange.empty.pop().unwrap_or_default(),
        }
    }

    /// Clears away what has come back; gives an empty list with room.
    fn room(&self) -> Vec<TranscriptEvent> {
        let spent = std::mem::take(&mut held(&self.exchange).spent);
        let mut room = Vec::new();
        for Recycled { list, mut events } in spent {
            room = list;
            let mut reading = held(&self.stdout);
            events
                .drain(..)
                .for_each(|event| reading.adapter.take_back(event));
            held(&self.exchange).empty.push(events);
        }
        room
    }

    /// The child has ended: last lines without a line ending, and whatever the adapter still holds.
    pub(super) fn finish(&self) -> Vec<Input> {
        let events = held(&self.stdout).finish(self.usage_file.as_deref());
        let mut said: Vec<Input> = events.into_iter().map(Input::Transcript).collect();
        held(&self.stderr).finish(|line| said.push(Input::Stderr(lossy(line.bytes))));
        said
    }
}

/// Whoever held it before has left it whole, or has taken the program down with it.
fn held<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reading {
    fn take(&mut self, bytes: &[u8], events: &mut Vec<TranscriptEvent>) {
        let adapter = &mut self.adapter;
        match &mut self.screen {
            Some(screen) => screen.feed(bytes, |line| adapter.feed(line, events)),
            None => self
                .lines
                .feed(bytes, |line| read(adapter.as_mut(), line.bytes, line.cut, events)),
        }
    }

    fn finish(&mut self, usage_file: Option<&Path>) -> Vec<TranscriptEvent> {
        let (adapter, mut events) = (&mut self.adapter, Vec::new());
        self.lines
            .finish(|line| read(adapter.as_mut(), line.bytes, line.cut, &mut events));
        if let Some(screen) = &mut self.screen {
            screen.finish(|line| adapter.feed(line, &mut events));
        }
        read_usage(usage_file, adapter.as_mut(), &mut events);
        adapter.flush(&mut events);
        events
    }
}

/// One line of an agent's stdout, whole or cut, as its transcript has it.
pub(super) fn read(adapter: &mut dyn Adapter, bytes: &[u8], cut: u64, events: &mut Vec<TranscriptEvent>) {
    if cut > 0 {
        // Half a line says nothing that can be trusted; the raw file has all of it.
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

/// What an agent wrote to a file instead of saying it, read as one more line of its output. It may have written
/// anything there, or nothing.
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

/// Of a few kilobytes at most; this is a thousand times as much.
const LARGEST_USAGE: u64 = 1 << 20;

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The beginning and the end of an output of any length.
#[derive(Default)]
pub(super) struct Excerpt {
    head: Vec<u8>,
    tail: Vec<u8>,
    left_out: u64,
}

/// How much of each end is kept.
const EXCERPT: usize = 32 * 1024;

impl Excerpt {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let (to_head, rest) = bytes.split_at(bytes.len().min(EXCERPT - self.head.len()));
        self.head.extend_from_slice(to_head);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * EXCERPT {
            let gone = self.tail.len() - EXCERPT;
            self.tail.drain(..gone);
            self.left_out += gone as u64;
        }
    }

    pub(super) fn text(&self) -> String {
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(&self.tail);
        match self.left_out {
            0 => format!("{head}{tail}"),
            bytes => format!("{head}\n[… {bytes} bytes left out …]\n{tail}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_keeps_both_ends_and_says_what_it_left_out() {
        let mut excerpt = Excerpt::default();
        excerpt.take(b"first\n");
        for _ in 0..100 {
            excerpt.take(&[b'x'; 10_000]);
        }
        excerpt.take(b"\nlast");
        let text = excerpt.text();
        assert!(text.starts_with("first\n") && text.ends_with("\nlast"));
        assert!(text.contains("bytes left out") && text.len() < 4 * EXCERPT);
    }
}
