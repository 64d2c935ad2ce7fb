//! Tests of the decisions about rounds.

use proptest::prelude::*;

use super::reported;
use crate::engine::review::decide::{AfterRound, ReviewRules, Round, RoundDecision, decide};
use crate::engine::review::log::ReviewLog;
use crate::engine::review::touched::TouchedLines;
use crate::event::{
    FindingStatus, GateDetails, GateResult, ReportedFinding, ReviewAnswer, RunEvent, Severity, TopicEvent,
};
use FindingStatus::{Advice, Contested, Open, Outvoted, Resolved, StillOpen};
use Severity::{Critical, High, Low, Medium};

/// A review in progress: its log, and what the agent changes.
struct Review {
    log: ReviewLog,
    rules: ReviewRules,
    number: u64,
    changed: Vec<String>,
    touched: Vec<String>,
}

impl Review {
    fn new(block: Severity, rounds: u64, quorum: usize) -> Self {
        Self {
            log: ReviewLog::default(),
            rules: ReviewRules {
                gate: "review".into(),
                block,
                rounds,
                quorum,
            },
            number: 0,
            changed: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// The agent changes whole files.
    fn change(&mut self, files: &[&str]) {
        self.changed = files.iter().map(|file| (*file).to_owned()).collect();
        self.touched.extend(self.changed.clone());
    }

    fn answer(&mut self, payload: &str) {
        let event = TopicEvent {
            topic: "finding".into(),
            target: None,
            payload: payload.into(),
        };
        self.log.apply(&RunEvent::Topic { iteration: 1, event });
    }

    /// The answers of reviewers `0`, `1`, …
    fn round(&mut self, answers: Vec<Option<ReviewAnswer>>) -> RoundDecision {
        self.number += 1;
        let first_tree = self.log.rounds("review").first_tree;
        let touched = first_tree.map(|_| TouchedLines::new(&self.touched, ""));
        let answers: Vec<_> = (0..).map(|name: usize| name.to_string()).zip(answers).collect();
        let decision = decide(
            &self.rules,
            &self.log,
            &Round {
                iteration: self.number,
                answers: &answers,
                touched: touched.as_ref(),
                changed: &self.changed,
            },
        );
        for finding in &decision.findings {
            self.log.apply(&RunEvent::Finding(Box::new(finding.clone())));
        }
        self.log.apply(&RunEvent::GateEnded {
            iteration: self.number,
            name: "review".into(),
            result: decision.result,
            duration_ms: 0,
            output: String::new(),
            details: Box::new(GateDetails {
                tree: Some(self.number.to_string()),
                ..GateDetails::default()
            }),
        });
        self.changed.clear();
        decision
    }

    fn one(&mut self, findings: Vec<ReportedFinding>) -> RoundDecision {
        self.round(vec![Some(answer(findings))])
    }

    fn statuses(&self) -> Vec<FindingStatus> {
        self.log.findings().iter().map(|finding| finding.status).collect()
    }
}

fn answer(findings: Vec<ReportedFinding>) -> ReviewAnswer {
    ReviewAnswer {
        findings,
        resolved: Vec::new(),
    }
}

fn gives_up(decision: &RoundDecision) -> bool {
    matches!(decision.next, AfterRound::GiveUp { .. })
}

#[test]
fn bar_rises_with_each_round() {
    let mut review = Review::new(Medium, 5, 1);
    assert_eq!(
        review.one(vec![reported("a", 1, "one", Low)]).result,
        GateResult::Passed
    );
    let first = review.one(vec![reported("a", 1, "two", Medium)]);
    assert_eq!(first.result, GateResult::Rejected { findings: 1 });
    review.change(&["a"]);
    assert_eq!(
        review.one(vec![reported("a", 1, "three", Medium)]).result,
        GateResult::Passed
    );
    assert_eq!(review.statuses(), [Advice, Resolved, Advice]);
}

#[test]
fn reviewer_that_always_finds_something_new_reaches_an_end() {
    // On lines that the agent touches, up to the last round.
    let mut review = Review::new(High, 3, 1);
    for (round, claim) in ["alpha", "beta", "gamma"].into_iter().enumerate() {
        review.change(&["a"]);
        let decision = review.one(vec![reported("a", 1, claim, Critical)]);
        assert_eq!(gives_up(&decision), round == 2, "{decision:?}");
        assert_ne!(decision.result, GateResult::Passed);
    }
    // With findings that are not critical, the second round passes.
    let mut review = Review::new(High, 3, 1);
    assert_eq!(
        review.one(vec![reported("a", 1, "alpha", High)]).next,
        AfterRound::Repeat
    );
    review.change(&["a"]);
    assert_eq!(
        review.one(vec![reported("a", 1, "beta", High)]).next,
        AfterRound::Pass
    );
    // On lines that did not change, too.
    let mut review = Review::new(High, 3, 1);
    assert_eq!(
        review.one(vec![reported("a", 1, "alpha", High)]).next,
        AfterRound::Repeat
    );
    review.change(&["a"]);
    assert_eq!(
        review.one(vec![reported("b", 1, "beta", Critical)]).next,
        AfterRound::Pass
    );
    assert_eq!(review.statuses(), [Resolved, Advice]);
}

#[test]
fn finding_keeps_its_identity_and_blocks_until_it_is_resolved() {
    let mut review = Review::new(High, 4, 1);
    review.one(vec![reported("a", 10, "Index 3 is out of range.", High)]);
    review.change(&["a"]);
    // Other case, punctuation and numbers, another line, and a lower severity than the bar of this round.
    let again = review.one(vec![reported("a", 14, "index 7 is out of range", High)]);
    assert_eq!(again.result, GateResult::Rejected { findings: 1 });
    assert_eq!(review.statuses(), [StillOpen]);
    // Named by its id, in other words.
    let mut named = reported("a", 14, "the bound is wrong", High);
    named.id = Some("f1".into());
    review.change(&["a"]);
    review.one(vec![named]);
    assert_eq!(review.statuses(), [StillOpen]);
    review.change(&["a"]);
    assert_eq!(review.one(Vec::new()).result, GateResult::Passed);
    assert_eq!(review.statuses(), [Resolved]);
}

#[test]
fn silence_about_an_unchanged_file_does_not_resolve_a_finding() {
    let mut review = Review::new(High, 9, 1);
    review.one(vec![reported("a", 1, "leak", High)]);
    review.change(&["b"]);
    assert_eq!(
        review.one(Vec::new()).result,
        GateResult::Rejected { findings: 1 }
    );
    // Neither does the agent's word.
    review.answer("F1 fixed");
    assert_eq!(
        review.one(Vec::new()).result,
        GateResult::Rejected { findings: 1 }
    );
    // The reviewer's word does.
    let resolved = ReviewAnswer {
        findings: Vec::new(),
        resolved: vec!["F1".into()],
    };
    assert_eq!(review.round(vec![Some(resolved)]).result, GateResult::Passed);
}

#[test]
fn disputed_finding_is_withdrawn_by_silence_and_upheld_by_repetition() {
    let mut review = Review::new(High, 9, 1);
    review.one(vec![reported("a", 1, "leak", High)]);
    review.answer("F1 disputed: it is freed by the caller");
    let upheld = review.one(vec![reported("a", 1, "leak", High)]);
    assert_eq!(upheld.result, GateResult::Rejected { findings: 1 });
    assert_eq!(review.one(Vec::new()).result, GateResult::Passed);
}

#[test]
fn flip_flop_ends_the_review_with_the_contested_findings() {
    // By the words.
    let mut review = Review::new(Low, 9, 1);
    review.one(vec![reported("a", 1, "rename foo to bar", Critical)]);
    review.change(&["a"]);
    let flip = review.one(vec![reported("a", 1, "rename bar to foo", Critical)]);
    assert_eq!(review.statuses(), [Resolved, Contested]);
    assert_eq!(
        flip.next,
        AfterRound::GiveUp {
            reason: "its findings contradict each other (F2)".into()
        }
    );
    // By the reviewer's own account. Another finding is still to be fixed, so the loop continues.
    let mut review = Review::new(Low, 9, 1);
    review.one(vec![reported("a", 1, "use tabs", Critical)]);
    review.change(&["a"]);
    let mut spaces = reported("a", 1, "use spaces", Critical);
    spaces.contradicts = Some("F1".into());
    let flip = review.one(vec![spaces, reported("a", 9, "crash", Critical)]);
    assert_eq!(review.statuses(), [Resolved, Contested, Open]);
    assert_eq!(flip.next, AfterRound::Repeat);
    // A finding that comes back is still open; it does not pass because the bar has risen.
    let mut review = Review::new(Low, 3, 1);
    review.one(vec![reported("a", 1, "alpha", Low)]);
    review.change(&["a"]);
    review.one(vec![reported("a", 1, "beta", Critical)]);
    review.change(&["a"]);
    let back = review.one(vec![reported("a", 1, "alpha", Low)]);
    assert_eq!(review.statuses(), [StillOpen, Resolved]);
    assert!(gives_up(&back));
}

#[test]
fn no_answer_is_a_failed_round_that_does_not_raise_the_bar() {
    let mut review = Review::new(High, 3, 1);
    let silent = review.round(vec![None]);
    assert_eq!(
        (silent.result, silent.next),
        (GateResult::Unanswered, AfterRound::Repeat)
    );
    let found = review.one(vec![reported("a", 1, "leak", High)]);
    assert_eq!(found.result, GateResult::Rejected { findings: 1 });
    let last = review.round(vec![None]);
    assert_eq!(last.result, GateResult::Unanswered);
    let reason = "its 3 rounds are used up; finding F1 is open".to_owned();
    assert_eq!(last.next, AfterRound::GiveUp { reason });
    assert_eq!(review.statuses(), [Open]);
}

#[test]
fn quorum_of_reviewers_has_to_approve() {
    let leak = || Some(answer(vec![reported("a", 1, "leak", High)]));
    let clean = || Some(ReviewAnswer::default());
    for (quorum, answers, result) in [
        (2, vec![leak(), clean(), clean()], GateResult::Passed),
        (
            3,
            vec![leak(), clean(), clean()],
            GateResult::Rejected { findings: 1 },
        ),
        (
            2,
            vec![leak(), leak(), clean()],
            GateResult::Rejected { findings: 1 },
        ),
        (2, vec![None, clean(), clean()], GateResult::Passed),
        (2, vec![None, None, clean()], GateResult::Unanswered),
        (
            2,
            vec![None, leak(), clean()],
            GateResult::Rejected { findings: 1 },
        ),
        (1, vec![None], GateResult::Unanswered),
    ] {
        let mut review = Review::new(High, 3, quorum);
        let decision = review.round(answers.clone());
        assert_eq!(decision.result, result, "{quorum} of {answers:?}");
        let expected = match result {
            GateResult::Passed => Outvoted,
            _ => Open,
        };
        assert!(
            review.statuses().iter().all(|status| *status == expected),
            "{answers:?}"
        );
    }
}

#[test]
fn findings_of_a_removed_reviewer_are_not_forgotten() {
    let mut review = Review::new(High, 9, 1);
    review.round(vec![None, Some(answer(vec![reported("a", 1, "leak", High)]))]);
    // Reviewer 1 is no longer configured.
    assert_eq!(
        review.round(vec![Some(ReviewAnswer::default())]).result,
        GateResult::Rejected { findings: 1 }
    );
    let resolved = ReviewAnswer {
        findings: Vec::new(),
        resolved: vec!["F1".into()],
    };
    assert_eq!(review.round(vec![Some(resolved)]).result, GateResult::Passed);
}

/// A random reviewer: a few claims in a few files, sometimes no answer.
fn any_answer() -> impl Strategy<Value = Option<ReviewAnswer>> {
    let severity = prop_oneof![Just(Low), Just(Medium), Just(High), Just(Critical)];
    let claims = prop_oneof![
        Just("rename foo to bar"),
        Just("rename bar to foo"),
        Just("leak"),
        Just("crash"),
        "[a-z]{3,6}".prop_map(|word| &*word.leak()),
    ];
    let id = proptest::option::of((1_u64..6).prop_map(|number| format!("F{number}")));
    let found = (0_usize..3, 1_u64..5, claims, severity, id.clone(), id.clone());
    let found = found.prop_map(|(file, line, claim, severity, id, contradicts)| ReportedFinding {
        id,
        contradicts,
        ..reported(["a", "b", "c"][file], line, claim, severity)
    });
    let answer = (
        proptest::collection::vec(found, 0..4),
        proptest::collection::vec(id, 0..3),
    )
        .prop_map(|(findings, resolved)| ReviewAnswer {
            findings,
            resolved: resolved.into_iter().flatten().collect(),
        });
    proptest::option::weighted(0.8, answer)
}

proptest! {
    /// Whatever reviewers answer: the review ends within its rounds, and never passes with an open blocking finding.
    #[test]
    fn every_review_ends_and_none_passes_with_an_open_finding(
        rounds in 1_u64..5,
        quorum in 1_usize..4,
        answers in proptest::collection::vec(proptest::collection::vec(any_answer(), 3), 6),
        changes in proptest::collection::vec(0_usize..4, 6),
        payloads in proptest::collection::vec(0_usize..3, 6),
    ) {
        let mut review = Review::new(High, rounds, quorum);
        let mut ended_after = None;
        for (number, (answers, (change, payload))) in
            answers.into_iter().zip(changes.into_iter().zip(payloads)).enumerate()
        {
            let answered = answers.iter().filter(|answer| answer.is_some()).count();
            let is_first = review.log.rounds("review").answered == 0;
            let serious = answers.iter().flatten().flat_map(|answer| &answer.findings);
            let serious = serious.filter(|finding| finding.severity >= High).count();
            let decision = review.round(answers);
            prop_assert_eq!(decision.result == GateResult::Passed, decision.next == AfterRound::Pass);
            if decision.next == AfterRound::Pass {
                prop_assert!(answered >= quorum, "passed with {answered} answers");
                prop_assert!(review.statuses().iter().all(|status| !status.blocks()));
                if quorum == 3 && is_first {
                    prop_assert_eq!(serious, 0, "passed with a serious finding");
                }
            }
            if decision.next != AfterRound::Repeat {
                ended_after = Some(number as u64 + 1);
                break;
            }
            review.change(["a", "b", "c"].get(change).map_or(&[][..], std::slice::from_ref));
            review.answer(["F1 fixed", "F2 disputed: no", ""][payload]);
        }
        prop_assert!(ended_after.is_some_and(|number| number <= rounds), "{ended_after:?} of {rounds}");
    }
}
