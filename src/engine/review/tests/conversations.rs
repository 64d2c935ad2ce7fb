//! Conversations with the engine about reviews.

use crate::engine::review::*;
use crate::engine::tests::{TestRun, agent, complete, error, gate, policy, secs, stop, stop_by, wake};
use crate::event::{ErrorClass, Meta, RateLimitStatus, Tag, Usd};

const OK: AgentEnd = AgentEnd::Exited { code: 0 };

/// The worker is agent 0, the reviewers are agents 1 and up.
fn reviewed(reviewers: usize) -> Policy {
    let mut rules = policy();
    let mut review = Gate::new("review", "");
    review.rounds = Some(2);
    rules.gates = vec![review];
    let reviewers = (1..=reviewers).map(|index| {
        rules.agents.rules.push(agent(&format!("codex-{index}")));
        GateReviewer {
            name: format!("r{index}"),
            agent: index,
            instructions: Some(format!("look at {index}")),
        }
    });
    let reviewers = reviewers.collect();
    rules.reviewers.by_gate.insert("review".into(), reviewers);
    rules
}

fn material() -> Input {
    Input::ReviewPrepared(Ok(Box::new(ReviewMaterial {
        tree: "t1".into(),
        directory: "/checkout".into(),
        patch: "+new line".into(),
        patch_file: "patch".into(),
        ..ReviewMaterial::default()
    })))
}

fn launch(actions: Vec<Action>) -> ReviewerLaunch {
    match <[Action; 1]>::try_from(actions) {
        Ok([Action::LaunchReviewer(launch)]) => *launch,
        other => panic!("expected the launch of a reviewer: {other:?}"),
    }
}

/// The agent claims to be done, and the first reviewer starts.
fn claimed(run: &mut TestRun, seconds: u64) -> ReviewerLaunch {
    let actions = run.iteration(seconds, "LOOP_COMPLETE");
    assert!(
        matches!(actions[..], [Action::PrepareReview { .. }]),
        "{actions:?}"
    );
    launch(run.step(seconds, material()))
}

/// The running reviewer answers and ends.
fn answers(run: &mut TestRun, seconds: u64, text: &str) -> Vec<Action> {
    run.agent_message(seconds, text);
    run.result(seconds);
    let actions = run.step(seconds, Input::AgentEnded { end: OK, swept: 0 });
    assert_eq!(actions, [Action::CheckReview]);
    run.step(seconds, Input::ReviewChecked { altered: Vec::new() })
}

const CLEAN: &str = "{\"findings\": []}";
const LEAK: &str = "{\"findings\": [{\"file\": \"/checkout/a.rs\", \"line\": 3, \"category\": \"bug\", \"severity\": \"high\", \
                    \"claim\": \"leak\"}]}";

fn unreviewed(reason: &str) -> Vec<Action> {
    vec![Action::Finish(RunOutcome::Unreviewed {
        gate: "review".into(),
        reason: reason.into(),
    })]
}

fn reviewer_results(run: &TestRun) -> Vec<ReviewerResult> {
    let ended = run.emitted.iter().filter_map(|event| match event {
        RunEvent::ReviewEnded { result, .. } => Some(result.clone()),
        _ => None,
    });
    ended.collect()
}

#[test]
fn clean_review_completes_the_run() {
    let mut run = TestRun::launched(reviewed(2));
    let first = claimed(&mut run, 1);
    assert_eq!((first.agent, first.number, &*first.reviewer), (1, 1, "r1"));
    for expected in ["look at 1", "+new line", "task"] {
        assert!(first.prompt.contains(expected), "{expected}: {}", first.prompt);
    }
    // An agent that only repeats its prompt has not answered.
    assert!(answer::parse(&first.prompt).is_err());
    let second = launch(answers(&mut run, 2, CLEAN));
    assert_eq!((second.agent, second.number), (2, 2));
    assert_eq!(
        answers(&mut run, 3, CLEAN),
        [Action::CheckTree {
            tree: Some("t1".into())
        }]
    );
    assert_eq!(
        run.step(3, Input::TreeChecked(Ok(CheckedTree::default()))),
        complete()
    );
}

#[test]
fn reviewer_that_writes_into_the_workspace_does_not_complete_the_run() {
    let mut run = TestRun::launched(reviewed(1));
    claimed(&mut run, 1);
    answers(&mut run, 2, CLEAN);
    let checked = CheckedTree {
        changed: vec!["a.rs".into()],
        ..CheckedTree::default()
    };
    assert_eq!(run.step(3, Input::TreeChecked(Ok(checked))), [Action::ReadPrompt]);
}

#[test]
fn findings_go_to_the_agent_which_answers_them() {
    let mut run = TestRun::launched(reviewed(1));
    claimed(&mut run, 1);
    assert_eq!(answers(&mut run, 2, LEAK), [Action::ReadPrompt]);
    let prompt = run.launch(2, 2, 1);
    for expected in [
        "F1 high bug at a.rs:3: leak",
        "ID disputed: why",
        "topic `finding`",
    ] {
        assert!(prompt.contains(expected), "{expected}: {prompt}");
    }
    assert!(!prompt.contains("ralph ran"), "{prompt}");
    let done = "<event topic=\"finding\">F1 disputed: the caller frees it</event>\nLOOP_COMPLETE";
    let actions = run.iteration(3, done);
    assert!(
        matches!(&actions[..], [Action::PrepareReview { first_round: Some(tree), .. }] if tree == "t1"),
        "{actions:?}"
    );
    let review = launch(run.step(3, material()));
    assert!(
        review
            .prompt
            .contains("[the agent: disputed: the caller frees it]"),
        "{}",
        review.prompt
    );
    assert_eq!(
        answers(&mut run, 4, LEAK),
        unreviewed("its 2 rounds are used up; finding F1 is open")
    );
}

#[test]
fn garbage_is_asked_for_once_more_and_then_rejects() {
    let mut run = TestRun::launched(reviewed(1));
    claimed(&mut run, 1);
    let again = launch(answers(&mut run, 2, "LGTM, ship it! LOOP_COMPLETE"));
    assert!(
        again
            .prompt
            .contains("did not count: the final message contains no JSON"),
        "{}",
        again.prompt
    );
    assert_eq!(answers(&mut run, 3, "{\"findings\": 3}"), [Action::ReadPrompt]);
    assert!(run.launch(3, 2, 1).contains("gave no valid answer"));
    claimed(&mut run, 4);
    launch(answers(&mut run, 5, "hm"));
    assert_eq!(
        answers(&mut run, 6, "hm"),
        unreviewed("its 2 rounds are used up without a valid answer")
    );
}

#[test]
fn reviewer_that_changes_its_checkout_has_not_answered() {
    let mut run = TestRun::launched(reviewed(1));
    claimed(&mut run, 1);
    for number in 1..=2 {
        run.agent_message(2, CLEAN);
        run.result(2);
        run.step(2, Input::AgentEnded { end: OK, swept: 0 });
        let altered = vec!["a.rs".to_owned()];
        let actions = run.step(2, Input::ReviewChecked { altered });
        match number {
            1 => assert!(
                launch(actions)
                    .prompt
                    .contains("it changed files of its checkout: a.rs")
            ),
            _ => assert_eq!(actions, [Action::ReadPrompt]),
        }
    }
}

#[test]
fn worker_does_not_review_itself() {
    let mut rules = reviewed(1);
    rules.reviewers.by_gate.get_mut("review").unwrap()[0].agent = 0;
    let mut run = TestRun::launched(rules.clone());
    run.iteration(1, "LOOP_COMPLETE");
    assert_eq!(run.step(1, material()), [Action::ReadPrompt]);
    rules.gates[0].same = true;
    let mut run = TestRun::launched(rules);
    assert_eq!(claimed(&mut run, 1).agent, 0);
}

#[test]
fn limited_reviewer_is_started_again_after_the_reset() {
    let mut run = TestRun::launched(reviewed(1));
    claimed(&mut run, 1);
    let limited = |run: &mut TestRun, at: u64| {
        run.meta(
            at,
            Meta::RateLimit {
                status: RateLimitStatus::Rejected,
                resets_at: Some("1970-01-01T00:10:00Z".parse().unwrap()),
                limit: None,
                utilization: None,
            },
        );
        let end = AgentEnd::Exited { code: 1 };
        run.step(at, Input::AgentEnded { end, swept: 0 })
    };
    assert_eq!(limited(&mut run, 2), []);
    assert_eq!(run.engine.deadline(), Some(secs(601)));
    assert_eq!(run.step(600, Input::Tick), []);
    assert_eq!(launch(run.step(601, Input::Tick)).number, 2);
    // The user wants to try now.
    limited(&mut run, 601);
    assert_eq!(launch(run.step(602, wake())).number, 3);
    assert!(matches!(
        answers(&mut run, 603, CLEAN)[..],
        [Action::CheckTree { .. }]
    ));
    // Stopping during the wait takes effect at once.
    let mut run = TestRun::launched(reviewed(1));
    claimed(&mut run, 1);
    limited(&mut run, 2);
    let by = Interrupt::Int;
    assert_eq!(
        run.step(3, stop_by(by)),
        [Action::Finish(RunOutcome::Interrupted { by })]
    );
}

#[test]
fn reviewer_without_login_ends_the_run() {
    let mut run = TestRun::launched(reviewed(1));
    claimed(&mut run, 1);
    run.meta(2, error(ErrorClass::Auth, "invalid key"));
    let end = AgentEnd::Exited { code: 1 };
    let actions = run.step(2, Input::AgentEnded { end, swept: 0 });
    assert!(
        matches!(&actions[..], [Action::Finish(RunOutcome::AuthRequired { message })] if message.contains("codex-1")),
        "{actions:?}"
    );
}

#[test]
fn reviewer_can_be_interrupted_time_out_and_fail() {
    let mut run = TestRun::launched(reviewed(1));
    claimed(&mut run, 1);
    assert_eq!(run.step(2, stop_by(Interrupt::Int)), stop());
    let ended = |run: &mut TestRun, at| {
        let end = AgentEnd::Signaled { signal: 15 };
        run.step(at, Input::AgentEnded { end, swept: 0 })
    };
    let by = Interrupt::Int;
    assert_eq!(
        ended(&mut run, 3),
        [Action::Finish(RunOutcome::Interrupted { by })]
    );
    assert_eq!(reviewer_results(&run), [ReviewerResult::Stopped]);

    let mut rules = reviewed(1);
    rules.gates[0].timeout = Seconds(60);
    let mut run = TestRun::launched(rules);
    claimed(&mut run, 1);
    assert_eq!(run.engine.deadline(), Some(secs(61)));
    assert_eq!(run.step(61, Input::Tick), stop());
    assert_eq!(launch(ended(&mut run, 62)).number, 2);
    let error = "no such file".to_owned();
    assert_eq!(run.step(63, Input::CouldNotStart { error }), [Action::ReadPrompt]);
    let problems = reviewer_results(&run).into_iter().map(|result| match result {
        ReviewerResult::Unanswered { problem } => problem,
        other => panic!("{other:?}"),
    });
    let problems: Vec<String> = problems.collect();
    assert!(
        problems[0].contains("timed out") && problems[1].contains("no such file"),
        "{problems:?}"
    );
}

#[test]
fn checkout_that_cannot_be_prepared_is_no_review() {
    let mut run = TestRun::launched(reviewed(1));
    run.iteration(1, "LOOP_COMPLETE");
    let reason = Err("the disk is full".to_owned());
    assert_eq!(run.step(2, Input::ReviewPrepared(reason)), [Action::ReadPrompt]);
    run.launch(2, 2, 1);
    run.iteration(3, "LOOP_COMPLETE");
    let reason = Err("the disk is full".to_owned());
    assert_eq!(
        run.step(4, Input::ReviewPrepared(reason)),
        unreviewed("its 2 rounds are used up without a valid answer")
    );
}

#[test]
fn cost_of_reviewers_counts_for_the_run_and_its_budget() {
    let mut rules = reviewed(1);
    rules.limits.cost_usd = Some(1.0);
    let mut run = TestRun::launched(rules.clone());
    run.spend(1, 0.5);
    claimed(&mut run, 2);
    run.spend(3, 0.25);
    assert!(matches!(
        answers(&mut run, 4, CLEAN)[..],
        [Action::CheckTree { .. }]
    ));
    run.step(5, Input::TreeChecked(Ok(CheckedTree::default())));
    let costs = run.emitted.iter().filter_map(|event| match event {
        RunEvent::ReviewEnded { usage, .. }
        | RunEvent::IterationEnded { usage, .. }
        | RunEvent::RunEnded { usage, .. } => usage.cost_usd,
        _ => None,
    });
    assert_eq!(
        costs.collect::<Vec<_>>(),
        [0.25, 0.75, 0.75].map(|cost| Usd::new(cost).unwrap())
    );

    // The budget stops a reviewer, and no reviewer starts without budget.
    let mut run = TestRun::launched(rules.clone());
    run.spend(1, 0.5);
    claimed(&mut run, 2);
    assert_eq!(run.spend(3, 0.75), stop());
    let limit = RunLimit::Cost { max_usd: 1.0 };
    let over = vec![Action::Finish(RunOutcome::LimitReached { limit })];
    let end = AgentEnd::Signaled { signal: 15 };
    assert_eq!(run.step(4, Input::AgentEnded { end, swept: 0 }), over);
    assert_eq!(run.engine.spent.cost_usd, Usd::new(1.25));
    let mut run = TestRun::launched(rules);
    let total = Usage {
        cost_usd: Usd::new(2.0),
        scope: UsageScope::Iteration,
        ..Usage::default()
    };
    run.step(1, Input::Transcript(TranscriptEvent::usage(total)));
    run.iteration(2, "LOOP_COMPLETE");
    assert_eq!(run.step(3, material()), over);
}

#[test]
fn killed_review_is_repeated_in_the_same_round_with_its_cost() {
    let rules = reviewed(1);
    let mut run = TestRun::launched(rules.clone());
    claimed(&mut run, 1);
    answers(&mut run, 2, LEAK);
    run.launch(2, 2, 1);
    claimed(&mut run, 3);
    run.spend(4, 0.5);
    // ralph is killed while the reviewer works.
    let mut restored = RestoredRun::default();
    for (seq, event) in (1..).zip(run.emitted) {
        restored.fold(&crate::event::Record::new(seq, Timestamp::UNIX_EPOCH, event));
    }
    assert_eq!(restored.used().cost_usd, Usd::new(0.5));
    let mut run = TestRun {
        engine: Engine::resume(rules, restored),
        emitted: Vec::new(),
        reported_usd: Vec::new(),
    };
    let (header, changed) = (Box::new(crate::engine::tests::header()), Vec::new());
    assert_eq!(
        run.step(5, Input::Resumed { header, changed }),
        [Action::ReadPrompt]
    );
    assert!(run.launch(5, 2, 2).contains("F1 high bug at a.rs:3"));
    claimed(&mut run, 6);
    let round = run.emitted.iter().rev().find_map(|event| match event {
        RunEvent::ReviewStarted { round, .. } => Some(*round),
        _ => None,
    });
    assert_eq!(round, Some(2));
    assert_eq!(
        answers(&mut run, 7, LEAK),
        unreviewed("its 2 rounds are used up; finding F1 is open")
    );
    assert_eq!(run.engine.spent.cost_usd, Usd::new(0.5));
}

#[test]
fn resumed_unreviewed_run_has_new_rounds() {
    let rules = reviewed(1);
    let mut run = TestRun::launched(rules.clone());
    claimed(&mut run, 1);
    answers(&mut run, 2, LEAK);
    run.launch(2, 2, 1);
    claimed(&mut run, 3);
    assert!(matches!(answers(&mut run, 4, LEAK)[..], [Action::Finish(_)]));
    let mut restored = RestoredRun::default();
    for (seq, event) in (1..).zip(run.emitted) {
        restored.fold(&crate::event::Record::new(seq, Timestamp::UNIX_EPOCH, event));
    }
    let engine = Engine::resume(rules, restored);
    assert_eq!(engine.reviews.rounds("review").failed, 0);
    assert!(engine.findings()[0].status.blocks());
}

#[test]
fn commands_run_before_a_review_in_the_configured_order() {
    let mut rules = reviewed(1);
    rules.gates.insert(0, gate("test"));
    let mut run = TestRun::launched(rules);
    assert_eq!(run.iteration(1, "LOOP_COMPLETE"), [Action::RunGate(gate("test"))]);
    let passed = GateEnd {
        end: Some(ProcessEnd::Exited { code: 0 }),
        ..GateEnd::default()
    };
    let actions = run.step(2, Input::GateEnded(passed));
    assert!(
        matches!(actions[..], [Action::PrepareReview { .. }]),
        "{actions:?}"
    );
}

#[test]
fn topics_and_sessions_of_reviewers_mean_nothing() {
    let mut rules = reviewed(1);
    rules.session = Session::Continue;
    let mut run = TestRun::launched(rules);
    claimed(&mut run, 1);
    run.meta(
        2,
        Meta::Session {
            session_id: "of-the-reviewer".into(),
            model: None,
            version: None,
        },
    );
    run.step(
        2,
        Input::Transcript(TranscriptEvent::message(
            Tag::Ai,
            "<event topic=\"ask\">Really?</event>",
        )),
    );
    assert_eq!(answers(&mut run, 3, LEAK), [Action::ReadPrompt]);
    assert!(
        !run.emitted
            .iter()
            .any(|event| matches!(event, RunEvent::Topic { .. }))
    );
    let actions = run.step(3, Input::Prompt(Ok("task".into())));
    assert!(
        matches!(&actions[..], [Action::Launch { session: None, .. }]),
        "{actions:?}"
    );
}
