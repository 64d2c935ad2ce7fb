//! The step `acp`: serves the Agent Client Protocol on stdin and stdout until stdin ends.
//!
//! Arguments are words: `load` and `resume` (capabilities), `login` (no session without a login), `permission` (asks before
//! its tool call), `hang` (the prompt ends only when it is canceled), `deaf` (does not exit at the end of stdin). The rest, after `--`,
//! is the answer, with escapes. Every message that arrives is a line of `N.received`.

use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::path::Path;

use serde_json::{Value, json};

pub(crate) fn serve(directory: &Path, number: &str, arguments: &str) -> io::Result<()> {
    let (words, answer) = arguments.split_once("-- ").unwrap_or((arguments, "Hello."));
    let answer = String::from_utf8(crate::steps::unescape(answer)?).map_err(io::Error::other)?;
    let mut server = Server {
        words: words.split_whitespace().collect(),
        answer,
        received: directory.join(format!("{number}.received")),
        prompt: None,
    };
    for line in io::stdin().lock().lines() {
        server.receive(&serde_json::from_str(&line?)?)?;
    }
    while server.has("deaf") {
        std::thread::park();
    }
    Ok(())
}

struct Server<'a> {
    words: Vec<&'a str>,
    answer: String,
    received: std::path::PathBuf,
    /// The id of the running prompt.
    prompt: Option<Value>,
}

impl Server<'_> {
    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn receive(&mut self, message: &Value) -> io::Result<()> {
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.received)?;
        writeln!(log, "{message}")?;
        let id = &message["id"];
        match message["method"].as_str() {
            Some("initialize") => {
                let resume = if self.has("resume") {
                    json!({ "resume": {} })
                } else {
                    json!({})
                };
                let capabilities = json!({ "loadSession": self.has("load"), "sessionCapabilities": resume });
                let agent = json!({ "name": "fake", "version": "9.9.9" });
                let result =
                    json!({ "protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": agent });
                send(&json!({ "id": id, "result": result }))
            }
            Some("session/new") if self.has("login") => {
                send(&json!({ "id": id, "error": { "code": -32000, "message": "Authentication required" } }))
            }
            Some("session/new") => send(&json!({ "id": id, "result": { "sessionId": "fake-1" } })),
            Some("session/load") => {
                text("Old answer.\nLOOP_COMPLETE")?;
                send(&json!({ "id": id, "result": {} }))?;
                text("Old answer.\nLOOP_COMPLETE")
            }
            Some("session/resume") => send(&json!({ "id": id, "result": {} })),
            Some("session/prompt") => {
                self.prompt = Some(id.clone());
                send(&json!({ "id": "drain", "method": "fake/drainQueue", "params": {} }))?;
                match self.has("hang") {
                    true => text("I begin."),
                    false if self.has("permission") => ask(),
                    false => self.finish(),
                }
            }
            Some("session/cancel") => self.end("cancelled"),
            None if *id == json!("ask") => {
                let granted = message["result"]["outcome"]["optionId"] == "yes-once";
                let status = if granted { "completed" } else { "failed" };
                update(
                    &json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": status,
                    "content": [{ "type": "content", "content": { "type": "text", "text": "hello" } }] }),
                )?;
                self.finish()
            }
            Some(_) | None => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        // Text may be split anywhere.
        let middle = (self.answer.len() / 2..)
            .find(|at| self.answer.is_char_boundary(*at))
            .unwrap_or(0);
        let (first, second) = self.answer.split_at(middle);
        text(first)?;
        text(second)?;
        self.end("end_turn")
    }

    fn end(&mut self, reason: &str) -> io::Result<()> {
        let usage = json!({ "inputTokens": 100, "outputTokens": 10, "totalTokens": 110 });
        match self.prompt.take() {
            Some(id) => send(&json!({ "id": id, "result": { "stopReason": reason, "usage": usage } })),
            None => Ok(()),
        }
    }
}

fn ask() -> io::Result<()> {
    let options = json!([{ "optionId": "yes-ever", "kind": "allow_always" },
                         { "optionId": "yes-once", "kind": "allow_once" }, { "optionId": "no", "kind": "reject_once" }]);
    let call = json!({ "toolCallId": "t1", "title": "echo hello", "kind": "execute", "status": "pending" });
    send(&json!({ "id": "ask", "method": "session/request_permission",
                  "params": { "sessionId": "fake-1", "options": options, "toolCall": call } }))
}

fn text(text: &str) -> io::Result<()> {
    update(&json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } }))
}

fn update(update: &Value) -> io::Result<()> {
    send(&json!({ "method": "session/update", "params": { "sessionId": "fake-1", "update": update } }))
}

fn send(message: &Value) -> io::Result<()> {
    let mut message = message.clone();
    message["jsonrpc"] = json!("2.0");
    writeln!(io::stdout(), "{message}")?;
    io::stdout().flush()
}
