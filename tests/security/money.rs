//! Attacks on budgets and waits: no output of an agent increases a budget, lowers a cost or stops the loop for years.

use ralph::event::RunEvent;
use rustix::process::Signal;
use serde_json::json;

use crate::sandbox::{Sandbox, claude};

/// An agent that reports a total of $1 first, and then a total that would take it back.
fn agent_with_totals(second: &str) -> Sandbox {
    let result = |cost: &str| {
        let line = json!({
            "type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "result": "hm",
            "session_id": "s-1", "duration_ms": 5, "total_cost_usd": "COST",
            "usage": { "input_tokens": 100, "output_tokens": 10 },
        });
        format!("say {}\n", line.to_string().replace("\"COST\"", cost))
    };
    let script = [
        claude::init(),
        claude::message("m1", "hm"),
        result("1.0"),
        result(second),
    ]
    .concat();
    let config = "event_loop: {prompt: x, max_iterations: 9, max_cost_usd: 1.5, max_no_progress: 0}\n";
    Sandbox::scripted(&script, config)
}

#[test]
fn a_negative_infinite_or_decreasing_total_does_not_extend_the_budget() {
    for format in ["claude", "amp", "cursor"] {
        for second in ["-1000.0", "0.01", "1e999"] {
            let sandbox = agent_with_totals(second);
            let output = sandbox
                .ralph(&["run", "-q", "--transcript", format])
                .exits_with(3);
            let ended = &sandbox.records("run_ended")[0];
            assert_eq!(ended["limit"]["limit"], "cost", "{format} {second}: {output:?}");
            assert_eq!(ended["iterations"], 2, "{format} {second}: {ended}");
            assert_eq!(ended["usage"]["cost_usd"], 2.0, "{format} {second}: {ended}");
        }
    }
}

fn limited_agent(config: &str) -> Sandbox {
    let script = claude::init()
        + &claude::print_json(&json!({
            "type": "rate_limit_event", "session_id": "s-1",
            "rate_limit_info": { "status": "rejected", "resetsAt": 4_070_908_800_u64 },
        }))
        + "exit 1\n";
    Sandbox::scripted(&script, &format!("event_loop: {{prompt: x, {config}}}\n"))
}

#[test]
fn a_reset_in_the_year_2099_does_not_stop_the_loop_for_decades() {
    let sandbox = limited_agent("max_wait_seconds: 1");
    let run = sandbox.start(&["run", "--color", "never", "--transcript", "claude"]);
    sandbox.wait_for_event("a second attempt", |event| {
        matches!(event, RunEvent::IterationStarted { attempt: 2, .. })
    });
    run.signal(Signal::INT);
    let output = run.finish();
    assert!(output.stdout.contains("2099-01-01"), "{output:?}");
    assert_eq!(sandbox.records("waiting")[0]["wait_ms"], 1000);
}
