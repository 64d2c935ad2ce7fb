//! Renders texts, tool calls, gates and verdicts as HTML, for the exported page and for the web page of `ralph serve`. All text
//! is escaped.

use super::markdown_html::markdown_html;
use super::sections::{CappedText, ExportedGate, ExportedToolCall, SectionItem, tool_status};
use crate::event::Tag;
use crate::ui::{Tone, Verdict, clean::clean, units};

/// Renders one item of a section. `figures` follows its verdict.
pub(super) fn item(item: &SectionItem, figures: &str) -> String {
    match item {
        SectionItem::Verdict(verdict) => verdict_line(verdict, figures),
        SectionItem::Text { tag, text, nested } => message(*tag, text, *nested),
        SectionItem::ToolCall(tool) => tool_call(tool),
        SectionItem::Gate(gate) => self::gate(gate),
        SectionItem::Note { label, text } => note(label, text),
    }
}

pub(super) fn class_of(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Warning => "warning",
        Tone::Accent | Tone::Plain | Tone::Strong | Tone::Faint => "plain",
    }
}

pub(super) fn verdict_line(verdict: &Verdict, figures: &str) -> String {
    let class = class_of(verdict.tone);
    let figures = match figures {
        "" => String::new(),
        figures => format!(" <small>{}</small>", escaped(figures)),
    };
    format!(
        "<p class=\"verdict {class}\"><span class=\"mark\">{}</span> {}{figures}</p>\n",
        verdict.mark,
        escaped(&verdict.sentence)
    )
}

fn message(tag: Tag, text: &CappedText, nested: bool) -> String {
    if text.is_empty() {
        return String::new();
    }
    let (class, shown) = (if nested { " nested" } else { "" }, text.shown());
    let label = tag.name();
    match tag {
        Tag::Ai | Tag::User => format!(
            "<div class=\"message{class}\"><span class=\"label\">{label}</span>\n{}</div>\n",
            markdown_html(&shown)
        ),
        Tag::Think | Tag::Prompt | Tag::Tool | Tag::Sys => {
            let summary = first_line(&shown);
            let body = match summary == shown.trim() {
                true => String::new(),
                false => pre(&escaped(&shown)),
            };
            foldable(label, &escaped(&summary), &body, &format!("think{class}"))
        }
    }
}

fn tool_call(tool: &ExportedToolCall) -> String {
    let (mark, duration) = tool_status(tool);
    let class = match mark {
        "✓" => "tool good",
        "✗" => "tool bad",
        _ => "tool",
    };
    let class = if tool.nested {
        format!("{class} nested")
    } else {
        class.to_owned()
    };
    let summary = format!(
        "<span class=\"mark\">{mark}</span> <b>{}</b> <code>{}</code> <small>{duration}</small>",
        escaped(&tool.name),
        escaped(&tool.argument)
    );
    let mut body = String::new();
    for (name, part) in [("input", &tool.input), ("output", &tool.output)] {
        if !part.is_empty() {
            body.push_str(&format!(
                "<p class=\"part\">{name}</p>\n{}",
                pre(&escaped(&part.shown()))
            ));
        }
    }
    foldable("TOOL", &summary, &body, &class)
}

fn gate(gate: &ExportedGate) -> String {
    let failure = gate.failure();
    let (mark, class) = if failure.is_none() {
        ("✓", "gate good")
    } else {
        ("✗", "gate bad")
    };
    let failure = failure
        .map(|failure| format!(" · {}", escaped(&failure)))
        .unwrap_or_default();
    let summary = format!(
        "<span class=\"mark\">{mark}</span> <b>{}</b> <small>{}{failure}</small>",
        escaped(&gate.name),
        units::duration(gate.duration)
    );
    let body = match gate.output.is_empty() {
        true => String::new(),
        false => pre(&escaped(&gate.output.shown())),
    };
    foldable("GATE", &summary, &body, class)
}

fn note(label: &str, text: &CappedText) -> String {
    let class = match label {
        "WARN" => "warning",
        "ERROR" | "ERR" => "bad",
        _ => "plain",
    };
    format!(
        "<div class=\"note {class}\"><span class=\"label\">{label}</span> <span class=\"text\">{}</span></div>\n",
        escaped(&text.shown())
    )
}

/// A summary line that expands to show its body; a plain line without a body.
pub(super) fn foldable(label: &str, summary: &str, body: &str, class: &str) -> String {
    let line = format!("<span class=\"label\">{label}</span> <span class=\"summary\">{summary}</span>");
    match body {
        "" => format!("<div class=\"fold {class}\">{line}</div>\n"),
        body => format!("<details class=\"fold {class}\"><summary>{line}</summary>\n{body}</details>\n"),
    }
}

pub(super) fn pre(escaped: &str) -> String {
    format!("<pre>{escaped}</pre>\n")
}

pub(super) fn first_line(text: &str) -> String {
    const COLUMNS: usize = 120;
    let line = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim();
    match line.char_indices().nth(COLUMNS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Escapes text for HTML content and attributes.
pub(super) fn escaped(text: &str) -> String {
    let text = clean(text);
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
