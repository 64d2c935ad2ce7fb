//! Findings about the hats: unreachable ones, and topics that no hat takes.

use crate::config::Settings;
use crate::engine::{self, HatSeverity};
use crate::policy::Hat;

use super::{Finding, FindingState};

/// Returns the problems of the hats for `ralph doctor`; empty without hats.
pub fn check_hats(settings: &Settings) -> Vec<Finding> {
    let rules: Vec<Hat> = settings.hats.values().cloned().collect();
    let finding = |state, detail: String, remedy| Finding {
        area: "hats",
        subject: "hats".to_owned(),
        state,
        detail,
        remedy,
    };
    let problems: Vec<Finding> = engine::check_hats(&rules, &settings.event_loop.starting_event)
        .into_iter()
        .map(|found| {
            let state = match found.severity {
                HatSeverity::Error => FindingState::Broken,
                HatSeverity::Warning => FindingState::Warning,
            };
            let remedy = "to show the graph: ralph hats graph".to_owned();
            finding(state, found.text, Some(remedy))
        })
        .collect();
    match rules.len() {
        0 => Vec::new(),
        count if problems.is_empty() => {
            let noun = if count == 1 { "hat" } else { "hats" };
            vec![finding(
                FindingState::Good,
                format!("{count} {noun}, no problems"),
                None,
            )]
        }
        _ => problems,
    }
}
