//! `summary.md`: the end of a run, for people.

use std::fmt::Write;

use crate::event::{RunEvent, RunHeader};
use crate::ui::words;

pub(super) fn markdown(header: &RunHeader, ended: &RunEvent) -> String {
    let RunEvent::RunEnded { outcome, iterations, duration_ms, usage } = ended else { return String::new() };
    let mut text = String::new();
    let mut line = |name: &str, value: &str| drop(writeln!(text, "- {name}: {value}"));
    line("outcome", &words::run_outcome(outcome));
    line("agent", &header.agent);
    line("iterations", &iterations.to_string());
    line("time", &words::duration_ms(*duration_ms));
    if let Some(tokens) = usage.tokens() {
        line("tokens", &words::count(tokens));
    }
    if let Some(cost) = usage.cost_usd {
        line("cost", &words::dollars(cost));
    }
    format!("# Run {}\n\n{text}", header.run_id)
}
