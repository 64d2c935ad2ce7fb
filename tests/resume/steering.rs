//! Commands to a running loop arrive exactly once, even if ralph is killed in between, and take effect.

use std::fs;
use std::time::{Duration, Instant};

use ralph::event::{Answer, Command, Interrupt, IterationOutcome, RunEvent, RunOutcome};

use crate::process::helpers::wait_until;
use crate::sandbox::{DEADLINE, Sandbox};
use crate::tui::terminal::Terminal;

const CONFIG: &str = "event_loop: {prompt: the task, max_no_progress: 0}\n";

const CONTINUE_QUESTION: &str = "continue? Enter: yes";

fn received_commands(sandbox: &Sandbox) -> Vec<Command> {
    let commands = sandbox
        .history()
        .into_iter()
        .filter_map(|record| match record.event {
            RunEvent::CommandReceived { command: order, .. } => Some(order),
            _ => None,
        });
    commands.collect()
}

fn inbox_is_empty(sandbox: &Sandbox) -> bool {
    fs::read_dir(sandbox.only_run().join("inbox")).is_ok_and(|mut inbox| inbox.next().is_none())
}

#[test]
fn messages_go_into_the_next_prompt_once_and_in_order() {
    let sandbox = Sandbox::scripted("read-stdin\nsay hm", CONFIG)
        .with_script("1", "read-stdin\ntouch first\nwait-for go\nsay hm")
        .with_script("3", "read-stdin\nsay LOOP_COMPLETE");
    let child = sandbox.start(&["run"]);
    wait_until("the agent", DEADLINE, || {
        sandbox.path("agent").join("first").exists()
    });
    assert_eq!(sandbox.ralph(&["tell", "one: mind the gap"]).exit(), 0);
    let output = sandbox.ralph(&["tell", &sandbox.run_id(), "two"]);
    assert!(
        output.text().contains("added to the next prompt"),
        "{}",
        output.text()
    );
    wait_until("both in the journal", DEADLINE, || {
        received_commands(&sandbox).len() == 2
    });
    fs::write(sandbox.path("agent").join("go"), "").expect("a file");
    assert_eq!(child.finish().exit(), 0);
    let prompts = [sandbox.prompt(1), sandbox.prompt(2), sandbox.prompt(3)];
    assert!(
        !prompts[0].contains("mind the gap") && !prompts[2].contains("mind the gap"),
        "{prompts:?}"
    );
    let (one, two) = (prompts[1].find("one: mind the gap"), prompts[1].find("two"));
    assert!(one.is_some() && one < two, "{prompts:?}");
    assert!(inbox_is_empty(&sandbox));
}

#[test]
fn a_message_that_is_in_the_journal_and_still_in_the_inbox_is_delivered_once() {
    let sandbox =
        Sandbox::scripted("read-stdin\nsay hm", "").with_script("3", "read-stdin\nsay LOOP_COMPLETE");
    assert_eq!(sandbox.ralph(&["run", "-p", "x", "-n", "1"]).exit(), 3);
    assert!(
        sandbox
            .ralph(&["tell", "hello"])
            .text()
            .contains("the run is not active")
    );
    let inbox = sandbox.only_run().join("inbox");
    let entry = fs::read_dir(&inbox)
        .expect("an inbox")
        .next()
        .expect("a message")
        .expect("a message");
    let (path, message) = (entry.path(), fs::read(entry.path()).expect("a message"));
    assert_eq!(sandbox.ralph(&["run", "--continue", "-n", "2"]).exit(), 3);
    assert!(sandbox.prompt(2).contains("hello"));
    // As if ralph had been killed after the journal was written and before the file was removed.
    fs::write(&path, message).expect("a message");
    assert_eq!(sandbox.ralph(&["run", "--continue", "-n", "3"]).exit(), 0);
    assert!(!sandbox.prompt(3).contains("hello"), "{}", sandbox.prompt(3));
    assert_eq!(received_commands(&sandbox).len(), 1);
    assert!(inbox_is_empty(&sandbox));
}

#[test]
fn a_text_file_in_the_inbox_is_delivered_once() {
    let sandbox = Sandbox::scripted("read-stdin\nsay hm", CONFIG)
        .with_script("1", "read-stdin\ntouch first\nwait-for go\nsay hm")
        .with_script("3", "read-stdin\nsay LOOP_COMPLETE");
    let child = sandbox.start(&["run"]);
    sandbox.wait_for_file(&sandbox.path("agent").join("first"));
    let inbox = sandbox.only_run().join("inbox");
    fs::create_dir_all(&inbox).expect("an inbox");
    fs::write(inbox.join("note.md"), "use the new API\n").expect("a note");
    wait_until("the note in the journal", DEADLINE, || {
        received_commands(&sandbox).len() == 1
    });
    fs::write(sandbox.path("agent").join("go"), "").expect("a file");
    assert_eq!(child.finish().exit(), 0);
    let delivered_in: Vec<usize> = (1..=3)
        .filter(|invocation| sandbox.prompt(*invocation).contains("use the new API"))
        .collect();
    assert_eq!(delivered_in, [2]);
    assert!(inbox_is_empty(&sandbox));
}

#[test]
fn a_message_survives_a_killed_attempt() {
    let sandbox = Sandbox::scripted("read-stdin\nsay LOOP_COMPLETE", CONFIG)
        .with_script("1", "read-stdin\nsay hm")
        .with_script("2", "read-stdin\ntouch second\nhang");
    assert_eq!(sandbox.ralph(&["run", "-n", "1"]).exit(), 3);
    sandbox.ralph(&["tell", "hello"]);
    let child = sandbox.start(&["run", "--continue", "-n", "5"]);
    wait_until("the second call", DEADLINE, || {
        sandbox.path("agent").join("second").exists()
    });
    child.kill();
    assert_eq!(sandbox.ralph(&["run", "--continue"]).exit(), 0);
    assert_eq!(sandbox.prompt(2), sandbox.prompt(3));
    assert!(sandbox.prompt(3).contains("hello"));
}

#[test]
fn a_paused_run_starts_nothing_until_it_is_resumed() {
    let sandbox =
        Sandbox::scripted("say LOOP_COMPLETE", CONFIG).with_script("1", "touch first\nwait-for go\nsay hm");
    let child = sandbox.start(&["run"]);
    wait_until("the agent", DEADLINE, || {
        sandbox.path("agent").join("first").exists()
    });
    sandbox.ralph(&["tell", "--pause"]);
    wait_until("the command", DEADLINE, || {
        received_commands(&sandbox) == [Command::Pause]
    });
    fs::write(sandbox.path("agent").join("go"), "").expect("a file");
    sandbox.wait_for_event("the pause", |event| matches!(event, RunEvent::Paused));
    assert_eq!(sandbox.pids().len(), 1, "nothing runs");
    sandbox.ralph(&["tell", "--resume"]);
    assert_eq!(child.finish().exit(), 0);
    assert_eq!(sandbox.run_end().1, 2);
}

#[test]
fn one_iteration_can_be_stopped_without_stopping_the_run() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", CONFIG).with_script("1", "touch first\nhang");
    let child = sandbox.start(&["run"]);
    wait_until("the agent", DEADLINE, || {
        sandbox.path("agent").join("first").exists()
    });
    sandbox.ralph(&["tell", "--stop-iteration"]);
    assert_eq!(child.finish().exit(), 0);
    assert_eq!(sandbox.iteration_outcomes()[0].2, IterationOutcome::Skipped);
    assert_eq!(sandbox.run_end().1, 2);
}

#[test]
fn a_run_can_be_stopped_and_killed_from_outside() {
    for (flag, stopped) in [("--stop", "stop"), ("--kill", "kill")] {
        let sandbox = Sandbox::scripted("touch first\nhang", CONFIG);
        let child = sandbox.start(&["run"]);
        sandbox.wait_for_file(&sandbox.path("agent").join("first"));
        sandbox.ralph(&["tell", flag]).exits_with(0);
        child.finish().exits_with(130);
        let by = Interrupt::Quit;
        assert_eq!(sandbox.run_end().0, RunOutcome::Interrupted { by });
        assert_eq!(sandbox.records("told")[0]["kind"], stopped);
        assert!(inbox_is_empty(&sandbox));
    }
}

#[test]
fn a_question_can_be_answered_from_outside() {
    let sandbox = Sandbox::scripted("say hm", CONFIG);
    let terminal = Terminal::start(&sandbox, &["run", "--interactive", "--no-tui"], (100, 30));
    sandbox.wait_for_event("the question", |event| matches!(event, RunEvent::Asking));
    sandbox.ralph(&["tell", "--answer", "quit"]).exits_with(0);
    terminal.ends("exit status: 130");
    let answer = Answer::Quit;
    assert_eq!(received_commands(&sandbox), [Command::Answer { answer }]);
}

#[test]
fn commands_for_an_ended_process_are_not_delivered_to_the_next() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", CONFIG).with_script("1", "say hm");
    sandbox.ralph(&["run", "-n", "1"]).exits_with(3);
    for flag in ["--stop", "--kill", "--stop-iteration"] {
        let output = sandbox.ralph(&["tell", flag]).exits_with(2);
        assert!(output.text().contains("is not active"), "{}", output.text());
    }
    // As if the run had ended before it read the command.
    let inbox = sandbox.only_run().join("inbox");
    fs::create_dir_all(&inbox).expect("an inbox");
    fs::write(inbox.join("1.json"), r#"{"version":1,"kind":"stop"}"#).expect("a command");
    sandbox.ralph(&["run", "--continue", "-n", "2"]).exits_with(0);
    assert_eq!(received_commands(&sandbox), []);
    assert!(inbox_is_empty(&sandbox));
}

#[test]
fn a_command_that_is_sent_twice_with_one_id_is_applied_once() {
    let sandbox = Sandbox::scripted("read-stdin\nsay LOOP_COMPLETE", CONFIG).with_script("1", "say hm");
    sandbox.ralph(&["run", "-n", "1"]).exits_with(3);
    let inbox = sandbox.only_run().join("inbox");
    fs::create_dir_all(&inbox).expect("an inbox");
    let content = r#"{"version":1,"id":"mine","kind":"message","text":"sent twice"}"#;
    fs::write(inbox.join("1.json"), content).expect("a command");
    fs::write(inbox.join("2.json"), content).expect("a command");
    sandbox.ralph(&["run", "--continue", "-n", "2"]).exits_with(0);
    assert_eq!(received_commands(&sandbox).len(), 1);
    assert_eq!(sandbox.prompt(2).matches("sent twice").count(), 1);
    assert!(inbox_is_empty(&sandbox));
}

#[test]
fn a_wait_can_be_ended_from_outside() {
    let config = "event_loop: {prompt: x, cooldown_seconds: 3600}\n";
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", config).with_script("1", "say hm");
    let since = Instant::now();
    let child = sandbox.start(&["run"]);
    sandbox.wait_for_event("the wait", |event| matches!(event, RunEvent::Waiting { .. }));
    sandbox.ralph(&["tell", "--wake"]);
    assert_eq!(child.finish().exit(), 0);
    assert!(since.elapsed() < Duration::from_secs(60));
}

#[test]
fn commands_that_cannot_be_delivered_are_errors() {
    let sandbox = Sandbox::scripted("say hm", CONFIG);
    assert_eq!(sandbox.ralph(&["tell", "hello"]).exit(), 2, "no run");
    assert_eq!(sandbox.ralph(&["run", "-n", "1"]).exit(), 3);
    assert_eq!(sandbox.ralph(&["tell", " "]).exit(), 2);
    assert_eq!(sandbox.ralph(&["tell", "--pause", "--wake"]).exit(), 2);
    assert_eq!(sandbox.ralph(&["tell", "no-such-run", "hello"]).exit(), 2);
}

#[test]
fn asking_between_iterations_needs_a_terminal() {
    let sandbox = Sandbox::scripted("say hm", CONFIG);
    let output = sandbox.ralph(&["run", "--interactive"]);
    assert_eq!(output.exit(), 2);
    assert!(output.text().contains("requires a terminal"), "{}", output.text());
    assert!(sandbox.pids().is_empty());
}

#[test]
fn the_user_decides_between_iterations() {
    let sandbox = Sandbox::scripted("say hm", CONFIG);
    for (keys, outcome, iterations) in [("\nq\n", 130, 2), ("a\n", 3, 4)] {
        let _ = fs::remove_dir_all(sandbox.path("state"));
        let (output, exit) =
            sandbox.run_on_terminal(&["run", "--interactive", "-n", "4"], CONTINUE_QUESTION, keys);
        assert_eq!(sandbox.run_end().1, iterations, "{output}");
        assert_eq!(exit, outcome, "{output}");
        assert!(output.contains(CONTINUE_QUESTION), "{output}");
    }
    assert!(matches!(sandbox.run_end().0, RunOutcome::LimitReached { .. }));
}

#[test]
fn a_changed_configuration_is_confirmed_on_a_terminal() {
    let sandbox = Sandbox::scripted("say hm", "event_loop: {prompt: x, max_iterations: 1}\n");
    assert_eq!(sandbox.ralph(&["run"]).exit(), 3);
    sandbox.configure("event_loop: {prompt: y, max_iterations: 1}\n");
    for (keys, expected, iterations) in [("n\n", 2, 1), ("y\n", 3, 2)] {
        let call = ["run", "--continue", "-n", "2"];
        let (output, exit) = sandbox.run_on_terminal(&call, "Resume with the new configuration?", keys);
        assert!(output.contains("event_loop.prompt: x → y"), "{output}");
        assert!(
            !output.contains("event_loop.max_iterations: 1 → 2\r\nGo on"),
            "not asked about: it is on this command line"
        );
        assert_eq!(exit, expected, "{output}");
        assert_eq!(sandbox.run_end().1, iterations);
    }
}
