//! What the agent said and did, on the page. What it told about its session is in `meta`.

use jiff::Timestamp;

use super::argument::{fields, first_argument};
use super::one_line::{head, one_line};
use super::page::Label;
use super::renderer::{PlainRenderer, labels};
use super::tools::{EndedTool, OpenTool};
use crate::event::{Flow, Json, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent, Usage, UsageScope};
use crate::ui::Tone;

/// How much of a thought, an echoed prompt or stray tool output is shown.
const EXCERPT_ROWS: usize = 3;
/// How much of the thoughts is kept for the PLAN callout.
const THOUGHT_BYTES: usize = 600;
const NAME_COLUMNS: usize = 60;

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
            TranscriptEvent::Usage { usage } => self.count_usage(usage),
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
        // Nothing to show, such as a delta that only keeps the connection alive.
        if text.is_empty() && flow != Flow::Line {
            return;
        }
        let goes_on = flow != Flow::Message && self.page.is_open(label, parent);
        if !goes_on {
            self.page.begin(label, parent);
            if let Some(rows) = rows.filter(|_| !self.is_verbose()) {
                self.page.shorten(rows);
            }
        } else if flow == Flow::Line {
            self.page.text(tone, "\n");
        }
        self.remember(tag, text, goes_on, parent);
        self.page.text(tone, text);
    }

    fn remember(&mut self, tag: Tag, text: &str, goes_on: bool, parent: Option<&str>) {
        if parent.is_some() {
            return;
        }
        if tag == Tag::Ai {
            let said = &mut self.iteration.said;
            if !goes_on {
                said.begin_message();
            }
            said.add(text);
        }
        let thought = &mut self.iteration.thought;
        if tag == Tag::Think && thought.len() < THOUGHT_BYTES {
            if !goes_on && !thought.is_empty() {
                thought.push(' ');
            }
            thought.push_str(head(text, THOUGHT_BYTES - thought.len()));
        }
    }

    fn tool_start(&mut self, tool: &ToolStart, at: Timestamp) {
        let workspace = self
            .header
            .as_ref()
            .map_or("", |header| header.workspace.as_str());
        let argument = tool.input.as_ref().map(|input| first_argument(input, workspace));
        let mut open = OpenTool::new(
            &tool.id,
            &one_line(&tool.name, NAME_COLUMNS).0,
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
        open.announced_at = self.page.lines;
        self.iteration.tools.start(open);
    }

    fn tool_line(&mut self, nested: bool, label: Label) {
        if nested {
            self.page.nested_line(label);
        } else {
            self.page.line(label);
        }
    }

    /// Every field of the input, long texts as they are.
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
            let follows = tool.announced_at == self.page.lines && self.page.column == 0;
            let name = format!("{} {}", tool.name, tool.argument);
            if !follows {
                self.page.line(labels::TOOL);
                self.page.put(Tone::Plain, "…");
                self.page.put_spaced(Tone::Accent, &name);
                self.page.end_row();
            }
            self.page.begin(labels::TOOL, Some(id));
            self.page.without_label();
        }
        self.page.text(Tone::Plain, text);
    }

    fn tool_end(&mut self, end: &ToolEnd, at: Timestamp) {
        let (open, ended) = self.iteration.tools.end(end, at);
        let follows = open.as_ref().is_some_and(|open| {
            self.page.is_open(labels::TOOL, Some(&open.id))
                || (open.announced_at == self.page.lines && self.page.column == 0)
        });
        let nested = open.is_some_and(|open| open.nested);
        self.tool_line(nested, if follows { Label::SAME } else { labels::TOOL });
        self.ended_tool(&ended, !follows);
    }

    /// The rest of a line: how a call ended, and which one where that is not clear.
    pub(super) fn ended_tool(&mut self, tool: &EndedTool, named: bool) {
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

    fn count_usage(&mut self, usage: &Usage) {
        match usage.scope {
            UsageScope::Step => self.iteration.usage.add(usage),
            UsageScope::Iteration => self.iteration.usage = usage.clone(),
            UsageScope::Session => {
                self.session.latest = usage.clone();
                self.iteration.usage = usage.since(&self.session.before);
            }
        }
    }

    pub(super) fn finished(&mut self, success: bool, reason: Option<&str>, text: Option<&str>) {
        let text = text.filter(|text| !text.trim().is_empty());
        if let Some(text) = text.filter(|text| !self.iteration.said.has(text)) {
            self.text(Tag::Ai, text, Flow::Message, None);
        }
        if !success {
            let reason = reason.unwrap_or("it did not say why");
            self.note(labels::ERROR, &format!("the agent says that it failed: {reason}"));
        }
    }
}
