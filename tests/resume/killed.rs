//! ralph is killed repeatedly and resumes each time: nothing is lost, nothing is counted twice.

use std::fs;
use std::time::Duration;

use ralph::event::{Command, IterationOutcome, Record, RunEvent, RunOutcome, TranscriptEvent};
use ralph::store::Inbox;
use rustix::process::Signal;

use crate::process::helpers::{is_alive, wait_until};
use crate::sandbox::history::json;
use crate::sandbox::{DEADLINE, Running, Sandbox};

const USAGE: &str =
    r#"@@RALPH@@ {"type":"usage","usage":{"prompt_tokens":100,"completion_tokens":10,"cost_usd":0.25}}"#;

/// Returns an agent that completes in its tenth iteration.
fn ten_iterations() -> Sandbox {
    let script = format!(
        "read-stdin\nsay working\nsleep 5\nsay {USAGE}\nsleep 5\nsay-in-iteration 10 LOOP_COMPLETE\nsleep 5"
    );
    Sandbox::scripted(&script, "event_loop:\n  prompt: do it\n  max_no_progress: 100\n")
}

/// Asserts that each iteration ended once, in order, and that the usage is that of all attempts, killed ones included.
fn assert_nothing_is_lost(sandbox: &Sandbox) {
    let (outcome, iterations, usage) = sandbox.run_end();
    assert_eq!(iterations, 10);
    assert!(matches!(outcome, RunOutcome::Complete { .. }), "{outcome:?}");
    let ended: Vec<u64> = sandbox
        .iteration_outcomes()
        .iter()
        .map(|(iteration, ..)| *iteration)
        .collect();
    let expected: Vec<u64> = (1..=iterations).collect();
    assert_eq!(ended, expected, "every iteration ends exactly once");
    let is_usage = |record: &&Record| matches!(&record.event, RunEvent::Transcript { event, .. } if matches!(event, TranscriptEvent::Usage { .. }));
    let reports = sandbox.history().iter().filter(is_usage).count() as u64;
    assert!(reports >= iterations, "{reports}");
    assert_eq!(usage.prompt_tokens, Some(100 * reports));
    assert_eq!(usage.completion_tokens, Some(10 * reports));
    let cost = usage.cost_usd.expect("a cost").get();
    assert!((cost - 0.25 * reports as f64).abs() < 1e-9, "{cost}");
    // Every attempt in the journal has its files, and no directory belongs to two attempts.
    let directory = sandbox.only_run();
    let mut known = Vec::new();
    for record in sandbox.history() {
        if let RunEvent::IterationStarted {
            iteration, attempt, ..
        } = record.event
        {
            assert!(
                !known.contains(&(iteration, attempt)),
                "{iteration}-{attempt} started twice"
            );
            known.push((iteration, attempt));
            let ended = sandbox
                .iteration_outcomes()
                .iter()
                .any(|(i, a, _)| (*i, *a) == (iteration, attempt));
            let name = match attempt {
                1 => format!("{iteration:04}"),
                attempt => format!("{iteration:04}-{attempt}"),
            };
            let files = directory.join("iterations").join(name);
            if ended {
                assert_eq!(json(&files.join("outcome.json"))["iteration"], iteration);
                let raw = fs::read_to_string(files.join("stdout.raw")).expect("raw output");
                assert!(raw.starts_with("working\n") && raw.contains(USAGE), "{raw}");
                assert!(files.join("prompt.md").exists());
            }
        }
    }
}

/// Asserts that each message was received once and is in the prompts of exactly one iteration, unless none started after it.
fn assert_messages_arrived_once(sandbox: &Sandbox, sent: usize) {
    let journal = sandbox.history();
    let last_start = journal.iter().rev().find_map(|record| match record.event {
        RunEvent::IterationStarted { .. } => Some(record.seq),
        _ => None,
    });
    let mut received: Vec<(u64, String)> = Vec::new();
    for record in &journal {
        if let RunEvent::CommandReceived {
            command: Command::Message { text },
            ..
        } = &record.event
        {
            assert!(
                !received.iter().any(|(_, before)| before == text),
                "{text} was received twice"
            );
            received.push((record.seq, text.clone()));
        }
    }
    let in_order: Vec<&String> = received.iter().map(|(_, text)| text).collect();
    assert!(in_order.is_sorted(), "{in_order:?}");
    let waiting = fs::read_dir(sandbox.only_run().join("inbox")).map_or(0, Iterator::count);
    assert_eq!(received.len() + waiting, sent, "nothing is lost");
    let mut prompts: Vec<(String, String)> = Vec::new();
    for attempt in fs::read_dir(sandbox.only_run().join("iterations")).expect("iterations") {
        let attempt = attempt.expect("an attempt");
        let name = attempt.file_name().to_string_lossy()[..4].to_owned();
        let prompt = fs::read_to_string(attempt.path().join("prompt.md")).unwrap_or_default();
        prompts.push((name, prompt));
    }
    for (seq, text) in &received {
        let mut holding: Vec<&String> = prompts
            .iter()
            .filter(|(_, prompt)| prompt.contains(text.as_str()))
            .map(|(iteration, _)| iteration)
            .collect();
        holding.sort_unstable();
        holding.dedup();
        let expected = usize::from(Some(*seq) < last_start);
        assert_eq!(holding.len(), expected, "{text} is in the prompts of {holding:?}");
    }
}

/// Sends a message to the run, as `ralph tell` does.
fn send(sandbox: &Sandbox, number: usize) {
    let order = Command::Message {
        text: format!("message {number:04}."),
    };
    let inbox = Inbox::new(&sandbox.only_run());
    inbox.sender("test").send_command(order).expect("sent");
}

/// Runs the loop until it completes, kills ralph at random moments and sends a message after each kill. Returns the number of
/// kills and of messages.
fn kill_and_continue(sandbox: &Sandbox, kills: usize, longest: Duration) -> (usize, usize) {
    let (mut killed, mut sent) = (0, 0);
    let mut first = true;
    loop {
        let arguments: &[&str] = if first { &["run"] } else { &["run", "--continue"] };
        let mut command = sandbox.command(arguments);
        let running = Running::start(command.stdout(std::process::Stdio::null()));
        if killed >= kills {
            let output = running.finish();
            assert_eq!(output.exit(), 0, "{}", output.text());
            return (killed, sent);
        }
        // A random moment is what this test is about.
        std::thread::sleep(longest.mul_f64(fastrand::f64()));
        let status = running.kill();
        let has_run = sandbox.runs().read_dir().is_ok_and(|mut runs| {
            runs.next()
                .is_some_and(|run| run.is_ok_and(|run| run.path().join("run.json").exists()))
        });
        match status.code() {
            None => killed += 1,
            // It completed before the kill.
            Some(0) => return (killed, sent),
            Some(code) => panic!("exit code {code}"),
        }
        if first && !has_run {
            // Killed before there was a run to resume.
            let _ = fs::remove_dir_all(sandbox.path("state"));
            continue;
        }
        first = false;
        send(sandbox, sent);
        sent += 1;
    }
}

#[test]
fn an_uninterrupted_run_has_ten_iterations() {
    let sandbox = ten_iterations();
    let output = sandbox.ralph(&["run"]);
    assert_eq!(output.exit(), 0, "{}", output.text());
    assert_nothing_is_lost(&sandbox);
}

#[test]
fn a_run_that_is_killed_ten_times_loses_nothing() {
    let sandbox = ten_iterations();
    sandbox.init_git_repository();
    let before = sandbox.git_state();
    let (kills, sent) = kill_and_continue(&sandbox, 10, Duration::from_millis(250));
    assert!(
        sandbox.git_state() == before,
        "the user's repository is unchanged"
    );
    assert_nothing_is_lost(&sandbox);
    assert_messages_arrived_once(&sandbox, sent);
    assert!(kills > 0, "never killed");
    let all_exited = || sandbox.pids().into_iter().all(|pid| !is_alive(pid));
    wait_until("the exit of all agents", DEADLINE, all_exited);
}

/// `cargo test --test suite two_hundred -- --ignored`
#[test]
#[ignore = "takes minutes: just slow"]
fn a_run_that_is_killed_two_hundred_times_loses_nothing() {
    let mut kills = 0;
    while kills < 200 {
        let sandbox = ten_iterations();
        let (killed, sent) = kill_and_continue(&sandbox, 20, Duration::from_millis(200));
        kills += killed;
        assert_nothing_is_lost(&sandbox);
        assert_messages_arrived_once(&sandbox, sent);
    }
    eprintln!("{kills} kills");
}

#[test]
fn resuming_a_completed_run_is_reported_and_changes_nothing() {
    let sandbox = Sandbox::scripted("say ok\nsay LOOP_COMPLETE", "event_loop:\n  prompt: x\n");
    assert_eq!(sandbox.ralph(&["run"]).exit(), 0);
    let before = fs::read(sandbox.only_run().join("events.jsonl")).expect("a journal");
    let output = sandbox.ralph(&["run", "--continue"]);
    assert_eq!(output.exit(), 0);
    assert!(output.text().contains("is already complete"), "{}", output.text());
    let after = fs::read(sandbox.only_run().join("events.jsonl")).expect("a journal");
    assert!(before == after, "the journal is untouched");
}

#[test]
fn a_run_whose_end_was_not_recorded_completes_without_another_iteration() {
    let sandbox = Sandbox::scripted("say ok\nsay LOOP_COMPLETE", "event_loop:\n  prompt: x\n");
    assert_eq!(sandbox.ralph(&["run"]).exit(), 0);
    let journal = sandbox.only_run().join("events.jsonl");
    let whole = fs::read_to_string(&journal).expect("a journal");
    let lines: Vec<&str> = whole.lines().collect();
    let torn = lines[lines.len() - 1];
    let cut = format!(
        "{}\n{}",
        lines[..lines.len() - 1].join("\n"),
        &torn[..torn.len() / 2]
    );
    fs::write(&journal, cut).expect("a torn journal");
    let output = sandbox.ralph(&["run", "--continue", &sandbox.run_id()]);
    assert_eq!(output.exit(), 0, "{}", output.text());
    assert_eq!(sandbox.iteration_outcomes().len(), 1);
    assert!(matches!(sandbox.run_end().0, RunOutcome::Complete { .. }));
    assert_eq!(sandbox.pids().len(), 1, "the agent was not called again");
}

#[test]
fn a_run_resumes_with_a_raised_limit_and_its_original_flags() {
    let sandbox =
        Sandbox::scripted("read-stdin\nsay hm", "").with_script("3", "read-stdin\nsay LOOP_COMPLETE");
    let output = sandbox.ralph(&["run", "-p", "the task", "-n", "2"]);
    assert_eq!(output.exit(), 3, "{}", output.text());
    let advice = format!(
        "raise max_iterations, then: ralph run --continue {}",
        sandbox.run_id()
    );
    assert!(output.text().contains(&advice), "{}", output.text());
    let output = sandbox.ralph(&["run", "--continue", "-n", "5"]);
    assert_eq!(output.exit(), 0, "{}", output.text());
    assert!(sandbox.prompt(3).starts_with("the task"));
    let resumed = sandbox
        .history()
        .into_iter()
        .find_map(|record| match record.event {
            RunEvent::RunResumed(resumption) => Some((resumption.iteration, resumption.changed)),
            _ => None,
        });
    let changed = vec!["event_loop.max_iterations: 2 → 5".to_owned()];
    assert_eq!(resumed, Some((3, changed)));
    assert_eq!(sandbox.run_end().1, 3);
}

#[test]
fn a_changed_configuration_is_refused_without_a_terminal() {
    let sandbox = Sandbox::scripted("say hm", "event_loop:\n  prompt: x\n  max_iterations: 1\n");
    assert_eq!(sandbox.ralph(&["run"]).exit(), 3);
    sandbox.configure("event_loop:\n  prompt: y\n  max_iterations: 2\n");
    let output = sandbox.ralph(&["run", "--continue"]);
    assert_eq!(output.exit(), 2);
    let text = output.text();
    assert!(
        text.contains("event_loop.prompt: x → y") && text.contains("--yes"),
        "{text}"
    );
    assert!(text.contains("event_loop.max_iterations: 1 → 2"), "{text}");
    assert_eq!(sandbox.ralph(&["run", "--continue", "--yes"]).exit(), 3);
    assert_eq!(sandbox.run_end().1, 2);
    assert_eq!(
        json(&sandbox.only_run().join("run.json"))["settings"]["event_loop"]["prompt"],
        "y"
    );
}

#[test]
fn gate_output_is_in_the_prompt_of_the_attempt_after_a_kill() {
    let gates = "gates: [{name: g, run: 'echo too bad; exit 1'}]\nevent_loop: {prompt: x}\n";
    let sandbox = Sandbox::scripted("read-stdin\nsay LOOP_COMPLETE", gates)
        .with_script("2", "read-stdin\ntouch second\nhang");
    let child = sandbox.start(&["run"]);
    wait_until("the second iteration", DEADLINE, || {
        sandbox.path("agent").join("second").exists()
    });
    sandbox.wait_for_event("its start", |event| {
        matches!(event, RunEvent::IterationStarted { iteration: 2, .. })
    });
    child.kill();
    let child = sandbox.start(&["run", "--continue", "-n", "2"]);
    wait_until("the third invocation", DEADLINE, || {
        sandbox.path("agent").join("3.stdin").exists()
    });
    assert_eq!(sandbox.prompt(3), sandbox.prompt(2));
    assert!(sandbox.prompt(3).contains("too bad"), "{}", sandbox.prompt(3));
    child.kill();
}

#[test]
fn an_interrupted_iteration_is_run_again_with_its_number() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", "event_loop: {prompt: x}\n")
        .with_script("1", "touch first\nhang");
    let child = sandbox.start(&["run"]);
    wait_until("the agent", DEADLINE, || {
        sandbox.path("agent").join("first").exists()
    });
    child.signal(Signal::INT);
    assert_eq!(child.finish().exit(), 130);
    assert_eq!(sandbox.ralph(&["run", "--continue"]).exit(), 0);
    let ended: Vec<_> = sandbox.iteration_outcomes();
    assert_eq!(
        (ended[0].0, ended[0].1, &ended[0].2),
        (1, 1, &IterationOutcome::Interrupted)
    );
    assert_eq!((ended[1].0, ended[1].1), (1, 2));
    assert_eq!(sandbox.run_end().1, 1);
}

#[test]
fn an_orphaned_agent_of_the_run_is_stopped_first() {
    let sandbox = Sandbox::scripted("say hm", "event_loop: {prompt: x, max_iterations: 1}\n");
    assert_eq!(sandbox.ralph(&["run"]).exit(), 3);
    let mut orphan = std::process::Command::new("sleep")
        .arg("600")
        .env("RALPH_RUN_ID", sandbox.run_id())
        .env("RALPH_ITERATION", "1")
        .spawn()
        .expect("sleep");
    let output = sandbox.ralph(&["run", "--continue", "-n", "2"]);
    let stopped = orphan.try_wait().expect("a child").is_some();
    let _ = orphan.kill();
    let _ = orphan.wait();
    assert!(stopped, "{}", output.text());
    assert!(
        output.text().contains("stopped leftover processes of the run"),
        "{}",
        output.text()
    );
}

#[test]
fn a_run_can_be_resumed_from_its_journal_alone() {
    let sandbox = Sandbox::scripted("say hm", "event_loop: {prompt: x, max_iterations: 2}\n");
    assert_eq!(sandbox.ralph(&["run"]).exit(), 3);
    fs::remove_file(sandbox.only_run().join("run.json")).expect("removed");
    fs::remove_dir_all(sandbox.only_run().join("iterations")).expect("removed");
    assert_eq!(sandbox.ralph(&["run", "--continue", "-n", "3"]).exit(), 3);
    assert_eq!(sandbox.run_end().1, 3);
    fs::remove_file(sandbox.only_run().join("run.json")).expect("removed");
    fs::remove_file(sandbox.only_run().join("events.jsonl")).expect("removed");
    let output = sandbox.ralph(&["run", "--continue"]);
    assert_eq!(output.exit(), 1);
    assert!(
        output
            .text()
            .contains("neither a readable run.json nor a readable journal"),
        "{}",
        output.text()
    );
}

#[test]
fn continue_without_a_run_is_an_error() {
    let sandbox = Sandbox::scripted("say hm", "event_loop: {prompt: x}\n");
    let output = sandbox.ralph(&["run", "--continue"]);
    assert_eq!(output.exit(), 2);
    assert!(output.text().contains("no runs found in "), "{}", output.text());
    let output = sandbox.ralph(&["run", "--continue", "../x"]);
    assert_eq!(output.exit(), 2);
}
