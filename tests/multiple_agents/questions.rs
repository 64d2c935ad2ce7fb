//! Tests of questions to the user: a run that is killed while it waits, and an answer that arrives exactly once.

use crate::process::helpers::wait_until;
use crate::sandbox::{DEADLINE, Sandbox};

const ASKS: &str = "read-stdin\nsay <event topic=\"ask\">SQLite or PostgreSQL?</event>\n";

#[test]
fn an_answer_to_a_killed_run_arrives_exactly_once() {
    let sandbox = Sandbox::new();
    sandbox.configure(
        "hooks: {on_ask: 'cat >> asked.json'}\nevent_loop: {prompt: Build it., max_iterations: 3}\n",
    );
    sandbox.script("1", ASKS);
    sandbox.script("2", "read-stdin\nsay more to do\n");
    sandbox.script("3", "read-stdin\nsay LOOP_COMPLETE\n");
    let run = sandbox.start(&["run"]);
    let asked = sandbox.work().join("asked.json");
    wait_until("the hook", DEADLINE, || {
        std::fs::read_to_string(&asked).is_ok_and(|text| text.contains("SQLite or PostgreSQL?"))
    });
    assert!(!sandbox.was_called(2), "the run is paused");
    run.kill();
    let sent = sandbox
        .ralph(&["tell", "--answer", "SQLite, of course"])
        .exits_with(0);
    assert!(
        sent.stdout
            .contains("it will be delivered by: ralph run --continue"),
        "{sent:?}"
    );
    sandbox.ralph(&["run", "--continue"]).exits_with(0);
    let second = sandbox.prompt(2);
    assert!(
        second.contains("> SQLite or PostgreSQL?\n\nThe answer:\n\nSQLite, of course\n"),
        "{second}"
    );
    assert!(!sandbox.prompt(3).contains("SQLite"), "{}", sandbox.prompt(3));
    assert!(
        sandbox
            .prompt(1)
            .contains("<event topic=\"TOPIC\">your question</event> with the topic `ask`"),
        "the prompt explains how to ask"
    );
}

#[test]
fn a_running_loop_continues_with_the_answer() {
    let sandbox = Sandbox::new();
    sandbox.configure("event_loop: {prompt: Build it., max_iterations: 3}\n");
    sandbox.script("1", ASKS);
    sandbox.script("2", "read-stdin\nsay LOOP_COMPLETE\n");
    let run = sandbox.start(&["run"]);
    wait_until("the question", DEADLINE, || {
        sandbox.journal_text().contains("question_asked")
    });
    sandbox.ralph(&["tell", "--answer", "SQLite"]).exits_with(0);
    let output = run.finish().exits_with(0);
    assert!(
        output.stdout.contains("the agent asks: SQLite or PostgreSQL?"),
        "{output:?}"
    );
    assert!(sandbox.prompt(2).contains("The answer:\n\nSQLite\n"));
}

#[test]
fn the_topic_of_questions_cannot_trigger_a_hat() {
    let sandbox = Sandbox::new();
    sandbox.configure("hats: {ada: {triggers: [task.start, ask]}}\n");
    let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(2);
    assert!(
        output.stderr.contains("the topic `ask` is reserved"),
        "{output:?}"
    );
}
