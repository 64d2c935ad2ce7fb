//! A review outside of a run: one round, without earlier findings.

use super::answer;
use super::decide::{ReviewRules, Round, RoundDecision, decide};
use super::log::ReviewLog;
use super::prompt::ReviewerPrompt;
use crate::engine::final_message::FinalMessage;
use crate::engine::marker::Markers;
use crate::engine::policy::MessageBoundaries;
use crate::event::{Finding, GateResult, Meta, ReviewAnswer, Severity, TranscriptEvent};
use crate::policy::MarkerPlacement;

/// What a reviewer outside of a run learns.
#[derive(Debug, Clone, Copy)]
pub struct SingleReview<'a> {
    /// What the change was meant to do.
    pub task: &'a str,
    /// What the reviewer looks for.
    pub instructions: Option<&'a str>,
    pub patch: &'a str,
    /// The name of the file with the whole patch.
    pub patch_file: &'a str,
    /// Why the previous answer of this reviewer was not valid.
    pub problem: Option<&'a str>,
}

impl SingleReview<'_> {
    pub fn prompt(&self) -> String {
        let prompt = ReviewerPrompt {
            task: self.task,
            instructions: self.instructions,
            patch: self.patch,
            patch_file: self.patch_file,
            earlier: &[],
            problem: self.problem,
        };
        prompt.compose()
    }
}

/// Finds the answer in the output of a reviewer that has ended.
pub fn review_answer_in(
    events: &[TranscriptEvent],
    prompt: &str,
    messages: MessageBoundaries,
) -> Result<ReviewAnswer, String> {
    let markers = Markers::new(Vec::new(), MarkerPlacement::Line);
    let mut message = FinalMessage::new(messages == MessageBoundaries::Delimited);
    let mut failure = None;
    for event in events {
        drop(message.apply_event(event, &markers));
        match event {
            TranscriptEvent::Meta {
                meta: Meta::Error { message, .. },
            } => failure = Some(message.clone()),
            TranscriptEvent::Meta {
                meta: Meta::Finished { success: true, .. },
            } => failure = None,
            TranscriptEvent::Meta {
                meta: Meta::Finished { reason, .. },
            } => failure = failure.or_else(|| reason.clone()),
            _ => {}
        }
    }
    match failure {
        Some(failure) => Err(format!("the agent reported an error: {failure}")),
        None => answer::parse(&message.text(prompt)),
    }
}

/// The findings of one round, and whether the review passes.
pub fn decide_single_review(
    gate: &str,
    block: Severity,
    quorum: usize,
    answers: &[(String, Option<ReviewAnswer>)],
) -> (Vec<Finding>, GateResult) {
    let rules = ReviewRules {
        gate: gate.to_owned(),
        block,
        rounds: 1,
        quorum,
    };
    let round = Round {
        iteration: 0,
        answers,
        touched: None,
        changed: &[],
    };
    let RoundDecision { findings, result, .. } = decide(&rules, &ReviewLog::default(), &round);
    (findings, result)
}
