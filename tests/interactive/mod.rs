//! Tests of interactive mode: the real binary and the fake agent on a terminal that the test types into.

mod session;

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::helpers::{PROMPTLY, wait_until};
use crate::sandbox::{DEADLINE, Sandbox, split_arguments};

use session::TerminalSession;

const RUN: &[&str] = &["run", "-p", "say hi", "--mode", "interactive"];
const QUESTION: &str = "Enter: yes";
const CTRL_C: &[u8] = b"\x03";
const CTRL_BACKSLASH: &[u8] = b"\x1c";

fn claude(script: &str) -> Sandbox {
    Sandbox::new().with_agent("claude").with_script("default", script)
}

/// Returns an agent on a raw terminal with two descendants: three processes.
fn agent_with_descendants(rest: &str) -> Sandbox {
    let script = format!("raw\nfork-and-hold-stdout 3600\nfork-setsid 3600\nprint READY\n{rest}");
    claude(&script)
}

fn outcome(sandbox: &Sandbox) -> serde_json::Value {
    sandbox.records("iteration_ended")[0].clone()
}

#[test]
fn keys_reach_the_agent_and_its_output_reaches_the_user() {
    let sandbox = claude(
        "tty-report\nraw\nprint \\x1b[?1049h\\x1b[5;10H\\x1b]0;a title\\x07HELLO\nread-keys-until bye\nprint \\x1b[?1049l\n",
    );
    let mut session = TerminalSession::start(&sandbox, RUN);
    session.wait_for("\x1b[?1049h\x1b[5;10H\x1b]0;a title\x07HELLO");
    assert!(!session.is_restored(), "raw while the agent runs");
    session.type_keys("ü\x1b[A\x1abye".as_bytes());
    session.wait_for(QUESTION);
    assert!(session.is_restored());
    session.type_keys(b"d\n");
    let end = session.finish();
    assert_eq!(end.code, Some(0), "{}", end.seen);
    assert!(end.seen.contains("confirmed by the user"), "{}", end.seen);
    assert_eq!(sandbox.recorded("1.keys"), "ü\x1b[A\x1abye");
    assert_eq!(
        split_arguments(&sandbox.recorded("1.argv"))[2].lines().next(),
        Some("say hi")
    );
    assert!(
        end.seen.contains(r#"{"stdin":true,"stdout":true,"stderr":true,"controlling":true,"session_leader":true,"rows":30,"columns":100}"#),
        "{}",
        end.seen
    );
    // Its output is stored unchanged, and as text in the journal.
    let raw = sandbox.iteration_file("0001", "stdout.raw");
    assert!(String::from_utf8_lossy(&raw).contains("\x1b]0;a title\x07HELLO"));
    let texts: Vec<String> = sandbox
        .records("transcript")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(texts.iter().any(|text| text.contains("HELLO")), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("a title")), "{texts:?}");
}

#[test]
fn a_marker_on_the_screen_does_not_end_the_run() {
    // Printed by the agent on its own line, typed by the user and echoed by the terminal, and printed last.
    let sandbox = claude("say LOOP_COMPLETE\nread-keys-until \\n\nsay LOOP_COMPLETE\n");
    let mut session = TerminalSession::start(&sandbox, &[RUN, &["-n", "1"]].concat());
    session.wait_for("LOOP_COMPLETE");
    session.type_keys(b"LOOP_COMPLETE\r");
    session.wait_for(QUESTION);
    session.type_keys(b"\n");
    assert_eq!(session.finish().code, Some(3), "the limit of one iteration");
    assert_eq!(sandbox.recorded("1.keys"), "LOOP_COMPLETE\n");
    assert_eq!(outcome(&sandbox)["outcome"], "continued");
}

#[test]
fn gates_run_when_the_user_confirms_completion() {
    let sandbox = claude("say hello\n").with_file(
        "ralph.yml",
        "gates: [{name: second, run: 'test -e again || { echo > again; false; }'}]\n",
    );
    let mut session = TerminalSession::start(&sandbox, RUN);
    session.wait_for(QUESTION);
    session.type_keys(b"d\n");
    wait_until("the second iteration", DEADLINE, || {
        session.seen().matches(QUESTION).count() == 2
    });
    session.type_keys(b"done\n");
    assert_eq!(session.finish().code, Some(0));
    assert_eq!(outcome(&sandbox)["rejected_by"], "second");
}

#[test]
fn a_new_terminal_size_is_forwarded() {
    let sandbox = claude("print READY\nwait-for-rows 17\ntty-report\n");
    let mut session = TerminalSession::start(&sandbox, RUN);
    session.wait_for("READY");
    session.resize(17, 60);
    session.wait_for(r#""rows":17,"columns":60"#);
    session.wait_for(QUESTION);
    session.type_keys(b"q\n");
    assert_eq!(session.finish().code, Some(130));
}

#[test]
fn the_idle_limit_ends_an_iteration_and_keys_reset_it() {
    const IDLE_LIMIT: Duration = Duration::from_secs(1);
    let sandbox = agent_with_descendants("hang\n").with_file("ralph.yml", "cli: {idle_timeout_secs: 1}\n");
    let mut session = TerminalSession::start(&sandbox, RUN);
    session.wait_for("READY");
    let start = Instant::now();
    let (mut last_key, mut longest_pause) = (start, Duration::ZERO);
    while start.elapsed() < 2 * IDLE_LIMIT {
        session.type_keys(b"x");
        longest_pause = longest_pause.max(last_key.elapsed());
        last_key = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
    }
    // On a busy machine the keys themselves can be late.
    assert!(
        sandbox.records("agent_ended").is_empty() || longest_pause >= IDLE_LIMIT / 2,
        "the longest pause between two keys was {longest_pause:?}"
    );
    session.wait_for(QUESTION);
    sandbox.wait_until_processes_exit(PROMPTLY);
    session.type_keys(b"q\n");
    assert_eq!(session.finish().code, Some(130));
    let outcome = outcome(&sandbox);
    assert_eq!(
        (&outcome["outcome"], &outcome["limit"]),
        (&"timed_out".into(), &"idle".into())
    );
}

#[test]
fn one_ctrl_c_goes_to_the_agent_and_does_not_stop_the_run() {
    let sandbox = agent_with_descendants("read-keys-until \\x03\nprint GOT IT\nread-keys-until q\n");
    let mut session = TerminalSession::start(&sandbox, RUN);
    session.wait_for("READY");
    session.type_keys(CTRL_C);
    session.wait_for("GOT IT");
    session.type_keys(b"q");
    session.wait_for(QUESTION);
    assert!(sandbox.records("stopping").is_empty());
    session.type_keys(b"d\n");
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn two_ctrl_c_stop_the_run_and_reset_the_terminal_modes_of_the_agent() {
    let sandbox =
        agent_with_descendants("print \\x1b[?1049h\\x1b[?25l\\x1b[?1000hDRAWN\nread-keys-until never\n");
    let mut session = TerminalSession::start(&sandbox, RUN);
    session.wait_for("DRAWN");
    session.type_keys(b"\x03\x03");
    let end = session.finish();
    assert_eq!(end.code, Some(130), "{}", end.seen);
    sandbox.wait_until_processes_exit(PROMPTLY);
    assert_eq!(outcome(&sandbox)["outcome"], "interrupted");
    // The alternate screen is left last.
    let reset = end.seen.find("\x1b[?1000l\x1b[?25h\x1b[?1049l");
    assert!(
        reset.is_some_and(|reset| end.seen[reset..].contains("Interrupted by Ctrl-C")),
        "{:?}",
        end.seen
    );
}

#[test]
fn an_agent_that_exits_on_ctrl_c_has_not_failed() {
    // Not raw: the terminal turns the key into SIGINT, which kills the agent.
    let sandbox = claude("print READY\nhang\n");
    let mut session = TerminalSession::start(&sandbox, &[RUN, &["--quiet"]].concat());
    session.wait_for("READY");
    session.type_keys(CTRL_C);
    session.wait_for(QUESTION);
    assert_eq!(sandbox.records("agent_ended")[0]["end"]["signaled"]["signal"], 2);
    session.type_keys(b"d\n");
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn ctrl_backslash_kills_an_agent_that_ignores_everything_else() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "event_loop: {stop_grace_seconds: 3600}\n")
        .with_script(
            "default",
            "ignore TERM\nignore INT\nignore QUIT\nfork-setsid 3600\nprint READY\nhang\n",
        );
    let mut session = TerminalSession::start(&sandbox, RUN);
    session.wait_for("READY");
    session.type_keys(b"\x03\x03");
    wait_until("the stop", DEADLINE, || !sandbox.records("stopping").is_empty());
    session.type_keys(CTRL_BACKSLASH);
    assert_eq!(session.finish().code, Some(130));
    sandbox.wait_until_processes_exit(PROMPTLY);
    assert_eq!(sandbox.records("agent_ended")[0]["end"]["signaled"]["signal"], 9);
}

#[test]
fn signals_end_the_run_and_restore_the_terminal() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let sandbox = agent_with_descendants("hang\n");
        let session = TerminalSession::start(&sandbox, RUN);
        session.wait_for("READY");
        session.signal(signal);
        assert_eq!(session.finish().code, Some(code));
        sandbox.wait_until_processes_exit(PROMPTLY);
    }
}

#[test]
fn a_closed_terminal_ends_the_run() {
    let sandbox = agent_with_descendants("hang\n");
    let mut session = TerminalSession::start(&sandbox, RUN);
    session.wait_for("READY");
    session.disconnect();
    assert_eq!(session.finish().code, Some(129));
    sandbox.wait_until_processes_exit(PROMPTLY);
    assert_eq!(outcome(&sandbox)["outcome"], "interrupted");
}

#[test]
fn sigtstp_restores_the_terminal_and_sigcont_makes_it_raw_again() {
    let sandbox = claude("raw\nprint READY\nread-keys-until bye\n");
    let mut session = TerminalSession::start(&sandbox, RUN);
    session.wait_for("READY");
    session.signal(Signal::TSTP);
    session.wait_until_stopped();
    assert!(session.is_restored());
    session.signal(Signal::CONT);
    wait_until("a raw terminal", DEADLINE, || !session.is_restored());
    session.type_keys(b"bye");
    session.wait_for(QUESTION);
    session.type_keys(b"d\n");
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn a_failed_agent_is_retried_without_a_question() {
    let sandbox = claude("say hello\n").with_script("1", "say oh no\nexit 7\n");
    let mut session = TerminalSession::start(&sandbox, RUN);
    session.wait_for("exit code 7");
    session.wait_for(QUESTION);
    session.type_keys(b"d\n");
    assert_eq!(session.finish().code, Some(0));
    assert_eq!(outcome(&sandbox)["outcome"], "failed");
}

#[test]
fn without_a_terminal_the_agent_runs_headless_with_one_warning() {
    let sandbox = claude("say hm\n").with_file(
        "ralph.yml",
        "cli: {default_mode: interactive, transcript: plain}\nevent_loop: {prompt: say hi, max_iterations: 2}\n",
    );
    let output = sandbox.ralph(&["run"]).exits_with(3);
    let warning = "interactive mode is not available: stdin is not a terminal; running autonomously";
    assert_eq!(output.stderr.matches(warning).count(), 1, "{}", output.stderr);
    let argv = sandbox.recorded("1.argv");
    assert_eq!(
        split_arguments(&argv)[..2],
        ["--dangerously-skip-permissions", "-p"]
    );
    // The flag overrides the file, so there is no warning.
    let output = sandbox.ralph(&["run", "--mode", "autonomous"]).exits_with(3);
    assert!(!output.stderr.contains("interactive"), "{}", output.stderr);
}

#[test]
fn an_agent_without_an_interactive_mode_is_refused_before_it_starts() {
    let sandbox = claude("say hm\n").with_file(
        "ralph.yml",
        "cli: {backend: custom, command: claude, prompt_mode: stdin, default_mode: interactive}\n",
    );
    let end = TerminalSession::start(&sandbox, &["run", "-p", "say hi"]).finish();
    assert_eq!(end.code, Some(2), "{}", end.seen);
    assert!(
        end.seen.contains("has no interactive mode: `prompt_mode: stdin`"),
        "{}",
        end.seen
    );
    assert!(sandbox.pids().is_empty());
    let sandbox = claude("say hm\n").with_file("ralph.yml", "session: continue\n");
    let end = TerminalSession::start(&sandbox, RUN).finish();
    assert_eq!(end.code, Some(2), "{}", end.seen);
    assert!(end.seen.contains("reports no session id"), "{}", end.seen);
}

#[test]
fn a_dry_run_shows_the_interactive_call() {
    let sandbox = claude("say hm\n");
    let output = sandbox
        .ralph(&[RUN, &["--dry-run", "--json"]].concat())
        .exits_with(0);
    let call: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let arguments: Vec<&str> = call["args"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|a| a.as_str())
        .collect();
    assert_eq!(arguments[..2], ["--permission-mode", "default"]);
    assert_eq!(arguments.len(), 3, "the prompt is the last argument");
    assert_eq!(
        (&call["stdin"], &call["stdout"]),
        (&"screen".into(), &"screen".into())
    );
    assert_eq!(
        (&call["transcript"], &call["limits"]["idle_seconds"]),
        (&"plain".into(), &30.into())
    );
    let mode = "claude runs in permission mode `default` (the user's settings name none)";
    assert!(output.stderr.contains(mode), "{}", output.stderr);
}

/// Covers the threads that draw, forward keys and read the answer.
#[cfg(debug_assertions)]
#[test]
fn a_panic_restores_the_terminal_and_leaves_no_process() {
    for place in ["Passthrough", "Typing", "Adapter"] {
        let sandbox = agent_with_descendants("hang\n");
        let mut session = TerminalSession::start_with(&sandbox, RUN, &[("PANIC_IN_RALPH", place)]);
        if place == "Typing" {
            session.wait_for("READY");
            session.type_keys(b"x");
        }
        let end = session.finish();
        assert_eq!(end.code, Some(1), "{place}: {}", end.seen);
        let reports = end.seen.matches("error: ralph has a bug: failpoint").count();
        assert_eq!(reports, 1, "{place}: {}", end.seen);
        sandbox.wait_until_processes_exit(PROMPTLY);
        assert_eq!(sandbox.records("run_ended")[0]["outcome"], "failed", "{place}");
    }
    let sandbox = claude("say hello\n");
    let session = TerminalSession::start_with(&sandbox, RUN, &[("PANIC_IN_RALPH", "Answers")]);
    assert_eq!(session.finish().code, Some(1));
}
