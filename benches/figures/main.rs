//! What ralph costs, as ratios to floors that are measured in the same run: `cargo bench --bench figures`.
//! Name figures to measure only those: `cargo bench --bench figures -- F1 F4`.
//!
//! The program also plays the helpers that are measured against: it starts itself as the smallest program, as an agent
//! that prints, and as the reference reader (see `helpers.rs`).

mod helpers;
mod idle;
mod iteration_gap;
mod latency;
mod run_list;
mod sample;
mod start;
mod stream;
mod tui;

use std::io::Write;
use std::process::ExitCode;

use sample::Figure;

type Measure = fn() -> Vec<Figure>;

/// In the order in which they are shown.
const FIGURES: &[(&str, Measure)] = &[
    ("F1", start::start_up),
    ("F2", iteration_gap::gap_between_iterations),
    ("F3", stream::memory),
    ("F4", stream::throughput),
    ("F5", latency::from_line_to_reader),
    ("F6", idle::idle),
    ("F7", stream::odd_shapes),
    ("F8", run_list::index),
    ("F9", start::size),
    ("F10", tui::face),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    if let Some(code) = helpers::play(&arguments) {
        return code;
    }
    let wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == name);
    let mut out = std::io::stdout();
    let mut all = Vec::new();
    let _ = writeln!(out, "load {}", sample::load());
    let _ = writeln!(
        out,
        "| | figure | measured | floor | ratio | target |\n|---|---|---|---|---|---|"
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
