//! Writes records as lines of JSON. Frequent transcript events bypass serde for speed; their bytes are identical to those
//! that serde writes.

use std::io::Write;

use jiff::Timestamp;
use serde::Serialize;

use super::json::find_escapable;
use super::{
    Flow, Meta, Record, RunEvent, ToolEnd, ToolStart, ToolStatus, TranscriptEvent, Usage, UsageScope,
};

/// An infallible output for bytes.
pub trait ByteOutput {
    fn put(&mut self, bytes: &[u8]);
}

impl ByteOutput for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// What precedes the digits of a link.
pub const LINK: &[u8] = b",\"chain\":\"";

/// A record without its link.
#[derive(Serialize)]
struct Unlinked<'a> {
    seq: u64,
    at: Timestamp,
    #[serde(flatten)]
    event: &'a RunEvent,
}

impl<'a> Unlinked<'a> {
    fn of(record: &'a Record) -> Self {
        Self {
            seq: record.seq,
            at: record.at,
            event: &record.event,
        }
    }
}

/// Writes records as JSON lines. It caches the parts that consecutive records share.
#[derive(Debug, Default)]
pub struct RecordWriter {
    /// The last second that was written, and its text.
    last_second: Option<(i64, Vec<u8>)>,
    /// The text from the timestamp to the `event` key of a transcript record, for the last timestamp and iteration.
    transcript_prefix: Option<(Timestamp, u64, Vec<u8>)>,
}

impl RecordWriter {
    /// Writes the record and a newline.
    pub fn write(&mut self, record: &Record, out: &mut impl ByteOutput) -> serde_json::Result<()> {
        self.write_open(record, out)?;
        match &record.chain {
            None => out.put(b"}\n"),
            Some(link) => {
                out.put(LINK);
                out.put(link.digits());
                out.put(b"\"}\n");
            }
        }
        Ok(())
    }

    /// Writes the record without its link and its closing brace.
    pub fn write_open(&mut self, record: &Record, out: &mut impl ByteOutput) -> serde_json::Result<()> {
        let RunEvent::Transcript { iteration, event } = &record.event else {
            let text = serde_json::to_vec(&Unlinked::of(record))?;
            out.put(text.strip_suffix(b"}").unwrap_or(&text));
            return Ok(());
        };
        out.put(b"{\"seq\":");
        put_number(record.seq, out);
        self.put_transcript_prefix(record.at, *iteration, out);
        put_event(event, out)
    }

    /// Writes the part that is equal for all transcript events of one timestamp and iteration.
    fn put_transcript_prefix(&mut self, at: Timestamp, iteration: u64, out: &mut impl ByteOutput) {
        let known = self.transcript_prefix.as_ref();
        if known.is_none_or(|(time, number, _)| (*time, *number) != (at, iteration)) {
            let mut text = b",\"at\":\"".to_vec();
            self.put_time(at, &mut text);
            text.extend_from_slice(b"\",\"type\":\"transcript\",\"iteration\":");
            put_number(iteration, &mut text);
            text.extend_from_slice(b",\"event\":");
            self.transcript_prefix = Some((at, iteration, text));
        }
        if let Some((_, _, text)) = &self.transcript_prefix {
            out.put(text);
        }
    }

    fn put_time(&mut self, at: Timestamp, out: &mut Vec<u8>) {
        let (second, nanoseconds) = (at.as_second(), at.subsec_nanosecond());
        // Timestamps before 1970 have a negative fraction.
        if second < 0 || nanoseconds < 0 {
            let _ = write!(out, "{at}");
            return;
        }
        match &self.last_second {
            Some((known, text)) if *known == second => out.extend_from_slice(text),
            Some(_) | None => {
                let whole = Timestamp::from_second(second).unwrap_or(at).to_string();
                let text = whole.trim_end_matches('Z').as_bytes().to_vec();
                out.extend_from_slice(&text);
                self.last_second = Some((second, text));
            }
        }
        if nanoseconds > 0 {
            let digits = format!("{nanoseconds:09}");
            out.push(b'.');
            out.extend_from_slice(digits.trim_end_matches('0').as_bytes());
        }
        out.push(b'Z');
    }
}

fn put_event(event: &TranscriptEvent, out: &mut impl ByteOutput) -> serde_json::Result<()> {
    match event {
        TranscriptEvent::Text {
            tag,
            text,
            flow,
            parent: None,
        } => {
            out.put(b"{\"type\":\"text\",\"tag\":\"");
            out.put(tag.name().as_bytes());
            out.put(b"\"");
            put_field("text", text, out);
            out.put(match flow {
                Flow::Message => b"}",
                Flow::Delta => b",\"flow\":\"delta\"}",
                Flow::Line => b",\"flow\":\"line\"}",
            });
        }
        TranscriptEvent::ToolOutput { tool, text } => {
            out.put(b"{\"type\":\"tool_output\",\"tool\":{\"id\":");
            put_text(&tool.id, out);
            out.put(b"}");
            put_field("text", text, out);
            out.put(b"}");
        }
        TranscriptEvent::ToolStart { tool } => put_tool_start(tool, out),
        TranscriptEvent::ToolEnd { tool } => put_tool_end(tool, out),
        TranscriptEvent::Usage { usage } if usage.cost_usd.is_none() && usage.cost_source.is_none() => {
            put_usage(usage, out);
        }
        TranscriptEvent::Meta {
            meta:
                Meta::Finished {
                    success,
                    reason,
                    text,
                    turns,
                    duration_ms,
                },
        } => {
            out.put(b"{\"type\":\"meta\",\"meta\":{\"kind\":\"finished\",\"success\":");
            out.put(if *success { b"true" } else { b"false" });
            for (name, text) in [("reason", reason), ("text", text)] {
                text.iter().for_each(|text| put_field(name, text, out));
            }
            put_numbers(&[("turns", *turns), ("duration_ms", *duration_ms)], out);
            out.put(b"}}");
        }
        TranscriptEvent::Text { parent: Some(_), .. }
        | TranscriptEvent::Usage { .. }
        | TranscriptEvent::Meta { .. } => out.put(&serde_json::to_vec(event)?),
    }
    Ok(())
}

fn put_tool_start(tool: &ToolStart, out: &mut impl ByteOutput) {
    out.put(b"{\"type\":\"tool_start\",\"tool\":{\"id\":");
    put_text(&tool.id, out);
    put_field("name", &tool.name, out);
    if let Some(input) = &tool.input {
        put_name("input", out);
        out.put(input.as_str().as_bytes());
    }
    if let Some(parent) = &tool.parent {
        put_field("parent", parent, out);
    }
    out.put(b"}}");
}

fn put_tool_end(tool: &ToolEnd, out: &mut impl ByteOutput) {
    out.put(b"{\"type\":\"tool_end\",\"tool\":{\"id\":");
    put_text(&tool.id, out);
    out.put(match tool.status {
        ToolStatus::Ok => b",\"status\":\"ok\"",
        ToolStatus::Fail => b",\"status\":\"fail\"",
        ToolStatus::Unknown => b",\"status\":\"unknown\"",
    });
    put_numbers(&[("duration_ms", tool.duration_ms)], out);
    out.put(b"}}");
}

/// Writes usage without a cost. Usage with a cost is written by serde.
fn put_usage(usage: &Usage, out: &mut impl ByteOutput) {
    let mut fields = Vec::with_capacity(160);
    put_numbers(
        &[
            ("prompt_tokens", usage.prompt_tokens),
            ("completion_tokens", usage.completion_tokens),
            ("total_tokens", usage.total_tokens),
            ("cached_tokens", usage.cached_tokens),
            ("cache_write_tokens", usage.cache_write_tokens),
            ("reasoning_tokens", usage.reasoning_tokens),
        ],
        &mut fields,
    );
    if let Some(model) = &usage.model {
        put_field("model", model, &mut fields);
    }
    fields.put(match usage.scope {
        UsageScope::Step => b"",
        UsageScope::Iteration => b",\"scope\":\"iteration\"",
        UsageScope::Session => b",\"scope\":\"session\"",
    });
    out.put(b"{\"type\":\"usage\",\"usage\":{");
    // Skip the comma before the first field.
    out.put(fields.get(1..).unwrap_or_default());
    out.put(b"}}");
}

fn put_numbers(numbers: &[(&str, Option<u64>)], out: &mut impl ByteOutput) {
    for (name, number) in numbers {
        if let Some(number) = number {
            put_name(name, out);
            put_number(*number, out);
        }
    }
}

/// Writes a comma and a string field.
fn put_field(name: &str, text: &str, out: &mut impl ByteOutput) {
    put_name(name, out);
    put_text(text, out);
}

fn put_name(name: &str, out: &mut impl ByteOutput) {
    out.put(b",\"");
    out.put(name.as_bytes());
    out.put(b"\":");
}

fn put_number(mut number: u64, out: &mut impl ByteOutput) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len() - 1;
    loop {
        digits[first] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            return out.put(&digits[first..]);
        }
        first -= 1;
    }
}

fn put_text(text: &str, out: &mut impl ByteOutput) {
    out.put(b"\"");
    let mut rest = text.as_bytes();
    while let Some(at) = find_escapable(rest) {
        out.put(&rest[..at]);
        escape(rest[at], out);
        rest = &rest[at + 1..];
    }
    out.put(rest);
    out.put(b"\"");
}

fn escape(byte: u8, out: &mut impl ByteOutput) {
    match byte {
        b'"' => out.put(b"\\\""),
        b'\\' => out.put(b"\\\\"),
        b'\n' => out.put(b"\\n"),
        b'\r' => out.put(b"\\r"),
        b'\t' => out.put(b"\\t"),
        0x08 => out.put(b"\\b"),
        0x0c => out.put(b"\\f"),
        other => {
            out.put(format!("\\u{other:04x}").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::{CostSource, Json, Tag, ToolRef, Usd};

    fn by_hand_and_by_serde(record: &Record) -> (String, String) {
        let mut by_hand = Vec::new();
        RecordWriter::default().write(record, &mut by_hand).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let by_serde = serde_json::to_string(record).unwrap() + "\n";
        (text(by_hand), by_serde)
    }

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[ -~\\n\\t\"\\\\\u{0}-\u{1f}\u{7f}-\u{ff}]{0,64}",
            "[a-zé🦀]{0,200}"
        ]
    }

    proptest! {
        #[test]
        fn output_equals_serde_output(
            seq in any::<u64>(),
            iteration in any::<u64>(),
            nanoseconds in prop_oneof![
                0..2_000_000_000_000_000_000_i128,
                (0..2_000_000_000_i128).prop_map(|second| second * 1_000_000_000),
                (0..2_000_000_000_000_i128).prop_map(|milli| milli * 1_000_000),
                -2_000_000_000_000_000_000..0_i128,
            ],
            text in texts(),
            id in texts(),
            kind in 0..27_usize,
        ) {
            let tags = [Tag::Ai, Tag::Think, Tag::Sys, Tag::Tool, Tag::Prompt, Tag::User];
            let flows = [Flow::Message, Flow::Delta, Flow::Line];
            let event = match kind {
                18 => TranscriptEvent::ToolOutput { tool: ToolRef { id }, text },
                19 => TranscriptEvent::Text { tag: Tag::Ai, text, flow: Flow::Delta, parent: Some(id) },
                20 => TranscriptEvent::ToolEnd { tool: ToolEnd {
                    id,
                    status: [ToolStatus::Ok, ToolStatus::Fail, ToolStatus::Unknown][iteration as usize % 3],
                    duration_ms: (seq % 2 == 0).then_some(seq),
                } },
                21 => {
                    let figure = |bit: u32| (seq >> bit & 1 == 1).then_some(iteration);
                    TranscriptEvent::usage(Usage {
                        prompt_tokens: figure(0),
                        completion_tokens: figure(1),
                        total_tokens: figure(2),
                        cached_tokens: figure(3),
                        cache_write_tokens: figure(4),
                        reasoning_tokens: figure(5),
                        cost_usd: figure(6).and_then(|_| Usd::new(0.25)),
                        cost_source: figure(7).map(|_| CostSource::Priced),
                        model: figure(8).map(|_| id),
                        scope: [UsageScope::Step, UsageScope::Iteration, UsageScope::Session][iteration as usize % 3],
                    })
                }
                22 | 23 => TranscriptEvent::ToolStart { tool: ToolStart {
                    id,
                    input: (kind == 22).then(|| Json::from(serde_json::json!({ "command": text, "n": [seq] }))),
                    parent: (kind == 23).then(|| text.clone()),
                    name: text,
                } },
                24 | 25 => TranscriptEvent::meta(Meta::Finished {
                    success: seq % 2 == 0,
                    reason: (kind == 24).then_some(id),
                    text: (iteration % 2 == 0).then_some(text),
                    turns: (kind == 25).then_some(seq),
                    duration_ms: (seq % 3 == 0).then_some(iteration),
                }),
                26 => TranscriptEvent::meta(Meta::ParseError { message: text }),
                kind => TranscriptEvent::Text { tag: tags[kind / 3], text, flow: flows[kind % 3], parent: None },
            };
            let at = Timestamp::from_nanosecond(nanoseconds).unwrap();
            let (by_hand, by_serde) = by_hand_and_by_serde(&Record::new(seq, at, RunEvent::Transcript { iteration, event }));
            prop_assert_eq!(by_hand, by_serde);
        }
    }

    #[test]
    fn earlier_second_after_later_one_is_written_correctly() {
        let mut writer = RecordWriter::default();
        let mut out = Vec::new();
        for second in [5, 5, 6, 4] {
            let at = Timestamp::new(second, 120_000_000).unwrap();
            let event = TranscriptEvent::message(Tag::Ai, "x");
            let event = RunEvent::Transcript { iteration: 1, event };
            writer.write(&Record::new(1, at, event), &mut out).unwrap();
        }
        let seconds: Vec<u8> = out
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice::<Record>(line).unwrap())
            .map(|record| u8::try_from(record.at.as_second()).unwrap())
            .collect();
        assert_eq!(seconds, [5, 5, 6, 4]);
    }
}
