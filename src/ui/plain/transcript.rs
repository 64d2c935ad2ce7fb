//! Renders the agent's messages, reasoning and tool calls.

use jiff::Timestamp;

use super::argument::{fields, main_argument};
use super::one_line::one_line;
use super::output_buffer::Label;
use super::renderer::{PlainRenderer, labels};
use super::tools::{EndedTool, OpenTool};
use crate::event::{Flow, Json, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent};
use crate::ui::{Tone, units};

/// How many rows of reasoning, echoed prompts and unassigned tool output are shown.
const EXCERPT_ROWS: usize = 3;
/// Lines of a failed call's output that are shown.
const FAILURE_LINES: usize = 5;
const MAX_NAME_COLUMNS: usize = 60;

impl PlainRenderer {
    pub(super) fn transcript(&mut self, event: &TranscriptEvent, at: Timestamp) {
        match event {
            TranscriptEvent::Text {
                tag,
                text,
                flow,
                parent,
            } => self.text(*tag, text, *flow, parent.as_deref()),
            TranscriptEvent::ToolStart { tool } => self.tool_start(tool, at),
            TranscriptEvent::ToolOutput { tool, text } => self.tool_output(&tool.id, text),
            TranscriptEvent::ToolEnd { tool } => self.tool_end(tool, at),
            TranscriptEvent::Usage { usage } => self.iteration.usage.accumulate(usage),
            TranscriptEvent::Meta { meta } => self.meta(meta, at),
        }
    }

    fn text(&mut self, tag: Tag, text: &str, flow: Flow, parent: Option<&str>) {
        let (label, tone, rows) = match tag {
            Tag::Ai => (labels::AI, Tone::Plain, None),
            Tag::Think => (labels::THINK, Tone::Faint, Some(EXCERPT_ROWS)),
            Tag::Sys => (labels::SYS, Tone::Plain, None),
            Tag::Tool => (labels::TOOL, Tone::Plain, Some(EXCERPT_ROWS)),
            Tag::Prompt => (labels::PROMPT, Tone::Faint, Some(EXCERPT_ROWS)),
            Tag::User => (labels::USER, Tone::Plain, None),
        };
        // Some agents send empty deltas to keep the connection alive.
        if text.is_empty() && flow != Flow::Line {
            return;
        }
        let continues = flow != Flow::Message && self.page.is_open(label, parent);
        if !continues {
            self.page.begin(label, parent);
            if let Some(rows) = rows.filter(|_| !self.is_verbose()) {
                self.page.limit_rows(rows);
            }
        } else if flow == Flow::Line {
            self.page.text(tone, "\n");
        }
        self.page.text(tone, text);
    }

    fn tool_start(&mut self, tool: &ToolStart, at: Timestamp) {
        let workspace = self
            .header
            .as_ref()
            .map_or("", |header| header.workspace.as_str());
        let argument = tool.input.as_ref().map(|input| main_argument(input, workspace));
        let mut open = OpenTool::new(
            &tool.id,
            &one_line(&tool.name, MAX_NAME_COLUMNS).0,
            argument.unwrap_or_default(),
            at,
        );
        open.nested = tool.parent.is_some();
        self.tool_line(open.nested, labels::TOOL);
        self.page.put(Tone::Plain, "▸");
        self.page.put_spaced(Tone::Accent, &open.name);
        self.page.put_spaced(Tone::Plain, &open.argument);
        self.page.end_row();
        if let Some(input) = tool.input.as_ref().filter(|_| self.is_verbose()) {
            self.tool_input(input);
        }
        open.printed_at = self.page.lines;
        self.iteration.tools.start(open);
    }

    fn tool_line(&mut self, nested: bool, label: Label) {
        if nested {
            self.page.nested_line(label);
        } else {
            self.page.line(label);
        }
    }

    /// Prints every field of the input in full.
    fn tool_input(&mut self, input: &Json) {
        self.page.begin(Label::SAME, None);
        match fields(input) {
            None => self.page.text(Tone::Faint, &format!("  {}", input.as_str())),
            Some(fields) => {
                for (key, value) in fields {
                    let text: Option<String> = serde_json::from_str(value.get()).ok();
                    let text = text.as_deref().unwrap_or(value.get()).trim_end();
                    let text = if text.contains('\n') {
                        format!("  {key}:\n    {}\n", text.replace('\n', "\n    "))
                    } else {
                        format!("  {key}: {text}\n")
                    };
                    self.page.text(Tone::Faint, &text);
                }
            }
        }
        self.page.close();
    }

    fn tool_output(&mut self, id: &str, text: &str) {
        let verbose = self.is_verbose();
        let Some(tool) = self.iteration.tools.find(id) else {
            if verbose {
                self.note(labels::TOOL, text);
            }
            return;
        };
        tool.count_output(text);
        if !verbose {
            return;
        }
        if !self.page.is_open(labels::TOOL, Some(id)) {
            let follows = tool.printed_at == self.page.lines && self.page.column == 0;
            let name = format!("{} {}", tool.name, tool.argument);
            if !follows {
                self.page.line(labels::TOOL);
                self.page.put(Tone::Plain, "…");
                self.page.put_spaced(Tone::Accent, &name);
                self.page.end_row();
            }
            self.page.begin(labels::TOOL, Some(id));
            self.page.omit_label();
        }
        self.page.text(Tone::Plain, text);
    }

    fn tool_end(&mut self, end: &ToolEnd, at: Timestamp) {
        let (open, ended) = self.iteration.tools.end(end, at);
        let follows = open.as_ref().is_some_and(|open| {
            self.page.is_open(labels::TOOL, Some(&open.id))
                || (open.printed_at == self.page.lines && self.page.column == 0)
        });
        let nested = open.as_ref().is_some_and(|open| open.nested);
        self.tool_line(nested, if follows { Label::SAME } else { labels::TOOL });
        self.ended_tool(&ended, !follows);
        // With --verbose, the whole output has been printed.
        if let Some(open) = open.filter(|_| end.status == ToolStatus::Fail && !self.is_verbose()) {
            self.failure_output(&open);
        }
    }

    /// The end of a failed call's output.
    fn failure_output(&mut self, tool: &OpenTool) {
        let (above, lines) = tool.last_lines(FAILURE_LINES);
        if lines.is_empty() {
            return;
        }
        self.page.begin(Label::SAME, None);
        if above > 0 {
            let above = units::count(above, "line");
            self.page.text(Tone::Faint, &format!("  … {above} above\n"));
        }
        for line in lines {
            self.page.text(Tone::Plain, &format!("  {line}\n"));
        }
        self.page.close();
    }

    /// Completes a line with the status of a call, and with its name if `named`.
    fn ended_tool(&mut self, tool: &EndedTool, named: bool) {
        let (mark, tone) = match tool.status {
            ToolStatus::Ok => ("✓", Tone::Good),
            ToolStatus::Fail => ("✗", Tone::Bad),
            ToolStatus::Unknown => ("?", Tone::Warning),
        };
        let figures = tool.figures();
        self.page.put(tone, mark);
        if named {
            self.page.put_spaced(Tone::Accent, &tool.name);
            let reserved = figures.len() + 3;
            self.page
                .put_spaced_reserving(Tone::Plain, &tool.argument, reserved);
        }
        if !figures.is_empty() {
            let figures = if named { format!("· {figures}") } else { figures };
            self.page.put_spaced(Tone::Faint, &figures);
        }
        self.page.end_row();
    }
}
