//! Tests of `cli.fallback`.

use super::write_config;
use crate::sandbox::Sandbox;

const CONFIG: &str =
    "cli: {backend: claude, fallback: [codex], fallback_after: 1s}\nevent_loop: {prompt: Build it.}\n";
const CODEX_IS_DONE: &str = r#"say {"type":"thread.started","thread_id":"t-1"}
say {"type":"item.completed","item":{"id":"i","type":"agent_message","text":"LOOP_COMPLETE"}}
say {"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":5}}
"#;

/// Claude reports a usage limit that resets in an hour.
fn limited() -> String {
    let resets = jiff::Timestamp::now().as_second() + 3600;
    format!(
        "say {{\"type\":\"rate_limit_event\",\"rate_limit_info\":{{\"status\":\"rejected\",\"resetsAt\":{resets},\"rateLimitType\":\"five_hour\"}}}}\n\
         say {{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"result\":\"limit reached\",\"total_cost_usd\":0.5}}\nexit 1\n"
    )
}

#[test]
fn a_late_reset_continues_with_the_fallback_and_is_journaled() {
    let sandbox = Sandbox::new().with_agent("claude").with_agent("codex");
    write_config(&sandbox, CONFIG);
    sandbox.script("1", &limited());
    sandbox.script("2", CODEX_IS_DONE);
    let output = sandbox.ralph(&["run"]).exits_with(0);
    let change = sandbox
        .journal()
        .into_iter()
        .find(|record| record["type"] == "agent_changed")
        .expect("the change is journaled");
    assert_eq!(
        (&change["from"], &change["to"], &change["why"]),
        (&"claude".into(), &"codex".into(), &"limit".into())
    );
    assert!(change["until"].is_string(), "{change}");
    assert!(
        output
            .stdout
            .contains("claude has reached its usage limit; continuing with codex until"),
        "{output:?}"
    );
    assert!(sandbox.recorded("2.argv").starts_with("exec"), "codex was called");
    assert!(output.stdout.contains("$0.50"), "the cost of both: {output:?}");
}

#[test]
fn a_missing_agent_starts_with_the_fallback_and_a_warning() {
    let sandbox = Sandbox::new().with_agent("codex");
    write_config(&sandbox, CONFIG);
    sandbox.script("1", CODEX_IS_DONE);
    let output = sandbox.ralph(&["run"]).exits_with(0);
    assert!(
        output
            .stderr
            .contains("it is replaced by an agent of cli.fallback"),
        "{output:?}"
    );
}

#[test]
fn a_program_that_disappears_is_replaced() {
    let sandbox = Sandbox::new().with_agent("claude").with_agent("codex");
    write_config(&sandbox, CONFIG);
    let claude = sandbox.path("bin").join("claude");
    sandbox.script(
        "1",
        &format!(
            "run /bin/rm {}\nsay {{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"more\"}}\n",
            claude.display()
        ),
    );
    sandbox.script("2", CODEX_IS_DONE);
    let output = sandbox.ralph(&["run"]).exits_with(0);
    assert!(
        output.stdout.contains("the program of claude is missing"),
        "{output:?}"
    );
}
