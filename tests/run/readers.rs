//! Readers that stop reading the output of ralph: a pager, a stopped program, a frozen terminal.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use ralph::event::RunEvent;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::process::helpers::{PROMPTLY, wait_until, write_would_block};
use crate::sandbox::{DEADLINE, Running, Sandbox, claude};
use crate::tui::terminal::Terminal;

/// The end of the reader and the end of ralph.
type Ends = (OwnedFd, OwnedFd);

fn pipe() -> Ends {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    (reader.into(), writer.into())
}

fn socket() -> Ends {
    let (reader, writer) = UnixStream::pair().expect("a pair");
    (reader.into(), writer.into())
}

fn terminal() -> Ends {
    let reader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&reader)
        .and_then(|()| unlockpt(&reader))
        .expect("a terminal");
    let name = ptsname(&reader, Vec::new()).expect("its name");
    let writer = fs::File::options()
        .write(true)
        .open(name.to_str().expect("a path"))
        .expect("its other end");
    (reader, writer.into())
}

/// Starts ralph and waits until its stdout is full, because the test does not read it.
fn start_unread(sandbox: &Sandbox, arguments: &[&str], ralphs_end: OwnedFd) -> Running {
    let mut command = sandbox.command(arguments);
    command.stdout(ralphs_end.try_clone().expect("another"));
    let ralph = Running::start(&mut command);
    wait_until("a full stdout", DEADLINE, || write_would_block(&ralphs_end));
    ralph
}

fn long_output(end: &str) -> Sandbox {
    let script = format!(
        "{}repeat 20000 a line of some length for a slow reader\n{end}",
        claude::init()
    );
    Sandbox::new()
        .with_agent("claude")
        .with_script("default", &script)
}

#[test]
fn a_signal_ends_a_run_whose_output_is_not_read() {
    let plain = ["run", "-p", "x", "--no-tui"];
    let json = ["run", "-p", "x", "--json"];
    for (stdout, arguments) in [
        (pipe as fn() -> Ends, plain),
        (pipe, json),
        (socket, plain),
        (terminal, plain),
    ] {
        let sandbox = long_output("hang\n");
        let (_unread, ralphs_end) = stdout();
        let ralph = start_unread(&sandbox, &arguments, ralphs_end);
        ralph.signal(Signal::TERM);
        ralph.finish().exits_with(143);
        sandbox.wait_until_processes_exit(PROMPTLY);
        assert_eq!(sandbox.records("run_ended")[0]["outcome"], "interrupted");
        assert!(sandbox.newest_run().join("summary.md").exists());
    }
}

#[test]
fn a_signal_ends_a_replay_whose_output_is_not_read() {
    let sandbox = long_output(&claude::result("LOOP_COMPLETE"));
    sandbox.ralph(&["run", "-p", "x", "-q"]).exits_with(0);
    for arguments in [
        &["replay", "latest"][..],
        &["replay", "latest", "--json"],
        &["logs", "-f"],
    ] {
        let (_unread, ralphs_end) = pipe();
        let ralph = start_unread(&sandbox, arguments, ralphs_end);
        ralph.signal(Signal::INT);
        let output = ralph.finish().exits_with(130);
        assert_eq!(output.stderr, "");
    }
}

/// ralph waits for the reader without a time limit.
#[test]
fn a_reader_that_pauses_loses_nothing() {
    for stdout in [pipe, socket] {
        let sandbox = long_output(&claude::result("LOOP_COMPLETE"));
        let (reader, ralphs_end) = stdout();
        let ralph = start_unread(&sandbox, &["run", "-p", "x", "--json"], ralphs_end);
        let mut read = String::new();
        fs::File::from(reader)
            .read_to_string(&mut read)
            .expect("the whole output");
        ralph.finish().exits_with(0);
        let journal = fs::read_to_string(sandbox.newest_run().join("events.jsonl")).expect("a journal");
        assert!(read == journal, "{} and {} bytes", read.len(), journal.len());
    }
}

/// An agent whose journal is larger than the records that are queued for a front end.
fn flood() -> Sandbox {
    let line = "a long line for a slow reader ".repeat(32);
    let script = format!(
        "{}repeat 12000 {line}\n{}",
        claude::init(),
        claude::result("LOOP_COMPLETE")
    );
    Sandbox::new()
        .with_agent("claude")
        .with_script("default", &script)
}

/// Waits for the end of the run, of which the reader has read nothing.
fn wait_for_run_end(sandbox: &Sandbox, ralphs_end: &OwnedFd) {
    let journal = sandbox.newest_run().join("events.jsonl");
    wait_until("the end of the run", DEADLINE, || {
        let mut end = Vec::new();
        let mut file = fs::File::open(&journal).expect("a journal");
        let size = file.metadata().expect("its size").len();
        file.seek(SeekFrom::Start(size.saturating_sub(1000)))
            .and_then(|_| file.read_to_end(&mut end))
            .expect("its end");
        String::from_utf8_lossy(&end).contains("\"run_ended\"")
    });
    assert!(write_would_block(ralphs_end), "nothing was read");
}

#[test]
fn a_reader_that_does_not_read_does_not_hold_up_the_agent_and_gets_every_record_later() {
    let sandbox = flood();
    let (reader, ralphs_end) = pipe();
    let mut ralph = start_unread(
        &sandbox,
        &["run", "-p", "x", "--json"],
        ralphs_end.try_clone().expect("another"),
    );
    wait_for_run_end(&sandbox, &ralphs_end);
    drop(ralphs_end);
    assert!(
        !ralph.has_ended_within(std::time::Duration::ZERO),
        "ralph waits for the reader"
    );
    let mut read = String::new();
    fs::File::from(reader)
        .read_to_string(&mut read)
        .expect("the whole output");
    ralph.finish().exits_with(0);
    let journal = fs::read_to_string(sandbox.newest_run().join("events.jsonl")).expect("a journal");
    assert!(read == journal, "{} and {} bytes", read.len(), journal.len());
}

#[test]
fn a_signal_ends_the_wait_for_a_reader_after_the_run() {
    let sandbox = flood();
    let (_unread, ralphs_end) = pipe();
    let ralph = start_unread(
        &sandbox,
        &["run", "-p", "x"],
        ralphs_end.try_clone().expect("another"),
    );
    wait_for_run_end(&sandbox, &ralphs_end);
    ralph.signal(Signal::INT);
    ralph.finish().exits_with(0);
}

#[test]
fn a_command_stops_a_run_whose_output_is_not_read() {
    let sandbox = long_output("hang\n");
    let (_unread, ralphs_end) = pipe();
    let ralph = start_unread(&sandbox, &["run", "-p", "x"], ralphs_end);
    sandbox.ralph(&["tell", "--stop"]).exits_with(0);
    ralph.finish().exits_with(130);
    sandbox.wait_until_processes_exit(PROMPTLY);
}

#[test]
fn a_reader_that_died_ends_the_run_if_nothing_else_shows_it() {
    let sandbox = long_output("hang\n");
    let (reader, ralphs_end) = pipe();
    let ralph = start_unread(&sandbox, &["run", "-p", "x"], ralphs_end);
    drop(reader);
    ralph.finish().exits_with(129);

    let sandbox = long_output(&format!("wait-for go\n{}", claude::result("LOOP_COMPLETE")));
    let (reader, ralphs_end) = pipe();
    let ralph = start_unread(&sandbox, &["run", "-p", "x", "--json=records.jsonl"], ralphs_end);
    drop(reader);
    sandbox.wait_for_event(
        "the notice",
        |event| matches!(event, RunEvent::Notice { text, .. } if text.contains("no longer shown")),
    );
    fs::write(sandbox.path("agent").join("go"), "").expect("a file");
    ralph.finish().exits_with(0);
    assert_same_records(&sandbox);
}

fn assert_same_records(sandbox: &Sandbox) {
    let records = fs::read_to_string(sandbox.work().join("records.jsonl")).expect("a record file");
    let journal = fs::read_to_string(sandbox.newest_run().join("events.jsonl")).expect("a journal");
    assert!(
        records == journal,
        "{} and {} bytes",
        records.len(),
        journal.len()
    );
}

#[test]
fn records_are_written_to_a_file_beside_any_front_end() {
    for arguments in [&["-q"][..], &["--verbose"], &["--no-tui"]] {
        let sandbox = long_output(&claude::result("LOOP_COMPLETE"));
        let arguments = [&["run", "-p", "x", "--json=records.jsonl"][..], arguments].concat();
        let output = sandbox.ralph(&arguments).exits_with(0);
        assert!(output.stdout.contains("Done"), "{}", output.stdout);
        assert_same_records(&sandbox);
    }
    let sandbox = long_output(&claude::result("LOOP_COMPLETE"));
    let arguments = ["run", "-p", "x", "--tui", "--json=records.jsonl"];
    let terminal = Terminal::start(&sandbox, &arguments, (100, 30));
    terminal.ends("exit status: 0");
    assert_same_records(&sandbox);
}

#[test]
fn records_on_stdout_exclude_other_output() {
    let sandbox = Sandbox::new();
    for other in ["--tui", "--quiet", "--verbose", "--interactive"] {
        let output = sandbox.ralph(&["run", "-p", "x", "--json", other]).exits_with(2);
        assert!(output.stderr.contains("cannot be used with"), "{}", output.stderr);
    }
    let output = sandbox
        .ralph(&[
            "run",
            "-p",
            "x",
            "--agent-cmd",
            "true",
            "--json=no/such/directory/file",
        ])
        .exits_with(1);
    assert!(
        output.stderr.contains("no/such/directory/file"),
        "{}",
        output.stderr
    );
}
