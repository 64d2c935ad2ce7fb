//! The output of `cargo test` and of the Rust compiler.

use super::text::{between, location};
use crate::event::{TestFailure, TestReport};

pub(super) fn parse(lines: &[&str]) -> Option<TestReport> {
    let mut report = TestReport::default();
    let mut recognized = false;
    for (index, line) in lines.iter().enumerate() {
        let rest = &lines[index + 1..];
        if let Some(result) = line.strip_prefix("test result: ") {
            recognized = true;
            add_counts(result, &mut report);
        } else if let Some(name) = line
            .strip_prefix("---- ")
            .and_then(|line| line.strip_suffix(" stdout ----"))
        {
            report.failures.push(failed_test(name, rest));
        } else if is_error(line)
            && let Some(place) = rest
                .first()
                .and_then(|next| next.trim_start().strip_prefix("--> "))
        {
            recognized = true;
            report.failures.push(compiler_error(line, place, rest));
        }
    }
    recognized.then_some(report)
}

/// `FAILED. 1 passed; 2 failed; 0 ignored; …`
fn add_counts(result: &str, report: &mut TestReport) {
    let counts = result.split_once(". ").map_or("", |(_, counts)| counts);
    for (number, word) in counts.split("; ").filter_map(super::text::number_and_word) {
        match word {
            "passed" => report.passed += number,
            "failed" => report.failed += number,
            "ignored" => report.skipped += number,
            _ => {}
        }
    }
}

fn failed_test(name: &str, rest: &[&str]) -> TestFailure {
    let is_end = |line: &&str| {
        *line == "failures:" || line.starts_with("test result: ") || line.ends_with(" stdout ----")
    };
    let block: Vec<&str> = rest.iter().copied().take_while(|line| !is_end(line)).collect();
    let panic = block.iter().position(|line| line.contains("panicked at "));
    let place = panic.and_then(|at| panic_location(block[at]));
    let message: Vec<&str> = match panic {
        Some(at) => {
            let is_message =
                |line: &&&str| !line.starts_with("stack backtrace:") && !line.starts_with("note: ");
            block[at + 1..].iter().take_while(is_message).copied().collect()
        }
        None => block,
    };
    let (file, line) = place.unzip();
    TestFailure {
        name: Some(name.to_owned()),
        file,
        line,
        message: message.join("\n").trim().to_owned(),
    }
}

/// `thread 'x' panicked at src/lib.rs:10:22:`, or `panicked at 'message', src/lib.rs:10:22` before Rust 1.73.
fn panic_location(line: &str) -> Option<(String, u64)> {
    let (_, after) = line.split_once("panicked at ")?;
    location(after.trim_end_matches(':')).or_else(|| location(after.rsplit_once("', ")?.1))
}

fn is_error(line: &str) -> bool {
    line.starts_with("error: ") || (line.starts_with("error[") && between(line, "[", "]: ").is_some())
}

fn compiler_error(title: &str, place: &str, rest: &[&str]) -> TestFailure {
    let (file, line) = location(place).unzip();
    let snippet = rest[1..].iter().take_while(|line| !line.trim().is_empty());
    let message: Vec<&str> = std::iter::once(title).chain(snippet.copied()).collect();
    TestFailure {
        name: None,
        file,
        line,
        message: message.join("\n"),
    }
}
