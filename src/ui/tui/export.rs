//! Exports a transcript as Markdown. Pure.

use super::model::{
    AttemptEntry, BlockBody, GateBlock, TextBlock, ToolCall, ToolState, Transcript, TuiState,
};
use crate::event::{GateResult, Tag, ToolStatus};
use crate::ui::clean::clean;
use crate::ui::{gate_failure, units};

pub(super) fn file_name(entry: &AttemptEntry) -> String {
    let attempt = if entry.id.attempt > 1 {
        format!("-{}", entry.id.attempt)
    } else {
        String::new()
    };
    format!("transcript-{:04}{attempt}.md", entry.id.iteration)
}

pub(super) fn markdown(state: &TuiState, entry: &AttemptEntry, transcript: &Transcript) -> String {
    let run = state.header.as_ref();
    let agent = run.map_or("an agent", |header| header.agent.as_str());
    let id = run.map_or("", |header| header.run_id.as_str());
    let mut text = format!("# Iteration {} of run {id}\n\n", entry.id.iteration);
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
        let dropped = units::count(transcript.dropped, "earlier block");
        text += &format!("*({dropped} omitted; see the journal for the full transcript.)*\n\n");
    }
    for block in &transcript.blocks {
        let markdown = match &block.body {
            BlockBody::Text(text) => text_markdown(text),
            BlockBody::Tool(tool) => tool_markdown(tool),
            BlockBody::Gate(gate) => gate_markdown(gate),
            BlockBody::Note(note) => format!("*{} {}*", note.mark, note.text.trim().replace('\n', " ")),
        };
        text.push_str(&clean(&markdown));
        text.push_str("\n\n");
    }
    text
}

fn text_markdown(block: &TextBlock) -> String {
    let text = block.text.trim();
    match block.tag {
        Tag::Ai => text.to_owned(),
        Tag::Think => format!("> {}", text.replace('\n', "\n> ")),
        Tag::User | Tag::Prompt => format!("**{:?}**\n\n{text}", block.tag),
        Tag::Sys | Tag::Tool => fenced(text),
    }
}

fn tool_markdown(tool: &ToolCall) -> String {
    let state = match tool.state {
        ToolState::Running => "running".to_owned(),
        ToolState::Unfinished => "unfinished".to_owned(),
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

fn gate_markdown(gate: &GateBlock) -> String {
    let end = match gate.end {
        None => "running".to_owned(),
        Some((GateResult::Passed, took)) => format!("passed, {}", units::duration(took)),
        Some((result, took)) => {
            let why = gate_failure(result).unwrap_or_default();
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

/// Wraps text in a fence that is longer than any fence inside.
fn fenced(text: &str) -> String {
    let longest = text
        .lines()
        .map(|line| line.trim_start().bytes().take_while(|byte| *byte == b'`').count())
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{text}\n{fence}")
}
