//! The placeholder for a prompt that the agent repeats in its output.

use crate::event::{Tag, TranscriptEvent};

/// One line that replaces the prompt. The run directory contains the complete prompt.
pub(in crate::transcript) fn hidden_prompt(prompt: &str) -> TranscriptEvent {
    let lines = prompt.lines().count();
    let noun = if lines == 1 { "line" } else { "lines" };
    TranscriptEvent::message(Tag::Prompt, format!("… prompt hidden ({lines} {noun})"))
}
