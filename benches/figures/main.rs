//! Performance figures of ralph, as ratios to baselines measured in the same run: `cargo bench --bench figures`.
//! Arguments select figures: `cargo bench --bench figures -- F1 F4`.
//!
//! The program also starts itself as a helper: as an empty program, as an agent, and as the reference reader (see
//! `helpers.rs`).

mod helpers;
mod idle;
mod iteration_gap;
mod latency;
mod run_list;
mod sample;
mod serve;
mod snapshots;
mod start;
mod stream;
mod tui;

use std::io::Write;
use std::process::ExitCode;

use sample::Figure;

type Measure = fn() -> Vec<Figure>;

/// In output order.
const FIGURES: &[(&str, Measure)] = &[
    ("F1", start::start_up),
    ("F2", iteration_gap::gap_between_iterations),
    ("F3", stream::memory),
    ("F4", stream::throughput),
    ("F5", latency::from_line_to_reader),
    ("F6", idle::idle),
    ("F7", stream::unusual_lines),
    ("F8", run_list::run_list),
    ("F9", start::size),
    ("F10", tui::measure),
    ("F11", serve::serve),
    ("F12", snapshots::over_many_iterations),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    if let Some(code) = helpers::run_if_named(&arguments) {
        return code;
    }
    let wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == name);
    let mut out = std::io::stdout();
    let mut all = Vec::new();
    let _ = writeln!(out, "load {}", sample::load());
    let _ = writeln!(
        out,
        "| | figure | measured | baseline | ratio | target |\n|---|---|---|---|---|---|"
    );
    for (name, measure) in FIGURES.iter().filter(|(name, _)| wanted(name)) {
        for figure in measure() {
            let _ = writeln!(out, "| {name} | {figure} |");
            all.push((*name, figure));
        }
    }
    let report = sample::json(&all);
    let path = sample::scratch().join("figures.json");
    match std::fs::write(&path, report) {
        Ok(()) => {
            let _ = writeln!(out, "\n{}", path.display());
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}
