//! Key handling of the TUI, end to end.

use super::hanging_agent;
use super::terminal::Terminal;
use crate::process::helpers::PROMPTLY;
use crate::sandbox::{Sandbox, claude};

#[test]
fn demo_handles_pause_message_tabs_search_resize_and_quit() {
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
    terminal.expect("q quit");

    // The end of the run: task, changes, gates, cost and what to do next.
    terminal.expect("1 file, +2 −2: greet.sh");
    terminal.expect("verified    ✓ test · sh test.sh");
    terminal.keys("\t");
    terminal.expect("▾ M greet.sh");
    terminal.expect("@@ line");
    terminal.keys("4");
    terminal.expect("started      took");
    terminal.keys("\x1b[B\x1b[B\r");
    terminal.expect("│ path: greet.sh");
    terminal.keys("6");
    terminal.expect("✗ gate test");
    terminal.keys("7");
    terminal.expect("Make the project's test pass");
    terminal.expect("mind the empty name");
    terminal.keys("8");
    terminal.expect("this agent has no screen of its own");
    terminal.keys("9");
    terminal.expect("not reported by this agent");
    terminal.keys("?");
    terminal.expect("a message for the next prompt (Alt-Enter");
    terminal.keys("\x1b");
    terminal.expect_not("a message for the next prompt (Alt-Enter");
    terminal.keys("1\x1b[D");
    terminal.expect("viewing 1");
    terminal.keys("/comma\r");
    terminal.expect(" of ");
    terminal.expect("n N next");

    let before = terminal.wait_until_stable();
    terminal.resize(60, 15);
    terminal.expect("Tran");
    let small = terminal.wait_until_stable();
    assert!(small.lines().all(|line| line.chars().count() <= 60), "{small}");
    assert!(
        small.lines().count() <= 15 && small.contains("viewing 1"),
        "{small}"
    );
    terminal.resize(20, 5);
    terminal.expect("too small");
    terminal.resize(120, 40);
    terminal.expect("viewing 1");
    assert_eq!(terminal.wait_until_stable(), before, "same screen as before");

    terminal.keys("e");
    terminal.expect("written to");
    terminal.keys("q");
    terminal.ends("exit status: 0");
    terminal.expect("iterations  2 of 5");
    terminal.expect_not("Transcript");
}

#[test]
fn tui_is_the_default_on_a_terminal_and_q_asks_before_stopping() {
    let sandbox = hanging_agent();
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("agent is running");
    terminal.expect("q stop");
    terminal.keys("q");
    terminal.expect("Stop the run?");
    terminal.keys("n");
    terminal.expect("q stop");
    terminal.keys("qy");
    terminal.ends("exit status: 130");
    sandbox.wait_until_processes_exit(PROMPTLY);
    assert_eq!(sandbox.records("run_ended")[0]["by"], "quit");
    terminal.expect("Stopped on request.");
}

#[test]
fn plain_output_is_used_on_request_and_on_dumb_terminals() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"));
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
fn tui_flag_without_a_terminal_fails() {
    let sandbox = hanging_agent();
    for arguments in [&["run", "-p", "go", "--tui"][..], &["demo", "--tui"]] {
        let output = sandbox.ralph(arguments).exits_with(2);
        assert!(
            output.stderr.contains("--tui requires a foreground terminal"),
            "{}",
            output.stderr
        );
        assert!(output.stderr.contains("--no-tui"), "{}", output.stderr);
    }
    assert!(sandbox.pids().is_empty(), "no agent was started");
}

#[test]
fn interactive_mode_asks_between_iterations() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("more to do"));
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go", "--interactive"], (100, 30));
    terminal.expect("? continue?");
    terminal.expect("a continue without asking");
    terminal.keys("c");
    terminal.expect("iteration 2/100");
    terminal.expect("? continue?");
    terminal.keys("q");
    terminal.ends("exit status: 130");
    assert_eq!(sandbox.records("iteration_ended").len(), 2);
    assert_eq!(sandbox.records("run_ended")[0]["by"], "quit");
}

#[test]
fn earlier_iterations_of_a_resumed_run_can_be_viewed() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("1", &claude::session("the first step"))
        .with_script("default", &format!("{}hang\n", claude::init()));
    sandbox.ralph(&["run", "-p", "go", "-n", "1"]).exits_with(3);
    let terminal = Terminal::start(&sandbox, &["run", "--continue", "-n", "5"], (100, 30));
    terminal.expect("iteration 2/5");
    terminal.expect("working");
    terminal.keys("\x1b[D");
    terminal.expect("viewing 1");
    terminal.expect("the first step");
    terminal.keys("\x03");
    terminal.ends("exit status: 130");
}

#[test]
fn keys_stop_an_iteration_and_end_a_wait() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "event_loop:\n  cooldown_seconds: 3600\n")
        .with_script(
            "1",
            &format!(
                "{}{}hang\n",
                claude::init(),
                claude::message("m1", "agent is running")
            ),
        )
        .with_script("default", &claude::session("LOOP_COMPLETE"));
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (100, 30));
    terminal.expect("agent is running");
    terminal.keys("s");
    terminal.expect("Stop this iteration?");
    terminal.keys("y");
    terminal.expect("◷ waiting 59:");
    terminal.expect("w wake now");
    terminal.keys("w");
    terminal.ends("exit status: 0");
    assert_eq!(sandbox.records("iteration_ended")[0]["outcome"], "skipped");
    let commands: Vec<_> = sandbox
        .records("told")
        .iter()
        .map(|record| record["kind"].clone())
        .collect();
    assert_eq!(commands, ["stop_iteration", "wake"]);
}

#[test]
fn message_line_is_edited_and_keeps_its_lines() {
    let sandbox = hanging_agent();
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (100, 30));
    terminal.expect("agent is running");
    terminal.keys("m");
    terminal.expect("for the next prompt:");
    // Ctrl-W deletes a word, Ctrl-A goes to the start, Alt-Enter starts a line.
    terminal.keys("use parser wrongly\x17\x01please \x05now\x1b\rand test it\r");
    terminal.expect("you: please use parser now");
    // The earlier message is recalled.
    terminal.keys("m\x1b[A");
    terminal.expect("for the next prompt: please use parser now");
    terminal.keys("\x1b");
    terminal.keys("\x03");
    terminal.ends("exit status: 130");
    let messages: Vec<_> = sandbox
        .records("told")
        .iter()
        .filter_map(|record| record["text"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(messages, ["please use parser now\nand test it"]);
}

#[test]
fn ctrl_z_gives_the_terminal_back_and_takes_it_again() {
    let sandbox = hanging_agent();
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (100, 30));
    terminal.expect("agent is running");
    terminal.keys("\x1a");
    // The group of the fake shell is orphaned, so the system does not stop it, and the screen returns at once.
    let count = |sequence: &[u8]| {
        let bytes = terminal.bytes();
        bytes
            .windows(sequence.len())
            .filter(|bytes| *bytes == sequence)
            .count()
    };
    terminal.keys("?");
    terminal.expect("suspend ralph; fg continues");
    assert_eq!(count(b"\x1b[?1049l"), 1, "the screen was left");
    assert_eq!(count(b"\x1b[?1049h"), 2, "the screen was entered again");
    terminal.keys("\x1b");
    terminal.keys("\x03");
    terminal.ends("exit status: 130");
}
