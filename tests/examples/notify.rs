//! The hooks that come as examples: they deliver, and a server that refuses or hangs does no harm.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::copied::{copied, put_on_path};
use crate::sandbox::{DEADLINE, Running, Sandbox, Told};

/// A request as it arrived.
struct Request {
    head: String,
    body: String,
}

impl Request {
    fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line.eq_ignore_ascii_case(header))
    }
}

/// What the server does with those who call.
#[derive(Clone, Copy)]
enum Manners {
    Answers(&'static str),
    /// Reads the request and never says a word.
    Hangs,
}

/// A web server on loopback, for as many requests as come within the deadline; they arrive at the other end.
fn serve(manners: Manners) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener
        .set_nonblocking(true)
        .expect("a listener that can be asked");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let until = Instant::now() + DEADLINE;
        let mut held = Vec::new();
        while Instant::now() < until {
            match listener.accept() {
                Ok((mut stream, _)) => {
                    let request = read(&mut stream);
                    match manners {
                        Manners::Answers(status) => {
                            let answer = format!(
                                "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                            );
                            let _ = stream.write_all(answer.as_bytes());
                        }
                        Manners::Hangs => held.push(stream),
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
    stream.set_nonblocking(false).expect("a stream that waits");
    stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
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
        match stream.read(&mut piece) {
            Ok(count @ 1..) => bytes.extend_from_slice(&piece[..count]),
            _ => panic!("half a request: {text}"),
        }
    }
}

/// The next request; the deadline ends the wait.
#[track_caller]
fn next(requests: &Receiver<Request>) -> Request {
    requests.recv_timeout(DEADLINE).expect("a request")
}

/// A user's project with the scripts in `notify`, and these hooks.
fn project(hooks: &str) -> Sandbox {
    let sandbox = copied("notify");
    let config = "cli: {backend: custom, command: sh, args: [agent.sh]}\nevent_loop: {prompt: x, max_consecutive_failures: 1}\n";
    fs::write(sandbox.work().join("ralph.yml"), format!("{config}{hooks}")).expect("a configuration");
    says(&sandbox, "echo LOOP_COMPLETE");
    sandbox
}

/// What the agent of the project does.
fn says(sandbox: &Sandbox, script: &str) {
    fs::write(sandbox.work().join("agent.sh"), script).expect("an agent");
}

fn run(sandbox: &Sandbox, environment: &[(&str, &str)]) -> Told {
    let mut command = sandbox.command(&["run"]);
    command.envs(environment.iter().copied());
    Running::start(&mut command).finish()
}

fn is_missing(tool: &str) -> bool {
    let missing = which::which(tool).is_err();
    if missing {
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no {tool} here");
    }
    missing
}

#[test]
fn webhook_posts_the_document_with_the_token() {
    if is_missing("curl") {
        return;
    }
    let (address, requests) = serve(Manners::Answers("204 No Content"));
    let sandbox = project(&format!("hooks: {{on_complete: ./webhook.sh {address}/ralph}}\n"));
    let told = run(&sandbox, &[("WEBHOOK_TOKEN", "hush-hush-42")]).exits_with(0);
    assert!(!told.text().contains("hook"), "nothing to complain of: {told:?}");
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
fn webhook_speaks_as_chat_services_want_it_whatever_the_agent_said() {
    if is_missing("curl") {
        return;
    }
    let (address, requests) = serve(Manners::Answers("200 OK"));
    let sandbox = project("hooks: {on_iteration: ./webhook.sh}\n");
    says(
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
        "what an agent says is never run"
    );
}

#[test]
fn ntfy_sends_the_sentence_with_its_title_and_priority() {
    if is_missing("curl") {
        return;
    }
    let (address, requests) = serve(Manners::Answers("200 OK"));
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
    let sentence = "Done, but unverified: no gates are configured. 1 iteration, ";
    assert!(request.body.starts_with(sentence), "{}", request.body);

    says(&sandbox, "exit 3");
    run(&sandbox, &settings).exits_with(1);
    let request = next(&requests);
    assert!(request.has("priority: high"), "{}", request.head);
    assert!(request.body.starts_with("Failed: "), "{}", request.body);
}

#[test]
fn a_server_that_refuses_fails_or_hangs_does_not_harm_the_run() {
    if is_missing("curl") {
        return;
    }
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", listener.local_addr().expect("its address"))
    };
    let (failing, _failed) = serve(Manners::Answers("500 Internal Server Error"));
    let (hanging, held) = serve(Manners::Hangs);
    let hooks = "hooks:\n  on_start: ./webhook.sh\n  on_iteration: NTFY_TOPIC=x ./ntfy.sh\n  on_complete: ./webhook.sh\n";
    for address in [&nobody, &failing, &hanging] {
        let sandbox = project(hooks);
        let settings = [
            ("WEBHOOK_URL", address.as_str()),
            ("NTFY_SERVER", address.as_str()),
            ("WEBHOOK_TIMEOUT", "1"),
            ("NTFY_TIMEOUT", "1"),
        ];
        let since = Instant::now();
        let told = run(&sandbox, &settings).exits_with(0);
        assert!(since.elapsed() < Duration::from_secs(30), "{told:?}");
        assert!(
            !told.text().contains("the hook"),
            "they fail in silence: {told:?}"
        );
    }
    assert_eq!(held.try_iter().count(), 3, "the hanging server was asked");

    // A script that has more patience than ralph is ended by it.
    let sandbox = project("hooks: {timeout: 1, on_complete: ./webhook.sh}\n");
    let told = run(&sandbox, &[("WEBHOOK_URL", &hanging)]).exits_with(0);
    assert!(
        told.text().contains("the hook on_complete was stopped after 1 s"),
        "{told:?}"
    );
}

#[test]
fn desktop_shows_the_sentence_and_does_without_a_desktop() {
    let sandbox = project("hooks: {on_complete: ./desktop.sh, on_fail: ./desktop.sh}\n");
    let told = run(&sandbox, &[]).exits_with(0);
    assert!(!told.text().contains("the hook"), "no desktop, no harm: {told:?}");

    let stub = sandbox.path("notify-send");
    fs::write(
        &stub,
        "#!/bin/sh\nfor word; do echo \"$word\"; done >>\"$HOME/shown\"\n",
    )
    .expect("a stub");
    make_executable(&stub);
    put_on_path(&sandbox, "notify-send", &stub);
    says(&sandbox, "exit 3");
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
