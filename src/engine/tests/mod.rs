//! Engine tests: each test sends inputs and checks the returned actions.

mod budgets;
mod checkpoints;
mod completion;
mod deadlines;
mod failures;
mod fallback;
mod gates;
mod hats;
mod interactive;
mod interrupts;
mod places;
mod properties;
mod questions;
mod rate_limits;
mod resume;
mod roles;
mod sessions;
mod snapshots;

use super::*;
use crate::event::{ErrorClass, Flow, Meta, RateLimitStatus, Tag, ToolStart, Usd};
use crate::policy::{
    AttemptTimeouts, Budgets, CostRules, Limits, MarkerPlacement, OnRejected, Price, Prices, Seconds, Timing,
};

const GRACE: Duration = Duration::from_secs(5);
const OK: ProcessEnd = ProcessEnd::Exited { code: 0 };

/// A command with an id of its own.
pub(super) fn command(command: Command) -> Input {
    let id = fastrand::u64(..).to_string();
    Input::Command(CommandRequest { id, command })
}

pub(super) fn stop_by(by: Interrupt) -> Input {
    command(Command::Stop { by })
}

pub(super) fn wake() -> Input {
    command(Command::Wake)
}

pub(super) fn answer(answer: Answer) -> Input {
    command(Command::Answer { answer })
}

pub(super) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn policy() -> Policy {
    Policy {
        started_at: Timestamp::UNIX_EPOCH,
        zone: jiff::tz::TimeZone::UTC,
        seed: 1,
        limits: Limits {
            iterations: 100,
            runtime: secs(14_400),
            cost_usd: None,
            tokens: None,
            consecutive_failures: 5,
            limit_wait: secs(8 * 3600),
            no_progress: 5,
            output_bytes: 0,
            free_disk_bytes: 0,
        },
        budgets: Budgets::default(),
        timing: Timing {
            after_result: secs(30),
            stop_grace: GRACE,
            cooldown: Duration::ZERO,
        },
        markers: Markers::new(Vec::new(), MarkerPlacement::Line),
        gates: Vec::new(),
        hats: Hats::default(),
        required_events: Vec::new(),
        guardrails: Vec::new(),
        agents: Agents::single(agent("fake")),
        reviewers: Reviewers::default(),
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

pub(super) fn agent(label: &str) -> AgentRules {
    AgentRules {
        name: label.into(),
        label: label.into(),
        account: None,
        costs: CostRules {
            prices: None,
            model: None,
            availability: CostAvailability::Available,
        },
        timeouts: AttemptTimeouts {
            wall: None,
            idle: Some(secs(600)),
            idle_in_tool: Some(secs(3600)),
        },
        transcript: TranscriptFeatures {
            messages: MessageBoundaries::Delimited,
            end: EndSignal::TerminalEvent,
        },
        auth_hint: "Run `agent login`.".into(),
        limit_phrases: vec!["You've hit your usage limit", "429 Too Many Requests"],
        session_source: SessionSource::Transcript,
        permission_denial_help: None,
        versions: AgentVersions::default(),
    }
}

pub(super) fn header() -> RunHeader {
    RunHeader {
        version: 1,
        run_id: "r".into(),
        ralph: "0".into(),
        agent: "fake".into(),
        agent_version: None,
        transcript: "rtf1".into(),
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

pub(super) fn gate(name: &str) -> Gate {
    Gate {
        timeout: Seconds(60),
        ..Gate::new(name, format!("run {name}"))
    }
}

/// Drives an engine; returns its actions and collects the emitted events separately.
pub(super) struct TestRun {
    pub(super) engine: Engine,
    pub(super) emitted: Vec<RunEvent>,
    /// The costs that were reported to the other runs.
    pub(in crate::engine) reported_usd: Vec<f64>,
}

impl TestRun {
    pub(super) fn with(policy: Policy) -> Self {
        Self {
            engine: Engine::new(policy),
            emitted: Vec::new(),
            reported_usd: Vec::new(),
        }
    }

    /// Starts a run and launches its first iteration.
    pub(super) fn launched(policy: Policy) -> Self {
        let mut run = Self::with(policy);
        assert_eq!(
            run.step(0, Input::Started(Box::new(header()))),
            [Action::ReadPrompt]
        );
        run.launch(0, 1, 1);
        run
    }

    pub(super) fn step(&mut self, seconds: u64, input: Input) -> Vec<Action> {
        self.step_at(secs(seconds), input)
    }

    pub(super) fn step_at(&mut self, at: Duration, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        for action in self.engine.step(at, input) {
            match action {
                Action::Emit(event) => self.emitted.push(event),
                Action::ReportSpend { usd, .. } => self.reported_usd.push(usd),
                Action::WriteSummary(_) => {}
                action => actions.push(action),
            }
        }
        actions
    }

    pub(super) fn launch(&mut self, seconds: u64, iteration: u64, attempt: u64) -> String {
        match &self.step(seconds, Input::Prompt(Ok("task".into())))[..] {
            [
                Action::Launch {
                    iteration: i,
                    attempt: a,
                    prompt,
                    ..
                },
            ] if (*i, *a) == (iteration, attempt) => prompt.clone(),
            other => panic!("expected the launch of iteration {iteration}, attempt {attempt}: {other:?}"),
        }
    }

    pub(super) fn agent_message(&mut self, seconds: u64, text: &str) -> Vec<Action> {
        self.step(
            seconds,
            Input::Transcript(TranscriptEvent::message(Tag::Ai, text)),
        )
    }

    pub(super) fn meta(&mut self, seconds: u64, meta: Meta) -> Vec<Action> {
        self.step(seconds, Input::Transcript(TranscriptEvent::meta(meta)))
    }

    pub(super) fn result(&mut self, seconds: u64) -> Vec<Action> {
        self.meta(seconds, finished(true))
    }

    pub(super) fn exit(&mut self, seconds: u64) -> Vec<Action> {
        self.step(
            seconds,
            Input::AgentEnded {
                end: OK.into(),
                swept: 0,
            },
        )
    }

    /// Runs a whole iteration with one message.
    pub(super) fn iteration(&mut self, seconds: u64, text: &str) -> Vec<Action> {
        assert_eq!(self.agent_message(seconds, text), []);
        assert_eq!(self.result(seconds), []);
        self.exit(seconds)
    }

    pub(super) fn last_outcome(&self) -> &IterationOutcome {
        let ended = self.emitted.iter().rev().find_map(|event| match event {
            RunEvent::IterationEnded { outcome, .. } => Some(outcome),
            _ => None,
        });
        ended.expect("an iteration has ended")
    }

    pub(super) fn spend(&mut self, seconds: u64, cost_usd: f64) -> Vec<Action> {
        let usage = Usage {
            cost_usd: Usd::new(cost_usd),
            ..Usage::default()
        };
        self.step(seconds, Input::Transcript(TranscriptEvent::usage(usage)))
    }
}

fn finished(success: bool) -> Meta {
    Meta::Finished {
        success,
        reason: None,
        text: None,
        turns: None,
        duration_ms: None,
    }
}

pub(super) fn error(class: ErrorClass, message: &str) -> Meta {
    Meta::Error {
        class,
        message: message.into(),
        status: None,
    }
}

pub(super) fn complete() -> Vec<Action> {
    vec![Action::Finish(RunOutcome::Complete {
        marker: "LOOP_COMPLETE".into(),
    })]
}

fn limit_reached(limit: RunLimit) -> Vec<Action> {
    vec![Action::Finish(RunOutcome::LimitReached { limit })]
}

pub(super) fn stop() -> Vec<Action> {
    vec![Action::Stop { grace: GRACE }]
}

#[test]
fn run_continues_until_the_final_message_has_a_marker() {
    let mut run = TestRun::launched(policy());
    assert_eq!(run.iteration(5, "Half of it works."), [Action::ReadPrompt]);
    run.launch(5, 2, 1);
    assert_eq!(run.iteration(9, "All of it works.\nLOOP_COMPLETE"), complete());
    assert!(matches!(
        run.emitted.last(),
        Some(RunEvent::RunEnded {
            iterations: 2,
            duration_ms: 9000,
            ..
        })
    ));
}

#[test]
fn completion_in_the_last_allowed_iteration_is_success() {
    let mut rules = policy();
    rules.limits.iterations = 1;
    rules.limits.cost_usd = Some(0.01);
    let mut run = TestRun::launched(rules.clone());
    let total = Usage {
        cost_usd: Usd::new(9.0),
        scope: UsageScope::Iteration,
        ..Usage::default()
    };
    assert_eq!(run.step(1, Input::Transcript(TranscriptEvent::usage(total))), []);
    assert_eq!(run.iteration(1, "LOOP_COMPLETE"), complete());

    let mut run = TestRun::launched(rules);
    assert_eq!(
        run.iteration(1, "more to do"),
        limit_reached(RunLimit::Iterations { max: 1 })
    );
}

#[test]
fn ignored_marker_is_reported_and_explained_in_the_next_prompt() {
    let mut run = TestRun::launched(policy());
    assert_eq!(
        run.iteration(1, "I will print LOOP_COMPLETE later."),
        [Action::ReadPrompt]
    );
    assert!(
        run.emitted
            .iter()
            .any(|event| matches!(event, RunEvent::MarkerIgnored { .. }))
    );
    assert!(run.launch(1, 2, 1).contains("it must be alone on its own line"));
    assert_eq!(run.iteration(2, "nothing new"), [Action::ReadPrompt]);
    assert!(
        !run.launch(2, 3, 1).contains("it must be alone on its own line"),
        "explained in one prompt only"
    );
}

#[test]
fn unreadable_prompt_ends_the_run() {
    let mut run = TestRun::with(policy());
    run.step(0, Input::Started(Box::new(header())));
    let reason = "cannot read PROMPT.md".to_owned();
    assert_eq!(
        run.step(0, Input::Prompt(Err(reason.clone()))),
        [Action::Finish(RunOutcome::Failed { reason })]
    );
}

#[test]
fn topics_are_emitted() {
    let mut run = TestRun::launched(policy());
    run.iteration(1, "<event topic=\"plan.ready\">three steps</event>");
    let topic = run.emitted.iter().find_map(|event| match event {
        RunEvent::Topic { event, .. } => Some(event.topic.as_str()),
        _ => None,
    });
    assert_eq!(topic, Some("plan.ready"));
}

#[test]
fn format_without_messages_uses_the_last_lines() {
    let mut rules = policy();
    rules.agents.rules[0].transcript = TranscriptFeatures {
        messages: MessageBoundaries::LinesOnly,
        end: EndSignal::ExitOnly,
    };
    let mut run = TestRun::launched(rules);
    for line in ["working", "LOOP_COMPLETE", "took 3 s"] {
        let event = TranscriptEvent::Text {
            tag: Tag::Ai,
            text: line.into(),
            flow: Flow::Line,
            parent: None,
        };
        assert_eq!(run.step(1, Input::Transcript(event)), []);
    }
    assert_eq!(run.exit(2), complete());
}

#[test]
fn run_ends_after_its_hooks() {
    let mut rules = policy();
    rules.limits.iterations = 1;
    rules.hooks = BTreeSet::from([HookKind::Iteration, HookKind::Fail]);
    let mut run = TestRun::launched(rules);
    let hooks = run.iteration(1, "more to do");
    assert!(
        matches!(
            hooks[..],
            [
                Action::RunHook {
                    kind: HookKind::Iteration,
                    ..
                },
                Action::RunHook {
                    kind: HookKind::Fail,
                    ..
                }
            ]
        ),
        "{hooks:?}"
    );
    assert_eq!(run.step(2, Input::HookEnded(None)), []);
    assert_eq!(
        run.step(3, Input::HookEnded(Some("on_fail failed".into()))),
        limit_reached(RunLimit::Iterations { max: 1 })
    );
    assert!(matches!(run.emitted.last(), Some(RunEvent::RunEnded { .. })));
}

#[test]
fn interrupted_run_does_not_wait_for_a_hook_that_hangs() {
    let mut rules = policy();
    rules.hooks = BTreeSet::from([HookKind::Start]);
    let mut run = TestRun::with(rules);
    run.step(0, Input::Started(Box::new(header())));
    run.launch(0, 1, 1);
    assert_eq!(run.step(10, stop_by(Interrupt::Int)), stop());
    assert_eq!(run.exit(11), []);
    assert_eq!(run.engine.deadline(), Some(secs(10) + GRACE));
    let over = vec![Action::Finish(RunOutcome::Interrupted { by: Interrupt::Int })];
    assert_eq!(run.step_at(secs(10) + GRACE, Input::Tick), over);
}

#[test]
fn paths_that_cannot_be_checked_fail_the_iteration() {
    let mut rules = policy();
    rules.workspace_checks.allowed_paths = Check::On;
    let mut run = TestRun::with(rules);
    let begin = run.step(0, Input::Started(Box::new(header())));
    assert_eq!(begin, [Action::ScanWorkspace, Action::ReadPrompt]);
    run.launch(0, 1, 1);
    assert_eq!(run.iteration(1, "LOOP_COMPLETE"), [Action::CheckPaths]);
    run.step(2, Input::PathsChecked(Err("git is gone".into())));
    assert!(
        matches!(
            run.last_outcome(),
            IterationOutcome::Failed {
                failure: IterationFailure::PathsNotChecked { .. }
            }
        ),
        "{:?}",
        run.last_outcome()
    );
}
