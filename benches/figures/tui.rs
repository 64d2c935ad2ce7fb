//! F10: what the screen costs, on a terminal that takes all that is drawn.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::idle::{Spent, share};
use crate::sample::{Figure, median, part, ralph, workspace};
use crate::stream::place;

const SECONDS: u64 = 10;
const SIZE: Winsize = Winsize {
    ws_row: 40,
    ws_col: 120,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

pub(crate) fn face() -> Vec<Figure> {
    let mut figures = waiting(
        "silent",
        &["silent", "30"],
        "CPU with the screen, the agent silent",
        "≤ 0.5 %",
    );
    figures.extend(waiting(
        "steady",
        &["steady", "600"],
        "CPU with the screen, 20 events a second",
        "≤ 2 %",
    ));
    // A debug build is for trying the benchmark out.
    let (small, large) = if cfg!(debug_assertions) { (2, 8) } else { (10, 100) };
    figures.extend(flood(small, 25));
    figures.extend(flood(large, 9));
    figures
}

/// The share of a core that ten seconds take.
fn waiting(name: &str, agent: &[&str], what: &str, target: &'static str) -> Vec<Figure> {
    let place = workspace(name, agent, "plain");
    let mut watched = Watched::start(&place, &["run", "--tui", "-p", "x y"]);
    let until = |seconds| Instant::now() + Duration::from_secs(seconds);
    watched.drain(until(2));
    let (before, drawn) = (Spent::of(watched.child.id()), watched.drawn);
    watched.drain(until(SECONDS));
    let after = Spent::of(watched.child.id());
    let share = share(&before, &after, SECONDS);
    let wakes = (after.wakes - before.wakes) as f64 / SECONDS as f64;
    let bytes = (watched.drawn - drawn) / SECONDS;
    let _ = watched.child.kill();
    let _ = watched.child.wait();
    vec![Figure::plain(
        what,
        format!("{share:.2} %, {wakes:.1} wake-ups/s, {bytes} bytes/s drawn"),
        target,
    )]
}

/// One way of showing a flood: how long it took, how much processor time, and how long the agent was held.
struct Cost {
    wall: f64,
    cpu: f64,
    agent: f64,
}

fn flood(megabytes: u64, repeats: usize) -> Vec<Figure> {
    let ways = [&["--tui"][..], &["--no-tui"], &["-q"]];
    let mut costs: [Vec<Cost>; 3] = Default::default();
    let mut headless = Vec::new();
    for _ in 0..repeats {
        for (costs, flags) in costs.iter_mut().zip(ways) {
            let place = place("flood", megabytes);
            costs.push(run(&place, flags));
        }
        headless.push(without_a_terminal(&place("flood", megabytes)));
    }
    let middle = |way: usize, of: fn(&Cost) -> f64| median(costs[way].iter().map(of).collect());
    let [screen, plain, quiet] = [0, 1, 2].map(|way| Duration::from_secs_f64(middle(way, |cost| cost.agent)));
    let headless = Duration::from_secs_f64(median(headless));
    let share =
        (middle(0, |cost| cost.cpu) - middle(2, |cost| cost.cpu)) / middle(0, |cost| cost.wall) * 100.0;
    let against =
        |what: &str| format!("how long the agent takes to say {megabytes} MB, screen against {what}");
    vec![
        Figure::times(
            &against("no terminal, lines to a file"),
            screen,
            headless,
            "≤ 1.2×",
        ),
        Figure::times(&against("--no-tui on a terminal"), screen, plain, "≤ 1.2×"),
        Figure::times(&against("-q, which shows nothing"), screen, quiet, "told"),
        Figure::plain(
            &format!("CPU of the face alone, {megabytes} MB"),
            format!("{share:.0} % of a core"),
            "told",
        ),
    ]
}

/// How long the agent takes when lines go to a file, as in a run at night.
fn without_a_terminal(place: &Path) -> f64 {
    let out = std::fs::File::create(place.join("out.txt")).map_or_else(|_| Stdio::null(), Stdio::from);
    let mut command = ralph();
    command.args(["run", "-p", "x y"]).current_dir(place);
    let status = command
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok(), "{command:?}");
    agents_time(place).unwrap_or_default()
}

fn run(place: &Path, flags: &[&str]) -> Cost {
    let start = Instant::now();
    let mut watched = Watched::start(place, &[&["run", "-p", "x y"], flags].concat());
    let mut spent = Duration::ZERO;
    while matches!(watched.child.try_wait(), Ok(None)) {
        watched.drain(Instant::now() + Duration::from_millis(5));
        spent = Spent::of(watched.child.id()).time.max(spent);
    }
    Cost {
        wall: start.elapsed().as_secs_f64(),
        cpu: spent.as_secs_f64(),
        agent: agents_time(place).unwrap_or_default(),
    }
}

/// How long the agent was at work, as the journal has it.
fn agents_time(place: &Path) -> Option<f64> {
    let journal = std::fs::read(place.join(".agent/events.jsonl")).ok()?;
    let last = memchr::memmem::rfind(&journal, b"\"agent_ended\"")?;
    let rest = String::from_utf8_lossy(&journal[last..]).into_owned();
    let (_, number) = rest.split_once("\"duration_ms\":")?;
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    Some(digits.parse::<f64>().ok()? / 1e3)
}

/// `ralph` on a terminal, and somebody who reads what is drawn.
struct Watched {
    master: std::os::fd::OwnedFd,
    child: Child,
    drawn: u64,
}

impl Watched {
    fn start(place: &Path, arguments: &[&str]) -> Self {
        let open = || -> rustix::io::Result<(std::os::fd::OwnedFd, String)> {
            let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
            grantpt(&master)?;
            unlockpt(&master)?;
            tcsetwinsize(&master, SIZE)?;
            let name = ptsname(&master, Vec::new())?;
            Ok((master, name.to_string_lossy().into_owned()))
        };
        let (master, name) = open().unwrap_or_else(|error| panic!("no terminal: {error}"));
        let mut command: Command = part("terminal");
        command.arg(&name).arg(ralph().get_program()).args(arguments);
        let child = command
            .current_dir(place)
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

    /// Reads what is drawn, as a terminal does, until then.
    fn drain(&mut self, until: Instant) {
        let mut piece = [0; 1 << 16];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let mut fds = [PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
            let left = Timespec::try_from(left).unwrap_or_default();
            if matches!(poll(&mut fds, Some(&left)), Ok(1..)) {
                match rustix::io::read(&self.master, &mut piece) {
                    Ok(count) => self.drawn += count as u64,
                    // Nobody has it open, yet or any more.
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        }
    }
}

/// The part of whoever gives ralph its terminal: a session of its own, in which ralph is everything.
pub(crate) fn on_terminal(terminal: &str, program: &str, arguments: &[&str]) -> std::io::Result<()> {
    use std::os::unix::process::CommandExt;
    rustix::process::setsid()?;
    let terminal = std::fs::File::options().read(true).write(true).open(terminal)?;
    rustix::stdio::dup2_stdin(&terminal)?;
    rustix::stdio::dup2_stdout(&terminal)?;
    rustix::stdio::dup2_stderr(&terminal)?;
    Err(Command::new(program).args(arguments).exec())
}

/// An agent that says something 20 times a second.
pub(crate) fn steady(count: &str) -> std::io::Result<()> {
    for number in 0..count.parse::<u64>().unwrap_or(0) {
        std::thread::sleep(Duration::from_millis(50));
        writeln!(
            std::io::stdout(),
            "line {number} of what an agent says while it works"
        )?;
    }
    writeln!(std::io::stdout(), "LOOP_COMPLETE")
}
