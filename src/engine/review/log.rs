//! The findings of a run and the rounds of its reviews. All state comes from run events, so a resumed run restores it from
//! the journal.

use std::collections::BTreeMap;

use crate::event::{Finding, FindingAnswer, FindingStatus, GateResult, RunEvent, RunOutcome};
use crate::policy::FINDING_TOPIC;

/// Longer answers are cut.
const MAX_ANSWER: usize = 1000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReviewLog {
    /// In the order in which they were reported.
    findings: Vec<Finding>,
    gates: BTreeMap<String, Rounds>,
}

/// The rounds of one gate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rounds {
    /// Rounds that rejected the result.
    pub(crate) failed: u64,
    /// Of these, the rounds in which reviewers answered. They raise the bar.
    pub(crate) answered: u64,
    /// The snapshots of the first and of the last round in which reviewers answered.
    pub(crate) first_tree: Option<String>,
    pub(crate) last_tree: Option<String>,
}

impl ReviewLog {
    pub(crate) fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Finding(finding) => self.update(finding),
            RunEvent::GateEnded {
                name,
                result,
                details,
                ..
            } => {
                if let GateResult::Rejected { .. } | GateResult::Unanswered = result {
                    let rounds = self.gates.entry(name.clone()).or_default();
                    rounds.ended(*result, details.tree.as_ref());
                }
            }
            RunEvent::Topic { event, .. } if event.topic == FINDING_TOPIC => self.answer(&event.payload),
            // A user who resumes an unreviewed run wants a fresh set of rounds.
            RunEvent::RunEnded {
                outcome: RunOutcome::Unreviewed { .. },
                ..
            } => {
                for rounds in self.gates.values_mut() {
                    (rounds.failed, rounds.answered) = (0, 0);
                }
            }
            _ => {}
        }
    }

    fn update(&mut self, finding: &Finding) {
        match self.findings.iter_mut().find(|known| known.id == finding.id) {
            Some(known) => known.clone_from(finding),
            None => self.findings.push(finding.clone()),
        }
    }

    /// Each line answers one finding: `F1 fixed`, `F2 disputed: why`.
    fn answer(&mut self, payload: &str) {
        for line in payload.lines() {
            let line = line.trim().trim_start_matches(['-', '*', ' ']);
            let Some((id, rest)) = line.split_once(|c: char| c.is_whitespace() || c == ':') else {
                continue;
            };
            let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ':' || c == '-');
            let Some(answer) = parse_answer(rest) else {
                continue;
            };
            let named =
                |finding: &&mut Finding| finding.id.eq_ignore_ascii_case(id) && finding.status.blocks();
            if let Some(finding) = self.findings.iter_mut().find(named) {
                finding.answer = Some(answer);
            }
        }
    }

    pub(crate) fn findings(&self) -> &[Finding] {
        &self.findings
    }

    pub(crate) fn rounds(&self, gate: &str) -> Rounds {
        self.gates.get(gate).cloned().unwrap_or_default()
    }

    pub(crate) fn of_gate(&self, gate: &str) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.gate == gate)
    }

    /// The number of the next finding.
    pub(crate) fn next_number(&self) -> usize {
        self.findings.len() + 1
    }

    /// The findings that the next prompt lists: the blocking ones, then advice of the last round.
    pub(crate) fn for_prompt(&self) -> (Vec<&Finding>, Vec<&Finding>) {
        let blocking = self.findings.iter().filter(|finding| finding.status.blocks());
        let blocking: Vec<&Finding> = blocking.collect();
        let is_current = |finding: &&Finding| {
            let round = self.rounds(&finding.gate).failed;
            finding.status == FindingStatus::Advice && finding.round == round
        };
        let advice = self.findings.iter().filter(is_current);
        (blocking, advice.collect())
    }
}

impl Rounds {
    /// A round that rejected the result has ended.
    fn ended(&mut self, result: GateResult, tree: Option<&String>) {
        self.failed += 1;
        if let GateResult::Rejected { .. } = result {
            self.answered += 1;
            self.first_tree = self.first_tree.take().or_else(|| tree.cloned());
            self.last_tree = tree.cloned().or_else(|| self.last_tree.take());
        }
    }
}

fn parse_answer(text: &str) -> Option<FindingAnswer> {
    let word: String = text.chars().take_while(|c| c.is_alphabetic()).collect();
    let rest = text[word.len()..].trim_start_matches(|c: char| c.is_whitespace() || ":-–—".contains(c));
    match word.to_ascii_lowercase().as_str() {
        "fixed" => Some(FindingAnswer::Fixed),
        "disputed" => Some(FindingAnswer::Disputed {
            why: rest.chars().take(MAX_ANSWER).collect(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::review::tests::finding;
    use crate::event::TopicEvent;

    fn answers(payload: &str) -> Vec<Option<String>> {
        let mut log = ReviewLog::default();
        for id in ["F1", "F2"] {
            let mut finding = finding("a.rs", "bug");
            finding.id = id.to_owned();
            log.apply(&RunEvent::Finding(Box::new(finding)));
        }
        let event = TopicEvent {
            topic: FINDING_TOPIC.to_owned(),
            target: None,
            payload: payload.to_owned(),
        };
        log.apply(&RunEvent::Topic { iteration: 1, event });
        let shown = |finding: &Finding| finding.answer.as_ref().map(ToString::to_string);
        log.findings.iter().map(shown).collect()
    }

    #[test]
    fn agent_answers_findings_by_event() {
        let (fixed, disputed) = (
            Some("fixed".to_owned()),
            Some("disputed: the caller checks it".to_owned()),
        );
        assert_eq!(answers("F1 fixed"), [fixed.clone(), None]);
        assert_eq!(
            answers("F2 disputed: the caller checks it"),
            [None, disputed.clone()]
        );
        assert_eq!(
            answers("- F1: fixed in a.rs\n- f2 - Disputed — the caller checks it"),
            [fixed, disputed]
        );
        for payload in [
            "",
            "F1",
            "F3 fixed",
            "F1 ignored",
            "everything is fixed",
            "F1fixed",
        ] {
            assert_eq!(answers(payload), [None, None], "{payload}");
        }
    }
}
