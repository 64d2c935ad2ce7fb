//! Exports a run as a self-contained HTML page without scripts, fonts or images. All text is escaped, and the page's
//! content security policy forbids loading or running anything.

use std::io::{self, Write};

use jiff::tz::TimeZone;

use super::sections::{
    CappedText, ExportSection, ExportedGate, ExportedToolCall, SectionBuilder, SectionItem, tool_status,
};
use super::{ExportHeader, figures};
use crate::event::{GateResult, Record, Sink, Tag};
use crate::ui::{AttemptSummary, Tone, Verdict, clean::clean, iteration_label, iteration_verdict, units};

const STYLE: &str = include_str!("page.css");
const SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Writes each section once its last record has arrived.
pub struct Html<W: Write> {
    writer: W,
    sections: SectionBuilder,
    attempts: Vec<AttemptSummary>,
}

impl<W: Write> Html<W> {
    pub fn begin(mut writer: W, header: &ExportHeader) -> io::Result<Self> {
        let id = escaped(header.id);
        write!(
            writer,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{SECURITY_POLICY}\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>ralph · run {id}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <header>\n<p class=\"kind\">ralph run</p>\n<h1>{id}</h1>\n{}</header>\n",
            verdict_line(&header.verdict, "")
        )?;
        let mut text = String::from("<dl class=\"facts\">\n");
        for (name, value) in &header.facts {
            text.push_str(&format!(
                "<div><dt>{name}</dt><dd>{}</dd></div>\n",
                escaped(value)
            ));
        }
        text.push_str("</dl>\n");
        if let Some(prompt) = header.prompt {
            let summary = escaped(&first_line(prompt));
            let body = pre(&escaped(prompt.trim()));
            text.push_str(&foldable("PROMPT", &summary, &body, "prompt"));
        }
        text.push_str(&attempt_table(header.attempts));
        if !header.final_message.trim().is_empty() {
            let message = prose(&clean(header.final_message.trim()));
            text.push_str(&format!(
                "<section class=\"final\">\n<h2>Final message</h2>\n{message}</section>\n"
            ));
        }
        writer.write_all(text.as_bytes())?;
        Ok(Self {
            writer,
            sections: SectionBuilder::default(),
            attempts: header.attempts.to_vec(),
        })
    }

    /// Writes the last section and closes the page.
    pub fn end(mut self) -> io::Result<()> {
        if let Some(section) = self.sections.finish() {
            self.write_section(&section)?;
        }
        self.writer.write_all(b"</main>\n</body>\n</html>\n")?;
        self.writer.flush()
    }

    fn write_section(&mut self, section: &ExportSection) -> io::Result<()> {
        let anchor = section
            .iteration
            .map(anchor)
            .unwrap_or_else(|| "before".to_owned());
        let mut text = format!(
            "<section class=\"attempt\" id=\"{anchor}\">\n<h2>{}",
            escaped(&section.title())
        );
        if section.iteration.is_some() {
            let began = section.began.to_zoned(crate::ui::local_time_zone());
            text.push_str(&format!(" <small>{}</small>", began.strftime("%H:%M:%S")));
        }
        text.push_str("</h2>\n");
        let is_this =
            |attempt: &&AttemptSummary| Some((attempt.iteration, attempt.attempt)) == section.iteration;
        let attempt = self.attempts.iter().find(is_this);
        for item in &section.items {
            text.push_str(&match item {
                SectionItem::Verdict(verdict) => {
                    verdict_line(verdict, &attempt.map(figures).unwrap_or_default())
                }
                SectionItem::Text { tag, text, nested } => message(*tag, text, *nested),
                SectionItem::ToolCall(tool) => tool_call(tool),
                SectionItem::Gate(gate) => self::gate(gate),
                SectionItem::Note { label, text } => note(label, text),
            });
        }
        text.push_str("</section>\n");
        self.writer.write_all(text.as_bytes())
    }
}

impl<W: Write> Sink for Html<W> {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        match self.sections.apply(record) {
            Some(section) => self.write_section(&section),
            None => Ok(()),
        }
    }
}

fn anchor((iteration, attempt): (u64, u64)) -> String {
    format!("i{iteration}-{attempt}")
}

/// A table with one row per attempt, linked to its section.
fn attempt_table(attempts: &[AttemptSummary]) -> String {
    if attempts.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<div class=\"scroll\">\n<table>\n<thead><tr><th>#</th><th>outcome</th><th>time</th><th>tools</th>\
         <th>tokens</th><th>cost</th><th>gates</th><th>files</th></tr></thead>\n<tbody>\n",
    );
    for attempt in attempts {
        let retry = if attempt.attempt > 1 {
            format!(".{}", attempt.attempt)
        } else {
            String::new()
        };
        let outcome = attempt.outcome.as_ref().map_or("unfinished", iteration_label);
        let verdict = attempt
            .outcome
            .as_ref()
            .map(|outcome| iteration_verdict(outcome, attempt.began, &TimeZone::UTC));
        let (mark, tone) = verdict.map_or(("…", Tone::Plain), |verdict| (verdict.mark, verdict.tone));
        let class = class_of(tone);
        let duration = match attempt.outcome {
            Some(_) => units::duration(std::time::Duration::from_millis(attempt.duration_ms)),
            None => String::new(),
        };
        let failed = (attempt.failed_tools > 0)
            .then(|| format!(" <span class=\"bad\">({} failed)</span>", attempt.failed_tools));
        let gates: Vec<String> = attempt
            .gates
            .iter()
            .map(|gate| match gate.result == GateResult::Passed {
                true => format!("<span class=\"good\">✓ {}</span>", escaped(&gate.name)),
                false => format!("<span class=\"bad\">✗ {}</span>", escaped(&gate.name)),
            })
            .collect();
        text.push_str(&format!(
            "<tr><td><a href=\"#{}\">{}{retry}</a></td><td class=\"{class}\">{mark} {outcome}</td><td>{}</td><td>{}{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td title=\"{}\">{}</td></tr>\n",
            anchor((attempt.iteration, attempt.attempt)),
            attempt.iteration,
            duration,
            attempt.tools,
            failed.unwrap_or_default(),
            attempt.usage.tokens().map(units::tokens).unwrap_or_default(),
            attempt.usage.cost_usd.map(units::dollars).unwrap_or_default(),
            gates.join(" "),
            escaped(&attempt.files.join("\n")),
            attempt.files.len(),
        ));
    }
    text + "</tbody>\n</table>\n</div>\n"
}

fn class_of(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Warning => "warning",
        Tone::Accent | Tone::Plain | Tone::Strong | Tone::Faint => "plain",
    }
}

fn verdict_line(verdict: &Verdict, figures: &str) -> String {
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
            prose(&shown)
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
fn foldable(label: &str, summary: &str, body: &str, class: &str) -> String {
    let line = format!("<span class=\"label\">{label}</span> <span class=\"summary\">{summary}</span>");
    match body {
        "" => format!("<div class=\"fold {class}\">{line}</div>\n"),
        body => format!("<details class=\"fold {class}\"><summary>{line}</summary>\n{body}</details>\n"),
    }
}

fn pre(escaped: &str) -> String {
    format!("<pre>{escaped}</pre>\n")
}

fn first_line(text: &str) -> String {
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

/// Text as written, with fenced code in its own blocks. No other Markdown is interpreted.
fn prose(text: &str) -> String {
    let (mut html, mut block, mut in_code) = (String::new(), String::new(), false);
    let mut end_block = |block: &mut String, in_code: bool| {
        let text = escaped(block.trim_matches('\n'));
        match (text.is_empty(), in_code) {
            (true, _) => {}
            (false, true) => html.push_str(&pre(&text)),
            (false, false) => html.push_str(&format!("<div class=\"prose\">{text}</div>\n")),
        }
        block.clear();
    };
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            end_block(&mut block, in_code);
            in_code = !in_code;
        } else {
            block.push_str(line);
            block.push('\n');
        }
    }
    end_block(&mut block, in_code);
    html
}

/// Escapes text for HTML content and attributes.
fn escaped(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::{PassedGates, run_verdict};

    fn exported(lines: impl Iterator<Item = String>) -> String {
        let outcome = crate::event::RunOutcome::Failed {
            reason: "<script>alert(1)</script>".into(),
        };
        let header = ExportHeader {
            id: "\"><img src=x>",
            verdict: run_verdict(&outcome, &PassedGates::default()),
            facts: vec![("agent", "<b>'x'</b>".into())],
            prompt: Some("</pre><script src=//evil></script>"),
            attempts: &[],
            final_message: "```\n</pre><style>*{}</style>",
        };
        let mut page = Vec::new();
        let mut html = Html::begin(&mut page, &header).unwrap();
        for line in lines {
            html.accept(&serde_json::from_str(&line).unwrap()).unwrap();
        }
        html.end().unwrap();
        String::from_utf8(page).unwrap()
    }

    /// All tags of a page, without attributes.
    fn tags(page: &str) -> std::collections::BTreeSet<String> {
        page.split('<')
            .skip(1)
            .map(|tag| {
                tag.split(['>', ' '])
                    .next()
                    .unwrap()
                    .trim_start_matches('/')
                    .to_owned()
            })
            .collect()
    }

    #[test]
    fn agent_text_never_becomes_markup() {
        let hostile =
            "<img src=x onerror=alert(1)>\\\"><script>alert(2)</script>' onload='x \\u001b[2J &amp;";
        let golden = include_str!("../../../tests/golden/events.v1.jsonl");
        let lines = golden.lines().map(|line| {
            let mut line = line.to_owned();
            for word in [
                "Let me see.",
                "\"name\":\"Bash\"",
                "ls",
                "a\\nb",
                "a warning",
                "FAILED",
                "something to know",
                "write it",
                "boom",
                "all of it",
            ] {
                let with = if word.starts_with('"') {
                    format!("\"name\":\"{hostile}\"")
                } else {
                    hostile.to_owned()
                };
                line = line.replace(word, &with);
            }
            line
        });
        let page = exported(lines);
        let expected = [
            "!doctype", "html", "head", "meta", "title", "style", "body", "main", "header", "p", "h1", "h2",
            "dl", "div", "dt", "dd", "details", "summary", "span", "pre", "section", "small", "b", "code",
        ];
        let unexpected: Vec<String> = tags(&page)
            .into_iter()
            .filter(|tag| !expected.contains(&tag.as_str()))
            .collect();
        assert!(unexpected.is_empty(), "{unexpected:?}");
        assert_eq!(page.matches("<style>").count(), 1);
        assert!(!page.contains('\u{1b}'));
        assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"));
        for external in ["http://", "https://", "url(", "@import"] {
            assert!(!page.contains(external), "{external}");
        }
    }
}
