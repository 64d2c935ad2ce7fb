//! Usage limits: ralph waits until they end, then repeats the iteration without counting it twice.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::process::Signal;
use serde_json::json;

use super::in_a_repository;
use crate::sandbox::{Running, Sandbox, claude};

/// Returns a rate limit event of Claude that resets in `seconds`.
fn limit(status: &str, seconds: i64) -> String {
    claude::print_json(&json!({
        "type": "rate_limit_event", "session_id": "s-1", "uuid": "u-1",
        "rate_limit_info": {
            "status": status, "rateLimitType": "five_hour", "resetsAt": Timestamp::now().as_second() + seconds,
        },
    }))
}

/// Returns a session that fails because of the usage limit.
fn limited_session(seconds: i64) -> String {
    let message = "You've hit your limit";
    let result = json!({
        "type": "result", "subtype": "success", "is_error": true, "num_turns": 1, "result": message,
        "session_id": "s-1", "api_error_status": 429,
    });
    [
        claude::init(),
        limit("rejected", seconds),
        claude::message("m1", message),
        claude::print_json(&result),
        "exit 1\n".to_owned(),
    ]
    .concat()
}

fn claude_agent() -> Sandbox {
    Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"))
}

#[test]
fn a_run_waits_for_a_usage_limit_and_repeats_the_iteration() {
    let sandbox = claude_agent();
    sandbox.init_git_repository();
    let before = sandbox.git_state();
    sandbox.script("1", &limited_session(3));
    let resets_at = Timestamp::now().as_second() + 3;
    let output = sandbox
        .ralph(&["run", "-p", "x", "-n", "1", "--max-runtime", "2"])
        .exits_with(0);
    assert!(
        Timestamp::now().as_second() >= resets_at,
        "not before the limit ends"
    );
    let started: Vec<_> = sandbox
        .records("iteration_started")
        .iter()
        .map(|record| (record["iteration"].clone(), record["attempt"].clone()))
        .collect();
    assert_eq!(started, [(1.into(), 1.into()), (1.into(), 2.into())]);
    let first = &sandbox.records("iteration_ended")[0];
    assert_eq!(first["outcome"], "rate_limited", "{first}");
    let waiting = sandbox.records("waiting");
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert_eq!(waiting[0]["why"], "rate_limit");
    let ended = &sandbox.records("run_ended")[0];
    assert_eq!(
        ended["iterations"], 1,
        "the wait counts neither as an iteration nor as time"
    );
    assert!(output.stdout.contains("usage limit"), "{output:?}");
    assert!(sandbox.git_state() == before);
    let (first, second) = (sandbox.recorded("1.argv"), sandbox.recorded("2.argv"));
    assert_eq!(first, second, "the same call");
}

#[test]
fn rate_limit_events_with_the_status_allowed_cause_no_wait() {
    let sandbox = claude_agent();
    let allowed = limit("allowed", 3600).repeat(99) + &limit("allowed_warning", 3600);
    let script = [
        claude::init(),
        allowed,
        claude::message("m1", "LOOP_COMPLETE"),
        claude::result("LOOP_COMPLETE"),
    ]
    .concat();
    let sandbox = sandbox.with_script("1", &script);
    in_a_repository(&sandbox, &["run", "-p", "x"]).exits_with(0);
    assert_eq!(sandbox.records("waiting").len(), 0);
    assert_eq!(sandbox.records("iteration_started").len(), 1);
}

/// Asserts that `wake` ends a wait of an hour and the run continues at once.
fn assert_wakes(wake: impl FnOnce(&Running)) {
    let sandbox = claude_agent();
    sandbox.script("1", &limited_session(3600));
    let since = Instant::now();
    let running = sandbox.start(&["run", "-p", "x"]);
    sandbox.wait_for_event("the wait", |event| {
        matches!(event, ralph::event::RunEvent::Waiting { .. })
    });
    wake(&running);
    running.finish().exits_with(0);
    assert!(since.elapsed() < Duration::from_secs(60));
    assert_eq!(sandbox.run_end().1, 1);
}

#[test]
fn a_signal_ends_the_wait() {
    assert_wakes(|running| running.signal(Signal::USR1));
}

/// SIGSTOP and SIGCONT stand in for a suspended machine.
#[test]
fn a_run_continues_at_once_if_the_limit_ended_during_suspend() {
    let sandbox = claude_agent();
    sandbox.script("1", &limited_session(2));
    let resets_at = Timestamp::now().as_second() + 2;
    let running = sandbox.start(&["run", "-p", "x", "--max-runtime", "2"]);
    sandbox.wait_for_event("the wait", |event| {
        matches!(event, ralph::event::RunEvent::Waiting { .. })
    });
    running.signal(Signal::STOP);
    while Timestamp::now().as_second() < resets_at + 2 {
        std::thread::sleep(Duration::from_millis(20));
    }
    running.signal(Signal::CONT);
    let resumed = Instant::now();
    running.finish().exits_with(0);
    assert!(resumed.elapsed() < Duration::from_secs(30));
    assert_eq!(
        sandbox.run_end().1,
        1,
        "the same iteration, and the suspended time is not runtime"
    );
}

#[test]
fn the_rate_limit_hook_receives_the_reset_time() {
    let sandbox = claude_agent().with_file("ralph.yml", "hooks: {on_rate_limit: cat >> limited}\n");
    sandbox.script("1", &limited_session(1));
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let document = crate::sandbox::history::json(&sandbox.work().join("limited"));
    assert_eq!(document["event"], "rate_limit");
    assert_eq!(document["record"]["outcome"], "rate_limited", "{document}");
    assert!(document["record"]["resets_at"].is_string(), "{document}");
}

#[test]
fn a_missing_login_stops_the_run_at_once_with_a_hint() {
    let result = json!({
        "type": "result", "subtype": "success", "is_error": true, "num_turns": 1, "session_id": "s-1",
        "result": "Invalid API key · Fix external API key", "error": "authentication_failed",
    });
    let message = json!({
        "type": "assistant", "error": "authentication_failed", "session_id": "s-1",
        "message": { "id": "m1", "role": "assistant", "model": "<synthetic>",
                     "content": [{ "type": "text", "text": "Invalid API key · Fix external API key" }] },
    });
    let script = claude::init() + &claude::print_json(&message) + &claude::print_json(&result) + "exit 1\n";
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &script);
    let output = in_a_repository(&sandbox, &["run", "-p", "x"]).exits_with(1);
    assert_eq!(sandbox.records("iteration_started").len(), 1, "{output:?}");
    assert!(output.stdout.contains("ANTHROPIC_API_KEY"), "{output:?}");
}
