//! Every kind of exit restores the terminal and leaves no process running.

use std::time::Duration;

use rustix::process::Signal;

use super::hanging_agent;
use super::terminal::Terminal;
use crate::process::helpers::{PROMPTLY, is_alive};
use crate::sandbox::{Sandbox, claude};

const SOON: Duration = Duration::from_secs(20);

#[test]
fn screen_closes_at_the_end_and_the_report_is_printed() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"));
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go", "--tui"], (80, 24));
    terminal.ends("exit status: 0");
    terminal.expect("iterations  1 of 100");
}

#[test]
fn screen_stays_open_for_a_user_who_is_reading() {
    let script = format!(
        "{}wait-for go\n{}",
        claude::init(),
        claude::message("m1", "LOOP_COMPLETE")
    );
    let script = format!("{script}{}", claude::result("LOOP_COMPLETE"));
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &script);
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("working");
    terminal.keys("9");
    terminal.expect("iteration      time");
    std::fs::write(sandbox.path("agent").join("go"), "").expect("a file");
    terminal.expect("q quit");
    terminal.keys("q");
    terminal.ends("exit status: 0");
}

#[test]
fn second_ctrl_c_kills_an_agent_that_ignores_the_first() {
    let script = format!(
        "ignore TERM\n{}{}hang\n",
        claude::init(),
        claude::message("m1", "agent is running")
    );
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "event_loop:\n  stop_grace_seconds: 3600\n")
        .with_script("default", &script);
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("agent is running");
    terminal.keys("\x03");
    terminal.expect("stopping 0:0");
    terminal.keys("\x03");
    terminal.ends("exit status: 130");
    sandbox.wait_until_processes_exit(PROMPTLY);
}

#[test]
fn signal_stops_the_run_and_restores_the_terminal() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let sandbox = hanging_agent();
        let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
        terminal.expect("agent is running");
        terminal.kill(signal);
        terminal.ends(&format!("exit status: {code}"));
        sandbox.wait_until_processes_exit(PROMPTLY);
        assert_eq!(sandbox.records("run_ended")[0]["outcome"], "interrupted");
    }
}

#[test]
fn kill_9_restores_the_terminal() {
    let sandbox = hanging_agent();
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("agent is running");
    terminal.wait_until_raw();
    terminal.kill(Signal::KILL);
    terminal.wait_until_restored();
    terminal.ends("signal: 9 (SIGKILL)");
    sandbox.wait_until_processes_exit(PROMPTLY);
}

/// The guard must not overwrite the modes of a shell that has the terminal again.
#[test]
fn kill_9_does_not_change_the_modes_of_a_shell() {
    let sandbox = hanging_agent();
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("agent is running");
    terminal.wait_until_raw();
    terminal.set_shell_modes();
    terminal.kill(Signal::KILL);
    terminal.ends("signal: 9 (SIGKILL)");
}

#[test]
fn sigcont_takes_over_the_terminal_again() {
    let sandbox = hanging_agent();
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("agent is running");
    terminal.wait_until_raw();
    terminal.kill(Signal::STOP);
    terminal.set_shell_modes();
    terminal.kill(Signal::CONT);
    terminal.wait_until_raw();
    terminal.keys("qy");
    terminal.ends("exit status: 130");
}

#[test]
fn signal_closes_a_screen_that_stays_open_after_the_run() {
    let sandbox = Sandbox::new();
    let terminal = Terminal::start(&sandbox, &["demo", "--tui"], (80, 24));
    terminal.expect("q quit");
    terminal.kill(Signal::TERM);
    terminal.ends("exit status: 0");
}

#[test]
fn panic_of_the_render_thread_does_not_end_the_run() {
    let script = format!(
        "{}wait-for go\n{}{}",
        claude::init(),
        claude::message("m1", "LOOP_COMPLETE"),
        claude::result("LOOP_COMPLETE")
    );
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &script);
    let environment = [("PANIC_IN_RALPH", "Draw")];
    let terminal = Terminal::start_with(&sandbox, &["run", "-p", "go"], (80, 24), &environment);
    terminal.expect("failpoint Draw");
    assert!(!terminal.with_screen(vt100::Screen::alternate_screen));
    std::fs::write(sandbox.path("agent").join("go"), "").expect("a file");
    terminal.ends("exit status: 0");
    // The run continues with plain output.
    terminal.expect("AI │ LOOP_COMPLETE");
    terminal.expect("Done, but unverified");
}

#[test]
fn panic_of_the_driver_restores_the_terminal_and_stops_the_agent() {
    let sandbox = hanging_agent();
    let environment = [("PANIC_IN_RALPH", "TuiState")];
    let terminal = Terminal::start_with(&sandbox, &["run", "-p", "go"], (80, 24), &environment);
    terminal.ends("exit status: 1");
    terminal.expect("failpoint TuiState");
    sandbox.wait_until_processes_exit(PROMPTLY);
}

#[cfg(debug_assertions)]
#[test]
fn panic_of_the_input_thread_ends_the_run_and_restores_the_terminal() {
    let sandbox = hanging_agent();
    let environment = [("PANIC_IN_RALPH", "Keyboard")];
    let terminal = Terminal::start_with(&sandbox, &["run", "-p", "go"], (80, 24), &environment);
    terminal.expect("agent is running");
    terminal.keys("x");
    terminal.ends("exit status: 1");
    terminal.expect("failpoint Keyboard");
    sandbox.wait_until_processes_exit(PROMPTLY);
    assert_eq!(sandbox.records("run_ended")[0]["outcome"], "failed");
}

#[test]
fn closing_the_terminal_stops_ralph_and_the_agent() {
    let sandbox = hanging_agent();
    let mut terminal = Terminal::start(&sandbox, &["run", "-p", "go"], (80, 24));
    terminal.expect("agent is running");
    terminal.close();
    assert!(terminal.exits_within(SOON), "ralph still runs");
    sandbox.wait_until_processes_exit(PROMPTLY);
    assert_eq!(sandbox.records("run_ended")[0]["by"], "hup");
}

#[test]
fn closing_the_terminal_closes_a_screen_that_stays_open() {
    let sandbox = Sandbox::new();
    for arguments in [&["demo", "--tui"][..], &["demo", "--no-tui"]] {
        let mut terminal = Terminal::start(&sandbox, arguments, (80, 24));
        terminal.expect("iteration");
        if arguments.contains(&"--tui") {
            terminal.expect("q quit");
        }
        let pid = terminal.pid();
        terminal.close();
        assert!(terminal.exits_within(SOON), "{arguments:?} still runs");
        assert!(!is_alive(pid));
    }
}
