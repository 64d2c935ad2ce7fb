//! Hooks are told what happens, and can neither break nor hold up the loop.

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
fn hooks_are_told_what_happened_without_secrets() {
    let config = "event_loop: {prompt: x}\nhooks:\n  \
                  on_start: 'cat >> start; echo \"$RALPH_HOOK_MESSAGE\" >> said'\n  \
                  on_iteration: cat >> iteration\n  on_complete: cat >> complete\n  on_fail: cat >> fail\n";
    let sandbox =
        Sandbox::scripted("say LOOP_COMPLETE", config).playing("1", "err key is hush-hush-42\nexit 3");
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
    let said = fs::read_to_string(sandbox.work().join("said")).expect("what the variable held");
    assert_eq!(said, "Begins with custom.\n");
    assert_eq!(start[0]["message"], "Begins with custom.");
    let iterations = documents(&sandbox, "iteration");
    assert_eq!(iterations.len(), 2);
    let message = &iterations[0]["record"]["failure"]["message"];
    assert_eq!(message, "key is [redacted]");
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
fn a_hook_that_fails_or_hangs_is_a_notice_and_no_more() {
    let config = "event_loop: {prompt: x}\nhooks:\n  timeout: 1\n  on_start: sleep 600\n  \
                  on_iteration: 'echo oh no >&2; exit 7'\n  on_complete: no-such-command-here\n";
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", config);
    let since = Instant::now();
    let output = sandbox.ralph(&["run"]);
    let said = output.text();
    assert_eq!(output.exit(), 0, "{said}");
    assert!(since.elapsed() < Duration::from_secs(30), "{said}");
    assert!(said.contains("the hook on_start was stopped after 1 s"), "{said}");
    assert!(
        said.contains("the hook on_iteration failed with exit code 7: oh no"),
        "{said}"
    );
    assert!(
        said.contains("the hook on_complete failed with exit code 127"),
        "{said}"
    );
    let last = sandbox.history().pop().expect("a record");
    assert!(
        matches!(last.event, ralph::event::RunEvent::RunEnded { .. }),
        "its end is its last word"
    );
}
