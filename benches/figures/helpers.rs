//! The helper processes that this program starts as: baselines and agents.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde::Deserialize;

/// Runs the helper that the first argument names, if any.
pub(crate) fn run_if_named(arguments: &[String]) -> Option<ExitCode> {
    let rest: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    let result = match (arguments.first()?.as_str(), &rest[..]) {
        ("nothing", []) => Ok(()),
        ("emit", [file]) => emit(file),
        ("emit-after", [go, file]) => emit_after(Path::new(go), file),
        ("read-events", [port, cookie, run, readers]) => {
            crate::serve::read_events(port, cookie, run, readers)
        }
        ("stamp", [file, last]) => stamp(file, last),
        ("reference", [corpus, raw]) => reference(corpus, raw),
        ("reference-terminal", [corpus, raw]) => reference_on_terminal(corpus, raw),
        ("limited", []) => limited(),
        ("lines", [count]) => lines(count),
        ("tick", [count]) => tick(count),
        ("steady", [count]) => crate::tui::steady(count),
        ("terminal", [terminal, program, arguments @ ..]) => {
            crate::tui::on_terminal(terminal, program, arguments)
        }
        ("silent", [seconds]) => {
            std::thread::sleep(Duration::from_secs(seconds.parse().unwrap_or(1)));
            print_line("LOOP_COMPLETE")
        }
        _ => return None,
    };
    Some(if result.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print_line(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}

/// An agent that prints a file as fast as it can.
fn emit(file: &str) -> io::Result<()> {
    let mut file = File::open(file)?;
    let mut out = io::stdout().lock();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return out.flush(),
            count => out.write_all(&buffer[..count])?,
        }
    }
}

/// An agent that prints a file as soon as another one exists.
fn emit_after(go: &Path, file: &str) -> io::Result<()> {
    while !go.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    emit(file)
}

/// An agent that only records when it started and ended. It completes when `last` such lines exist.
fn stamp(file: &str, last: &str) -> io::Result<()> {
    let started = monotonic();
    let mut log = File::options().create(true).append(true).open(file)?;
    let so_far = BufReader::new(File::open(file)?).lines().count();
    let enough = last.parse().unwrap_or(usize::MAX) <= so_far + 1;
    print_line(if enough { "LOOP_COMPLETE" } else { "more" })?;
    writeln!(log, "{started} {}", monotonic())
}

/// An agent that prints many short lines.
fn lines(count: &str) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(256 * 1024, io::stdout());
    for number in 0..count.parse::<u64>().unwrap_or(0) {
        writeln!(out, "line {number}")?;
    }
    writeln!(out, "LOOP_COMPLETE")
}

/// An agent that prints the time 50 times per second.
fn tick(count: &str) -> io::Result<()> {
    for _ in 0..count.parse::<u64>().unwrap_or(0) {
        std::thread::sleep(Duration::from_millis(20));
        print_line(&format!("at {}", monotonic()))?;
    }
    print_line("LOOP_COMPLETE")
}

/// Nanoseconds of the system-wide monotonic clock.
pub(crate) fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// The fields that any reader of this format must parse.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    message: Option<&'a serde_json::value::RawValue>,
    #[serde(borrow)]
    event: Option<&'a serde_json::value::RawValue>,
}

/// The baseline for reading: starts the agent, reads its pipe, splits and parses lines, and appends the raw bytes to a file.
fn reference(corpus: &str, raw: &str) -> io::Result<()> {
    let mut child = emitter(corpus)?.stdout(Stdio::piped()).spawn()?;
    let pipe = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    read_lines(pipe, raw)?;
    child.wait().map(drop)
}

/// Like `reference`, on a raw terminal.
fn reference_on_terminal(corpus: &str, raw: &str) -> io::Result<()> {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&controller)?;
    unlockpt(&controller)?;
    let name = ptsname(&controller, Vec::new())?;
    let terminal = File::options()
        .write(true)
        .read(true)
        .open(OsStr::from_bytes(name.as_bytes()))?;
    let mut attributes = tcgetattr(&terminal)?;
    attributes.make_raw();
    tcsetattr(&terminal, OptionalActions::Now, &attributes)?;
    let mut child = emitter(corpus)?.stdout(terminal).spawn()?;
    read_lines(File::from(controller), raw)?;
    child.wait().map(drop)
}

fn emitter(corpus: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["emit", corpus]).stdin(Stdio::null());
    Ok(command)
}

fn read_lines(mut source: impl Read, raw: &str) -> io::Result<()> {
    let mut raw = File::options().create(true).append(true).open(raw)?;
    let mut buffer = vec![0; 256 * 1024];
    let mut partial: Vec<u8> = Vec::new();
    let mut matching = 0_u64;
    // Reading from a closed terminal returns an error instead of EOF.
    while let Ok(count @ 1..) = source.read(&mut buffer) {
        raw.write_all(&buffer[..count])?;
        let mut rest = &buffer[..count];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let line = if partial.is_empty() {
                &rest[..end]
            } else {
                partial.extend_from_slice(&rest[..end]);
                &partial[..]
            };
            let parsed = std::str::from_utf8(line)
                .ok()
                .and_then(|line| serde_json::from_str::<Line<'_>>(line).ok());
            let matches = parsed.is_some_and(|line| {
                !line.kind.is_empty() && (line.message.is_some() || line.event.is_some())
            });
            matching += u64::from(matches);
            partial.clear();
            rest = &rest[end + 1..];
        }
        partial.extend_from_slice(rest);
    }
    print_line(&matching.to_string())
}

/// An agent that reports a usage limit far in the future.
fn limited() -> io::Result<()> {
    print_line(r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#)?;
    print_line(
        r#"{"type":"rate_limit_event","session_id":"s","rate_limit_info":{"status":"rejected","resetsAt":4102444800,"rateLimitType":"five_hour"}}"#,
    )?;
    print_line(
        r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"num_turns":1,"session_id":"s","result":"You've hit your limit"}"#,
    )?;
    Err(io::ErrorKind::Other.into())
}
