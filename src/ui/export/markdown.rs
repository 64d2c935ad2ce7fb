//! A run as a Markdown text. All that an agent said stands in fences that it cannot close.

use std::io::{self, Write};

use super::sections::{Block, Gate, Section, Sections, Tool, tool_end};
use super::{Cover, figures};
use crate::event::{Record, Sink, Tag};
use crate::ui::{AttemptSummary, clean::clean, units};

/// Writes chapter by chapter as records come.
pub struct Markdown<W: Write> {
    writer: W,
    story: Sections,
    turns: Vec<AttemptSummary>,
}

impl<W: Write> Markdown<W> {
    pub fn begin(mut writer: W, cover: &Cover) -> io::Result<Self> {
        let mut text = format!(
            "# Run {}\n\n{} {}\n\n",
            inline(cover.id),
            cover.verdict.mark,
            inline(&cover.verdict.sentence)
        );
        for (name, value) in &cover.facts {
            text.push_str(&format!("- {name}: {}\n", inline(value)));
        }
        if let Some(prompt) = cover.prompt {
            text.push_str(&format!("\n## Prompt\n\n{}", fenced(&clean(prompt))));
        }
        if !cover.final_message.trim().is_empty() {
            let message = fenced(&clean(cover.final_message.trim()));
            text.push_str(&format!("\n## Final message\n\n{message}"));
        }
        writer.write_all(text.as_bytes())?;
        Ok(Self {
            writer,
            story: Sections::default(),
            turns: cover.turns.to_vec(),
        })
    }

    /// Writes what is left.
    pub fn end(mut self) -> io::Result<()> {
        if let Some(chapter) = self.story.finish() {
            self.chapter(&chapter)?;
        }
        self.writer.flush()
    }

    fn chapter(&mut self, chapter: &Section) -> io::Result<()> {
        let mut text = format!("\n## {}\n\n", inline(&chapter.title()));
        let is_this = |turn: &&AttemptSummary| Some((turn.iteration, turn.attempt)) == chapter.iteration;
        let turn = self.turns.iter().find(is_this);
        for block in &chapter.blocks {
            match block {
                Block::Verdict(verdict) => {
                    let figures = turn
                        .map(|turn| format!(" ({})", figures(turn)))
                        .unwrap_or_default();
                    let sentence = inline(&verdict.sentence);
                    text.push_str(&format!("{} {sentence}{figures}\n\n", verdict.mark));
                }
                Block::Said { tag: Tag::Prompt, .. } => {}
                Block::Said { tag, text: said, .. } => {
                    text.push_str(&format!("**{}**\n\n{}\n", tag.name(), fenced(&said.shown())));
                }
                Block::Tool(tool) => text.push_str(&self::tool(tool)),
                Block::Gate(gate) => text.push_str(&self::gate(gate)),
                Block::Note { label, text: note } => {
                    text.push_str(&format!("**{label}**\n\n{}\n", fenced(&note.shown())));
                }
            }
        }
        self.writer.write_all(text.as_bytes())
    }
}

impl<W: Write> Sink for Markdown<W> {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        match self.story.hear(record) {
            Some(chapter) => self.chapter(&chapter),
            None => Ok(()),
        }
    }
}

fn tool(tool: &Tool) -> String {
    let (mark, took) = tool_end(tool);
    let about = format!("{} {}", tool.name, tool.about);
    let mut text = format!("**TOOL** {mark} {} {took}\n\n", inline(about.trim()));
    for part in [&tool.input, &tool.output]
        .into_iter()
        .filter(|part| !part.is_empty())
    {
        text.push_str(&format!("{}\n", fenced(&part.shown())));
    }
    text
}

fn gate(gate: &Gate) -> String {
    let why = gate.why();
    let mark = if why.is_none() { "✓" } else { "✗" };
    let why = why.map(|why| format!(" · {}", inline(&why))).unwrap_or_default();
    let took = units::duration(gate.took);
    let mut text = format!("**GATE** {mark} {} · {took}{why}\n\n", inline(&gate.name));
    if !gate.output.is_empty() {
        text.push_str(&format!("{}\n", fenced(&gate.output.shown())));
    }
    text
}

/// A fence longer than any in the text.
fn fenced(text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}

/// On one line, and with every sign that Markdown or HTML could obey made plain.
fn inline(text: &str) -> String {
    let text = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            '&' => plain.push_str("&amp;"),
            '\\' | '`' | '*' | '[' | ']' | '!' | '|' | '#' | '~' => plain.extend(['\\', c]),
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_closes_its_fence_or_becomes_markup() {
        assert_eq!(fenced("a\n````\nb"), "`````text\na\n````\nb\n`````\n");
        assert_eq!(
            inline("![x](http://e) <b>\n`c`"),
            "\\!\\[x\\](http://e) &lt;b&gt; \\`c\\`"
        );
    }
}
