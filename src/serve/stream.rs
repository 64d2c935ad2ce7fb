//! Server-sent events that follow the journal of a run. The journal is the buffer: a slow or late reader reads on where it was.

use std::convert::Infallible;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::Response;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;

use super::Server;
use super::response::{ApiError, ApiResult};
use super::run_files::FoundRun;
use crate::event::RunEvent;
use crate::run::{LiveState, OutcomeName, RunDetails, facts};
use crate::store::{JournalEntry, JournalTail, record_seq};
use crate::ui::export::{LiveBlocks, PageBlock};
use crate::ui::{RunSummary, Tone};

/// The size at which a chunk is sent.
const CHUNK_BYTES: usize = 256 * 1024;
/// Polling intervals of a journal, while it grows and while it does not.
const POLL_ACTIVE: Duration = Duration::from_millis(100);
const POLL_IDLE: Duration = Duration::from_millis(500);
/// A comment keeps proxies from closing a silent connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The facts of a run are sent at most this often while it runs.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(1);

/// Produces the next chunk of a stream on a blocking thread.
trait ChunkSource: Send + 'static {
    /// Returns server-sent events; empty if there is nothing new.
    fn next_chunk(&mut self) -> std::io::Result<Vec<u8>>;
}

/// Follows the records of a run: one event per record, whose id is its sequence number.
pub(super) fn records(run: &FoundRun, after: u64) -> ApiResult<Response<Body>> {
    let file = open(run)?;
    Ok(event_stream(RecordStream {
        reader: BufReader::with_capacity(1 << 16, file),
        line: Vec::new(),
        after,
    }))
}

/// Follows a run as the blocks of its page: `blocks` events with the changed blocks, whose id is the sequence number of the last
/// record in them, and `run` events with the facts of the run.
pub(super) fn page(server: &Arc<Server>, run: &FoundRun, after: u64) -> ApiResult<Response<Body>> {
    let tail = JournalTail::open(&run.journal()).map_err(|_| ApiError::not_found("journal"))?;
    Ok(event_stream(PageStream {
        server: Arc::clone(server),
        run: run.clone(),
        tail,
        blocks: LiveBlocks::default(),
        summary: RunSummary::default(),
        after,
        seq: 0,
        sent_summary: None,
        last_summary: String::new(),
    }))
}

struct RecordStream {
    reader: BufReader<File>,
    /// The start of a line whose end has not been written yet.
    line: Vec<u8>,
    after: u64,
}

impl ChunkSource for RecordStream {
    fn next_chunk(&mut self) -> std::io::Result<Vec<u8>> {
        let mut chunk = Vec::new();
        while chunk.len() < CHUNK_BYTES {
            self.reader.read_until(b'\n', &mut self.line)?;
            if !self.line.ends_with(b"\n") {
                break;
            }
            let line = std::mem::take(&mut self.line);
            // A damaged line has no number. A carriage return would end the line of the event.
            let line = line.trim_ascii();
            if let Some(seq) = record_seq(line)
                && seq > self.after
                && !line.contains(&b'\r')
            {
                push_event(&mut chunk, "record", seq, line);
            }
        }
        Ok(chunk)
    }
}

struct PageStream {
    server: Arc<Server>,
    run: FoundRun,
    tail: JournalTail,
    blocks: LiveBlocks,
    summary: RunSummary,
    /// The reader has the blocks up to this record.
    after: u64,
    seq: u64,
    sent_summary: Option<Instant>,
    last_summary: String,
}

/// What reading the next part of a journal led to.
struct Progress {
    read_records: bool,
    caught_up: bool,
}

#[derive(Serialize)]
struct BlocksEvent {
    blocks: Vec<PageBlock>,
}

/// The facts at the top of the page.
#[derive(Serialize, JsonSchema)]
pub(super) struct RunFacts<'a> {
    id: &'a str,
    project: String,
    state: OutcomeName,
    verdict: String,
    tone: &'static str,
    facts: Vec<(&'static str, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<LiveState>,
    #[serde(flatten)]
    summary: &'a RunSummary,
}

impl ChunkSource for PageStream {
    fn next_chunk(&mut self) -> std::io::Result<Vec<u8>> {
        let mut chunk = Vec::new();
        let mut read = 0;
        while read < CHUNK_BYTES {
            let Some(entry) = self.tail.next_entry()? else {
                break;
            };
            let JournalEntry::Record(record) = entry else {
                continue;
            };
            read += record_weight(&record.event);
            self.seq = record.seq;
            self.blocks.apply(&record);
            self.summary.apply(&record);
            if self.seq <= self.after {
                self.blocks.discard_changes();
            }
        }
        let blocks = self.blocks.take_changes();
        if !blocks.is_empty() {
            let data = serde_json::to_vec(&BlocksEvent { blocks })?;
            push_event(&mut chunk, "blocks", self.seq, &data);
        }
        self.push_summary(
            &mut chunk,
            Progress {
                read_records: read > 0,
                caught_up: read < CHUNK_BYTES,
            },
        )?;
        Ok(chunk)
    }
}

impl PageStream {
    /// While records are still unread, the facts would be those of an earlier time.
    fn push_summary(&mut self, chunk: &mut Vec<u8>, progress: Progress) -> std::io::Result<()> {
        let is_due = self
            .sent_summary
            .is_none_or(|sent| sent.elapsed() >= SUMMARY_INTERVAL);
        let is_final = self.summary.outcome.is_some() && progress.read_records;
        if !progress.caught_up || !(is_due || is_final) {
            return Ok(());
        }
        self.sent_summary = Some(Instant::now());
        let facts = run_facts(&self.server, &self.run, &self.summary);
        let data = serde_json::to_string(&facts)?;
        if data != self.last_summary {
            push_event(chunk, "run", self.seq, data.as_bytes());
            self.last_summary = data;
        }
        Ok(())
    }
}

/// The facts of a run, from its records so far.
pub(super) fn run_facts(server: &Server, run: &FoundRun, summary: &RunSummary) -> serde_json::Value {
    let live = match summary.outcome {
        Some(_) => None,
        None => server.listing.live_state(&run.directory),
    };
    let details = RunDetails::of_summary(&run.directory, summary.clone(), live.as_ref());
    let verdict = details.verdict();
    let facts = RunFacts {
        id: &details.id,
        project: run.project.name(),
        state: details.state,
        verdict: verdict.sentence,
        tone: match verdict.tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Warning => "warning",
            Tone::Accent | Tone::Plain | Tone::Strong | Tone::Faint => "plain",
        },
        facts: facts(&details),
        live,
        summary: &details.summary,
    };
    serde_json::to_value(&facts).unwrap_or_default()
}

/// A rough size of a record, by which chunks are limited.
fn record_weight(event: &RunEvent) -> usize {
    const OVERHEAD: usize = 200;
    match event {
        RunEvent::Transcript {
            event:
                crate::event::TranscriptEvent::Text { text, .. }
                | crate::event::TranscriptEvent::ToolOutput { text, .. },
            ..
        }
        | RunEvent::ReviewTranscript {
            event:
                crate::event::TranscriptEvent::Text { text, .. }
                | crate::event::TranscriptEvent::ToolOutput { text, .. },
            ..
        }
        | RunEvent::Stderr { text, .. }
        | RunEvent::GateEnded { output: text, .. } => OVERHEAD + text.len(),
        _ => OVERHEAD,
    }
}

fn open(run: &FoundRun) -> ApiResult<File> {
    crate::files::open(&run.journal(), crate::files::Links::Refuse)
        .map_err(|_| ApiError::not_found("journal"))
}

fn push_event(chunk: &mut Vec<u8>, name: &str, id: u64, data: &[u8]) {
    chunk.extend_from_slice(format!("id: {id}\nevent: {name}\ndata: ").as_bytes());
    chunk.extend_from_slice(data);
    chunk.extend_from_slice(b"\n\n");
}

/// Sends chunks until the client has gone. The next chunk is read only when the client has room for it.
fn event_stream(source: impl ChunkSource) -> Response<Body> {
    struct State<S> {
        source: Option<S>,
        wait: Duration,
        silent_since: Instant,
    }
    let state = State {
        source: Some(source),
        wait: POLL_ACTIVE,
        silent_since: Instant::now(),
    };
    let stream = futures_util::stream::unfold(state, |mut state| async move {
        loop {
            let mut source = state.source.take()?;
            let read = tokio::task::spawn_blocking(move || {
                let chunk = source.next_chunk();
                (source, chunk)
            });
            let Ok((source, Ok(chunk))) = read.await else {
                return None;
            };
            state.source = Some(source);
            if !chunk.is_empty() {
                (state.wait, state.silent_since) = (POLL_ACTIVE, Instant::now());
                return Some((Ok::<_, Infallible>(Bytes::from(chunk)), state));
            }
            if state.silent_since.elapsed() >= KEEP_ALIVE {
                state.silent_since = Instant::now();
                return Some((Ok(Bytes::from_static(b": no news\n\n")), state));
            }
            tokio::time::sleep(state.wait).await;
            state.wait = POLL_IDLE.min(state.wait * 2);
        }
    });
    let mut response = Response::new(Body::from_stream(stream));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_after_a_number_are_sent_and_an_incomplete_line_waits() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        std::fs::write(
            &path,
            "{\"seq\":1,\"a\":1}\n{\"seq\":2,\"a\":\"x\"}\ndamaged\n{\"seq\":3",
        )
        .unwrap();
        let mut stream = RecordStream {
            reader: BufReader::new(File::open(&path).unwrap()),
            line: Vec::new(),
            after: 1,
        };
        let chunk = String::from_utf8(stream.next_chunk().unwrap()).unwrap();
        assert_eq!(chunk, "id: 2\nevent: record\ndata: {\"seq\":2,\"a\":\"x\"}\n\n");
        assert_eq!(stream.next_chunk().unwrap(), b"");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("}\n");
        std::fs::write(&path, text).unwrap();
        let chunk = String::from_utf8(stream.next_chunk().unwrap()).unwrap();
        assert_eq!(chunk, "id: 3\nevent: record\ndata: {\"seq\":3}\n\n");
    }
}
