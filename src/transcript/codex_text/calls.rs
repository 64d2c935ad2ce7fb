//! Parses tool calls: from `exec` or `apply patch` through the status line to the end of the output.

use super::separators::{self, CommandEnd};
use super::{CodexText, Section, text_section};
use crate::event::{Json, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent};

/// Long tool output is emitted in chunks of about this size, to limit memory.
const MAX_OUTPUT_CHUNK: usize = 64 << 10;

/// The call that is running or whose output is being read.
pub(super) struct CodexCall {
    id: String,
    output: String,
    end: Option<(ToolStatus, Option<u64>)>,
}

impl CodexText {
    pub(super) fn read_command(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        let Section::Command(command) = &mut self.section else {
            return;
        };
        if !command.is_empty() {
            command.push('\n');
        }
        // The directory follows on the last line, so earlier lines are not searched again.
        let directory = self.header.directory.as_deref();
        let last = separators::command_before_directory(line, directory);
        command.push_str(last.unwrap_or(line));
        if last.is_some() || command.len() > MAX_OUTPUT_CHUNK {
            let whole = std::mem::take(command);
            self.section = Section::Running;
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
        self.call = Some(CodexCall {
            id,
            output: String::new(),
            end: None,
        });
    }

    pub(super) fn end_command(&mut self, ended: CommandEnd, out: &mut Vec<TranscriptEvent>) {
        if let Section::Command(command) = &mut self.section {
            // The status is on the same line as the command.
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
        self.section = Section::Output;
        self.pending_blanks = 0;
    }

    pub(super) fn read_output(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        if line.is_empty() {
            self.pending_blanks += 1;
            return;
        }
        // Reasoning has no separator but starts with a title.
        let is_title = line.starts_with("**") && line.ends_with("**") && line.len() > 4;
        if self.pending_blanks > 0 && is_title {
            self.end_section(out);
            self.section = text_section(Tag::Think);
            return self.push_text(line, out);
        }
        let blanks = std::mem::take(&mut self.pending_blanks);
        let Some(call) = &mut self.call else {
            out.push(TranscriptEvent::line(Tag::Tool, line));
            return;
        };
        call.output.extend(std::iter::repeat_n('\n', blanks));
        call.output.push_str(line);
        call.output.push('\n');
        if call.output.len() > MAX_OUTPUT_CHUNK {
            self.tools.output(&call.id, std::mem::take(&mut call.output), out);
        }
    }

    /// Ends the current section and its tool call.
    pub(super) fn end_section(&mut self, out: &mut Vec<TranscriptEvent>) {
        self.pending_blanks = 0;
        if let Section::Command(command) = &mut self.section {
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
