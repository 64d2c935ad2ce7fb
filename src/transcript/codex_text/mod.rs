//! `codex-text`: the transcript that `codex exec` prints for people. It has no escaping, so what a line is must be
//! told from where it stands; `marks` knows the lines that divide it, `echo` the prompt that it
//! repeats, `calls` what tools did.

mod calls;
mod echo;
mod separators;
#[cfg(test)]
mod tests;

use super::codex::{PREFACE, error_of, finished, retry_of};
use super::common::{Tools, hidden_prompt};
use super::{Adapter, Capabilities, Format};
use crate::event::{Flow, Meta, Tag, TranscriptEvent, Usage, UsageScope};
use calls::Call;
use echo::{Echo, Heard};
use separators::Mark;

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
        // The figure at the end is missing where only the last message is seen, on today's stdout.
        terminal_event: false,
    },
    open: |opening| Box::new(CodexText::new(opening.prompt)),
};

#[derive(Default)]
pub(super) struct CodexText {
    prompt: String,
    place: Place,
    tools: Tools,
    /// The call that is running, or whose output is being read.
    call: Option<Call>,
    calls: u64,
    /// Empty lines that were held back: at the end of a tool's output they are only its border.
    blanks: usize,
    header: Header,
    /// The last message, to know it again where it is printed twice.
    message: String,
    answered: bool,
    error: Option<String>,
    finished: bool,
}

/// What the next line belongs to.
#[derive(Default)]
enum Place {
    /// Before anything is known.
    #[default]
    Preface,
    Header,
    Echo(Echo),
    Text {
        tag: Tag,
        begun: bool,
    },
    /// After `exec`: the command, which may have several lines.
    Command(String),
    /// The command runs; its verdict comes next.
    Running,
    Output,
    /// After `tokens used`: the figure comes next.
    Figure,
    /// After the figure: the last message may come again, and this is what is left of it.
    Repeat(String),
}

#[derive(Default)]
struct Header {
    version: Option<String>,
    model: Option<String>,
    session: Option<String>,
    directory: Option<String>,
}

impl Adapter for CodexText {
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        // Colours, where stderr is a terminal.
        let plain = anstream::adapter::strip_str(line).to_string();
        let line = plain.trim_end_matches('\r');
        if let Place::Echo(echo) = &mut self.place {
            match echo.hear(line) {
                Heard::Part => return,
                Heard::Whole => return self.end_echo(out),
                Heard::Other => self.end_echo(out),
            }
        }
        let (words, stamped) = separators::without_time(line);
        let found = if stamped {
            separators::stamped_mark(words)
        } else {
            self.mark_here(words)
        };
        match found {
            Some(mark) => self.enter(mark, out),
            None => self.go_on(words, out),
        }
    }

    fn flush(&mut self, out: &mut Vec<TranscriptEvent>) {
        if matches!(self.place, Place::Echo(_)) {
            self.end_echo(out);
        }
        self.leave(out);
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

    /// A mark without a time counts where such a line may stand.
    fn mark_here(&self, line: &str) -> Option<Mark> {
        match self.place {
            Place::Command(_) | Place::Running => {
                separators::mark(line).or_else(|| separators::ended(line).map(Mark::Ended))
            }
            Place::Output => {
                separators::mark(line).filter(|mark| self.blanks > 0 || separators::may_follow_output(mark))
            }
            Place::Preface | Place::Header | Place::Text { .. } | Place::Figure | Place::Repeat(_) => {
                separators::mark(line)
            }
            Place::Echo(_) => None,
        }
    }

    fn enter(&mut self, mark: Mark, out: &mut Vec<TranscriptEvent>) {
        if let Mark::Ended(ended) = mark {
            return self.end_command(ended, out);
        }
        self.leave(out);
        self.place = match mark {
            Mark::User => Place::Echo(Echo::of(&self.prompt)),
            Mark::Answer => text(Tag::Ai),
            Mark::Thought => text(Tag::Think),
            Mark::System => text(Tag::Sys),
            Mark::Tool => text(Tag::Tool),
            Mark::Exec(None) => Place::Command(String::new()),
            Mark::Exec(Some(header)) => {
                let directory = self.header.directory.as_deref();
                let command = separators::command_before_directory(&header, directory).unwrap_or(&header);
                self.start("shell", Some(command), out);
                Place::Running
            }
            Mark::Call(call) => {
                let name = call.split('(').next().unwrap_or(&call).to_owned();
                self.start(&name, Some(&call), out);
                Place::Running
            }
            Mark::Patch => {
                self.start("apply_patch", None, out);
                Place::Running
            }
            Mark::Tokens(None) => Place::Figure,
            Mark::Tokens(Some(figure)) => self.finish(figure, out),
            Mark::Ended(_) => return,
        };
    }

    fn go_on(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        if self.is_about_codex(line) {
            return self.read_notice(line, out);
        }
        match &mut self.place {
            Place::Preface => self.read_preface(line, out),
            Place::Header => self.read_header(line, out),
            Place::Echo(_) => {}
            Place::Text { .. } => self.say(line, out),
            Place::Command(_) => self.read_command(line, out),
            Place::Running => {
                // Not the verdict: the command was longer than its first line, or this version is another.
                self.place = Place::Output;
                self.read_output(line, out);
            }
            Place::Output => self.read_output(line, out),
            Place::Figure => match separators::figure_in(line) {
                Some(figure) => self.place = self.finish(figure, out),
                None => {
                    self.place = Place::Repeat(self.message.clone());
                    self.read_repeat(line, out);
                }
            },
            Place::Repeat(_) => self.read_repeat(line, out),
        }
    }

    /// Errors and warnings of codex itself. In a tool's output such a line is the tool's.
    fn is_about_codex(&self, line: &str) -> bool {
        let error = line.starts_with("ERROR: ");
        let warning = line.starts_with("warning: ") || line.starts_with("WARNING: ");
        match self.place {
            Place::Output => error && self.blanks > 0,
            Place::Text { tag: Tag::Think, .. } | Place::Preface | Place::Header => error || warning,
            Place::Text { .. } | Place::Command(_) | Place::Running | Place::Figure | Place::Repeat(_) => {
                error
            }
            Place::Echo(_) => false,
        }
    }

    fn read_notice(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        let Some(message) = line.strip_prefix("ERROR: ") else {
            out.push(TranscriptEvent::line(Tag::Sys, line));
            return;
        };
        if let Some(retry) = retry_of(message) {
            out.push(TranscriptEvent::meta(retry));
        } else if self.error.as_deref() != Some(message) {
            out.push(TranscriptEvent::meta(error_of(message)));
            out.push(TranscriptEvent::line(Tag::Sys, line));
            self.error = Some(message.to_owned());
        }
    }

    /// Where nothing announces itself, this is the last message on its own, as today's stdout has it.
    fn read_preface(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        if let Some(rest) = line.strip_prefix("OpenAI Codex v") {
            self.header.version = rest.split(' ').next().map(str::to_owned);
        }
        if line == RULE {
            self.place = Place::Header;
        } else if self.header.version.is_some() || line.starts_with(PREFACE) {
            out.push(TranscriptEvent::line(Tag::Sys, line));
        } else if !line.is_empty() {
            self.place = text(Tag::Ai);
            self.say(line, out);
        }
    }

    fn read_header(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        if line == RULE {
            self.place = text(Tag::Sys);
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

    /// What follows the prompt without a heading is reasoning.
    fn end_echo(&mut self, out: &mut Vec<TranscriptEvent>) {
        let place = std::mem::replace(&mut self.place, text(Tag::Think));
        if let Place::Echo(echo) = place {
            out.push(hidden_prompt(&echo.into_text()));
        }
    }

    fn say(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        let Place::Text { tag, begun } = &mut self.place else {
            return;
        };
        if !*begun && line.trim().is_empty() {
            return;
        }
        let flow = if *begun { Flow::Line } else { Flow::Message };
        *begun = true;
        if *tag == Tag::Ai {
            if flow == Flow::Message {
                self.message.clear();
            } else {
                self.message.push('\n');
            }
            self.message.push_str(line);
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
        let Place::Repeat(left) = &mut self.place else {
            return;
        };
        let mut lines = left.splitn(2, '\n');
        if lines.next() == Some(line) {
            *left = lines.next().unwrap_or_default().to_owned();
        } else if !line.is_empty() {
            self.place = text(Tag::Ai);
            self.say(line, out);
        }
    }

    fn finish(&mut self, figure: u64, out: &mut Vec<TranscriptEvent>) -> Place {
        let usage = Usage {
            total_tokens: Some(figure),
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
        Place::Repeat(self.message.clone())
    }
}

/// The border of the header.
const RULE: &str = "--------";

fn text(tag: Tag) -> Place {
    Place::Text { tag, begun: false }
}
