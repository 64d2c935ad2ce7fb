//! Reads the tasks of a Markdown file: headings are groups, checkboxes in lists are tasks, sub-items such as `needs: a`
//! are their settings. Boxes in code, comments, quotes and prose are not tasks.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::settings::{Setting, apply, setting_of};
use super::{Lines, ParsedSource};
use crate::plan::check::Problem;
use crate::plan::task::{Mark, SourceTask, derived_id};

pub(super) fn options() -> Options {
    Options::ENABLE_TASKLISTS | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
}

pub(super) fn parse(text: &str) -> ParsedSource {
    let mut reader = Reader {
        text,
        lines: Lines::of(text),
        headings: Vec::new(),
        heading: None,
        lists: Vec::new(),
        items: Vec::new(),
        quotes: 0,
        source: ParsedSource::default(),
    };
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        reader.read(event, range);
    }
    reader.source
}

/// A list that is open at the current position.
struct OpenList {
    is_ordered: bool,
    /// The preceding task of an ordered list.
    previous: Option<usize>,
}

/// An item that is open at the current position.
struct OpenItem {
    range: Range<usize>,
    mark: Option<Mark>,
    title: String,
    title_ended: bool,
    /// The ranges of its settings, which are not part of the body.
    settings: Vec<(Range<usize>, Setting)>,
}

struct Reader<'a> {
    text: &'a str,
    lines: Lines,
    headings: Vec<(HeadingLevel, String)>,
    heading: Option<String>,
    lists: Vec<OpenList>,
    items: Vec<OpenItem>,
    quotes: usize,
    source: ParsedSource,
}

impl Reader<'_> {
    fn read(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            // A heading inside a list item belongs to that item.
            Event::Start(Tag::Heading { level, .. }) if self.items.is_empty() => {
                self.headings.retain(|(other, _)| *other < level);
                self.heading = Some(String::new());
            }
            Event::End(TagEnd::Heading(level)) => {
                if let Some(title) = self.heading.take() {
                    self.headings.push((level, title.trim().to_owned()));
                }
            }
            Event::Start(Tag::BlockQuote(_)) => self.quotes += 1,
            Event::End(TagEnd::BlockQuote(_)) => self.quotes -= 1,
            Event::Start(Tag::List(first)) => {
                self.end_title();
                self.lists.push(OpenList {
                    is_ordered: first.is_some(),
                    previous: None,
                });
            }
            Event::End(TagEnd::List(_)) => drop(self.lists.pop()),
            Event::Start(Tag::Item) => self.items.push(OpenItem {
                range,
                mark: None,
                title: String::new(),
                title_ended: false,
                settings: Vec::new(),
            }),
            Event::End(TagEnd::Item) => self.end_item(),
            Event::TaskListMarker(checked) => self.mark(checked, range),
            Event::Text(text) | Event::Code(text) => self.add_text(&text),
            Event::SoftBreak | Event::HardBreak | Event::End(TagEnd::Paragraph) => self.end_title(),
            Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock) => self.end_title(),
            _ => {}
        }
    }

    fn mark(&mut self, checked: bool, range: Range<usize>) {
        let is_step = self.items.iter().any(|item| item.mark.is_some());
        if is_step || self.quotes > 0 {
            return;
        }
        if let Some(item) = self.items.last_mut() {
            let offset = range.start + 1;
            item.mark = Some(Mark::Box { offset, checked });
        }
    }

    fn add_text(&mut self, text: &str) {
        if let Some(heading) = &mut self.heading {
            heading.push_str(text);
        }
        if let Some(item) = self.items.last_mut().filter(|item| !item.title_ended) {
            item.title.push_str(text);
        }
    }

    fn end_title(&mut self) {
        if let Some(item) = self.items.last_mut() {
            item.title_ended = true;
        }
    }

    fn end_item(&mut self) {
        let Some(item) = self.items.pop() else { return };
        let line = self.lines.at(item.range.start);
        if item.mark.is_some() {
            return self.end_task(item, line);
        }
        let Some(parent) = self.items.last_mut().filter(|parent| parent.mark.is_some()) else {
            return;
        };
        match setting_of(&self.text[item.range.clone()], line) {
            Ok(Some(setting)) => parent.settings.push((item.range, setting)),
            Ok(None) => {}
            Err(problem) => self.source.problems.push(problem),
        }
    }

    fn end_task(&mut self, item: OpenItem, line: usize) {
        let title = item.title.trim().to_owned();
        if title.is_empty() {
            let problem = Problem::new(line, "a task without a title");
            self.source
                .problems
                .push(problem.with_help("write what is to be done after the box"));
            return;
        }
        let heading: Vec<&str> = self.headings.iter().map(|(_, title)| title.as_str()).collect();
        let mut task = SourceTask {
            line,
            done: item.mark.as_ref().is_some_and(Mark::is_checked),
            marks: item.mark.into_iter().collect(),
            ..SourceTask::default()
        };
        task.task.id = derived_id(&heading.join("\n"), &title);
        task.task.title = title;
        let settings: Vec<Range<usize>> = item.settings.iter().map(|(range, _)| range.clone()).collect();
        task.task.body = body(self.text, &item.range, &settings);
        for (_, setting) in item.settings {
            apply(setting, &mut task.task);
        }
        let index = self.source.tasks.len();
        if let Some(list) = self.lists.last_mut().filter(|list| list.is_ordered) {
            task.after = list.previous.replace(index);
        }
        self.source.tasks.push(task);
    }
}

/// The text of an item after its first line, without its settings and its indentation.
fn body(text: &str, item: &Range<usize>, settings: &[Range<usize>]) -> String {
    let mut kept = String::new();
    let mut at = item.start;
    let mut lines = Vec::new();
    for line in text[item.clone()].split_inclusive('\n') {
        // The range of a nested item starts after its indentation.
        let start = at + line.len() - line.trim_start_matches([' ', '\t']).len();
        let is_setting = settings.iter().any(|range| range.contains(&start));
        let is_first = at == item.start;
        at += line.len();
        if !is_first && !is_setting {
            lines.push(line.trim_end());
        }
    }
    let indentation = |line: &&str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let filled = lines.iter().copied().filter(|line| !line.is_empty());
    let margin = filled.map(|line| indentation(&line)).min().unwrap_or(0);
    for line in lines {
        kept.push_str(line.get(margin..).unwrap_or_default());
        kept.push('\n');
    }
    kept.trim_matches('\n').to_owned()
}
