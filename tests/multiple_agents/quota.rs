//! Runs that share an account. A scripted server is the model service, and its requests are counted there.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::server::Server;
use crate::process::helpers::wait_until;
use crate::sandbox::claude::{message, print_json, result};
use crate::sandbox::{DEADLINE, Running, Sandbox};

const LEDGER: &str = "quota/claude-default.jsonl";

/// A sandbox in which each agent sends one request to the server.
fn sandbox_of(server: &Server) -> Sandbox {
    let sandbox = Sandbox::new().with_agent("claude");
    sandbox.script("default", &format!("request {}/\n", server.url()));
    sandbox
}

/// Starts a run in a project of its own.
fn start(sandbox: &Sandbox, project: &str, quota: &str) -> Running {
    let directory = sandbox.path(project);
    fs::create_dir(&directory).expect("a project");
    let config = format!(
        "cli: {{backend: claude}}\n{quota}\nsnapshots: {{enabled: false}}\n\
         event_loop: {{prompt: Build it., max_no_progress: 0, max_iterations: 100}}\n"
    );
    fs::write(directory.join("ralph.yml"), config).expect("a configuration");
    Running::start(sandbox.command(&["run"]).current_dir(&directory))
}

fn ledger(sandbox: &Sandbox) -> Vec<Value> {
    let text = fs::read_to_string(sandbox.path("state").join(LEDGER)).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn at(entry: &Value) -> Timestamp {
    entry["at"].as_str().expect("a time").parse().expect("a time")
}

fn is_waiting(sandbox: &Sandbox) -> bool {
    ledger(sandbox).iter().any(|entry| entry["type"] == "waiting")
}

fn limit_event(status: &str, window: &str, utilization: f64, resets_at: i64) -> String {
    print_json(&json!({ "type": "rate_limit_event", "rate_limit_info": {
        "status": status, "rateLimitType": window, "utilization": utilization, "resetsAt": resets_at,
    } }))
}

fn more_to_do() -> String {
    format!("{}{}", message("m", "More to do."), result("More to do."))
}

fn done() -> String {
    format!("{}{}", message("m", "LOOP_COMPLETE"), result("LOOP_COMPLETE"))
}

fn rejected(resets_at: i64) -> String {
    let failed = print_json(&json!({
        "type": "result", "subtype": "success", "is_error": true, "result": "limit reached", "total_cost_usd": 0.0,
    }));
    format!(
        "{}{failed}exit 1\n",
        limit_event("rejected", "five_hour", 1.0, resets_at)
    )
}

/// The course of the account on the server.
#[derive(Default)]
struct Course {
    /// When the limit resets.
    reset: Option<Timestamp>,
    /// The requests of each run between the first rejection and the reset.
    rejected: BTreeMap<String, usize>,
    after_reset: usize,
    /// Requests while the first one after the reset was being answered.
    beside_the_first: usize,
}

#[test]
fn after_a_rejection_one_run_goes_first_and_the_others_follow() {
    const RUNS: usize = 8;
    let course = Arc::new(Mutex::new(Course::default()));
    let of_server = Arc::clone(&course);
    let server = Server::start(move |request| {
        let mut course = of_server.lock().expect("the course");
        if request.number < 2 * RUNS {
            return more_to_do();
        }
        // Claude states resets in whole seconds.
        let in_a_while = || Timestamp::from_second(request.at.as_second() + 6).expect("a time");
        let reset = *course.reset.get_or_insert_with(in_a_while);
        if request.at < reset {
            *course.rejected.entry(request.path.clone()).or_default() += 1;
            return rejected(reset.as_second());
        }
        course.after_reset += 1;
        if course.after_reset == 1 {
            drop(course);
            std::thread::sleep(Duration::from_secs(4));
            let mut course = of_server.lock().expect("the course");
            course.beside_the_first = course.after_reset - 1;
        }
        done()
    });
    let sandbox = sandbox_of(&server);
    let runs: Vec<Running> = (0..RUNS)
        .map(|run| start(&sandbox, &format!("p{run}"), ""))
        .collect();
    for run in runs {
        run.finish().exits_with(0);
    }
    let course = course.lock().expect("the course");
    assert!(
        course.rejected.values().all(|requests| *requests <= 1),
        "a run sent two requests before the reset: {:?}",
        course.rejected
    );
    assert_eq!(course.beside_the_first, 0, "only one run goes first");
    assert_eq!(course.after_reset, RUNS);
    let entries = ledger(&sandbox);
    let first = entries
        .iter()
        .position(|entry| entry["start"] == "first")
        .expect("a first run");
    let started: Vec<Timestamp> = entries[first..]
        .iter()
        .filter(|entry| entry["type"] == "started")
        .map(at)
        .collect();
    assert_eq!(started.len(), RUNS);
    for pair in started.windows(2) {
        assert!(pair[1].duration_since(pair[0]).as_millis() >= 2000, "{started:?}");
    }
}

/// A server whose first answer reports two windows.
fn almost_used_up(reset: i64) -> Server {
    Server::start(move |request| match request.number {
        0 => {
            limit_event("allowed", "seven_day", 0.1, reset + 9000)
                + &limit_event("allowed_warning", "five_hour", 0.83, reset)
                + &more_to_do()
        }
        _ => done(),
    })
}

#[test]
fn the_reserve_is_left_and_the_waiting_runs_are_listed() {
    let reset = Timestamp::now().as_second() + 20;
    let server = almost_used_up(reset);
    let sandbox = sandbox_of(&server);
    let quota = "quota: {reserve: 20%}";
    let first = start(&sandbox, "first", quota);
    wait_until("the wait", DEADLINE, || is_waiting(&sandbox));
    let others: Vec<Running> = ["b", "c", "d"]
        .map(|project| start(&sandbox, project, quota))
        .into();
    wait_until("all to wait", DEADLINE, || {
        ledger(&sandbox)
            .iter()
            .filter(|entry| entry["type"] == "waiting")
            .count()
            >= 4
    });
    let listed = sandbox.ralph(&["quota"]).exits_with(0);
    for part in [
        "claude",
        "five_hour",
        "83%",
        "seven_day",
        "10%",
        "WAITING RUN",
        "20% is reserved",
        "first",
        "$0.01",
    ] {
        assert!(listed.stdout.contains(part), "{part}: {listed:?}");
    }
    let reports = sandbox.ralph(&["quota", "--json"]).exits_with(0).json();
    assert_eq!(
        reports[0]["waiting"].as_array().map(Vec::len),
        Some(4),
        "{reports}"
    );
    assert!(
        Timestamp::now().as_second() < reset,
        "the machine is too slow for this test"
    );
    assert_eq!(server.requests().len(), 1, "no request after a report of 80 %");
    let output = first.finish().exits_with(0);
    assert!(
        output
            .stdout
            .contains("quota: 83% of the five_hour limit of claude is used, and 20% is reserved"),
        "{output:?}"
    );
    for run in others {
        run.finish().exits_with(0);
    }
    let early = server.requests()[1..]
        .iter()
        .filter(|request| request.at.as_second() < reset)
        .count();
    assert_eq!(early, 0);
}

#[test]
fn the_place_of_a_killed_run_is_free_within_five_seconds() {
    let server = Server::start(|request| match request.number {
        0 => "hang\n".to_owned(),
        _ => done(),
    });
    let sandbox = sandbox_of(&server);
    let quota = "quota: {parallel: 1}";
    let holder = start(&sandbox, "holder", quota);
    wait_until("its request", DEADLINE, || server.requests().len() == 1);
    let other = start(&sandbox, "other", quota);
    wait_until("the other one to wait", DEADLINE, || is_waiting(&sandbox));
    assert_eq!(server.requests().len(), 1);
    let killed = Timestamp::now();
    holder.kill();
    other.finish().exits_with(0);
    let entries = ledger(&sandbox);
    let started = entries
        .iter()
        .rev()
        .find(|entry| entry["type"] == "started")
        .map(at);
    let seconds = (started.expect("a start") - killed).get_seconds();
    assert!(seconds < 5, "{seconds} s: {entries:#?}");
}

#[test]
fn torn_lines_and_entries_of_a_later_clock_delay_no_run() {
    let server = Server::start(|_| done());
    let sandbox = sandbox_of(&server);
    fs::create_dir_all(sandbox.path("state/quota")).expect("a directory");
    // The clock was set back by an hour after the limit was reached, 3 seconds before its reset.
    let later = Timestamp::now() + Duration::from_secs(3600);
    let (since, reset) = (later - Duration::from_secs(600), later + Duration::from_secs(3));
    let run = "20261115-204501-dead";
    let entries = [
        json!({ "at": since, "run": run, "type": "limit", "status": "rejected", "window": "five_hour", "resets_at": reset }),
        json!({ "at": later, "run": run, "type": "ended", "result": "limited" }),
    ];
    let text = format!(
        "{{\"at\":\"2026-11\n{}\n{}\n{{\"at\":\"2026-1",
        entries[0], entries[1]
    );
    fs::write(sandbox.path("state").join(LEDGER), text).expect("a ledger");
    let started = Timestamp::now();
    start(&sandbox, "p", "").finish().exits_with(0);
    let request = &server.requests()[0];
    let waited = (request.at - started).get_seconds();
    assert!(waited >= 2, "the limit is not over: {waited} s");
    assert!(
        ledger(&sandbox).iter().any(|entry| entry["result"] == "worked"),
        "{:?}",
        ledger(&sandbox)
    );
}

#[test]
fn the_user_ends_the_wait_for_an_account() {
    let reset = Timestamp::now().as_second() + 3600;
    let server = Server::start(move |request| match request.number {
        0 => limit_event("allowed", "five_hour", 0.9, reset) + &more_to_do(),
        _ => done(),
    });
    let sandbox = sandbox_of(&server);
    let run = start(&sandbox, "p", "quota: {reserve: 50%}");
    wait_until("the wait", DEADLINE, || is_waiting(&sandbox));
    let mut tell = sandbox.command(&["tell", "--wake"]);
    Running::start(tell.current_dir(sandbox.path("p")))
        .finish()
        .exits_with(0);
    run.finish().exits_with(0);
    assert!(ledger(&sandbox).iter().any(|entry| entry["start"] == "forced"));
}

#[test]
fn no_account_was_used_yet() {
    let sandbox = Sandbox::new();
    let output = sandbox.ralph(&["quota"]).exits_with(0);
    assert!(
        output.stdout.starts_with("No account has been used yet."),
        "{output:?}"
    );
    assert_eq!(
        sandbox.ralph(&["quota", "--json"]).exits_with(0).json(),
        json!([])
    );
}
