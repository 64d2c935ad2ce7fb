//! Tool calls in the transcript: from `exec` or `apply patch` over the verdict to the end of the output.

use super::separators::{self, Ended};
use super::{CodexText, Place, text};
use crate::event::{Json, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent};

/// A tool's output is told in pieces of about this size, so that memory stays small.
const LONGEST_PIECE: usize = 64 << 10;

/// The call that is running, or whose output is being read.
pub(super) struct Call {
    id: String,
    output: String,
    end: Option<(ToolStatus, Option<u64>)>,
}

impl CodexText {
    pub(super) fn read_command(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        let Place::Command(command) = &mut self.place else {
            return;
        };
        if !command.is_empty() {
            command.push('\n');
        }
        command.push_str(line);
        let directory = self.header.directory.as_deref();
        if let Some(whole) = separators::command_before_directory(command, directory) {
            let whole = whole.to_owned();
            self.place = Place::Running;
            self.start("shell", Some(&whole), out);
        }
    }

    pub(super) fn start(&mut self, name: &str, command: Option<&str>, out: &mut Vec<TranscriptEvent>) {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        let input = command.map(|command| Json::from(serde_json::json!({ "command": command })));
        let tool = ToolStart {
            id: id.clone(),
            name: name.to_owned(),
            input,
            parent: None,
        };
        self.tools.start(tool, out);
        self.call = Some(Call {
            id,
            output: String::new(),
            end: None,
        });
    }

    pub(super) fn end_command(&mut self, ended: Ended, out: &mut Vec<TranscriptEvent>) {
        if let Place::Command(command) = &mut self.place {
            // The verdict came on the line of the command itself.
            let mut whole = std::mem::take(command);
            if !whole.is_empty() {
                whole.push('\n');
            }
            whole.push_str(&ended.call);
            let directory = self.header.directory.as_deref();
            let command = separators::command_before_directory(&whole, directory)
                .unwrap_or(&whole)
                .to_owned();
            self.start("shell", Some(&command), out);
        }
        if let Some(call) = &mut self.call {
            call.end = Some((ended.status, ended.duration_ms));
        }
        self.place = Place::Output;
        self.blanks = 0;
    }

    pub(super) fn read_output(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        if line.is_empty() {
            self.blanks += 1;
            return;
        }
        // Reasoning has no heading of its own, but begins with a title.
        let title = line.starts_with("**") && line.ends_with("**") && line.len() > 4;
        if self.blanks > 0 && title {
            self.leave(out);
            self.place = text(Tag::Think);
            return self.say(line, out);
        }
        let blanks = std::mem::take(&mut self.blanks);
        let Some(call) = &mut self.call else {
            out.push(TranscriptEvent::line(Tag::Tool, line));
            return;
        };
        call.output.extend(std::iter::repeat_n('\n', blanks));
        call.output.push_str(line);
        call.output.push('\n');
        if call.output.len() > LONGEST_PIECE {
            self.tools.output(&call.id, std::mem::take(&mut call.output), out);
        }
    }

    /// Whatever was being read is over.
    pub(super) fn leave(&mut self, out: &mut Vec<TranscriptEvent>) {
        self.blanks = 0;
        if let Place::Command(command) = &mut self.place {
            let command = std::mem::take(command);
            self.start("shell", Some(&command), out);
        }
        let Some(call) = self.call.take() else {
            return;
        };
        self.tools.output(&call.id, call.output, out);
        let (status, duration_ms) = call.end.unwrap_or((ToolStatus::Unknown, None));
        let end = ToolEnd {
            id: call.id,
            status,
            duration_ms,
        };
        self.tools.end(end, out);
    }
}
