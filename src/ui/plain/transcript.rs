//! What the agent said and did, on the page.

use jiff::Timestamp;

use super::argument::{fields, first_argument};
use super::face::{Face, labels};
use super::page::{Label, head};
use super::tools::{EndedTool, OpenTool};
use crate::event::{
    FileChangeKind, Flow, Json, Meta, PlanItem, PlanStatus, RateLimitStatus, Tag, ToolEnd, ToolStart,
    ToolStatus, TranscriptEvent, Usage, UsageScope,
};
use crate::ui::{Tone, sentences, words};

/// How much of a thought, an echoed prompt or stray tool output is shown.
const EXCERPT_ROWS: usize = 3;
/// How much of the thoughts is kept for the PLAN callout.
const THOUGHT_BYTES: usize = 600;
const MOST_PLAN_ITEMS: usize = 40;
const SESSION_ID_CHARS: usize = 8;

/// What the assistant has said, as two numbers: enough to know whether a final message was shown already.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Said {
    message: Fingerprint,
    everything: Fingerprint,
}

/// A hash of a text that arrives in pieces, blind to white space.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    fn add(&mut self, text: &str) {
        for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn of(text: &str) -> Self {
        let mut print = Self::default();
        print.add(text);
        print
    }
}

impl Face {
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
                said.message = Fingerprint::default();
            }
            said.message.add(text);
            said.everything.add(text);
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
        let mut open = OpenTool::new(&tool.id, &tool.name, argument.unwrap_or_default(), at);
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

    fn meta(&mut self, meta: &Meta, at: Timestamp) {
        match meta {
            Meta::Session {
                session_id,
                model,
                version,
            } => self.session_line(session_id, model.as_deref(), version.as_deref()),
            Meta::Finished {
                success,
                reason,
                text,
                turns: _,
                duration_ms: _,
            } => self.finished(*success, reason.as_deref(), text.as_deref()),
            Meta::Error {
                class,
                message,
                status,
            } => {
                let status = status
                    .map(|status| format!(" (HTTP {status})"))
                    .unwrap_or_default();
                let what = sentences::error_words(*class);
                self.note(labels::ERROR, &format!("{what}{status}: {message}"));
            }
            Meta::Retry { .. } => self.retry(meta),
            Meta::RateLimit {
                status,
                resets_at,
                limit,
            } => self.rate_limit(*status, *resets_at, limit.as_deref(), at),
            Meta::Plan { items } => self.plan(items),
            Meta::FileChange { path, change } => self.file_change(path, *change),
            Meta::PermissionDenied { tool } => {
                self.note(
                    labels::WARN,
                    &format!("the agent was not permitted to use {tool}"),
                );
            }
            Meta::ParseError { message } => self.note(labels::WARN, &format!("unreadable line: {message}")),
            Meta::Cut { bytes } => {
                let size = words::bytes(*bytes);
                self.note(
                    labels::WARN,
                    &format!("a line of {size} was cut; the raw file has all of it"),
                );
            }
            Meta::Other(fields) => {
                let message = fields
                    .get("message")
                    .and_then(serde_json::Value::as_str)
                    .map(str::to_owned);
                let text = message
                    .or_else(|| serde_json::to_string(fields).ok())
                    .unwrap_or_default();
                self.page.line(labels::SYS);
                self.page.put(Tone::Plain, &text);
                self.page.end_row();
            }
        }
    }

    fn session_line(&mut self, id: &str, model: Option<&str>, version: Option<&str>) {
        if self.session.id != id {
            self.session = super::face::SessionUsage {
                id: id.to_owned(),
                ..Default::default()
            };
        }
        let short: String = id.chars().take(SESSION_ID_CHARS).collect();
        let mut line = format!("session {short}");
        for detail in [model, version].into_iter().flatten() {
            line += &format!(" · {detail}");
        }
        // An agent may name its session again and again; only news is shown.
        if !self.iteration.session_line.starts_with(&line) {
            self.note(labels::SYS, &line);
            self.iteration.session_line = line;
        }
    }

    fn finished(&mut self, success: bool, reason: Option<&str>, text: Option<&str>) {
        let text = text.filter(|text| !text.trim().is_empty());
        if let Some(text) = text {
            let said = self.iteration.said;
            let print = Fingerprint::of(text);
            if print != said.message && print != said.everything {
                self.text(Tag::Ai, text, Flow::Message, None);
            }
        }
        if !success {
            let reason = reason.unwrap_or("it did not say why");
            self.note(labels::ERROR, &format!("the agent says that it failed: {reason}"));
        }
    }

    fn retry(&mut self, meta: &Meta) {
        let Meta::Retry {
            attempt,
            max_attempts,
            delay_ms,
            class,
            message,
        } = meta
        else {
            return;
        };
        let of = max_attempts.map(|most| format!(" of {most}")).unwrap_or_default();
        let delay = delay_ms
            .map(std::time::Duration::from_millis)
            .map(words::duration);
        let delay = delay.map(|delay| format!(" in {delay}")).unwrap_or_default();
        let what = sentences::error_words(*class);
        let text = format!("the agent tries again{delay}, attempt {attempt}{of}: {what}: {message}");
        self.note(labels::WARN, text.trim_end_matches([':', ' ']));
    }

    fn rate_limit(
        &mut self,
        status: RateLimitStatus,
        resets_at: Option<Timestamp>,
        limit: Option<&str>,
        at: Timestamp,
    ) {
        let (label, state) = match status {
            // Said at the start of every session of some agents, so not news.
            RateLimitStatus::Allowed if !self.is_verbose() => return,
            RateLimitStatus::Allowed => (labels::SYS, "not reached"),
            RateLimitStatus::Warning => (labels::WARN, "almost reached"),
            RateLimitStatus::Rejected => (labels::ERROR, "reached"),
        };
        let limit = limit.map(|limit| format!(" {limit}")).unwrap_or_default();
        let resets = resets_at.map(|reset| format!(", resets {}", words::clock(reset, at, &self.zone)));
        self.note(
            label,
            &format!("usage limit{limit} {state}{}", resets.unwrap_or_default()),
        );
    }

    /// One line for each change of the plan; the whole list comes at the end of the iteration.
    fn plan(&mut self, items: &[PlanItem]) {
        let items = &items[..items.len().min(MOST_PLAN_ITEMS)];
        if self.iteration.plan == items {
            return;
        }
        self.iteration.plan = items.to_vec();
        if self.is_verbose() {
            return self.plan_items();
        }
        let done = items
            .iter()
            .filter(|item| item.status == PlanStatus::Done)
            .count();
        let next = items
            .iter()
            .find(|item| item.status == PlanStatus::Active)
            .or_else(|| items.iter().find(|item| item.status == PlanStatus::Pending));
        self.page.line(labels::PLAN);
        self.page
            .put(Tone::Plain, &format!("{done} of {} done", items.len()));
        if let Some(next) = next {
            self.page
                .put_spaced(Tone::Plain, &format!("· next: {}", next.text));
        }
        self.page.end_row();
    }

    fn file_change(&mut self, path: &str, change: FileChangeKind) {
        let word = match change {
            FileChangeKind::Added => "added",
            FileChangeKind::Modified => "changed",
            FileChangeKind::Deleted => "deleted",
        };
        self.page.line(labels::FILE);
        self.page.put(Tone::Plain, word);
        self.page.put_spaced(Tone::Plain, path);
        self.page.end_row();
    }
}
