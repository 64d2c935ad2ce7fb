//! Exports a run as Markdown. Agent text is fenced with more backticks than it contains, so it cannot end the fence.

use std::io::{self, Write};

use super::sections::{
    ExportSection, ExportedGate, ExportedToolCall, SectionBuilder, SectionItem, tool_status,
};
use super::{ExportHeader, figures};
use crate::event::{Record, Sink, Tag};
use crate::ui::{AttemptSummary, clean::clean, units};

/// Writes each section once its last record has arrived.
pub struct Markdown<W: Write> {
    writer: W,
    sections: SectionBuilder,
    attempts: Vec<AttemptSummary>,
}

impl<W: Write> Markdown<W> {
    pub fn begin(mut writer: W, header: &ExportHeader) -> io::Result<Self> {
        let mut text = format!(
            "# Run {}\n\n{} {}\n\n",
            inline(header.id),
            header.verdict.mark,
            inline(&header.verdict.sentence)
        );
        for (name, value) in &header.facts {
            text.push_str(&format!("- {name}: {}\n", inline(value)));
        }
        if let Some(prompt) = header.prompt {
            text.push_str(&format!("\n## Prompt\n\n{}", fenced(&clean(prompt))));
        }
        if !header.final_message.trim().is_empty() {
            let message = fenced(&clean(header.final_message.trim()));
            text.push_str(&format!("\n## Final message\n\n{message}"));
        }
        writer.write_all(text.as_bytes())?;
        Ok(Self {
            writer,
            sections: SectionBuilder::default(),
            attempts: header.attempts.to_vec(),
        })
    }

    /// Writes the last section.
    pub fn end(mut self) -> io::Result<()> {
        if let Some(section) = self.sections.finish() {
            self.write_section(&section)?;
        }
        self.writer.flush()
    }

    fn write_section(&mut self, section: &ExportSection) -> io::Result<()> {
        let mut text = format!("\n## {}\n\n", inline(&section.title()));
        let is_this =
            |attempt: &&AttemptSummary| Some((attempt.iteration, attempt.attempt)) == section.iteration;
        let attempt = self.attempts.iter().find(is_this);
        for item in &section.items {
            match item {
                SectionItem::Verdict(verdict) => {
                    let figures = attempt
                        .map(|attempt| format!(" ({})", figures(attempt)))
                        .unwrap_or_default();
                    let sentence = inline(&verdict.sentence);
                    text.push_str(&format!("{} {sentence}{figures}\n\n", verdict.mark));
                }
                SectionItem::Text { tag: Tag::Prompt, .. } => {}
                SectionItem::Text {
                    tag, text: content, ..
                } => {
                    text.push_str(&format!("**{}**\n\n{}\n", tag.name(), fenced(&content.shown())));
                }
                SectionItem::ToolCall(tool) => text.push_str(&format_tool_call(tool)),
                SectionItem::Gate(gate) => text.push_str(&format_gate(gate)),
                SectionItem::Note { label, text: note } => {
                    text.push_str(&format!("**{label}**\n\n{}\n", fenced(&note.shown())));
                }
            }
        }
        self.writer.write_all(text.as_bytes())
    }
}

impl<W: Write> Sink for Markdown<W> {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        match self.sections.apply(record) {
            Some(section) => self.write_section(&section),
            None => Ok(()),
        }
    }
}

fn format_tool_call(tool: &ExportedToolCall) -> String {
    let (mark, duration) = tool_status(tool);
    let summary = format!("{} {}", tool.name, tool.argument);
    let mut text = format!("**TOOL** {mark} {} {duration}\n\n", inline(summary.trim()));
    for part in [&tool.input, &tool.output]
        .into_iter()
        .filter(|part| !part.is_empty())
    {
        text.push_str(&format!("{}\n", fenced(&part.shown())));
    }
    text
}

fn format_gate(gate: &ExportedGate) -> String {
    let failure = gate.failure();
    let mark = if failure.is_none() { "✓" } else { "✗" };
    let failure = failure
        .map(|failure| format!(" · {}", inline(&failure)))
        .unwrap_or_default();
    let duration = units::duration(gate.duration);
    let mut text = format!("**GATE** {mark} {} · {duration}{failure}\n\n", inline(&gate.name));
    if !gate.output.is_empty() {
        text.push_str(&format!("{}\n", fenced(&gate.output.shown())));
    }
    text
}

/// Puts the text in a fence that is longer than any run of backticks in it.
fn fenced(text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}

/// Joins the lines and escapes every character that Markdown or HTML interprets.
fn inline(text: &str) -> String {
    let text = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '[' | ']' | '!' | '|' | '#' | '~' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_close_its_fence_or_become_markup() {
        assert_eq!(fenced("a\n````\nb"), "`````text\na\n````\nb\n`````\n");
        assert_eq!(
            inline("![x](http://e) <b>\n`c`"),
            "\\!\\[x\\](http://e) &lt;b&gt; \\`c\\`"
        );
    }
}
