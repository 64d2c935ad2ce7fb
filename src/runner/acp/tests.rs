//! Tests of the client with the conversations of real agents.

use serde_json::{Value, json};

use super::client::{Answer, Client, Reaction};

fn client(session: Option<&str>) -> Client {
    Client::new("/w".into(), "Do it.".to_owned(), session.map(str::to_owned))
}

/// The messages that the client sends.
fn sent(reactions: &[Reaction]) -> Vec<Value> {
    let lines = reactions.iter().filter_map(|reaction| match reaction {
        Reaction::Send(message) => Some(&message.line),
        Reaction::PromptWhenQuiet | Reaction::CloseWhenQuiet | Reaction::Report(_) => None,
    });
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn line(client: &mut Client, message: &Value) -> Vec<Reaction> {
    client.on_line(message.to_string().as_bytes())
}

fn initialized(capabilities: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": 1, "agentCapabilities": capabilities } })
}

/// Replays the agent's side of a recorded conversation; returns the end and everything that the client sent.
fn replay(name: &str) -> (Option<Answer>, Vec<Value>) {
    let path = format!(
        "{}/tests/fixtures/acp/{name}.tool.stdout",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    let mut client = client(None);
    let mut messages = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("{\"sent\"")) {
        messages.extend(sent(&client.on_line(line.as_bytes())));
    }
    (client.answer(), messages)
}

#[test]
fn conversations_of_real_agents_come_to_their_end() {
    for name in [
        "gemini",
        "opencode",
        "copilot",
        "qwen",
        "kimi",
        "vibe",
        "claude-agent-acp",
        "codex-acp",
    ] {
        let (answer, messages) = replay(name);
        assert_eq!(answer, Some(Answer::Given), "{name}");
        let methods: Vec<&str> = messages
            .iter()
            .filter_map(|message| message["method"].as_str())
            .collect();
        assert_eq!(methods, ["session/new", "session/prompt"], "{name}");
        let prompt = messages
            .iter()
            .find(|message| message["method"] == "session/prompt")
            .unwrap();
        assert_eq!(prompt["params"]["prompt"][0]["text"], "Do it.", "{name}");
    }
}

#[test]
fn permissions_are_granted_by_kind() {
    for (name, option) in [
        ("gemini", "proceed_once"),
        ("copilot", "allow_once"),
        // It offers two options of this kind; the first one does not change its mode.
        ("qwen", "proceed_once"),
        ("kimi", "approve_once"),
        ("claude-agent-acp", "allow"),
    ] {
        let (_, messages) = replay(name);
        let outcomes: Vec<&Value> = messages
            .iter()
            .map(|message| &message["result"]["outcome"])
            .collect();
        let expected = json!({ "outcome": "selected", "optionId": option });
        assert!(outcomes.contains(&&expected), "{name}: {messages:?}");
    }
    let only_always = json!({ "jsonrpc": "2.0", "id": 6, "method": "session/request_permission",
        "params": { "options": [{ "optionId": "yes", "kind": "allow_always" }] } });
    assert_eq!(
        sent(&line(&mut client(None), &only_always))[0]["result"]["outcome"]["optionId"],
        "yes"
    );
    let only_reject = json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission",
        "params": { "options": [{ "optionId": "no", "kind": "reject_once" }] } });
    let answers = sent(&line(&mut client(None), &only_reject));
    assert_eq!(
        answers[0],
        json!({ "jsonrpc": "2.0", "id": 7, "result": { "outcome": { "outcome": "cancelled" } } })
    );
}

#[test]
fn unknown_requests_are_answered_and_notifications_are_not() {
    let mut client = client(None);
    let request = json!({ "jsonrpc": "2.0", "id": "x-1", "method": "vendor/drainQueue", "params": {} });
    let answers = sent(&line(&mut client, &request));
    assert_eq!(
        (&answers[0]["id"], &answers[0]["error"]["code"]),
        (&json!("x-1"), &json!(-32601))
    );
    assert_eq!(
        line(&mut client, &json!({ "jsonrpc": "2.0", "method": "vendor/news" })),
        []
    );
    assert_eq!(client.on_line(b"Debugger attached."), []);
    assert_eq!(client.on_line(b""), []);
}

#[test]
fn a_session_is_resumed_without_history_if_the_agent_can() {
    for (capabilities, method) in [
        (
            json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } }),
            "session/resume",
        ),
        (json!({ "loadSession": true }), "session/load"),
    ] {
        let mut client = client(Some("s1"));
        let opened = sent(&line(&mut client, &initialized(&capabilities)));
        assert_eq!(opened[0]["method"], method);
        assert_eq!(
            opened[0]["params"],
            json!({ "cwd": "/w", "mcpServers": [], "sessionId": "s1" })
        );
        let reactions = line(&mut client, &json!({ "jsonrpc": "2.0", "id": 2, "result": {} }));
        let prompt = match method {
            "session/resume" => sent(&reactions).remove(0),
            _ => {
                assert_eq!(reactions, [Reaction::PromptWhenQuiet]);
                serde_json::from_str(&client.prompt().unwrap().line).unwrap()
            }
        };
        assert_eq!(
            (&prompt["method"], &prompt["params"]["sessionId"]),
            (&json!("session/prompt"), &json!("s1"))
        );
    }
}

#[test]
fn a_session_that_cannot_be_resumed_ends_the_conversation() {
    let mut client = client(Some("s1"));
    let reactions = line(&mut client, &initialized(&json!({ "loadSession": false })));
    assert!(
        matches!(&reactions[..], [Reaction::Report(error), Reaction::CloseWhenQuiet] if error.contains("neither resume nor load"))
    );
    assert_eq!(client.answer(), Some(Answer::Refused));
}

#[test]
fn an_error_ends_the_conversation_at_every_stage() {
    let refused =
        |id: u64| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32000, "message": "no" } });
    for stage in 1..=3 {
        let mut client = client(None);
        if stage > 1 {
            line(&mut client, &initialized(&json!({})));
        }
        if stage > 2 {
            line(
                &mut client,
                &json!({ "jsonrpc": "2.0", "id": 2, "result": { "sessionId": "s" } }),
            );
        }
        assert_eq!(line(&mut client, &refused(stage)), [Reaction::CloseWhenQuiet]);
        assert_eq!(client.answer(), Some(Answer::Refused));
    }
    let mut client = client(None);
    let newer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": 2 } });
    assert_eq!(line(&mut client, &newer), [Reaction::CloseWhenQuiet]);
}

#[test]
fn only_a_running_prompt_is_canceled() {
    let mut client = client(None);
    assert_eq!(client.cancel(), None);
    line(&mut client, &initialized(&json!({})));
    line(
        &mut client,
        &json!({ "jsonrpc": "2.0", "id": 2, "result": { "sessionId": "s" } }),
    );
    let cancel: Value = serde_json::from_str(&client.cancel().unwrap().line).unwrap();
    assert_eq!(
        cancel,
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } })
    );
    line(
        &mut client,
        &json!({ "jsonrpc": "2.0", "id": 3, "result": { "stopReason": "cancelled" } }),
    );
    assert_eq!(client.cancel(), None);
}

#[test]
fn the_prompt_is_not_stored_with_the_output() {
    let mut client = client(None);
    line(&mut client, &initialized(&json!({})));
    let reactions = line(
        &mut client,
        &json!({ "jsonrpc": "2.0", "id": 2, "result": { "sessionId": "s" } }),
    );
    let [Reaction::Send(prompt)] = &reactions[..] else {
        panic!("{reactions:?}")
    };
    assert!(prompt.line.contains("Do it.") && !prompt.stored.contains("Do it."));
    let stored: Value = serde_json::from_str(&prompt.stored).unwrap();
    assert_eq!(stored["sent"]["method"], "session/prompt");
}
