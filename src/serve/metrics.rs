//! `/metrics` in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::listing::Overview;

/// Runs by outcome, and totals by project and agent.
pub(super) fn render(overview: &Overview) -> String {
    let mut text = String::new();
    let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
    let mut totals: BTreeMap<(String, String), [f64; 3]> = BTreeMap::new();
    for run in &overview.runs {
        let outcome = serde_json::to_value(run.row.run.outcome).unwrap_or_default();
        *outcomes
            .entry(outcome.as_str().unwrap_or_default().to_owned())
            .or_default() += 1;
        let agent = run.row.run.agent.clone().unwrap_or_default();
        let total = totals.entry((run.row.project.clone(), agent)).or_default();
        if let Some(of_run) = &run.row.run.totals {
            total[0] += of_run.iterations as f64;
            total[1] += of_run.usage.tokens().unwrap_or(0) as f64;
            total[2] += of_run.usage.cost_usd.map_or(0.0, f64::from);
        }
    }
    header(&mut text, "ralph_runs", "gauge", "Runs in the state directory.");
    for (outcome, count) in &outcomes {
        let _ = writeln!(text, "ralph_runs{{outcome=\"{outcome}\"}} {count}");
    }
    let metrics = [
        ("ralph_iterations", "Iterations of all stored runs."),
        ("ralph_tokens", "Tokens of all stored runs."),
        ("ralph_cost_usd", "Cost of all stored runs in US dollars."),
    ];
    for (index, (name, help)) in metrics.into_iter().enumerate() {
        header(&mut text, name, "gauge", help);
        for ((project, agent), total) in &totals {
            let (project, agent) = (label(project), label(agent));
            let _ = writeln!(
                text,
                "{name}{{project=\"{project}\",agent=\"{agent}\"}} {}",
                total[index]
            );
        }
    }
    text
}

fn header(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn label(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
