//! Claude Code takes further turns by itself: background tasks, subagents, and sessions of several iterations.

use std::fs;

use ralph::event::{IterationOutcome, NoticeLevel, RunEvent, Usage};
use serde_json::json;

use crate::fixture::{Ended, Fixture};
use crate::model::{INPUT_TOKENS, Model, ModelRequest, OUTPUT_TOKENS, Reply, call_named, say};
use crate::programs::Program;
use crate::tests_for_programs;

tests_for_programs! {
    background_task_is_waited_for: claude => Claude;
    endless_background_task_is_stopped_by_the_idle_limit: claude => Claude;
    usage_of_a_session_with_subagents_is_exact: claude => Claude;
}

fn run_in_background(command: &str) -> Vec<crate::model::Block> {
    let arguments = json!({ "command": command, "description": "run tests", "run_in_background": true });
    vec![say("In the background."), call_named("Bash", arguments)]
}

/// The task takes longer than the time that an agent has to exit after its result.
fn background_task_is_waited_for(cli: Program) {
    let model = Model::new(|request| {
        Reply::Blocks(match request.number {
            0 => run_in_background("sleep 45; echo ok > result.txt"),
            1 => vec![say("The tests are running; I will report when they finish.")],
            _ => vec![say("Tests passed.\nLOOP_COMPLETE")],
        })
    });
    let fixture = Fixture::new(cli, &model.url());
    let ended = fixture.run("Run the tests.\n");
    ended.assert_code(0);
    let result = fs::read_to_string(fixture.project().join("result.txt"));
    assert_eq!(result.ok().as_deref(), Some("ok\n"), "{}", ended.describe());
    assert!(
        matches!(ended.outcomes()[..], [IterationOutcome::Completed { .. }]),
        "{}",
        ended.describe()
    );
    assert_eq!(iteration_usage(&ended), [(3 * INPUT_TOKENS, 3 * OUTPUT_TOKENS)]);
    fixture.assert_nothing_survives();
}

fn endless_background_task_is_stopped_by_the_idle_limit(cli: Program) {
    let model = Model::new(|request| {
        Reply::Blocks(match request.number {
            0 => run_in_background("tail -f /dev/null"),
            _ => vec![say("The server runs.\nLOOP_COMPLETE")],
        })
    });
    let fixture = Fixture::new(cli, &model.url()).with_config("adapters:\n  claude:\n    idle_timeout: 40");
    let ended = fixture.run("Start the server.\n");
    ended.assert_code(0);
    let reported = ended.records.iter().any(|record| {
        matches!(&record.event, RunEvent::Notice { level: NoticeLevel::Warning, text }
            if text.contains("1 background task was still running: run tests"))
    });
    assert!(reported, "{}", ended.describe());
    fixture.assert_nothing_survives();
}

fn delegating(request: &ModelRequest) -> Reply {
    let prompt_contains = |text: &str| request.prompt().iter().any(|other| other.contains(text));
    Reply::Blocks(if prompt_contains("SUBTASK-7: look") {
        vec![say("Sub result 77.")]
    } else if prompt_contains("Sub result 77.") {
        vec![say("The helper reports 77.")]
    } else if request.turn == 0 {
        let arguments = json!({ "description": "look", "prompt": "SUBTASK-7: look",
                                "subagent_type": "general-purpose" });
        vec![say("Delegating."), call_named("Agent", arguments)]
    } else {
        vec![say("The helper is looking.")]
    })
}

/// Prompt and completion tokens of each iteration.
fn iteration_usage(ended: &Ended) -> Vec<(u64, u64)> {
    let tokens = |usage: &Usage| {
        (
            usage.prompt_tokens.unwrap_or(0),
            usage.completion_tokens.unwrap_or(0),
        )
    };
    usages(ended).into_iter().map(tokens).collect()
}

fn usages(ended: &Ended) -> Vec<&Usage> {
    let usages = ended.records.iter().filter_map(|record| match &record.event {
        RunEvent::IterationEnded { usage, .. } => Some(usage.as_ref()),
        _ => None,
    });
    usages.collect()
}

/// Tokens and cost equal what the model sent, in each of five iterations of one session.
fn usage_of_a_session_with_subagents_is_exact(cli: Program) {
    let model = Model::new(delegating);
    let fixture = Fixture::new(cli, &model.url())
        .with_arguments(&["-n", "5"])
        .with_config("session: continue\nevent_loop:\n  max_no_progress: 0");
    let ended = fixture.run("Ask the helper.\n");
    ended.assert_code(3);
    let requests = model.requests().len() as u64;
    let usage = iteration_usage(&ended);
    assert_eq!(usage.len(), 5, "{}", ended.describe());
    let sum = usage
        .iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(
        sum,
        (requests * INPUT_TOKENS, requests * OUTPUT_TOKENS),
        "{usage:?}\n{}",
        ended.describe()
    );
    // Every request has the same price.
    let per_token = |usage: &Usage| {
        usage.cost_usd.map_or(0.0, ralph::event::Usd::get) / usage.tokens().unwrap_or(1) as f64
    };
    let prices: Vec<f64> = usages(&ended).into_iter().map(per_token).collect();
    assert!(
        prices
            .iter()
            .all(|price| *price > 0.0 && (price - prices[0]).abs() < 1e-9),
        "{prices:?}\n{}",
        ended.describe()
    );
    fixture.assert_nothing_survives();
}
