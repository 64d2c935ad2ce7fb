//! `ralph serve`: the API, the streams, steering and the attacks that it must withstand.

mod attacks;
mod client;
mod encryption;

use std::fs;

use serde_json::Value;

use self::client::Server;
use crate::process::helpers::wait_until;
use crate::sandbox::{DEADLINE, Sandbox};

const SETTINGS: &str = "event_loop: {prompt: '# Fix the parser', max_iterations: 5}\n";

/// A project with one completed run of one iteration.
fn completed_run() -> Sandbox {
    let sandbox = Sandbox::scripted("say hello\nsay LOOP_COMPLETE", SETTINGS);
    sandbox.ralph(&["run", "-q"]).exits_with(0);
    sandbox
}

/// The priority of a process: the 19th field of its state, the 17th behind its name.
fn niceness(pid: i32) -> String {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a running process");
    let (_, fields) = state.rsplit_once(") ").expect("the fields behind the name");
    fields.split(' ').nth(16).expect("a niceness").to_owned()
}

fn block_text(event: &Value) -> String {
    let blocks = event["blocks"].as_array().expect("blocks");
    let html = blocks.iter().map(|block| block["html"].as_str().expect("HTML"));
    html.collect()
}

#[test]
fn runs_of_all_projects_are_listed_with_totals() {
    let sandbox = completed_run();
    let server = Server::start(&sandbox, &[]);
    let overview = server.json("/api/v1/runs");
    let run = &overview["runs"][0];
    assert_eq!(run["id"], sandbox.run_id());
    assert_eq!(
        (
            run["outcome"].as_str(),
            run["prompt"].as_str(),
            run["project"].as_str()
        ),
        (Some("complete"), Some("Fix the parser"), Some("work"))
    );
    assert_eq!(overview["count"], 1);
    assert_eq!(overview["totals"]["agents"]["custom"]["runs"], 1);
    for (query, count) in [
        ("?q=PARSER", 1),
        ("?q=nothing", 0),
        ("?outcome=failed", 0),
        ("?outcome=complete", 1),
        ("?outcome=failed,complete", 1),
        ("?outcome=attention", 0),
        ("?agent=custom", 1),
        ("?agent=claude", 0),
    ] {
        assert_eq!(
            server.json(&format!("/api/v1/runs{query}"))["count"],
            count,
            "{query}"
        );
    }
    let metrics = server.get("/metrics").body;
    assert!(
        metrics.contains("ralph_runs{outcome=\"complete\"} 1"),
        "{metrics}"
    );
}

#[test]
fn a_run_has_its_facts_records_and_prompt() {
    let sandbox = completed_run();
    let server = Server::start(&sandbox, &[]);
    let path = format!("/api/v1/runs/{}", sandbox.run_id());
    let run = server.json(&path);
    assert_eq!(run["state"], "complete");
    assert!(
        run["verdict"]
            .as_str()
            .expect("a verdict")
            .starts_with("Done, but unverified")
    );
    assert_eq!(run["turns"][0]["iteration"], 1);
    let records = server.json(&format!("{path}/records?limit=2"));
    assert_eq!(records["records"].as_array().expect("records").len(), 2);
    assert_eq!(records["next"], 2);
    assert_eq!(server.json(&format!("{path}/records/1"))["type"], "run_started");
    let prompt = server.get(&format!("{path}/iterations/1/attempts/1/prompt"));
    assert!(prompt.body.starts_with("# Fix the parser"), "{prompt:?}");
    for missing in ["/records/999999", "/iterations/9/attempts/1/prompt"] {
        assert_eq!(server.get(&format!("{path}{missing}")).status, 404, "{missing}");
    }
    assert_eq!(server.get("/api/v1/runs/20260101-000000-none").status, 404);
}

#[test]
fn a_run_has_its_changes_and_gates() {
    let sandbox = Sandbox::scripted(
        "write new.rs fn new() {}\nsay LOOP_COMPLETE",
        &format!("{SETTINGS}gates: [{{name: tests, run: 'echo 3 passed in 0.1s'}}]\n"),
    );
    sandbox.ralph(&["run", "-q"]).exits_with(0);
    let server = Server::start(&sandbox, &[]);
    let path = format!("/api/v1/runs/{}", sandbox.run_id());
    for query in ["", "?iteration=1"] {
        let changes = server.json(&format!("{path}/changes{query}"));
        let files = changes["files"].as_array().expect("files");
        assert_eq!(files.len(), 1, "{changes}");
        assert_eq!(
            (files[0]["path"].as_str(), files[0]["change"].as_str()),
            (Some("new.rs"), Some("added"))
        );
        let patch = server.json(&format!("{path}/changes/0{query}"));
        assert!(
            patch["patch"].as_str().expect("a patch").contains("+fn new() {}"),
            "{patch}"
        );
    }
    let gates = server.json(&format!("{path}/gates"));
    assert_eq!(
        (
            gates["gates"][0]["name"].as_str(),
            gates["gates"][0]["passed"].as_bool()
        ),
        (Some("tests"), Some(true))
    );
    assert_eq!(gates["gates"][0]["report"]["passed"], 3);
    for missing in [
        "/changes?iteration=7",
        "/changes/1",
        "/changes/1?iteration=1",
        "/changes/../../run.json",
    ] {
        assert_eq!(server.get(&format!("{path}{missing}")).status, 404, "{missing}");
    }
    assert_eq!(server.get(&format!("{path}/changes/src%2Fnew.rs")).status, 400);
}

#[test]
fn a_plan_is_listed_with_its_tasks_and_steered() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", SETTINGS).with_file(
        "PLAN.md",
        "- [ ] First\n- [ ] Second\n  - gate: `false`\n  - max_iterations: 1\n",
    );
    sandbox.ralph(&["plan", "run", "PLAN.md"]).exits_with(1);
    let server = Server::start(&sandbox, &["--steer"]);
    let plans = server.json("/api/v1/plans");
    let plan = &plans["plans"][0];
    let states: Vec<&str> = plan["tasks"]
        .as_array()
        .expect("tasks")
        .iter()
        .map(|task| task["state"].as_str().expect("a state"))
        .collect();
    assert_eq!(states, ["done", "parked"], "{plan}");
    let path = format!(
        "/api/v1/plans/{}/{}",
        plan["project_id"].as_str().expect("an id"),
        plan["plan"].as_str().expect("a name")
    );
    let events = server.json(&path)["events"].clone();
    assert!(events.to_string().contains("task_parked"), "{events}");
    let task = plan["tasks"][1]["id"].as_str().expect("an id");
    assert_eq!(
        server
            .post(
                &format!("{path}/commands"),
                &format!(r#"{{"kind": "retry", "task": "{task}"}}"#)
            )
            .status,
        202
    );
    assert_eq!(
        server
            .post(
                &format!("{path}/commands"),
                r#"{"kind": "retry", "task": "unknown"}"#
            )
            .status,
        400
    );
    for missing in [
        "/api/v1/plans/x/plan",
        "/api/v1/plans/../plans/x",
        "/api/v1/plans/%2e%2e/plan",
    ] {
        assert_eq!(server.get(missing).status, 404, "{missing}");
    }
}

#[test]
fn a_live_run_is_followed_and_a_reader_continues_after_a_restart_of_the_server() {
    let sandbox = Sandbox::scripted("say one\nwait-for go\nsay two\nsay LOOP_COMPLETE", SETTINGS);
    let run = sandbox.start(&["run", "-q"]);
    sandbox.wait_for_event("the first line", |event| format!("{event:?}").contains("\"one\""));
    let path = format!("/api/v1/runs/{}", sandbox.run_id());
    let server = Server::start(&sandbox, &[]);
    let listed = server.json("/api/v1/runs");
    assert_eq!(listed["runs"][0]["live"]["activity"]["state"], "agent");
    let mut events = server.events(&format!("{path}/events"), "");
    let first = events.next();
    assert_eq!((first.id, first.data["type"].as_str()), (1, Some("run_started")));
    let mut page = server.events(&format!("{path}/page"), "");
    let blocks = page.next_named("blocks");
    assert!(block_text(&blocks.data).contains("one"));
    assert_eq!(page.next_named("run").data["state"], "running");
    let cookie = server.cookie.clone();
    drop(server);
    fs::write(sandbox.path("agent").join("go"), "").expect("the signal for the agent");
    assert_eq!(run.finish().exit(), 0);
    let mut server = Server::without_sign_in(&sandbox, &[]);
    server.cookie = format!(
        "ralph_{}={}",
        server.port,
        cookie.split_once('=').expect("a value").1
    );
    let mut records = server.events(
        &format!("{path}/events"),
        &format!("Last-Event-ID: {}\r\n", first.id),
    );
    let mut expected = first.id + 1;
    loop {
        let record = records.next();
        assert_eq!(record.id, expected, "every record once");
        expected += 1;
        if record.data["type"] == "run_ended" {
            break;
        }
    }
    let mut page = server.events(&format!("{path}/page?after={}", blocks.id), "");
    let later = block_text(&page.next_named("blocks").data);
    assert!(later.contains("two"), "{later}");
    assert_eq!(page.next_named("run").data["state"], "complete");
}

#[test]
fn a_command_of_the_page_reaches_the_run_once() {
    let sandbox = Sandbox::scripted("say one\nwait-for go\nsay LOOP_COMPLETE", SETTINGS);
    let run = sandbox.start(&["run", "-q"]);
    sandbox.wait_for_event("the agent", |event| format!("{event:?}").contains("\"one\""));
    let server = Server::start(&sandbox, &["--steer"]);
    let path = format!("/api/v1/runs/{}/commands", sandbox.run_id());
    let body = r#"{"id": "x-1", "kind": "message", "text": "use the new API"}"#;
    for _ in 0..2 {
        assert_eq!(server.post(&path, body).status, 202);
    }
    assert_eq!(server.post(&path, r#"{"kind": "stop"}"#).status, 202);
    assert_eq!(run.finish().exit(), 130);
    let received = sandbox.records("told");
    let messages: Vec<&Value> = received
        .iter()
        .filter(|record| record["kind"] == "message")
        .collect();
    assert_eq!(messages.len(), 1, "{received:?}");
    assert_eq!(messages[0]["id"], "web-x-1");
    assert_eq!(
        server.post(&path, r#"{"kind": "pause"}"#).status,
        409,
        "the run has ended"
    );
    for (body, status) in [
        (r#"{"kind": "kill"}"#, 400),
        (r#"{"kind": "rewind"}"#, 422),
        (r#"{"id": "../x", "kind": "pause"}"#, 400),
        (r#"{"kind": "message", "text": " "}"#, 400),
        ("{", 400),
    ] {
        assert_eq!(server.post(&path, body).status, status, "{body}");
    }
}

#[test]
fn an_interrupted_run_is_continued_and_survives_the_server() {
    let sandbox = Sandbox::new()
        .with_agent("worker")
        .with_script("1", "wait-for never")
        .with_script("default", "wait-for go\nsay LOOP_COMPLETE")
        .with_file(
            "ralph.yml",
            "cli: {backend: custom, command: worker}\nevent_loop: {prompt: x}\n",
        );
    let run = sandbox.start(&["run", "-q"]);
    sandbox.wait_for_processes(1);
    run.kill();
    let server = Server::start(&sandbox, &["--steer"]);
    let path = format!("/api/v1/runs/{}", sandbox.run_id());
    wait_until("the end of the killed run", DEADLINE, || {
        server.json(&path)["state"] == "died"
    });
    assert_eq!(server.post(&format!("{path}/continue"), "{}").status, 202);
    assert_eq!(
        server.post(&format!("{path}/continue"), "{}").status,
        409,
        "it is running"
    );
    drop(server);
    sandbox.wait_for_processes(2);
    let agent = sandbox.pids().pop().expect("the agent of the continued run");
    assert_eq!(
        niceness(agent),
        niceness(i32::try_from(std::process::id()).expect("a pid"))
    );
    fs::write(sandbox.path("agent").join("go"), "").expect("the signal for the agent");
    sandbox.wait_for_event("the end", |event| format!("{event:?}").contains("RunEnded"));
}

#[test]
fn a_unix_socket_is_private_and_an_old_one_is_replaced() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    let sandbox = completed_run();
    let socket = sandbox.path("tmp").join("s");
    drop(UnixListener::bind(&socket).expect("an abandoned socket"));
    let path = socket.to_string_lossy().into_owned();
    let running = sandbox.start(&["serve", "--socket", &path]);
    wait_until("the server", DEADLINE, || UnixStream::connect(&socket).is_ok());
    let mode = fs::metadata(&socket).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = sandbox.ralph(&["serve", "--socket", &path]).exits_with(1);
    assert!(second.stderr.contains("another server listens on"), "{second:?}");
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.finish().exit(), 0);
    assert!(!socket.exists());
    fs::write(&socket, "text").expect("a file");
    sandbox.ralph(&["serve", "--socket", &path]).exits_with(1);
    assert_eq!(fs::read_to_string(&socket).expect("the file"), "text");
}
