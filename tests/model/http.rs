//! The subset of HTTP/1.1 that the agent programs use.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;

use serde_json::Value;

use super::POLL_INTERVAL;

pub(super) struct Request {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    body: Vec<u8>,
}

impl Request {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub(super) fn body_bytes(&self) -> usize {
        self.body.len()
    }
}

pub(super) struct Connection {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            writer: stream.try_clone()?,
            reader: BufReader::with_capacity(1 << 16, stream),
        })
    }

    /// Returns the next request, or `None` when the client closed the connection.
    pub(super) fn request(&mut self) -> io::Result<Option<Request>> {
        let first = self.line()?;
        let mut parts = first.split_whitespace();
        let (Some(method), Some(target)) = (parts.next(), parts.next()) else {
            return Ok(None);
        };
        let (mut length, mut chunked, mut expects_continue) = (0, false, false);
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(io::Error::other)?,
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "expect" => expects_continue = true,
                _ => {}
            }
        }
        if expects_continue {
            self.writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = if chunked {
            self.chunks()?
        } else {
            self.exactly(length)?
        };
        Ok(Some(Request {
            method: method.to_owned(),
            path: target.split('?').next().unwrap_or_default().to_owned(),
            body,
        }))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        Ok(body)
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = line.split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
            body.extend(self.exactly(size)?);
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    pub(super) fn json(
        &mut self,
        status: u16,
        headers: &[(String, String)],
        value: &Value,
    ) -> io::Result<()> {
        let body = value.to_string();
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let head = format!(
            "HTTP/1.1 {status} Answer\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n",
            body.len()
        );
        self.writer.write_all(head.as_bytes())?;
        self.writer.write_all(body.as_bytes())
    }

    pub(super) fn begin_events(&mut self) -> io::Result<()> {
        self.writer.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n\
              Transfer-Encoding: chunked\r\n\r\n",
        )
    }

    pub(super) fn event(&mut self, name: &str, data: &Value) -> io::Result<()> {
        self.chunk(&format!("event: {name}\ndata: {data}\n\n"))
    }

    pub(super) fn data(&mut self, data: &str) -> io::Result<()> {
        self.chunk(&format!("data: {data}\n\n"))
    }

    fn chunk(&mut self, text: &str) -> io::Result<()> {
        let framed = format!("{:x}\r\n{text}\r\n", text.len());
        self.writer.write_all(framed.as_bytes())
    }

    pub(super) fn end_events(&mut self) -> io::Result<()> {
        self.writer.write_all(b"0\r\n\r\n")
    }

    /// Sends nothing until the server closes, then aborts the connection.
    pub(super) fn hang(&mut self, mut open: impl FnMut() -> bool) -> io::Result<()> {
        while open() {
            thread::sleep(POLL_INTERVAL);
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}
