//! The findings of `ralph review` as text, JSON and SARIF.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};

use crate::event::{Finding, GateResult, Severity, Usage, units};
use crate::ui::clean::clean;
use crate::ui::{Terminal, Tone, gate_failure, pretty_json};

/// The result of one review.
#[derive(Debug, Serialize)]
pub(super) struct ReviewReport {
    pub(super) gate: String,
    /// The run or the revisions that were reviewed.
    pub(super) subject: String,
    /// The lowest severity that fails the review.
    pub(super) block: Severity,
    pub(super) result: GateResult,
    pub(super) reviewers: Vec<ReviewerReport>,
    pub(super) findings: Vec<Finding>,
}

/// What one reviewer did.
#[derive(Debug, Serialize)]
pub(super) struct ReviewerReport {
    name: String,
    agent: String,
    /// Why there is no valid answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    usage: Usage,
}

impl ReviewerReport {
    pub(super) fn new(name: &str, agent: &str, problem: Option<String>, usage: Usage) -> Self {
        Self {
            name: name.to_owned(),
            agent: agent.to_owned(),
            problem,
            usage,
        }
    }
}

pub(super) fn text(reports: &[ReviewReport], terminal: &Terminal) -> String {
    reports
        .iter()
        .map(|report| report_text(report, terminal))
        .collect()
}

fn report_text(report: &ReviewReport, terminal: &Terminal) -> String {
    let mut text = String::new();
    let mut sorted: Vec<&Finding> = report.findings.iter().collect();
    sorted.sort_by(|one, other| {
        other
            .severity
            .cmp(&one.severity)
            .then_with(|| one.file.cmp(&other.file))
    });
    for finding in sorted {
        let tone = match finding.status.blocks() {
            true => Tone::Bad,
            false => Tone::Plain,
        };
        let place = finding.location().unwrap_or_else(|| "(whole change)".to_owned());
        let severity = terminal.styled(finding.severity.name(), tone);
        let reviewers = match report.reviewers.len() {
            1 => String::new(),
            _ => format!(" · {}", finding.reviewers.join(", ")),
        };
        text.push_str(&format!(
            "\n{} {severity} · {}{}\n",
            terminal.styled(&clean(&place), Tone::Strong),
            clean(&finding.category),
            clean(&reviewers)
        ));
        for line in finding.claim.lines() {
            text.push_str(&format!("  {}\n", clean(line.trim_end())));
        }
        if let Some(check) = &finding.check {
            text.push_str(&format!("  fails: {}\n", clean(check)));
        }
    }
    if !report.findings.is_empty() {
        text.push('\n');
    }
    for reviewer in &report.reviewers {
        if let Some(problem) = &reviewer.problem {
            let line = clean(&format!("{}: {problem}", reviewer.name)).into_owned();
            text.push_str(&format!("{} {line}\n", terminal.styled("!", Tone::Warning)));
        }
    }
    text.push_str(&verdict(report, terminal));
    text
}

/// `✗ review: 2 open findings (4 in all) · $0.12 · 41.2k tokens`
fn verdict(report: &ReviewReport, terminal: &Terminal) -> String {
    let (mark, tone) = match report.result.passed() {
        true => ("✓", Tone::Good),
        false => ("✗", Tone::Bad),
    };
    let all = units::count(report.findings.len() as u64, "finding");
    let what = match (gate_failure(report.result), report.findings.len()) {
        (None, 0) => "no findings".to_owned(),
        (None, _) => format!("{all}, none of them {} or worse", report.block),
        (Some(why), 0) => why,
        (Some(why), _) => format!("{why} ({all} in all)"),
    };
    let mut usage = Usage::default();
    report
        .reviewers
        .iter()
        .for_each(|reviewer| usage.add(&reviewer.usage));
    let figures = [
        usage.cost_usd.map(units::dollars),
        usage
            .tokens()
            .map(|tokens| format!("{} tokens", units::tokens(tokens))),
    ];
    let figures: String = figures
        .into_iter()
        .flatten()
        .map(|figure| format!(" · {figure}"))
        .collect();
    format!(
        "{} {}: {what}{figures}\n",
        terminal.styled(mark, tone),
        clean(&report.gate)
    )
}

pub(super) fn json(reports: &[ReviewReport]) -> String {
    pretty_json(&json!({"version": 1, "reviews": reports}))
}

/// SARIF 2.1.0, which code hosts and editors show next to the code.
pub(super) fn sarif(reports: &[ReviewReport]) -> String {
    let findings = || reports.iter().flat_map(|report| &report.findings);
    let categories: BTreeSet<&str> = findings().map(|finding| finding.category.as_str()).collect();
    let rules: Vec<Value> = categories
        .into_iter()
        .map(|category| json!({"id": category, "shortDescription": {"text": category}}))
        .collect();
    let problems = reports.iter().flat_map(|report| &report.reviewers);
    let notifications: Vec<Value> = problems
        .filter_map(|reviewer| {
            let problem = reviewer.problem.as_ref()?;
            let text = format!("{}: {problem}", reviewer.name);
            Some(json!({"level": "error", "message": {"text": text}}))
        })
        .collect();
    let is_answered = reports
        .iter()
        .all(|report| report.result != GateResult::Unanswered);
    pretty_json(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "ralph review",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": "https://github.com/ralph-loop/ralph",
                "rules": rules,
            }},
            "invocations": [{
                "executionSuccessful": is_answered,
                "toolExecutionNotifications": notifications,
            }],
            "columnKind": "unicodeCodePoints",
            "results": findings().map(sarif_result).collect::<Vec<_>>(),
        }],
    }))
}

fn sarif_result(finding: &Finding) -> Value {
    let level = match finding.severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "note",
    };
    let check = finding.check.as_ref();
    let check = check.map(|check| format!("\nThis command fails because of it: {check}"));
    let locations: Vec<Value> = finding
        .file
        .iter()
        .map(|file| sarif_location(file, finding.line))
        .collect();
    json!({
        "ruleId": finding.category,
        "level": level,
        "message": {"text": format!("{}{}", finding.claim, check.unwrap_or_default())},
        "locations": locations,
        "partialFingerprints": {"claim/v1": fingerprint(finding)},
        "properties": {
            "severity": finding.severity,
            "status": finding.status,
            "reviewers": finding.reviewers,
        },
    })
}

fn sarif_location(file: &str, line: Option<u64>) -> Value {
    let mut place = json!({"artifactLocation": {"uri": percent_encoded(file), "uriBaseId": "%SRCROOT%"}});
    if let Some(line) = line {
        place["region"] = json!({"startLine": line});
    }
    json!({"physicalLocation": place})
}

/// A relative path as a URI reference.
fn percent_encoded(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let encode = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    path.bytes().map(encode).collect()
}

/// The same finding has the same fingerprint in a later review, on whatever line it is.
fn fingerprint(finding: &Finding) -> String {
    use sha2::{Digest, Sha256};

    let words = finding.claim.to_lowercase();
    let words: Vec<&str> = words
        .split(|c: char| !c.is_alphabetic())
        .filter(|word| !word.is_empty())
        .collect();
    let text = format!("{:?} {} {}", finding.file, finding.category, words.join(" "));
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
