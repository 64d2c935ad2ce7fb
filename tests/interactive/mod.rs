//! Interactive mode: the real binary on a terminal, the fake agent on its screen, and somebody who types.

mod session;

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::stage::{PROMPTLY, wait_until};
use crate::sandbox::{DEADLINE, Sandbox, is_ignored, words};

use session::Seat;

const RUN: &[&str] = &["run", "-p", "say hi", "--mode", "interactive"];
const QUESTION: &str = "Enter: yes";
const CTRL_C: &[u8] = b"\x03";
const CTRL_BACKSLASH: &[u8] = b"\x1c";

fn claude(script: &str) -> Sandbox {
    Sandbox::new().with_agent("claude").playing("default", script)
}

/// An agent on a raw screen with two descendants; they are three processes.
fn family(rest: &str) -> Sandbox {
    let script = format!("raw\nfork-and-hold-stdout 3600\nfork-setsid 3600\nprint READY\n{rest}");
    claude(&script)
}

fn outcome(sandbox: &Sandbox) -> serde_json::Value {
    sandbox.records("iteration_ended")[0].clone()
}

#[test]
fn what_is_typed_reaches_the_agent_and_what_it_draws_reaches_the_user() {
    let sandbox = claude(
        "tty-report\nraw\nprint \\x1b[?1049h\\x1b[5;10H\\x1b]0;a title\\x07HELLO\nread-keys-until bye\nprint \\x1b[?1049l\n",
    );
    let mut seat = Seat::at(&sandbox, RUN);
    seat.wait_for("\x1b[?1049h\x1b[5;10H\x1b]0;a title\x07HELLO");
    assert!(!seat.is_as_before(), "raw while the agent has it");
    seat.types("ü\x1b[A\x1abye".as_bytes());
    seat.wait_for(QUESTION);
    assert!(seat.is_as_before());
    seat.types(b"d\n");
    let left = seat.ends();
    assert_eq!(left.code, Some(0), "{}", left.seen);
    assert!(left.seen.contains("confirmed by the user"), "{}", left.seen);
    assert_eq!(sandbox.recorded("1.keys"), "ü\x1b[A\x1abye");
    assert_eq!(
        words(&sandbox.recorded("1.argv"))[0].lines().next(),
        Some("say hi")
    );
    assert!(
        left.seen.contains(r#"{"stdin":true,"stdout":true,"stderr":true,"controlling":true,"session_leader":true,"rows":30,"columns":100}"#),
        "{}",
        left.seen
    );
    // What it drew is kept as it was, and told as text.
    let raw = sandbox.iteration_file("0001", "stdout.raw");
    assert!(String::from_utf8_lossy(&raw).contains("\x1b]0;a title\x07HELLO"));
    let told: Vec<String> = sandbox
        .records("transcript")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(told.iter().any(|text| text.contains("HELLO")), "{told:?}");
    assert!(!told.iter().any(|text| text.contains("a title")), "{told:?}");
}

#[test]
fn no_marker_on_a_screen_ends_the_run() {
    // Alone on a line, drawn by the agent; typed by the user and echoed by the terminal; and at the very end.
    let sandbox = claude("say LOOP_COMPLETE\nread-keys-until \\n\nsay LOOP_COMPLETE\n");
    let mut seat = Seat::at(&sandbox, &[RUN, &["-n", "1"]].concat());
    seat.wait_for("LOOP_COMPLETE");
    seat.types(b"LOOP_COMPLETE\r");
    seat.wait_for(QUESTION);
    seat.types(b"\n");
    assert_eq!(seat.ends().code, Some(3), "the limit of one iteration");
    assert_eq!(sandbox.recorded("1.keys"), "LOOP_COMPLETE\n");
    assert_eq!(outcome(&sandbox)["outcome"], "continued");
}

#[test]
fn the_gates_check_the_users_word() {
    let sandbox = claude("say hello\n").with_file(
        "ralph.yml",
        "gates: [{name: second, run: 'test -e again || { echo > again; false; }'}]\n",
    );
    let mut seat = Seat::at(&sandbox, RUN);
    seat.wait_for(QUESTION);
    seat.types(b"d\n");
    wait_until("the second iteration", DEADLINE, || {
        seat.seen().matches(QUESTION).count() == 2
    });
    seat.types(b"done\n");
    assert_eq!(seat.ends().code, Some(0));
    assert_eq!(outcome(&sandbox)["rejected_by"], "second");
}

#[test]
fn a_new_size_is_passed_on() {
    let sandbox = claude("print READY\nwait-for-rows 17\ntty-report\n");
    let mut seat = Seat::at(&sandbox, RUN);
    seat.wait_for("READY");
    seat.resize(17, 60);
    seat.wait_for(r#""rows":17,"columns":60"#);
    seat.wait_for(QUESTION);
    seat.types(b"q\n");
    assert_eq!(seat.ends().code, Some(130));
}

#[test]
fn silence_ends_an_iteration_and_keys_are_no_silence() {
    let sandbox = family("hang\n").with_file("ralph.yml", "cli: {idle_timeout_secs: 2}\n");
    let mut seat = Seat::at(&sandbox, RUN);
    seat.wait_for("READY");
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(5) {
        seat.types(b"x");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(sandbox.records("agent_ended").is_empty(), "keys for 5 s");
    seat.wait_for(QUESTION);
    sandbox.wait_until_all_are_gone(PROMPTLY);
    seat.types(b"q\n");
    assert_eq!(seat.ends().code, Some(130));
    let outcome = outcome(&sandbox);
    assert_eq!(
        (&outcome["outcome"], &outcome["limit"]),
        (&"timed_out".into(), &"idle".into())
    );
}

#[test]
fn one_ctrl_c_is_the_agents_and_two_stop_the_run() {
    let sandbox = family(
        "read-keys-until \\x03\nprint \\x1b[?1049h\\x1b[?25l\\x1b[?1000hGOT IT\nread-keys-until never\n",
    );
    let mut seat = Seat::at(&sandbox, RUN);
    seat.wait_for("READY");
    seat.types(CTRL_C);
    seat.wait_for("GOT IT");
    assert!(sandbox.records("stopping").is_empty());
    // Further away from the first than a second.
    std::thread::sleep(Duration::from_millis(1100));
    seat.types(b"\x03\x03");
    let left = seat.ends();
    assert_eq!(left.code, Some(130), "{}", left.seen);
    sandbox.wait_until_all_are_gone(PROMPTLY);
    assert_eq!(outcome(&sandbox)["outcome"], "interrupted");
    // What the agent left switched on is switched off, the other screen last.
    let tidied = left.seen.find("\x1b[?1000l\x1b[?25h\x1b[?1049l");
    assert!(
        tidied.is_some() && left.seen[tidied.unwrap()..].contains("Interrupted by Ctrl-C"),
        "{:?}",
        left.seen
    );
}

#[test]
fn an_agent_that_is_left_by_ctrl_c_has_not_failed() {
    // Not raw: its terminal makes a signal of the key, and it dies of it.
    let sandbox = claude("print READY\nhang\n");
    let mut seat = Seat::at(&sandbox, &[RUN, &["--quiet"]].concat());
    seat.wait_for("READY");
    seat.types(CTRL_C);
    seat.wait_for(QUESTION);
    assert_eq!(sandbox.records("agent_ended")[0]["end"]["signaled"]["signal"], 2);
    seat.types(b"d\n");
    assert_eq!(seat.ends().code, Some(0));
}

#[test]
fn ctrl_backslash_kills_an_agent_that_ignores_everything_else() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "event_loop: {stop_grace_seconds: 3600}\n")
        .playing(
            "default",
            "ignore TERM\nignore INT\nignore QUIT\nfork-setsid 3600\nprint READY\nhang\n",
        );
    let mut seat = Seat::at(&sandbox, RUN);
    seat.wait_for("READY");
    seat.types(b"\x03\x03");
    wait_until("the stop", DEADLINE, || !sandbox.records("stopping").is_empty());
    seat.types(CTRL_BACKSLASH);
    assert_eq!(seat.ends().code, Some(130));
    sandbox.wait_until_all_are_gone(PROMPTLY);
    assert_eq!(sandbox.records("agent_ended")[0]["end"]["signaled"]["signal"], 9);
}

#[test]
fn signals_end_the_run_and_give_the_terminal_back() {
    let all = [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)];
    for (signal, code) in all.into_iter().filter(|(signal, _)| !is_ignored(*signal)) {
        let sandbox = family("hang\n");
        let seat = Seat::at(&sandbox, RUN);
        seat.wait_for("READY");
        seat.signal(signal);
        assert_eq!(seat.ends().code, Some(code));
        sandbox.wait_until_all_are_gone(PROMPTLY);
    }
}

#[test]
fn a_terminal_that_goes_away_ends_the_run() {
    let sandbox = family("hang\n");
    let mut seat = Seat::at(&sandbox, RUN);
    seat.wait_for("READY");
    seat.is_taken_away();
    assert_eq!(seat.ends().code, Some(129));
    sandbox.wait_until_all_are_gone(PROMPTLY);
    assert_eq!(outcome(&sandbox)["outcome"], "interrupted");
}

#[test]
fn a_stopped_ralph_gives_the_terminal_back_and_takes_it_again() {
    let sandbox = claude("raw\nprint READY\nread-keys-until bye\n");
    let mut seat = Seat::at(&sandbox, RUN);
    seat.wait_for("READY");
    seat.signal(Signal::TSTP);
    seat.wait_until_stopped();
    assert!(seat.is_as_before());
    seat.signal(Signal::CONT);
    wait_until("a raw terminal", DEADLINE, || !seat.is_as_before());
    seat.types(b"bye");
    seat.wait_for(QUESTION);
    seat.types(b"d\n");
    assert_eq!(seat.ends().code, Some(0));
}

#[test]
fn an_agent_that_fails_is_tried_again_without_a_question() {
    let sandbox = claude("say hello\n").playing("1", "say oh no\nexit 7\n");
    let mut seat = Seat::at(&sandbox, RUN);
    seat.wait_for("exit code 7");
    seat.wait_for(QUESTION);
    seat.types(b"d\n");
    assert_eq!(seat.ends().code, Some(0));
    assert_eq!(outcome(&sandbox)["outcome"], "failed");
}

#[test]
fn without_a_terminal_the_agent_works_by_itself_and_that_is_said_once() {
    let sandbox = claude("say hm\n").with_file(
        "ralph.yml",
        "cli: {default_mode: interactive, transcript: plain}\nevent_loop: {prompt: say hi, max_iterations: 2}\n",
    );
    let told = sandbox.ralph(&["run"]).exits_with(3);
    let warning = "interactive mode is not possible: stdin is not a terminal; the agent works by itself";
    assert_eq!(told.stderr.matches(warning).count(), 1, "{}", told.stderr);
    let argv = sandbox.recorded("1.argv");
    assert_eq!(words(&argv)[..2], ["--dangerously-skip-permissions", "-p"]);
    // The flag wins over the file, and then there is nothing to say.
    let told = sandbox.ralph(&["run", "--mode", "autonomous"]).exits_with(3);
    assert_eq!(told.stderr, "");
}

#[test]
fn an_agent_without_a_screen_is_refused_before_anything_starts() {
    let sandbox = claude("say hm\n").with_file(
        "ralph.yml",
        "cli: {backend: custom, command: claude, prompt_mode: stdin, default_mode: interactive}\n",
    );
    let left = Seat::at(&sandbox, &["run", "-p", "say hi"]).ends();
    assert_eq!(left.code, Some(2), "{}", left.seen);
    assert!(
        left.seen
            .contains("has no screen to type into: `prompt_mode: stdin`"),
        "{}",
        left.seen
    );
    assert!(sandbox.pids().is_empty());
    let sandbox = claude("say hm\n").with_file("ralph.yml", "session: continue\n");
    let left = Seat::at(&sandbox, RUN).ends();
    assert_eq!(left.code, Some(2), "{}", left.seen);
    assert!(left.seen.contains("a screen names no session"), "{}", left.seen);
}

#[test]
fn a_dry_run_shows_the_call_that_opens_the_screen() {
    let sandbox = claude("say hm\n");
    let told = sandbox
        .ralph(&[RUN, &["--dry-run", "--json"]].concat())
        .exits_with(0);
    let call: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(call["args"].as_array().unwrap().len(), 1, "the prompt alone");
    assert_eq!(
        (&call["stdin"], &call["stdout"]),
        (&"screen".into(), &"screen".into())
    );
    assert_eq!(
        (&call["transcript"], &call["limits"]["idle_seconds"]),
        (&"plain".into(), &30.into())
    );
    assert_eq!(told.stderr, "");
}

/// Whoever paints, whoever passes on what is typed, whoever reads the answer: the terminal is as it was, and nobody is left.
#[cfg(debug_assertions)]
#[test]
fn a_mistake_of_ralphs_own_gives_the_terminal_back_and_leaves_nobody() {
    for place in ["painter", "typing", "adapter"] {
        let sandbox = family("hang\n");
        let mut seat = Seat::with(&sandbox, RUN, &[("PANIC_IN_RALPH", place)]);
        if place == "typing" {
            seat.wait_for("READY");
            seat.types(b"x");
        }
        let left = seat.ends();
        assert_eq!(left.code, Some(1), "{place}: {}", left.seen);
        let told = left
            .seen
            .matches("error: a mistake in ralph: as the test wants it")
            .count();
        assert_eq!(told, 1, "{place}: {}", left.seen);
        sandbox.wait_until_all_are_gone(PROMPTLY);
        assert_eq!(sandbox.records("run_ended")[0]["outcome"], "failed", "{place}");
    }
    let sandbox = claude("say hello\n");
    let seat = Seat::with(&sandbox, RUN, &[("PANIC_IN_RALPH", "answers")]);
    assert_eq!(seat.ends().code, Some(1));
}
