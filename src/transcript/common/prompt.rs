//! The prompt, echoed: agents repeat it, whole, in the same stream as the answer.

use crate::event::{Tag, TranscriptEvent};

/// One line in the place of the whole prompt, which is in the run's own files anyway.
pub(in crate::transcript) fn hidden_prompt(prompt: &str) -> TranscriptEvent {
    let lines = prompt.lines().count();
    let noun = if lines == 1 { "line" } else { "lines" };
    TranscriptEvent::message(Tag::Prompt, format!("… prompt hidden ({lines} {noun})"))
}
