//! Budgets stop the agent in the middle of an iteration.

use serde_json::json;

use super::in_a_repository;
use crate::sandbox::Sandbox;

/// Returns a message and its usage.
fn message(number: u32) -> String {
    let usage = json!({ "type": "usage", "usage": { "total_tokens": 100, "cost_usd": 0.01 } });
    format!("say message {number}.\nsay @@RALPH@@ {usage}\n")
}

/// Returns an agent that never exits after its last message, so that only a budget can end its iteration.
fn agent_with_messages(count: u32) -> Sandbox {
    let script: String = (1..=count).map(message).collect();
    Sandbox::scripted(&(script + "hang"), "")
}

#[test]
fn a_cost_budget_stops_the_agent_at_the_message_that_reaches_it() {
    let sandbox = agent_with_messages(5);
    let output = in_a_repository(&sandbox, &["run", "-p", "x", "--max-cost", "0.05"]).exits_with(3);
    let ended = &sandbox.records("run_ended")[0];
    assert_eq!(ended["limit"]["limit"], "cost", "{ended}");
    assert_eq!(sandbox.records("iteration_started").len(), 1);
    let raw = String::from_utf8(sandbox.iteration_file("0001", "stdout.raw")).expect("text");
    assert!(
        raw.contains("message 5."),
        "stopped before the budget was reached: {raw}"
    );
    let cost = ended["usage"]["cost_usd"].as_f64().expect("a cost");
    assert!((cost - 0.05).abs() < 1e-9, "{cost}");
    assert!(output.stdout.contains("max_cost_usd"), "{output:?}");
    sandbox.wait_until_processes_exit(std::time::Duration::from_secs(10));
}

#[test]
fn the_cost_before_a_resume_counts_against_the_budget() {
    let script = message(1) + &message(2) + "say working\n";
    let sandbox = Sandbox::scripted(&script, "");
    let call = ["run", "-p", "x", "--max-cost", "0.05", "-n", "2"];
    sandbox.ralph(&call).exits_with(3);
    let resumed = sandbox.ralph(&["run", "--continue", "-n", "9"]).exits_with(3);
    let (_, iterations, usage) = sandbox.run_end();
    assert_eq!(
        iterations, 3,
        "two before, and one that crosses the budget: {resumed:?}"
    );
    let cost = usage.cost_usd.expect("a cost").get();
    assert!((cost - 0.05).abs() < 0.011, "{cost}");
    assert!(resumed.stdout.contains("$0.0"), "{resumed:?}");
}

#[test]
fn a_token_budget_stops_the_agent_in_the_middle_of_an_iteration() {
    let sandbox = agent_with_messages(3);
    in_a_repository(&sandbox, &["run", "-p", "x", "--max-tokens", "300"]).exits_with(3);
    assert_eq!(sandbox.records("run_ended")[0]["limit"]["limit"], "tokens");
    assert_eq!(sandbox.records("iteration_started").len(), 1);
}
