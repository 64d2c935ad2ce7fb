//! Runs with an agent that speaks the Agent Client Protocol.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// A sandbox whose agent is the fake agent, as a server of the protocol.
fn server(behavior: &str, config: &str) -> Sandbox {
    let config = format!("cli: {{backend: acp, command: server}}\nevent_loop: {{prompt: Do it.}}\n{config}");
    Sandbox::new()
        .with_agent("server")
        .with_script("default", &format!("acp {behavior}"))
        .with_file("ralph.yml", &config)
}

/// The messages that the agent received in its nth invocation.
fn received(sandbox: &Sandbox, invocation: usize) -> Vec<Value> {
    let text = sandbox.recorded(&format!("{invocation}.received"));
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a message"))
        .collect()
}

fn methods(messages: &[Value]) -> Vec<&str> {
    messages
        .iter()
        .filter_map(|message| message["method"].as_str())
        .collect()
}

#[test]
fn a_prompt_is_answered_and_its_usage_is_counted() {
    let sandbox = server("-- I did it.\\n\\nLOOP_COMPLETE", "");
    sandbox.ralph(&["run"]).exits_with(0);
    let messages = received(&sandbox, 1);
    assert_eq!(
        methods(&messages),
        ["initialize", "session/new", "session/prompt"]
    );
    let prompt = messages[2]["params"]["prompt"][0]["text"]
        .as_str()
        .expect("a prompt");
    assert!(prompt.contains("Do it."), "{prompt}");
    // The unknown request of the agent is answered.
    assert!(
        messages
            .iter()
            .any(|message| message["id"] == "drain" && message["error"]["code"] == -32601)
    );
    let ended = &sandbox.records("iteration_ended")[0];
    assert_eq!(
        (&ended["outcome"], &ended["usage"]["prompt_tokens"]),
        (&json!("completed"), &json!(100))
    );
}

#[test]
fn permissions_are_granted_and_the_conversation_is_stored() {
    let sandbox = server("permission -- Done.\\nLOOP_COMPLETE", "");
    sandbox.ralph(&["run"]).exits_with(0);
    let tool = sandbox
        .records("transcript")
        .into_iter()
        .find(|record| record["event"]["type"] == "tool_end");
    assert_eq!(tool.expect("a tool call")["event"]["tool"]["status"], "ok");
    let stored = String::from_utf8(sandbox.iteration_file("0001", "stdout.raw")).expect("UTF-8");
    let sent: Vec<Value> = stored
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("one message per line"))
        .filter(|message| !message["sent"].is_null())
        .collect();
    assert!(
        sent.iter()
            .any(|message| message["sent"]["result"]["outcome"]["optionId"] == "yes-once")
    );
    assert!(!stored.contains("Do it."), "the prompt is in its own file");
}

#[test]
fn a_session_is_loaded_and_its_history_is_not_an_answer() {
    for (capability, method) in [("load", "session/load"), ("resume", "session/resume")] {
        let sandbox = server(&format!("{capability} -- More to do."), "session: continue\n");
        sandbox.ralph(&["run", "-n", "2"]).exits_with(3);
        let second = received(&sandbox, 2);
        assert_eq!(methods(&second), ["initialize", method, "session/prompt"]);
        assert_eq!(second[1]["params"]["sessionId"], "fake-1");
        assert!(!sandbox.journal_text().contains("Old answer."), "{capability}");
    }
}

#[test]
fn an_agent_that_cannot_load_gets_a_new_session() {
    let sandbox = server("-- More to do.", "session: continue\n");
    let output = sandbox.ralph(&["run", "-n", "2"]).exits_with(3);
    assert!(
        output.text().contains("could not resume its session"),
        "{output:?}"
    );
    assert_eq!(
        methods(&received(&sandbox, 3)),
        ["initialize", "session/new", "session/prompt"]
    );
}

#[test]
fn a_missing_login_ends_the_run() {
    let sandbox = server("login", "");
    let output = sandbox.ralph(&["run"]).exits_with(1);
    assert!(output.text().contains("Authentication required"), "{output:?}");
    assert_eq!(sandbox.records("iteration_ended")[0]["outcome"], "auth_required");
}

#[test]
fn a_stop_cancels_the_prompt_first() {
    let sandbox = server("hang", "");
    let running = sandbox.start(&["run"]);
    sandbox.wait_for_file(&sandbox.path("agent").join("1.received"));
    sandbox.wait_for_event("the beginning of the answer", |event| {
        format!("{event:?}").contains("I begin.")
    });
    running.signal(Signal::INT);
    running.finish().exits_with(130);
    assert_eq!(methods(&received(&sandbox, 1)).last(), Some(&"session/cancel"));
    sandbox.wait_until_processes_exit(Duration::from_secs(5));
}

#[test]
fn an_agent_that_stays_after_its_answer_is_stopped_and_has_succeeded() {
    let sandbox = server("deaf -- Done.\\nLOOP_COMPLETE", "");
    sandbox.ralph(&["run"]).exits_with(0);
    let ended = &sandbox.records("agent_ended")[0];
    assert_eq!(ended["end"], json!({ "exited": { "code": 0 } }), "{ended}");
    sandbox.wait_until_processes_exit(Duration::from_secs(5));
}

#[test]
fn the_command_of_the_flag_is_split_and_a_missing_one_is_an_error() {
    let sandbox = Sandbox::new()
        .with_agent("server")
        .with_script("default", "acp -- Done.\\nLOOP_COMPLETE");
    sandbox
        .ralph(&["run", "--agent", "acp:server --acp 'two words'", "-p", "x"])
        .exits_with(0);
    assert_eq!(sandbox.recorded("1.argv"), "--acp\0two words\0");
    let shown = sandbox
        .ralph(&["run", "--dry-run", "--agent", "acp:server --acp", "-p", "x"])
        .exits_with(0);
    assert!(
        shown.stdout.contains("messages of the Agent Client Protocol"),
        "{shown:?}"
    );
    let missing = sandbox.ralph(&["run", "--agent", "acp", "-p", "x"]).exits_with(2);
    assert!(missing.stderr.contains("requires a command"), "{missing:?}");
    sandbox
        .ralph(&["run", "--agent", "acp:nothing-here", "-p", "x"])
        .exits_with(4);
}

#[test]
fn the_agent_test_converses_with_the_agent() {
    let sandbox = server("-- pelican4711", "");
    let output = sandbox
        .ralph(&["agents", "test", "acp:server", "--json"])
        .exits_with(0);
    assert_eq!(output.json()["verdict"], "works", "{output:?}");
}
