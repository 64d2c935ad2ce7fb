//! Whoever reads what ralph prints may stop reading: a pager, a stopped program, a frozen terminal.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::process::stage::{PROMPTLY, takes_no_more, wait_until};
use crate::sandbox::{DEADLINE, Running, Sandbox, claude};

/// A reader's end, and ralph's.
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

/// An agent that says much, and ralph, whose words go where nobody reads them.
fn unread(sandbox: &Sandbox, arguments: &[&str], ralphs_end: OwnedFd) -> Running {
    let mut command = sandbox.command(arguments);
    command.stdout(ralphs_end.try_clone().expect("another"));
    let ralph = Running::start(&mut command);
    wait_until("no more room", DEADLINE, || takes_no_more(&ralphs_end));
    ralph
}

fn talking(end: &str) -> Sandbox {
    let script = format!(
        "{}repeat 20000 a line of some length for whoever reads it\n{end}",
        claude::init()
    );
    Sandbox::new().with_agent("claude").playing("default", &script)
}

#[test]
fn a_signal_ends_a_run_that_nobody_reads() {
    let plain = ["run", "-p", "x", "--no-tui"];
    let json = ["run", "-p", "x", "--json"];
    for (place, arguments) in [
        (pipe as fn() -> Ends, plain),
        (pipe, json),
        (socket, plain),
        (terminal, plain),
    ] {
        let sandbox = talking("hang\n");
        let (_nobody_reads, ralphs_end) = place();
        let ralph = unread(&sandbox, &arguments, ralphs_end);
        ralph.signal(Signal::TERM);
        ralph.finish().exits_with(143);
        sandbox.wait_until_all_are_gone(PROMPTLY);
        assert_eq!(sandbox.records("run_ended")[0]["outcome"], "interrupted");
        assert!(sandbox.newest_run().join("summary.md").exists());
    }
}

#[test]
fn a_signal_ends_a_replay_that_nobody_reads() {
    let sandbox = talking(&claude::result("LOOP_COMPLETE"));
    sandbox.ralph(&["run", "-p", "x", "-q"]).exits_with(0);
    for arguments in [
        &["replay", "latest"][..],
        &["replay", "latest", "--json"],
        &["logs", "-f"],
    ] {
        let (_nobody_reads, ralphs_end) = pipe();
        let ralph = unread(&sandbox, arguments, ralphs_end);
        ralph.signal(Signal::INT);
        let told = ralph.finish().exits_with(130);
        assert_eq!(told.stderr, "");
    }
}

/// It is waited for as long as it takes, and finds everything where it left off.
#[test]
fn a_reader_that_pauses_loses_nothing() {
    for place in [pipe, socket] {
        let sandbox = talking(&claude::result("LOOP_COMPLETE"));
        let (reader, ralphs_end) = place();
        let ralph = unread(&sandbox, &["run", "-p", "x", "--json"], ralphs_end);
        let mut read = String::new();
        fs::File::from(reader)
            .read_to_string(&mut read)
            .expect("all of it");
        ralph.finish().exits_with(0);
        let journal = fs::read_to_string(sandbox.newest_run().join("events.jsonl")).expect("a journal");
        assert!(read == journal, "{} and {} bytes", read.len(), journal.len());
    }
}
