//! Google's generateContent API.

use std::io;

use serde_json::{Value, json};

use super::{Block, INPUT_TOKENS, ModelRequest, OUTPUT_TOKENS, Stream, id, pieces, text_of};

pub(super) fn stream(request: &ModelRequest, blocks: &[Block], out: &mut Stream<'_>) -> io::Result<()> {
    for (index, block) in blocks.iter().enumerate() {
        if out.pause(block)? {
            continue;
        }
        match block {
            Block::Think(text) => out.data(&candidate(
                request,
                json!({ "text": text, "thought": true }),
                Value::Null,
            ))?,
            Block::Say(text) => {
                for piece in pieces(text) {
                    out.data(&candidate(request, json!({ "text": piece }), Value::Null))?;
                }
            }
            Block::Call(tool) => {
                let call = tool.named(&request.tools);
                let function =
                    json!({ "name": call.name, "args": call.json(), "id": id("fc", request, index) });
                let part = json!({ "functionCall": function, "thoughtSignature": "c2lnbmVk" });
                out.data(&candidate(request, part, Value::Null))?;
            }
            Block::Pause(_) | Block::Hang => {}
        }
    }
    out.data(&candidate(request, json!({ "text": "" }), "STOP".into()))
}

pub(super) fn whole(request: &ModelRequest, blocks: &[Block]) -> Value {
    candidate(request, json!({ "text": text_of(blocks) }), "STOP".into())
}

fn candidate(request: &ModelRequest, part: Value, finish: Value) -> Value {
    let mut candidate = json!({ "content": { "parts": [part], "role": "model" }, "index": 0 });
    if finish.is_string() {
        candidate["finishReason"] = finish;
    }
    let usage = json!({ "promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS,
                        "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS });
    json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": request.model,
            "responseId": id("answer", request, 0) })
}

pub(super) fn error(status: u16, message: impl Fn(&str) -> String) -> Value {
    let (name, default) = match status {
        400 => (
            "INVALID_ARGUMENT",
            "The input token count exceeds the maximum number of tokens allowed.",
        ),
        401 => (
            "UNAUTHENTICATED",
            "Request had invalid authentication credentials.",
        ),
        403 => ("PERMISSION_DENIED", "The caller does not have permission."),
        429 => ("RESOURCE_EXHAUSTED", "You exceeded your current quota."),
        529 => ("UNAVAILABLE", "The model is overloaded. Please try again later."),
        _ => ("INTERNAL", "An internal error has occurred."),
    };
    json!({ "error": { "code": status, "message": message(default), "status": name } })
}
