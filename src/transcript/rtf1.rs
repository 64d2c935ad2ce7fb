//! `rtf1`: the Ralph Transcript Format for custom agents. A line that starts with `@@RALPH@@ ` is a transcript event as a
//! JSON object, which is strictly validated; every other line is assistant text.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::common::{OpenCalls, Tail, parse, push_unreadable, string, unknown_end};
use super::{Adapter, Capabilities, Format};
use crate::event::{Flow, Json, Meta, Tag, ToolEnd, ToolRef, ToolStart, TranscriptEvent, Usage, Usd};

pub(super) const FORMAT: Format = Format {
    name: "rtf1",
    capabilities: Capabilities {
        roles: true,
        messages: true,
        tools: true,
        usage: true,
        costs: true,
        sessions: true,
        prompt_hiding: false,
        terminal_event: false,
    },
    open: |_| Box::<Rtf1>::default(),
};

const SENTINEL: &str = "@@RALPH@@ ";

#[derive(Default)]
struct Rtf1 {
    open: OpenCalls,
    /// The assistant's text, to detect whether the terminal event repeats its end.
    answer: Tail,
}

impl Adapter for Rtf1 {
    fn feed(&mut self, line: &str, out: &mut Vec<TranscriptEvent>) {
        let Some(json) = line.strip_prefix(SENTINEL) else {
            self.answer.push("\n");
            self.answer.push(line);
            out.push(TranscriptEvent::line(Tag::Ai, line));
            return;
        };
        match read_event(json.trim()) {
            Ok(event) => {
                self.track_tool_calls(&event, out);
                self.track_answer(&event, out);
                out.push(event);
            }
            Err(violation) => push_unreadable(line, violation, out),
        }
    }

    fn flush(&mut self, out: &mut Vec<TranscriptEvent>) {
        self.open.close_all(out);
    }
}

impl Rtf1 {
    /// Emits a final message that only the terminal event contains.
    fn track_answer(&mut self, event: &TranscriptEvent, out: &mut Vec<TranscriptEvent>) {
        match event {
            TranscriptEvent::Text {
                tag: Tag::Ai,
                text,
                flow,
                parent: None,
            } => {
                if *flow != Flow::Delta {
                    self.answer.push("\n");
                }
                self.answer.push(text);
            }
            TranscriptEvent::Meta {
                meta: Meta::Finished { text: Some(text), .. },
            } if !self.answer.ends_with(text) => out.push(TranscriptEvent::message(Tag::Ai, text.as_str())),
            TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolStart { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::ToolEnd { .. }
            | TranscriptEvent::Usage { .. }
            | TranscriptEvent::Meta { .. } => {}
        }
    }

    /// Tracks running calls. If a running call starts again, its previous run ends with an unknown status.
    fn track_tool_calls(&mut self, event: &TranscriptEvent, out: &mut Vec<TranscriptEvent>) {
        match event {
            TranscriptEvent::ToolStart { tool } => {
                if self.open.remove(&tool.id) {
                    out.push(unknown_end(tool.id.clone()));
                }
                self.open.insert(tool.id.clone(), tool.name.clone(), out);
            }
            TranscriptEvent::ToolEnd { tool } => {
                self.open.remove(&tool.id);
            }
            TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::Usage { .. }
            | TranscriptEvent::Meta { .. } => {}
        }
    }
}

/// An unparsed field; `null` is the same as a missing field.
type Raw<'a> = Option<&'a RawValue>;

/// A message for the agent's author that describes a violation of the schema.
type Violation = String;

#[derive(Deserialize)]
struct Rtf1Event<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Raw<'a>,
    #[serde(borrow, default)]
    tag: Raw<'a>,
    #[serde(borrow, default)]
    text: Raw<'a>,
    #[serde(borrow, default)]
    flow: Raw<'a>,
    #[serde(borrow, default)]
    parent: Raw<'a>,
    #[serde(borrow, default)]
    tool: Raw<'a>,
    #[serde(borrow, default)]
    usage: Raw<'a>,
    #[serde(borrow, default)]
    meta: Raw<'a>,
}

#[derive(Deserialize)]
struct Rtf1Tool<'a> {
    #[serde(borrow, default)]
    id: Raw<'a>,
    #[serde(borrow, default)]
    name: Raw<'a>,
    #[serde(borrow, default)]
    input: Raw<'a>,
    #[serde(borrow, default)]
    parent: Raw<'a>,
    #[serde(borrow, default)]
    status: Raw<'a>,
    #[serde(borrow, default)]
    duration_ms: Raw<'a>,
}

fn read_event(json: &str) -> Result<TranscriptEvent, Violation> {
    let envelope: Rtf1Event<'_> = parse(json)?;
    let kind = required(envelope.kind, "type")?;
    match &*kind {
        "text" => Ok(TranscriptEvent::Text {
            tag: one_of(envelope.tag, "tag")?,
            text: required(envelope.text, "text")?.into_owned(),
            flow: match envelope.flow {
                None => Flow::Line,
                given => one_of(given, "flow")?,
            },
            parent: optional(envelope.parent, "parent")?.map(Cow::into_owned),
        }),
        "tool_start" => {
            let tool = read_tool(envelope.tool)?;
            Ok(TranscriptEvent::ToolStart {
                tool: ToolStart {
                    id: required(tool.id, "tool.id")?.into_owned(),
                    name: required(tool.name, "tool.name")?.into_owned(),
                    input: object(tool.input, "tool.input")?.map(Json::from),
                    parent: optional(tool.parent, "tool.parent")?.map(Cow::into_owned),
                },
            })
        }
        "tool_output" => Ok(TranscriptEvent::ToolOutput {
            tool: ToolRef {
                id: required(read_tool(envelope.tool)?.id, "tool.id")?.into_owned(),
            },
            text: required(envelope.text, "text")?.into_owned(),
        }),
        "tool_end" => {
            let tool = read_tool(envelope.tool)?;
            Ok(TranscriptEvent::ToolEnd {
                tool: ToolEnd {
                    id: required(tool.id, "tool.id")?.into_owned(),
                    status: one_of(tool.status, "tool.status")?,
                    duration_ms: count(tool.duration_ms, "tool.duration_ms")?,
                },
            })
        }
        "usage" => read_usage(envelope.usage),
        "meta" => read_meta(envelope.meta),
        unknown => Err(format!(
            "unknown type `{unknown}`: expected text, tool_start, tool_output, tool_end, usage or meta"
        )),
    }
}

fn read_tool(raw: Raw<'_>) -> Result<Rtf1Tool<'_>, Violation> {
    let raw = object(raw, "tool")?.ok_or("`tool` is missing")?;
    serde_json::from_str(raw.get()).map_err(|error| format!("`tool` is invalid: {error}"))
}

#[derive(Deserialize)]
struct Rtf1Usage<'a> {
    #[serde(borrow, default)]
    prompt_tokens: Raw<'a>,
    #[serde(borrow, default)]
    completion_tokens: Raw<'a>,
    #[serde(borrow, default)]
    total_tokens: Raw<'a>,
    #[serde(borrow, default)]
    cached_tokens: Raw<'a>,
    #[serde(borrow, default)]
    cache_write_tokens: Raw<'a>,
    #[serde(borrow, default)]
    reasoning_tokens: Raw<'a>,
    #[serde(borrow, default)]
    cost_usd: Raw<'a>,
    #[serde(borrow, default)]
    cost_source: Raw<'a>,
    #[serde(borrow, default)]
    model: Raw<'a>,
    #[serde(borrow, default)]
    scope: Raw<'a>,
}

fn read_usage(raw: Raw<'_>) -> Result<TranscriptEvent, Violation> {
    let raw = object(raw, "usage")?.ok_or("`usage` is missing")?;
    let usage: Rtf1Usage<'_> =
        serde_json::from_str(raw.get()).map_err(|error| format!("`usage` is invalid: {error}"))?;
    Ok(TranscriptEvent::usage(Usage {
        prompt_tokens: count(usage.prompt_tokens, "usage.prompt_tokens")?,
        completion_tokens: count(usage.completion_tokens, "usage.completion_tokens")?,
        total_tokens: count(usage.total_tokens, "usage.total_tokens")?,
        cached_tokens: count(usage.cached_tokens, "usage.cached_tokens")?,
        cache_write_tokens: count(usage.cache_write_tokens, "usage.cache_write_tokens")?,
        reasoning_tokens: count(usage.reasoning_tokens, "usage.reasoning_tokens")?,
        cost_usd: money(usage.cost_usd, "usage.cost_usd")?,
        cost_source: optional_one_of(usage.cost_source, "usage.cost_source")?,
        model: optional(usage.model, "usage.model")?.map(Cow::into_owned),
        scope: optional_one_of(usage.scope, "usage.scope")?.unwrap_or_default(),
    }))
}

/// Reads a meta event. Any object is valid: unknown kinds become `Meta::Other`.
fn read_meta(raw: Raw<'_>) -> Result<TranscriptEvent, Violation> {
    let raw = object(raw, "meta")?.ok_or("`meta` is missing")?;
    serde_json::from_str::<Meta>(raw.get())
        .map(TranscriptEvent::meta)
        .map_err(|error| format!("`meta` is invalid: {error}"))
}

fn required<'a>(raw: Raw<'a>, name: &str) -> Result<Cow<'a, str>, Violation> {
    optional(raw, name)?.ok_or_else(|| format!("`{name}` is missing"))
}

fn optional<'a>(raw: Raw<'a>, name: &str) -> Result<Option<Cow<'a, str>>, Violation> {
    if raw.is_none() {
        return Ok(None);
    }
    string(raw)
        .map(Some)
        .ok_or_else(|| format!("`{name}` must be a string"))
}

fn object<'a>(raw: Raw<'a>, name: &str) -> Result<Raw<'a>, Violation> {
    match raw {
        Some(raw) if !raw.get().starts_with('{') => Err(format!("`{name}` must be an object")),
        raw => Ok(raw),
    }
}

/// A required enum value. The error of serde lists the valid values.
fn one_of<T: DeserializeOwned>(raw: Raw<'_>, name: &str) -> Result<T, Violation> {
    optional_one_of(raw, name)?.ok_or_else(|| format!("`{name}` is missing"))
}

fn optional_one_of<T: DeserializeOwned>(raw: Raw<'_>, name: &str) -> Result<Option<T>, Violation> {
    let Some(given) = optional(raw, name)? else {
        return Ok(None);
    };
    serde_json::from_value(serde_json::Value::String(given.into_owned()))
        .map(Some)
        .map_err(|error| format!("unknown `{name}`: {error}"))
}

fn count(raw: Raw<'_>, name: &str) -> Result<Option<u64>, Violation> {
    let Some(text) = raw.map(RawValue::get) else {
        return Ok(None);
    };
    if let Ok(count) = text.parse() {
        return Ok(Some(count));
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    Err(if is_integer {
        format!("`{name}` is out of range: {text}")
    } else {
        format!("`{name}` must be an integer")
    })
}

fn money(raw: Raw<'_>, name: &str) -> Result<Option<Usd>, Violation> {
    let Some(text) = raw.map(RawValue::get) else {
        return Ok(None);
    };
    match serde_json::from_str::<f64>(text) {
        Ok(amount) => match Usd::new(amount) {
            Some(amount) => Ok(Some(amount)),
            None => Err(format!("`{name}` is out of range: {text}")),
        },
        Err(_) => Err(format!("`{name}` must be a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::read_all;

    fn events(lines: &str) -> Vec<TranscriptEvent> {
        read_all("rtf1", "", lines)
    }

    fn as_json(events: &[TranscriptEvent]) -> Vec<String> {
        events
            .iter()
            .map(|event| serde_json::to_string(event).unwrap())
            .collect()
    }

    #[test]
    fn example_of_the_specification_is_parsed() {
        let read = events(concat!(
            "Working.\n",
            r#"@@RALPH@@ {"type":"text","tag":"THINK","text":"Plan: inspect auth layer"}"#,
            "\n",
            r#"@@RALPH@@ {"type":"tool_start","tool":{"id":"t1","name":"shell","input":{"cmd":"rg -n authz -S ."}}}"#,
            "\n",
            r#"@@RALPH@@ {"type":"tool_output","tool":{"id":"t1"},"text":"src/auth.rs:1"}"#,
            "\n",
            r#"@@RALPH@@ {"type":"tool_end","tool":{"id":"t1","status":"ok","duration_ms":218}}"#,
            "\n",
            r#"@@RALPH@@ {"type":"usage","usage":{"prompt_tokens":1234,"completion_tokens":567,"total_tokens":1801}}"#,
        ));
        assert_eq!(
            as_json(&read),
            [
                r#"{"type":"text","tag":"AI","text":"Working.","flow":"line"}"#,
                r#"{"type":"text","tag":"THINK","text":"Plan: inspect auth layer","flow":"line"}"#,
                r#"{"type":"tool_start","tool":{"id":"t1","name":"shell","input":{"cmd":"rg -n authz -S ."}}}"#,
                r#"{"type":"tool_output","tool":{"id":"t1"},"text":"src/auth.rs:1"}"#,
                r#"{"type":"tool_end","tool":{"id":"t1","status":"ok","duration_ms":218}}"#,
                r#"{"type":"usage","usage":{"prompt_tokens":1234,"completion_tokens":567,"total_tokens":1801}}"#,
            ]
        );
    }

    #[test]
    fn serialized_transcript_events_are_valid_rtf1() {
        for line in [
            r#"{"type":"text","tag":"AI","text":"x","flow":"delta","parent":"t1"}"#,
            r#"{"type":"meta","meta":{"kind":"session","session_id":"s","model":"m"}}"#,
            r#"{"type":"meta","meta":{"kind":"finished","success":true}}"#,
            r#"{"type":"meta","meta":{"kind":"error","class":"rate_limit","message":"m","status":429}}"#,
            r#"{"type":"meta","meta":{"kind":"rate_limit","status":"rejected","resets_at":"2026-11-15T19:21:03Z"}}"#,
            r#"{"type":"meta","meta":{"anything":{"else":1}}}"#,
            r#"{"type":"usage","usage":{"cost_usd":0.5,"cost_source":"reported","scope":"iteration"}}"#,
        ] {
            assert_eq!(as_json(&events(&format!("@@RALPH@@ {line}"))), [line]);
        }
    }

    const VIOLATIONS: &[(&str, &str)] = &[
        ("nonsense", "not a JSON object"),
        ("[1]", "not a JSON object"),
        (
            "{",
            "invalid JSON: EOF while parsing an object at line 1 column 1",
        ),
        ("{}", "`type` is missing"),
        (r#"{"type":7}"#, "`type` must be a string"),
        (
            r#"{"type":"say"}"#,
            "unknown type `say`: expected text, tool_start, tool_output, tool_end, usage or meta",
        ),
        (r#"{"type":"text","text":"x"}"#, "`tag` is missing"),
        (
            r#"{"type":"text","tag":"ai","text":"x"}"#,
            "unknown `tag`: unknown variant `ai`, expected one of `AI`, `THINK`, `SYS`, `TOOL`, `PROMPT`, `USER`",
        ),
        (r#"{"type":"text","tag":"AI"}"#, "`text` is missing"),
        (
            r#"{"type":"text","tag":"AI","text":["x"]}"#,
            "`text` must be a string",
        ),
        (
            r#"{"type":"text","tag":"AI","text":"x","flow":"up"}"#,
            "unknown `flow`: unknown variant `up`, expected one of `message`, `delta`, `line`",
        ),
        (r#"{"type":"tool_start"}"#, "`tool` is missing"),
        (r#"{"type":"tool_start","tool":"t1"}"#, "`tool` must be an object"),
        (
            r#"{"type":"tool_start","tool":{"name":"n"}}"#,
            "`tool.id` is missing",
        ),
        (
            r#"{"type":"tool_start","tool":{"id":1,"name":"n"}}"#,
            "`tool.id` must be a string",
        ),
        (
            r#"{"type":"tool_start","tool":{"id":"t"}}"#,
            "`tool.name` is missing",
        ),
        (
            r#"{"type":"tool_start","tool":{"id":"t","name":"n","input":"ls"}}"#,
            "`tool.input` must be an object",
        ),
        (r#"{"type":"tool_output","tool":{"id":"t"}}"#, "`text` is missing"),
        (
            r#"{"type":"tool_end","tool":{"id":"t"}}"#,
            "`tool.status` is missing",
        ),
        (
            r#"{"type":"tool_end","tool":{"id":"t","status":"good"}}"#,
            "unknown `tool.status`: unknown variant `good`, expected one of `ok`, `fail`, `unknown`",
        ),
        (
            r#"{"type":"tool_end","tool":{"id":"t","status":"ok","duration_ms":-1}}"#,
            "`tool.duration_ms` is out of range: -1",
        ),
        (
            r#"{"type":"tool_end","tool":{"id":"t","status":"ok","duration_ms":18446744073709551616}}"#,
            "`tool.duration_ms` is out of range: 18446744073709551616",
        ),
        (
            r#"{"type":"tool_end","tool":{"id":"t","status":"ok","duration_ms":1.5}}"#,
            "`tool.duration_ms` must be an integer",
        ),
        (r#"{"type":"usage"}"#, "`usage` is missing"),
        (
            r#"{"type":"usage","usage":{"prompt_tokens":"9"}}"#,
            "`usage.prompt_tokens` must be an integer",
        ),
        (
            r#"{"type":"usage","usage":{"total_tokens":-9}}"#,
            "`usage.total_tokens` is out of range: -9",
        ),
        (
            r#"{"type":"usage","usage":{"cost_usd":-0.5}}"#,
            "`usage.cost_usd` is out of range: -0.5",
        ),
        (
            r#"{"type":"usage","usage":{"model":1}}"#,
            "`usage.model` must be a string",
        ),
        (r#"{"type":"meta"}"#, "`meta` is missing"),
        (r#"{"type":"meta","meta":[]}"#, "`meta` must be an object"),
    ];

    #[test]
    fn violation_is_reported_and_the_line_is_shown() {
        for (json, message) in VIOLATIONS {
            let line = format!("@@RALPH@@ {json}");
            let expected = [
                TranscriptEvent::meta(Meta::ParseError {
                    message: (*message).to_owned(),
                }),
                TranscriptEvent::line(Tag::Sys, &line),
            ];
            assert_eq!(events(&line), expected, "{json}");
        }
    }

    #[test]
    fn null_is_a_missing_field() {
        let line = r#"@@RALPH@@ {"type":"tool_end","tool":{"id":"t","status":"ok","duration_ms":null}}"#;
        assert_eq!(
            as_json(&events(line)),
            [r#"{"type":"tool_end","tool":{"id":"t","status":"ok"}}"#]
        );
    }

    #[test]
    fn sentinel_without_space_is_assistant_text() {
        assert_eq!(
            events("@@RALPH@@{}"),
            [TranscriptEvent::line(Tag::Ai, "@@RALPH@@{}")]
        );
    }

    #[test]
    fn open_tool_calls_end_with_unknown_status() {
        let start =
            |id: &str| format!(r#"@@RALPH@@ {{"type":"tool_start","tool":{{"id":"{id}","name":"n"}}}}"#);
        let read = events(&[start("a"), start("b"), start("a")].join("\n"));
        let ends: Vec<_> = read
            .iter()
            .filter_map(|event| match event {
                TranscriptEvent::ToolEnd { tool } => Some((tool.id.as_str(), tool.status)),
                _ => None,
            })
            .collect();
        let unknown = crate::event::ToolStatus::Unknown;
        assert_eq!(ends, [("a", unknown), ("b", unknown), ("a", unknown)]);
    }

    #[test]
    fn final_message_is_emitted_unless_it_was_printed() {
        let finished = |text: &str| {
            format!(
                r#"@@RALPH@@ {{"type":"meta","meta":{{"kind":"finished","success":true,"text":"{text}"}}}}"#
            )
        };
        let answers = |lines: &[&str]| {
            let mut out = Vec::new();
            let mut adapter = Rtf1::default();
            lines.iter().for_each(|line| adapter.feed(line, &mut out));
            let texts = out.into_iter().filter_map(|event| match event {
                TranscriptEvent::Text { text, .. } => Some(text),
                _ => None,
            });
            texts.collect::<Vec<_>>()
        };
        let message = r#"@@RALPH@@ {"type":"text","tag":"AI","text":"It is done.","flow":"message"}"#;
        assert_eq!(answers(&[message, &finished("It is done.")]), ["It is done."]);
        assert_eq!(answers(&["one", "two", &finished("one\\ntwo")]), ["one", "two"]);
        assert_eq!(answers(&["Working.", &finished("Done.")]), ["Working.", "Done."]);
        assert_eq!(answers(&["Working.", &finished("")]), ["Working."]);
    }
}
