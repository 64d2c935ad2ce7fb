//! The steps of a script, one per line: a name and its argument. Lines that start with `#` are comments.
//! Texts may contain the escapes `\n`, `\t`, `\\` and `\xNN`. Paths are relative to the directory of the script, except
//! those of `write`, which are relative to the working directory.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, getsid, kill_process};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{OptionalActions, isatty, tcgetattr, tcgetwinsize, tcsetattr};

use crate::leftover::Leftover;

type Step = fn(&mut Interpreter, &str) -> io::Result<Flow>;

const STEPS: &[(&str, Step)] = &[
    ("say", |_, text| {
        put(&mut io::stdout(), &[&unescape(text)?, b"\n".as_slice()].concat())
    }),
    ("print", |_, text| put(&mut io::stdout(), &unescape(text)?)),
    ("err", |_, text| {
        put(&mut io::stderr(), &[&unescape(text)?, b"\n".as_slice()].concat())
    }),
    ("file", |interpreter, path| {
        io::copy(
            &mut File::open(interpreter.directory.join(path))?,
            &mut io::stdout(),
        )?;
        put(&mut io::stdout(), b"")
    }),
    ("repeat", repeat),
    ("flood", flood),
    ("read-stdin", read_stdin),
    ("sleep", |_, milliseconds| {
        thread::sleep(Duration::from_millis(number(milliseconds)?));
        Ok(Flow::Next)
    }),
    ("wait-for", |interpreter, path| {
        while !interpreter.directory.join(path).exists() {
            thread::sleep(Duration::from_millis(5));
        }
        Ok(Flow::Next)
    }),
    ("touch", |interpreter, path| {
        fs::write(interpreter.directory.join(path), "").map(|()| Flow::Next)
    }),
    ("write", |_, rest| {
        let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
        fs::write(path, unescape(text)?).map(|()| Flow::Next)
    }),
    ("say-in-iteration", say_in_iteration),
    ("run", run),
    ("request", request),
    ("ignore", ignore),
    ("fork-and-hold-stdout", |interpreter, seconds| {
        interpreter.leave(Leftover::HoldingStdout, seconds)
    }),
    ("fork-setsid", |interpreter, seconds| {
        interpreter.leave(Leftover::OwnSession, seconds)
    }),
    ("double-fork", |interpreter, seconds| {
        interpreter.leave(Leftover::Reparented, seconds)
    }),
    ("stop-self", |_, _| {
        kill_process(getpid(), Signal::STOP)
            .map(|()| Flow::Next)
            .map_err(Into::into)
    }),
    ("close-stdout", |_, _| {
        rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
        Ok(Flow::Next)
    }),
    ("tty-report", tty_report),
    ("raw", |_, _| {
        let mut attributes = tcgetattr(stdin())?;
        attributes.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &attributes)?;
        Ok(Flow::Next)
    }),
    ("read-keys-until", read_keys_until),
    ("wait-for-rows", |_, rows| {
        let rows = number(rows)?;
        while tcgetwinsize(stdout())?.ws_row != u16::try_from(rows).map_err(io::Error::other)? {
            thread::sleep(Duration::from_millis(5));
        }
        Ok(Flow::Next)
    }),
    ("exit", |_, code| {
        Ok(Flow::Exit(u8::try_from(number(code)?).map_err(io::Error::other)?))
    }),
    ("acp", |interpreter, arguments| {
        crate::acp::serve(&interpreter.directory, &interpreter.number, arguments).map(|()| Flow::Next)
    }),
    ("die", die),
    ("hang", |_, _| {
        loop {
            thread::park();
        }
    }),
];

pub(crate) enum Flow {
    Next,
    Exit(u8),
}

/// Runs the script of one invocation.
pub(crate) struct Interpreter {
    directory: PathBuf,
    /// Prefix of this invocation's files.
    number: String,
    /// Ignored signals, which leftovers ignore too.
    ignored: Vec<String>,
}

impl Interpreter {
    pub(crate) fn new(directory: PathBuf, number: String) -> Self {
        Self {
            directory,
            number,
            ignored: Vec::new(),
        }
    }

    /// Runs a script until its last line or its `exit`.
    pub(crate) fn run(&mut self, script: &str) -> io::Result<u8> {
        for line in script.lines().map(str::trim_start) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let Some((_, step)) = STEPS.iter().find(|(name, _)| *name == word) else {
                return Err(io::Error::other(format!("unknown step: {line}")));
            };
            if let Flow::Exit(code) = step(self, rest)? {
                return Ok(code);
            }
        }
        Ok(0)
    }

    fn leave(&self, leftover: Leftover, seconds: &str) -> io::Result<Flow> {
        number(seconds)?;
        leftover.leave(&self.directory, seconds, &self.ignored)?;
        Ok(Flow::Next)
    }
}

/// Returns the number of a signal; the prefix `SIG` is optional.
pub(crate) fn signal(name: &str) -> io::Result<i32> {
    let has_name = |signal: &i32| {
        signal_hook::low_level::signal_name(*signal)
            .is_some_and(|known| known.trim_start_matches("SIG") == name)
    };
    let name = name.trim_start_matches("SIG");
    (1..32)
        .find(has_name)
        .ok_or_else(|| io::Error::other(format!("unknown signal: {name}")))
}

/// Installs a handler without an effect.
pub(crate) fn ignore_signal(signal: i32) -> io::Result<()> {
    signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).map(|_| ())
}

fn ignore(interpreter: &mut Interpreter, name: &str) -> io::Result<Flow> {
    ignore_signal(signal(name)?)?;
    interpreter.ignored.push(name.to_owned());
    Ok(Flow::Next)
}

fn die(_: &mut Interpreter, name: &str) -> io::Result<Flow> {
    let signal = Signal::from_named_raw(signal(name)?).ok_or_else(|| io::Error::other("unknown signal"))?;
    loop {
        kill_process(getpid(), signal)?;
    }
}

fn put(stream: &mut dyn Write, bytes: &[u8]) -> io::Result<Flow> {
    stream.write_all(bytes)?;
    stream.flush()?;
    Ok(Flow::Next)
}

/// `repeat COUNT TEXT`: prints equal lines as fast as the reader takes them.
fn repeat(_: &mut Interpreter, rest: &str) -> io::Result<Flow> {
    let (count, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let line = [&unescape(text)?, b"\n".as_slice()].concat();
    let mut left = usize::try_from(number(count)?).map_err(io::Error::other)?;
    let block = line.repeat((256 * 1024 / line.len()).clamp(1, left.max(1)));
    let mut stdout = io::stdout().lock();
    while left > 0 {
        let lines = left.min(block.len() / line.len());
        stdout.write_all(&block[..lines * line.len()])?;
        left -= lines;
    }
    stdout.flush()?;
    Ok(Flow::Next)
}

/// `flood SECONDS RATE FILE`: prints the file repeatedly at this rate, in bytes per second.
fn flood(interpreter: &mut Interpreter, rest: &str) -> io::Result<Flow> {
    let mut words = rest.splitn(3, ' ');
    let mut next = || words.next().unwrap_or_default();
    let (seconds, rate, path) = (number(next())?, number(next())?, next());
    let block = fs::read(interpreter.directory.join(path))?;
    let mut stdout = io::stdout().lock();
    let start = Instant::now();
    let mut written = 0;
    while start.elapsed() < Duration::from_secs(seconds) {
        stdout.write_all(&block)?;
        written += block.len() as u64;
        let due = Duration::from_millis(written * 1000 / rate.max(1));
        thread::sleep(due.saturating_sub(start.elapsed()));
    }
    stdout.flush()?;
    Ok(Flow::Next)
}

/// `say-in-iteration N TEXT`: prints a line in iteration N only.
fn say_in_iteration(_: &mut Interpreter, rest: &str) -> io::Result<Flow> {
    let (iteration, text) = rest.split_once(' ').unwrap_or((rest, ""));
    if std::env::var("RALPH_ITERATION").is_ok_and(|now| now == iteration) {
        return put(&mut io::stdout(), &[&unescape(text)?, b"\n".as_slice()].concat());
    }
    Ok(Flow::Next)
}

/// Runs a shell command in the working directory; it must succeed.
fn run(_: &mut Interpreter, command: &str) -> io::Result<Flow> {
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", command])
        .status()?;
    if status.success() {
        Ok(Flow::Next)
    } else {
        Err(io::Error::other(format!("{status}: {command}")))
    }
}

/// `request URL`: requests the URL, to which the id of the run is added, and runs the steps of the response.
fn request(interpreter: &mut Interpreter, url: &str) -> io::Result<Flow> {
    let rest = url.trim().trim_start_matches("http://");
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let run = std::env::var("RALPH_RUN_ID").unwrap_or_default();
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET /{path}{run} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let Some((_, steps)) = response.split_once("\r\n\r\n") else {
        return Err(io::Error::other("no response"));
    };
    interpreter.run(steps).map(Flow::Exit)
}

fn read_stdin(interpreter: &mut Interpreter, _: &str) -> io::Result<Flow> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    // A test that waits for the file must not see a part of it.
    let path = interpreter
        .directory
        .join(format!("{}.stdin", interpreter.number));
    fs::write(path.with_extension("unfinished"), bytes)?;
    fs::rename(path.with_extension("unfinished"), path)?;
    Ok(Flow::Next)
}

/// `read-keys-until TEXT`: appends the typed keys up to this text to `N.keys`.
fn read_keys_until(interpreter: &mut Interpreter, text: &str) -> io::Result<Flow> {
    let expected = unescape(text)?;
    let path = interpreter.directory.join(format!("{}.keys", interpreter.number));
    let mut typed = Vec::new();
    while !typed.ends_with(&expected) {
        let mut byte = [0];
        io::stdin().read_exact(&mut byte)?;
        typed.push(byte[0]);
    }
    let mut file = File::options().create(true).append(true).open(path)?;
    file.write_all(&typed)?;
    Ok(Flow::Next)
}

fn tty_report(_: &mut Interpreter, _: &str) -> io::Result<Flow> {
    let size = tcgetwinsize(stdout()).ok();
    let report = format!(
        r#"{{"stdin":{},"stdout":{},"stderr":{},"controlling":{},"session_leader":{},"rows":{},"columns":{}}}"#,
        isatty(stdin()),
        isatty(stdout()),
        isatty(stderr()),
        File::open("/dev/tty").is_ok(),
        getsid(None)? == getpid(),
        size.map_or(0, |size| size.ws_row),
        size.map_or(0, |size| size.ws_col),
    );
    put(&mut io::stdout(), format!("{report}\n").as_bytes())
}

fn number(text: &str) -> io::Result<u64> {
    text.trim()
        .parse()
        .map_err(|_| io::Error::other(format!("not a number: {text}")))
}

pub(crate) fn unescape(text: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next() {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'\\') => b'\\',
            Some(b'x') => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let digits = String::from_utf8_lossy(&digits);
                u8::from_str_radix(&digits, 16).map_err(io::Error::other)?
            }
            _ => return Err(io::Error::other(format!("unknown escape: {text}"))),
        });
    }
    Ok(bytes)
}
