//! Budgets over all runs of a user.

use std::fs;

use serde_json::json;

use crate::process::helpers::wait_until;
use crate::sandbox::{DEADLINE, Sandbox};

/// A message and its cost.
fn message(cost_usd: f64) -> String {
    let usage = json!({ "type": "usage", "usage": { "total_tokens": 100, "cost_usd": cost_usd } });
    format!("say working\nsay @@RALPH@@ {usage}\n")
}

fn budgeted(script: &str, budgets: &str) -> Sandbox {
    let sandbox = Sandbox::scripted(script, "");
    let directory = sandbox.path("home").join(".config/ralph");
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("ralph.yml"), format!("budgets: {budgets}\n")).expect("a user file");
    sandbox
}

#[test]
fn the_budget_of_the_day_covers_all_runs_and_is_held_in_mid_stream() {
    let sandbox = budgeted(&(message(0.4) + "say LOOP_COMPLETE\n"), "{per_day_usd: 1.0}");
    for _ in 0..2 {
        sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    }
    // The agent does not exit by itself.
    sandbox.script("default", &(message(0.15) + &message(0.15) + "hang\n"));
    let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(3);
    assert!(
        output
            .stdout
            .contains("Stopped at the budget of $1.00 per day for all runs."),
        "{output:?}"
    );
    assert_eq!(sandbox.records("run_ended")[0]["limit"]["limit"], "day_cost");
    let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(3);
    assert!(output.stdout.contains("budgets.per_day_usd"), "{output:?}");
    assert!(
        sandbox.records("iteration_started").is_empty(),
        "nothing is started"
    );
    let listed = sandbox.ralph(&["quota"]).exits_with(0);
    assert!(
        listed.stdout.contains("custom") && listed.stdout.contains("$1.10"),
        "{listed:?}"
    );
}

#[test]
fn two_runs_at_the_same_time_share_the_budget() {
    let sandbox = budgeted(
        &(message(0.6) + "wait-for go\n" + &message(0.01) + "hang\n"),
        "{per_day_usd: 1.0}",
    );
    let first = sandbox.start(&["run", "-p", "x"]);
    let spent = |dollars: f64| {
        let text = fs::read_to_string(sandbox.path("state/quota/spend.jsonl")).unwrap_or_default();
        let costs = text
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        costs.filter_map(|entry| entry["usd"].as_f64()).sum::<f64>() >= dollars - 1e-9
    };
    wait_until("the first cost", DEADLINE, || spent(0.6));
    let other = sandbox.path("other");
    fs::create_dir(&other).expect("a project");
    fs::copy(sandbox.work().join("ralph.yml"), other.join("ralph.yml")).expect("a configuration");
    let mut second = sandbox.command(&["run", "-p", "x"]);
    let second = crate::sandbox::Running::start(second.current_dir(&other))
        .finish()
        .exits_with(3);
    assert!(second.stdout.contains("per day for all runs"), "{second:?}");
    fs::write(sandbox.path("agent").join("go"), "").expect("a signal");
    let first = first.finish().exits_with(3);
    assert!(first.stdout.contains("per day for all runs"), "{first:?}");
}

#[test]
fn a_project_file_cannot_raise_the_budget_of_the_user() {
    let sandbox = budgeted("say LOOP_COMPLETE\n", "{per_project_usd: 5}");
    sandbox.configure("budgets: {per_project_usd: 100, per_day_usd: 7}\n");
    let shown = sandbox.ralph(&["config", "show", "--json"]).exits_with(0).json();
    assert_eq!(
        (&shown["budgets.per_project_usd"], &shown["budgets.per_day_usd"]),
        (&5.0.into(), &7.0.into()),
        "{shown}"
    );
}
