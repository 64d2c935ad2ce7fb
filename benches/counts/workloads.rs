//! What is counted: reading each format, judging a session, keeping it in a journal.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ralph::engine::{
    CostFigures, CostRules, Ending, Engine, Hats, Input, Limits, Markers, Messages, OnDeclaredFailure,
    Placement, Policy, Reading, SessionRule, Timing,
};
use ralph::event::{Record, RunEvent, RunHeader, Sink, TranscriptEvent};
use ralph::store::Run;
use ralph::transcript::{self, Opening};

/// Each session is read so often that it has about this many bytes.
const BYTES: usize = 400_000;

/// Formats that have sessions of real programs among the fixtures.
const READ: [&str; 11] = [
    "amp",
    "claude",
    "codex",
    "codex-text",
    "copilot",
    "cursor",
    "gemini",
    "opencode",
    "plain",
    "rtf1",
    "jq",
];

/// All parts but `nothing`, from which the others are measured.
pub(crate) fn names() -> Vec<String> {
    let read = READ.iter().filter(|format| !session(format).is_empty());
    let mut names: Vec<String> = read.map(|format| format!("read: {format}")).collect();
    names.extend(["judge: claude".to_owned(), "keep: claude".to_owned()]);
    names
}

pub(crate) fn play(name: &str) -> ExitCode {
    let played = match name.split_once(": ") {
        None if name == "nothing" => Ok(()),
        Some(("read", format)) => {
            read(format);
            Ok(())
        }
        Some(("judge", format)) => {
            judge(read(format));
            Ok(())
        }
        Some(("keep", format)) => keep(read(format)),
        _ => return ExitCode::FAILURE,
    };
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Everything that a program of this format was seen to print.
fn session(format: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(format);
    let mut files: Vec<_> = std::fs::read_dir(fixtures)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "stdout"))
        .collect();
    files.sort_unstable();
    let texts = files.iter().filter_map(|file| std::fs::read(file).ok());
    texts
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned() + "\n")
        .collect()
}

fn read(format: &str) -> Vec<TranscriptEvent> {
    let session = session(format);
    let mut events = Vec::new();
    let Some(format) = transcript::find(format) else {
        return events;
    };
    for _ in 0..BYTES.div_ceil(session.len().max(1)) {
        let mut adapter = (format.open)(&Opening { prompt: "" });
        session.lines().for_each(|line| adapter.feed(line, &mut events));
        adapter.flush(&mut events);
    }
    events
}

fn judge(events: Vec<TranscriptEvent>) {
    let mut engine = Engine::new(policy());
    let at = Duration::from_secs(1);
    let _ = engine.step(at, Input::Started(Box::new(header())));
    let _ = engine.step(at, Input::Prompt(Ok("make it work".to_owned())));
    for event in events {
        let _ = engine.step(at, Input::Transcript(event));
    }
}

fn keep(events: Vec<TranscriptEvent>) -> io::Result<()> {
    let workspace = tempfile::tempdir()?;
    let run = Run::create(workspace.path(), Timestamp::UNIX_EPOCH).map_err(io::Error::other)?;
    let mut journal = run.journal().map_err(io::Error::other)?;
    for (seq, event) in (1..).zip(events) {
        let event = RunEvent::Transcript { iteration: 1, event };
        let at = Timestamp::UNIX_EPOCH;
        journal.accept(&Record { seq, at, event })?;
    }
    journal.flush()
}

fn policy() -> Policy {
    Policy {
        started_at: Timestamp::UNIX_EPOCH,
        zone: TimeZone::UTC,
        seed: 1,
        limits: Limits {
            iterations: 100,
            runtime: Duration::from_secs(3600),
            cost_usd: None,
            tokens: None,
            consecutive_failures: 5,
            no_progress: 0,
        },
        costs: CostRules {
            prices: None,
            model: None,
            figures: CostFigures::Possible,
        },
        timing: Timing {
            wall: None,
            idle: None,
            idle_in_tool: None,
            after_result: Duration::from_secs(30),
            stop_grace: Duration::from_secs(5),
            cooldown: Duration::ZERO,
        },
        markers: Markers::new(Vec::new(), Placement::Line),
        gates: Vec::new(),
        hats: Hats::default(),
        reading: Reading {
            messages: Messages::Delimited,
            ending: Ending::TerminalEvent,
        },
        auth_hint: String::new(),
        limit_phrases: Vec::new(),
        on_declared_failure: OnDeclaredFailure::Stop,
        session: SessionRule::Fresh,
    }
}

fn header() -> RunHeader {
    RunHeader {
        version: 1,
        run_id: "r".into(),
        ralph: "0".into(),
        agent: "claude".into(),
        agent_version: None,
        transcript: "claude".into(),
        workspace: "/w".into(),
        max_iterations: 100,
        max_runtime_seconds: None,
        max_tokens: None,
        max_cost_usd: None,
    }
}
