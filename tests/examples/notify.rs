//! Tests of the example hooks: they deliver notifications, and a failing server does not affect the run.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::copy::{copy_example, put_on_path};
use crate::sandbox::{CommandOutput, DEADLINE, Running, Sandbox};

/// A received HTTP request.
struct Request {
    head: String,
    body: String,
}

impl Request {
    fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line.eq_ignore_ascii_case(header))
    }
}

/// How the server responds.
#[derive(Clone, Copy)]
enum ServerBehavior {
    Answers(&'static str),
    /// Reads the request and never responds.
    Hangs,
}

/// Starts an HTTP server on loopback until the deadline; requests are sent to the receiver.
fn serve(behavior: ServerBehavior) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a non-blocking listener");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let until = Instant::now() + DEADLINE;
        let mut held = Vec::new();
        while Instant::now() < until {
            match listener.accept() {
                Ok((mut stream, _)) => {
                    let request = read(&mut stream);
                    match behavior {
                        ServerBehavior::Answers(status) => {
                            let response = format!(
                                "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                            );
                            let _ = stream.write_all(response.as_bytes());
                        }
                        ServerBehavior::Hangs => held.push(stream),
                    }
                    if sender.send(request).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    thread::sleep(Duration::from_millis(5));
                }
                Err(_) => return,
            }
        }
    });
    (address, receiver)
}

fn read(stream: &mut TcpStream) -> Request {
    stream.set_nonblocking(false).expect("a blocking stream");
    stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                let is_length = name.eq_ignore_ascii_case("content-length");
                is_length.then(|| value.parse().ok()).flatten()
            });
            if body.len() >= length.unwrap_or(0) {
                let (head, body) = (head.to_owned(), body.to_owned());
                return Request { head, body };
            }
        }
        match stream.read(&mut chunk) {
            Ok(count @ 1..) => bytes.extend_from_slice(&chunk[..count]),
            _ => panic!("incomplete request: {text}"),
        }
    }
}

/// Waits for the next request, until the deadline.
#[track_caller]
fn next(requests: &Receiver<Request>) -> Request {
    requests.recv_timeout(DEADLINE).expect("a request")
}

/// Creates a project with the scripts of `notify` and the given hooks.
fn project(hooks: &str) -> Sandbox {
    let sandbox = copy_example("notify");
    let config = "cli: {backend: custom, command: sh, args: [agent.sh]}\nevent_loop: {prompt: x, max_consecutive_failures: 1}\n";
    fs::write(sandbox.work().join("ralph.yml"), format!("{config}{hooks}")).expect("a configuration");
    set_agent_script(&sandbox, "echo LOOP_COMPLETE");
    sandbox
}

/// Replaces the script of the project's agent.
fn set_agent_script(sandbox: &Sandbox, script: &str) {
    fs::write(sandbox.work().join("agent.sh"), script).expect("an agent");
}

fn run(sandbox: &Sandbox, environment: &[(&str, &str)]) -> CommandOutput {
    let mut command = sandbox.command(&["run"]);
    command.envs(environment.iter().copied());
    Running::start(&mut command).finish()
}

#[track_caller]
fn is_missing(tool: &str) -> bool {
    let missing = which::which(tool).is_err();
    if missing {
        crate::sandbox::skip::skip(&format!("{tool} is not installed"));
    }
    missing
}

#[test]
fn webhook_posts_the_document_with_the_token() {
    if is_missing("curl") {
        return;
    }
    let (address, requests) = serve(ServerBehavior::Answers("204 No Content"));
    let sandbox = project(&format!("hooks: {{on_complete: ./webhook.sh {address}/ralph}}\n"));
    let output = run(&sandbox, &[("WEBHOOK_TOKEN", "hush-hush-42")]).exits_with(0);
    assert!(!output.text().contains("hook"), "no hook warnings: {output:?}");
    let request = next(&requests);
    assert!(
        request.head.starts_with("POST /ralph HTTP/1.1\r\n"),
        "{}",
        request.head
    );
    assert!(request.has("content-type: application/json"), "{}", request.head);
    assert!(
        request.has("authorization: bearer hush-hush-42"),
        "{}",
        request.head
    );
    let document: Value = serde_json::from_str(&request.body).expect("a document");
    assert_eq!(document["event"], "complete");
    assert_eq!(document["run_id"], sandbox.run_id());
    assert_eq!(document["record"]["iterations"], 1);
    assert!(requests.try_recv().is_err(), "one hook, one request");
}

#[test]
fn webhook_sends_the_chat_format_and_escapes_agent_text() {
    if is_missing("curl") {
        return;
    }
    let (address, requests) = serve(ServerBehavior::Answers("200 OK"));
    let sandbox = project("hooks: {on_iteration: ./webhook.sh}\n");
    set_agent_script(
        &sandbox,
        r#"echo 'it said "\ $(touch stolen) `touch stolen`' >&2; exit 3"#,
    );
    let settings = [("WEBHOOK_URL", address.as_str()), ("WEBHOOK_FORMAT", "text")];
    run(&sandbox, &settings).exits_with(1);
    let body: Value = serde_json::from_str(&next(&requests).body).expect("a document");
    let text = body["text"].as_str().expect("a text");
    assert!(text.starts_with("ralph: Iteration 1: failed: "), "{text}");
    assert!(
        text.ends_with(r#"it said "\ $(touch stolen) `touch stolen`"#),
        "{text}"
    );
    assert!(
        !sandbox.work().join("stolen").exists(),
        "agent text is never executed"
    );
}

#[test]
fn ntfy_sends_message_title_and_priority() {
    if is_missing("curl") {
        return;
    }
    let (address, requests) = serve(ServerBehavior::Answers("200 OK"));
    let sandbox =
        project("hooks: {on_complete: NTFY_TOPIC=night ./ntfy.sh, on_fail: NTFY_TOPIC=night ./ntfy.sh}\n");
    let settings = [("NTFY_SERVER", address.as_str()), ("NTFY_TOKEN", "tk_hush42")];
    run(&sandbox, &settings).exits_with(0);
    let request = next(&requests);
    assert!(request.head.starts_with("POST /night "), "{}", request.head);
    for header in [
        "title: ralph: complete",
        "priority: default",
        "authorization: bearer tk_hush42",
    ] {
        assert!(request.has(header), "{header}: {}", request.head);
    }
    let message = "Done, but unverified: no gates are configured. 1 iteration, ";
    assert!(request.body.starts_with(message), "{}", request.body);

    set_agent_script(&sandbox, "exit 3");
    run(&sandbox, &settings).exits_with(1);
    let request = next(&requests);
    assert!(request.has("priority: high"), "{}", request.head);
    assert!(request.body.starts_with("Failed: "), "{}", request.body);
}

#[test]
fn a_refusing_failing_or_hanging_server_does_not_affect_the_run() {
    if is_missing("curl") {
        return;
    }
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", listener.local_addr().expect("its address"))
    };
    let (failing, _failed) = serve(ServerBehavior::Answers("500 Internal Server Error"));
    let (hanging, held) = serve(ServerBehavior::Hangs);
    let hooks = "hooks:\n  on_start: ./webhook.sh\n  on_iteration: NTFY_TOPIC=x ./ntfy.sh\n  on_complete: ./webhook.sh\n";
    for address in [&closed, &failing, &hanging] {
        let sandbox = project(hooks);
        let settings = [
            ("WEBHOOK_URL", address.as_str()),
            ("NTFY_SERVER", address.as_str()),
            ("WEBHOOK_TIMEOUT", "1"),
            ("NTFY_TIMEOUT", "1"),
        ];
        let since = Instant::now();
        let output = run(&sandbox, &settings).exits_with(0);
        assert!(since.elapsed() < Duration::from_secs(30), "{output:?}");
        assert!(
            !output.text().contains("the hook"),
            "no hook warnings: {output:?}"
        );
    }
    assert_eq!(
        held.try_iter().count(),
        3,
        "the hanging server received all requests"
    );

    // A hook that exceeds its timeout is stopped.
    let sandbox = project("hooks: {timeout: 1, on_complete: ./webhook.sh}\n");
    let output = run(&sandbox, &[("WEBHOOK_URL", &hanging)]).exits_with(0);
    assert!(
        output
            .text()
            .contains("the hook on_complete was stopped after 1s"),
        "{output:?}"
    );
}

#[test]
fn desktop_shows_the_message_and_works_without_a_desktop() {
    let sandbox = project("hooks: {on_complete: ./desktop.sh, on_fail: ./desktop.sh}\n");
    let output = run(&sandbox, &[]).exits_with(0);
    assert!(
        !output.text().contains("the hook"),
        "no hook warnings: {output:?}"
    );

    let stub = sandbox.path("notify-send");
    fs::write(
        &stub,
        "#!/bin/sh\nfor word; do echo \"$word\"; done >>\"$HOME/shown\"\n",
    )
    .expect("a stub");
    make_executable(&stub);
    put_on_path(&sandbox, "notify-send", &stub);
    set_agent_script(&sandbox, "exit 3");
    run(&sandbox, &[]).exits_with(1);
    let shown = fs::read_to_string(sandbox.path("home").join("shown")).expect("a notification");
    let words: Vec<&str> = shown.lines().collect();
    assert_eq!(
        words[..4],
        ["--app-name=ralph", "--urgency=critical", "--", "ralph: fail"]
    );
    assert!(words[4].starts_with("Failed: the iteration failed"), "{shown}");
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
}
