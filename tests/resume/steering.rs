//! What the user tells a run under way reaches it once, whatever happens in between; and the run obeys.

use std::fs;
use std::time::{Duration, Instant};

use ralph::event::{IterationOutcome, Order, RunEvent, RunOutcome};

use super::stage::{Stage, code, finish, text, wait_until};

const CONFIG: &str = "event_loop: {prompt: the task, max_no_progress: 0}\n";

const GO_ON: &str = "go on? Enter: yes";

fn told(stage: &Stage) -> Vec<Order> {
    let told = stage
        .journal()
        .into_iter()
        .filter_map(|record| match record.event {
            RunEvent::Told { order, .. } => Some(order),
            _ => None,
        });
    told.collect()
}

fn inbox_is_empty(stage: &Stage) -> bool {
    fs::read_dir(stage.run_directory().join("inbox")).is_ok_and(|mut inbox| inbox.next().is_none())
}

#[test]
fn messages_go_into_the_next_prompt_once_and_in_order() {
    let stage = Stage::playing("read-stdin\nsay hm", CONFIG)
        .act(1, "read-stdin\ntouch first\nwait-for go\nsay hm")
        .act(3, "read-stdin\nsay LOOP_COMPLETE");
    let child = stage.spawn(&["run"]);
    wait_until("the agent", || stage.play().join("first").exists());
    assert_eq!(code(&stage.ralph(&["tell", "one: mind the gap"])), 0);
    let output = stage.ralph(&["tell", &stage.run_id(), "two"]);
    assert!(
        text(&output).contains("goes into the next prompt"),
        "{}",
        text(&output)
    );
    wait_until("both in the journal", || told(&stage).len() == 2);
    fs::write(stage.play().join("go"), "").expect("a file");
    assert_eq!(code(&finish(child)), 0);
    let prompts = [stage.prompt(1), stage.prompt(2), stage.prompt(3)];
    assert!(
        !prompts[0].contains("mind the gap") && !prompts[2].contains("mind the gap"),
        "{prompts:?}"
    );
    let (one, two) = (prompts[1].find("one: mind the gap"), prompts[1].find("two"));
    assert!(one.is_some() && one < two, "{prompts:?}");
    assert!(inbox_is_empty(&stage));
}

#[test]
fn a_message_that_was_journaled_but_not_taken_away_is_not_told_twice() {
    let stage = Stage::playing("read-stdin\nsay hm", "").act(3, "read-stdin\nsay LOOP_COMPLETE");
    assert_eq!(code(&stage.ralph(&["run", "-p", "x", "-n", "1"])), 3);
    assert!(text(&stage.ralph(&["tell", "hello"])).contains("no ralph is at work"));
    let inbox = stage.run_directory().join("inbox");
    let entry = fs::read_dir(&inbox)
        .expect("an inbox")
        .next()
        .expect("a letter")
        .expect("a letter");
    let (path, letter) = (entry.path(), fs::read(entry.path()).expect("a letter"));
    assert_eq!(code(&stage.ralph(&["run", "--continue", "-n", "2"])), 3);
    assert!(stage.prompt(2).contains("hello"));
    // As if ralph had been killed between the journal and the inbox.
    fs::write(&path, letter).expect("a letter");
    assert_eq!(code(&stage.ralph(&["run", "--continue", "-n", "3"])), 0);
    assert!(!stage.prompt(3).contains("hello"), "{}", stage.prompt(3));
    assert_eq!(told(&stage).len(), 1);
    assert!(inbox_is_empty(&stage));
}

#[test]
fn a_message_survives_the_attempt_that_was_killed() {
    let stage = Stage::playing("read-stdin\nsay LOOP_COMPLETE", CONFIG)
        .act(1, "read-stdin\nsay hm")
        .act(2, "read-stdin\ntouch second\nhang");
    assert_eq!(code(&stage.ralph(&["run", "-n", "1"])), 3);
    stage.ralph(&["tell", "hello"]);
    let mut child = stage.spawn(&["run", "--continue", "-n", "5"]);
    wait_until("the second call", || stage.play().join("second").exists());
    child.kill().expect("a kill");
    child.wait().expect("its end");
    assert_eq!(code(&stage.ralph(&["run", "--continue"])), 0);
    assert_eq!(stage.prompt(2), stage.prompt(3));
    assert!(stage.prompt(3).contains("hello"));
}

#[test]
fn a_paused_run_rests_until_it_is_told_to_go_on() {
    let stage = Stage::playing("say LOOP_COMPLETE", CONFIG).act(1, "touch first\nwait-for go\nsay hm");
    let child = stage.spawn(&["run"]);
    wait_until("the agent", || stage.play().join("first").exists());
    stage.ralph(&["tell", "--pause"]);
    wait_until("the order", || told(&stage) == [Order::Pause]);
    fs::write(stage.play().join("go"), "").expect("a file");
    stage.wait_for_journal("the pause", |event| matches!(event, RunEvent::Paused));
    assert_eq!(stage.pids().len(), 1, "nothing runs");
    stage.ralph(&["tell", "--resume"]);
    assert_eq!(code(&finish(child)), 0);
    assert_eq!(stage.end().1, 2);
}

#[test]
fn one_iteration_can_be_stopped_without_stopping_the_run() {
    let stage = Stage::playing("say LOOP_COMPLETE", CONFIG).act(1, "touch first\nhang");
    let child = stage.spawn(&["run"]);
    wait_until("the agent", || stage.play().join("first").exists());
    stage.ralph(&["tell", "--stop-iteration"]);
    assert_eq!(code(&finish(child)), 0);
    assert_eq!(stage.ended()[0].2, IterationOutcome::Skipped);
    assert_eq!(stage.end().1, 2);
}

#[test]
fn a_wait_can_be_ended_from_outside() {
    let config = "event_loop: {prompt: x, cooldown_seconds: 3600}\n";
    let stage = Stage::playing("say LOOP_COMPLETE", config).act(1, "say hm");
    let since = Instant::now();
    let child = stage.spawn(&["run"]);
    stage.wait_for_journal("the wait", |event| matches!(event, RunEvent::Waiting { .. }));
    stage.ralph(&["tell", "--wake"]);
    assert_eq!(code(&finish(child)), 0);
    assert!(since.elapsed() < Duration::from_secs(60));
}

#[test]
fn what_cannot_be_told_is_said() {
    let stage = Stage::playing("say hm", CONFIG);
    assert_eq!(code(&stage.ralph(&["tell", "hello"])), 2, "no run");
    assert_eq!(code(&stage.ralph(&["run", "-n", "1"])), 3);
    assert_eq!(code(&stage.ralph(&["tell", " "])), 2);
    assert_eq!(code(&stage.ralph(&["tell", "--pause", "--wake"])), 2);
    assert_eq!(code(&stage.ralph(&["tell", "no-such-run", "hello"])), 2);
}

#[test]
fn asking_needs_somebody_to_ask() {
    let stage = Stage::playing("say hm", CONFIG);
    let output = stage.ralph(&["run", "--interactive"]);
    assert_eq!(code(&output), 2);
    assert!(text(&output).contains("needs a terminal"), "{}", text(&output));
    assert!(stage.pids().is_empty());
}

#[test]
fn between_iterations_the_user_decides() {
    let stage = Stage::playing("say hm", CONFIG);
    for (keys, outcome, iterations) in [("\nq\n", 130, 2), ("a\n", 3, 4)] {
        let _ = fs::remove_dir_all(stage.work().join(".agent"));
        let output = on_a_terminal(&stage, "run --interactive -n 4", (GO_ON, keys));
        assert_eq!(stage.end().1, iterations, "{output}");
        assert!(output.contains(&format!("exit={outcome}")), "{output}");
        assert!(output.contains(GO_ON), "{output}");
    }
    assert!(matches!(stage.end().0, RunOutcome::LimitReached { .. }));
}

#[test]
fn on_a_terminal_a_changed_configuration_is_asked_about() {
    let stage = Stage::playing("say hm", "event_loop: {prompt: x, max_iterations: 1}\n");
    assert_eq!(code(&stage.ralph(&["run"])), 3);
    stage.configure("event_loop: {prompt: y, max_iterations: 1}\n");
    for (keys, exit, iterations) in [("n\n", "exit=2", 1), ("y\n", "exit=3", 2)] {
        let output = on_a_terminal(&stage, "run --continue -n 2", ("Go on with the new one?", keys));
        assert!(output.contains("event_loop.prompt: x → y"), "{output}");
        assert!(
            !output.contains("event_loop.max_iterations: 1 → 2\r\nGo on"),
            "said on this command line"
        );
        assert!(output.contains(exit), "{output}");
        assert_eq!(stage.end().1, iterations);
    }
}

/// Runs ralph in a terminal and types the given keys, a line for each question.
fn on_a_terminal(stage: &Stage, arguments: &str, (question, keys): (&str, &str)) -> String {
    use std::io::{Read, Write};
    use std::os::unix::process::CommandExt;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&controller)
        .and_then(|()| unlockpt(&controller))
        .expect("a terminal");
    let name = ptsname(&controller, Vec::new()).expect("its name");
    let open = || {
        fs::File::options()
            .read(true)
            .write(true)
            .open(name.to_str().expect("a path"))
            .expect("the other end")
    };
    let mut command = stage.command(&arguments.split(' ').collect::<Vec<_>>());
    command
        .stdin(open())
        .stdout(open())
        .stderr(open())
        .process_group(0);
    let mut child = command.spawn().expect("ralph starts");
    drop(command);
    let mut screen = fs::File::from(controller);
    let mut typist = screen.try_clone().expect("a keyboard");
    let mut seen = String::new();
    let mut lines = keys.split_inclusive('\n');
    let mut questions = 0;
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = screen.read(&mut bytes) {
        seen.push_str(&String::from_utf8_lossy(&bytes[..length]));
        while seen.matches(question).count() > questions {
            questions += 1;
            if let Some(line) = lines.next() {
                typist.write_all(line.as_bytes()).expect("keys");
            }
        }
    }
    let status = child.wait().expect("its end");
    format!("{seen}\nexit={}", status.code().unwrap_or(-1))
}
