//! The four dialects: how an answer, an error and the small questions beside the work are written.

mod chat;
mod gemini;
mod messages;
mod responses;

use std::io;
use std::thread;

use serde_json::{Value, json};

use super::http::{Connection, Request};
use super::reply::{Block, Trouble};
use super::request::{Asked, Dialect};

/// What an answer is said to have used; the tests look for these figures.
pub(crate) const INPUT_TOKENS: u64 = 1200;
pub(crate) const OUTPUT_TOKENS: u64 = 85;

/// Characters in one piece of a streamed text.
const PIECE: usize = 24;
const LONG_PIECE: usize = 2000;
const LONG_TEXT: usize = 20_000;

pub(super) fn speak(
    asked: &Asked,
    blocks: &[Block],
    connection: &mut Connection,
    open: impl Fn() -> bool,
) -> io::Result<()> {
    if !asked.streaming {
        let whole = match asked.dialect {
            Dialect::Messages => messages::whole(asked, blocks),
            Dialect::Chat => chat::whole(asked, blocks),
            Dialect::Gemini => gemini::whole(asked, blocks),
            Dialect::Responses => responses::whole(asked, blocks),
        };
        return connection.json(200, &[], &whole);
    }
    connection.begin_events()?;
    let mut stream = Stream {
        connection,
        open: &open,
    };
    match asked.dialect {
        Dialect::Messages => messages::stream(asked, blocks, &mut stream),
        Dialect::Responses => responses::stream(asked, blocks, &mut stream),
        Dialect::Chat => chat::stream(asked, blocks, &mut stream),
        Dialect::Gemini => gemini::stream(asked, blocks, &mut stream),
    }?;
    stream.connection.end_events()
}

/// An answer on its way.
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

    /// Blocks that are no words: true if this was one.
    fn waits(&mut self, block: &Block) -> io::Result<bool> {
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

/// The text of an answer that is given in one piece.
fn text_of(blocks: &[Block]) -> String {
    let text = |block: &Block| match block {
        Block::Say(text) => text.clone(),
        Block::Think(_) | Block::Call(_) | Block::Pause(_) | Block::Hang => String::new(),
    };
    blocks.iter().map(text).collect()
}

/// Different for each answer, and within an answer for each part of it.
fn id(prefix: &str, asked: &Asked, part: usize) -> String {
    format!("{prefix}_{:04}_{part:02}", asked.number)
}

pub(super) fn refuse(asked: &Asked, trouble: &Trouble, connection: &mut Connection) -> io::Result<()> {
    let words = |usual: &str| trouble.message.clone().unwrap_or_else(|| usual.to_owned());
    let mut body = match asked.dialect {
        Dialect::Messages => messages::error(trouble.status, words),
        Dialect::Responses | Dialect::Chat => chat::error(trouble.status, words),
        Dialect::Gemini => gemini::error(trouble.status, words),
    };
    for (name, value) in &trouble.fields {
        body["error"][name] = value.clone();
    }
    connection.json(trouble.status, &trouble.headers, &body)
}

/// What programs ask beside the work: a title, a topic, which model is to answer.
pub(super) fn aside(body: &Value) -> String {
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
                            "created": 1_700_000_000, "created_at": "2024-01-01T00:00:00Z", "owned_by": "nobody" });
        return connection.json(
            200,
            &[],
            &json!({ "object": "list", "data": [model], "has_more": false }),
        );
    }
    let body = json!({ "type": "error", "error": { "type": "not_found_error", "message": "not found" } });
    connection.json(404, &[], &body)
}
