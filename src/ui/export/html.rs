//! A run as one HTML page that needs nothing else: no script, no font, no picture, nothing from anywhere. All text is
//! escaped, and the page itself forbids the browser to load or to run anything.

use std::io::{self, Write};

use jiff::tz::TimeZone;

use super::sections::{Block, Gate, Section, Sections, Text, Tool, tool_end};
use super::{Cover, figures};
use crate::event::{GateResult, Record, Sink, Tag};
use crate::ui::{AttemptSummary, Tone, Verdict, clean::clean, iteration_verdict, iteration_word, units};

const STYLE: &str = include_str!("page.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Writes chapter by chapter as records come.
pub struct Html<W: Write> {
    writer: W,
    story: Sections,
    turns: Vec<AttemptSummary>,
}

impl<W: Write> Html<W> {
    pub fn begin(mut writer: W, cover: &Cover) -> io::Result<Self> {
        let id = escaped(cover.id);
        write!(
            writer,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>ralph · run {id}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <header>\n<p class=\"kind\">ralph run</p>\n<h1>{id}</h1>\n{}</header>\n",
            verdict_line(&cover.verdict, "")
        )?;
        let mut text = String::from("<dl class=\"facts\">\n");
        for (name, value) in &cover.facts {
            text.push_str(&format!(
                "<div><dt>{name}</dt><dd>{}</dd></div>\n",
                escaped(value)
            ));
        }
        text.push_str("</dl>\n");
        if let Some(prompt) = cover.prompt {
            let about = escaped(&first_line(prompt));
            let body = pre(&escaped(prompt.trim()));
            text.push_str(&folded("PROMPT", &about, &body, "prompt"));
        }
        text.push_str(&contents(cover.turns));
        if !cover.final_message.trim().is_empty() {
            let message = prose(&clean(cover.final_message.trim()));
            text.push_str(&format!(
                "<section class=\"final\">\n<h2>Final message</h2>\n{message}</section>\n"
            ));
        }
        writer.write_all(text.as_bytes())?;
        Ok(Self {
            writer,
            story: Sections::default(),
            turns: cover.turns.to_vec(),
        })
    }

    /// Writes what is left.
    pub fn end(mut self) -> io::Result<()> {
        if let Some(chapter) = self.story.finish() {
            self.chapter(&chapter)?;
        }
        self.writer.write_all(b"</main>\n</body>\n</html>\n")?;
        self.writer.flush()
    }

    fn chapter(&mut self, chapter: &Section) -> io::Result<()> {
        let anchor = chapter
            .iteration
            .map(anchor)
            .unwrap_or_else(|| "before".to_owned());
        let mut text = format!(
            "<section class=\"turn\" id=\"{anchor}\">\n<h2>{}",
            escaped(&chapter.title())
        );
        if chapter.iteration.is_some() {
            let began = chapter.began.to_zoned(TimeZone::system());
            text.push_str(&format!(" <small>{}</small>", began.strftime("%H:%M:%S")));
        }
        text.push_str("</h2>\n");
        let is_this = |turn: &&AttemptSummary| Some((turn.iteration, turn.attempt)) == chapter.iteration;
        let turn = self.turns.iter().find(is_this);
        for block in &chapter.blocks {
            text.push_str(&match block {
                Block::Verdict(verdict) => verdict_line(verdict, &turn.map(figures).unwrap_or_default()),
                Block::Said { tag, text, nested } => said(*tag, text, *nested),
                Block::Tool(tool) => self::tool(tool),
                Block::Gate(gate) => self::gate(gate),
                Block::Note { label, text } => note(label, text),
            });
        }
        text.push_str("</section>\n");
        self.writer.write_all(text.as_bytes())
    }
}

impl<W: Write> Sink for Html<W> {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        match self.story.hear(record) {
            Some(chapter) => self.chapter(&chapter),
            None => Ok(()),
        }
    }
}

fn anchor((iteration, attempt): (u64, u64)) -> String {
    format!("i{iteration}-{attempt}")
}

/// The table of iterations.
fn contents(turns: &[AttemptSummary]) -> String {
    if turns.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<div class=\"scroll\">\n<table>\n<thead><tr><th>#</th><th>outcome</th><th>time</th><th>tools</th>\
         <th>tokens</th><th>cost</th><th>gates</th><th>files</th></tr></thead>\n<tbody>\n",
    );
    for turn in turns {
        let attempt = if turn.attempt > 1 {
            format!(".{}", turn.attempt)
        } else {
            String::new()
        };
        let outcome = turn.outcome.as_ref().map_or("no end", iteration_word);
        let verdict = turn
            .outcome
            .as_ref()
            .map(|outcome| iteration_verdict(outcome, turn.began, &TimeZone::UTC));
        let (mark, tone) = verdict.map_or(("…", Tone::Plain), |verdict| (verdict.mark, verdict.tone));
        let class = class_of(tone);
        let failed = (turn.failed_tools > 0)
            .then(|| format!(" <span class=\"bad\">({} failed)</span>", turn.failed_tools));
        let gates: Vec<String> = turn
            .gates
            .iter()
            .map(|gate| match gate.result == GateResult::Passed {
                true => format!("<span class=\"good\">✓ {}</span>", escaped(&gate.name)),
                false => format!("<span class=\"bad\">✗ {}</span>", escaped(&gate.name)),
            })
            .collect();
        text.push_str(&format!(
            "<tr><td><a href=\"#{}\">{}{attempt}</a></td><td class=\"{class}\">{mark} {outcome}</td><td>{}</td><td>{}{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td title=\"{}\">{}</td></tr>\n",
            anchor((turn.iteration, turn.attempt)),
            turn.iteration,
            units::duration(std::time::Duration::from_millis(turn.duration_ms)),
            turn.tools,
            failed.unwrap_or_default(),
            turn.usage.tokens().map(units::tokens).unwrap_or_default(),
            turn.usage.cost_usd.map(units::dollars).unwrap_or_default(),
            gates.join(" "),
            escaped(&turn.files.join("\n")),
            turn.files.len(),
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

fn said(tag: Tag, text: &Text, nested: bool) -> String {
    if text.is_empty() {
        return String::new();
    }
    let (class, shown) = (if nested { " nested" } else { "" }, text.shown());
    let label = tag.name();
    match tag {
        Tag::Ai | Tag::User => format!(
            "<div class=\"said{class}\"><span class=\"label\">{label}</span>\n{}</div>\n",
            prose(&shown)
        ),
        Tag::Think | Tag::Prompt | Tag::Tool | Tag::Sys => {
            let about = first_line(&shown);
            let body = match about == shown.trim() {
                true => String::new(),
                false => pre(&escaped(&shown)),
            };
            folded(label, &escaped(&about), &body, &format!("think{class}"))
        }
    }
}

fn tool(tool: &Tool) -> String {
    let (mark, took) = tool_end(tool);
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
    let about = format!(
        "<span class=\"mark\">{mark}</span> <b>{}</b> <code>{}</code> <small>{took}</small>",
        escaped(&tool.name),
        escaped(&tool.about)
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
    folded("TOOL", &about, &body, &class)
}

fn gate(gate: &Gate) -> String {
    let why = gate.why();
    let (mark, class) = if why.is_none() {
        ("✓", "gate good")
    } else {
        ("✗", "gate bad")
    };
    let why = why.map(|why| format!(" · {}", escaped(&why))).unwrap_or_default();
    let about = format!(
        "<span class=\"mark\">{mark}</span> <b>{}</b> <small>{}{why}</small>",
        escaped(&gate.name),
        units::duration(gate.took)
    );
    let body = match gate.output.is_empty() {
        true => String::new(),
        false => pre(&escaped(&gate.output.shown())),
    };
    folded("GATE", &about, &body, class)
}

fn note(label: &str, text: &Text) -> String {
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

/// A piece that opens when it is wanted; without a body it is one line.
fn folded(label: &str, about: &str, body: &str, class: &str) -> String {
    let line = format!("<span class=\"label\">{label}</span> <span class=\"about\">{about}</span>");
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

/// Paragraphs as they were written, with fenced code told apart. Nothing else of Markdown is obeyed.
fn prose(text: &str) -> String {
    let (mut html, mut piece, mut in_code) = (String::new(), String::new(), false);
    let mut put = |piece: &mut String, in_code: bool| {
        let text = escaped(piece.trim_matches('\n'));
        match (text.is_empty(), in_code) {
            (true, _) => {}
            (false, true) => html.push_str(&pre(&text)),
            (false, false) => html.push_str(&format!("<div class=\"prose\">{text}</div>\n")),
        }
        piece.clear();
    };
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            put(&mut piece, in_code);
            in_code = !in_code;
        } else {
            piece.push_str(line);
            piece.push('\n');
        }
    }
    put(&mut piece, in_code);
    html
}

/// Text, and never anything else, also inside an attribute.
fn escaped(text: &str) -> String {
    let text = clean(text);
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::{PassedGates, run_verdict};

    fn exported(lines: impl Iterator<Item = String>) -> String {
        let outcome = crate::event::RunOutcome::Failed {
            reason: "<script>alert(1)</script>".into(),
        };
        let cover = Cover {
            id: "\"><img src=x>",
            verdict: run_verdict(&outcome, &PassedGates::default()),
            facts: vec![("agent", "<b>'x'</b>".into())],
            prompt: Some("</pre><script src=//evil></script>"),
            turns: &[],
            final_message: "```\n</pre><style>*{}</style>",
        };
        let mut page = Vec::new();
        let mut html = Html::begin(&mut page, &cover).unwrap();
        for line in lines {
            html.accept(&serde_json::from_str(&line).unwrap()).unwrap();
        }
        html.end().unwrap();
        String::from_utf8(page).unwrap()
    }

    /// All tags of a page, but for their attributes.
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
    fn whatever_an_agent_says_is_text() {
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
        let ours = [
            "!doctype", "html", "head", "meta", "title", "style", "body", "main", "header", "p", "h1", "h2",
            "dl", "div", "dt", "dd", "details", "summary", "span", "pre", "section", "small", "b", "code",
        ];
        let strange: Vec<String> = tags(&page)
            .into_iter()
            .filter(|tag| !ours.contains(&tag.as_str()))
            .collect();
        assert!(strange.is_empty(), "{strange:?}");
        assert_eq!(page.matches("<style>").count(), 1);
        assert!(!page.contains('\u{1b}'));
        assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"));
        for outside in ["http://", "https://", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
