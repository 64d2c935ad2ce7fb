//! F11: `ralph serve` with 10,000 runs, and a run that 50 readers follow.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::run_list::{RUNS, write_runs};
use crate::sample::{Figure, helper, interleaved, median, ralph, scratch, workspace};
use crate::stream::{corpus, high_water, rate};

const READERS: usize = 50;
const MEGABYTES: u64 = 50;
const REPEATS: usize = 5;
const REQUESTS: usize = 11;
/// A reader without an event for this long has lost one.
const SILENCE: Duration = Duration::from_secs(120);

pub(crate) fn serve() -> Vec<Figure> {
    [list(), readers()].into_iter().flatten().collect()
}

/// The first page of a list is requested when nothing has been read yet, and again as an open page does.
fn list() -> Vec<Figure> {
    let state = scratch().join("list-state");
    let runs = match runs_directory(&state) {
        Some(runs) => runs,
        None => {
            let directory = workspace("list", &["nothing"], "plain");
            let mut run = with_state(&state);
            let _ = run
                .args(["run", "-q", "-n", "1", "-p", "x y"])
                .current_dir(directory)
                .status();
            runs_directory(&state).unwrap_or_default()
        }
    };
    if fs::read_dir(&runs).map_or(0, Iterator::count) < RUNS {
        write_runs(&runs);
    }
    let server = Server::start(&state);
    let request = || {
        let start = Instant::now();
        let list = server.get("/api/v1/runs?limit=100").unwrap_or_default();
        assert!(list.contains("\"count\""), "{list}");
        start.elapsed()
    };
    let first = request();
    let later = median(std::iter::repeat_with(request).take(REQUESTS).collect());
    let milliseconds = |time: Duration| format!("{:.0} ms", time.as_secs_f64() * 1e3);
    vec![
        Figure::plain(
            "the page's list of 10,000 runs, later",
            milliseconds(later),
            "≤ 200 ms",
        ),
        Figure::plain("… the first time", milliseconds(first), ""),
    ]
}

/// Compares the throughput of a run that prints continuously with and without readers, each of which must receive every record.
fn readers() -> Vec<Figure> {
    let mut peak = 0;
    let followed = || {
        let flood = Flood::start();
        let server = Server::start(&flood.state);
        let mut readers = Readers::start(&server, &flood.run);
        let took = flood.finish();
        readers.received_all(&flood.run);
        peak = peak.max(high_water(server.child.id()));
        rate(MEGABYTES, took)
    };
    let alone = || rate(MEGABYTES, Flood::start().finish());
    let (ours, baseline) = interleaved(REPEATS, followed, alone);
    let memory = format!("{:.1} MB", peak as f64 / 1e6);
    vec![
        Figure::rates("a run that 50 readers follow", ours, baseline, "≥ 0.95×"),
        Figure::plain("… peak memory of the server", memory, "≤ 100 MB"),
    ]
}

/// A run whose agent waits for a file, then prints as fast as it can.
struct Flood {
    state: PathBuf,
    run: PathBuf,
    go: PathBuf,
    child: std::cell::RefCell<Child>,
}

impl Flood {
    fn start() -> Self {
        let state = scratch().join("flood-state");
        let _ = fs::remove_dir_all(&state);
        let go = scratch().join("go");
        let _ = fs::remove_file(&go);
        let session = corpus(MEGABYTES).display().to_string();
        let agent = ["emit-after", &go.display().to_string(), &session];
        let directory = workspace("flood", &agent, "claude");
        let mut command = with_state(&state);
        let child = command
            .args(["run", "-q", "-n", "1", "-p", "x y"])
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let run = loop {
            let runs = runs_directory(&state).and_then(|runs| first_entry(&runs));
            match runs.filter(|run| fs::metadata(run.join("events.jsonl")).is_ok_and(|file| file.len() > 0)) {
                Some(run) => break run,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        Self {
            state,
            run,
            go,
            child: child.map(std::cell::RefCell::new).expect("ralph starts"),
        }
    }

    /// Lets the agent print and returns how long the run then takes.
    fn finish(&self) -> Duration {
        let start = Instant::now();
        let _ = fs::write(&self.go, "");
        let _ = self.child.borrow_mut().wait();
        start.elapsed()
    }
}

/// Another process with one connection per reader, at the lowest priority: browsers run on other machines.
struct Readers {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Readers {
    /// Returns when each reader has received the first record.
    fn start(server: &Server, run: &Path) -> Self {
        let id = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = helper("read-events");
        command.args([
            server.port.to_string(),
            server.cookie.clone(),
            id,
            READERS.to_string(),
        ]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("readers start");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));
        assert_eq!(next_line(&mut stdout), "ready");
        Self { child, stdout }
    }

    fn received_all(&mut self, run: &Path) {
        let journal = fs::read(run.join("events.jsonl")).unwrap_or_default();
        let records = journal.iter().filter(|byte| **byte == b'\n').count();
        let received = next_line(&mut self.stdout);
        assert_eq!(received, vec![records.to_string(); READERS].join(" "));
        let _ = self.child.wait();
    }
}

/// The helper that `Readers` starts.
pub(crate) fn read_events(port: &str, cookie: &str, run: &str, readers: &str) -> io::Result<()> {
    let _ = rustix::process::nice(19);
    let (ready, started) = mpsc::channel();
    let count = readers.parse().unwrap_or(1);
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let (port, cookie, run, ready) =
                (port.to_owned(), cookie.to_owned(), run.to_owned(), ready.clone());
            std::thread::spawn(move || follow(&port, &cookie, &run, &ready))
        })
        .collect();
    for _ in 0..count {
        started.recv().map_err(io::Error::other)?;
    }
    writeln!(io::stdout(), "ready")?;
    let mut received = Vec::new();
    for thread in threads {
        let records = thread
            .join()
            .map_err(|_| io::Error::other("a reader panicked"))??;
        received.push(records.to_string());
    }
    writeln!(io::stdout(), "{}", received.join(" "))
}

/// Returns the number of records up to the end of the run.
fn follow(port: &str, cookie: &str, run: &str, ready: &mpsc::Sender<()>) -> io::Result<u64> {
    let path = format!("/api/v1/runs/{run}/events");
    let mut stream = BufReader::with_capacity(1 << 16, request(port, &path, cookie)?);
    let (mut line, mut records) = (Vec::new(), 0);
    loop {
        line.clear();
        if stream.read_until(b'\n', &mut line)? == 0 {
            return Ok(records);
        }
        if !line.starts_with(b"data: ") {
            continue;
        }
        records += 1;
        if records == 1 {
            let _ = ready.send(());
        }
        if memchr::memmem::find(&line, b"\"type\":\"run_ended\"").is_some() {
            return Ok(records);
        }
    }
}

fn request(port: &str, path: &str, cookie: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    stream.set_read_timeout(Some(SILENCE))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
    )?;
    Ok(stream)
}

/// A server that a browser has signed in to.
struct Server {
    child: Child,
    port: String,
    cookie: String,
}

impl Server {
    fn start(state: &Path) -> Self {
        let mut command = with_state(state);
        command.args(["serve", "--port", "0"]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("ralph serve starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let line = next_line(&mut stdout);
        let address = line.strip_prefix("Open http://localhost:").expect("the address");
        let (port, token) = address.split_once('/').expect("a path");
        let answer = text_of(request(port, &format!("/{token}"), "")).unwrap_or_default();
        let cookie = answer
            .split_once("set-cookie: ")
            .and_then(|(_, rest)| rest.split_once(';'));
        Self {
            port: port.to_owned(),
            cookie: cookie.expect("a cookie").0.to_owned(),
            child,
        }
    }

    fn get(&self, path: &str) -> io::Result<String> {
        text_of(request(&self.port, path, &self.cookie))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text_of(stream: io::Result<TcpStream>) -> io::Result<String> {
    let mut text = String::new();
    stream?.read_to_string(&mut text)?;
    Ok(text)
}

fn next_line(stdout: &mut impl BufRead) -> String {
    let mut line = String::new();
    let _ = stdout.read_line(&mut line);
    line.trim_end().to_owned()
}

fn with_state(state: &Path) -> Command {
    let mut command = ralph();
    command.env("RALPH_STATE_DIR", state);
    command
}

/// The runs of the only project in a state directory.
fn runs_directory(state: &Path) -> Option<PathBuf> {
    let runs = first_entry(&state.join("projects"))?.join("runs");
    runs.exists().then_some(runs)
}

fn first_entry(directory: &Path) -> Option<PathBuf> {
    let entry = fs::read_dir(directory).ok()?.next()?;
    Some(entry.ok()?.path())
}
