//! The screen, walked through with keys.

use super::hanging;
use super::terminal::Terminal;
use crate::process::stage::PROMPTLY;
use crate::sandbox::{Sandbox, claude};

#[test]
fn the_demo_is_paused_told_something_watched_searched_resized_and_left() {
    let sandbox = Sandbox::new();
    let terminal = Terminal::start(&sandbox, &["demo", "--tui"], (120, 40));
    terminal.expect("working");
    terminal.keys("p");
    terminal.expect("then pause");
    terminal.expect("‖ paused");
    terminal.keys("m");
    terminal.expect("for the next prompt:");
    terminal.keys("mind the empty name\r");
    terminal.expect("you: mind the empty name");
    terminal.keys("p");
    terminal.expect("Done. All gates passed");
    terminal.expect("q leave");

    terminal.keys("\t");
    terminal.expect("started      took");
    terminal.keys("\x1b[B\x1b[B\r");
    terminal.expect("│ path: greet.sh");
    terminal.keys("3");
    terminal.expect("✗ gate test");
    terminal.keys("4");
    terminal.expect("Make the project's test pass");
    terminal.expect("mind the empty name");
    terminal.keys("5");
    terminal.expect("This agent draws no screen");
    terminal.keys("6");
    terminal.expect("the agent does not tell it");
    terminal.keys("?");
    terminal.expect("a message for the next prompt");
    terminal.keys("\x1b");
    terminal.expect_not("a message for the next prompt");
    terminal.keys("1\x1b[D");
    terminal.expect("looking at 1");
    terminal.keys("/comma\r");
    terminal.expect("n N next");

    let before = terminal.still();
    terminal.resize(60, 15);
    terminal.expect("Tran");
    let small = terminal.still();
    assert!(small.lines().all(|line| line.chars().count() <= 60), "{small}");
    assert!(
        small.lines().count() <= 15 && small.contains("looking at 1"),
        "{small}"
    );
    terminal.resize(20, 5);
    terminal.expect("needs more room");
    terminal.resize(120, 40);
    terminal.expect("looking at 1");
    assert_eq!(terminal.still(), before, "as it was before");

    terminal.keys("e");
    terminal.expect("written to");
    terminal.keys("q");
    terminal.ends("exit status: 0");
    terminal.expect("iterations  2 of 5");
    terminal.expect_not("Transcript");
}

#[test]
fn on_a_terminal_the_screen_is_the_default_and_q_asks_before_it_stops_the_run() {
    let sandbox = hanging();
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("at work");
    terminal.expect("q stop");
    terminal.keys("q");
    terminal.expect("Stop the run?");
    terminal.keys("n");
    terminal.expect("q stop");
    terminal.keys("qy");
    terminal.ends("exit status: 130");
    sandbox.wait_until_all_are_gone(PROMPTLY);
    assert_eq!(sandbox.records("run_ended")[0]["by"], "quit");
    terminal.expect("Stopped on request.");
}

#[test]
fn lines_are_printed_where_they_are_asked_for() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("LOOP_COMPLETE"));
    for flags in [&["run", "-p", "go", "--no-tui"][..], &["run", "-p", "go", "-q"]] {
        let terminal = Terminal::start(&sandbox, flags, (80, 24));
        terminal.ends("exit status: 0");
        terminal.expect("Done, but unverified");
        let bytes = terminal.bytes();
        assert!(!bytes.windows(8).any(|bytes| bytes == b"\x1b[?1049h"));
    }
    let dumb = Terminal::start_with(&sandbox, &["run", "-p", "go"], (80, 24), &[("TERM", "dumb")]);
    dumb.ends("exit status: 0");
    dumb.expect("Done, but unverified");
    assert!(!dumb.bytes().contains(&0x1b), "a dumb terminal gets no sequences");
}

#[test]
fn to_insist_on_a_screen_needs_a_terminal() {
    let sandbox = hanging();
    for arguments in [&["run", "-p", "go", "--tui"][..], &["demo", "--tui"]] {
        let told = sandbox.ralph(arguments).exits_with(2);
        assert!(told.stderr.contains("--tui needs a terminal"), "{}", told.stderr);
        assert!(told.stderr.contains("--no-tui"), "{}", told.stderr);
    }
    assert!(sandbox.pids().is_empty(), "no agent was started");
}

#[test]
fn the_question_between_iterations_is_asked_on_the_screen() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("more to do"));
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go", "--interactive"], (100, 30));
    terminal.expect("? go on?");
    terminal.expect("a go on without asking");
    terminal.keys("c");
    terminal.expect("iteration 2/100");
    terminal.expect("? go on?");
    terminal.keys("q");
    terminal.ends("exit status: 130");
    assert_eq!(sandbox.records("iteration_ended").len(), 2);
    assert_eq!(sandbox.records("run_ended")[0]["by"], "quit");
}

#[test]
fn earlier_iterations_of_a_run_that_goes_on_can_be_looked_at() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("1", &claude::session("the first step"))
        .playing("default", &format!("{}hang\n", claude::init()));
    sandbox.ralph(&["run", "-p", "go", "-n", "1"]).exits_with(3);
    let terminal = Terminal::start(&sandbox, &["run", "--continue", "-n", "5"], (100, 30));
    terminal.expect("iteration 2/5");
    terminal.expect("working");
    terminal.keys("\x1b[D");
    terminal.expect("looking at 1");
    terminal.expect("the first step");
    terminal.keys("\x03");
    terminal.ends("exit status: 130");
}

#[test]
fn an_iteration_is_stopped_and_a_wait_is_cut_short_by_a_key() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "event_loop:\n  cooldown_seconds: 3600\n")
        .playing(
            "1",
            &format!("{}{}hang\n", claude::init(), claude::message("m1", "at work")),
        )
        .playing("default", &claude::session("LOOP_COMPLETE"));
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (100, 30));
    terminal.expect("at work");
    terminal.keys("s");
    terminal.expect("◷ waiting 59:");
    terminal.expect("w wake now");
    terminal.keys("w");
    terminal.ends("exit status: 0");
    assert_eq!(sandbox.records("iteration_ended")[0]["outcome"], "skipped");
    let told: Vec<_> = sandbox
        .records("told")
        .iter()
        .map(|told| told["kind"].clone())
        .collect();
    assert_eq!(told, ["stop_iteration", "wake"]);
}
