//! Reads prd.json: an object with `userStories`, or a list of features. `passes` shows whether a story is done.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Lines, ParsedSource};
use crate::plan::check::Problem;
use crate::plan::task::{Mark, SourceTask, derived_id};

/// The members of the object that can contain the stories.
const LISTS: &[&str] = &["userStories", "stories", "features", "tasks"];
/// The members of a story that name the stories it depends on.
const NEEDS: &[&str] = &["needs", "dependencies", "dependsOn", "blockedBy"];

pub(super) fn parse(text: &str) -> ParsedSource {
    let lines = Lines::of(text);
    let mut source = ParsedSource::default();
    let stories = match stories(text) {
        Ok(stories) => stories,
        Err(problem) => {
            source.problems.push(problem);
            return source;
        }
    };
    for raw in stories {
        let start = offset_in(text, raw.get());
        let line = lines.at(start);
        match story(text, raw, line) {
            Ok(task) => source.tasks.push(task),
            Err(problem) => source.problems.push(problem),
        }
    }
    source
}

/// The position of a part in the text that it was borrowed from.
fn offset_in(text: &str, part: &str) -> usize {
    part.as_ptr().addr() - text.as_ptr().addr()
}

fn invalid(error: &serde_json::Error) -> Problem {
    Problem::new(error.line().max(1), format!("invalid JSON: {error}"))
}

fn stories(text: &str) -> Result<Vec<&RawValue>, Problem> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).map_err(|error| invalid(&error));
    }
    let members: std::collections::BTreeMap<&str, &RawValue> =
        serde_json::from_str(text).map_err(|error| invalid(&error))?;
    let list = LISTS.iter().find_map(|name| members.get(name));
    let list = list.ok_or_else(|| {
        Problem::new(1, "no list of stories found").with_help("expected `userStories`, or a list of features")
    })?;
    let first_line = Lines::of(text).at(offset_in(text, list.get()));
    serde_json::from_str(list.get())
        .map_err(|error| Problem::new(first_line, format!("expected a list of stories: {error}")))
}

fn story(text: &str, raw: &RawValue, line: usize) -> Result<SourceTask, Problem> {
    let members: Map<String, Value> = serde_json::from_str(raw.get())
        .map_err(|_| Problem::new(line, "expected a story, which is an object"))?;
    let string = |name: &str| match members.get(name) {
        Some(Value::String(text)) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let list = |name: &str| -> Vec<String> {
        let items = match members.get(name) {
            Some(Value::Array(items)) => items.as_slice(),
            Some(item @ (Value::String(_) | Value::Number(_))) => std::slice::from_ref(item),
            _ => &[],
        };
        let text = |item: &Value| match item {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        items.iter().filter_map(text).collect()
    };
    let description = string("description");
    let title = string("title")
        .or_else(|| description.clone())
        .or_else(|| string("name"));
    let Some(title) = title else {
        return Err(Problem::new(line, "a story without a title").with_help("add `title` or `description`"));
    };
    let title = title.lines().next().unwrap_or_default().to_owned();
    let mut task = SourceTask {
        line,
        ..SourceTask::default()
    };
    task.marks = vec![mark(text, raw, line)?];
    task.done = task.marks.iter().all(Mark::is_checked);
    let id = string("id").unwrap_or_else(|| derived_id(&string("category").unwrap_or_default(), &title));
    task.task.id = id;
    task.task.needs = NEEDS.iter().flat_map(|name| list(name)).collect();
    task.task.gates = [list("gates"), list("gate")].concat();
    task.task.touches = list("touches");
    task.task.agent = string("agent");
    task.task.model = string("model");
    task.task.priority = members.get("priority").and_then(priority);
    let mut body: Vec<String> = description.filter(|text| *text != title).into_iter().collect();
    for (heading, name) in [("Acceptance criteria", "acceptanceCriteria"), ("Steps", "steps")] {
        let items = list(name);
        if !items.is_empty() {
            body.push(format!("{heading}:\n- {}", items.join("\n- ")));
        }
    }
    body.extend(string("notes").map(|notes| format!("Notes: {notes}")));
    task.task.title = title;
    task.task.body = body.join("\n\n");
    Ok(task)
}

/// Numbers, and the words that some files use.
fn priority(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(word) => match word.to_ascii_lowercase().as_str() {
            "critical" => Some(1),
            "high" => Some(2),
            "medium" => Some(3),
            "low" => Some(4),
            word => word.parse().ok(),
        },
        _ => None,
    }
}

fn mark(text: &str, raw: &RawValue, line: usize) -> Result<Mark, Problem> {
    let members: std::collections::BTreeMap<std::borrow::Cow<'_, str>, &RawValue> =
        serde_json::from_str(raw.get()).map_err(|error| Problem::new(line, error.to_string()))?;
    let Some(value) = members.get("passes") else {
        let offset = offset_in(text, raw.get()) + 1;
        return Ok(Mark::Missing { offset });
    };
    let start = offset_in(text, value.get());
    let checked = match value.get() {
        "true" => true,
        "false" | "null" => false,
        other => {
            let message = format!("`passes`: expected true or false, found {other}");
            return Err(Problem::new(line, message));
        }
    };
    Ok(Mark::Value {
        start,
        end: start + value.get().len(),
        checked,
    })
}
