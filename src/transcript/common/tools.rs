//! Tool calls: whatever starts, ends.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::StringPool;
use crate::event::{Json, Tag, ToolEnd, ToolRef, ToolStart, ToolStatus, TranscriptEvent, Usage};

/// The tool calls that are running, in the order in which they began.
#[derive(Debug, Default)]
pub(in crate::transcript) struct Tools {
    open: Vec<Running>,
    used: bool,
    names: StringPool,
    outputs: StringPool,
    #[expect(clippy::vec_box, reason = "the boxes are what is used again")]
    figures: Vec<Box<Usage>>,
}

/// More than are told at once.
const MOST_FIGURES: usize = 1024;

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
            id: self.names.for_text(tool.id.as_str()),
            name: self.names.for_text(tool.name.as_str()),
        });
        out.push(TranscriptEvent::ToolStart { tool });
    }

    /// A short text, in room that an earlier one took.
    pub(in crate::transcript) fn name(&mut self, text: &str) -> String {
        self.names.for_text(text)
    }

    /// What a call is given, in room that an earlier one took.
    pub(in crate::transcript) fn input(&mut self, raw: &RawValue) -> Json {
        Json::written_into(self.names.for_text(""), raw)
    }

    /// Figures, in room that earlier ones took.
    pub(in crate::transcript) fn usage(&mut self, usage: Usage) -> TranscriptEvent {
        let Some(mut room) = self.figures.pop() else {
            return TranscriptEvent::usage(usage);
        };
        *room = usage;
        TranscriptEvent::Usage { usage: room }
    }

    /// What a call printed. Of a call that nobody began, it is shown without one.
    pub(in crate::transcript) fn output<'a>(
        &mut self,
        id: &str,
        text: impl Into<Cow<'a, str>>,
        out: &mut Vec<TranscriptEvent>,
    ) {
        let text = self.outputs.for_text(text);
        if text.is_empty() {
            return;
        }
        if self.is_open(id) {
            out.push(TranscriptEvent::ToolOutput {
                tool: ToolRef {
                    id: self.names.for_text(id),
                },
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
        let over = self.open.remove(at);
        self.names.take_back(over.id);
        self.names.take_back(over.name);
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

    /// What was told of a call has been seen by everybody.
    pub(in crate::transcript) fn take_back(&mut self, event: TranscriptEvent) {
        match event {
            TranscriptEvent::ToolStart { tool } => {
                self.names.take_back(tool.id);
                self.names.take_back(tool.name);
                if let Some(input) = tool.input {
                    self.names.take_back(input.into_room());
                }
            }
            TranscriptEvent::ToolOutput { tool, text } => {
                self.names.take_back(tool.id);
                self.outputs.take_back(text);
            }
            TranscriptEvent::ToolEnd { tool } => self.names.take_back(tool.id),
            TranscriptEvent::Usage { mut usage } => {
                if let Some(model) = usage.model.take() {
                    self.names.take_back(model);
                }
                if self.figures.len() < MOST_FIGURES {
                    self.figures.push(usage);
                }
            }
            TranscriptEvent::Text { .. } | TranscriptEvent::Meta { .. } => {}
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
