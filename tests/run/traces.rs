//! Spans that a run sends to an OpenTelemetry collector.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use crate::sandbox::{DEADLINE, Sandbox};

/// A collector that accepts every request, and sends the bodies with the heads to the test.
fn collector() -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut bytes = Vec::new();
            let mut chunk = [0; 4096];
            let (head, body) = loop {
                let count = stream.read(&mut chunk).expect("a request");
                bytes.extend_from_slice(&chunk[..count]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    continue;
                };
                let length = head
                    .split("Content-Length: ")
                    .nth(1)
                    .and_then(|rest| rest.lines().next());
                if body.len() == length.and_then(|length| length.parse().ok()).unwrap_or(0) {
                    break (head.to_owned(), body.to_owned());
                }
            };
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
            let body = serde_json::from_str(&body).expect("JSON");
            if sender.send((head, body)).is_err() {
                return;
            }
        }
    });
    (endpoint, requests)
}

fn spans(request: &Value) -> Vec<Value> {
    let spans = &request["resourceSpans"][0]["scopeSpans"][0]["spans"];
    spans.as_array().cloned().unwrap_or_default()
}

#[test]
fn spans_of_a_run_are_sent_while_it_continues_and_at_its_end() {
    let (endpoint, requests) = collector();
    let sandbox = Sandbox::scripted(
        "say hello\nsay LOOP_COMPLETE",
        "event_loop: {prompt: x}\ngates: [{name: tests, run: 'true'}]\n",
    );
    let output = sandbox
        .command(&["run", "-q"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-team=a%20b")
        .status()
        .expect("ralph runs");
    assert!(output.success());
    let mut all: Vec<Value> = Vec::new();
    while !all.iter().any(|span| span["parentSpanId"].is_null()) {
        let (head, body) = requests.recv_timeout(DEADLINE).expect("the span of the run");
        assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
        assert!(head.contains("x-team: a b"), "{head}");
        all.extend(spans(&body));
    }
    for name in ["ralph run", "iteration 1", "invoke_agent", "gate tests"] {
        let found = all
            .iter()
            .filter(|span| span["name"].as_str().is_some_and(|span| span.starts_with(name)));
        assert_eq!(found.count(), 1, "{name}: {all:?}");
    }
    let parents: Vec<&Value> = all.iter().filter_map(|span| span.get("parentSpanId")).collect();
    assert!(
        parents
            .iter()
            .all(|parent| all.iter().any(|span| span["spanId"] == **parent)),
        "{all:?}"
    );
}

#[test]
fn a_collector_that_is_missing_or_unsupported_does_not_affect_the_run() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", "event_loop: {prompt: x}\n");
    for (endpoint, warning) in [
        ("http://127.0.0.1:1", ""),
        ("https://collector.example", "only http:// is supported"),
    ] {
        let output = sandbox
            .command(&["run", "-q"])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
            .output()
            .expect("ralph runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert!(stderr.contains(warning), "{stderr}");
    }
}
