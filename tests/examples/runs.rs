//! What each example claims to show.

use std::fs;
use std::io::Write;

use serde_json::Value;

use super::copied::{copied, directory, outcome, put_on_path, python, typed, written};
use crate::sandbox::{Sandbox, Told};

/// The example, run to its end by the command of its README; it must end well after so many iterations.
#[track_caller]
fn played(name: &str, sandbox: &Sandbox, iterations: u64) -> Told {
    let told = typed(sandbox, name).exits_with(0);
    let last = outcome(sandbox, &format!("{iterations:04}"));
    assert_eq!(last["outcome"], "completed", "{told:?}");
    let next = sandbox
        .only_run()
        .join(format!("iterations/{:04}", iterations + 1));
    assert!(!next.exists(), "no more than {iterations}: {told:?}");
    told
}

/// The names and states of all tools, in their order.
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
fn solo_does_one_item_at_a_time_and_has_nothing_left_to_do_the_second_time() {
    let sandbox = copied("solo");
    played("solo", &sandbox, 3);
    for iteration in ["0001", "0002"] {
        assert_eq!(outcome(&sandbox, iteration)["outcome"], "continued");
    }
    assert!(!written(&sandbox, "TODO.md").contains("[ ]"));
    assert_eq!(written(&sandbox, "greeting.txt"), "hello\n");
    assert_eq!(written(&sandbox, "answer.txt"), "42\n");
    assert_eq!(written(&sandbox, "farewell.txt"), "goodbye\n");

    let again = typed(&sandbox, "solo").exits_with(0);
    assert!(again.stdout.contains("iterations  1 of 10"), "{again:?}");
}

#[test]
fn gates_send_a_hasty_agent_back_with_what_they_printed() {
    let sandbox = copied("gates");
    played("gates", &sandbox, 2);
    assert_eq!(outcome(&sandbox, "0001")["rejected_by"], "sum");
    let prompt = String::from_utf8(sandbox.iteration_file("0002", "prompt.md")).expect("a prompt");
    assert!(prompt.contains("sum of 1 2 3 4: expected 10, got 3"), "{prompt}");
    sandbox.ralph(&["gates", "run"]).exits_with(0);
    sandbox.git(&["checkout", "--quiet", "sum.sh"]);
    sandbox.ralph(&["gates", "run"]).exits_with(1);
}

#[test]
fn hats_hand_the_work_to_each_other_and_back_after_a_rejection() {
    let sandbox = copied("hats");
    played("hats", &sandbox, 9);
    let started = sandbox.records("iteration_started");
    let worn: Vec<&str> = started
        .iter()
        .filter_map(|record| record["hat"].as_str())
        .collect();
    let expected = "planner builder reviewer builder reviewer planner builder reviewer planner";
    assert_eq!(worn.join(" "), expected);
    let poem = "Round and round the same small hill.\nEvery time a bit less ill.\n";
    assert_eq!(written(&sandbox, "poem.txt"), poem);
    sandbox.ralph(&["hats", "validate"]).exits_with(0);
}

#[test]
fn custom_agent_gets_its_prompt_on_stdin_and_answers_in_plain_text() {
    let sandbox = copied("custom-agent");
    let told = played("custom-agent", &sandbox, 1);
    assert!(
        told.stdout
            .contains("You ask: Answer in one sentence: what does a loop do?"),
        "{told:?}"
    );
    assert_eq!(tools(&sandbox), [], "nothing is guessed");
}

#[test]
fn rtf1_bash_tells_its_tools_and_tokens() {
    let sandbox = copied("rtf1-bash");
    let told = played("rtf1-bash", &sandbox, 1);
    let tool = |status: &str| ("shell".to_owned(), status.to_owned());
    assert_eq!(tools(&sandbox), [tool("fail"), tool("ok")]);
    assert_eq!(outcome(&sandbox, "0001")["usage"]["completion_tokens"], 40);
    assert!(told.stdout.contains("session bash-1"), "{told:?}");
    assert_eq!(written(&sandbox, "count.txt"), "1\n");
}

#[test]
fn rtf1_python_tells_its_tools_and_tokens() {
    let Some(python) = python() else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no python3 here");
        return;
    };
    let sandbox = copied("rtf1-python");
    put_on_path(&sandbox, "python3", &python);
    let told = played("rtf1-python", &sandbox, 1);
    let tool = |name: &str| (name.to_owned(), "ok".to_owned());
    assert_eq!(tools(&sandbox), [tool("read"), tool("write")]);
    assert_eq!(outcome(&sandbox, "0001")["usage"]["completion_tokens"], 40);
    assert!(told.stdout.contains("session python-1"), "{told:?}");
    assert_eq!(written(&sandbox, "count.txt"), "10\n");
}

#[test]
fn driver_is_called_by_its_script_and_read_through_its_filter() {
    let sandbox = copied("driver");
    let told = played("driver", &sandbox, 1);
    assert!(told.stdout.contains("wrote result.txt"), "{told:?}");
    assert!(
        !told.stdout.contains("kind"),
        "the filter leaves no JSON: {told:?}"
    );
    assert_eq!(written(&sandbox, "result.txt"), "done\n");
    sandbox.ralph(&["drivers", "check", "scribe"]).exits_with(0);
}

#[test]
fn provider_stands_in_the_place_of_claude() {
    let sandbox = copied("provider");
    let told = played("provider", &sandbox, 1);
    assert_eq!(outcome(&sandbox, "0001")["usage"]["completion_tokens"], 12);
    assert!(told.stdout.contains("$0.0020 reported, of $1.00"), "{told:?}");
    assert_eq!(written(&sandbox, "motto.txt"), "Again, but better.\n");
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
