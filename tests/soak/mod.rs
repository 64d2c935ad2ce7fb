//! Runs loops with random faults for minutes or hours. `just soak [MINUTES]`.
//!
//! A round is one run. Its agent has a fault in each of its first iterations and completes in the next one, while the test kills,
//! stops or interrupts ralph, the supervisor or the agent. A run that ended early is resumed until it completes. Then all data
//! must be stored, no process left, and the terminal restored: half of the rounds use the TUI.

mod check;
mod fault;
mod flood;
mod terminal;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fault::{AGENT_FAULTS, AgentFault, INTERFERENCES};
use terminal::OutputTarget;

use crate::sandbox::{Sandbox, claude};

/// Iterations of a round in which the agent misbehaves.
const FAULTS: usize = 4;

/// Results of one fault or interference.
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
    /// Starts with the TUI.
    screens: u64,
}

#[test]
#[ignore = "slow: just soak"]
fn random_faults_lose_no_data_and_leave_no_process() {
    let minutes: f64 = number("RALPH_SOAK_MINUTES", 1.0);
    let seed = number("RALPH_SOAK_SEED", 0.0).to_bits();
    let mut rng = if seed == 0 {
        fastrand::Rng::new()
    } else {
        fastrand::Rng::with_seed(seed)
    };
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let table = Mutex::new(Table::default());
    // A round mostly waits, so several run concurrently, each in its own sandbox.
    std::thread::scope(|scope| {
        for _ in 0..number("RALPH_SOAK_LANES", 4.0) as u32 {
            let (mut rng, table) = (rng.fork(), &table);
            scope.spawn(move || {
                while Instant::now() < end {
                    run_round(&mut rng, table);
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
    let value = std::env::var(variable).ok();
    value.and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn run_round(rng: &mut fastrand::Rng, table: &Mutex<Table>) {
    let faults: Vec<&AgentFault> = (0..FAULTS)
        .map(|_| &AGENT_FAULTS[rng.usize(..AGENT_FAULTS.len())])
        .collect();
    let interference = &INTERFERENCES[rng.usize(..INTERFERENCES.len())];
    let sandbox = sandbox_with(&faults);
    let target = if rng.bool() {
        OutputTarget::Screen
    } else {
        OutputTarget::Files
    };
    let moment = Duration::from_millis(rng.u64(0..600));
    let mut problems = Vec::new();
    let mut starts = 0;
    let complete = loop {
        starts += 1;
        let is_first = starts == 1;
        let arguments: &[&str] = if is_first {
            &["run", "-p", "x"]
        } else {
            &["run", "--continue"]
        };
        let interfere = is_first.then_some((interference, moment));
        match check::run_once(&sandbox, (target, arguments), interfere, &mut problems) {
            Some(0) => break true,
            _ if starts == 6 => break false,
            _ => {}
        }
        if check::has_no_run(&sandbox) {
            // Killed before the run started: there is nothing to resume and nothing to lose.
            break true;
        }
    };
    if !complete {
        problems.push("never completed".to_owned());
    }
    check::check_sandbox(&sandbox, &mut problems);
    let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
    table.rounds += 1;
    table.screens += if target == OutputTarget::Screen { starts } else { 0 };
    table.resumed += u64::from(starts > 1);
    table.iterations += check::iterations(&sandbox);
    let names: Vec<&str> = faults.iter().map(|fault| fault.name).collect();
    for name in names.iter().copied().chain([interference.name]) {
        table.rows.entry(name.to_owned()).or_default().tried += 1;
    }
    let tally = table.rows.entry(interference.name.to_owned()).or_default();
    tally.lost.extend(problems.into_iter().map(|what| {
        format!(
            "{what} ({target:?}, {names:?}, {} after {moment:?})",
            interference.name
        )
    }));
}

fn sandbox_with(faults: &[&AgentFault]) -> Sandbox {
    let sandbox = Sandbox::new().with_agent("claude").with_file(
        "ralph.yml",
        "event_loop: { stop_grace_seconds: 1, result_grace_seconds: 1, max_consecutive_failures: 1000, \
         max_no_progress: 0, max_iterations: 200 }\nadapters: { claude: { timeout: 3, idle_timeout: 1 } }\n",
    );
    let sandbox = faults
        .iter()
        .enumerate()
        .fold(sandbox, |sandbox, (index, fault)| {
            sandbox.with_script(&(index + 1).to_string(), &(fault.script)())
        });
    sandbox.with_script("default", &claude::session("LOOP_COMPLETE"))
}

impl Table {
    fn text(&self) -> String {
        let mut text = format!(
            "\nsoak: {} rounds, {} iterations, {} resumed rounds, {} starts with the TUI\n\n{:<44} {:>6} {:>6}\n",
            self.rounds, self.iterations, self.resumed, self.screens, "fault", "tried", "lost"
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
