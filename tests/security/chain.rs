//! Attacks on the journal and the settings of a run: `--continue` refuses them, and `ralph verify` names the record.

use std::fs;
use std::io::Write;

use serde_json::Value;

use crate::sandbox::Sandbox;

const FORGED_END: &str = r#"{"seq":999,"at":"2026-11-15T20:45:03Z","type":"run_ended","outcome":"complete","marker":"M","iterations":2,"duration_ms":2000,"usage":{}}"#;

/// A run of three iterations that ended at its limit, with a cost of $0.25 each.
fn ended_run() -> Sandbox {
    let usage = r#"say @@RALPH@@ {"type":"usage","usage":{"prompt_tokens":100,"completion_tokens":10,"cost_usd":0.25}}"#;
    let config = "event_loop: {prompt: x, max_iterations: 3, max_no_progress: 0}\n";
    let sandbox = Sandbox::scripted(&format!("say working\n{usage}\n"), config);
    sandbox.ralph(&["run", "-q"]).exits_with(3);
    sandbox
}

fn change_journal(sandbox: &Sandbox, change: impl Fn(&mut Vec<String>)) {
    let path = sandbox.newest_run().join("events.jsonl");
    let text = fs::read_to_string(&path).expect("a journal");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(&path, lines.join("\n") + "\n").expect("a journal");
}

fn line_of(lines: &[String], kind: &str) -> usize {
    let kind = format!("\"type\":\"{kind}\"");
    lines
        .iter()
        .position(|line| line.contains(&kind))
        .expect("a record")
}

#[test]
fn a_changed_record_is_named_and_the_run_is_not_resumed() {
    let sandbox = ended_run();
    let output = sandbox.ralph(&["verify"]).exits_with(0);
    assert!(output.stdout.contains("is what ralph wrote"), "{output:?}");
    change_journal(&sandbox, |lines| {
        let ended = line_of(lines, "iteration_ended");
        lines[ended] = lines[ended].replace("0.25", "0.01");
    });
    let seq = sandbox.records("iteration_ended")[0]["seq"].to_string();
    for arguments in [&["verify"][..], &["run", "--continue", "-n", "9"]] {
        let output = sandbox.ralph(arguments).exits_with(1);
        let text = output.stdout.clone() + &output.stderr;
        assert!(text.contains(&format!("record {seq} ")), "{output:?}");
        assert!(text.contains("was changed"), "{output:?}");
    }
    assert!(!sandbox.was_called(4), "no agent starts");
}

#[test]
fn a_forged_end_is_not_a_completed_run() {
    let sandbox = ended_run();
    change_journal(&sandbox, |lines| lines.push(FORGED_END.into()));
    let output = sandbox.ralph(&["run", "--continue", "-n", "9"]).exits_with(1);
    assert!(output.stderr.contains("record 999"), "{output:?}");
    assert!(output.stderr.contains("not written by ralph"), "{output:?}");
}

#[test]
fn a_record_that_the_agent_appends_ends_the_run_with_an_error() {
    let sandbox = Sandbox::new();
    let script = format!(
        "for journal in '{}'/projects/*/runs/*/events.jsonl; do printf '%s\\n' '{FORGED_END}' >> \"$journal\"; done\n\
         echo LOOP_COMPLETE\n",
        sandbox.path("state").display()
    );
    let agent = sandbox.path("agent.sh");
    fs::write(&agent, script).expect("a script");
    let config = format!(
        "cli: {{backend: custom, command: sh, args: [{}], prompt_mode: stdin, transcript: plain}}\n\
         event_loop: {{prompt: x, max_iterations: 2}}\n",
        agent.display()
    );
    fs::write(sandbox.work().join("ralph.yml"), config).expect("a configuration");
    let output = sandbox.ralph(&["run", "-q"]).exits_with(1);
    assert!(output.stderr.contains("another program changed it"), "{output:?}");
    let output = sandbox.ralph(&["verify"]).exits_with(1);
    assert!(output.stdout.contains("record 999"), "{output:?}");
}

#[test]
fn a_changed_run_json_is_not_used() {
    let sandbox = ended_run();
    let path = sandbox.newest_run().join("run.json");
    let text = fs::read_to_string(&path).expect("run.json");
    let mut saved: Value = serde_json::from_str(&text).expect("JSON");
    saved["flags"]["cli"]["command"] = "touch".into();
    saved["flags"]["cli"]["args"] = vec!["PWNED"].into();
    fs::write(&path, saved.to_string()).expect("run.json");
    let output = sandbox.ralph(&["run", "--continue", "-n", "9"]).exits_with(1);
    assert!(output.stderr.contains("run.json"), "{output:?}");
    assert!(!sandbox.work().join("PWNED").exists());
    fs::write(&path, text).expect("run.json");
    sandbox
        .ralph(&["run", "-q", "--continue", "-n", "4", "--yes"])
        .exits_with(3);
    sandbox
        .ralph(&["run", "-q", "--continue", "-n", "5", "--yes"])
        .exits_with(3);
    sandbox.ralph(&["verify"]).exits_with(0);
}

#[test]
fn a_journal_damaged_in_the_middle_loses_no_iteration_and_no_cost() {
    let sandbox = ended_run();
    change_journal(&sandbox, |lines| {
        let ended = line_of(lines, "iteration_ended");
        let started = line_of(lines, "agent_started");
        for line in &mut lines[started..=ended] {
            *line = "\u{0}garbage".into();
        }
    });
    sandbox
        .ralph(&["run", "-q", "--continue", "-n", "9"])
        .exits_with(1);
    let arguments = ["run", "--continue", "-n", "4", "--yes", "--accept-damage"];
    let output = sandbox.ralph(&arguments).exits_with(3);
    assert!(
        output.stderr.contains("lost the end of iteration 1"),
        "{output:?}"
    );
    let text = fs::read_to_string(sandbox.newest_run().join("events.jsonl")).expect("a journal");
    let records: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let last = |kind: &str| {
        records
            .iter()
            .rfind(|record| record["type"] == kind)
            .expect("a record")
    };
    assert_eq!(last("run_ended")["iterations"], 4);
    assert_eq!(last("run_ended")["usage"]["cost_usd"], 1.0);
    let changed = last("run_resumed")["changed"].to_string();
    assert!(changed.contains("iteration 1"), "{changed}");
}

#[test]
fn a_journal_of_an_earlier_version_can_be_resumed() {
    let sandbox = ended_run();
    change_journal(&sandbox, |lines| {
        for line in lines {
            let start = line.find(",\"chain\"").expect("a link");
            line.replace_range(start.., "}");
        }
    });
    let output = sandbox
        .ralph(&["run", "--continue", "-n", "4", "--yes"])
        .exits_with(3);
    assert!(output.stderr.contains("earlier ralph"), "{output:?}");
    let output = sandbox.ralph(&["verify", "--json"]).exits_with(0);
    let verification: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(verification["verified"], true);
}

#[test]
fn the_head_identifies_a_journal_that_was_replaced_or_cut() {
    let sandbox = ended_run();
    let head = |sandbox: &Sandbox| -> String {
        let output = sandbox.ralph(&["verify", "--json"]).exits_with(0);
        let verification: Value = serde_json::from_str(&output.stdout).expect("JSON");
        verification["head"].as_str().expect("a hash").to_owned()
    };
    let before = head(&sandbox);
    sandbox
        .ralph(&["run", "-q", "--continue", "-n", "4", "--yes"])
        .exits_with(3);
    let after = head(&sandbox);
    assert_ne!(before, after);
    sandbox.ralph(&["verify", "--head", &before]).exits_with(0);
    sandbox
        .ralph(&["verify", "--head", &format!("sha256:{after}")])
        .exits_with(0);
    change_journal(&sandbox, |lines| drop(lines.pop()));
    let output = sandbox.ralph(&["verify", "--head", &after]).exits_with(1);
    assert!(output.stdout.contains("replaced or cut"), "{output:?}");
    let mut journal = fs::File::options()
        .append(true)
        .open(sandbox.newest_run().join("events.jsonl"))
        .expect("a journal");
    journal.write_all(b"{\"seq\":50").expect("an incomplete line");
    sandbox.ralph(&["verify"]).exits_with(0);
}
