//! `ralph agents report`: writes the output of one iteration without its texts, to attach to a bug report.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::event::{Meta, RunHeader, TranscriptEvent};
use crate::store::{id_from_path, raw_outputs};
use crate::transcript::{self, AdapterContext};
use crate::ui::Terminal;

use super::args::AgentReportArguments;
use super::error::CliError;
use super::exit::Exit;
use super::run_lookup::resolve_run;

/// Longer output is cut: the beginning shows the format.
const MAX_BYTES: u64 = 64 << 20;
/// Fields whose short values are part of the format.
const STRUCTURE: &[&str] = &[
    "type",
    "subtype",
    "role",
    "kind",
    "status",
    "state",
    "event",
    "method",
    "jsonrpc",
    "sessionUpdate",
    "stop_reason",
    "stopReason",
    "finish_reason",
    "finishReason",
    "terminal_reason",
    "reason",
    "outcome",
    "code",
    "model",
    "version",
    "claude_code_version",
    "permissionMode",
];
/// The longest such value.
const MAX_IDENTIFIER: usize = 64;

pub(super) fn report(arguments: &AgentReportArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let run = resolve_run(arguments.run.as_deref())?;
    let outputs = raw_outputs(&run);
    let wanted = arguments.iteration;
    let found = outputs
        .iter()
        .rfind(|output| wanted.is_none_or(|number| output.iteration == number));
    let Some(output) = found else {
        return Err(CliError::NoIteration {
            id: id_from_path(&run),
            iteration: arguments.iteration.unwrap_or(1),
            iterations: outputs.last().map_or(0, |output| output.iteration),
        });
    };
    let path = arguments.output.clone().unwrap_or_else(|| {
        let name = format!("ralph-report-{}-{}.txt", id_from_path(&run), output.iteration);
        PathBuf::from(name)
    });
    let unreadable = |source| CliError::Unreadable {
        path: output.path.clone(),
        source,
    };
    let raw = File::open(&output.path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    raw.take(MAX_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
    let text = report_text(&header(&run), &String::from_utf8_lossy(&bytes));
    File::create_new(&path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| CliError::Unwritable {
            path: path.clone(),
            source,
        })?;
    let message = format!(
        "wrote {} ({} lines; texts are replaced by their length)\nRead it, then attach it to an issue: {}/issues\n",
        path.display(),
        text.lines().count(),
        env!("CARGO_PKG_REPOSITORY"),
    );
    terminal.print(&message).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

/// The properties of the run; empty ones if its file cannot be read.
fn header(run: &Path) -> Map<String, Value> {
    let line = File::open(run.join("events.jsonl")).ok().and_then(|file| {
        let mut line = String::new();
        BufReader::new(file.take(MAX_BYTES)).read_line(&mut line).ok()?;
        Some(line)
    });
    let header: Option<RunHeader> = line.and_then(|line| serde_json::from_str(&line).ok());
    let Some(header) = header else {
        return Map::new();
    };
    let facts = json!({
        "ralph": header.ralph,
        "agent": header.agent,
        "agent_version": header.agent_version,
        "transcript": header.transcript,
        "system": format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
    });
    facts.as_object().cloned().unwrap_or_default()
}

/// The report: the facts and what is unknown as comments, then each line of the output without its texts.
fn report_text(facts: &Map<String, Value>, output: &str) -> String {
    let mut text = String::new();
    for (name, value) in facts {
        text += &format!("# {name}: {}\n", value.as_str().unwrap_or("unknown"));
    }
    let format = facts.get("transcript").and_then(Value::as_str).unwrap_or("plain");
    for name in unknown_parts(format, output) {
        text += &format!("# unknown: {name}\n");
    }
    let mut masker = Masker::default();
    for line in output.lines() {
        text += &masker.line(line);
        text.push('\n');
    }
    text
}

/// The event types and fields that the format does not know.
fn unknown_parts(format: &str, output: &str) -> Vec<String> {
    let Some(format) = transcript::find(format) else {
        return Vec::new();
    };
    let mut adapter = transcript::with_known_fields(format, (format.open)(&AdapterContext::new("")));
    let (mut events, mut names) = (Vec::new(), Vec::new());
    for line in output.lines() {
        adapter.feed(line, &mut events);
        for event in events.drain(..) {
            if let TranscriptEvent::Meta {
                meta: Meta::Unknown { name, .. },
            } = event
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
    }
    names
}

/// Replaces texts by a number and their length. Equal texts have the same number, so that ids still refer to each other.
#[derive(Default)]
struct Masker {
    numbers: BTreeMap<String, usize>,
}

impl Masker {
    fn line(&mut self, line: &str) -> String {
        match serde_json::from_str::<Value>(line) {
            Ok(value) if value.is_object() => self.value("", value).to_string(),
            Ok(_) | Err(_) if line.trim().is_empty() => String::new(),
            Ok(_) | Err(_) => self.text(line),
        }
    }

    fn value(&mut self, key: &str, value: Value) -> Value {
        match value {
            Value::String(text) if STRUCTURE.contains(&key) && is_identifier(&text) => Value::String(text),
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(key, item)).collect(),
            Value::Object(fields) => {
                let masked = fields.into_iter().map(|(name, value)| {
                    let value = self.value(&name, value);
                    (if is_name(&name) { name } else { self.text(&name) }, value)
                });
                Value::Object(masked.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn text(&mut self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let next = self.numbers.len() + 1;
        let number = *self.numbers.entry(text.to_owned()).or_insert(next);
        format!("<{number}: {} characters>", text.chars().count())
    }
}

fn is_identifier(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
    !text.is_empty() && text.len() <= MAX_IDENTIFIER && text.chars().all(allowed)
}

/// Names of fields; other keys, such as paths, are data.
fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && text.len() <= MAX_IDENTIFIER && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_replaced_and_structure_is_kept() {
        let mut masker = Masker::default();
        let line = r#"{"type":"assistant","id":"toolu_1","n":3,"ok":true,"message":{"content":[{"type":"text","text":"my secret"}]}}"#;
        assert_eq!(
            masker.line(line),
            r#"{"id":"<1: 7 characters>","message":{"content":[{"text":"<2: 9 characters>","type":"text"}]},"n":3,"ok":true,"type":"assistant"}"#
        );
        let result = r#"{"tool_use_id":"toolu_1","status":"two words","/home/me/x":1}"#;
        assert_eq!(
            masker.line(result),
            r#"{"<3: 10 characters>":1,"status":"<4: 9 characters>","tool_use_id":"<1: 7 characters>"}"#
        );
        assert_eq!(masker.line("plain text"), "<5: 10 characters>");
        assert_eq!(masker.line(""), "");
    }

    #[test]
    fn unknown_parts_are_named_once() {
        let facts = json!({ "agent": "claude", "transcript": "claude" });
        let line = r#"{"type":"hologram","text":"hidden"}"#;
        let text = report_text(facts.as_object().unwrap(), &format!("{line}\n{line}\n"));
        assert_eq!(
            text,
            "# agent: claude\n# transcript: claude\n# unknown: hologram\n\
             {\"text\":\"<1: 6 characters>\",\"type\":\"hologram\"}\n\
             {\"text\":\"<1: 6 characters>\",\"type\":\"hologram\"}\n"
        );
    }
}
