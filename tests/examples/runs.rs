//! Runs each example and checks what its README claims.

use std::fs;

use serde_json::Value;

use super::copy::{copy_example, directory, outcome, put_on_path, python, read_file, run_readme_command};
use crate::sandbox::{CommandOutput, Sandbox};

/// Runs the example's README command; asserts that it completes after exactly `iterations` iterations.
#[track_caller]
fn run_to_completion(name: &str, sandbox: &Sandbox, iterations: u64) -> CommandOutput {
    let output = run_readme_command(sandbox, name).exits_with(0);
    let last = outcome(sandbox, &format!("{iterations:04}"));
    assert_eq!(last["outcome"], "completed", "{output:?}");
    let next = sandbox
        .only_run()
        .join(format!("iterations/{:04}", iterations + 1));
    assert!(!next.exists(), "no more than {iterations}: {output:?}");
    output
}

/// Returns the names and states of all tool calls, in order.
fn tools(sandbox: &Sandbox) -> Vec<(String, String)> {
    let of_kind = |kind: &'static str| {
        let records = sandbox.records("transcript").into_iter();
        records.filter(move |record| record["event"]["type"] == kind)
    };
    let name = |id: &Value| {
        let mut starts = of_kind("tool_start");
        let start = starts.find(|record| &record["event"]["tool"]["id"] == id);
        start.expect("a start")["event"]["tool"]["name"].clone()
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ends = of_kind("tool_end").map(|record| {
        let tool = &record["event"]["tool"];
        (text(&name(&tool["id"])), text(&tool["status"]))
    });
    ends.collect()
}

#[test]
fn solo_does_one_item_per_iteration_and_completes_at_once_the_second_time() {
    let sandbox = copy_example("solo");
    run_to_completion("solo", &sandbox, 3);
    for iteration in ["0001", "0002"] {
        assert_eq!(outcome(&sandbox, iteration)["outcome"], "continued");
    }
    assert!(!read_file(&sandbox, "TODO.md").contains("[ ]"));
    assert_eq!(read_file(&sandbox, "greeting.txt"), "hello\n");
    assert_eq!(read_file(&sandbox, "answer.txt"), "42\n");
    assert_eq!(read_file(&sandbox, "farewell.txt"), "goodbye\n");

    let again = run_readme_command(&sandbox, "solo").exits_with(0);
    assert!(again.stdout.contains("iterations  1 of 10"), "{again:?}");
}

#[test]
fn a_failed_gate_adds_its_output_to_the_next_prompt() {
    let sandbox = copy_example("gates");
    run_to_completion("gates", &sandbox, 2);
    assert_eq!(outcome(&sandbox, "0001")["rejected_by"], "sum");
    let prompt = String::from_utf8(sandbox.iteration_file("0002", "prompt.md")).expect("a prompt");
    assert!(prompt.contains("sum of 1 2 3 4: expected 10, got 3"), "{prompt}");
    sandbox.ralph(&["gates", "run"]).exits_with(0);
    sandbox.git(&["checkout", "--quiet", "sum.sh"]);
    sandbox.ralph(&["gates", "run"]).exits_with(1);
}

#[test]
fn hats_activate_each_other_and_return_after_a_rejection() {
    let sandbox = copy_example("hats");
    run_to_completion("hats", &sandbox, 9);
    let started = sandbox.records("iteration_started");
    let activated: Vec<&str> = started
        .iter()
        .filter_map(|record| record["hat"].as_str())
        .collect();
    let expected = "planner builder reviewer builder reviewer planner builder reviewer planner";
    assert_eq!(activated.join(" "), expected);
    let poem = "Round and round the same small hill.\nEvery time a bit less ill.\n";
    assert_eq!(read_file(&sandbox, "poem.txt"), poem);
    sandbox.ralph(&["hats", "validate"]).exits_with(0);
}

#[test]
fn five_reviewers_reject_the_first_attempt_and_approve_the_second() {
    let sandbox = copy_example("review");
    let output = run_to_completion("review", &sandbox, 2);
    assert_eq!(sandbox.records("review_started").len(), 10);
    let shown = sandbox.ralph(&["show", "--json"]).exits_with(0).json();
    let findings = shown["findings"].as_array().expect("findings");
    let states: Vec<String> = findings
        .iter()
        .map(|finding| format!("{} {}", finding["category"], finding["status"]).replace('"', ""))
        .collect();
    assert_eq!(
        states,
        ["correctness resolved", "tests advice", "security resolved"],
        "{output:?}"
    );
    let review = sandbox.ralph(&["review", "--json"]).exits_with(0).json();
    assert_eq!(
        review["reviews"][0]["findings"][0]["category"], "tests",
        "{review}"
    );
}

#[test]
fn custom_agent_gets_its_prompt_on_stdin_and_answers_in_plain_text() {
    let sandbox = copy_example("custom-agent");
    let output = run_to_completion("custom-agent", &sandbox, 1);
    assert!(
        output
            .stdout
            .contains("You ask: Answer in one sentence: what does a loop do?"),
        "{output:?}"
    );
    assert_eq!(tools(&sandbox), [], "plain text has no tools");
}

#[test]
fn rtf1_bash_reports_its_tools_and_tokens() {
    let sandbox = copy_example("rtf1-bash");
    let output = run_to_completion("rtf1-bash", &sandbox, 1);
    let tool = |status: &str| ("shell".to_owned(), status.to_owned());
    assert_eq!(tools(&sandbox), [tool("fail"), tool("ok")]);
    assert_eq!(outcome(&sandbox, "0001")["usage"]["completion_tokens"], 40);
    assert!(output.stdout.contains("session bash-1"), "{output:?}");
    assert_eq!(read_file(&sandbox, "count.txt"), "1\n");
}

#[test]
fn rtf1_python_reports_its_tools_and_tokens() {
    let Some(python) = python() else {
        return crate::sandbox::skip::skip("python3 is not installed");
    };
    let sandbox = copy_example("rtf1-python");
    put_on_path(&sandbox, "python3", &python);
    let output = run_to_completion("rtf1-python", &sandbox, 1);
    let tool = |name: &str| (name.to_owned(), "ok".to_owned());
    assert_eq!(tools(&sandbox), [tool("read"), tool("write")]);
    assert_eq!(outcome(&sandbox, "0001")["usage"]["completion_tokens"], 40);
    assert!(output.stdout.contains("session python-1"), "{output:?}");
    assert_eq!(read_file(&sandbox, "count.txt"), "10\n");
}

#[test]
fn driver_builds_the_command_and_filters_the_output() {
    let sandbox = copy_example("driver");
    let output = run_to_completion("driver", &sandbox, 1);
    assert!(output.stdout.contains("wrote result.txt"), "{output:?}");
    assert!(
        !output.stdout.contains("kind"),
        "the filter leaves no JSON: {output:?}"
    );
    assert_eq!(read_file(&sandbox, "result.txt"), "done\n");
    sandbox.ralph(&["drivers", "check", "scribe"]).exits_with(0);
}

#[test]
fn provider_replaces_claude() {
    let sandbox = copy_example("provider");
    let output = run_to_completion("provider", &sandbox, 1);
    assert_eq!(outcome(&sandbox, "0001")["usage"]["completion_tokens"], 12);
    assert!(
        output.stdout.contains("$0.0020 of $1.00 (reported)"),
        "{output:?}"
    );
    assert_eq!(read_file(&sandbox, "motto.txt"), "Again, but better.\n");
}

#[test]
fn every_example_is_in_the_index() {
    let index = fs::read_to_string(directory().join("README.md")).expect("an index");
    let entries = fs::read_dir(directory()).expect("the examples");
    for entry in entries.map(|entry| entry.expect("an example")) {
        let name = entry.file_name().into_string().expect("a name");
        if entry.path().is_dir() {
            assert!(index.contains(&format!("[{name}]({name})")), "{name}");
        }
    }
}
