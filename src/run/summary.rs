//! `summary.md`: the end of a run, for people.

use std::time::Duration;

use crate::event::{CostSource, RunEvent, RunHeader};
use crate::ui::{PassedGates, run_verdict, units, unknown_cost};

pub(super) fn markdown(header: &RunHeader, ended: &RunEvent, gates: &PassedGates) -> String {
    let RunEvent::RunEnded {
        outcome,
        iterations,
        duration_ms,
        usage,
    } = ended
    else {
        return String::new();
    };
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text.push_str(&format!("- {name}: {value}\n"));
    line("outcome", &run_verdict(outcome, gates).sentence);
    line("agent", &header.agent);
    line("iterations", &iterations.to_string());
    line("time", &units::duration(Duration::from_millis(*duration_ms)));
    if let Some(tokens) = usage.tokens() {
        line("tokens", &units::grouped(tokens));
    }
    match (usage.cost_usd, header.max_cost_usd) {
        (Some(cost), _) => {
            let source = match usage.cost_source {
                Some(CostSource::Reported) => " (reported)",
                Some(CostSource::Priced) => " (priced)",
                None => "",
            };
            line("cost", &format!("{}{source}", units::dollars(cost)));
        }
        (None, Some(budget)) => line("cost", &unknown_cost(budget)),
        (None, None) => {}
    }
    format!("# Run {}\n\n{text}", header.run_id)
}
