//! The output of `go test`, with and without `-v`.

use super::text::location;
use crate::event::{TestFailure, TestReport};

/// A test that was named in the output.
#[derive(Default)]
struct GoTest<'a> {
    name: &'a str,
    failed: bool,
    place: Option<(String, u64)>,
    messages: Vec<&'a str>,
}

pub(super) fn parse(lines: &[&str]) -> Option<TestReport> {
    let mut report = TestReport::default();
    let mut recognized = false;
    let mut tests: Vec<GoTest<'_>> = Vec::new();
    let mut current = None;
    for (index, line) in lines.iter().enumerate() {
        recognized |= is_package_result(line);
        if let Some(name) = line
            .strip_prefix("=== ")
            .and_then(|line| line.split_whitespace().nth(1))
        {
            current = Some(position_of(name, &mut tests));
        } else if let Some((result, name)) = result_line(line) {
            recognized = true;
            let test = position_of(name, &mut tests);
            match result {
                "PASS" => report.passed += 1,
                "SKIP" => report.skipped += 1,
                _ => {
                    report.failed += 1;
                    tests[test].failed = true;
                }
            }
            current = Some(test);
        } else if let Some(message) = line.strip_prefix("panic: ") {
            if let Some(test) = current.map(|test| &mut tests[test]) {
                test.messages.push(message);
                test.place = panic_location(&lines[index + 1..]);
            }
        } else if let Some((place, message)) = logged(line) {
            if line.starts_with(' ') {
                if let Some(test) = current.map(|test| &mut tests[test]) {
                    test.place.get_or_insert(place);
                    test.messages.push(message);
                }
            } else {
                report
                    .failures
                    .push(failure(None, Some(place), message.to_owned()));
            }
        }
    }
    let with_message = tests
        .iter()
        .filter(|test| test.failed && !test.messages.is_empty());
    report.failures.extend(with_message.map(|test| {
        let message = test.messages.join("\n");
        failure(Some(test.name.to_owned()), test.place.clone(), message)
    }));
    let has_child = |parent: &GoTest<'_>| {
        let prefix = format!("{}/", parent.name);
        tests
            .iter()
            .any(|test| test.failed && test.name.starts_with(&prefix))
    };
    let silent = tests
        .iter()
        .filter(|test| test.failed && test.messages.is_empty() && !has_child(test));
    let silent = silent.map(|test| failure(Some(test.name.to_owned()), None, String::new()));
    report.failures.extend(silent);
    recognized.then_some(report)
}

fn failure(name: Option<String>, place: Option<(String, u64)>, message: String) -> TestFailure {
    let (file, line) = place.unzip();
    TestFailure {
        name,
        file,
        line,
        message,
    }
}

/// `FAIL`, the package and the time, separated by tabs.
fn is_package_result(line: &str) -> bool {
    let mut parts = line.split('\t');
    matches!(parts.next(), Some("FAIL" | "ok  ")) && parts.next().is_some_and(|package| !package.is_empty())
}

/// `    --- FAIL: TestAdd/nested (0.00s)`
fn result_line(line: &str) -> Option<(&str, &str)> {
    let (result, rest) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
    let name = rest.rsplit_once(" (")?.0;
    ["PASS", "FAIL", "SKIP"]
        .contains(&result)
        .then_some((result, name))
}

fn position_of<'a>(name: &'a str, tests: &mut Vec<GoTest<'a>>) -> usize {
    tests
        .iter()
        .position(|test| test.name == name)
        .unwrap_or_else(|| {
            tests.push(GoTest {
                name,
                ..GoTest::default()
            });
            tests.len() - 1
        })
}

/// `    add_test.go:13: message`, or `add/add.go:3:37: message` of the compiler.
fn logged(line: &str) -> Option<((String, u64), &str)> {
    let line = line.trim_start();
    let (place, message) = line.split_once(": ")?;
    let place = location(place)?;
    place.0.ends_with(".go").then_some((place, message))
}

/// The first frame of a stack trace outside Go's own packages.
fn panic_location(trace: &[&str]) -> Option<(String, u64)> {
    let frames = trace
        .iter()
        .filter_map(|line| line.strip_prefix('\t')?.split(' ').next());
    frames
        .filter_map(location)
        .find(|(file, _)| !file.contains("/src/runtime/") && !file.contains("/src/testing/"))
}
