//! `codex-text`: the human-readable transcript of `codex exec`. It has no escaping, so the meaning of a line depends on its
//! position. `separators` recognizes the lines between sections, `echo` the repeated prompt, `calls` the tool calls.

mod calls;
mod echo;
mod separators;
#[cfg(test)]
mod tests;

use super::codex::{PREFACE, error_meta, finished, parse_retry};
use super::common::{Tools, hidden_prompt};
use super::{Adapter, Capabilities, Format};
use crate::event::{Flow, Meta, Tag, TranscriptEvent, Usage, UsageScope};
use calls::CodexCall;
use echo::{Echo, EchoMatch};
use separators::Separator;

pub(super) const FORMAT: Format = Format {
    name: "codex-text",
    capabilities: Capabilities {
        roles: true,
        messages: true,
        tools: true,
        usage: true,
        costs: false,
        sessions: true,
        prompt_hiding: true,
        // Current versions print only the last message to stdout, without the token count at the end.
        terminal_event: false,
    },
    open: |context| Box::new(CodexText::new(context.prompt)),
};

#[derive(Default)]
pub(super) struct CodexText {
    prompt: String,
    section: Section,
    tools: Tools,
    /// The call that is running or whose output is being read.
    call: Option<CodexCall>,
    calls: u64,
    /// Pending empty lines. At the end of a tool's output they are only a separator.
    pending_blanks: usize,
    header: CodexHeader,
    /// The beginning of the last message, to detect its repetition.
    message: String,
    answered: bool,
    error: Option<String>,
    finished: bool,
}

/// What a longer message repeats after this many bytes is shown as text.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// The section that the next line belongs to.
#[derive(Default)]
enum Section {
    /// Before the header.
    #[default]
    Preface,
    Header,
    Echo(Echo),
    Text {
        tag: Tag,
        started: bool,
    },
    /// After `exec`: the command, which may span several lines.
    Command(String),
    /// The command runs; its status follows.
    Running,
    Output,
    /// After `tokens used`: the count follows.
    TokenCount,
    /// After the token count: the last message may be repeated. `matched` bytes of it have been.
    Repeat {
        matched: usize,
    },
}

#[derive(Default)]
struct CodexHeader {
    version: Option<String>,
    model: Option<String>,
    session: Option<String>,
    directory: Option<String>,
}

impl Adapter for CodexText {
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        // Remove colors, which codex prints if stderr is a terminal.
        let plain = anstream::adapter::strip_str(line).to_string();
        let line = plain.trim_end_matches('\r');
        if let Section::Echo(echo) = &mut self.section {
            match echo.match_line(line) {
                EchoMatch::Partial => return,
                EchoMatch::Complete => return self.end_echo(out),
                EchoMatch::NotPrompt => self.end_echo(out),
            }
        }
        let (text, has_timestamp) = separators::strip_timestamp(line);
        let found = if has_timestamp {
            separators::timestamped_separator(text)
        } else {
            self.separator_here(text)
        };
        match found {
            Some(separator) => self.begin_section(separator, out),
            None => self.read_line(text, out),
        }
    }

    fn flush(&mut self, out: &mut Vec<TranscriptEvent>) {
        if matches!(self.section, Section::Echo(_)) {
            self.end_echo(out);
        }
        self.end_section(out);
        self.tools.close_all(out);
        if !self.finished && self.error.is_some() {
            out.push(finished(false, "error"));
        }
    }
}

impl CodexText {
    pub(super) fn new(prompt: &str) -> Self {
        Self {
            prompt: prompt.to_owned(),
            ..Self::default()
        }
    }

    /// The separator in a line without a timestamp, if it is valid in the current section.
    fn separator_here(&self, line: &str) -> Option<Separator> {
        match self.section {
            Section::Command(_) | Section::Running => separators::separator(line)
                .or_else(|| separators::command_end(line).map(Separator::CommandEnd)),
            Section::Output => separators::separator(line)
                .filter(|separator| self.pending_blanks > 0 || separators::may_follow_output(separator)),
            Section::Preface
            | Section::Header
            | Section::Text { .. }
            | Section::TokenCount
            | Section::Repeat { .. } => separators::separator(line),
            Section::Echo(_) => None,
        }
    }

    fn begin_section(&mut self, separator: Separator, out: &mut Vec<TranscriptEvent>) {
        if let Separator::CommandEnd(ended) = separator {
            return self.end_command(ended, out);
        }
        self.end_section(out);
        self.section = match separator {
            Separator::User => Section::Echo(Echo::new(&self.prompt)),
            Separator::Answer => text_section(Tag::Ai),
            Separator::Reasoning => text_section(Tag::Think),
            Separator::System => text_section(Tag::Sys),
            Separator::Tool => text_section(Tag::Tool),
            Separator::Exec(None) => Section::Command(String::new()),
            Separator::Exec(Some(header)) => {
                let directory = self.header.directory.as_deref();
                let command = separators::command_before_directory(&header, directory).unwrap_or(&header);
                self.start("shell", Some(command), out);
                Section::Running
            }
            Separator::Call(call) => {
                let name = call.split('(').next().unwrap_or(&call).to_owned();
                self.start(&name, Some(&call), out);
                Section::Running
            }
            Separator::Patch => {
                self.start("apply_patch", None, out);
                Section::Running
            }
            Separator::Tokens(None) => Section::TokenCount,
            Separator::Tokens(Some(tokens)) => self.finish(tokens, out),
            Separator::CommandEnd(_) => return,
        };
    }

    fn read_line(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        if self.is_codex_notice(line) {
            return self.read_notice(line, out);
        }
        match &mut self.section {
            Section::Preface => self.read_preface(line, out),
            Section::Header => self.read_header(line, out),
            Section::Echo(_) => {}
            Section::Text { .. } => self.push_text(line, out),
            Section::Command(_) => self.read_command(line, out),
            Section::Running => {
                // Not a status line: the command has several lines, or the version of codex is unknown.
                self.section = Section::Output;
                self.read_output(line, out);
            }
            Section::Output => self.read_output(line, out),
            Section::TokenCount => match separators::parse_count(line) {
                Some(tokens) => self.section = self.finish(tokens, out),
                None => {
                    self.section = Section::Repeat { matched: 0 };
                    self.read_repeat(line, out);
                }
            },
            Section::Repeat { .. } => self.read_repeat(line, out),
        }
    }

    /// True if the line is an error or a warning of codex. In a tool's output it belongs to the tool.
    fn is_codex_notice(&self, line: &str) -> bool {
        let error = line.starts_with("ERROR: ");
        let warning = line.starts_with("warning: ") || line.starts_with("WARNING: ");
        match self.section {
            Section::Output => error && self.pending_blanks > 0,
            Section::Text { tag: Tag::Think, .. } | Section::Preface | Section::Header => error || warning,
            Section::Text { .. }
            | Section::Command(_)
            | Section::Running
            | Section::TokenCount
            | Section::Repeat { .. } => error,
            Section::Echo(_) => false,
        }
    }

    fn read_notice(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        let Some(message) = line.strip_prefix("ERROR: ") else {
            out.push(TranscriptEvent::line(Tag::Sys, line));
            return;
        };
        if let Some(retry) = parse_retry(message) {
            out.push(TranscriptEvent::meta(retry));
        } else if self.error.as_deref() != Some(message) {
            out.push(TranscriptEvent::meta(error_meta(message)));
            out.push(TranscriptEvent::line(Tag::Sys, line));
            self.error = Some(message.to_owned());
        }
    }

    /// Reads a line before the header. Without a header, the output is only the last message, as current versions print it
    /// to stdout.
    fn read_preface(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        if let Some(rest) = line.strip_prefix("OpenAI Codex v") {
            self.header.version = rest.split(' ').next().map(str::to_owned);
        }
        if line == RULE {
            self.section = Section::Header;
        } else if self.header.version.is_some() || line.starts_with(PREFACE) {
            out.push(TranscriptEvent::line(Tag::Sys, line));
        } else if !line.is_empty() {
            self.section = text_section(Tag::Ai);
            self.push_text(line, out);
        }
    }

    fn read_header(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        if line == RULE {
            self.section = text_section(Tag::Sys);
            let header = &mut self.header;
            if let Some(session_id) = header.session.take() {
                out.push(TranscriptEvent::meta(Meta::Session {
                    session_id,
                    model: header.model.take(),
                    version: header.version.clone(),
                }));
            }
            return;
        }
        if let Some((key, value)) = line.split_once(": ") {
            let slot = match key {
                "model" => Some(&mut self.header.model),
                "session id" => Some(&mut self.header.session),
                "workdir" => Some(&mut self.header.directory),
                _ => None,
            };
            if let Some(slot) = slot {
                *slot = Some(value.to_owned());
            }
        }
        out.push(TranscriptEvent::line(Tag::Sys, line));
    }

    /// Ends the repeated prompt. Text after it without a separator is reasoning.
    fn end_echo(&mut self, out: &mut Vec<TranscriptEvent>) {
        let section = std::mem::replace(&mut self.section, text_section(Tag::Think));
        if let Section::Echo(echo) = section {
            out.push(hidden_prompt(&echo.into_text()));
        }
    }

    fn push_text(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        let Section::Text { tag, started } = &mut self.section else {
            return;
        };
        if !*started && line.trim().is_empty() {
            return;
        }
        let flow = if *started { Flow::Line } else { Flow::Message };
        *started = true;
        if *tag == Tag::Ai {
            if flow == Flow::Message {
                self.message.clear();
            }
            if self.message.len() < MAX_MESSAGE_BYTES {
                if flow == Flow::Line {
                    self.message.push('\n');
                }
                self.message.push_str(line);
            }
            self.answered |= !line.trim().is_empty();
        }
        out.push(TranscriptEvent::Text {
            tag: *tag,
            text: line.to_owned(),
            flow,
            parent: None,
        });
    }

    fn read_repeat(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        let Section::Repeat { matched } = &mut self.section else {
            return;
        };
        let expected = self.message.get(*matched..).unwrap_or_default();
        if expected.split('\n').next() == Some(line) {
            *matched += line.len() + 1;
        } else if !line.is_empty() {
            self.section = text_section(Tag::Ai);
            self.push_text(line, out);
        }
    }

    fn finish(&mut self, tokens: u64, out: &mut Vec<TranscriptEvent>) -> Section {
        let usage = Usage {
            total_tokens: Some(tokens),
            scope: UsageScope::Session,
            ..Usage::default()
        };
        out.push(TranscriptEvent::usage(usage));
        let silent = !self.answered && !self.tools.used();
        out.push(finished(
            !silent,
            if silent { "no answer" } else { "tokens used" },
        ));
        self.finished = true;
        Section::Repeat { matched: 0 }
    }
}

/// The line before and after the header.
const RULE: &str = "--------";

fn text_section(tag: Tag) -> Section {
    Section::Text { tag, started: false }
}
