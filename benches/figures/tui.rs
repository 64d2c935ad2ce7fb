//! F10: the cost of the TUI, on a pseudo-terminal whose output is read continuously.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::idle::{CpuUse, share};
use crate::sample::{Figure, helper, median, ralph, workspace};
use crate::stream::stream_workspace;

const SECONDS: u64 = 10;
const SIZE: Winsize = Winsize {
    ws_row: 40,
    ws_col: 120,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

pub(crate) fn measure() -> Vec<Figure> {
    let mut figures = measure_cpu(
        "silent",
        &["silent", "30"],
        "CPU of the TUI, agent silent",
        "≤ 0.5 %",
    );
    figures.extend(measure_cpu(
        "steady",
        &["steady", "600"],
        "CPU of the TUI, 20 events per second",
        "≤ 2 %",
    ));
    // A debug build is only used to try out the benchmark.
    let (small, large) = if cfg!(debug_assertions) { (2, 8) } else { (10, 100) };
    figures.extend(flood(small, 25));
    figures.extend(flood(large, 9));
    figures
}

/// The share of a core that ralph uses, measured over ten seconds.
fn measure_cpu(name: &str, agent: &[&str], label: &str, target: &'static str) -> Vec<Figure> {
    let directory = workspace(name, agent, "plain");
    let mut process = TuiProcess::start(&directory, &["run", "--tui", "-p", "x y"]);
    let until = |seconds| Instant::now() + Duration::from_secs(seconds);
    process.drain(until(2));
    let (before, drawn) = (CpuUse::of(process.child.id()), process.drawn);
    process.drain(until(SECONDS));
    let after = CpuUse::of(process.child.id());
    let share = share(&before, &after, SECONDS);
    let wakes = (after.wakes - before.wakes) as f64 / SECONDS as f64;
    let bytes = (process.drawn - drawn) / SECONDS;
    let _ = process.child.kill();
    let _ = process.child.wait();
    vec![Figure::plain(
        label,
        format!("{share:.2} %, {wakes:.1} wake-ups/s, {bytes} bytes/s drawn"),
        target,
    )]
}

/// Cost of one output mode in seconds: wall time, CPU time, and the time until the agent exited.
struct OutputCost {
    wall: f64,
    cpu: f64,
    agent: f64,
}

fn flood(megabytes: u64, repeats: usize) -> Vec<Figure> {
    let modes = [&["--tui"][..], &["--no-tui"], &["-q"]];
    let mut costs: [Vec<OutputCost>; 3] = Default::default();
    let mut headless = Vec::new();
    for _ in 0..repeats {
        for (costs, flags) in costs.iter_mut().zip(modes) {
            let directory = stream_workspace("flood", megabytes);
            costs.push(run(&directory, flags));
        }
        headless.push(without_terminal(&stream_workspace("flood", megabytes)));
    }
    let middle = |mode: usize, of: fn(&OutputCost) -> f64| median(costs[mode].iter().map(of).collect());
    let [tui, plain, quiet] = [0, 1, 2].map(|mode| Duration::from_secs_f64(middle(mode, |cost| cost.agent)));
    let headless = Duration::from_secs_f64(median(headless));
    let share =
        (middle(0, |cost| cost.cpu) - middle(2, |cost| cost.cpu)) / middle(0, |cost| cost.wall) * 100.0;
    let against = |other: &str| format!("time for the agent to print {megabytes} MB, TUI against {other}");
    vec![
        Figure::times(&against("plain text to a file"), tui, headless, "≤ 1.2×"),
        Figure::times(&against("--no-tui on a terminal"), tui, plain, "≤ 1.2×"),
        Figure::times(&against("-q"), tui, quiet, ""),
        Figure::plain(
            &format!("CPU of the TUI alone, {megabytes} MB"),
            format!("{share:.0} % of a core"),
            "",
        ),
    ]
}

/// How long the agent runs when plain text goes to a file.
fn without_terminal(directory: &Path) -> f64 {
    let out = std::fs::File::create(directory.join("out.txt")).map_or_else(|_| Stdio::null(), Stdio::from);
    let mut command = ralph();
    command.args(["run", "-p", "x y"]).current_dir(directory);
    let status = command
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok(), "{command:?}");
    agent_duration(directory).unwrap_or_default()
}

fn run(directory: &Path, flags: &[&str]) -> OutputCost {
    let start = Instant::now();
    let mut process = TuiProcess::start(directory, &[&["run", "-p", "x y"], flags].concat());
    let mut spent = Duration::ZERO;
    while matches!(process.child.try_wait(), Ok(None)) {
        process.drain(Instant::now() + Duration::from_millis(5));
        spent = CpuUse::of(process.child.id()).time.max(spent);
    }
    OutputCost {
        wall: start.elapsed().as_secs_f64(),
        cpu: spent.as_secs_f64(),
        agent: agent_duration(directory).unwrap_or_default(),
    }
}

/// The duration of the agent in seconds, from the journal.
fn agent_duration(directory: &Path) -> Option<f64> {
    let journal = std::fs::read(directory.join(".agent/events.jsonl")).ok()?;
    let last = memchr::memmem::rfind(&journal, b"\"agent_ended\"")?;
    let rest = String::from_utf8_lossy(&journal[last..]).into_owned();
    let (_, number) = rest.split_once("\"duration_ms\":")?;
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    Some(digits.parse::<f64>().ok()? / 1e3)
}

/// `ralph` on a pseudo-terminal, and the number of bytes it has drawn.
struct TuiProcess {
    master: std::os::fd::OwnedFd,
    child: Child,
    drawn: u64,
}

impl TuiProcess {
    fn start(directory: &Path, arguments: &[&str]) -> Self {
        let open = || -> rustix::io::Result<(std::os::fd::OwnedFd, String)> {
            let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
            grantpt(&master)?;
            unlockpt(&master)?;
            tcsetwinsize(&master, SIZE)?;
            let name = ptsname(&master, Vec::new())?;
            Ok((master, name.to_string_lossy().into_owned()))
        };
        let (master, name) = open().unwrap_or_else(|error| panic!("cannot open a pseudo-terminal: {error}"));
        let mut command: Command = helper("terminal");
        command.arg(&name).arg(ralph().get_program()).args(arguments);
        let child = command
            .current_dir(directory)
            .env("TERM", "xterm-256color")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self {
            master,
            child,
            drawn: 0,
        }
    }

    /// Reads the output until the given time.
    fn drain(&mut self, until: Instant) {
        let mut buffer = [0; 1 << 16];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let mut fds = [PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
            let left = Timespec::try_from(left).unwrap_or_default();
            if matches!(poll(&mut fds, Some(&left)), Ok(1..)) {
                match rustix::io::read(&self.master, &mut buffer) {
                    Ok(count) => self.drawn += count as u64,
                    // The other side is not open yet, or already closed.
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        }
    }
}

/// Runs a program in a new session with the given terminal as stdin, stdout and stderr.
pub(crate) fn on_terminal(terminal: &str, program: &str, arguments: &[&str]) -> std::io::Result<()> {
    use std::os::unix::process::CommandExt;
    rustix::process::setsid()?;
    let terminal = std::fs::File::options().read(true).write(true).open(terminal)?;
    rustix::stdio::dup2_stdin(&terminal)?;
    rustix::stdio::dup2_stdout(&terminal)?;
    rustix::stdio::dup2_stderr(&terminal)?;
    Err(Command::new(program).args(arguments).exec())
}

/// An agent that prints 20 lines per second.
pub(crate) fn steady(count: &str) -> std::io::Result<()> {
    for number in 0..count.parse::<u64>().unwrap_or(0) {
        std::thread::sleep(Duration::from_millis(50));
        writeln!(
            std::io::stdout(),
            "line {number} of the output of a working agent"
        )?;
    }
    writeln!(std::io::stdout(), "LOOP_COMPLETE")
}
