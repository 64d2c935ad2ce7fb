//! The output of pytest, in its long, short and quiet forms.

use super::text::{between, location, number_and_word};
use crate::event::{TestFailure, TestReport};

pub(super) fn parse(lines: &[&str]) -> Option<TestReport> {
    let mut report = TestReport::default();
    let mut recognized = false;
    for (index, line) in lines.iter().enumerate() {
        let rest = &lines[index + 1..];
        if let Some(name) = section_title(line) {
            report.failures.push(section(name, rest));
        } else if let Some(counts) = summary(line) {
            recognized = true;
            add_counts(counts, &mut report);
        } else if let Some(failure) = summary_failure(line) {
            // With `--tb=no` and `--tb=line`, the failure has no section.
            if !report.failures.iter().any(|known| is_same(known, &failure)) {
                report.failures.push(failure);
            }
        }
    }
    recognized.then_some(report)
}

/// `____ test_name ____`
fn section_title(line: &str) -> Option<&str> {
    let inner = line.strip_prefix("__")?.strip_suffix("__")?;
    let name = inner.trim_matches('_').trim();
    let is_title = inner.contains("_ ") && inner.contains(" _") && !name.is_empty();
    (is_title && name.contains(char::is_alphanumeric)).then_some(name)
}

/// The counts of `==== 2 failed, 1 passed in 0.05s ====`; with `-q`, the line has no equals signs.
fn summary(line: &str) -> Option<&str> {
    let (counts, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    let is_time = time.starts_with(|first: char| first.is_ascii_digit()) && time.contains('s');
    let is_counts = counts == "no tests ran"
        || counts.split(", ").all(|part| {
            number_and_word(part).is_some_and(|(_, word)| {
                let words = [
                    "passed", "failed", "skipped", "error", "errors", "xfailed", "xpassed",
                ];
                let more = ["deselected", "warning", "warnings", "rerun"];
                words.contains(&word) || more.contains(&word)
            })
        });
    (is_time && is_counts).then_some(counts)
}

fn add_counts(counts: &str, report: &mut TestReport) {
    for (number, word) in counts.split(", ").filter_map(number_and_word) {
        match word {
            "passed" | "xpassed" => report.passed += number,
            "failed" | "error" | "errors" => report.failed += number,
            "skipped" | "xfailed" => report.skipped += number,
            _ => {}
        }
    }
}

fn section(name: &str, rest: &[&str]) -> TestFailure {
    let is_end = |line: &&str| section_title(line).is_some() || line.starts_with("=====");
    let block: Vec<&str> = rest.iter().copied().take_while(|line| !is_end(line)).collect();
    let errors = block
        .iter()
        .filter_map(|line| line.strip_prefix('E').filter(|error| error.starts_with("   ")));
    let syntax_error = errors.clone().find_map(|error| {
        let file = between(error, "File \"", "\", line ")?;
        Some((file.to_owned(), error.rsplit(' ').next()?.parse().ok()?))
    });
    // The last location is where the error occurred.
    let last = || {
        let places = block.iter().filter(|line| !line.starts_with(' '));
        places.filter_map(|line| location(line)).next_back()
    };
    let (file, line) = syntax_error.or_else(last).unzip();
    let name = match name.strip_prefix("ERROR ") {
        Some(error) => error.trim_start_matches("at ").to_owned(),
        None => name.to_owned(),
    };
    TestFailure {
        name: Some(name),
        file,
        line,
        message: super::text::dedented(errors),
    }
}

/// `FAILED test_calc.py::test_name - message`
fn summary_failure(line: &str) -> Option<TestFailure> {
    let rest = line
        .strip_prefix("FAILED ")
        .or_else(|| line.strip_prefix("ERROR "))?;
    let (id, message) = rest.split_once(" - ").unwrap_or((rest, ""));
    let (file, name) = match id.split_once("::") {
        Some((file, name)) => (file, name),
        None => (id, id),
    };
    file.ends_with(".py").then(|| TestFailure {
        name: Some(name.replace("::", ".")),
        file: Some(file.to_owned()),
        line: None,
        message: message.to_owned(),
    })
}

/// The names of sections do not contain the file.
fn is_same(section: &TestFailure, summary: &TestFailure) -> bool {
    let (Some(section), Some(summary)) = (&section.name, &summary.name) else {
        return false;
    };
    section == summary
        || section.ends_with(&format!(" {summary}"))
        || section.ends_with(&format!(" of {summary}"))
}
