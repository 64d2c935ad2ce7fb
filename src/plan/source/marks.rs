//! Marks tasks as done in the text of a source, and removes marks that ralph did not set. Nothing else changes.

use std::collections::BTreeSet;

use crate::plan::task::{Mark, SourceTask};

/// The state that the marks of a task should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkState {
    Done,
    Open,
}

/// Returns the text with exactly the tasks in `done` marked.
pub(crate) fn set_marks(text: &str, tasks: &[SourceTask], done: &BTreeSet<String>) -> String {
    let states = tasks.iter().map(|task| match done.contains(&task.task.id) {
        true => (task, MarkState::Done),
        false => (task, MarkState::Open),
    });
    write_marks(
        text,
        states.filter(|(task, state)| *state == MarkState::Done || task.done),
    )
}

/// Returns the text without the marks of tasks that are marked, but not in `done`. Other tasks stay as they are.
pub(crate) fn unmark(text: &str, tasks: &[SourceTask], done: &BTreeSet<String>) -> String {
    let wrong = tasks
        .iter()
        .filter(|task| task.done && !done.contains(&task.task.id));
    write_marks(text, wrong.map(|task| (task, MarkState::Open)))
}

fn write_marks<'a>(text: &str, states: impl Iterator<Item = (&'a SourceTask, MarkState)>) -> String {
    let mut edits: Vec<(usize, usize, &str)> = states
        .flat_map(|(task, state)| task.marks.iter().filter_map(move |mark| edit(mark, state)))
        .collect();
    edits.sort_unstable();
    let mut written = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end, new) in edits {
        written.push_str(&text[at..start]);
        written.push_str(new);
        at = end;
    }
    written.push_str(&text[at..]);
    written
}

/// The bytes to replace, and their replacement; `None` if the mark is right.
fn edit(mark: &Mark, state: MarkState) -> Option<(usize, usize, &'static str)> {
    if mark.is_checked() == (state == MarkState::Done) {
        return None;
    }
    match (mark, state) {
        (Mark::Box { offset, .. }, MarkState::Done) => Some((*offset, offset + 1, "x")),
        (Mark::Box { offset, .. }, MarkState::Open) => Some((*offset, offset + 1, " ")),
        (Mark::Value { start, end, .. }, MarkState::Done) => Some((*start, *end, "true")),
        (Mark::Value { start, end, .. }, MarkState::Open) => Some((*start, *end, "false")),
        (Mark::Missing { offset }, MarkState::Done) => Some((*offset, *offset, "\"passes\": true, ")),
        (Mark::Missing { .. }, MarkState::Open) => None,
    }
}
