//! The steps of a script: one per line, a word and the rest of the line; `#` begins a comment line.
//! In texts, `\n`, `\t`, `\\` and `\xNN` are understood. Paths are relative to the directory of the script,
//! those of `write` to the working directory.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, getsid, kill_process};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{OptionalActions, isatty, tcgetattr, tcgetwinsize, tcsetattr};

use crate::leftover::Leftover;

type Step = fn(&mut Player, &str) -> io::Result<Flow>;

const STEPS: &[(&str, Step)] = &[
    ("say", |_, text| {
        put(&mut io::stdout(), &[&unescape(text)?, b"\n".as_slice()].concat())
    }),
    ("print", |_, text| put(&mut io::stdout(), &unescape(text)?)),
    ("err", |_, text| {
        put(&mut io::stderr(), &[&unescape(text)?, b"\n".as_slice()].concat())
    }),
    ("file", |player, path| {
        io::copy(&mut File::open(player.directory.join(path))?, &mut io::stdout())?;
        put(&mut io::stdout(), b"")
    }),
    ("repeat", repeat),
    ("flood", flood),
    ("read-stdin", read_stdin),
    ("sleep", |_, milliseconds| {
        thread::sleep(Duration::from_millis(number(milliseconds)?));
        Ok(Flow::Next)
    }),
    ("wait-for", |player, path| {
        while !player.directory.join(path).exists() {
            thread::sleep(Duration::from_millis(5));
        }
        Ok(Flow::Next)
    }),
    ("touch", |player, path| {
        fs::write(player.directory.join(path), "").map(|()| Flow::Next)
    }),
    ("write", |_, rest| {
        let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
        fs::write(path, unescape(text)?).map(|()| Flow::Next)
    }),
    ("say-in-iteration", say_in_iteration),
    ("run", run),
    ("ignore", ignore),
    ("fork-and-hold-stdout", |player, seconds| {
        player.leave(Leftover::HoldingStdout, seconds)
    }),
    ("fork-setsid", |player, seconds| {
        player.leave(Leftover::OwnSession, seconds)
    }),
    ("double-fork", |player, seconds| {
        player.leave(Leftover::Reparented, seconds)
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

/// One invocation on stage.
pub(crate) struct Player {
    directory: PathBuf,
    /// What the names of this invocation's files begin with.
    number: String,
    /// Signals that are ignored, by what is left behind too.
    ignored: Vec<String>,
}

impl Player {
    pub(crate) fn new(directory: PathBuf, number: String) -> Self {
        Self {
            directory,
            number,
            ignored: Vec::new(),
        }
    }

    /// Plays a script to its end, or to its `exit`.
    pub(crate) fn play(&mut self, script: &str) -> io::Result<u8> {
        for line in script.lines().map(str::trim_start) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let Some((_, step)) = STEPS.iter().find(|(name, _)| *name == word) else {
                return Err(io::Error::other(format!("no such step: {line}")));
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

/// A signal by its name, with or without `SIG`.
pub(crate) fn signal(name: &str) -> io::Result<i32> {
    let is_meant = |signal: &i32| {
        signal_hook::low_level::signal_name(*signal)
            .is_some_and(|known| known.trim_start_matches("SIG") == name)
    };
    let name = name.trim_start_matches("SIG");
    (1..32)
        .find(is_meant)
        .ok_or_else(|| io::Error::other(format!("no such signal: {name}")))
}

/// Lets a signal do nothing.
pub(crate) fn disregard(signal: i32) -> io::Result<()> {
    signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).map(|_| ())
}

fn ignore(player: &mut Player, name: &str) -> io::Result<Flow> {
    disregard(signal(name)?)?;
    player.ignored.push(name.to_owned());
    Ok(Flow::Next)
}

fn die(_: &mut Player, name: &str) -> io::Result<Flow> {
    let signal = Signal::from_named_raw(signal(name)?).ok_or_else(|| io::Error::other("no such signal"))?;
    loop {
        kill_process(getpid(), signal)?;
    }
}

fn put(stream: &mut dyn Write, bytes: &[u8]) -> io::Result<Flow> {
    stream.write_all(bytes)?;
    stream.flush()?;
    Ok(Flow::Next)
}

/// Many equal lines, as fast as the reader takes them.
fn repeat(_: &mut Player, rest: &str) -> io::Result<Flow> {
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

/// `flood SECONDS RATE FILE`: the file again and again, for so long, at so many bytes a second.
fn flood(player: &mut Player, rest: &str) -> io::Result<Flow> {
    let mut words = rest.splitn(3, ' ');
    let mut next = || words.next().unwrap_or_default();
    let (seconds, rate, path) = (number(next())?, number(next())?, next());
    let block = fs::read(player.directory.join(path))?;
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

/// `say-in-iteration 10 text`: only then.
fn say_in_iteration(_: &mut Player, rest: &str) -> io::Result<Flow> {
    let (iteration, text) = rest.split_once(' ').unwrap_or((rest, ""));
    if std::env::var("RALPH_ITERATION").is_ok_and(|now| now == iteration) {
        return put(&mut io::stdout(), &[&unescape(text)?, b"\n".as_slice()].concat());
    }
    Ok(Flow::Next)
}

/// A shell command in the working directory, which must succeed.
fn run(_: &mut Player, command: &str) -> io::Result<Flow> {
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", command])
        .status()?;
    if status.success() {
        Ok(Flow::Next)
    } else {
        Err(io::Error::other(format!("{status}: {command}")))
    }
}

fn read_stdin(player: &mut Player, _: &str) -> io::Result<Flow> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    // Whoever waits for the file finds it whole.
    let path = player.directory.join(format!("{}.stdin", player.number));
    fs::write(path.with_extension("unfinished"), bytes)?;
    fs::rename(path.with_extension("unfinished"), path)?;
    Ok(Flow::Next)
}

/// `read-keys-until text`: what is typed up to there is added to `N.keys`.
fn read_keys_until(player: &mut Player, text: &str) -> io::Result<Flow> {
    let awaited = unescape(text)?;
    let path = player.directory.join(format!("{}.keys", player.number));
    let mut typed = Vec::new();
    while !typed.ends_with(&awaited) {
        let mut byte = [0];
        io::stdin().read_exact(&mut byte)?;
        typed.push(byte[0]);
    }
    let mut file = File::options().create(true).append(true).open(path)?;
    file.write_all(&typed)?;
    Ok(Flow::Next)
}

fn tty_report(_: &mut Player, _: &str) -> io::Result<Flow> {
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

fn unescape(text: &str) -> io::Result<Vec<u8>> {
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
            _ => return Err(io::Error::other(format!("no such escape: {text}"))),
        });
    }
    Ok(bytes)
}
