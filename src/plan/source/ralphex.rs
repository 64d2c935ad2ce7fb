//! Reads ralphex plan files: each `### Task N: title` heading is a task, the boxes below it are its steps, and the commands
//! under `## Validation Commands` are gates of every task.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

use super::settings::{Setting, apply, setting_of, without_code_marks};
use super::{Lines, ParsedSource, markdown};
use crate::plan::task::{Mark, SourceTask, derived_id};

/// Whether a Markdown text has at least one task heading.
pub(super) fn is_ralphex(text: &str) -> bool {
    sections(text)
        .iter()
        .any(|section| task_title(&section.title).is_some())
}

/// A heading and everything up to the next one.
struct Section {
    title: String,
    level: HeadingLevel,
    range: Range<usize>,
    boxes: Vec<Mark>,
    /// The items of its lists that have no box.
    items: Vec<Range<usize>>,
}

fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let (mut in_heading, mut depth) = (false, 0_usize);
    for (event, range) in Parser::new_ext(text, markdown::options()).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) if depth == 0 => {
                if let Some(last) = sections.last_mut() {
                    last.range.end = range.start;
                }
                in_heading = true;
                sections.push(Section {
                    title: String::new(),
                    level,
                    range: range.end..text.len(),
                    boxes: Vec::new(),
                    items: Vec::new(),
                });
            }
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Start(Tag::BlockQuote(_) | Tag::List(_)) => depth += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_)) => depth = depth.saturating_sub(1),
            Event::Text(title) | Event::Code(title) if in_heading => {
                if let Some(section) = sections.last_mut() {
                    section.title.push_str(&title);
                }
            }
            Event::Start(Tag::Item) => {
                if let Some(section) = sections.last_mut() {
                    section.items.push(range);
                }
            }
            Event::TaskListMarker(checked) => {
                if let Some(section) = sections.last_mut() {
                    let offset = range.start + 1;
                    section.items.pop();
                    section.boxes.push(Mark::Box { offset, checked });
                }
            }
            _ => {}
        }
    }
    sections
}

/// The title in `Task 3: title` or `Iteration 2a: title`.
fn task_title(heading: &str) -> Option<&str> {
    let rest = ["Task ", "Iteration "]
        .iter()
        .find_map(|word| heading.trim().strip_prefix(word))?;
    let (number, title) = rest.split_once(':')?;
    let is_number = number.starts_with(|letter: char| letter.is_ascii_digit())
        && number
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '.');
    (is_number && !title.trim().is_empty()).then(|| title.trim())
}

pub(super) fn parse(text: &str) -> ParsedSource {
    let lines = Lines::of(text);
    let mut source = ParsedSource::default();
    let sections = sections(text);
    let mut gates: Vec<String> = Vec::new();
    for section in sections.iter().filter(|section| is_validation(&section.title)) {
        gates.extend(section.items.iter().filter_map(|item| gate(&text[item.clone()])));
    }
    let mut parts = sections.into_iter().peekable();
    while let Some(section) = parts.next() {
        let Some(title) = task_title(&section.title).map(str::to_owned) else {
            continue;
        };
        let (mut boxes, mut items, mut end) = (section.boxes, section.items, section.range.end);
        // Deeper headings belong to the task.
        while let Some(part) =
            parts.next_if(|part| part.level > section.level && task_title(&part.title).is_none())
        {
            boxes.extend(part.boxes);
            items.extend(part.items);
            end = part.range.end;
        }
        // The heading ends before its line break.
        let line = lines.at(section.range.start.saturating_sub(1));
        let mut task = SourceTask {
            line,
            done: !boxes.is_empty() && boxes.iter().all(Mark::is_checked),
            marks: boxes,
            ..SourceTask::default()
        };
        task.task.id = derived_id("", &title);
        task.task.title = title;
        task.task.body = text[section.range.start..end].trim().replace("\r\n", "\n");
        task.task.gates.clone_from(&gates);
        let mut has_needs = false;
        for item in items {
            match setting_of(&text[item.clone()], lines.at(item.start)) {
                Ok(Some(setting)) => {
                    has_needs |= matches!(setting, Setting::Needs(_));
                    apply(setting, &mut task.task);
                }
                Ok(None) => {}
                Err(problem) => source.problems.push(problem),
            }
        }
        // ralphex runs tasks in order.
        if !has_needs {
            task.after = source.tasks.len().checked_sub(1);
        }
        source.tasks.push(task);
    }
    source
}

fn is_validation(heading: &str) -> bool {
    heading
        .trim()
        .to_ascii_lowercase()
        .starts_with("validation command")
}

/// The command of a list item, with or without backticks.
fn gate(item: &str) -> Option<String> {
    let text = item
        .lines()
        .next()?
        .trim_start_matches(['-', '*', '+', ' '])
        .trim();
    // A comment may follow the command: - `go test ./...` (all packages)
    let command = match text.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
        Some((command, _)) => command,
        None => without_code_marks(text),
    };
    (!command.trim().is_empty()).then(|| command.trim().to_owned())
}
