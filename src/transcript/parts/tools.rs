//! Tool calls: whatever starts, ends.

use crate::event::{Tag, ToolEnd, ToolRef, ToolStart, ToolStatus, TranscriptEvent};

/// The tool calls that are running, in the order in which they began.
#[derive(Debug, Default)]
pub(in crate::transcript) struct Tools {
    open: Vec<Running>,
    used: bool,
}

#[derive(Debug)]
struct Running {
    id: String,
    name: String,
}

impl Tools {
    /// A call begins. One that is said to begin twice is running already.
    pub(in crate::transcript) fn start(&mut self, tool: ToolStart, out: &mut Vec<TranscriptEvent>) {
        self.used = true;
        if self.is_open(&tool.id) {
            return;
        }
        self.open.push(Running {
            id: tool.id.clone(),
            name: tool.name.clone(),
        });
        out.push(TranscriptEvent::ToolStart { tool });
    }

    /// What a call printed. Of a call that nobody began, it is shown without one.
    pub(in crate::transcript) fn output(
        &mut self,
        id: &str,
        text: impl Into<String>,
        out: &mut Vec<TranscriptEvent>,
    ) {
        let text: String = text.into();
        if text.is_empty() {
            return;
        }
        if self.is_open(id) {
            out.push(TranscriptEvent::ToolOutput {
                tool: ToolRef { id: id.to_owned() },
                text,
            });
        } else {
            out.push(TranscriptEvent::message(Tag::Tool, text));
        }
    }

    pub(in crate::transcript) fn end(&mut self, end: ToolEnd, out: &mut Vec<TranscriptEvent>) {
        let Some(at) = self.open.iter().position(|open| open.id == end.id) else {
            return;
        };
        self.open.remove(at);
        out.push(TranscriptEvent::ToolEnd { tool: end });
    }

    /// The agent is gone: how the calls that still ran ended, nobody knows.
    pub(in crate::transcript) fn close_all(&mut self, out: &mut Vec<TranscriptEvent>) {
        for open in self.open.drain(..) {
            out.push(TranscriptEvent::ToolEnd {
                tool: ToolEnd {
                    id: open.id,
                    status: ToolStatus::Unknown,
                    duration_ms: None,
                },
            });
        }
    }

    pub(in crate::transcript) fn is_open(&self, id: &str) -> bool {
        self.name_of(id).is_some()
    }

    /// What the running call is a call of.
    pub(in crate::transcript) fn name_of(&self, id: &str) -> Option<&str> {
        let open = self.open.iter().find(|open| open.id == id)?;
        Some(&open.name)
    }

    /// Any tool was called at all.
    pub(in crate::transcript) fn used(&self) -> bool {
        self.used
    }
}
