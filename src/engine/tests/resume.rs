//! Tests for resumed runs: the state restored from a journal must match the engine that wrote it.

use std::collections::VecDeque;

use super::{answer, command, header, stop_by, wake};
use crate::engine::*;
use crate::event::{Meta, Record, Tag};

const OK: ProcessEnd = ProcessEnd::Exited { code: 0 };

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn policy() -> Policy {
    let mut rules = super::policy();
    rules.limits.cost_usd = Some(5.0);
    rules.limits.consecutive_failures = 3;
    rules.limits.no_progress = 2;
    (
        rules.agents.rules[0].timeouts.idle,
        rules.agents.rules[0].timeouts.idle_in_tool,
    ) = (None, None);
    rules.gates = vec![Gate {
        timeout: crate::policy::Seconds(60),
        ..Gate::new("test", "make test")
    }];
    rules.agents.rules[0].transcript.end = EndSignal::ExitOnly;
    (
        rules.workspace_checks.progress,
        rules.workspace_checks.allowed_paths,
    ) = (Check::On, Check::On);
    rules
}

/// An engine and the journal of its emitted events.
struct JournaledRun {
    engine: Engine,
    journal: Vec<Record>,
    todo: Vec<Action>,
    /// What the next check of the allowed paths finds.
    violations: Vec<String>,
}

impl JournaledRun {
    fn begin() -> Self {
        let mut run = Self {
            engine: Engine::new(policy()),
            journal: Vec::new(),
            todo: Vec::new(),
            violations: Vec::new(),
        };
        run.step(0, Input::Started(Box::new(header())));
        run
    }

    fn step(&mut self, second: u64, input: Input) -> &[Action] {
        self.todo.clear();
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for action in self.engine.step(secs(second), input) {
                match action {
                    Action::Emit(event) => self.journal.push(Record {
                        chain: None,
                        seq: self.journal.len() as u64 + 1,
                        at: Timestamp::UNIX_EPOCH + secs(second),
                        event,
                    }),
                    Action::ScanWorkspace | Action::WriteSummary(_) => {}
                    Action::CheckPaths => {
                        inputs.push_back(Input::PathsChecked(Ok(std::mem::take(&mut self.violations))));
                    }
                    action => self.todo.push(action),
                }
            }
        }
        &self.todo
    }

    /// Launches the next attempt; returns its iteration, attempt number and prompt.
    fn launch(&mut self, second: u64) -> (u64, u64, String) {
        match self.step(second, Input::Prompt(Ok("task".into()))) {
            [
                Action::Launch {
                    iteration,
                    attempt,
                    prompt,
                    ..
                },
            ] => (*iteration, *attempt, prompt.clone()),
            other => panic!("no launch: {other:?}"),
        }
    }

    fn transcript(&mut self, second: u64, event: TranscriptEvent) {
        self.step(second, Input::Transcript(event));
    }

    fn spend(&mut self, second: u64, cost_usd: f64) {
        let usage = Usage {
            cost_usd: crate::event::Usd::new(cost_usd),
            ..Usage::default()
        };
        self.transcript(second, TranscriptEvent::usage(usage));
    }

    /// Runs one iteration that costs one dollar and has one message.
    fn iteration(&mut self, second: u64, text: &str, end: ProcessEnd) {
        self.launch(second);
        self.spend(second, 1.0);
        self.transcript(second, TranscriptEvent::message(Tag::Ai, text));
        self.step(
            second + 1,
            Input::AgentEnded {
                end: end.into(),
                swept: 0,
            },
        );
    }

    fn gate(&mut self, second: u64, code: i32) {
        let end = Some(ProcessEnd::Exited { code });
        let output = "two tests failed".into();
        self.step(
            second,
            Input::GateEnded(GateEnd {
                end,
                output,
                ..GateEnd::default()
            }),
        );
    }

    fn restored(&self) -> RestoredRun {
        let mut restored = RestoredRun::default();
        for record in &self.journal {
            // Serialize and parse, as with a journal on disk.
            let text = serde_json::to_string(record).unwrap();
            restored.fold(&serde_json::from_str(&text).unwrap());
        }
        restored
    }

    /// Kills the run and resumes it.
    fn kill_and_resume(mut self) -> Self {
        let restored = self.restored();
        assert_eq!(restored.seq(), self.journal.len() as u64);
        let elapsed = restored.elapsed().as_secs();
        self.engine = Engine::resume(policy(), restored);
        let changed = Vec::new();
        self.step(
            elapsed,
            Input::Resumed {
                header: Box::new(header()),
                changed,
            },
        );
        self
    }

    fn outcome(&self) -> Option<&RunOutcome> {
        self.todo.iter().find_map(|action| match action {
            Action::Finish(outcome) => Some(outcome),
            _ => None,
        })
    }
}

#[test]
fn killed_run_is_restored() {
    let mut run = JournaledRun::begin();
    run.iteration(0, "hm", OK);
    run.iteration(10, "hm", ProcessEnd::Exited { code: 1 });
    run.step(12, wake());
    run.iteration(20, "LOOP_COMPLETE", OK);
    run.gate(21, 1);
    let (iteration, attempt, prompt) = run.launch(22);
    assert_eq!((iteration, attempt), (4, 1));
    run.spend(23, 0.5);
    let ended = run.engine.iterations_ended;
    let mut run = run.kill_and_resume();
    assert_eq!(run.engine.iterations_ended, ended);
    assert_eq!(run.engine.failures_in_a_row, 0);
    assert_eq!(
        run.engine.spent.cost_usd,
        crate::event::Usd::new(3.5),
        "what the killed attempt spent counts"
    );
    assert_eq!(
        run.launch(23),
        (4, 2, prompt.clone()),
        "the same iteration, with the same prompt"
    );
    assert!(prompt.contains("two tests failed"));
    let mut run = run.kill_and_resume();
    assert_eq!(run.launch(23).1, 3);
}

#[test]
fn consecutive_failures_survive_a_kill_and_reset_after_a_failed_run() {
    let failed = ProcessEnd::Exited { code: 1 };
    let mut run = JournaledRun::begin();
    run.iteration(0, "hm", failed);
    run.step(2, wake());
    run.iteration(3, "hm", failed);
    let mut run = run.kill_and_resume();
    assert_eq!(run.engine.failures_in_a_row, 2);
    run.iteration(10, "hm", failed);
    assert!(matches!(run.outcome(), Some(RunOutcome::Failed { .. })));
    let mut run = run.kill_and_resume();
    run.iteration(20, "hm", failed);
    assert_eq!(run.outcome(), None);
}

#[test]
fn cost_of_an_interrupted_attempt_counts_against_the_budget() {
    let mut run = JournaledRun::begin();
    run.launch(0);
    run.spend(1, 4.5);
    let mut run = run.kill_and_resume();
    run.launch(2);
    run.spend(3, 0.6);
    let reported = Action::ReportSpend { agent: 0, usd: 0.6 };
    assert_eq!(run.todo, [reported, Action::Stop { grace: secs(5) }]);
    run.step(
        4,
        Input::AgentEnded {
            end: OK.into(),
            swept: 0,
        },
    );
    let limit = RunLimit::Cost { max_usd: 5.0 };
    assert_eq!(run.outcome(), Some(&RunOutcome::LimitReached { limit }));
}

#[test]
fn completed_iteration_without_run_ended_is_complete() {
    let mut run = JournaledRun::begin();
    run.iteration(0, "LOOP_COMPLETE", OK);
    run.gate(2, 0);
    assert!(matches!(
        run.journal.pop().unwrap().event,
        RunEvent::RunEnded { .. }
    ));
    let run = run.kill_and_resume();
    assert!(matches!(run.outcome(), Some(RunOutcome::Complete { .. })));
}

#[test]
fn interrupted_iteration_is_repeated_and_not_counted() {
    let mut run = JournaledRun::begin();
    run.iteration(0, "hm", OK);
    run.launch(2);
    run.step(3, stop_by(Interrupt::Int));
    run.step(
        4,
        Input::AgentEnded {
            end: OK.into(),
            swept: 0,
        },
    );
    assert!(matches!(run.outcome(), Some(RunOutcome::Interrupted { .. })));
    let mut run = run.kill_and_resume();
    assert_eq!(run.engine.iterations_ended, 1);
    let (iteration, attempt, _) = run.launch(5);
    assert_eq!((iteration, attempt), (2, 2));
}

#[test]
fn resumed_run_waits_for_a_stated_reset_and_the_wait_is_not_runtime() {
    let mut run = JournaledRun::begin();
    run.launch(0);
    let resets_at = Some(Timestamp::UNIX_EPOCH + secs(1000));
    let limit = Meta::RateLimit {
        status: crate::event::RateLimitStatus::Rejected,
        resets_at,
        limit: None,
        utilization: None,
    };
    run.transcript(1, TranscriptEvent::meta(limit));
    let end = ProcessEnd::Exited { code: 1 };
    run.step(
        2,
        Input::AgentEnded {
            end: end.into(),
            swept: 0,
        },
    );
    assert_eq!(run.engine.deadline(), Some(secs(1001)));
    // The last record before the kill is at 500 seconds.
    run.journal.push(Record {
        chain: None,
        seq: run.journal.len() as u64 + 1,
        at: Timestamp::UNIX_EPOCH + secs(500),
        event: RunEvent::Notice {
            level: crate::event::NoticeLevel::Info,
            text: String::new(),
        },
    });
    let mut run = run.kill_and_resume();
    assert_eq!(run.engine.waited, secs(498));
    assert_eq!(run.engine.deadline(), Some(secs(1001)));
    run.step(1001, Input::Tick);
    let (iteration, attempt, _) = run.launch(1001);
    assert_eq!((iteration, attempt), (1, 2));
    assert_eq!(run.engine.waited, secs(999));
}

#[test]
fn message_is_repeated_after_a_kill_but_not_in_later_iterations() {
    let message = Command::Message {
        text: "mind the gap".into(),
    };
    let mut run = JournaledRun::begin();
    run.step(0, command(message));
    assert!(run.launch(0).2.contains("mind the gap"));
    let mut run = run.kill_and_resume();
    assert!(run.launch(1).2.contains("mind the gap"));
    run.step(
        1,
        Input::AgentEnded {
            end: OK.into(),
            swept: 0,
        },
    );
    run.step(2, wake());
    let again = run.launch(3).2;
    assert!(
        again.contains("mind the gap"),
        "no output: the agent has not read it"
    );
    run.transcript(3, TranscriptEvent::message(Tag::Ai, "hm"));
    run.step(
        4,
        Input::AgentEnded {
            end: OK.into(),
            swept: 0,
        },
    );
    assert!(!run.launch(4).2.contains("mind the gap"));
    let mut run = run.kill_and_resume();
    assert!(!run.launch(5).2.contains("mind the gap"));
}

#[test]
fn command_is_applied_once_also_after_a_kill() {
    let message = |id: &str| {
        let (id, text) = (id.to_owned(), format!("message {id}"));
        let command = Command::Message { text };
        Input::Command(CommandRequest { id, command })
    };
    let mut run = JournaledRun::begin();
    run.step(0, message("a"));
    run.step(0, message("a"));
    let mut run = run.kill_and_resume();
    assert!(run.engine.has_received("a") && !run.engine.has_received("b"));
    run.step(1, message("a"));
    run.step(1, message("b"));
    let received = run.journal.iter().filter_map(|record| match &record.event {
        RunEvent::CommandReceived { id, .. } => Some(id.as_str()),
        _ => None,
    });
    assert_eq!(received.collect::<Vec<_>>(), ["a", "b"]);
    let prompt = run.launch(1).2;
    assert_eq!(prompt.matches("message a").count(), 1, "{prompt}");
}

#[test]
fn no_progress_limit_survives_a_kill() {
    let scan = |run: &mut JournaledRun, second, tree: &str| {
        let fingerprint = Ok(tree.to_owned());
        run.step(second, Input::WorkspaceScanned { fingerprint });
    };
    let mut run = JournaledRun::begin();
    scan(&mut run, 0, "a");
    run.iteration(0, "hm", OK);
    scan(&mut run, 2, "a");
    run.launch(2);
    let mut run = run.kill_and_resume();
    scan(&mut run, 3, "b");
    run.iteration(3, "hm", OK);
    scan(&mut run, 5, "a");
    let Some(RunOutcome::Failed { reason }) = run.outcome() else {
        panic!("{:?}", run.todo);
    };
    assert!(
        reason.starts_with("nothing has changed in 2 iterations in a row"),
        "{reason}"
    );
    let mut run = run.kill_and_resume();
    scan(&mut run, 6, "a");
    assert_eq!(run.outcome(), None, "a resumed run gets another try");
}

#[test]
fn pause_begins_before_the_next_iteration_and_is_not_runtime() {
    let mut run = JournaledRun::begin();
    run.launch(0);
    run.step(1, command(Command::Pause));
    run.transcript(1, TranscriptEvent::message(Tag::Ai, "hm"));
    assert_eq!(
        run.step(
            2,
            Input::AgentEnded {
                end: OK.into(),
                swept: 0
            }
        ),
        []
    );
    assert_eq!(run.engine.deadline(), None);
    assert_eq!(run.step(100, command(Command::Resume)), [Action::ReadPrompt]);
    assert_eq!(run.engine.waited, secs(98));
    assert_eq!(run.kill_and_resume().engine.waited, secs(98));
}

#[test]
fn stop_iteration_continues_with_the_next_and_is_not_a_failure() {
    let mut run = JournaledRun::begin();
    run.launch(0);
    let actions = run.step(1, command(Command::StopIteration));
    assert_eq!(actions, [Action::Stop { grace: secs(5) }]);
    let end = ProcessEnd::Signaled { signal: 15 };
    assert_eq!(
        run.step(
            2,
            Input::AgentEnded {
                end: end.into(),
                swept: 0
            }
        ),
        [Action::ReadPrompt]
    );
    assert_eq!(run.launch(2).0, 2);
    assert_eq!(run.engine.failures_in_a_row, 0);
    assert_eq!(run.kill_and_resume().engine.iterations_ended, 1);
}

#[test]
fn user_is_asked_between_iterations_but_not_before_the_first() {
    let mut run = JournaledRun::begin();
    run.engine = Engine::new(policy()).with_ask_policy(AskPolicy::BetweenIterations);
    assert_eq!(
        run.step(0, Input::Started(Box::new(header()))),
        [Action::ReadPrompt]
    );
    run.iteration(0, "hm", OK);
    assert_eq!(run.todo, [Action::AskUser]);
    assert_eq!(run.step(50, answer(Answer::Continue)), [Action::ReadPrompt]);
    run.iteration(50, "hm", OK);
    assert_eq!(run.todo, [Action::AskUser]);
    run.step(60, answer(Answer::ContinueWithoutAsking));
    run.iteration(60, "hm", OK);
    assert_eq!(run.todo, [Action::ReadPrompt]);
}

#[test]
fn path_violation_fails_even_a_completion_claim() {
    let mut run = JournaledRun::begin();
    run.launch(0);
    run.transcript(1, TranscriptEvent::message(Tag::Ai, "LOOP_COMPLETE"));
    run.violations = (0..30).map(|n| format!("f{n}")).collect();
    run.step(
        2,
        Input::AgentEnded {
            end: OK.into(),
            swept: 0,
        },
    );
    let failure = run.journal.iter().find_map(|record| match &record.event {
        RunEvent::IterationEnded {
            outcome: IterationOutcome::Failed { failure },
            ..
        } => Some(failure.clone()),
        _ => None,
    });
    assert!(
        matches!(&failure, Some(IterationFailure::OutsideAllowedPaths { files, more: 10 }) if files.len() == 20),
        "{failure:?}"
    );
    run.step(5, wake());
    let prompt = run.launch(5).2;
    assert!(prompt.contains("f0, f1, "), "{prompt}");
    let mut run = run.kill_and_resume();
    assert_eq!(run.launch(6).2, prompt);
}

#[test]
fn a_fork_keeps_iterations_and_cost_but_no_session_and_no_completion() {
    let mut run = JournaledRun::begin();
    run.launch(0);
    let session = Meta::Session {
        session_id: "s-1".into(),
        model: None,
        version: None,
    };
    run.transcript(1, TranscriptEvent::meta(session));
    run.spend(1, 1.0);
    let mut restored = RestoredRun::default();
    run.journal.iter().for_each(|record| restored.fold(record));
    restored.fold(&Record {
        chain: None,
        seq: 99,
        at: Timestamp::UNIX_EPOCH + secs(2),
        event: RunEvent::IterationEnded {
            iteration: 1,
            attempt: 1,
            outcome: IterationOutcome::Completed { marker: "M".into() },
            duration_ms: 0,
            usage: Box::default(),
        },
    });
    let origin = crate::event::ForkOrigin {
        run: "other".into(),
        iteration: 1,
    };
    restored.continue_as(Some(&origin));
    assert_eq!((restored.iteration(), restored.iterations()), (2, 1));
    let policy = Policy {
        session: Session::Continue,
        ..policy()
    };
    let mut engine = Engine::resume(policy, restored);
    let header = Box::new(RunHeader {
        forked_from: Some(origin),
        ..header()
    });
    let changed = Vec::new();
    let begin = engine.step(secs(3), Input::Resumed { header, changed });
    assert!(
        begin.contains(&Action::ReadPrompt),
        "it does not end at once: {begin:?}"
    );
    let launched = engine.step(secs(3), Input::Prompt(Ok("task".into())));
    let session = launched.iter().find_map(|action| match action {
        Action::Launch {
            iteration, session, ..
        } => Some((*iteration, session.clone())),
        _ => None,
    });
    assert_eq!(session, Some((2, None)));
}
