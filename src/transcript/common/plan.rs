//! Parses the task list tool that several agents share.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Field, list, object};
use crate::event::{Meta, PlanItem, PlanStatus, TranscriptEvent};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Todo<'a> {
    #[serde(borrow)]
    todos: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Field<'a>,
    #[serde(borrow)]
    status: Field<'a>,
}

/// Parses the tool input `{"todos":[{"content":…,"status":…}]}`.
pub(in crate::transcript) fn read_plan(input: Option<&RawValue>) -> Option<TranscriptEvent> {
    let items: Vec<PlanItem> = list(object::<Todo<'_>>(input).todos)
        .into_iter()
        .filter_map(|raw| {
            let todo: Todo<'_> = object(Some(raw));
            Some(PlanItem {
                text: todo.content.non_empty()?.to_owned(),
                status: match todo.status.text() {
                    Some("completed") => PlanStatus::Done,
                    Some("in_progress") => PlanStatus::Active,
                    _ => PlanStatus::Pending,
                },
            })
        })
        .collect();
    (!items.is_empty()).then(|| TranscriptEvent::meta(Meta::Plan { items }))
}
