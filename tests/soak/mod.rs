//! Hours of loops in which everything goes wrong that can, in an order that nobody chose. `just soak [MINUTES]`.
//!
//! A round is one run: its agent plays a fault in each of its first iterations and completes in the one after them,
//! while somebody kills, stops or interrupts ralph, the keeper or the agent. A run that was ended early is gone on with
//! until it is complete. Then everything must be there, nobody left, and the terminal as it was: half of the rounds are
//! played with the screen on a terminal.

mod check;
mod fault;
mod flood;
mod terminal;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fault::{ACTS, Act, BLOWS};
use terminal::Seat;

use crate::sandbox::{Sandbox, claude};

/// Iterations of a round in which the agent misbehaves.
const FAULTS: usize = 4;

/// What came of a fault, or of a blow.
#[derive(Default)]
struct Tally {
    tried: u64,
    lost: Vec<String>,
}

#[derive(Default)]
struct Table {
    rows: BTreeMap<String, Tally>,
    rounds: u64,
    iterations: u64,
    resumed: u64,
    /// Starts with the screen on a terminal.
    screens: u64,
}

#[test]
#[ignore = "takes its time: just soak"]
fn whatever_happens_nothing_is_lost_and_nobody_is_left() {
    let minutes: f64 = number("RALPH_SOAK_MINUTES", 1.0);
    let seed = number("RALPH_SOAK_SEED", 0.0).to_bits();
    let mut chance = if seed == 0 {
        fastrand::Rng::new()
    } else {
        fastrand::Rng::with_seed(seed)
    };
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let table = Mutex::new(Table::default());
    // A round is mostly waiting: several are played side by side, each in a world of its own.
    std::thread::scope(|scope| {
        for _ in 0..number("RALPH_SOAK_LANES", 4.0) as u32 {
            let (mut chance, table) = (chance.fork(), &table);
            scope.spawn(move || {
                while Instant::now() < end {
                    play_round(&mut chance, table);
                }
            });
        }
    });
    let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
    let text = table.text();
    eprintln!("{text}");
    let lost: usize = table.rows.values().map(|tally| tally.lost.len()).sum();
    assert_eq!(lost, 0, "{text}");
}

fn number(variable: &str, default: f64) -> f64 {
    let said = std::env::var(variable).ok();
    said.and_then(|said| said.parse().ok()).unwrap_or(default)
}

fn play_round(chance: &mut fastrand::Rng, table: &Mutex<Table>) {
    let acts: Vec<&Act> = (0..FAULTS).map(|_| &ACTS[chance.usize(..ACTS.len())]).collect();
    let blow = &BLOWS[chance.usize(..BLOWS.len())];
    let sandbox = stage(&acts);
    let seat = if chance.bool() { Seat::Screen } else { Seat::Files };
    let moment = Duration::from_millis(chance.u64(0..600));
    let mut complaints = Vec::new();
    let mut starts = 0;
    let complete = loop {
        starts += 1;
        let is_first = starts == 1;
        let words: &[&str] = if is_first {
            &["run", "-p", "x"]
        } else {
            &["run", "--continue"]
        };
        let struck = is_first.then_some((blow, moment));
        match check::one_start(&sandbox, (seat, words), struck, &mut complaints) {
            Some(0) => break true,
            _ if starts == 6 => break false,
            _ => {}
        }
        if check::has_no_run(&sandbox) {
            // Struck before it had begun: there is nothing to go on with, and nothing can be lost.
            break true;
        }
    };
    if !complete {
        complaints.push("never completed".to_owned());
    }
    check::look_around(&sandbox, &mut complaints);
    let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
    table.rounds += 1;
    table.screens += if seat == Seat::Screen { starts } else { 0 };
    table.resumed += u64::from(starts > 1);
    table.iterations += check::iterations(&sandbox);
    let story: Vec<&str> = acts.iter().map(|act| act.name).collect();
    for name in story.iter().copied().chain([blow.name]) {
        table.rows.entry(name.to_owned()).or_default().tried += 1;
    }
    let tally = table.rows.entry(blow.name.to_owned()).or_default();
    tally.lost.extend(
        complaints
            .into_iter()
            .map(|what| format!("{what} ({seat:?}, {story:?}, {} after {moment:?})", blow.name)),
    );
}

fn stage(acts: &[&Act]) -> Sandbox {
    let sandbox = Sandbox::new().with_agent("claude").with_file(
        "ralph.yml",
        "event_loop: { stop_grace_seconds: 1, result_grace_seconds: 1, max_consecutive_failures: 1000, \
         max_no_progress: 0, max_iterations: 200 }\nadapters: { claude: { timeout: 3, idle_timeout: 1 } }\n",
    );
    let sandbox = acts.iter().enumerate().fold(sandbox, |sandbox, (index, act)| {
        sandbox.playing(&(index + 1).to_string(), &(act.script)())
    });
    sandbox.playing("default", &claude::session("LOOP_COMPLETE"))
}

impl Table {
    fn text(&self) -> String {
        let mut text = format!(
            "\nsoak: {} rounds, {} iterations, {} rounds gone on with after an end, {} starts with the screen on a \
             terminal\n\n{:<44} {:>6} {:>6}\n",
            self.rounds, self.iterations, self.resumed, self.screens, "what", "tried", "lost"
        );
        for (name, tally) in &self.rows {
            let _ = writeln!(text, "{name:<44} {:>6} {:>6}", tally.tried, tally.lost.len());
            for lost in &tally.lost {
                let _ = writeln!(text, "    {lost}");
            }
        }
        text
    }
}
