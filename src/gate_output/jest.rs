//! The output of Jest.

use super::text::{dedented, location, number_and_word};
use crate::event::{TestFailure, TestReport};

pub(super) fn parse(lines: &[&str]) -> Option<TestReport> {
    let mut report = TestReport::default();
    let mut recognized = false;
    let mut suite = None;
    for (index, line) in lines.iter().enumerate() {
        if let Some(file) = line.strip_prefix("FAIL ") {
            suite = file.split_whitespace().next();
        } else if let Some(name) = line.strip_prefix("  ● ") {
            report
                .failures
                .push(failed_test(name, suite, &lines[index + 1..]));
        } else if let Some(counts) = line.strip_prefix("Tests:") {
            recognized |= add_counts(counts, &mut report);
        }
    }
    recognized.then_some(report)
}

/// `2 failed, 1 skipped, 1 passed, 4 total`
fn add_counts(counts: &str, report: &mut TestReport) -> bool {
    let mut recognized = false;
    for (number, word) in counts.split(", ").filter_map(number_and_word) {
        match word {
            "passed" => report.passed += number,
            "failed" => report.failed += number,
            "skipped" | "todo" => report.skipped += number,
            "total" => recognized = true,
            _ => {}
        }
    }
    recognized
}

fn failed_test(name: &str, suite: Option<&str>, rest: &[&str]) -> TestFailure {
    let is_end = |line: &&str| !line.is_empty() && !line.starts_with("    ");
    let block: Vec<&str> = rest.iter().copied().take_while(|line| !is_end(line)).collect();
    let is_frame = |line: &str| line.trim_start().starts_with("at ");
    let message = block
        .iter()
        .copied()
        .take_while(|line| !is_code(line) && !is_frame(line));
    let frames = block
        .iter()
        .filter(|line| is_frame(line) && !line.contains("node_modules/"));
    let place = frames.filter_map(|frame| {
        let place = frame.trim().trim_end_matches(')');
        location(place.rsplit(['(', ' ']).next()?)
    });
    let (file, line) = place.clone().next().unzip();
    TestFailure {
        name: Some(name.trim().to_owned()),
        file: file.or_else(|| Some(suite?.to_owned())),
        line,
        message: dedented(message),
    }
}

/// A line of the excerpt of the source: `> 5 |   expect(…)`.
fn is_code(line: &str) -> bool {
    let number = line.trim_start().trim_start_matches('>').trim_start();
    let (number, rest) = number.split_at(number.find(|c: char| !c.is_ascii_digit()).unwrap_or(0));
    !number.is_empty() && rest.trim_start().starts_with('|')
}
