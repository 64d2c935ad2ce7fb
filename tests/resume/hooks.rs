//! Hooks receive what happens, and can neither fail nor block the loop.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::sandbox::{Running, Sandbox};

fn documents(sandbox: &Sandbox, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(sandbox.work().join(name)).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a JSON document"))
        .collect()
}

#[test]
fn hooks_receive_events_without_secrets() {
    let config = "event_loop: {prompt: x}\nhooks:\n  \
                  on_start: 'cat >> start; echo \"$RALPH_HOOK_MESSAGE\" >> message'\n  \
                  on_iteration: cat >> iteration\n  on_complete: cat >> complete\n  on_fail: cat >> fail\n";
    let sandbox =
        Sandbox::scripted("say LOOP_COMPLETE", config).with_script("1", "err key is hush-hush-42\nexit 3");
    let mut command = sandbox.command(&["run"]);
    command.env("SOME_API_KEY", "hush-hush-42");
    let output = Running::start(&mut command).finish();
    assert_eq!(output.exit(), 0, "{}", output.text());
    let start = documents(&sandbox, "start");
    assert_eq!(
        (start.len(), &start[0]["version"], &start[0]["event"]),
        (1, &1.into(), &"start".into())
    );
    assert_eq!(start[0]["run_id"], sandbox.run_id());
    let message = fs::read_to_string(sandbox.work().join("message")).expect("the value of the variable");
    assert_eq!(message, "Started with custom.\n");
    assert_eq!(start[0]["message"], "Started with custom.");
    let iterations = documents(&sandbox, "iteration");
    assert_eq!(iterations.len(), 2);
    let failure = &iterations[0]["record"]["failure"]["message"];
    assert_eq!(failure, "key is [redacted]");
    let sentence = "Iteration 1: failed: the agent ended with exit code 3: key is [redacted]";
    assert_eq!(iterations[0]["message"], sentence);
    assert_eq!(iterations[1]["record"]["outcome"], "completed");
    let complete = documents(&sandbox, "complete");
    assert_eq!(
        (complete.len(), &complete[0]["record"]["iterations"]),
        (1, &2.into())
    );
    assert_eq!(documents(&sandbox, "fail").len(), 0);
}

#[test]
fn a_hook_that_fails_or_hangs_causes_only_a_notice() {
    let config = "event_loop: {prompt: x}\nhooks:\n  timeout: 1\n  on_start: sleep 600\n  \
                  on_iteration: 'echo oh no >&2; exit 7'\n  on_complete: no-such-command-here\n";
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", config);
    let since = Instant::now();
    let output = sandbox.ralph(&["run"]);
    let text = output.text();
    assert_eq!(output.exit(), 0, "{text}");
    assert!(since.elapsed() < Duration::from_secs(30), "{text}");
    assert!(text.contains("the hook on_start was stopped after 1s"), "{text}");
    assert!(
        text.contains("the hook on_iteration failed with exit code 7: oh no"),
        "{text}"
    );
    assert!(
        text.contains("the hook on_complete failed with exit code 127"),
        "{text}"
    );
    let last = sandbox.history().pop().expect("a record");
    assert!(
        matches!(last.event, ralph::event::RunEvent::RunEnded { .. }),
        "the end of the run is the last record"
    );
}
