//! Built-in notifications, received by a server on loopback.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use super::server::{Received, Server};
use crate::process::helpers::wait_until;
use crate::sandbox::{DEADLINE, Sandbox};

/// A run whose notifications go to the server; `None` if curl is not installed.
fn notified(server: &Server, script: &str, more: &str) -> Option<Sandbox> {
    let curl = which::which("curl").ok()?;
    let sandbox = Sandbox::scripted(script, "");
    symlink(curl, sandbox.path("bin").join("curl")).expect("curl on the PATH");
    let url = server.url();
    sandbox.configure(&format!(
        "notify: {{ntfy: \"{url}/topic\", webhook: \"{url}/hook\"}}\n{more}"
    ));
    Some(sandbox)
}

fn to(server: &Server, path: &str) -> Vec<Received> {
    let requests = server.requests().into_iter();
    requests.filter(|request| request.path == path).collect()
}

#[test]
fn the_end_of_a_run_is_announced_in_one_sentence() {
    let server = Server::start(|_| String::new());
    let Some(sandbox) = notified(
        &server,
        "say LOOP_COMPLETE\n",
        "gates: [{name: tests, run: 'true'}]\nevent_loop: {max_consecutive_failures: 1}\n",
    ) else {
        return;
    };
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let ntfy = to(&server, "/topic");
    assert_eq!(ntfy.len(), 1, "{:?}", server.requests());
    assert!(
        ntfy[0]
            .body
            .starts_with("work: Done. All gates passed (tests). 1 iteration, "),
        "{}",
        ntfy[0].body
    );
    assert!(
        ntfy[0].has("Title: ralph: work") && ntfy[0].has("Tags: white_check_mark"),
        "{:?}",
        ntfy[0].headers
    );
    let hooks = to(&server, "/hook");
    let document: Value = serde_json::from_str(&hooks[0].body).expect("a JSON document");
    assert_eq!(
        (&document["event"], &document["project"]),
        (&"done".into(), &"work".into())
    );
    assert_eq!(document["text"], ntfy[0].body);
    assert!(
        hooks[0].has("Content-Type: application/json"),
        "{:?}",
        hooks[0].headers
    );
    sandbox.script("default", "say no\nexit 1\n");
    sandbox.ralph(&["run", "-p", "x"]).exits_with(1);
    let failed = to(&server, "/topic");
    assert!(
        failed
            .last()
            .is_some_and(|request| request.body.starts_with("work: ")),
        "{failed:?}"
    );
}

#[test]
fn only_the_configured_events_are_announced_and_a_server_that_is_down_is_a_notice() {
    let server = Server::start(|_| String::new());
    let Some(sandbox) = notified(&server, "say LOOP_COMPLETE\n", "") else {
        return;
    };
    let address = super::server::unreachable_url();
    sandbox.configure(&format!("notify: {{ntfy: \"{address}\", on: [failed]}}\n"));
    let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    assert!(!output.text().contains("ntfy"), "{output:?}");
    sandbox.configure(&format!(
        "notify: {{ntfy: \"{address}\", on: [done]}}\nhooks: {{timeout: 20s}}\n"
    ));
    let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    assert!(
        output
            .text()
            .contains("the notification by ntfy failed with exit code 7: curl: "),
        "{output:?}"
    );
}

#[test]
fn a_question_at_night_is_announced_and_its_answer_arrives_exactly_once() {
    let server = Server::start(|_| String::new());
    let asks = "read-stdin\nsay <event topic=\"ask\">SQLite or PostgreSQL?</event>\n";
    let Some(sandbox) = notified(
        &server,
        "read-stdin\nsay LOOP_COMPLETE\n",
        "event_loop: {max_iterations: 3}\n",
    ) else {
        return;
    };
    sandbox.script("1", asks);
    sandbox.script("2", "read-stdin\nsay more to do\n");
    let run = sandbox.start(&["run", "-p", "Build it."]);
    wait_until("the notification", DEADLINE, || !to(&server, "/topic").is_empty());
    assert_eq!(
        to(&server, "/topic")[0].body,
        "work: The agent asks: SQLite or PostgreSQL?"
    );
    run.kill();
    sandbox.ralph(&["tell", "--answer", "SQLite"]).exits_with(0);
    sandbox.ralph(&["run", "--continue"]).exits_with(0);
    assert!(
        sandbox.prompt(2).contains("The answer:\n\nSQLite\n"),
        "{}",
        sandbox.prompt(2)
    );
    assert!(!sandbox.prompt(3).contains("SQLite"));
    assert!(
        sandbox.prompt(1).contains("<event topic=\"TOPIC\">"),
        "the prompt explains how to ask"
    );
}

#[test]
fn the_desktop_shows_title_and_sentence() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE\n", "notify: {desktop: true}\n");
    let program = sandbox.path("bin").join("notify-send");
    let shown = sandbox.path("shown");
    let script = format!(
        "#!/bin/sh\nfor word; do echo \"$word\"; done > {}\n",
        shown.display()
    );
    fs::write(&program, script).expect("a program");
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    if cfg!(target_os = "macos") {
        return;
    }
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let shown = fs::read_to_string(shown).expect("the arguments");
    assert!(shown.contains("ralph: work\nwork: Done"), "{shown}");
}

#[test]
fn addresses_are_checked_and_those_of_a_repository_need_trust() {
    let sandbox = Sandbox::scripted("say x\n", "notify: {ntfy: 'ntfy.sh/topic'}\n");
    let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(2);
    assert!(
        output.stderr.contains("an address that starts with `https://`"),
        "{output:?}"
    );
}
