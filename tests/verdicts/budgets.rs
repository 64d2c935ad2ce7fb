//! Budgets hold while the agent is still talking.

use serde_json::json;

use super::in_a_repository;
use crate::sandbox::Sandbox;

/// One message, and what it cost.
fn message(number: u32) -> String {
    let usage = json!({ "type": "usage", "usage": { "total_tokens": 100, "cost_usd": 0.01 } });
    format!("say message {number}.\nsay @@RALPH@@ {usage}\n")
}

fn talkative() -> Sandbox {
    let script: String = (1..=20).map(|number| message(number) + "sleep 50\n").collect();
    Sandbox::scripted(&(script + "hang"), "")
}

fn said(sandbox: &Sandbox) -> usize {
    let texts = sandbox.records("transcript").into_iter();
    let texts = texts.filter(|record| record["event"]["type"] == "text");
    texts.count()
}

#[test]
fn five_cents_are_spent_by_the_fifth_message_of_one_cent() {
    let sandbox = talkative();
    let told = in_a_repository(&sandbox, &["run", "-p", "x", "--max-cost", "0.05"]).exits_with(3);
    let ended = &sandbox.records("run_ended")[0];
    assert_eq!(ended["limit"]["limit"], "cost", "{ended}");
    assert_eq!(sandbox.records("iteration_started").len(), 1);
    let raw = String::from_utf8(sandbox.iteration_file("0001", "stdout.raw")).expect("text");
    assert!(
        raw.contains("message 5.") && !raw.contains("message 8."),
        "stopped in mid-stream: {raw}"
    );
    let cost = ended["usage"]["cost_usd"].as_f64().expect("a cost");
    assert!((0.0499..0.075).contains(&cost), "{cost}");
    assert!(told.stdout.contains("max_cost_usd"), "{told:?}");
    assert!(said(&sandbox) < 10);
    sandbox.wait_until_all_are_gone(std::time::Duration::from_secs(10));
}

#[test]
fn what_was_spent_is_still_spent_after_resuming() {
    let script = message(1) + &message(2) + "say working\n";
    let sandbox = Sandbox::scripted(&script, "");
    let call = ["run", "-p", "x", "--max-cost", "0.05", "-n", "2"];
    sandbox.ralph(&call).exits_with(3);
    let resumed = sandbox.ralph(&["run", "--continue", "-n", "9"]).exits_with(3);
    let (_, iterations, usage) = sandbox.end();
    assert_eq!(
        iterations, 3,
        "two before, and one that crosses the budget: {resumed:?}"
    );
    let cost = usage.cost_usd.expect("a cost");
    assert!((cost - 0.05).abs() < 0.011, "{cost}");
    assert!(resumed.stdout.contains("$0.0"), "{resumed:?}");
}

#[test]
fn a_budget_of_tokens_holds_in_mid_stream_too() {
    let sandbox = talkative();
    in_a_repository(&sandbox, &["run", "-p", "x", "--max-tokens", "300"]).exits_with(3);
    assert_eq!(sandbox.records("run_ended")[0]["limit"]["limit"], "tokens");
    assert_eq!(sandbox.records("iteration_started").len(), 1);
    assert!(said(&sandbox) < 8);
}
