//! Runs that end and go on: the fold of a journal's records is held against the engine that wrote them.

use super::header;
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
    (rules.timing.idle, rules.timing.idle_in_tool) = (None, None);
    rules.gates = vec![GateRule {
        name: "test".into(),
        command: "make test".into(),
        timeout: secs(60),
        cwd: None,
        environment: Vec::new(),
    }];
    rules.reading.ending = Ending::ExitOnly;
    rules
}

/// An engine, and the journal of what it says.
struct Life {
    engine: Engine,
    journal: Vec<Record>,
    todo: Vec<Action>,
}

impl Life {
    fn begin() -> Self {
        let mut life = Self {
            engine: Engine::new(policy()),
            journal: Vec::new(),
            todo: Vec::new(),
        };
        life.say(0, Input::Started(Box::new(header())));
        life
    }

    fn say(&mut self, second: u64, input: Input) -> &[Action] {
        self.todo.clear();
        for action in self.engine.step(secs(second), input) {
            match action {
                Action::Emit(event) => self.journal.push(Record {
                    seq: self.journal.len() as u64 + 1,
                    at: Timestamp::UNIX_EPOCH + secs(second),
                    event,
                }),
                action => self.todo.push(action),
            }
        }
        &self.todo
    }

    /// The prompt of the next launch.
    fn launch(&mut self, second: u64) -> (u64, u64, String) {
        match self.say(second, Input::Prompt(Ok("task".into()))) {
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

    fn hears(&mut self, second: u64, event: TranscriptEvent) {
        self.say(second, Input::Transcript(event));
    }

    fn spends(&mut self, second: u64, cost_usd: f64) {
        let usage = Usage {
            cost_usd: Some(cost_usd),
            ..Usage::default()
        };
        self.hears(second, TranscriptEvent::usage(usage));
    }

    /// One iteration: it costs a dollar, says something, and ends in some way.
    fn iteration(&mut self, second: u64, text: &str, end: ProcessEnd) {
        self.launch(second);
        self.spends(second, 1.0);
        self.hears(second, TranscriptEvent::message(Tag::Ai, text));
        self.say(second + 1, Input::Exited { end, swept: 0 });
    }

    fn gate(&mut self, second: u64, code: i32) {
        let end = Some(ProcessEnd::Exited { code });
        let output = "two tests failed".into();
        self.say(second, Input::GateEnded { end, output });
    }

    fn restored(&self) -> RestoredRun {
        let mut restored = RestoredRun::default();
        for record in &self.journal {
            // Over the disk and back, as it is in life.
            let text = serde_json::to_string(record).unwrap();
            restored.fold(&serde_json::from_str(&text).unwrap());
        }
        restored
    }

    /// Killed now, and resumed much later.
    fn killed(mut self) -> Self {
        let restored = self.restored();
        assert_eq!(restored.seq(), self.journal.len() as u64);
        let elapsed = restored.elapsed().as_secs();
        self.engine = Engine::resume(policy(), restored);
        let changed = Vec::new();
        self.say(
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
fn a_killed_run_knows_what_it_knew() {
    let mut life = Life::begin();
    life.iteration(0, "hm", OK);
    life.iteration(10, "hm", ProcessEnd::Exited { code: 1 });
    life.say(12, Input::WakeUp);
    life.iteration(20, "LOOP_COMPLETE", OK);
    life.gate(21, 1);
    let (iteration, attempt, prompt) = life.launch(22);
    assert_eq!((iteration, attempt), (4, 1));
    life.spends(23, 0.5);
    let before = (life.engine.spent.clone(), life.engine.iterations_ended);
    let mut life = life.killed();
    assert_eq!((life.engine.spent.clone(), life.engine.iterations_ended), before);
    assert_eq!(life.engine.failures_in_a_row, 0);
    assert_eq!(life.engine.abandoned.cost_usd, Some(0.5));
    assert_eq!(
        life.launch(23),
        (4, 2, prompt.clone()),
        "the same iteration, with the same prompt"
    );
    assert!(prompt.contains("two tests failed"));
    let mut life = life.killed();
    assert_eq!(life.launch(23).1, 3);
}

#[test]
fn failures_in_a_row_are_counted_on_after_a_kill_and_forgiven_after_giving_up() {
    let failed = ProcessEnd::Exited { code: 1 };
    let mut life = Life::begin();
    life.iteration(0, "hm", failed);
    life.say(2, Input::WakeUp);
    life.iteration(3, "hm", failed);
    let mut life = life.killed();
    assert_eq!(life.engine.failures_in_a_row, 2);
    life.iteration(10, "hm", failed);
    assert!(matches!(life.outcome(), Some(RunOutcome::Failed { .. })));
    let mut life = life.killed();
    life.iteration(20, "hm", failed);
    assert_eq!(life.outcome(), None);
}

#[test]
fn what_an_abandoned_attempt_cost_counts_against_the_budget() {
    let mut life = Life::begin();
    life.launch(0);
    life.spends(1, 4.5);
    let mut life = life.killed();
    life.launch(2);
    life.spends(3, 0.6);
    assert_eq!(life.todo, [Action::Stop { grace: secs(5) }]);
    life.say(4, Input::Exited { end: OK, swept: 0 });
    let limit = Limit::Cost { max_usd: 5.0 };
    assert_eq!(life.outcome(), Some(&RunOutcome::LimitReached { limit }));
}

#[test]
fn a_completed_iteration_without_a_last_word_is_complete() {
    let mut life = Life::begin();
    life.iteration(0, "LOOP_COMPLETE", OK);
    life.gate(2, 0);
    assert!(matches!(
        life.journal.pop().unwrap().event,
        RunEvent::RunEnded { .. }
    ));
    let life = life.killed();
    assert!(matches!(life.outcome(), Some(RunOutcome::Complete { .. })));
}

#[test]
fn an_interrupted_iteration_is_run_again_and_not_counted() {
    let mut life = Life::begin();
    life.iteration(0, "hm", OK);
    life.launch(2);
    life.say(3, Input::Interrupted(Interrupt::Int));
    life.say(4, Input::Exited { end: OK, swept: 0 });
    assert!(matches!(life.outcome(), Some(RunOutcome::Interrupted { .. })));
    let mut life = life.killed();
    assert_eq!(life.engine.iterations_ended, 1);
    let (iteration, attempt, _) = life.launch(5);
    assert_eq!((iteration, attempt), (2, 2));
}

#[test]
fn a_stated_reset_is_waited_for_by_the_resumed_run_too_and_does_not_count_as_time() {
    let mut life = Life::begin();
    life.launch(0);
    let resets_at = Some(Timestamp::UNIX_EPOCH + secs(1000));
    let limit = Meta::RateLimit {
        status: crate::event::RateLimitStatus::Rejected,
        resets_at,
        limit: None,
    };
    life.hears(1, TranscriptEvent::meta(limit));
    let end = ProcessEnd::Exited { code: 1 };
    life.say(2, Input::Exited { end, swept: 0 });
    assert_eq!(life.engine.deadline(), Some(secs(1001)));
    // The clock of the journal stands at 2 when it is killed; a notice comes at 500.
    life.journal.push(Record {
        seq: life.journal.len() as u64 + 1,
        at: Timestamp::UNIX_EPOCH + secs(500),
        event: RunEvent::Notice {
            level: crate::event::Level::Info,
            text: String::new(),
        },
    });
    let mut life = life.killed();
    assert_eq!(life.engine.waited, secs(498));
    assert_eq!(life.engine.deadline(), Some(secs(1001)));
    life.say(1001, Input::Tick);
    let (iteration, attempt, _) = life.launch(1001);
    assert_eq!((iteration, attempt), (1, 2));
    assert_eq!(life.engine.waited, secs(999));
}

#[test]
fn messages_are_told_to_the_attempt_after_a_kill_and_to_no_later_iteration() {
    let order = Command::Message {
        text: "mind the gap".into(),
    };
    let mut life = Life::begin();
    life.say(
        0,
        Input::Command {
            id: "1".into(),
            order,
        },
    );
    assert!(life.launch(0).2.contains("mind the gap"));
    let mut life = life.killed();
    assert_eq!(life.restored().received(), ["1"]);
    assert!(life.launch(1).2.contains("mind the gap"));
    life.say(1, Input::Exited { end: OK, swept: 0 });
    life.say(2, Input::WakeUp);
    let again = life.launch(3).2;
    assert!(
        again.contains("mind the gap"),
        "no output: the agent has not heard it"
    );
    life.hears(3, TranscriptEvent::message(Tag::Ai, "hm"));
    life.say(4, Input::Exited { end: OK, swept: 0 });
    assert!(!life.launch(4).2.contains("mind the gap"));
    let mut life = life.killed();
    assert!(!life.launch(5).2.contains("mind the gap"));
}

#[test]
fn a_standstill_ends_the_run_also_over_a_kill() {
    let look = |life: &mut Life, second, tree: &str| {
        let fingerprint = tree.to_owned();
        life.say(second, Input::WorkspaceScanned { fingerprint });
    };
    let mut life = Life::begin();
    look(&mut life, 0, "a");
    life.iteration(0, "hm", OK);
    look(&mut life, 2, "a");
    life.launch(2);
    let mut life = life.killed();
    look(&mut life, 3, "b");
    life.iteration(3, "hm", OK);
    look(&mut life, 5, "a");
    let Some(RunOutcome::Failed { reason }) = life.outcome() else {
        panic!("{:?}", life.todo);
    };
    assert!(
        reason.starts_with("nothing has changed in 2 iterations in a row"),
        "{reason}"
    );
    let mut life = life.killed();
    look(&mut life, 6, "a");
    assert_eq!(life.outcome(), None, "whoever goes on wants to see it tried");
}

#[test]
fn a_pause_holds_before_the_next_iteration_and_its_time_does_not_count() {
    let mut life = Life::begin();
    life.launch(0);
    let pause = Command::Pause;
    life.say(
        1,
        Input::Command {
            id: "1".into(),
            order: pause,
        },
    );
    life.hears(1, TranscriptEvent::message(Tag::Ai, "hm"));
    assert_eq!(life.say(2, Input::Exited { end: OK, swept: 0 }), []);
    assert_eq!(life.engine.deadline(), None);
    let resume = Command::Resume;
    let told = Input::Command {
        id: "2".into(),
        order: resume,
    };
    assert_eq!(life.say(100, told), [Action::ReadPrompt]);
    assert_eq!(life.engine.waited, secs(98));
    assert_eq!(life.killed().engine.waited, secs(98));
}

#[test]
fn stopping_one_iteration_goes_on_with_the_next_and_is_no_failure() {
    let mut life = Life::begin();
    life.launch(0);
    let order = Command::StopIteration;
    let told = Input::Command {
        id: "1".into(),
        order,
    };
    assert_eq!(life.say(1, told), [Action::Stop { grace: secs(5) }]);
    let end = ProcessEnd::Signaled { signal: 15 };
    assert_eq!(life.say(2, Input::Exited { end, swept: 0 }), [Action::ReadPrompt]);
    assert_eq!(life.launch(2).0, 2);
    assert_eq!(life.engine.failures_in_a_row, 0);
    assert_eq!(life.killed().engine.iterations_ended, 1);
}

#[test]
fn the_user_is_asked_between_iterations_and_not_before_the_first() {
    let mut life = Life::begin();
    life.engine = Engine::new(policy()).asking(Asking::BetweenIterations);
    assert_eq!(
        life.say(0, Input::Started(Box::new(header()))),
        [Action::ReadPrompt]
    );
    life.iteration(0, "hm", OK);
    assert_eq!(life.todo, [Action::Ask]);
    assert_eq!(life.say(50, Input::Answered(Answer::GoOn)), [Action::ReadPrompt]);
    life.iteration(50, "hm", OK);
    assert_eq!(life.todo, [Action::Ask]);
    life.say(60, Input::Answered(Answer::GoOnWithoutAsking));
    life.iteration(60, "hm", OK);
    assert_eq!(life.todo, [Action::ReadPrompt]);
}

#[test]
fn files_out_of_bounds_fail_even_a_claim_to_be_done() {
    let mut life = Life::begin();
    life.launch(0);
    life.hears(1, TranscriptEvent::message(Tag::Ai, "LOOP_COMPLETE"));
    let files: Vec<String> = (0..30).map(|n| format!("f{n}")).collect();
    life.say(2, Input::PathsViolated { files });
    life.say(2, Input::Exited { end: OK, swept: 0 });
    let failure = life.journal.iter().find_map(|record| match &record.event {
        RunEvent::IterationEnded {
            outcome: IterationOutcome::Failed { failure },
            ..
        } => Some(failure.clone()),
        _ => None,
    });
    assert!(
        matches!(&failure, Some(Failure::OutsideAllowedPaths { files, more: 10 }) if files.len() == 20),
        "{failure:?}"
    );
    life.say(5, Input::WakeUp);
    let prompt = life.launch(5).2;
    assert!(prompt.contains("f0, f1, "), "{prompt}");
    let mut life = life.killed();
    assert_eq!(life.launch(6).2, prompt);
}
