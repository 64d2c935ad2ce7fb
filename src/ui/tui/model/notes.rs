//! One-line notes for run events, in the transcript and the events tab.

use super::block::Note;
use crate::event::{Description, NoteTag};
use crate::ui::plain::one_line;

const MAX_NOTE_COLUMNS: usize = 400;

/// The note for a description. Texts of any length, such as messages and failures, keep their lines.
pub(super) fn note(description: &Description) -> Note {
    let text = match description.tag {
        NoteTag::User => format!("you: {}", description.text),
        NoteTag::Plan => format!("plan: {}", description.text),
        NoteTag::Topic | NoteTag::System | NoteTag::Session | NoteTag::File => {
            one_line(&description.text, MAX_NOTE_COLUMNS).0
        }
        _ => description.text.clone(),
    };
    Note::new(description.mark(), description.tone, text)
}
