//! OpenAI's Responses API.

use std::io;

use serde_json::{Map, Value, json};

use super::super::reply::Arguments;
use super::{Block, INPUT_TOKENS, ModelRequest, OUTPUT_TOKENS, Stream, id, pieces, text_of};

/// Numbers the events of a stream.
struct Numbered<'a, 'b> {
    out: &'a mut Stream<'b>,
    next: u64,
}

impl Numbered<'_, '_> {
    fn event(&mut self, kind: &str, fields: Value) -> io::Result<()> {
        let mut event = fields.as_object().cloned().unwrap_or_else(Map::new);
        event.insert("type".into(), kind.into());
        event.insert("sequence_number".into(), self.next.into());
        self.next += 1;
        self.out.event(kind, &event.into())
    }
}

pub(super) fn stream(request: &ModelRequest, blocks: &[Block], out: &mut Stream<'_>) -> io::Result<()> {
    let mut out = Numbered { out, next: 0 };
    let mut response = empty(request);
    out.event("response.created", json!({ "response": response }))?;
    out.event("response.in_progress", json!({ "response": response }))?;
    let mut items = Vec::new();
    for block in blocks {
        if out.out.pause(block)? {
            continue;
        }
        let index = items.len();
        let item = match block {
            Block::Think(text) => reasoning(request, index, text, &mut out)?,
            Block::Say(text) => message(request, index, text, &mut out)?,
            Block::Call(tool) => {
                let call = tool.named(&request.tools);
                tool_call(request, index, &call.name, &call.arguments, &mut out)?
            }
            Block::Pause(_) | Block::Hang => continue,
        };
        let done = json!({ "output_index": index, "item": item });
        out.event("response.output_item.done", done)?;
        items.push(item);
    }
    response["status"] = "completed".into();
    response["output"] = items.into();
    response["usage"] = usage();
    out.event("response.completed", json!({ "response": response }))
}

fn reasoning(
    request: &ModelRequest,
    index: usize,
    text: &str,
    out: &mut Numbered<'_, '_>,
) -> io::Result<Value> {
    let id = id("rs", request, index);
    let item = json!({ "id": id, "type": "reasoning", "summary": [] });
    out.event(
        "response.output_item.added",
        json!({ "output_index": index, "item": item }),
    )?;
    let fields = |key: &str, value: Value| {
        let mut fields = json!({ "item_id": id, "output_index": index, "summary_index": 0 });
        fields[key] = value;
        fields
    };
    let part = json!({ "type": "summary_text", "text": text });
    out.event(
        "response.reasoning_summary_part.added",
        fields("part", json!({ "type": "summary_text", "text": "" })),
    )?;
    for piece in pieces(text) {
        out.event(
            "response.reasoning_summary_text.delta",
            fields("delta", piece.into()),
        )?;
    }
    out.event(
        "response.reasoning_summary_text.done",
        fields("text", text.into()),
    )?;
    out.event(
        "response.reasoning_summary_part.done",
        fields("part", part.clone()),
    )?;
    Ok(json!({ "id": id, "type": "reasoning", "summary": [part], "encrypted_content": "c2VjcmV0" }))
}

fn message(
    request: &ModelRequest,
    index: usize,
    text: &str,
    out: &mut Numbered<'_, '_>,
) -> io::Result<Value> {
    let id = id("msg", request, index);
    let item = |status: &str, content: Value| json!({ "id": id, "type": "message", "status": status, "role": "assistant", "content": content });
    let added = json!({ "output_index": index, "item": item("in_progress", json!([])) });
    out.event("response.output_item.added", added)?;
    let fields = |key: &str, value: Value| {
        let mut fields = json!({ "item_id": id, "output_index": index, "content_index": 0 });
        fields[key] = value;
        fields
    };
    let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
    out.event("response.content_part.added", fields("part", part("")))?;
    for piece in pieces(text) {
        out.event("response.output_text.delta", fields("delta", piece.into()))?;
    }
    out.event("response.output_text.done", fields("text", text.into()))?;
    out.event("response.content_part.done", fields("part", part(text)))?;
    Ok(item("completed", json!([part(text)])))
}

fn tool_call(
    request: &ModelRequest,
    index: usize,
    name: &str,
    arguments: &Arguments,
    out: &mut Numbered<'_, '_>,
) -> io::Result<Value> {
    let (kind, key, event, text) = match arguments {
        Arguments::Json(value) => (
            "function_call",
            "arguments",
            "response.function_call_arguments",
            value.to_string(),
        ),
        Arguments::Text(text) => (
            "custom_tool_call",
            "input",
            "response.custom_tool_call_input",
            text.clone(),
        ),
    };
    let id = id("item", request, index);
    let item = |status: &str, text: &str| {
        let call_id = super::id("call", request, index);
        let mut item = json!({ "id": id, "type": kind, "status": status, "call_id": call_id, "name": name });
        item[key] = text.into();
        item
    };
    let added = json!({ "output_index": index, "item": item("in_progress", "") });
    out.event("response.output_item.added", added)?;
    for piece in pieces(&text) {
        let delta = json!({ "item_id": id, "output_index": index, "delta": piece });
        out.event(&format!("{event}.delta"), delta)?;
    }
    let mut done = json!({ "item_id": id, "output_index": index });
    done[key] = text.as_str().into();
    out.event(&format!("{event}.done"), done)?;
    Ok(item("completed", &text))
}

pub(super) fn whole(request: &ModelRequest, blocks: &[Block]) -> Value {
    let part = json!({ "type": "output_text", "text": text_of(blocks), "annotations": [] });
    let mut response = empty(request);
    response["status"] = "completed".into();
    response["output"] = json!([{ "id": id("msg", request, 0), "type": "message", "status": "completed",
                                  "role": "assistant", "content": [part] }]);
    response["usage"] = usage();
    response
}

fn empty(request: &ModelRequest) -> Value {
    json!({ "id": id("resp", request, 0), "object": "response", "created_at": 1_700_000_000, "status": "in_progress",
            "model": request.model, "output": [], "error": null, "incomplete_details": null, "usage": null })
}

fn usage() -> Value {
    json!({ "input_tokens": INPUT_TOKENS, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": OUTPUT_TOKENS, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS })
}
