//! Sends the spans of a run to an OpenTelemetry collector while the run continues: OTLP over HTTP, as JSON. A collector that does not
//! answer never holds up the run.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::event::{Record, Sink};
use crate::ui::FrontEnd;
use crate::ui::export::Spans;

/// Spans are sent when this many have ended, or after this time.
const BATCH_SPANS: usize = 64;
const INTERVAL: Duration = Duration::from_secs(2);
/// The wait after a request that failed.
const RETRY: Duration = Duration::from_secs(30);
/// Requests that could not be sent are kept up to this size; later spans are dropped.
const MAX_KEPT_BYTES: usize = 4 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const TRACES_PATH: &str = "/v1/traces";

/// Why spans cannot be sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceExportError {
    #[error(
        "cannot send traces to {endpoint}: only http:// is supported, for example of a collector on this machine"
    )]
    NotHttp { endpoint: String },
    #[error("cannot send traces with OTEL_EXPORTER_OTLP_PROTOCOL={protocol}: only http/json is supported")]
    Protocol { protocol: String },
}

/// Where spans are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Collector {
    /// Host and port.
    authority: String,
    path: String,
    headers: Vec<(String, String)>,
}

/// A front end that sends spans.
pub struct TraceExport {
    collector: Collector,
    spans: Spans,
    /// Requests that have not been sent yet.
    unsent: Vec<Vec<u8>>,
    next_request: Instant,
}

impl TraceExport {
    /// The export that the standard variables of OpenTelemetry configure; `None` without an endpoint.
    pub fn from_env(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, TraceExportError> {
        let collector = Collector::from_env(variable)?;
        Ok(collector.map(|collector| Self {
            collector,
            spans: Spans::new(""),
            unsent: Vec::new(),
            next_request: Instant::now(),
        }))
    }

    fn send(&mut self) {
        if self.spans.ended() > 0 {
            let kept: usize = self.unsent.iter().map(Vec::len).sum();
            let request = serde_json::to_vec(&self.spans.take()).unwrap_or_default();
            if kept + request.len() <= MAX_KEPT_BYTES {
                self.unsent.push(request);
            }
        }
        while let Some(request) = self.unsent.first() {
            match self.collector.post(request) {
                Ok(()) => drop(self.unsent.remove(0)),
                Err(error) => {
                    tracing::warn!(%error, collector = self.collector.authority, "cannot send traces");
                    self.next_request = Instant::now() + RETRY;
                    return;
                }
            }
        }
        self.next_request = Instant::now() + INTERVAL;
    }
}

impl Sink for TraceExport {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        self.spans.apply(record);
        if self.spans.ended() >= BATCH_SPANS && Instant::now() >= self.next_request {
            self.send();
        }
        Ok(())
    }
}

impl FrontEnd for TraceExport {
    fn tick(&mut self, _now: Timestamp) -> io::Result<()> {
        if Instant::now() >= self.next_request && (self.spans.ended() > 0 || !self.unsent.is_empty()) {
            self.send();
        }
        Ok(())
    }

    fn next_tick(&self) -> Option<Duration> {
        Some(INTERVAL)
    }

    fn finish(&mut self) {
        self.spans.end();
        self.send();
    }
}

impl Collector {
    fn from_env(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, TraceExportError> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        if set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let complete = set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let base = || {
            set("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| base.trim_end_matches('/').to_owned() + TRACES_PATH)
        };
        let Some(endpoint) = complete.or_else(base) else {
            return Ok(None);
        };
        let protocol =
            set("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL").or_else(|| set("OTEL_EXPORTER_OTLP_PROTOCOL"));
        if let Some(protocol) = protocol.filter(|protocol| !protocol.starts_with("http/")) {
            return Err(TraceExportError::Protocol { protocol });
        }
        let not_http = || TraceExportError::NotHttp {
            endpoint: endpoint.clone(),
        };
        let rest = endpoint.strip_prefix("http://").ok_or_else(not_http)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let is_clean = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let path = if path.is_empty() { "/" } else { path };
        if !is_clean(authority) || authority.contains('@') || !is_clean(path) {
            return Err(not_http());
        }
        let headers = set("OTEL_EXPORTER_OTLP_TRACES_HEADERS").or_else(|| set("OTEL_EXPORTER_OTLP_HEADERS"));
        Ok(Some(Self {
            authority: authority.to_owned(),
            path: path.to_owned(),
            headers: headers.map(|list| parse_headers(&list)).unwrap_or_default(),
        }))
    }

    fn post(&self, body: &[u8]) -> io::Result<()> {
        let mut stream = self.connect()?;
        stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
        stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n",
            self.path,
            self.authority,
            body.len(),
            headers.collect::<String>()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        let status = String::from_utf8_lossy(&status).into_owned();
        match status.split(' ').nth(1) {
            Some(code) if code.starts_with('2') => Ok(()),
            _ => Err(io::Error::other(format!("the collector answered {status}"))),
        }
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let has_port = self
            .authority
            .rsplit(':')
            .next()
            .is_some_and(|port| port.parse::<u16>().is_ok());
        let authority = match has_port {
            true => self.authority.clone(),
            false => format!("{}:80", self.authority),
        };
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in authority.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Parses `name=value,name=value`. A header that HTTP does not allow is left out.
fn parse_headers(list: &str) -> Vec<(String, String)> {
    let pairs = list.split(',').filter_map(|pair| pair.split_once('='));
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let is_value = |value: &str| value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    pairs
        .map(|(name, value)| (name.trim().to_owned(), percent_decoded(value.trim())))
        .filter(|(name, value)| is_name(name) && is_value(value))
        .collect()
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector(variables: &[(&str, &str)]) -> Result<Option<Collector>, TraceExportError> {
        Collector::from_env(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn standard_variables_configure_the_collector() {
        assert_eq!(collector(&[]), Ok(None));
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/");
        let found = collector(&[
            endpoint,
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b,bad name=1,y=c\u{1}"),
        ])
        .unwrap()
        .unwrap();
        assert_eq!(
            (found.authority.as_str(), found.path.as_str()),
            ("localhost:4318", "/v1/traces")
        );
        assert_eq!(found.headers, [("x-key".to_owned(), "a b".to_owned())]);
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector:9/own");
        assert_eq!(collector(&[endpoint, own]).unwrap().unwrap().path, "/own");
        assert_eq!(collector(&[endpoint, ("OTEL_SDK_DISABLED", "true")]), Ok(None));
    }

    #[test]
    fn unsupported_endpoints_are_reported() {
        for endpoint in [
            "https://x:4318",
            "localhost:4317",
            "http://",
            "http://a b/",
            "http://u:p@host/",
        ] {
            let error = collector(&[("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)]).unwrap_err();
            assert!(error.to_string().contains("only http://"), "{endpoint}");
        }
        let grpc = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://x:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ];
        assert!(matches!(collector(&grpc), Err(TraceExportError::Protocol { .. })));
    }
}
