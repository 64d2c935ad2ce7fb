//! Complete runs: markers, gates, limits, journal and raw output.

use std::fs;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, claude, split_arguments};

fn outcomes(sandbox: &Sandbox) -> Vec<Value> {
    sandbox
        .records("iteration_ended")
        .iter()
        .map(|record| record["outcome"].clone())
        .collect()
}

/// Returns a session with every form of marker that must not complete a run.
fn invalid_markers() -> String {
    [
        claude::init(),
        claude::message("m1", "LOOP_COMPLETE"),
        claude::tool("m1", "t1", "cat PROMPT.md"),
        claude::tool_result("t1", "LOOP_COMPLETE"),
        claude::print_json(&json!({ "type": "user", "message": { "role": "user", "content": "LOOP_COMPLETE" } })),
        claude::message(
            "m2",
            "I will say LOOP_COMPLETE when done.\n```\nLOOP_COMPLETE\n```\n<event topic=\"t\">\nLOOP_COMPLETE\n</event>",
        ),
        claude::print_json(&json!({
            "type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "session_id": "s-1",
            "result": "I will say LOOP_COMPLETE when done.\n```\nLOOP_COMPLETE\n```",
        })),
    ]
    .concat()
}

#[test]
fn three_iterations_follow_the_marker_rules_and_are_stored() {
    let deltas = [
        claude::init(),
        claude::delta("All done.\\nLOOP_"),
        claude::delta("COMPLETE"),
        claude::result(""),
    ];
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("1", &invalid_markers())
        .with_script("2", &claude::session("Halfway."))
        .with_script("3", &deltas.concat().replace("\\\\\\\\n", "\\\\n"));
    let output = sandbox.ralph(&["run", "-p", "do it"]).exits_with(0);
    assert!(
        output.stdout.contains("LOOP_COMPLETE ignored: it "),
        "{}",
        output.stdout
    );
    assert_eq!(outcomes(&sandbox), ["continued", "continued", "completed"]);

    let journal = sandbox.journal();
    let numbers: Vec<u64> = journal
        .iter()
        .filter_map(|record| record["seq"].as_u64())
        .collect();
    assert_eq!(numbers, (1..=journal.len() as u64).collect::<Vec<_>>());
    assert_eq!(journal[0]["type"], "run_started");
    assert_eq!(
        journal.last().map(|record| record["type"].clone()),
        Some(json!("run_ended"))
    );

    let started = &sandbox.records("agent_started")[0];
    let identity = json!({ "kind": "process", "pid": started["pid"] });
    assert_eq!(started["identity"], identity);

    let raw = String::from_utf8(sandbox.iteration_file("0001", "stdout.raw")).expect("text");
    assert_eq!(raw.lines().count(), 7);
    assert!(
        raw.lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok()),
        "no CRLF, nothing cut: {raw}"
    );
    let stderr = sandbox.newest_run().join("iterations/0002/stderr.raw");
    assert!(!stderr.exists(), "the agent wrote nothing to stderr");
    let outcome: Value =
        serde_json::from_slice(&sandbox.iteration_file("0003", "outcome.json")).expect("JSON");
    assert_eq!(outcome["outcome"], "completed");
    let prompt = String::from_utf8(sandbox.iteration_file("0002", "prompt.md")).expect("text");
    assert!(
        prompt.starts_with("do it\n\nYour last answer contained LOOP_COMPLETE, but"),
        "{prompt}"
    );
    assert_eq!(
        split_arguments(&sandbox.recorded("2.argv")).last(),
        Some(&prompt.as_str())
    );
    assert!(
        fs::read_to_string(sandbox.newest_run().join("summary.md"))
            .expect("a summary")
            .contains("Done, but unverified")
    );
}

#[test]
fn the_output_of_a_failed_gate_is_in_the_next_prompt_and_a_passed_gate_completes() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file(
            "ralph.yml",
            "gates:\n  - name: there\n    run: echo looking; test -f done.txt\n",
        )
        .with_script("1", &claude::session("LOOP_COMPLETE"))
        .with_script(
            "2",
            &format!("write done.txt yes\n{}", claude::session("LOOP_COMPLETE")),
        );
    let output = sandbox.ralph(&["-p", "make done.txt"]).exits_with(0);
    assert!(
        output.stdout.contains("✗ there") && output.stdout.contains("✓ there"),
        "{}",
        output.stdout
    );
    let prompt = String::from_utf8(sandbox.iteration_file("0002", "prompt.md")).expect("text");
    assert!(
        prompt.contains("exit code 1") && prompt.contains("looking"),
        "{prompt}"
    );
    assert_eq!(outcomes(&sandbox), ["continued", "completed"]);
}

#[test]
fn completing_in_the_last_allowed_iteration_is_success() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("1", &claude::session("more"))
        .with_script("default", &claude::session("LOOP_COMPLETE"));
    sandbox.ralph(&["run", "-p", "x", "-n", "2"]).exits_with(0);
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("more"));
    let output = sandbox.ralph(&["run", "-p", "x", "-n", "2"]).exits_with(3);
    assert!(
        output.stdout.contains("Stopped at the limit of 2 iterations."),
        "{}",
        output.stdout
    );
}

#[test]
fn the_runtime_limit_stops_an_agent_during_an_iteration() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &format!("{}hang\n", claude::init()));
    sandbox
        .ralph(&["run", "-p", "x", "--max-runtime", "1"])
        .exits_with(3);
    assert_eq!(outcomes(&sandbox), ["limit_reached"]);
}

#[test]
fn a_missing_result_an_error_result_and_no_output_are_failures() {
    let error = json!({ "type": "result", "subtype": "success", "is_error": true, "num_turns": 1,
        "result": "API Error: 500", "api_error_status": 500, "session_id": "s-1" });
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "event_loop:\n  max_consecutive_failures: 1\n");
    for (script, expected) in [
        (
            claude::init() + &claude::message("m", "LOOP_COMPLETE"),
            "no_terminal_event",
        ),
        (
            claude::session("LOOP_COMPLETE") + &claude::print_json(&error),
            "agent_error",
        ),
        ("exit 0\n".to_owned(), "no_output"),
        (claude::session("LOOP_COMPLETE") + "exit 7\n", "exit"),
    ] {
        let sandbox = fs::write(sandbox.path("agent").join("default.script"), &script).map(|()| &sandbox);
        let sandbox = sandbox.expect("a script");
        sandbox.ralph(&["run", "-p", "x"]).exits_with(1);
        let ended = sandbox.records("iteration_ended");
        assert_eq!(ended[0]["failure"]["why"], expected, "{ended:?}");
    }
}

#[test]
fn a_custom_agent_gets_its_prompt_environment_and_directory() {
    let sandbox = Sandbox::new()
        .with_agent("my-ai")
        .with_file("PROMPT.md", "the task\n")
        .with_script("default", "read-stdin\nsay working\nsay LOOP_COMPLETE\n");
    let config = "cli:\n  backend: custom\n  command: my-ai\n  args: [--headless]\n  prompt_mode: stdin\n";
    let sandbox = sandbox.with_file("ralph.yml", config);
    fs::create_dir(sandbox.work().join("src")).expect("a directory");
    let mut command = sandbox.command(&["run", "-P", "../PROMPT.md", "--", "--extra"]);
    command
        .current_dir(sandbox.work().join("src"))
        .env("CLAUDECODE", "1")
        .env("CLAUDE_CODE_ENTRYPOINT", "cli");
    crate::sandbox::Running::start(&mut command)
        .finish()
        .exits_with(0);

    assert!(sandbox.recorded("1.stdin").starts_with("the task\n"));
    assert_eq!(
        split_arguments(&sandbox.recorded("1.argv")),
        ["--headless", "--extra"]
    );
    assert!(
        sandbox.recorded("1.cwd").trim_end().ends_with("/work/src"),
        "the directory in which ralph was called, not that of the config"
    );
    let environment = sandbox.recorded("1.env");
    let variable = |name: &str| {
        split_arguments(&environment)
            .iter()
            .any(|set| set.starts_with(&format!("{name}=")))
    };
    assert!(
        !variable("CLAUDECODE") && !variable("CLAUDE_CODE_ENTRYPOINT"),
        "not nested in another session"
    );
    assert!(variable("RALPH_RUN_ID") && variable("RALPH_ITERATION") && variable("RALPH_BIN"));
    let scratch = split_arguments(&environment)
        .iter()
        .find_map(|set| set.strip_prefix("TMPDIR="))
        .expect("a TMPDIR");
    assert!(
        !std::path::Path::new(scratch).exists(),
        "the temporary files of an iteration are removed"
    );
}

#[test]
fn the_prompt_file_is_read_again_for_each_iteration() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("PROMPT.md", "first version\n")
        .with_script(
            "1",
            &format!("write PROMPT.md second-version\n{}", claude::session("more")),
        )
        .with_script("2", &claude::session("LOOP_COMPLETE"));
    sandbox.ralph(&["run"]).exits_with(0);
    let prompt = |iteration| String::from_utf8(sandbox.iteration_file(iteration, "prompt.md")).expect("text");
    assert!(prompt("0001").starts_with("first version\n"));
    assert!(prompt("0002").starts_with("second-version"));
}

#[test]
fn json_prints_only_the_records_of_the_journal() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"));
    let output = sandbox.ralph(&["run", "-p", "x", "--json"]).exits_with(0);
    let printed: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(printed, sandbox.journal());
    assert_eq!(output.stderr, "");
}

#[test]
fn a_run_does_not_appear_in_git_status() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"));
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git")
            .args(arguments)
            .current_dir(sandbox.work())
            .output();
        String::from_utf8(output.expect("git").stdout).expect("text")
    };
    git(&["init", "--quiet"]);
    sandbox.ralph(&["run", "-p", "x"]).exits_with(0);
    assert_eq!(git(&["status", "--porcelain", "--untracked-files=all"]), "");
}
