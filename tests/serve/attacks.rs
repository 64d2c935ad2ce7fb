//! Attacks from other pages, from other programs and from the output of agents.

use std::io::{Read, Write};
use std::time::Duration;

use super::client::Server;
use super::{SETTINGS, block_text, completed_run};
use crate::sandbox::Sandbox;

#[test]
fn only_a_signed_in_browser_reads() {
    let sandbox = completed_run();
    let mut server = Server::without_sign_in(&sandbox, &[]);
    let id = sandbox.run_id();
    let paths = [
        "/".to_owned(),
        "/runs/x".to_owned(),
        "/assets/app.js".to_owned(),
        "/metrics".to_owned(),
        "/api/v1/runs".to_owned(),
        "/api/v1/server".to_owned(),
        "/api/v1/openapi.json".to_owned(),
        format!("/api/v1/runs/{id}/events"),
        format!("/api/v1/runs/{id}/page"),
    ];
    for path in &paths {
        let response = server.get(path);
        assert_eq!(response.status, 401, "{path}: {response:?}");
        assert!(!response.body.contains(&id), "{path}");
    }
    for cookie in [
        "ralph=x".to_owned(),
        format!("ralph_{}=", server.port),
        format!("ralph_{}={}", server.port, "0".repeat(64)),
    ] {
        server.cookie = cookie;
        assert_eq!(server.get("/api/v1/runs").status, 401);
    }
    let wrong = server.send(&format!(
        "GET /?token={} HTTP/1.1\r\n{}",
        "0".repeat(64),
        server.host()
    ));
    assert_eq!((wrong.status, wrong.cookie()), (401, None));
}

#[test]
fn sign_in_address_works_once_and_the_next_one_is_printed() {
    let sandbox = Sandbox::new();
    let mut server = Server::start(&sandbox, &[]);
    let used = server.sign_in.split_once('/').expect("a path").1.to_owned();
    let again = server.send(&format!("GET /{used} HTTP/1.1\r\n{}", server.host()));
    assert_eq!((again.status, again.cookie()), (401, None));
    server.next_line();
    let next = server.next_line();
    assert!(
        next.starts_with("To sign in with another browser: http://localhost:"),
        "{next}"
    );
    assert!(!next.contains(&used));
}

#[test]
fn other_hosts_and_origins_are_refused() {
    let sandbox = completed_run();
    let server = Server::start(&sandbox, &["--steer"]);
    let (cookie, port) = (&server.cookie, server.port);
    let get = |headers: &str| {
        server
            .send(&format!(
                "GET /api/v1/runs HTTP/1.1\r\n{headers}Cookie: {cookie}\r\n"
            ))
            .status
    };
    assert_eq!(get(&server.host()), 200);
    assert_eq!(get("Host: evil.example\r\n"), 421, "DNS rebinding");
    assert_eq!(get(&format!("Host: evil.example:{port}\r\n")), 421);
    assert_eq!(
        get(&format!("{}Sec-Fetch-Site: cross-site\r\n", server.host())),
        403
    );
    let path = format!("/api/v1/runs/{}/commands", sandbox.run_id());
    let json = "Content-Type: application/json\r\n";
    let own = format!("Origin: http://localhost:{port}\r\n");
    let body = r#"{"kind": "pause"}"#;
    let post = |headers: &str| server.post_with(&path, body, headers).status;
    assert_eq!(
        post(&format!("{own}{json}")),
        409,
        "accepted, but the run has ended"
    );
    for headers in [
        json.to_owned(),
        format!("Origin: https://evil.example\r\n{json}"),
        format!("Origin: null\r\n{json}"),
        format!("Origin: http://localhost:{}\r\n{json}", port.wrapping_add(1)),
    ] {
        assert_eq!(post(&headers), 403, "{headers}");
    }
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ] {
        assert_eq!(post(&format!("{own}Content-Type: {kind}\r\n")), 415, "{kind}");
    }
    assert_eq!(post(&own), 415);
}

#[test]
fn a_server_without_steering_changes_nothing() {
    let sandbox = Sandbox::scripted("say one\nwait-for go\nsay LOOP_COMPLETE", SETTINGS);
    let run = sandbox.start(&["run", "-q"]);
    sandbox.wait_for_event("the agent", |event| format!("{event:?}").contains("\"one\""));
    let server = Server::start(&sandbox, &[]);
    let path = format!("/api/v1/runs/{}", sandbox.run_id());
    for (action, body) in [("commands", r#"{"kind": "stop"}"#), ("continue", "{}")] {
        let response = server.post(&format!("{path}/{action}"), body);
        assert_eq!(response.status, 403, "{response:?}");
        assert!(response.body.contains("--steer"));
    }
    assert!(!sandbox.only_run().join("inbox").exists());
    drop(run);
}

#[test]
fn paths_methods_and_malformed_requests_lead_nowhere() {
    let sandbox = completed_run();
    let server = Server::start(&sandbox, &["--steer"]);
    let id = sandbox.run_id();
    for path in [
        "/assets/../Cargo.toml",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/api/v1/runs/..%2f..%2f",
        "/api/v1/runs/%2e%2e/records",
        "/api/v1/runs//records",
        "/api/v1/runs/20261115",
        "/api/v1/runs/latest",
        &format!("/api/v1/runs/{id}%00/records"),
        &format!("/api/v1/runs/{id}/iterations/..%2f..%2f1/attempts/1/prompt"),
        &format!("/api/v1/runs/{id}/iterations/-1/attempts/1/prompt"),
    ] {
        let status = server.get(path).status;
        assert!([400, 404].contains(&status), "{path}: {status}");
    }
    for method in ["TRACE", "PUT", "DELETE", "PATCH", "CONNECT"] {
        let request = format!(
            "{method} /api/v1/runs HTTP/1.1\r\n{}Cookie: {}\r\nOrigin: http://localhost:{}\r\nContent-Type: application/json\r\n",
            server.host(),
            server.cookie,
            server.port
        );
        let response = server.send(&request);
        assert!(
            [400, 403, 404, 405, 421].contains(&response.status),
            "{method}: {response:?}"
        );
        assert!(!response.body.contains(&server.cookie), "{method} echoes nothing");
    }
    let upgrade = server.send(&format!(
        "GET /api/v1/runs HTTP/1.1\r\n{}Cookie: {}\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n",
        server.host(),
        server.cookie
    ));
    assert_ne!(upgrade.status, 101);
}

#[test]
fn oversized_and_ambiguous_requests_are_refused() {
    let sandbox = completed_run();
    let server = Server::start(&sandbox, &["--steer"]);
    let host = server.host();
    let header = format!("GET / HTTP/1.1\r\n{host}X: {}\r\n", "a".repeat(1 << 20));
    let status = server.send(&header).status;
    assert!([0, 400, 431].contains(&status), "a header of 1 MB: {status}");
    let headers: String = (0..500).map(|n| format!("X-{n}: a\r\n")).collect();
    let status = server.send(&format!("GET / HTTP/1.1\r\n{host}{headers}")).status;
    assert!([0, 400, 431].contains(&status), "500 headers: {status}");
    let path = format!("/api/v1/runs/{}/commands", sandbox.run_id());
    let body = format!(r#"{{"kind": "message", "text": "{}"}}"#, "a".repeat(1 << 20));
    let status = server.post(&path, &body).status;
    assert!([0, 413].contains(&status), "a body of 1 MB: {status}");
    // Two lengths, or a length and chunks: the second request must not be answered.
    for smuggled in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
    ] {
        let request = format!(
            "POST {path} HTTP/1.1\r\n{host}Cookie: {}\r\n{smuggled}\r\n0\r\n\r\nGET /api/v1/runs HTTP/1.1\r\n{host}Cookie: {}\r\n\r\n",
            server.cookie, server.cookie
        );
        let response = server.send_bytes(request.as_bytes());
        assert!(!response.body.contains("\"runs\""), "{smuggled}: {response:?}");
    }
    assert_eq!(
        server.get("/api/v1/server").status,
        200,
        "the server still answers"
    );
}

#[test]
fn a_slow_client_is_disconnected_and_delays_no_other() {
    let sandbox = completed_run();
    let server = Server::start(&sandbox, &[]);
    let mut slow = server.connect();
    slow.write_all(b"GET / HT").expect("a part of a request");
    assert_eq!(server.get("/api/v1/server").status, 200);
    slow.set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a timeout");
    let mut answer = Vec::new();
    // The server closes the connection, with or without an answer.
    let _ = slow.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("200"));
}

#[test]
fn output_of_an_agent_is_never_markup() {
    let hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>[x](javascript:alert(3))";
    let sandbox = Sandbox::scripted(
        &format!("say {hostile}\nerr {hostile}\nsay LOOP_COMPLETE"),
        &format!(
            "event_loop: {{prompt: '{hostile}', max_iterations: 1}}\ngates: [{{name: '<b>g</b>', run: 'echo \"<script>\"; false'}}]\n"
        ),
    );
    sandbox.ralph(&["run", "-q"]).exits_with(3);
    let server = Server::start(&sandbox, &[]);
    let path = format!("/api/v1/runs/{}/page", sandbox.run_id());
    let html = block_text(&server.events(&path, "").next_named("blocks").data);
    assert!(html.contains("&lt;img src=x"), "{html}");
    for markup in ["<img", "<script", "href=\"javascript", "<b>g"] {
        assert!(!html.contains(markup), "{markup}: {html}");
    }
    let page = server.get("/");
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "x-content-type-options: nosniff",
        "x-frame-options: DENY",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(page.head.contains(header), "{header}: {}", page.head);
    }
    let prompt = server.get(&format!(
        "/api/v1/runs/{}/iterations/1/attempts/1/prompt",
        sandbox.run_id()
    ));
    assert!(
        prompt.head.contains("content-type: text/plain"),
        "{}",
        prompt.head
    );
}
