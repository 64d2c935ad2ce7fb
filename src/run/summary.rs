//! `summary.md`: the end of a run, for people.

use std::time::Duration;

use crate::event::{CostSource, Finding, RunEvent, RunHeader};
use crate::ui::{PassedGates, run_verdict, units, unknown_cost};

pub(super) fn markdown(
    header: &RunHeader,
    ended: &RunEvent,
    gates: &PassedGates,
    findings: &[Finding],
) -> String {
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
    if let Some(tree) = gates.tree() {
        line("verified snapshot", tree);
    }
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
    text.push_str(&findings_section(findings));
    format!("# Run {}\n\n{text}", header.run_id)
}

/// The findings of reviews in their last state; empty if there are none.
fn findings_section(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let lines = findings.iter().map(|finding| {
        let answer = finding.answer.as_ref();
        let answer = answer.map(|answer| format!(" (the agent: {answer})"));
        let claim = finding.claim.split_whitespace().collect::<Vec<_>>().join(" ");
        format!(
            "- {} · {}: {claim}{}\n",
            finding.heading(),
            finding.status.label(),
            answer.unwrap_or_default()
        )
    });
    format!("\n## Findings\n\n{}", lines.collect::<String>())
}
