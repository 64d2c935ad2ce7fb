//! Tests of costs: reported by the agent, computed from the price list, and limited by a budget.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, claude};

const PRICES: &str = "models:\n  \"fake-*\": { input: 1000, output: 5000 }\n";

/// Returns a step that reports tokens without a cost.
fn used(model: &str, prompt: u64, completion: u64) -> String {
    let usage = json!({ "prompt_tokens": prompt, "completion_tokens": completion, "model": model });
    event(&json!({ "type": "usage", "usage": usage }))
}

fn event(event: &Value) -> String {
    format!("say @@RALPH@@ {}\n", event.to_string().replace('\\', "\\\\"))
}

/// Returns a custom agent with the transcript format RTF1 and this configuration.
fn custom_agent(script: &str, config: &str) -> Sandbox {
    Sandbox::new()
        .with_agent("mine")
        .with_file("prices.yml", PRICES)
        .with_file(
            "ralph.yml",
            &format!("cli: {{ backend: custom, command: mine, transcript: rtf1 }}\n{config}"),
        )
        .with_script("default", script)
}

fn notices(sandbox: &Sandbox) -> Vec<String> {
    let text = |record: Value| record["text"].as_str().unwrap_or_default().to_owned();
    sandbox.records("notice").into_iter().map(text).collect()
}

#[test]
fn tokens_are_priced_by_the_users_list() {
    let script = used("fake-1", 1000, 200) + &used("fake-2", 500, 100) + "say LOOP_COMPLETE\n";
    let sandbox = custom_agent(&script, "pricing: prices.yml\n");
    let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let usage = &sandbox.records("run_ended")[0]["usage"];
    assert_eq!(
        (&usage["cost_usd"], &usage["cost_source"]),
        (&json!(3.0), &json!("priced"))
    );
    assert!(output.stdout.contains("$3.00 (priced)"), "{}", output.stdout);
    assert_eq!(notices(&sandbox), [""; 0]);
}

#[test]
fn a_reported_cost_overrides_the_price_list() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("prices.yml", PRICES)
        .with_file("ralph.yml", "pricing: prices.yml\n")
        .with_script("default", &claude::session("LOOP_COMPLETE"));
    let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let usage = &sandbox.records("run_ended")[0]["usage"];
    assert_eq!(
        (&usage["cost_usd"], &usage["cost_source"]),
        (&json!(0.01), &json!("reported"))
    );
    assert!(output.stdout.contains("$0.0100 (reported)"), "{}", output.stdout);
}

#[test]
fn a_budget_stops_the_agent_at_the_step_that_exceeds_it() {
    let step = used("fake-1", 1000, 0);
    let script = format!("{step}{step}{step}hang\n");
    let sandbox = custom_agent(
        &script,
        "pricing: prices.yml\nevent_loop: { max_cost_usd: 2.5 }\n",
    );
    let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(3);
    assert!(
        output.stdout.contains("$3.00 of $2.50 (priced)"),
        "{}",
        output.stdout
    );
}

#[test]
fn a_model_without_a_price_has_no_cost_and_is_named_once() {
    let script = used("other-1", 1000, 200) + &used("other-1", 10, 10);
    let config = "pricing: prices.yml\nevent_loop: { max_cost_usd: 2.5 }\n";
    let sandbox = custom_agent(&script, config);
    let output = sandbox.ralph(&["run", "-p", "x", "-n", "2"]).exits_with(3);
    assert_eq!(
        notices(&sandbox),
        ["not all costs are known: the price list has no model `other-1`"]
    );
    assert_eq!(sandbox.records("run_ended")[0]["usage"]["cost_usd"], Value::Null);
    assert!(
        output
            .stdout
            .contains("not reported; the budget of $2.50 was not enforced"),
        "{}",
        output.stdout
    );
    let summary = std::fs::read_to_string(sandbox.newest_run().join("summary.md")).expect("a summary");
    assert!(
        summary.contains("- cost: not reported; the budget of $2.50 was not enforced"),
        "{summary}"
    );
}

#[test]
fn a_budget_that_cannot_be_enforced_is_reported() {
    let sandbox = Sandbox::new()
        .with_agent("mine")
        .with_script("default", "say LOOP_COMPLETE\n");
    let output = sandbox
        .ralph(&["run", "-p", "x", "--agent-cmd", "mine", "--max-cost", "5"])
        .exits_with(0);
    insta::assert_snapshot!(notices(&sandbox).join("\n"), @"max_cost_usd ($5) cannot be enforced: mine reports neither costs nor tokens");
    let journal = sandbox.journal();
    assert_eq!(journal[1]["type"], "notice", "before anything starts");
    assert!(
        output
            .stdout
            .contains("not reported; the budget of $5.00 was not enforced"),
        "{}",
        output.stdout
    );

    let sandbox = Sandbox::new().with_agent("codex").with_script(
        "default",
        &claude::print_json(&json!({ "type": "thread.started", "thread_id": "t" })),
    );
    let _ = sandbox.ralph(&["run", "-p", "x", "--agent", "codex", "--max-cost", "5", "-n", "1"]);
    insta::assert_snapshot!(notices(&sandbox).join("\n"), @"max_cost_usd ($5) cannot be enforced: OpenAI Codex does not report costs, and no price list is configured (`pricing` in ralph.yml)");
    let dry = sandbox
        .ralph(&[
            "run",
            "-p",
            "x",
            "--agent",
            "codex",
            "--max-cost",
            "5",
            "--dry-run",
        ])
        .exits_with(0);
    assert!(
        dry.stdout.contains("cost $5 (cannot be enforced)"),
        "{}",
        dry.stdout
    );
}

#[test]
fn usage_without_a_model_is_priced_by_the_configured_model() {
    let turn = claude::print_json(&json!({ "type": "thread.started", "thread_id": "t" }))
        + &claude::print_json(
            &json!({ "type": "item.completed", "item": { "id": "i", "type": "agent_message", "text": "LOOP_COMPLETE" } }),
        )
        + &claude::print_json(
            &json!({ "type": "turn.completed", "usage": { "input_tokens": 1000, "cached_input_tokens": 0, "output_tokens": 100 } }),
        );
    let sandbox = Sandbox::new()
        .with_agent("codex")
        .with_file("prices.yml", PRICES)
        .with_file("ralph.yml", "pricing: prices.yml\n")
        .with_script("default", &turn);
    sandbox
        .ralph(&["run", "-p", "x", "--agent", "codex", "--model", "fake-9"])
        .exits_with(0);
    assert_eq!(sandbox.records("run_ended")[0]["usage"]["cost_usd"], json!(1.5));
    sandbox
        .ralph(&["run", "-p", "x", "--agent", "codex"])
        .exits_with(0);
    assert_eq!(
        notices(&sandbox),
        ["not all costs are known: the agent does not report its model; set `cli.model`"]
    );
}

#[test]
fn usage_of_several_models_is_priced_by_model() {
    let models = json!({
        "fake-1": { "total_tokens": 1000, "input_tokens": 1000, "output_tokens": 0, "cached": 0 },
        "fast-1": { "total_tokens": 1000, "input_tokens": 1000, "output_tokens": 0, "cached": 0 },
        "idle-1": { "total_tokens": 0, "input_tokens": 0, "output_tokens": 0, "cached": 0 },
    });
    let stats = json!({ "total_tokens": 2000, "input_tokens": 2000, "output_tokens": 0, "cached": 0, "models": models });
    let result = claude::print_json(&json!({ "type": "result", "status": "success", "stats": stats }));
    let session = claude::print_json(&json!({ "type": "init", "session_id": "s", "model": "auto" }))
        + &claude::print_json(
            &json!({ "type": "message", "role": "assistant", "content": "LOOP_COMPLETE", "delta": true }),
        );
    let sandbox = Sandbox::new()
        .with_agent("gemini")
        .with_file(
            "prices.yml",
            &format!("{PRICES}  fast-1: {{ input: 100, output: 500 }}\n"),
        )
        .with_file(
            "ralph.yml",
            "pricing: prices.yml\nevent_loop: { max_cost_usd: 1 }\n",
        )
        .with_script("default", &format!("{session}{result}"));
    sandbox
        .ralph(&["run", "-p", "x", "--agent", "gemini"])
        .exits_with(0);
    let usage = &sandbox.records("run_ended")[0]["usage"];
    assert_eq!(
        (&usage["cost_usd"], &usage["total_tokens"]),
        (&json!(1.1), &json!(2000))
    );
    assert_eq!(notices(&sandbox), [""; 0]);

    let sandbox = sandbox.with_script("default", &format!("{session}{result}{result}"));
    sandbox
        .ralph(&["run", "-p", "x", "--agent", "gemini"])
        .exits_with(0);
    let usage = &sandbox.records("run_ended")[0]["usage"];
    assert_eq!(
        usage["total_tokens"],
        json!(2000),
        "a second result is not counted again"
    );
}

#[test]
fn errors_in_the_price_list_are_reported_before_the_agent_starts() {
    let refused = |prices: Option<&str>| {
        let mut sandbox = Sandbox::new()
            .with_agent("claude")
            .with_file("ralph.yml", "pricing: prices.yml\n");
        if let Some(prices) = prices {
            sandbox = sandbox.with_file("prices.yml", prices);
        }
        let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(2);
        assert!(sandbox.pids().is_empty(), "nothing was started");
        sandbox.redact_paths(&output.stderr)
    };
    insta::assert_snapshot!(refused(None), @"
    error: configuration file [WORKSPACE]/prices.yml does not exist
    hint: check the path, or remove the option
    ");
    insta::assert_snapshot!(refused(Some("models:\n  opus: { input: 15, output: $75 }\n")), @"
    error: `models.opus.output`: expected a number, found `$75`
     --> [WORKSPACE]/prices.yml:2:30
      |
    2 |   opus: { input: 15, output: $75 }
      |                              ^^^
      |
      = help: write the number without a currency sign
    ");
}
