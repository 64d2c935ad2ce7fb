//! Tracks tool calls, so that each started call also ends.

use std::borrow::Cow;

use super::OpenCalls;
use crate::event::{Tag, ToolEnd, ToolRef, ToolStart, TranscriptEvent};

/// The running tool calls.
#[derive(Debug, Default)]
pub(in crate::transcript) struct Tools {
    open: OpenCalls,
    used: bool,
}

impl Tools {
    /// Starts a call. A repeated start of a running call is ignored.
    pub(in crate::transcript) fn start(&mut self, tool: ToolStart, out: &mut Vec<TranscriptEvent>) {
        self.used = true;
        if self.is_open(&tool.id) {
            return;
        }
        self.open.insert(tool.id.clone(), tool.name.clone(), out);
        out.push(TranscriptEvent::ToolStart { tool });
    }

    /// Adds output of a call. Output of an unknown call becomes a text event.
    pub(in crate::transcript) fn output<'a>(
        &mut self,
        id: &str,
        text: impl Into<Cow<'a, str>>,
        out: &mut Vec<TranscriptEvent>,
    ) {
        let text = text.into().into_owned();
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
        if self.open.remove(&end.id) {
            out.push(TranscriptEvent::ToolEnd { tool: end });
        }
    }

    /// Ends all running calls with an unknown status, because the agent has ended.
    pub(in crate::transcript) fn close_all(&mut self, out: &mut Vec<TranscriptEvent>) {
        self.open.close_all(out);
    }

    pub(in crate::transcript) fn is_open(&self, id: &str) -> bool {
        self.open.contains(id)
    }

    /// The tool name of a running call.
    pub(in crate::transcript) fn name_of(&self, id: &str) -> Option<&str> {
        self.open.name_of(id)
    }

    /// True if any tool was called.
    pub(in crate::transcript) fn used(&self) -> bool {
        self.used
    }
}
