//! Output that ralph does not know is counted, reported at the end, and can be attached to a bug report.

use serde_json::json;

use crate::sandbox::{Sandbox, claude};

/// An agent that prints two unknown events of one type, one of another, and an unknown field.
fn newer_agent() -> Sandbox {
    let frame = claude::print_json(&json!({ "type": "hologram", "text": "a private text" }));
    let beam = claude::print_json(&json!({ "type": "system", "subtype": "beam", "session_id": "s-1" }));
    let result = json!({
        "type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "session_id": "s-1",
        "result": "Done.\nLOOP_COMPLETE", "hologram_id": 7,
    });
    let script = format!("{frame}{beam}{frame}{}", claude::print_json(&result));
    Sandbox::new()
        .with_agent("claude")
        .with_script("version", "say 2.1.400 (Claude Code)")
        .with_script("default", &script)
}

#[test]
fn unknown_output_of_a_newer_agent_is_reported_once() {
    let sandbox = newer_agent();
    let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let records = sandbox.records("unknown_output");
    assert_eq!(records.len(), 1);
    assert_eq!(
        (&records[0]["version"], &records[0]["newer_than"]),
        (&json!("2.1.400"), &json!("2.1.327"))
    );
    assert_eq!(
        records[0]["event_types"],
        json!({ "hologram": 2, "system/beam": 1 })
    );
    assert_eq!(records[0]["fields"], json!({ "result/success.hologram_id": 1 }));
    let text = output
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace(" │ ", " ");
    let expected = "claude 2.1.400 is newer than tested (2.1.327); 2 unknown event types (hologram, system/beam), 1 unknown field";
    assert_eq!(text.matches(expected).count(), 1, "{}", output.stdout);
    // The journal has the first occurrence only.
    let first = sandbox
        .records("transcript")
        .into_iter()
        .filter(|record| record["event"]["meta"]["name"] == "hologram");
    assert_eq!(first.count(), 1);
}

#[test]
fn known_output_is_not_reported() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("version", "say 2.1.400 (Claude Code)")
        .with_script("default", &claude::session("LOOP_COMPLETE"));
    let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    assert!(!output.stdout.contains("newer than tested"), "{output:?}");
}

#[test]
fn the_report_contains_no_texts() {
    let sandbox = newer_agent();
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    let output = sandbox
        .ralph(&["agents", "report", "-o", "report.txt"])
        .exits_with(0);
    assert!(output.stdout.contains("report.txt"), "{output:?}");
    let report = std::fs::read_to_string(sandbox.work().join("report.txt")).expect("a report");
    for line in [
        "# agent: claude",
        "# transcript: claude",
        "# unknown: hologram",
        "# unknown: system/beam",
    ] {
        assert!(report.lines().any(|found| found == line), "{line}\n{report}");
    }
    assert!(
        report.contains("\"type\":\"hologram\"") && report.contains("\"hologram_id\":7"),
        "{report}"
    );
    assert!(
        !report.contains("private") && !report.contains("LOOP_COMPLETE"),
        "{report}"
    );
    // An existing file is not overwritten.
    for refused in [
        &["agents", "report", "-o", "report.txt"],
        &["agents", "report", "--iteration", "9"],
    ] {
        assert_ne!(sandbox.ralph(refused).exit(), 0, "{refused:?}");
    }
}
