//! Writes replies, errors and side replies in the four APIs.

mod chat;
mod gemini;
mod messages;
mod responses;

use std::io;
use std::thread;

use serde_json::{Value, json};

use super::http::{Connection, Request};
use super::reply::{Block, ErrorReply};
use super::request::{Api, ModelRequest};

/// Usage that each reply reports; tests look for these figures.
pub(crate) const INPUT_TOKENS: u64 = 1200;
pub(crate) const OUTPUT_TOKENS: u64 = 85;

/// Characters in one piece of a streamed text.
const PIECE: usize = 24;
const LONG_PIECE: usize = 2000;
const LONG_TEXT: usize = 20_000;

pub(super) fn write_reply(
    request: &ModelRequest,
    blocks: &[Block],
    connection: &mut Connection,
    open: impl Fn() -> bool,
) -> io::Result<()> {
    if !request.streaming {
        let whole = match request.api_kind {
            Api::Messages => messages::whole(request, blocks),
            Api::Chat => chat::whole(request, blocks),
            Api::Gemini => gemini::whole(request, blocks),
            Api::Responses => responses::whole(request, blocks),
        };
        return connection.json(200, &[], &whole);
    }
    connection.begin_events()?;
    let mut stream = Stream {
        connection,
        open: &open,
    };
    match request.api_kind {
        Api::Messages => messages::stream(request, blocks, &mut stream),
        Api::Responses => responses::stream(request, blocks, &mut stream),
        Api::Chat => chat::stream(request, blocks, &mut stream),
        Api::Gemini => gemini::stream(request, blocks, &mut stream),
    }?;
    stream.connection.end_events()
}

/// A streamed reply.
struct Stream<'a> {
    connection: &'a mut Connection,
    open: &'a dyn Fn() -> bool,
}

impl Stream<'_> {
    fn event(&mut self, name: &str, data: &Value) -> io::Result<()> {
        self.connection.event(name, data)
    }

    fn data(&mut self, data: &Value) -> io::Result<()> {
        self.connection.data(&data.to_string())
    }

    /// Executes a pause or a hang; returns whether the block was one.
    fn pause(&mut self, block: &Block) -> io::Result<bool> {
        match block {
            Block::Pause(time) => {
                thread::sleep(*time);
                Ok(true)
            }
            Block::Hang => self.connection.hang(self.open).map(|()| true),
            Block::Think(_) | Block::Say(_) | Block::Call(_) => Ok(false),
        }
    }
}

fn pieces(text: &str) -> Vec<String> {
    let size = if text.len() > LONG_TEXT { LONG_PIECE } else { PIECE };
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(size)
        .map(|piece| piece.iter().collect())
        .collect()
}

fn calls_a_tool(blocks: &[Block]) -> bool {
    blocks.iter().any(|block| matches!(block, Block::Call(_)))
}

/// Returns the text of a reply that is not streamed.
fn text_of(blocks: &[Block]) -> String {
    let text = |block: &Block| match block {
        Block::Say(text) => text.clone(),
        Block::Think(_) | Block::Call(_) | Block::Pause(_) | Block::Hang => String::new(),
    };
    blocks.iter().map(text).collect()
}

/// Returns an id that is unique for each reply and each part of it.
fn id(prefix: &str, request: &ModelRequest, part: usize) -> String {
    format!("{prefix}_{:04}_{part:02}", request.number)
}

pub(super) fn write_error(
    request: &ModelRequest,
    error: &ErrorReply,
    connection: &mut Connection,
) -> io::Result<()> {
    let message = |default: &str| error.message.clone().unwrap_or_else(|| default.to_owned());
    let mut body = match request.api_kind {
        Api::Messages => messages::error(error.status, message),
        Api::Responses | Api::Chat => chat::error(error.status, message),
        Api::Gemini => gemini::error(error.status, message),
    };
    for (name, value) in &error.fields {
        body["error"][name] = value.clone();
    }
    connection.json(error.status, &error.headers, &body)
}

/// Answers side requests: a title, a topic, the choice of a model.
pub(super) fn side_reply(body: &Value) -> String {
    let text = body.to_string();
    if text.contains("model_choice") || text.contains("complexity_score") {
        return json!({ "complexity_reasoning": "simple", "complexity_score": 10, "reasoning": "simple",
                       "model_choice": "flash" })
        .to_string();
    }
    if text.contains("next_speaker") {
        return json!({ "reasoning": "done", "next_speaker": "user" }).to_string();
    }
    if text.contains("isNewTopic") {
        return json!({ "isNewTopic": true, "title": "A session" }).to_string();
    }
    json!({ "title": "A session" }).to_string()
}

pub(super) fn answer_other(request: &Request, connection: &mut Connection) -> io::Result<()> {
    let tokens = request.body_bytes() / 4;
    let path = &request.path;
    if path.ends_with("/messages/count_tokens") {
        return connection.json(200, &[], &json!({ "input_tokens": tokens }));
    }
    if path.ends_with(":countTokens") {
        return connection.json(200, &[], &json!({ "totalTokens": tokens }));
    }
    if path.ends_with("/models") {
        let model = json!({ "id": "loopback", "object": "model", "type": "model", "display_name": "Loopback",
                            "created": 1_700_000_000, "created_at": "2024-01-01T00:00:00Z", "owned_by": "tests" });
        return connection.json(
            200,
            &[],
            &json!({ "object": "list", "data": [model], "has_more": false }),
        );
    }
    let body = json!({ "type": "error", "error": { "type": "not_found_error", "message": "not found" } });
    connection.json(404, &[], &body)
}
