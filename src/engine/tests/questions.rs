//! Tests for questions of the agent to the user.

use super::*;
use crate::event::Record;

const QUESTION: &str = "<event topic=\"ask\">SQLite or PostgreSQL?</event>";

/// A run whose first iteration has asked a question.
fn asked(policy: Policy) -> TestRun {
    let mut run = TestRun::launched(policy);
    assert_eq!(run.iteration(10, QUESTION), [Action::AskQuestion]);
    run
}

fn reply(text: &str) -> Input {
    command(Command::AnswerQuestion { text: text.into() })
}

/// Restarts ralph: a new engine continues from the journal.
fn killed_and_resumed(run: &TestRun, policy: Policy) -> TestRun {
    let mut restored = RestoredRun::default();
    for (seq, event) in (1..).zip(&run.emitted) {
        let (at, event) = (Timestamp::UNIX_EPOCH, event.clone());
        restored.fold(&Record {
            seq,
            at,
            chain: None,
            event,
        });
    }
    TestRun {
        engine: Engine::resume(policy, restored),
        emitted: run.emitted.clone(),
        reported_usd: Vec::new(),
    }
}

fn resume(run: &mut TestRun, seconds: u64) -> Vec<Action> {
    let (header, changed) = (Box::new(header()), Vec::new());
    run.step(seconds, Input::Resumed { header, changed })
}

fn prompt(run: &mut TestRun, seconds: u64) -> String {
    match run.step(seconds, Input::Prompt(Ok("task".into()))).pop() {
        Some(Action::Launch { prompt, .. }) => prompt,
        other => panic!("expected a launch: {other:?}"),
    }
}

fn has_answer(prompt: &str) -> bool {
    prompt.contains("> SQLite or PostgreSQL?\n\nThe answer:\n\nSQLite\n")
}

#[test]
fn the_run_pauses_until_the_answer_which_one_prompt_contains() {
    let mut run = asked(policy());
    assert!(matches!(
        run.emitted.last(),
        Some(RunEvent::QuestionAsked { question, .. }) if question == "SQLite or PostgreSQL?"
    ));
    assert_eq!(run.engine.deadline(), None, "it waits as long as it takes");
    assert_eq!(run.step(90_000, reply("SQLite")), [Action::ReadPrompt]);
    assert!(has_answer(&prompt(&mut run, 90_000)));
    run.iteration(90_010, "more to do");
    assert!(!prompt(&mut run, 90_010).contains("SQLite"), "exactly once");
}

#[test]
fn resume_and_wake_do_not_answer() {
    let mut run = asked(policy());
    for input in [command(Command::Resume), wake()] {
        assert_eq!(run.step(20, input), [Action::AskQuestion]);
    }
    assert_eq!(run.step(30, answer(Answer::Continue)), [Action::ReadPrompt]);
    assert!(prompt(&mut run, 30).contains("The answer:\n\ncontinue\n"));
}

#[test]
fn a_claim_in_the_message_of_a_question_does_not_count() {
    let mut run = TestRun::launched(policy());
    assert_eq!(
        run.iteration(1, &format!("{QUESTION}\nLOOP_COMPLETE")),
        [Action::AskQuestion]
    );
    assert!(
        run.emitted
            .iter()
            .any(|event| matches!(event, RunEvent::MarkerIgnored { .. }))
    );
}

#[test]
fn a_question_goes_to_the_user_and_to_no_hat() {
    let mut rules = policy();
    rules.hats = Hats::new(vec![crate::engine::hats::tests::hat("any", &["*"], &["next"])]).unwrap();
    let mut run = TestRun::launched(rules);
    assert_eq!(run.iteration(1, QUESTION), [Action::AskQuestion]);
    run.step(2, reply("SQLite"));
    let next = prompt(&mut run, 2);
    assert!(has_answer(&next) && !next.contains("- ask"), "{next}");
}

#[test]
fn an_answer_survives_any_number_of_restarts_and_arrives_once() {
    // Killed while the question is open.
    let run = asked(policy());
    let mut run = killed_and_resumed(&run, policy());
    assert_eq!(resume(&mut run, 20), [Action::AskQuestion]);
    let id = "tell-1".to_owned();
    let request = |text: &str| {
        Input::Command(CommandRequest {
            id: id.clone(),
            command: Command::AnswerQuestion { text: text.into() },
        })
    };
    assert_eq!(run.step(30, request("SQLite")), [Action::ReadPrompt]);
    // Killed before the agent received it, then while the agent worked. The inbox delivers the same file again.
    for launched_before in [false, true] {
        if launched_before {
            assert!(has_answer(&prompt(&mut run, 40)));
        }
        run = killed_and_resumed(&run, policy());
        assert_eq!(resume(&mut run, 50), [Action::ReadPrompt]);
        assert_eq!(run.step(50, request("SQLite")), []);
    }
    let last = prompt(&mut run, 60);
    assert!(has_answer(&last), "{last}");
    assert_eq!(last.matches("The answer:").count(), 1);
    run.iteration(70, "more to do");
    assert!(!prompt(&mut run, 70).contains("SQLite"));
}

#[test]
fn a_repeated_iteration_asks_again() {
    let mut run = TestRun::launched(policy());
    run.agent_message(1, QUESTION);
    run.meta(1, error(ErrorClass::RateLimit, "limit"));
    run.meta(1, finished(false));
    assert_eq!(run.exit(1), [], "waits for the limit, not for an answer");
    assert_eq!(run.step(10_000, Input::Tick), [Action::ReadPrompt]);
}

#[test]
fn without_an_answer_in_time_the_configured_answer_applies_or_the_run_ends() {
    let mut rules = policy();
    rules.questions.timeout = Some(secs(3600));
    rules.questions.default = Some("SQLite".into());
    let mut run = asked(rules.clone());
    assert_eq!(run.engine.deadline(), Some(secs(3610)));
    assert_eq!(run.step(3610, Input::Tick), [Action::ReadPrompt]);
    assert!(has_answer(&prompt(&mut run, 3610)));

    rules.questions.default = None;
    let mut run = asked(rules.clone());
    let ended = run.step(3610, Input::Tick);
    assert!(
        matches!(&ended[..], [Action::Finish(RunOutcome::Failed { reason })] if reason.contains("within 1h")),
        "{ended:?}"
    );
    // The question stays open for a resumed run.
    let mut run = killed_and_resumed(&run, rules);
    assert_eq!(resume(&mut run, 4000), [Action::AskQuestion]);
}

#[test]
fn a_message_answers_an_open_question_and_is_a_message_otherwise() {
    let mut run = asked(policy());
    assert_eq!(
        run.step(
            20,
            command(Command::Message {
                text: "SQLite".into()
            })
        ),
        [Action::ReadPrompt]
    );
    assert!(has_answer(&prompt(&mut run, 20)));
    run.step(21, reply("and hurry"));
    run.iteration(22, "more to do");
    assert!(
        prompt(&mut run, 22).contains("Message from the user, sent while you were running:\n\nand hurry")
    );
}

#[test]
fn quit_and_ctrl_c_end_a_run_that_waits_for_an_answer() {
    for input in [answer(Answer::Quit), stop_by(Interrupt::Int)] {
        let mut run = asked(policy());
        let ended = run.step(20, input);
        assert!(
            matches!(&ended[..], [Action::Finish(RunOutcome::Interrupted { .. })]),
            "{ended:?}"
        );
    }
}
