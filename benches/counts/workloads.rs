//! The counted workloads: parsing each format, passing a session through the engine, writing it to a journal.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ralph::engine::{
    AgentRules, AgentVersions, Agents, Check, EndSignal, Engine, Hats, Input, Markers, MessageBoundaries,
    Policy, QuestionRules, SessionSource, TranscriptFeatures, WorkspaceChecks,
};
use ralph::event::{Record, RunEvent, RunHeader, Sink, TranscriptEvent};
use ralph::policy::{
    AttemptTimeouts, Budgets, CostAvailability, CostRules, Limits, MarkerPlacement, OnDeclaredFailure,
    OnLimit, OnRejected, Session, Timing,
};
use ralph::store::{Run, StateDirectory};
use ralph::transcript::{self, AdapterContext};

/// Each session is parsed repeatedly until about this many bytes have been read.
const BYTES: usize = 400_000;

/// Formats with captured sessions in `tests/fixtures`.
const FORMATS: [&str; 17] = [
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
    "agy",
    "qwen",
    "pi",
    "kimi",
    "vibe",
    "cline",
];

/// All workloads except `nothing`, whose count is subtracted from the others.
pub(crate) fn names() -> Vec<String> {
    let formats = FORMATS.iter().filter(|format| !session(format).is_empty());
    let mut names: Vec<String> = formats.map(|format| format!("parse: {format}")).collect();
    names.extend(["engine: claude".to_owned(), "journal: claude".to_owned()]);
    names
}

pub(crate) fn run(name: &str) -> ExitCode {
    let result = match name.split_once(": ") {
        None if name == "nothing" => Ok(()),
        Some(("parse", format)) => {
            parse(format);
            Ok(())
        }
        Some(("engine", format)) => {
            run_engine(parse(format));
            Ok(())
        }
        Some(("journal", format)) => write_journal(parse(format)),
        _ => return ExitCode::FAILURE,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// All captured output in this format.
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

fn parse(format: &str) -> Vec<TranscriptEvent> {
    let session = session(format);
    let mut events = Vec::new();
    let Some(format) = transcript::find(format) else {
        return events;
    };
    for _ in 0..BYTES.div_ceil(session.len().max(1)) {
        let mut adapter = (format.open)(&AdapterContext::new(""));
        session.lines().for_each(|line| adapter.feed(line, &mut events));
        adapter.flush(&mut events);
    }
    events
}

fn run_engine(events: Vec<TranscriptEvent>) {
    let mut engine = Engine::new(policy());
    let at = Duration::from_secs(1);
    let _ = engine.step(at, Input::Started(Box::new(header())));
    let _ = engine.step(at, Input::Prompt(Ok("make it work".to_owned())));
    for event in events {
        let _ = engine.step(at, Input::Transcript(event));
    }
}

fn write_journal(events: Vec<TranscriptEvent>) -> io::Result<()> {
    let workspace = tempfile::tempdir()?;
    let project = StateDirectory::at(workspace.path().join("state")).project(workspace.path());
    let run = Run::create(&project, Timestamp::UNIX_EPOCH).map_err(io::Error::other)?;
    let mut journal = run.journal().map_err(io::Error::other)?;
    for (seq, event) in (1..).zip(events) {
        let event = RunEvent::Transcript { iteration: 1, event };
        let at = Timestamp::UNIX_EPOCH;
        journal.accept(&Record::new(seq, at, event))?;
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
            limit_wait: Duration::from_secs(3600),
            no_progress: 0,
            output_bytes: 0,
            free_disk_bytes: 0,
        },
        timing: Timing {
            after_result: Duration::from_secs(30),
            stop_grace: Duration::from_secs(5),
            cooldown: Duration::ZERO,
        },
        markers: Markers::new(Vec::new(), MarkerPlacement::Line),
        gates: Vec::new(),
        hats: Hats::default(),
        required_events: Vec::new(),
        guardrails: Vec::new(),
        reviewers: ralph::engine::Reviewers::default(),
        budgets: Budgets::default(),
        agents: Agents::single(AgentRules {
            account: None,
            name: "bench".into(),
            label: "bench".into(),
            costs: CostRules {
                prices: None,
                model: None,
                availability: CostAvailability::Available,
            },
            timeouts: AttemptTimeouts::default(),
            transcript: TranscriptFeatures {
                messages: MessageBoundaries::Delimited,
                end: EndSignal::TerminalEvent,
            },
            auth_hint: String::new(),
            limit_phrases: Vec::new(),
            session_source: SessionSource::Transcript,
            permission_denial_help: None,
            versions: AgentVersions::default(),
        }),
        on_declared_failure: OnDeclaredFailure::Stop,
        on_limit: OnLimit::Wait,
        checkpoint: None,
        on_rejected: OnRejected::Keep,
        session: Session::Fresh,
        questions: QuestionRules::default(),
        workspace_checks: WorkspaceChecks::default(),
        snapshots: Check::Off,
        hooks: BTreeSet::new(),
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
        project_root: None,
        directory: None,
        max_iterations: 100,
        max_runtime_seconds: None,
        max_tokens: None,
        max_cost_usd: None,
        settings_sha256: None,
        forked_from: None,
    }
}
