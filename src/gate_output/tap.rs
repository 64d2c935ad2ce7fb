//! The Test Anything Protocol, and the summary of `prove`.

use super::text::{between, dedented, location};
use crate::event::{TestFailure, TestReport};

pub(super) fn parse(lines: &[&str]) -> Option<TestReport> {
    let has_plan = lines.iter().any(|line| {
        let count = line
            .strip_prefix("1..")
            .map(|count| count.split(' ').next().unwrap_or_default());
        count.is_some_and(|count| count.parse::<u64>().is_ok())
    });
    let summary = lines.iter().find_map(|line| prove_summary(line));
    if !has_plan && summary.is_none() {
        return None;
    }
    let mut report = TestReport::default();
    for (index, line) in lines.iter().enumerate() {
        let rest = &lines[index + 1..];
        if let Some(name) = line.trim_start().strip_prefix("#   Failed test ") {
            // `Test::More` prints the details to stderr, before or after the result.
            let name = name.trim_matches('\'').to_owned();
            add(perl_failure(name, rest), &mut report);
        } else if let Some(result) = line.strip_prefix("not ok") {
            match directive(result) {
                Some(_) => report.skipped += 1,
                None => {
                    report.failed += 1;
                    add(failed_test(description(result), rest), &mut report);
                }
            }
        } else if let Some(result) = line
            .strip_prefix("ok")
            .filter(|rest| rest.starts_with([' ', '\0']))
        {
            match directive(result).is_some_and(|directive| directive.starts_with("skip")) {
                true => report.skipped += 1,
                false => report.passed += 1,
            }
        }
    }
    if let (Some(tests), false) = (summary, has_plan) {
        report.failed = lines.iter().filter_map(|line| prove_failed(line)).sum();
        report.passed = tests.saturating_sub(report.failed);
    }
    Some(report)
}

/// Two reports of the same test are merged; the first one with a location is kept.
fn add(failure: TestFailure, report: &mut TestReport) {
    let known = report
        .failures
        .iter_mut()
        .find(|known| known.name == failure.name);
    match known {
        Some(known) if known.file.is_none() => *known = failure,
        Some(_) => {}
        None => report.failures.push(failure),
    }
}

/// ` 2 - subtracts # TODO later` → `subtracts`
fn description(result: &str) -> String {
    let numbered = result
        .trim_start()
        .trim_start_matches(|c: char| c.is_ascii_digit());
    numbered.trim_start_matches([' ', '-']).trim_end().to_owned()
}

fn directive(result: &str) -> Option<String> {
    let (_, directive) = result.split_once("# ")?;
    let directive = directive.to_lowercase();
    (directive.starts_with("skip") || directive.starts_with("todo")).then_some(directive)
}

fn perl_failure(name: String, rest: &[&str]) -> TestFailure {
    let details = rest
        .iter()
        .copied()
        .map_while(|line| line.trim_start().strip_prefix('#'));
    let place = details.clone().next().and_then(|line| {
        let (file, line) = line.trim().strip_prefix("at ")?.rsplit_once(" line ")?;
        Some((file.to_owned(), line.trim_end_matches('.').parse().ok()?))
    });
    let (file, line) = place.unzip();
    let message = details
        .skip(1)
        .take_while(|line| !line.contains("Looks like") && !line.contains("Failed test"));
    TestFailure {
        name: Some(name),
        file,
        line,
        message: dedented(message),
    }
}

/// The details after `not ok`: a YAML block, or comments as `bats` writes them.
fn failed_test(name: String, rest: &[&str]) -> TestFailure {
    let is_detail = |line: &&&str| line.starts_with([' ', '#']) && !line.starts_with("# Subtest");
    let block: Vec<&str> = rest.iter().take_while(is_detail).copied().collect();
    let yaml = block.iter().find_map(|line| {
        let place = line.trim_start().strip_prefix("location: ")?;
        location(place.trim_matches(['\'', '"']))
    });
    let comment = block.iter().find_map(|line| {
        let file = between(line, "in test file ", ", line ")?;
        let line = line.rsplit_once(", line ")?.1.trim_end_matches([')', ':']);
        Some((file.to_owned(), line.parse().ok()?))
    });
    let (file, line) = yaml.or(comment).unzip();
    TestFailure {
        name: Some(name),
        file,
        line,
        message: yaml_error(&block).unwrap_or_else(|| {
            let comments = block.iter().filter_map(|line| line.strip_prefix('#'));
            dedented(comments)
        }),
    }
}

/// The value of `error:` in a YAML block, on the same line or as an indented block.
fn yaml_error(block: &[&str]) -> Option<String> {
    let at = block
        .iter()
        .position(|line| line.trim_start().starts_with("error: "))?;
    let value = block[at].trim_start().strip_prefix("error: ")?;
    if !value.starts_with(['|', '>']) {
        return Some(value.trim_matches(['\'', '"']).to_owned());
    }
    let indent = block[at].len() - block[at].trim_start().len();
    let is_inside = |line: &&str| line.trim().is_empty() || line.len() - line.trim_start().len() > indent;
    Some(dedented(block[at + 1..].iter().copied().take_while(is_inside)))
}

/// The number of tests in `Files=1, Tests=3, …`.
fn prove_summary(line: &str) -> Option<u64> {
    between(line.strip_prefix("Files=")?, ", Tests=", ",")?
        .parse()
        .ok()
}

/// `t/calc.t (Wstat: 256 (exited 1) Tests: 3 Failed: 1)`
fn prove_failed(line: &str) -> Option<u64> {
    between(line, "(Wstat: ", ")")?;
    line.rsplit_once(" Failed: ")?
        .1
        .trim_end_matches(')')
        .parse()
        .ok()
}
