//! Usage limits: waited for until they are over, the same iteration again, not counted. What is no limit is not waited
//! for.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::process::Signal;
use serde_json::json;

use super::in_a_repository;
use crate::sandbox::{Running, Sandbox, claude};

/// What claude says of its limit, `seconds` from now.
fn limit(status: &str, seconds: i64) -> String {
    claude::say(&json!({
        "type": "rate_limit_event", "session_id": "s-1", "uuid": "u-1",
        "rate_limit_info": {
            "status": status, "rateLimitType": "five_hour", "resetsAt": Timestamp::now().as_second() + seconds,
        },
    }))
}

/// A session that ends because of it.
fn refused(seconds: i64) -> String {
    let message = "You've hit your limit";
    let result = json!({
        "type": "result", "subtype": "success", "is_error": true, "num_turns": 1, "result": message,
        "session_id": "s-1", "api_error_status": 429,
    });
    [
        claude::init(),
        limit("rejected", seconds),
        claude::message("m1", message),
        claude::say(&result),
        "exit 1\n".to_owned(),
    ]
    .concat()
}

fn claude_agent() -> Sandbox {
    Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("LOOP_COMPLETE"))
}

#[test]
fn a_rejected_limit_three_seconds_ahead_is_waited_for_and_the_same_iteration_runs_again() {
    let sandbox = claude_agent();
    sandbox.live_in();
    let before = sandbox.git_state();
    sandbox.script("1", &refused(3));
    let resets_at = Timestamp::now().as_second() + 3;
    let told = sandbox
        .ralph(&["run", "-p", "x", "-n", "1", "--max-runtime", "2"])
        .exits_with(0);
    assert!(Timestamp::now().as_second() >= resets_at, "not before it is over");
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
    assert!(told.stdout.contains("usage limit"), "{told:?}");
    assert!(sandbox.git_state() == before);
    let (first, second) = (sandbox.recorded("1.argv"), sandbox.recorded("2.argv"));
    assert_eq!(first, second, "the very same call");
}

#[test]
fn a_hundred_allowed_ones_are_waited_for_not_once() {
    let sandbox = claude_agent();
    let allowed = limit("allowed", 3600).repeat(99) + &limit("allowed_warning", 3600);
    let script = [
        claude::init(),
        allowed,
        claude::message("m1", "LOOP_COMPLETE"),
        claude::result("LOOP_COMPLETE"),
    ]
    .concat();
    let sandbox = sandbox.playing("1", &script);
    in_a_repository(&sandbox, &["run", "-p", "x"]).exits_with(0);
    assert_eq!(sandbox.records("waiting").len(), 0);
    assert_eq!(sandbox.records("iteration_started").len(), 1);
}

/// A wait of an hour, interrupted by what `wake` does; the run goes on at once.
fn woken(wake: impl FnOnce(&Running)) {
    let sandbox = claude_agent();
    sandbox.script("1", &refused(3600));
    let since = Instant::now();
    let running = sandbox.start(&["run", "-p", "x"]);
    sandbox.wait_for_event("the wait", |event| {
        matches!(event, ralph::event::RunEvent::Waiting { .. })
    });
    wake(&running);
    running.finish().exits_with(0);
    assert!(since.elapsed() < Duration::from_secs(60));
    assert_eq!(sandbox.end().1, 1);
}

#[test]
fn a_signal_ends_the_wait() {
    woken(|running| running.signal(Signal::USR1));
}

/// Stopped and continued: what a machine that goes to sleep does to every program on it.
#[test]
fn who_sleeps_through_the_wait_goes_on_at_once_when_awake() {
    let sandbox = claude_agent();
    sandbox.script("1", &refused(2));
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
    let awake = Instant::now();
    running.finish().exits_with(0);
    assert!(awake.elapsed() < Duration::from_secs(30));
    assert_eq!(
        sandbox.end().1,
        1,
        "the same iteration, and its sleep is no runtime"
    );
}

#[test]
fn a_hook_is_told_of_the_limit_and_until_when_it_lasts() {
    let sandbox = claude_agent().with_file("ralph.yml", "hooks: {on_rate_limit: cat >> limited}\n");
    sandbox.script("1", &refused(1));
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let told = crate::sandbox::history::json(&sandbox.work().join("limited"));
    assert_eq!(told["event"], "rate_limit");
    assert_eq!(told["record"]["outcome"], "rate_limited", "{told}");
    assert!(told["record"]["resets_at"].is_string(), "{told}");
}

#[test]
fn a_missing_login_stops_at_once_and_says_how_to_log_in() {
    let result = json!({
        "type": "result", "subtype": "success", "is_error": true, "num_turns": 1, "session_id": "s-1",
        "result": "Invalid API key · Fix external API key", "error": "authentication_failed",
    });
    let message = json!({
        "type": "assistant", "error": "authentication_failed", "session_id": "s-1",
        "message": { "id": "m1", "role": "assistant", "model": "<synthetic>",
                     "content": [{ "type": "text", "text": "Invalid API key · Fix external API key" }] },
    });
    let script = claude::init() + &claude::say(&message) + &claude::say(&result) + "exit 1\n";
    let sandbox = Sandbox::new().with_agent("claude").playing("default", &script);
    let told = in_a_repository(&sandbox, &["run", "-p", "x"]).exits_with(1);
    assert_eq!(sandbox.records("iteration_started").len(), 1, "{told:?}");
    assert!(told.stdout.contains("ANTHROPIC_API_KEY"), "{told:?}");
}
