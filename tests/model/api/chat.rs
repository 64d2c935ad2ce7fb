//! OpenAI's Chat Completions API.

use std::io;

use serde_json::{Value, json};

use super::{Block, INPUT_TOKENS, ModelRequest, OUTPUT_TOKENS, Stream, calls_a_tool, id, pieces, text_of};

pub(super) fn stream(request: &ModelRequest, blocks: &[Block], out: &mut Stream<'_>) -> io::Result<()> {
    let chunk = |delta: Value, finish: Value| {
        json!({ "id": id("chatcmpl", request, 0), "object": "chat.completion.chunk", "created": 1_700_000_000,
                "model": request.model, "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
    };
    out.data(&chunk(json!({ "role": "assistant", "content": "" }), Value::Null))?;
    let mut calls = 0;
    for block in blocks {
        if out.pause(block)? {
            continue;
        }
        match block {
            Block::Think(text) => {
                for piece in pieces(text) {
                    out.data(&chunk(json!({ "reasoning_content": piece }), Value::Null))?;
                }
            }
            Block::Say(text) => {
                for piece in pieces(text) {
                    out.data(&chunk(json!({ "content": piece }), Value::Null))?;
                }
            }
            Block::Call(tool) => {
                let call = tool.named(&request.tools);
                let (id, name) = (id("call", request, calls), &call.name);
                let function = json!({ "name": name, "arguments": "" });
                let opening = json!({ "index": calls, "id": id, "type": "function", "function": function });
                out.data(&chunk(json!({ "tool_calls": [opening] }), Value::Null))?;
                for piece in pieces(&call.json().to_string()) {
                    let more = json!({ "index": calls, "function": { "arguments": piece } });
                    out.data(&chunk(json!({ "tool_calls": [more] }), Value::Null))?;
                }
                calls += 1;
            }
            Block::Pause(_) | Block::Hang => {}
        }
    }
    out.data(&chunk(json!({}), finish_reason(blocks).into()))?;
    let mut last = chunk(json!({}), Value::Null);
    last["choices"] = json!([]);
    last["usage"] = usage();
    out.data(&last)?;
    out.connection.data("[DONE]")
}

pub(super) fn whole(request: &ModelRequest, blocks: &[Block]) -> Value {
    let message = json!({ "role": "assistant", "content": text_of(blocks) });
    json!({ "id": id("chatcmpl", request, 0), "object": "chat.completion", "created": 1_700_000_000,
            "model": request.model, "usage": usage(),
            "choices": [{ "index": 0, "message": message, "finish_reason": finish_reason(blocks) }] })
}

fn finish_reason(blocks: &[Block]) -> &'static str {
    if calls_a_tool(blocks) {
        "tool_calls"
    } else {
        "stop"
    }
}

fn usage() -> Value {
    json!({ "prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS, "prompt_tokens_details": { "cached_tokens": 0 },
            "completion_tokens_details": { "reasoning_tokens": 0 } })
}

/// Both of OpenAI's APIs use these errors.
pub(super) fn error(status: u16, message: impl Fn(&str) -> String) -> Value {
    let (kind, code, default) = match status {
        400 => (
            "invalid_request_error",
            Some("context_length_exceeded"),
            "Your input exceeds the context window of this model.",
        ),
        401 => (
            "invalid_request_error",
            Some("invalid_api_key"),
            "Incorrect API key provided.",
        ),
        403 => (
            "invalid_request_error",
            None,
            "Your organization has been disabled.",
        ),
        429 => (
            "requests",
            Some("rate_limit_exceeded"),
            "Rate limit reached for requests",
        ),
        529 => ("server_error", None, "Overloaded"),
        _ => (
            "server_error",
            None,
            "The server had an error while processing your request.",
        ),
    };
    let message = message(default);
    // The code belongs to the default message; a program may prefer it to the message.
    let code = code.filter(|_| message == default);
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}
