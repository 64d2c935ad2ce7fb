//! Decides about a round of a review: which findings block, which are repeated, contested or only advice, and whether the
//! gate passes. Reviewers report; they decide nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::log::{ReviewLog, Rounds};
use super::touched::TouchedLines;
use crate::event::{
    Finding, FindingAnswer, FindingStatus, GateResult, ReportedFinding, ReviewAnswer, Severity,
};

/// The rules of one review gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReviewRules {
    pub(crate) gate: String,
    pub(crate) block: Severity,
    pub(crate) rounds: u64,
    /// How many reviewers have to approve.
    pub(crate) quorum: usize,
}

/// What the reviewers of one round answered, and what the round is about.
#[derive(Debug)]
pub(crate) struct Round<'a> {
    pub(crate) iteration: u64,
    /// By the name of the reviewer; `None` without a valid answer.
    pub(crate) answers: &'a [(String, Option<ReviewAnswer>)],
    /// What changed since the first round. `None` in the first round.
    pub(crate) touched: Option<&'a TouchedLines>,
    /// The files that changed since the previous round.
    pub(crate) changed: &'a [String],
}

/// What follows from a round.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RoundDecision {
    /// The findings that are new or whose state changed.
    pub(crate) findings: Vec<Finding>,
    pub(crate) result: GateResult,
    pub(crate) next: AfterRound,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AfterRound {
    /// The gate passed.
    Pass,
    /// The agent gets another iteration.
    Repeat,
    /// The run ends as unreviewed, for this reason.
    GiveUp { reason: String },
}

/// Findings of one gate with this key are the same.
type Identity = (Option<String>, String, String);

/// File, category, and the words of the claim without numbers, which change when lines move.
fn identity(file: Option<&str>, category: &str, claim: &str) -> Identity {
    (
        file.map(str::to_owned),
        category.to_owned(),
        words(claim).join(" "),
    )
}

fn words(text: &str) -> Vec<String> {
    let is_separator = |c: char| !c.is_alphanumeric() && c != '_';
    let words = text.split(is_separator).filter(|word| !word.is_empty());
    let is_number = |word: &&str| !word.chars().all(char::is_numeric);
    words.filter(is_number).map(str::to_lowercase).collect()
}

/// Words that turn a demand into its opposite.
const POLARITY: [&str; 20] = [
    "not", "no", "never", "don", "doesn", "shouldn", "t", "do", "does", "should", "must", "without", "with",
    "add", "remove", "instead", "of", "rather", "than", "be",
];

/// Whether two different claims consist of the same words apart from their order and from negations: `use a instead of b`
/// and `use b, not a`.
fn is_reversal(one: &str, other: &str) -> bool {
    let (one, other) = (words(one), words(other));
    let core = |words: &[String]| -> Vec<String> {
        let mut core: Vec<String> = words
            .iter()
            .filter(|word| !POLARITY.contains(&word.as_str()))
            .cloned()
            .collect();
        core.sort_unstable();
        core
    };
    let (one_core, other_core) = (core(&one), core(&other));
    one != other && one_core.len() >= 2 && one_core == other_core
}

pub(crate) fn decide(rules: &ReviewRules, log: &ReviewLog, round: &Round<'_>) -> RoundDecision {
    let rounds = log.rounds(&rules.gate);
    let mut deciding = Deciding::new(rules, log, &rounds, round);
    for (reviewer, answer) in round.answers {
        for reported in answer.iter().flat_map(|answer| &answer.findings) {
            deciding.report(reviewer, reported);
        }
    }
    deciding.carry_over();
    deciding.finish()
}

struct Deciding<'a> {
    rules: &'a ReviewRules,
    round: &'a Round<'a>,
    number: u64,
    bar: Severity,
    failed: u64,
    next_number: usize,
    /// The state before the round, and the current state.
    before: Vec<Finding>,
    findings: Vec<Finding>,
    by_identity: BTreeMap<Identity, usize>,
    reported: BTreeSet<usize>,
}

impl<'a> Deciding<'a> {
    fn new(rules: &'a ReviewRules, log: &ReviewLog, rounds: &Rounds, round: &'a Round<'a>) -> Self {
        let before: Vec<Finding> = log.of_gate(&rules.gate).cloned().collect();
        let key = |finding: &Finding| identity(finding.file.as_deref(), &finding.category, &finding.claim);
        let by_identity = before
            .iter()
            .enumerate()
            .map(|(index, finding)| (key(finding), index));
        Self {
            rules,
            round,
            number: rounds.failed + 1,
            bar: rules.block.raised(rounds.answered),
            failed: rounds.failed,
            next_number: log.next_number(),
            by_identity: by_identity.collect(),
            findings: before.clone(),
            before,
            reported: BTreeSet::new(),
        }
    }

    fn find(&self, id: Option<&str>) -> Option<usize> {
        let id = id?;
        self.findings
            .iter()
            .position(|finding| finding.id.eq_ignore_ascii_case(id))
    }

    fn report(&mut self, reviewer: &str, reported: &ReportedFinding) {
        let key = identity(reported.file.as_deref(), &reported.category, &reported.claim);
        let known = self.by_identity.get(&key).copied();
        match known.or_else(|| self.find(reported.id.as_deref())) {
            Some(index) => self.repeat(index, reviewer, reported),
            None => self.add(key, reviewer, reported),
        }
    }

    fn repeat(&mut self, index: usize, reviewer: &str, reported: &ReportedFinding) {
        let is_second_report = !self.reported.insert(index);
        let is_serious = reported.severity >= self.bar && self.is_touched(reported);
        let status = match self.before.get(index).map(|finding| finding.status) {
            Some(FindingStatus::Contested) => FindingStatus::Contested,
            Some(FindingStatus::Open | FindingStatus::StillOpen | FindingStatus::Resolved) => {
                FindingStatus::StillOpen
            }
            Some(FindingStatus::Advice | FindingStatus::Outvoted) if is_serious => FindingStatus::StillOpen,
            // Reported by another reviewer of this round.
            None if is_serious => FindingStatus::Open,
            Some(FindingStatus::Advice | FindingStatus::Outvoted) | None => FindingStatus::Advice,
        };
        let finding = &mut self.findings[index];
        if !is_second_report || !finding.status.blocks() {
            finding.status = status;
        }
        if !finding.reviewers.iter().any(|known| known == reviewer) {
            finding.reviewers.push(reviewer.to_owned());
        }
        finding.severity = match is_second_report {
            true => finding.severity.max(reported.severity),
            false => reported.severity,
        };
        finding.line = reported.line.or(finding.line);
        finding.round = self.number;
        finding.iteration = self.round.iteration;
    }

    fn add(&mut self, key: Identity, reviewer: &str, reported: &ReportedFinding) {
        let contradicted = self.contradicted(reported);
        let status = match reported.severity >= self.bar && self.is_touched(reported) {
            false => FindingStatus::Advice,
            true if contradicted.is_some() => FindingStatus::Contested,
            true => FindingStatus::Open,
        };
        self.reported.insert(self.findings.len());
        self.by_identity.insert(key, self.findings.len());
        self.findings.push(Finding {
            id: format!("F{}", self.next_number),
            iteration: self.round.iteration,
            gate: self.rules.gate.clone(),
            round: self.number,
            status,
            severity: reported.severity,
            category: reported.category.clone(),
            file: reported.file.clone(),
            line: reported.line,
            claim: reported.claim.clone(),
            check: reported.check.clone(),
            reviewers: vec![reviewer.to_owned()],
            contradicts: contradicted,
            answer: None,
        });
        self.next_number += 1;
    }

    /// In the first round, every place counts.
    fn is_touched(&self, reported: &ReportedFinding) -> bool {
        let touched = self.round.touched;
        touched.is_none_or(|touched| touched.contains(reported.file.as_deref(), reported.line))
    }

    /// The id of an earlier finding that demands the opposite, as the reviewer says or as the words tell.
    fn contradicted(&self, reported: &ReportedFinding) -> Option<String> {
        let named = self.find(reported.contradicts.as_deref());
        let named = named.filter(|index| *index < self.before.len());
        let reversed = || {
            self.before.iter().position(|earlier| {
                earlier.file == reported.file
                    && earlier.category == reported.category
                    && is_reversal(&earlier.claim, &reported.claim)
            })
        };
        named.or_else(reversed).map(|index| self.before[index].id.clone())
    }

    /// A blocking finding that is not reported again is resolved only if there is a reason for that: the reviewer lists it as resolved,
    /// the agent disputed it, or its file changed. Without an answer of its reviewers, it stays as it is.
    fn carry_over(&mut self) {
        for index in 0..self.before.len() {
            let finding = &self.findings[index];
            if self.reported.contains(&index) || !finding.status.blocks() {
                continue;
            }
            let answers = self.answers_about(finding);
            if answers.is_empty() {
                continue;
            }
            let is_listed_in = |answer: &&ReviewAnswer| {
                answer
                    .resolved
                    .iter()
                    .any(|id| id.trim().eq_ignore_ascii_case(&finding.id))
            };
            let is_disputed = matches!(finding.answer, Some(FindingAnswer::Disputed { .. }));
            let has_changed = match &finding.file {
                Some(file) => self.round.changed.contains(file),
                None => !self.round.changed.is_empty(),
            };
            let is_resolved = answers.iter().any(is_listed_in)
                || is_disputed
                || has_changed
                || finding.status == FindingStatus::Contested;
            let status = match (is_resolved, finding.status) {
                (true, _) => FindingStatus::Resolved,
                (false, FindingStatus::Contested) => FindingStatus::Contested,
                (false, _) => FindingStatus::StillOpen,
            };
            let finding = &mut self.findings[index];
            if finding.status != status {
                (finding.status, finding.round, finding.iteration) =
                    (status, self.number, self.round.iteration);
            }
        }
    }

    /// The answers of the reviewers of a finding; of all reviewers if its own are no longer configured.
    fn answers_about(&self, finding: &Finding) -> Vec<&'a ReviewAnswer> {
        let answers = self.round.answers.iter();
        let is_orphan = self.is_orphan(finding);
        let concerned = answers.filter(|(name, _)| is_orphan || finding.reviewers.contains(name));
        concerned.filter_map(|(_, answer)| answer.as_ref()).collect()
    }

    fn is_orphan(&self, finding: &Finding) -> bool {
        let mut reviewers = self.round.answers.iter();
        !reviewers.any(|(name, _)| finding.reviewers.contains(name))
    }

    /// A reviewer approves if it answered and has no blocking finding.
    fn finish(mut self) -> RoundDecision {
        let objects = |name: &String| {
            let mut blocking = self.findings.iter().filter(|finding| finding.status.blocks());
            blocking.any(|finding| finding.reviewers.contains(name))
        };
        let answered = self.round.answers.iter().filter(|(_, answer)| answer.is_some());
        let approvals = answered.filter(|(name, _)| !objects(name)).count();
        let blocking =
            |findings: &[Finding]| findings.iter().filter(|finding| finding.status.blocks()).count();
        let is_orphan_open = self
            .findings
            .iter()
            .any(|finding| finding.status.blocks() && self.is_orphan(finding));
        let result = match (
            approvals >= self.rules.quorum && !is_orphan_open,
            blocking(&self.findings),
        ) {
            (true, _) => GateResult::Passed,
            (false, 0) => GateResult::Unanswered,
            (false, _) if self.round.answers.iter().all(|(_, answer)| answer.is_none()) => {
                GateResult::Unanswered
            }
            (false, findings) => GateResult::Rejected {
                findings: findings as u64,
            },
        };
        if result == GateResult::Passed {
            for finding in self.findings.iter_mut().filter(|finding| finding.status.blocks()) {
                (finding.status, finding.round) = (FindingStatus::Outvoted, self.number);
            }
        }
        let next = self.after(result);
        let findings = self.findings.into_iter().enumerate();
        let changed = findings.filter(|(index, finding)| self.before.get(*index) != Some(finding));
        RoundDecision {
            findings: changed.map(|(_, finding)| finding).collect(),
            result,
            next,
        }
    }

    fn after(&self, result: GateResult) -> AfterRound {
        if result == GateResult::Passed {
            return AfterRound::Pass;
        }
        let blocking: Vec<&Finding> = self
            .findings
            .iter()
            .filter(|finding| finding.status.blocks())
            .collect();
        let ids: Vec<&str> = blocking.iter().map(|finding| finding.id.as_str()).collect();
        let ids = ids.join(", ");
        let all_contested = blocking
            .iter()
            .all(|finding| finding.status == FindingStatus::Contested);
        let all_answered = self.round.answers.iter().all(|(_, answer)| answer.is_some());
        if !blocking.is_empty() && all_contested && all_answered {
            let reason = format!("its findings contradict each other ({ids})");
            return AfterRound::GiveUp { reason };
        }
        if self.failed + 1 < self.rules.rounds {
            return AfterRound::Repeat;
        }
        let rounds = match self.rules.rounds {
            1 => "its only round is used up".to_owned(),
            rounds => format!("its {rounds} rounds are used up"),
        };
        let reason = match blocking.len() {
            0 => format!("{rounds} without a valid answer"),
            1 => format!("{rounds}; finding {ids} is open"),
            _ => format!("{rounds}; findings {ids} are open"),
        };
        AfterRound::GiveUp { reason }
    }
}
