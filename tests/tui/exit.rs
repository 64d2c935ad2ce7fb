//! However the screen ends, the terminal is as it was found, and nothing is left running.

use std::time::Duration;

use rustix::process::Signal;

use super::hanging;
use super::terminal::Terminal;
use crate::process::stage::{PROMPTLY, is_alive};
use crate::sandbox::{Sandbox, claude};

const SOON: Duration = Duration::from_secs(20);

#[test]
fn at_the_end_the_screen_goes_and_the_report_stays() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("LOOP_COMPLETE"));
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go", "--tui"], (80, 24));
    terminal.ends("exit status: 0");
    terminal.expect("iterations  1 of 100");
}

#[test]
fn who_reads_at_the_end_may_go_on_reading() {
    let script = format!(
        "{}wait-for go\n{}",
        claude::init(),
        claude::message("m1", "LOOP_COMPLETE")
    );
    let script = format!("{script}{}", claude::result("LOOP_COMPLETE"));
    let sandbox = Sandbox::new().with_agent("claude").playing("default", &script);
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("working");
    terminal.keys("6");
    terminal.expect("iteration      time");
    std::fs::write(sandbox.path("play").join("go"), "").expect("a file");
    terminal.expect("q leave");
    terminal.keys("q");
    terminal.ends("exit status: 0");
}

#[test]
fn a_second_ctrl_c_kills_an_agent_that_ignores_the_first() {
    let script = format!(
        "ignore TERM\n{}{}hang\n",
        claude::init(),
        claude::message("m1", "at work")
    );
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "event_loop:\n  stop_grace_seconds: 3600\n")
        .playing("default", &script);
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("at work");
    terminal.keys("\x03");
    terminal.expect("stopping 0:0");
    terminal.keys("\x03");
    terminal.ends("exit status: 130");
    sandbox.wait_until_all_are_gone(PROMPTLY);
}

#[test]
fn a_signal_stops_the_run_and_gives_the_terminal_back() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let sandbox = hanging();
        let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
        terminal.expect("at work");
        terminal.kill(signal);
        terminal.ends(&format!("exit status: {code}"));
        sandbox.wait_until_all_are_gone(PROMPTLY);
        assert_eq!(sandbox.records("run_ended")[0]["outcome"], "interrupted");
    }
}

#[test]
fn even_a_kill_gives_the_terminal_back() {
    let sandbox = hanging();
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("at work");
    terminal.wait_until_raw();
    terminal.kill(Signal::KILL);
    terminal.wait_until_given_back();
    terminal.ends("signal: 9 (SIGKILL)");
    sandbox.wait_until_all_are_gone(PROMPTLY);
}

/// A shell that has the terminal again keeps it as it has set it.
#[test]
fn after_a_kill_the_settings_of_a_shell_are_left_alone() {
    let sandbox = hanging();
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("at work");
    terminal.wait_until_raw();
    terminal.take_for_shell();
    terminal.kill(Signal::KILL);
    terminal.ends("signal: 9 (SIGKILL)");
}

#[test]
fn after_a_stop_the_terminal_is_taken_again() {
    let sandbox = hanging();
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("at work");
    terminal.wait_until_raw();
    terminal.kill(Signal::STOP);
    terminal.take_for_shell();
    terminal.kill(Signal::CONT);
    terminal.wait_until_raw();
    terminal.keys("qy");
    terminal.ends("exit status: 130");
}

#[test]
fn a_signal_ends_a_screen_that_stays_after_the_run() {
    let sandbox = Sandbox::new();
    let terminal = Terminal::start(&sandbox, &["demo", "--tui"], (80, 24));
    terminal.expect("q leave");
    terminal.kill(Signal::TERM);
    terminal.ends("exit status: 0");
}

#[test]
fn a_panic_of_whoever_draws_costs_the_screen_and_not_the_run() {
    let script = format!(
        "{}wait-for go\n{}{}",
        claude::init(),
        claude::message("m1", "LOOP_COMPLETE"),
        claude::result("LOOP_COMPLETE")
    );
    let sandbox = Sandbox::new().with_agent("claude").playing("default", &script);
    let environment = [("PANIC_IN_RALPH", "draw")];
    let terminal = Terminal::start_with(&sandbox, &["run", "-p", "go"], (80, 24), &environment);
    terminal.expect("as the test wants it, in: draw");
    assert!(!terminal.look(vt100::Screen::alternate_screen));
    std::fs::write(sandbox.path("play").join("go"), "").expect("a file");
    terminal.ends("exit status: 0");
    // It goes on line by line.
    terminal.expect("AI │ LOOP_COMPLETE");
    terminal.expect("Done, but unverified");
}

#[test]
fn a_panic_of_whoever_drives_gives_the_terminal_back_and_leaves_nothing_running() {
    let sandbox = hanging();
    let environment = [("PANIC_IN_RALPH", "run")];
    let terminal = Terminal::start_with(&sandbox, &["run", "-p", "go"], (80, 24), &environment);
    terminal.ends("exit status: 1");
    terminal.expect("as the test wants it, in: run");
    sandbox.wait_until_all_are_gone(PROMPTLY);
}

#[cfg(debug_assertions)]
#[test]
fn a_panic_of_whoever_listens_to_the_keyboard_ends_the_run_and_gives_the_terminal_back() {
    let sandbox = hanging();
    let environment = [("PANIC_IN_RALPH", "keyboard")];
    let terminal = Terminal::start_with(&sandbox, &["run", "-p", "go"], (80, 24), &environment);
    terminal.expect("at work");
    terminal.keys("x");
    terminal.ends("exit status: 1");
    terminal.expect("as the test wants it, in: keyboard");
    sandbox.wait_until_all_are_gone(PROMPTLY);
    assert_eq!(sandbox.records("run_ended")[0]["outcome"], "failed");
}

#[test]
fn when_the_terminal_is_gone_so_are_ralph_and_its_agent() {
    let sandbox = hanging();
    let mut terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("at work");
    terminal.vanish();
    assert!(terminal.is_gone_within(SOON), "ralph still runs");
    sandbox.wait_until_all_are_gone(PROMPTLY);
    assert_eq!(sandbox.records("run_ended")[0]["by"], "hup");
}

#[test]
fn when_the_terminal_is_gone_a_screen_that_stays_goes_too() {
    let sandbox = Sandbox::new();
    for arguments in [&["demo", "--tui"][..], &["demo", "--no-tui"]] {
        let mut terminal = Terminal::start(&sandbox, arguments, (80, 24));
        terminal.expect("iteration");
        if arguments.contains(&"--tui") {
            terminal.expect("q leave");
        }
        let pid = terminal.pid();
        terminal.vanish();
        assert!(terminal.is_gone_within(SOON), "{arguments:?} still runs");
        assert!(!is_alive(pid));
    }
}
