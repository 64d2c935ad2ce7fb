//! Exports a run as a self-contained HTML page without scripts, fonts or images. All text is escaped, and the page's
//! content security policy forbids loading or running anything.

use std::io::{self, Write};

use jiff::tz::TimeZone;

use super::blocks::{self, class_of, escaped, first_line, foldable, pre, verdict_line};
use super::markdown_html::markdown_html;
use super::sections::{ExportSection, SectionBuilder};
use super::{ExportHeader, figures};
use crate::event::{ChangedFile, GateResult, Record, Sink};
use crate::ui::{AttemptSummary, Tone, clean::clean, iteration_label, iteration_verdict, units};

const STYLE: &str = include_str!("page.css");
const SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Writes each section once its last record has arrived.
pub struct Html<W: Write> {
    writer: W,
    sections: SectionBuilder,
    attempts: Vec<AttemptSummary>,
    patches: Vec<((u64, u64), String)>,
}

impl<W: Write> Html<W> {
    pub fn begin(mut writer: W, header: &ExportHeader) -> io::Result<Self> {
        let id = escaped(header.id);
        let title = escaped(&title(header));
        let zone = escaped(&time_zone(header));
        write!(
            writer,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{SECURITY_POLICY}\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title} · ralph</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <header>\n<p class=\"kind\">ralph run <code>{id}</code> · times in {zone}</p>\n<h1>{title}</h1>\n{}</header>\n",
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
            let message = markdown_html(&clean(header.final_message.trim()));
            text.push_str(&format!(
                "<section class=\"final\">\n<h2>Final message</h2>\n{message}</section>\n"
            ));
        }
        writer.write_all(text.as_bytes())?;
        Ok(Self {
            writer,
            sections: SectionBuilder::default(),
            attempts: header.attempts.to_vec(),
            patches: header.patches.clone(),
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
            text.push_str(&blocks::item(item, &attempt.map(figures).unwrap_or_default()));
        }
        let patch = self.patches.iter().find(|(of, _)| Some(*of) == section.iteration);
        if let Some((_, patch)) = patch {
            text.push_str(&diff(patch, attempt.and_then(AttemptSummary::files_label)));
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

/// The first line of the task, or the id of the run.
fn title(header: &ExportHeader) -> String {
    let lines = header.prompt.unwrap_or_default().lines();
    let mut lines = lines.map(|line| line.trim().trim_start_matches('#').trim());
    let line = lines.find(|line| !line.is_empty()).unwrap_or(header.id);
    first_line(line)
}

/// The time zone of all times on the page: `CET (UTC+01)`.
fn time_zone(header: &ExportHeader) -> String {
    let at = header
        .attempts
        .first()
        .map(|attempt| attempt.began)
        .unwrap_or_default();
    let at = at.to_zoned(crate::ui::local_time_zone());
    match at.offset() == jiff::tz::Offset::UTC {
        true => "UTC".to_owned(),
        false => at.strftime("%Z (UTC%:z)").to_string(),
    }
}

/// The changes of an attempt, folded.
fn diff(patch: &str, label: Option<String>) -> String {
    let mut lines = String::new();
    let mut in_header = true;
    for line in clean(patch).lines() {
        in_header = (in_header && !line.starts_with("@@")) || line.starts_with("diff --git ");
        let class = match line.as_bytes().first() {
            Some(b'@') => "hunk",
            _ if in_header => "file",
            Some(b'+') => "add",
            Some(b'-') => "del",
            _ => "same",
        };
        lines.push_str(&format!("<span class=\"{class}\">{}</span>\n", escaped(line)));
    }
    let summary = escaped(&format!("files changed: {}", label.unwrap_or_default()));
    foldable(
        "DIFF",
        &summary,
        &format!("<pre class=\"diff\">{lines}</pre>\n"),
        "diff",
    )
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
            escaped(&file_names(attempt).join("\n")),
            attempt.files_label().unwrap_or_else(|| "0".to_owned()),
        ));
    }
    text + "</tbody>\n</table>\n</div>\n"
}

/// The changed files, with their lines if they are known.
fn file_names(attempt: &AttemptSummary) -> Vec<String> {
    match attempt.changed_files.is_empty() {
        true => attempt.files.clone(),
        false => attempt.changed_files.iter().map(ChangedFile::label).collect(),
    }
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
            patches: vec![((1, 1), "diff --git a/x b/x\n@@ -1 +1 @@\n-<b>\n+<script>".into())],
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
            "br",
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
