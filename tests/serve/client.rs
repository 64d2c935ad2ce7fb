//! A server under test, and an HTTP client that sends exactly the bytes that a test specifies.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command};

use serde_json::Value;

use crate::sandbox::{DEADLINE, Sandbox};

/// A running `ralph serve`; dropping it kills it.
pub(super) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(super) port: u16,
    pub(super) sign_in: String,
    pub(super) cookie: String,
}

/// A response with its head as text.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Server {
    /// Starts a server on a free port and signs in.
    pub(super) fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut server = Self::without_sign_in(sandbox, arguments);
        let token = server.sign_in.split_once('/').expect("a path").1.to_owned();
        let response = server.send(&format!("GET /{token} HTTP/1.1\r\n{}", server.host()));
        assert_eq!(response.status, 200, "{response:?}");
        server.cookie = response.cookie().expect("a cookie");
        server
    }

    pub(super) fn without_sign_in(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command: Command = sandbox.command(&["serve", "--port", "0"]);
        command.args(arguments);
        Self::spawn(command, "http://localhost:")
    }

    /// Starts a server that only answers encrypted requests.
    pub(super) fn encrypted(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = sandbox.command(&["serve"]);
        command.args(arguments);
        Self::spawn(command, "https://127.0.0.1:")
    }

    fn spawn(mut command: Command, origin: &str) -> Self {
        let mut child = command.spawn().expect("ralph serve starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let line = next_line(&mut stdout);
        let address = line
            .strip_prefix("Open ")
            .and_then(|line| line.strip_prefix(origin));
        let address = address.expect("the address");
        let (port, _) = address.split_once('/').expect("a port");
        Self {
            port: port.parse().expect("a port"),
            sign_in: address.trim().to_owned(),
            child,
            stdout,
            cookie: String::new(),
        }
    }

    /// Returns the next line that the server prints.
    pub(super) fn next_line(&mut self) -> String {
        next_line(&mut self.stdout)
    }

    pub(super) fn host(&self) -> String {
        format!("Host: localhost:{}\r\n", self.port)
    }

    pub(super) fn get(&self, path: &str) -> Response {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\n{}Cookie: {}\r\n",
            self.host(),
            self.cookie
        ))
    }

    #[track_caller]
    pub(super) fn json(&self, path: &str) -> Value {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {response:?}");
        serde_json::from_str(&response.body).expect("JSON")
    }

    /// Sends a change as the page does.
    pub(super) fn post(&self, path: &str, body: &str) -> Response {
        let port = self.port;
        self.post_with(
            path,
            body,
            &format!("Origin: http://localhost:{port}\r\nContent-Type: application/json\r\n"),
        )
    }

    pub(super) fn post_with(&self, path: &str, body: &str, headers: &str) -> Response {
        let (host, cookie, length) = (self.host(), &self.cookie, body.len());
        self.send(&format!(
            "POST {path} HTTP/1.1\r\n{host}Cookie: {cookie}\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        ))
    }

    /// Sends a request head, or a head and a body, and reads the response to its end.
    pub(super) fn send(&self, request: &str) -> Response {
        let end = if request.contains("\r\n\r\n") { "" } else { "\r\n" };
        let (head, body) = request.split_once("\r\n\r\n").unwrap_or((request, ""));
        let text = match end {
            "" => format!("{head}\r\nConnection: close\r\n\r\n{body}"),
            _ => format!("{request}Connection: close\r\n\r\n"),
        };
        self.send_bytes(text.as_bytes())
    }

    pub(super) fn send_bytes(&self, bytes: &[u8]) -> Response {
        let mut stream = self.connect();
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut text = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            match stream.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => text.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("no response within the deadline: {error}"),
            }
        }
        Response::parse(&String::from_utf8_lossy(&text))
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream
    }

    /// Opens an event stream.
    pub(super) fn events(&self, path: &str, headers: &str) -> EventStream {
        let mut stream = self.connect();
        let request = format!(
            "GET {path} HTTP/1.1\r\n{}Cookie: {}\r\n{headers}\r\n",
            self.host(),
            self.cookie
        );
        stream.write_all(request.as_bytes()).expect("a request");
        EventStream {
            reader: BufReader::new(stream),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Server-sent events of a response in chunks.
pub(super) struct EventStream {
    reader: BufReader<TcpStream>,
}

/// One event.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) data: Value,
}

impl EventStream {
    /// Returns the next event.
    pub(super) fn next(&mut self) -> Event {
        let (mut id, mut name) = (0, String::new());
        loop {
            let mut line = String::new();
            let count = self
                .reader
                .read_line(&mut line)
                .expect("an event within the deadline");
            assert!(count > 0, "the stream ended");
            // Lines between events, such as the sizes of chunks, have no field name.
            let Some((field, value)) = line.trim_end().split_once(": ") else {
                continue;
            };
            match field {
                "id" => id = value.parse().expect("a number"),
                "event" => value.clone_into(&mut name),
                "data" => {
                    let data = serde_json::from_str(value).expect("JSON");
                    return Event { id, name, data };
                }
                _ => {}
            }
        }
    }

    pub(super) fn next_named(&mut self, name: &str) -> Event {
        loop {
            let event = self.next();
            if event.name == name {
                return event;
            }
        }
    }
}

impl Response {
    pub(super) fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Self {
            status: status.unwrap_or(0),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    pub(super) fn cookie(&self) -> Option<String> {
        let line = self
            .head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "))?;
        Some(line.split(';').next().unwrap_or_default().to_owned())
    }
}

fn next_line(stdout: &mut impl BufRead) -> String {
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line");
    assert!(!line.is_empty(), "ralph serve ended");
    line
}
