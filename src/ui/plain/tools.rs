//! The ledger of one iteration's tool calls: what runs, what ended how. Bounded however many calls there are.

use std::time::Duration;

use jiff::Timestamp;
use memchr::memchr_iter;

use crate::event::{ToolEnd, ToolStatus};
use crate::ui::units;

/// A call that has not ended. More than `MOST_OPEN` at once are not followed.
#[derive(Debug)]
pub(super) struct OpenTool {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) argument: String,
    pub(super) nested: bool,
    pub(super) started: Timestamp,
    /// The page's line count after the call was announced.
    pub(super) announced_at: u64,
    newlines: u64,
    ends_mid_line: bool,
}

impl OpenTool {
    pub(super) fn new(id: &str, name: &str, argument: String, started: Timestamp) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            argument,
            nested: false,
            started,
            announced_at: 0,
            newlines: 0,
            ends_mid_line: false,
        }
    }

    pub(super) fn count_output(&mut self, text: &str) {
        if let Some(last) = text.as_bytes().last() {
            self.newlines += memchr_iter(b'\n', text.as_bytes()).count() as u64;
            self.ends_mid_line = *last != b'\n';
        }
    }

    fn ended(&self, status: ToolStatus, took: Option<Duration>) -> EndedTool {
        EndedTool {
            status,
            name: self.name.clone(),
            argument: self.argument.clone(),
            took,
            lines: self.newlines + u64::from(self.ends_mid_line),
        }
    }
}

/// A call that has ended.
#[derive(Debug, Clone)]
pub(super) struct EndedTool {
    pub(super) status: ToolStatus,
    pub(super) name: String,
    pub(super) argument: String,
    pub(super) took: Option<Duration>,
    pub(super) lines: u64,
}

impl EndedTool {
    /// `12.3s · 214 lines`, as far as known.
    pub(super) fn figures(&self) -> String {
        let took = self.took.map(units::duration);
        let lines = (self.lines > 0).then(|| units::count(self.lines, "line"));
        let known: Vec<String> = took.into_iter().chain(lines).collect();
        known.join(" · ")
    }
}

const MOST_OPEN: usize = 64;
const MOST_LISTED: usize = 8;
const MOST_FAILURES: usize = 5;
const MOST_NAMES: usize = 12;

#[derive(Debug, Default)]
pub(super) struct Tools {
    pub(super) open: Vec<OpenTool>,
    /// Every call, while there are few of them.
    pub(super) listed: Vec<EndedTool>,
    pub(super) failures: Vec<EndedTool>,
    pub(super) failed: u64,
    pub(super) ended: u64,
    /// How often each tool was called, in order of its first call; the rarer names are not told apart.
    pub(super) by_name: Vec<(String, u64)>,
}

impl Tools {
    pub(super) fn start(&mut self, tool: OpenTool) {
        self.open.retain(|open| open.id != tool.id);
        if self.open.len() < MOST_OPEN {
            self.open.push(tool);
        }
    }

    pub(super) fn find(&mut self, id: &str) -> Option<&mut OpenTool> {
        self.open.iter_mut().find(|open| open.id == id)
    }

    /// The call that ended, as it was announced, and how; `None` for the first when nobody knew of it.
    pub(super) fn end(&mut self, end: &ToolEnd, now: Timestamp) -> (Option<OpenTool>, EndedTool) {
        let index = self.open.iter().position(|open| open.id == end.id);
        let open = index.map(|index| self.open.remove(index));
        let stated = end.duration_ms.map(Duration::from_millis);
        let ended = match &open {
            Some(open) => {
                // In a capture no time passes: then none is known.
                let measured = || Some(units::since(open.started, now)).filter(|took| !took.is_zero());
                open.ended(end.status, stated.or_else(measured))
            }
            None => OpenTool::new(&end.id, "tool", String::new(), now).ended(end.status, stated),
        };
        self.enter(ended.clone());
        (open, ended)
    }

    /// The iteration is over: how the open calls ended nobody knows.
    pub(super) fn end_all(&mut self) {
        for open in std::mem::take(&mut self.open) {
            self.enter(open.ended(ToolStatus::Unknown, None));
        }
    }

    fn enter(&mut self, tool: EndedTool) {
        self.ended += 1;
        let known = self.by_name.iter().position(|(name, _)| *name == tool.name);
        match known {
            Some(index) => self.by_name[index].1 += 1,
            None if self.by_name.len() < MOST_NAMES => self.by_name.push((tool.name.clone(), 1)),
            None => {}
        }
        if tool.status == ToolStatus::Fail {
            self.failed += 1;
            if self.failures.len() < MOST_FAILURES {
                self.failures.push(tool.clone());
            }
        }
        if self.listed.len() < MOST_LISTED {
            self.listed.push(tool);
        }
    }

    /// Few enough that each can be shown.
    pub(super) fn lists_all(&self) -> bool {
        self.listed.len() as u64 == self.ended
    }
}
