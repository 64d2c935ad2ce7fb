//! Tracks the tool calls of one iteration, in bounded memory.

use std::time::Duration;

use jiff::Timestamp;
use memchr::memchr_iter;

use crate::event::{ToolEnd, ToolStatus};
use crate::ui::units;

/// A running call. More than `MAX_OPEN` at once are not tracked.
#[derive(Debug)]
pub(super) struct OpenTool {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) argument: String,
    pub(super) nested: bool,
    pub(super) started: Timestamp,
    /// The page's line count after the call's first line was printed.
    pub(super) printed_at: u64,
    newlines: u64,
    ends_mid_line: bool,
    /// The end of the output.
    tail: String,
}

impl OpenTool {
    pub(super) fn new(id: &str, name: &str, argument: String, started: Timestamp) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            argument,
            nested: false,
            started,
            printed_at: 0,
            newlines: 0,
            ends_mid_line: false,
            tail: String::new(),
        }
    }

    pub(super) fn count_output(&mut self, text: &str) {
        if let Some(last) = text.as_bytes().last() {
            self.newlines += memchr_iter(b'\n', text.as_bytes()).count() as u64;
            self.ends_mid_line = *last != b'\n';
            let start = text.ceil_char_boundary(text.len().saturating_sub(TAIL));
            self.tail.push_str(&text[start..]);
            if self.tail.len() > 2 * TAIL {
                let excess = self.tail.ceil_char_boundary(self.tail.len() - TAIL);
                self.tail.drain(..excess);
            }
        }
    }

    /// The last lines of the output, and the number of lines before them.
    pub(super) fn last_lines(&self, max: usize) -> (u64, Vec<&str>) {
        let lines: Vec<&str> = self.tail.trim_end().lines().collect();
        let shown = lines[lines.len().saturating_sub(max)..].to_vec();
        let blank = self.tail[self.tail.trim_end().len()..].matches('\n').count();
        let total = self.newlines + u64::from(self.ends_mid_line);
        let above = total.saturating_sub(shown.len() as u64 + blank.saturating_sub(1) as u64);
        (above, shown)
    }

    fn ended(&self, status: ToolStatus, duration: Option<Duration>) -> EndedTool {
        EndedTool {
            status,
            name: self.name.clone(),
            argument: self.argument.clone(),
            duration,
            lines: self.newlines + u64::from(self.ends_mid_line),
        }
    }
}

/// A call that has ended.
#[derive(Debug)]
pub(super) struct EndedTool {
    pub(super) status: ToolStatus,
    pub(super) name: String,
    pub(super) argument: String,
    pub(super) duration: Option<Duration>,
    pub(super) lines: u64,
}

impl EndedTool {
    /// `12.3s · 214 lines`; leaves out unknown figures.
    pub(super) fn figures(&self) -> String {
        let duration = self.duration.map(units::duration);
        let lines = (self.lines > 0).then(|| units::count(self.lines, "line"));
        let known: Vec<String> = duration.into_iter().chain(lines).collect();
        known.join(" · ")
    }
}

const MAX_OPEN: usize = 64;
/// Bytes of each output's end that are stored.
const TAIL: usize = 4096;
const MAX_NAMES: usize = 12;

#[derive(Debug, Default)]
pub(super) struct IterationTools {
    pub(super) open: Vec<OpenTool>,
    pub(super) failed: u64,
    pub(super) ended: u64,
    /// Calls per tool, in order of the first call. Tools beyond `MAX_NAMES` are not counted.
    pub(super) by_name: Vec<(String, u64)>,
}

impl IterationTools {
    pub(super) fn start(&mut self, tool: OpenTool) {
        self.open.retain(|open| open.id != tool.id);
        if self.open.len() < MAX_OPEN {
            self.open.push(tool);
        }
    }

    pub(super) fn find(&mut self, id: &str) -> Option<&mut OpenTool> {
        self.open.iter_mut().find(|open| open.id == id)
    }

    /// Ends a call. Returns the running call, if it was tracked, and the ended one.
    pub(super) fn end(&mut self, end: &ToolEnd, now: Timestamp) -> (Option<OpenTool>, EndedTool) {
        let index = self.open.iter().position(|open| open.id == end.id);
        let open = index.map(|index| self.open.remove(index));
        let reported = end.duration_ms.map(Duration::from_millis);
        let ended = match &open {
            Some(open) => {
                // In a replayed transcript no time passes, so the duration is unknown.
                let measured =
                    || Some(units::since(open.started, now)).filter(|duration| !duration.is_zero());
                open.ended(end.status, reported.or_else(measured))
            }
            None => OpenTool::new(&end.id, "tool", String::new(), now).ended(end.status, reported),
        };
        self.record(&ended);
        (open, ended)
    }

    /// Ends all running calls with an unknown status.
    pub(super) fn end_all(&mut self) {
        for open in std::mem::take(&mut self.open) {
            self.record(&open.ended(ToolStatus::Unknown, None));
        }
    }

    fn record(&mut self, tool: &EndedTool) {
        self.ended += 1;
        let known = self.by_name.iter().position(|(name, _)| *name == tool.name);
        match known {
            Some(index) => self.by_name[index].1 += 1,
            None if self.by_name.len() < MAX_NAMES => self.by_name.push((tool.name.clone(), 1)),
            None => {}
        }
        self.failed += u64::from(tool.status == ToolStatus::Fail);
    }
}
