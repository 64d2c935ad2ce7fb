//! Anthropic's Messages API.

use std::io;

use serde_json::{Value, json};

use super::{Block, INPUT_TOKENS, ModelRequest, OUTPUT_TOKENS, Stream, calls_a_tool, id, pieces};

pub(super) fn stream(request: &ModelRequest, blocks: &[Block], out: &mut Stream<'_>) -> io::Result<()> {
    let message = json!({ "id": id("msg", request, 0), "type": "message", "role": "assistant", "model": request.model,
                          "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(1) });
    out.event(
        "message_start",
        &json!({ "type": "message_start", "message": message }),
    )?;
    let mut index = 0;
    for block in blocks {
        if out.pause(block)? {
            continue;
        }
        write_block(request, index, block, out)?;
        let stop = json!({ "type": "content_block_stop", "index": index });
        out.event("content_block_stop", &stop)?;
        index += 1;
    }
    let delta = json!({ "stop_reason": stop_reason(blocks), "stop_sequence": null });
    out.event(
        "message_delta",
        &json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": OUTPUT_TOKENS } }),
    )?;
    out.event("message_stop", &json!({ "type": "message_stop" }))
}

fn write_block(request: &ModelRequest, index: usize, block: &Block, out: &mut Stream<'_>) -> io::Result<()> {
    let start = |block: Value, out: &mut Stream<'_>| {
        let event = json!({ "type": "content_block_start", "index": index, "content_block": block });
        out.event("content_block_start", &event)
    };
    let delta = |delta: Value, out: &mut Stream<'_>| {
        let event = json!({ "type": "content_block_delta", "index": index, "delta": delta });
        out.event("content_block_delta", &event)
    };
    match block {
        Block::Think(text) => {
            start(
                json!({ "type": "thinking", "thinking": "", "signature": "" }),
                out,
            )?;
            for piece in pieces(text) {
                delta(json!({ "type": "thinking_delta", "thinking": piece }), out)?;
            }
            delta(json!({ "type": "signature_delta", "signature": "c2lnbmVk" }), out)
        }
        Block::Say(text) => {
            start(json!({ "type": "text", "text": "" }), out)?;
            pieces(text)
                .into_iter()
                .try_for_each(|piece| delta(json!({ "type": "text_delta", "text": piece }), out))
        }
        Block::Call(tool) => {
            let call = tool.named(&request.tools);
            let id = id("toolu", request, index);
            start(
                json!({ "type": "tool_use", "id": id, "name": call.name, "input": {} }),
                out,
            )?;
            pieces(&call.json().to_string())
                .into_iter()
                .try_for_each(|piece| {
                    delta(json!({ "type": "input_json_delta", "partial_json": piece }), out)
                })
        }
        Block::Pause(_) | Block::Hang => Ok(()),
    }
}

pub(super) fn whole(request: &ModelRequest, blocks: &[Block]) -> Value {
    let part = |(index, block): (usize, &Block)| match block {
        Block::Say(text) => Some(json!({ "type": "text", "text": text })),
        Block::Call(tool) => {
            let call = tool.named(&request.tools);
            let id = id("toolu", request, index);
            Some(json!({ "type": "tool_use", "id": id, "name": call.name, "input": call.json() }))
        }
        Block::Think(_) | Block::Pause(_) | Block::Hang => None,
    };
    let content: Vec<Value> = blocks.iter().enumerate().filter_map(part).collect();
    json!({ "id": id("msg", request, 0), "type": "message", "role": "assistant", "model": request.model,
            "content": content, "stop_reason": stop_reason(blocks), "stop_sequence": null,
            "usage": usage(OUTPUT_TOKENS) })
}

fn stop_reason(blocks: &[Block]) -> &'static str {
    if calls_a_tool(blocks) {
        "tool_use"
    } else {
        "end_turn"
    }
}

fn usage(output: u64) -> Value {
    json!({ "input_tokens": INPUT_TOKENS, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "output_tokens": output, "service_tier": "standard" })
}

pub(super) fn error(status: u16, message: impl Fn(&str) -> String) -> Value {
    let (kind, default) = match status {
        400 => (
            "invalid_request_error",
            "prompt is too long: 250000 tokens > 200000 maximum",
        ),
        401 => ("authentication_error", "invalid x-api-key"),
        403 => ("permission_error", "Your organization has been disabled."),
        429 => ("rate_limit_error", "This request would exceed your rate limit."),
        529 => ("overloaded_error", "Overloaded"),
        _ => ("api_error", "Internal server error"),
    };
    json!({ "type": "error", "error": { "type": kind, "message": message(default) }, "request_id": "req_loopback" })
}
