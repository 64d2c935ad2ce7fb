//! What the user tells a run under way reaches it once, whatever happens in between; and the run obeys.

use std::fs;
use std::time::{Duration, Instant};

use ralph::event::{Command, IterationOutcome, RunEvent, RunOutcome};

use crate::process::stage::wait_until;
use crate::sandbox::{DEADLINE, Sandbox};

const CONFIG: &str = "event_loop: {prompt: the task, max_no_progress: 0}\n";

const GO_ON: &str = "go on? Enter: yes";

fn told(sandbox: &Sandbox) -> Vec<Command> {
    let told = sandbox
        .history()
        .into_iter()
        .filter_map(|record| match record.event {
            RunEvent::CommandReceived { order, .. } => Some(order),
            _ => None,
        });
    told.collect()
}

fn inbox_is_empty(sandbox: &Sandbox) -> bool {
    fs::read_dir(sandbox.only_run().join("inbox")).is_ok_and(|mut inbox| inbox.next().is_none())
}

#[test]
fn messages_go_into_the_next_prompt_once_and_in_order() {
    let sandbox = Sandbox::scripted("read-stdin\nsay hm", CONFIG)
        .playing("1", "read-stdin\ntouch first\nwait-for go\nsay hm")
        .playing("3", "read-stdin\nsay LOOP_COMPLETE");
    let child = sandbox.start(&["run"]);
    wait_until("the agent", DEADLINE, || {
        sandbox.path("play").join("first").exists()
    });
    assert_eq!(sandbox.ralph(&["tell", "one: mind the gap"]).exit(), 0);
    let output = sandbox.ralph(&["tell", &sandbox.run_id(), "two"]);
    assert!(
        output.text().contains("goes into the next prompt"),
        "{}",
        output.text()
    );
    wait_until("both in the journal", DEADLINE, || told(&sandbox).len() == 2);
    fs::write(sandbox.path("play").join("go"), "").expect("a file");
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
fn a_message_that_was_journaled_but_not_taken_away_is_not_told_twice() {
    let sandbox = Sandbox::scripted("read-stdin\nsay hm", "").playing("3", "read-stdin\nsay LOOP_COMPLETE");
    assert_eq!(sandbox.ralph(&["run", "-p", "x", "-n", "1"]).exit(), 3);
    assert!(
        sandbox
            .ralph(&["tell", "hello"])
            .text()
            .contains("no ralph is at work")
    );
    let inbox = sandbox.only_run().join("inbox");
    let entry = fs::read_dir(&inbox)
        .expect("an inbox")
        .next()
        .expect("a letter")
        .expect("a letter");
    let (path, letter) = (entry.path(), fs::read(entry.path()).expect("a letter"));
    assert_eq!(sandbox.ralph(&["run", "--continue", "-n", "2"]).exit(), 3);
    assert!(sandbox.prompt(2).contains("hello"));
    // As if ralph had been killed between the journal and the inbox.
    fs::write(&path, letter).expect("a letter");
    assert_eq!(sandbox.ralph(&["run", "--continue", "-n", "3"]).exit(), 0);
    assert!(!sandbox.prompt(3).contains("hello"), "{}", sandbox.prompt(3));
    assert_eq!(told(&sandbox).len(), 1);
    assert!(inbox_is_empty(&sandbox));
}

#[test]
fn a_note_left_in_the_inbox_by_hand_is_told_once() {
    let sandbox = Sandbox::scripted("read-stdin\nsay hm", CONFIG)
        .playing("1", "read-stdin\ntouch first\nwait-for go\nsay hm")
        .playing("3", "read-stdin\nsay LOOP_COMPLETE");
    let child = sandbox.start(&["run"]);
    sandbox.wait_for_file(&sandbox.path("play").join("first"));
    let inbox = sandbox.only_run().join("inbox");
    fs::create_dir_all(&inbox).expect("an inbox");
    fs::write(inbox.join("note.md"), "use the new API\n").expect("a note");
    wait_until("the note in the journal", DEADLINE, || told(&sandbox).len() == 1);
    fs::write(sandbox.path("play").join("go"), "").expect("a file");
    assert_eq!(child.finish().exit(), 0);
    let told_in: Vec<usize> = (1..=3)
        .filter(|invocation| sandbox.prompt(*invocation).contains("use the new API"))
        .collect();
    assert_eq!(told_in, [2]);
    assert!(inbox_is_empty(&sandbox));
}

#[test]
fn a_message_survives_the_attempt_that_was_killed() {
    let sandbox = Sandbox::scripted("read-stdin\nsay LOOP_COMPLETE", CONFIG)
        .playing("1", "read-stdin\nsay hm")
        .playing("2", "read-stdin\ntouch second\nhang");
    assert_eq!(sandbox.ralph(&["run", "-n", "1"]).exit(), 3);
    sandbox.ralph(&["tell", "hello"]);
    let child = sandbox.start(&["run", "--continue", "-n", "5"]);
    wait_until("the second call", DEADLINE, || {
        sandbox.path("play").join("second").exists()
    });
    child.kill();
    assert_eq!(sandbox.ralph(&["run", "--continue"]).exit(), 0);
    assert_eq!(sandbox.prompt(2), sandbox.prompt(3));
    assert!(sandbox.prompt(3).contains("hello"));
}

#[test]
fn a_paused_run_rests_until_it_is_told_to_go_on() {
    let sandbox =
        Sandbox::scripted("say LOOP_COMPLETE", CONFIG).playing("1", "touch first\nwait-for go\nsay hm");
    let child = sandbox.start(&["run"]);
    wait_until("the agent", DEADLINE, || {
        sandbox.path("play").join("first").exists()
    });
    sandbox.ralph(&["tell", "--pause"]);
    wait_until("the order", DEADLINE, || told(&sandbox) == [Command::Pause]);
    fs::write(sandbox.path("play").join("go"), "").expect("a file");
    sandbox.wait_for_event("the pause", |event| matches!(event, RunEvent::Paused));
    assert_eq!(sandbox.pids().len(), 1, "nothing runs");
    sandbox.ralph(&["tell", "--resume"]);
    assert_eq!(child.finish().exit(), 0);
    assert_eq!(sandbox.end().1, 2);
}

#[test]
fn one_iteration_can_be_stopped_without_stopping_the_run() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", CONFIG).playing("1", "touch first\nhang");
    let child = sandbox.start(&["run"]);
    wait_until("the agent", DEADLINE, || {
        sandbox.path("play").join("first").exists()
    });
    sandbox.ralph(&["tell", "--stop-iteration"]);
    assert_eq!(child.finish().exit(), 0);
    assert_eq!(sandbox.ended()[0].2, IterationOutcome::Skipped);
    assert_eq!(sandbox.end().1, 2);
}

#[test]
fn a_wait_can_be_ended_from_outside() {
    let config = "event_loop: {prompt: x, cooldown_seconds: 3600}\n";
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", config).playing("1", "say hm");
    let since = Instant::now();
    let child = sandbox.start(&["run"]);
    sandbox.wait_for_event("the wait", |event| matches!(event, RunEvent::Waiting { .. }));
    sandbox.ralph(&["tell", "--wake"]);
    assert_eq!(child.finish().exit(), 0);
    assert!(since.elapsed() < Duration::from_secs(60));
}

#[test]
fn what_cannot_be_told_is_said() {
    let sandbox = Sandbox::scripted("say hm", CONFIG);
    assert_eq!(sandbox.ralph(&["tell", "hello"]).exit(), 2, "no run");
    assert_eq!(sandbox.ralph(&["run", "-n", "1"]).exit(), 3);
    assert_eq!(sandbox.ralph(&["tell", " "]).exit(), 2);
    assert_eq!(sandbox.ralph(&["tell", "--pause", "--wake"]).exit(), 2);
    assert_eq!(sandbox.ralph(&["tell", "no-such-run", "hello"]).exit(), 2);
}

#[test]
fn asking_needs_somebody_to_ask() {
    let sandbox = Sandbox::scripted("say hm", CONFIG);
    let output = sandbox.ralph(&["run", "--interactive"]);
    assert_eq!(output.exit(), 2);
    assert!(output.text().contains("needs a terminal"), "{}", output.text());
    assert!(sandbox.pids().is_empty());
}

#[test]
fn between_iterations_the_user_decides() {
    let sandbox = Sandbox::scripted("say hm", CONFIG);
    for (keys, outcome, iterations) in [("\nq\n", 130, 2), ("a\n", 3, 4)] {
        let _ = fs::remove_dir_all(sandbox.work().join(".agent"));
        let (output, exit) = sandbox.on_a_terminal(&["run", "--interactive", "-n", "4"], GO_ON, keys);
        assert_eq!(sandbox.end().1, iterations, "{output}");
        assert_eq!(exit, outcome, "{output}");
        assert!(output.contains(GO_ON), "{output}");
    }
    assert!(matches!(sandbox.end().0, RunOutcome::LimitReached { .. }));
}

#[test]
fn on_a_terminal_a_changed_configuration_is_asked_about() {
    let sandbox = Sandbox::scripted("say hm", "event_loop: {prompt: x, max_iterations: 1}\n");
    assert_eq!(sandbox.ralph(&["run"]).exit(), 3);
    sandbox.configure("event_loop: {prompt: y, max_iterations: 1}\n");
    for (keys, expected, iterations) in [("n\n", 2, 1), ("y\n", 3, 2)] {
        let call = ["run", "--continue", "-n", "2"];
        let (output, exit) = sandbox.on_a_terminal(&call, "Go on with the new one?", keys);
        assert!(output.contains("event_loop.prompt: x → y"), "{output}");
        assert!(
            !output.contains("event_loop.max_iterations: 1 → 2\r\nGo on"),
            "said on this command line"
        );
        assert_eq!(exit, expected, "{output}");
        assert_eq!(sandbox.end().1, iterations);
    }
}
