//! A transcript as Markdown, to keep and to send. Pure.

use super::model::{Body, Entry, Gate, Said, State, Tool, ToolState, Transcript};
use crate::event::{GateResult, Tag, ToolStatus};
use crate::ui::clean::clean;
use crate::ui::{describe, units};

pub(super) fn file_name(entry: &Entry) -> String {
    let again = if entry.which.attempt > 1 {
        format!("-{}", entry.which.attempt)
    } else {
        String::new()
    };
    format!("transcript-{:04}{again}.md", entry.which.iteration)
}

pub(super) fn markdown(state: &State, entry: &Entry, transcript: &Transcript) -> String {
    let run = state.header.as_ref();
    let agent = run.map_or("an agent", |header| header.agent.as_str());
    let id = run.map_or("", |header| header.run_id.as_str());
    let mut text = format!("# Iteration {} of run {id}\n\n", entry.which.iteration);
    text += &format!("{agent}, {}", entry.started.strftime("%Y-%m-%d %H:%M:%S UTC"));
    if let Some(end) = &entry.end {
        text += &format!(", {}", units::duration(end.took));
    }
    if let Some(tokens) = entry.usage.tokens() {
        text += &format!(", {} tokens", units::grouped(tokens));
    }
    if let Some(cost) = entry.usage.cost_usd {
        text += &format!(", {}", units::dollars(cost));
    }
    text.push_str("\n\n");
    if transcript.dropped > 0 {
        let gone = units::count(transcript.dropped, "earlier piece");
        text += &format!("*({gone} left out; the journal has all of it.)*\n\n");
    }
    for block in &transcript.blocks {
        let piece = match &block.body {
            Body::Said(said) => said_text(said),
            Body::Tool(tool) => tool_text(tool),
            Body::Gate(gate) => gate_text(gate),
            Body::Note(note) => format!("*{} {}*", note.mark, note.text.trim().replace('\n', " ")),
        };
        text.push_str(&clean(&piece));
        text.push_str("\n\n");
    }
    text
}

fn said_text(said: &Said) -> String {
    let text = said.text.trim();
    match said.tag {
        Tag::Ai => text.to_owned(),
        Tag::Think => format!("> {}", text.replace('\n', "\n> ")),
        Tag::User | Tag::Prompt => format!("**{:?}**\n\n{text}", said.tag),
        Tag::Sys | Tag::Tool => fenced(text),
    }
}

fn tool_text(tool: &Tool) -> String {
    let state = match tool.state {
        ToolState::Running => "running".to_owned(),
        ToolState::Lost => "no end was seen".to_owned(),
        ToolState::Ended { status, took } => {
            let word = match status {
                ToolStatus::Ok => "ok",
                ToolStatus::Fail => "failed",
                ToolStatus::Unknown => "ended",
            };
            took.map_or(word.to_owned(), |took| {
                format!("{word}, {}", units::duration(took))
            })
        }
    };
    let mut text = format!(
        "**{}** `{}` ({state})",
        tool.name,
        tool.argument.replace('`', "'")
    );
    if !tool.output.is_empty() {
        text += &format!("\n\n{}", fenced(tool.output.text().trim_end()));
    }
    text
}

fn gate_text(gate: &Gate) -> String {
    let end = match gate.end {
        None => "running".to_owned(),
        Some((GateResult::Passed, took)) => format!("passed, {}", units::duration(took)),
        Some((result, took)) => {
            let why = describe::gate_words(result).unwrap_or_default();
            format!("failed: {why}, {}", units::duration(took))
        }
    };
    let mut text = format!(
        "**gate {}** `{}` ({end})",
        gate.name,
        gate.command.replace('`', "'")
    );
    if !gate.output.is_empty() {
        text += &format!("\n\n{}", fenced(gate.output.text().trim_end()));
    }
    text
}

/// A fence that is longer than any inside.
fn fenced(text: &str) -> String {
    let longest = text
        .lines()
        .map(|line| line.trim_start().bytes().take_while(|byte| *byte == b'`').count())
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{text}\n{fence}")
}
