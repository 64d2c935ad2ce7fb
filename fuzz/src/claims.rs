//! Markers and topics in arbitrary answers, evaluated by the engine: no panic, no completion without a marker in the
//! text, no topic that is not in the text, and the same verdict however the answer is split.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};
use ralph::engine::{
    Action, AgentRules, AgentVersions, Agents, Check, EndSignal, Engine, Hats, Input, Markers,
    MessageBoundaries, Policy, QuestionRules, Reviewers, SessionSource, TranscriptFeatures, WorkspaceChecks,
};
use ralph::event::{
    AgentIdentity, FORMAT_VERSION, Flow, IterationOutcome, ProcessEnd, RunEvent, RunHeader, Tag, TopicEvent,
    TranscriptEvent,
};
use ralph::policy::{
    AttemptTimeouts, Budgets, CostAvailability, CostRules, Limits, MarkerPlacement, OnDeclaredFailure,
    OnLimit, OnRejected, Session, Timing,
};

const PROMPT: &str = "Do the task.\nWhen done, print\nLOOP_COMPLETE\n";

/// The first byte selects the rules and the second the size of the pieces. The rest is the answer.
pub fn claims(bytes: &[u8]) {
    let [rules, size, answer @ ..] = bytes else {
        return;
    };
    let text = String::from_utf8_lossy(answer);
    let messages = if rules & 1 == 0 {
        MessageBoundaries::Delimited
    } else {
        MessageBoundaries::LinesOnly
    };
    let placement = if rules & 2 == 0 {
        MarkerPlacement::Line
    } else {
        MarkerPlacement::Anywhere
    };
    let whole = verdict(messages, placement, whole(messages, &text));
    check_verdict(&whole, &text);
    if messages == MessageBoundaries::Delimited {
        let pieces = verdict(messages, placement, in_pieces(&text, usize::from(*size) + 1));
        assert_eq!(whole, pieces, "in pieces of {size}");
    }
}

/// The outcome of the iteration and the topics published in it.
type Verdict = (Option<IterationOutcome>, Vec<TopicEvent>);

fn check_verdict((outcome, topics): &Verdict, text: &str) {
    if let Some(IterationOutcome::Completed { marker }) = outcome {
        assert!(text.contains(marker.as_str()), "{marker} is not in the text");
    }
    for topic in topics {
        assert!(
            text.contains(&topic.topic) && text.contains(&topic.payload),
            "{topic:?}"
        );
    }
}

fn whole(messages: MessageBoundaries, text: &str) -> Vec<TranscriptEvent> {
    match messages {
        MessageBoundaries::Delimited => vec![TranscriptEvent::message(Tag::Ai, text)],
        MessageBoundaries::LinesOnly | MessageBoundaries::Screen => text
            .split('\n')
            .map(|line| TranscriptEvent::line(Tag::Ai, line))
            .collect(),
    }
}

fn in_pieces(text: &str, size: usize) -> Vec<TranscriptEvent> {
    let mut events = vec![];
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        events.push(TranscriptEvent::Text {
            tag: Tag::Ai,
            text: piece.to_owned(),
            flow: if events.is_empty() {
                Flow::Message
            } else {
                Flow::Delta
            },
            parent: None,
        });
        rest = more;
    }
    events
}

fn verdict(messages: MessageBoundaries, placement: MarkerPlacement, events: Vec<TranscriptEvent>) -> Verdict {
    let mut engine = Engine::new(policy(messages, placement));
    let begin = [
        Input::Started(Box::new(header())),
        Input::Prompt(Ok(PROMPT.to_owned())),
        Input::AgentStarted {
            identity: AgentIdentity::Process { pid: 1 },
            command: Vec::new(),
        },
    ];
    let end = Input::AgentEnded {
        end: ProcessEnd::Exited { code: 0 }.into(),
        swept: 0,
    };
    let inputs = begin
        .into_iter()
        .chain(events.into_iter().map(Input::Transcript))
        .chain([end]);
    let mut verdict = (None, Vec::new());
    for action in inputs.flat_map(|input| engine.step(Duration::ZERO, input)) {
        match action {
            Action::Emit(RunEvent::IterationEnded { outcome, .. }) => verdict.0 = Some(outcome),
            Action::Emit(RunEvent::Topic { event, .. }) => verdict.1.push(event),
            _ => {}
        }
    }
    verdict
}

fn header() -> RunHeader {
    RunHeader {
        version: FORMAT_VERSION,
        run_id: String::new(),
        ralph: String::new(),
        agent: String::new(),
        agent_version: None,
        transcript: String::new(),
        workspace: String::new(),
        project_root: None,
        directory: None,
        max_iterations: 1,
        max_runtime_seconds: None,
        max_tokens: None,
        max_cost_usd: None,
        settings_sha256: None,
        forked_from: None,
    }
}

fn policy(messages: MessageBoundaries, placement: MarkerPlacement) -> Policy {
    let long = Duration::from_secs(1 << 20);
    Policy {
        started_at: Timestamp::UNIX_EPOCH,
        zone: TimeZone::UTC,
        seed: 1,
        limits: Limits {
            iterations: 1,
            runtime: long,
            cost_usd: None,
            tokens: None,
            consecutive_failures: 5,
            limit_wait: Duration::from_secs(3600),
            no_progress: 0,
            output_bytes: 0,
            free_disk_bytes: 0,
        },
        budgets: Budgets::default(),
        timing: Timing {
            after_result: long,
            stop_grace: long,
            cooldown: Duration::ZERO,
        },
        markers: Markers::new(Vec::new(), placement),
        gates: Vec::new(),
        hats: Hats::default(),
        required_events: Vec::new(),
        guardrails: Vec::new(),
        reviewers: Reviewers::default(),
        agents: Agents::single(AgentRules {
            name: "fuzz".into(),
            label: "fuzz".into(),
            account: None,
            costs: CostRules {
                prices: None,
                model: None,
                availability: CostAvailability::Available,
            },
            timeouts: AttemptTimeouts::default(),
            transcript: TranscriptFeatures {
                messages,
                end: EndSignal::ExitOnly,
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
