//! Tests of the `acp` format with the conversations of real agents.

use crate::event::{ErrorClass, Flow, Meta, Tag, ToolStatus, TranscriptEvent, Usage, UsageMeaning};
use crate::transcript::{AdapterContext, find, read_all};

macro_rules! captures {
    ($($name:literal),+) => {
        &[$(($name, include_str!(concat!("../../../tests/fixtures/acp/", $name, ".tool.stdout")))),+]
    };
}

const CAPTURES: &[(&str, &str)] = captures![
    "claude-agent-acp",
    "cline",
    "codex-acp",
    "copilot",
    "gemini",
    "kimi",
    "opencode",
    "qwen",
    "vibe"
];

fn capture(name: &str) -> &'static str {
    let found = CAPTURES.iter().find(|(capture, _)| *capture == name);
    found.unwrap().1
}

fn read(text: &str, usage: UsageMeaning) -> Vec<TranscriptEvent> {
    let mut adapter = (find("acp").unwrap().open)(&AdapterContext { prompt: "", usage });
    let mut out = Vec::new();
    text.lines().for_each(|line| adapter.feed(line, &mut out));
    adapter.flush(&mut out);
    out
}

/// The agent's messages, in which deltas are joined.
fn messages(events: &[TranscriptEvent]) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for event in events {
        let TranscriptEvent::Text {
            tag: Tag::Ai,
            text,
            flow,
            ..
        } = event
        else {
            continue;
        };
        match (flow, messages.last_mut()) {
            (Flow::Delta, Some(last)) => last.push_str(text),
            _ => messages.push(text.clone()),
        }
    }
    messages
}

/// Name, input and status of each call.
fn calls(events: &[TranscriptEvent]) -> Vec<(String, String, Option<ToolStatus>)> {
    let starts = events.iter().filter_map(|event| match event {
        TranscriptEvent::ToolStart { tool } => Some(tool),
        _ => None,
    });
    let status = |id: &str| {
        events.iter().find_map(|event| match event {
            TranscriptEvent::ToolEnd { tool } if tool.id == id => Some(tool.status),
            _ => None,
        })
    };
    starts
        .map(|tool| {
            let input = tool.input.as_ref().map_or("", |input| input.as_str());
            (tool.name.clone(), input.to_owned(), status(&tool.id))
        })
        .collect()
}

fn success(events: &[TranscriptEvent]) -> Option<bool> {
    events.iter().find_map(|event| match event {
        TranscriptEvent::Meta {
            meta: Meta::Finished { success, .. },
        } => Some(*success),
        _ => None,
    })
}

#[test]
fn conversations_of_seven_agents_have_two_messages_and_one_call() {
    for name in [
        "gemini",
        "opencode",
        "copilot",
        "qwen",
        "kimi",
        "claude-agent-acp",
    ] {
        let events = read(capture(name), UsageMeaning::None);
        assert_eq!(
            messages(&events),
            ["I will create the file.", "Created hello.txt.\nLOOP_COMPLETE"],
            "{name}"
        );
        let calls = calls(&events);
        let [(tool, input, status)] = &calls[..] else {
            panic!("{name}: {calls:?}")
        };
        assert_eq!(
            (tool.as_str(), *status),
            ("execute", Some(ToolStatus::Ok)),
            "{name}"
        );
        assert!(input.contains("echo hello > hello.txt"), "{name}: {input}");
        assert_eq!(success(&events), Some(true), "{name}");
    }
}

#[test]
fn session_model_and_version_are_reported() {
    let events = read(capture("copilot"), UsageMeaning::Prompt);
    let session = events.iter().find_map(|event| match event {
        TranscriptEvent::Meta {
            meta: Meta::Session {
                session_id, version, ..
            },
        } => Some((session_id, version)),
        _ => None,
    });
    let (id, version) = session.unwrap();
    assert_eq!(id, "8fbb7620-c4b6-44a0-9b1e-42bc6fa8191b");
    assert_eq!(version.as_deref(), Some("1.0.102"));
}

fn total(name: &str, meaning: UsageMeaning) -> Usage {
    let mut total = Usage::default();
    for event in read(capture(name), meaning) {
        if let TranscriptEvent::Usage { usage } = event {
            total.accumulate(&usage);
        }
    }
    total
}

#[test]
fn usage_is_what_the_model_sent_with_every_meaning() {
    for (name, meaning, cost) in [
        ("gemini", UsageMeaning::Prompt, None),
        ("copilot", UsageMeaning::Prompt, None),
        ("vibe", UsageMeaning::Prompt, Some(0.003_256)),
        ("qwen", UsageMeaning::Requests, None),
    ] {
        let usage = total(name, meaning);
        assert_eq!(
            (usage.prompt_tokens, usage.completion_tokens),
            (Some(2401), Some(171)),
            "{name}"
        );
        assert_eq!(usage.cost_usd.map(crate::event::Usd::get), cost, "{name}");
    }
    // Its input excludes the cache.
    let usage = total("claude-agent-acp", UsageMeaning::Prompt);
    assert_eq!(
        (usage.prompt_tokens, usage.completion_tokens),
        (Some(3001), Some(171))
    );
    assert_eq!(usage.cost_usd.map(crate::event::Usd::get), Some(0.019_704));
    for (name, meaning) in [
        ("opencode", UsageMeaning::LastRequest),
        ("kimi", UsageMeaning::None),
        ("codex-acp", UsageMeaning::None),
    ] {
        assert!(total(name, meaning).is_empty(), "{name}");
    }
}

#[test]
fn a_missing_login_is_an_auth_error() {
    let events = read(capture("cline"), UsageMeaning::None);
    let [
        TranscriptEvent::Meta {
            meta: Meta::Error { class, message, .. },
        },
        _,
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(*class, ErrorClass::Auth);
    assert!(message.starts_with("Authentication required"), "{message}");
    assert_eq!(success(&events), Some(false));
}

#[test]
fn history_of_a_loaded_session_is_not_output() {
    let chunk = |text: &str| {
        format!(
            r#"{{"method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        )
    };
    let lines = [
        r#"{"sent":{"id":2,"method":"session/load","params":{"sessionId":"s"}}}"#.to_owned(),
        chunk("LOOP_COMPLETE"),
        r#"{"id":2,"result":{}}"#.to_owned(),
        // Some agents send the rest of the history after their answer.
        chunk("LOOP_COMPLETE"),
        r#"{"sent":{"id":3,"method":"session/prompt","params":{"sessionId":"s"}}}"#.to_owned(),
        chunk("New."),
    ];
    let events = read_all("acp", "", &lines.join("\n"));
    assert_eq!(messages(&events), ["New."]);
    assert!(matches!(
        &events[0],
        TranscriptEvent::Meta { meta: Meta::Session { session_id, .. } } if session_id == "s"
    ));
}

#[test]
fn an_error_in_place_of_an_answer_is_a_failure() {
    let chunk = |text: &str| {
        format!(
            r#"{{"method":"session/update","params":{{"update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        )
    };
    let end = r#"{"id":3,"result":{"stopReason":"end_turn"}}"#;
    let refused =
        "Error: Authentication failed with provider at http://127.0.0.1/v1 (HTTP 401).\\n  Check your key.";
    let events = read_all(
        "acp",
        "",
        &[chunk("Info: Retrying..."), chunk(refused), end.to_owned()].join("\n"),
    );
    assert_eq!(success(&events), Some(false));
    assert!(events.iter().any(|event| matches!(
        event,
        TranscriptEvent::Meta {
            meta: Meta::Error {
                class: ErrorClass::Auth,
                status: Some(401),
                ..
            }
        }
    )));
    for answer in [
        "The server said Error: no (HTTP 401).",
        "Error: handled. LOOP_COMPLETE",
    ] {
        let events = read_all("acp", "", &[chunk(answer), end.to_owned()].join("\n"));
        assert_eq!(success(&events), Some(true), "{answer}");
    }
}

#[test]
fn stop_reasons_decide() {
    let end = |reason: &str| {
        let text = r#"{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hi."}}}}"#;
        success(&read_all(
            "acp",
            "",
            &format!("{text}\n{{\"id\":3,\"result\":{{\"stopReason\":\"{reason}\"}}}}"),
        ))
    };
    assert_eq!(end("end_turn"), Some(true));
    for reason in [
        "max_tokens",
        "max_turn_requests",
        "refusal",
        "cancelled",
        "new_reason",
    ] {
        assert_eq!(end(reason), Some(false), "{reason}");
    }
    let silent = read_all("acp", "", r#"{"id":3,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(success(&silent), Some(false));
}

#[test]
fn failed_command_and_edited_file_are_reported() {
    let lines = r#"{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"a","title":"Edit","kind":"edit","status":"in_progress","rawInput":{"path":"x"}}}}
{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","content":[{"type":"diff","path":"/w/x","oldText":"a","newText":"b"}]}}}
{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","toolCallId":"b","kind":"execute","status":"completed","rawOutput":{"output":"no","exitCode":3}}}}"#;
    let events = read_all("acp", "", lines);
    let statuses: Vec<_> = calls(&events)
        .into_iter()
        .map(|(name, _, status)| (name, status))
        .collect();
    assert_eq!(
        statuses,
        [
            ("edit".to_owned(), Some(ToolStatus::Ok)),
            ("execute".to_owned(), Some(ToolStatus::Fail))
        ]
    );
    assert!(events.iter().any(
        |event| matches!(event, TranscriptEvent::Meta { meta: Meta::FileChange { path, .. } } if path == "/w/x")
    ));
}
