//! Tests of the broadcast: front ends that fall behind, fail, or are suspended.

use super::subscriber::{MAX_QUEUED_BYTES, SubscriberState, Suspension};
use super::*;
use crate::event::{NoticeLevel, RunEvent, Sink, Tag, TranscriptEvent};
use crate::store::Journal;
use crate::ui::Interest;
use jiff::Timestamp;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};

const DEADLINE: Duration = Duration::from_secs(60);

/// Reports the number of each record. It accepts none before the test allows it.
struct TestFrontEnd {
    may_accept: Receiver<()>,
    seen: Sender<u64>,
    interest: Interest,
    fails_at: Option<u64>,
}

impl Sink for TestFrontEnd {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        // Disconnected: the front end may accept everything.
        let _ = self.may_accept.recv();
        if self.fails_at == Some(record.seq) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.seen.send(record.seq).map_err(io::Error::other)
    }
}

impl FrontEnd for TestFrontEnd {
    fn interest(&self) -> Interest {
        self.interest
    }
}

/// A broadcast with one or two front ends, and its journal.
struct Fixture {
    broadcast: Broadcast,
    journal: Journal,
    seq: u64,
    messages: Receiver<Message>,
    _directory: tempfile::TempDir,
}

/// The test's side of a front end. The front end accepts records once `gate` is dropped.
struct TestReader {
    gate: Sender<()>,
    seen: Receiver<u64>,
}

impl TestReader {
    /// Lets the front end accept all records, and returns them after its end.
    fn read_all(self) -> Vec<u64> {
        drop(self.gate);
        self.seen.iter().collect()
    }
}

fn front_end(interest: Interest, fails_at: Option<u64>) -> (Box<dyn FrontEnd>, TestReader) {
    let (gate, may_accept) = mpsc::channel();
    let (seen_by, seen) = mpsc::channel();
    let front_end = TestFrontEnd {
        may_accept,
        seen: seen_by,
        interest,
        fails_at,
    };
    (Box::new(front_end), TestReader { gate, seen })
}

impl Fixture {
    fn new(visible: Box<dyn FrontEnd>, record_file: Option<Box<dyn FrontEnd>>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let journal = Journal::append(&path).unwrap();
        let (queue, messages) = mpsc::channel();
        let front_ends = FrontEnds {
            visible,
            record_file,
            traces: None,
        };
        let broadcast = Broadcast::start(front_ends, &path, &queue, &PanicScope::detached()).unwrap();
        Self {
            broadcast,
            journal,
            seq: 0,
            messages,
            _directory: directory,
        }
    }

    /// Records an event, as the run does.
    fn record(&mut self, event: RunEvent) {
        self.seq += 1;
        let record = Record {
            chain: None,
            seq: self.seq,
            at: Timestamp::UNIX_EPOCH,
            event,
        };
        let start = self.journal.position();
        self.journal.accept(&record).unwrap();
        if self.broadcast.push(record, start..self.journal.position()) == BatchState::Full {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.journal.flush().unwrap();
        self.broadcast.publish();
    }

    fn end(&mut self) {
        self.flush();
        self.broadcast.end(RecordsEnd::RunEnded);
    }

    fn ended(&self) -> (FrontEndId, Option<io::ErrorKind>) {
        match self.messages.recv_timeout(DEADLINE) {
            Ok(Message::FrontEndEnded { front_end, error }) => (front_end, error.map(|error| error.kind())),
            Ok(_) => panic!("another message"),
            Err(error) => panic!("no front end has ended: {error}"),
        }
    }

    fn state(&self, id: FrontEndId) -> MutexGuard<'_, SubscriberState> {
        self.broadcast.subscriber(id).unwrap().shared.lock()
    }
}

fn output(text: &str) -> RunEvent {
    RunEvent::Transcript {
        iteration: 1,
        event: TranscriptEvent::line(Tag::Ai, text),
    }
}

fn notice() -> RunEvent {
    RunEvent::Notice {
        level: NoticeLevel::Info,
        text: "a notice".into(),
    }
}

#[test]
fn front_end_that_falls_behind_gets_every_record_in_order() {
    let (visible, blocked) = front_end(Interest::Everything, None);
    let (file, other) = front_end(Interest::Everything, None);
    let mut run = Fixture::new(visible, Some(file));
    let text = "x".repeat(64 * 1024);
    // A front end that accepts nothing holds at most the records of the queue and the one that it took.
    let count = 3 * MAX_QUEUED_BYTES / text.len() as u64;
    (0..count).for_each(|_| run.record(output(&text)));
    run.flush();
    assert!(run.state(FrontEndId::Visible).lagged_from.is_some());
    assert!(run.state(FrontEndId::Visible).queued_bytes <= MAX_QUEUED_BYTES);
    drop(other.gate);
    // Records that are published while it catches up.
    (0..100).for_each(|_| run.record(notice()));
    run.end();
    assert_eq!(run.ended(), (FrontEndId::RecordFile, None));
    let all: Vec<u64> = (1..=count + 100).collect();
    assert_eq!(other.seen.iter().collect::<Vec<_>>(), all);
    assert_eq!(blocked.read_all(), all);
    assert_eq!(run.ended(), (FrontEndId::Visible, None));
}

#[test]
fn front_end_returns_to_the_queue_after_catching_up() {
    let (visible, reader) = front_end(Interest::Everything, None);
    let mut run = Fixture::new(visible, None);
    let text = "x".repeat(64 * 1024);
    let count = 3 * MAX_QUEUED_BYTES / text.len() as u64;
    (0..count).for_each(|_| run.record(output(&text)));
    run.flush();
    drop(reader.gate);
    let next = || reader.seen.recv_timeout(DEADLINE).unwrap();
    assert_eq!(
        (1..=count).map(|_| next()).collect::<Vec<_>>(),
        (1..=count).collect::<Vec<_>>()
    );
    // The last record was reported before the front end has left the journal.
    while run.state(FrontEndId::Visible).lagged_from.is_some() {
        std::thread::yield_now();
    }
    run.record(notice());
    run.flush();
    assert_eq!(next(), count + 1);
}

#[test]
fn failed_front_end_does_not_affect_another() {
    let (visible, failing) = front_end(Interest::Everything, Some(2));
    let (file, other) = front_end(Interest::Everything, None);
    let mut run = Fixture::new(visible, Some(file));
    (0..3).for_each(|_| run.record(notice()));
    run.flush();
    assert_eq!(failing.read_all(), [1]);
    assert_eq!(
        run.ended(),
        (FrontEndId::Visible, Some(io::ErrorKind::BrokenPipe))
    );
    run.broadcast.remove(FrontEndId::Visible);
    assert!(!run.broadcast.is_empty());
    run.end();
    assert_eq!(other.read_all(), [1, 2, 3]);
}

#[test]
fn output_of_an_interactive_agent_is_not_shown_afterwards() {
    let (visible, screen) = front_end(Interest::Everything, None);
    let (file, records) = front_end(Interest::Everything, None);
    let mut run = Fixture::new(visible, Some(file));
    drop((screen.gate, records.gate));
    run.record(output("before"));
    run.flush();
    run.broadcast.suspend();
    assert_eq!(run.state(FrontEndId::Visible).suspension, Suspension::Suspended);
    run.record(output("drawn by the agent"));
    run.record(notice());
    run.flush();
    run.broadcast.resume();
    run.record(output("after"));
    run.end();
    assert_eq!(screen.seen.iter().collect::<Vec<_>>(), [1, 3, 4]);
    assert_eq!(records.seen.iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn quiet_front_end_is_not_passed_the_output() {
    let (visible, quiet) = front_end(Interest::ExceptOutput, None);
    let mut run = Fixture::new(visible, None);
    run.record(notice());
    run.record(output("a line"));
    run.record(notice());
    run.end();
    assert_eq!(quiet.read_all(), [1, 3]);
}

#[test]
fn shutdown_is_extended_by_progress_until_it_is_ignored() {
    let (visible, reader) = front_end(Interest::Everything, None);
    let run = Fixture::new(visible, None);
    let long_ago = Instant::now().checked_sub(DEADLINE).unwrap();
    let mut shutdown = run.broadcast.shutdown();
    shutdown.since = long_ago;
    assert_eq!(shutdown.time_left(&run.broadcast), Duration::ZERO);
    run.broadcast.subscribers[0]
        .shared
        .accepted
        .store(1, Ordering::Relaxed);
    assert!(shutdown.time_left(&run.broadcast) > Duration::ZERO);
    shutdown.ignore_progress();
    shutdown.since = long_ago;
    run.broadcast.subscribers[0]
        .shared
        .accepted
        .store(2, Ordering::Relaxed);
    assert_eq!(shutdown.time_left(&run.broadcast), Duration::ZERO);
    drop(reader);
}
