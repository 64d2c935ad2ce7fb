//! Finds failed tests and compiler errors in the output of a gate: cargo, pytest, jest, go test, TAP and JUnit XML. Pure.

mod cargo;
mod go;
mod jest;
mod junit;
mod pytest;
mod tap;
mod text;

#[cfg(test)]
mod tests;

use crate::event::{TestFailure, TestReport};

/// How many failures a report lists.
const MAX_FAILURES: usize = 20;
/// Maximum size of one failure's message, in bytes.
const MAX_MESSAGE: usize = 1200;

/// Parses the output of a gate. `None` if it contains no known format.
pub fn parse(output: &str) -> Option<TestReport> {
    let clean = text::without_escapes(output);
    let lines: Vec<&str> = clean.lines().collect();
    let formats = [
        junit::parse(&clean),
        cargo::parse(&lines),
        pytest::parse(&lines),
        jest::parse(&lines),
        go::parse(&lines),
        tap::parse(&lines),
    ];
    // A command such as `make test` may run several tools.
    let mut found = formats.into_iter().flatten();
    let first = found.next()?;
    Some(limited(found.fold(first, merge)))
}

fn merge(mut report: TestReport, other: TestReport) -> TestReport {
    report.passed += other.passed;
    report.failed += other.failed;
    report.skipped += other.skipped;
    report.failures.extend(other.failures);
    report
}

/// Removes duplicates and limits the size.
fn limited(mut report: TestReport) -> TestReport {
    let mut failures: Vec<TestFailure> = Vec::new();
    for mut failure in report.failures {
        failure.message = text::shortened(failure.message.trim_end(), MAX_MESSAGE);
        if failures.contains(&failure) {
            continue;
        }
        match failures.len() < MAX_FAILURES {
            true => failures.push(failure),
            false => report.more_failures += 1,
        }
    }
    report.failures = failures;
    report
}
