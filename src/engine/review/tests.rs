//! Tests of reviews: decisions about rounds, and conversations with the engine.

mod conversations;
mod rounds;

use crate::event::{Finding, FindingStatus, ReportedFinding, Severity};

/// An open finding of the gate `review`.
pub(crate) fn finding(file: &str, claim: &str) -> Finding {
    Finding {
        id: "F1".into(),
        iteration: 1,
        gate: "review".into(),
        round: 1,
        status: FindingStatus::Open,
        severity: Severity::High,
        category: "bug".into(),
        file: Some(file.into()),
        line: Some(3),
        claim: claim.into(),
        check: None,
        reviewers: vec!["review".into()],
        contradicts: None,
        answer: None,
    }
}

/// A finding as a reviewer reports it.
pub(crate) fn reported(file: &str, line: u64, claim: &str, severity: Severity) -> ReportedFinding {
    ReportedFinding {
        id: None,
        file: Some(file.into()),
        line: Some(line),
        category: "bug".into(),
        severity,
        claim: claim.into(),
        check: None,
        contradicts: None,
    }
}
