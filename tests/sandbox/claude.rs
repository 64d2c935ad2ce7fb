//! Script steps with which the fake agent prints Claude's stream format.

use serde_json::{Value, json};

/// Returns a step that prints one JSON line. Backslashes are doubled because scripts have escapes of their own.
pub(crate) fn print_json(line: &Value) -> String {
    format!("say {}\n", line.to_string().replace('\\', "\\\\"))
}

pub(crate) fn init() -> String {
    print_json(&json!({ "type": "system", "subtype": "init", "session_id": "s-1", "model": "fake-1" }))
}

/// Returns a complete assistant message; messages with the same `id` are one.
pub(crate) fn message(id: &str, text: &str) -> String {
    block(id, &json!({ "type": "text", "text": text }))
}

pub(crate) fn tool(id: &str, tool: &str, command: &str) -> String {
    block(
        id,
        &json!({ "type": "tool_use", "id": tool, "name": "Bash", "input": { "command": command } }),
    )
}

pub(crate) fn tool_result(tool: &str, output: &str) -> String {
    let content =
        json!([{ "type": "tool_result", "tool_use_id": tool, "content": output, "is_error": false }]);
    print_json(&json!({ "type": "user", "message": { "role": "user", "content": content } }))
}

fn block(id: &str, content: &Value) -> String {
    print_json(&json!({
        "type": "assistant",
        "message": { "id": id, "role": "assistant", "model": "fake-1", "content": [content] },
        "parent_tool_use_id": null, "session_id": "s-1",
    }))
}

pub(crate) fn delta(text: &str) -> String {
    let event =
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } });
    print_json(
        &json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null, "session_id": "s-1" }),
    )
}

/// Returns the terminal event. `text` is the final message, which Claude repeats there.
pub(crate) fn result(text: &str) -> String {
    print_json(&json!({
        "type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "result": text,
        "session_id": "s-1", "duration_ms": 5, "total_cost_usd": 0.01,
        "usage": { "input_tokens": 100, "output_tokens": 10 },
    }))
}

/// Returns a complete session with one message.
pub(crate) fn session(text: &str) -> String {
    format!("{}{}{}", init(), message("m1", text), result(text))
}
