//! Tests of complete runs with drivers, Claude-compatible wrappers, jq filters and `as-claude`.

use super::fixture::COMPLETE_DRIVER;
use super::sandbox::Sandbox;

/// A wrapper as in ralphex's documentation, without jq: converts each line of the tool to a text event.
fn wrapper(call: &str) -> String {
    format!(
        r#"#!/usr/bin/env bash
set -euo pipefail
prompt=""
while [[ $# -gt 0 ]]; do
    case "$1" in
        -p) prompt="$2"; shift 2 ;;
        *)  shift ;;
    esac
done
[[ -z "$prompt" ]] && exit 1
{call} 2>/dev/null | while IFS= read -r line; do
    line=${{line//\\/\\\\}}
    line=${{line//\"/\\\"}}
    printf '{{"type":"content_block_delta","delta":{{"type":"text_delta","text":"%s\\n"}}}}\n' "$line"
done
echo '{{"type":"result","result":""}}'
"#
    )
}

#[test]
fn ralphex_wrappers_work_unchanged() {
    for (name, call) in [
        ("codex", "codex exec \"$prompt\""),
        ("gemini", "gemini -p \"$prompt\""),
        ("ollama", "ollama run \"${OLLAMA_MODEL:-llama3}\" \"$prompt\""),
    ] {
        let sandbox = Sandbox::new()
            .agent(name, "say working on \"it\"\nsay <<<RALPHEX:COMPLETED>>>")
            .program("project/as-claude.sh", &wrapper(call))
            .file(
                "project/.ralphex/config",
                "claude_command = ./as-claude.sh\nclaude_args =\n",
            );
        let done = sandbox.ralph(&["run", "-p", "do it", "-n", "1"]);
        assert_eq!(done.code, 0, "{name}: {done:?}");
        assert!(done.stdout.contains("working on \"it\""), "{name}: {done:?}");
        let argv = sandbox.argv(1);
        assert!(argv.last().unwrap().contains("do it"), "{name}: {argv:?}");
    }
}

#[test]
fn wrapper_is_called_like_claude() {
    let answer = r#"say {"type":"result","result":"LOOP_COMPLETE"}"#;
    let plain = Sandbox::new()
        .agent("other", answer)
        .file("project/ralph.yml", "cli: {claude_command: other}\n");
    assert_eq!(plain.ralph(&["run", "-p", "hi", "-n", "1"]).code, 0);
    let argv = plain.argv(1);
    assert_eq!(
        argv[..5],
        [
            "--dangerously-skip-permissions",
            "--output-format",
            "stream-json",
            "--verbose",
            "-p"
        ]
    );
    assert_eq!(argv.len(), 6);

    let several = Sandbox::new()
        .agent("npx", answer)
        .file("project/.ralphrc", "CLAUDE_CODE_CMD=\"npx some-package\"\n");
    assert_eq!(several.ralph(&["run", "-p", "hi", "-n", "1"]).code, 0);
    assert_eq!(
        several.argv(1)[..2],
        ["some-package", "--dangerously-skip-permissions"]
    );

    let config = "cli:\n  claude_command: other\n  claude_args: \"--a 'b c'\"\n";
    let quoted = Sandbox::new()
        .agent("other", answer)
        .file("project/ralph.yml", config);
    assert_eq!(quoted.ralph(&["run", "-p", "hi", "-n", "1"]).code, 0);
    assert_eq!(quoted.argv(1)[..3], ["--a", "b c", "-p"]);

    let cleared = Sandbox::new()
        .agent("other", answer)
        .file("project/PROMPT.md", "- hi")
        .file(
            "project/ralph.yml",
            "cli: {claude_command: other, claude_args: \"\"}\n",
        );
    assert_eq!(cleared.ralph(&["run", "-n", "1"]).code, 0);
    assert_eq!(cleared.argv(1)[0], "-p");
    assert_eq!(cleared.argv(1).len(), 2);
}

#[test]
fn prompt_over_the_argument_limit_is_rejected_with_the_limit() {
    let sandbox = Sandbox::new()
        .agent("other", "say x")
        .file("project/PROMPT.md", "x".repeat(131_072))
        .file(
            "project/ralph.yml",
            "cli: {claude_command: other}\nevent_loop: {max_consecutive_failures: 1}\n",
        );
    let done = sandbox.ralph(&["run", "-n", "1"]);
    assert_ne!(done.code, 0);
    let output = format!("{}{}", done.stdout, done.stderr);
    assert!(output.contains("limit: 131071 bytes"), "{done:?}");
    assert!(
        !sandbox.was_called() && !output.contains("Argument list too long"),
        "{done:?}"
    );
}

#[test]
fn wrapper_without_output_is_a_failed_iteration() {
    let sandbox = Sandbox::new().agent("other", "exit 0").file(
        "project/ralph.yml",
        "cli: {claude_command: other}\nevent_loop: {max_consecutive_failures: 1}\n",
    );
    let done = sandbox.ralph(&["run", "-p", "hi", "-n", "3"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(!sandbox.path("agent/2.argv").exists());
}

#[test]
fn missing_wrapper_is_an_agent_error() {
    let sandbox = Sandbox::new().file("project/ralph.yml", "cli: {claude_command: nosuch}\n");
    let done = sandbox.ralph(&["run", "-p", "hi"]);
    assert_eq!(done.code, 4, "{done:?}");
    assert!(done.stderr.contains("nosuch"), "{done:?}");
}

const FILTER: &str = r#"driver_stream_filter() { echo 'select(.kind == "text") | .text + "\n"'; }
driver_build_command() {
    CLAUDE_CMD_ARGS=(x-cli --prompt "$(cat "$1")")
    [[ $CLAUDE_USE_CONTINUE == true && -n $3 ]] && CLAUDE_CMD_ARGS+=(--resume "$3")
    return 0
}"#;

#[test]
fn driver_filter_selects_the_agents_text() {
    let script = r#"say {"kind":"noise","text":"LOOP_COMPLETE is not text"}
say {"kind":"text","text":"all done"}
say {"kind":"text","text":"LOOP_COMPLETE"}"#;
    let sandbox = Sandbox::new().agent("x-cli", script).file(
        "project/.ralph/drivers/x.sh",
        format!("{COMPLETE_DRIVER}\n{FILTER}"),
    );
    let done = sandbox.ralph(&["run", "--agent", "driver:x", "-p", "do it", "-n", "1"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.stdout.contains("all done") && !done.stdout.contains("is not text"),
        "{done:?}"
    );
    assert!(sandbox.argv(1)[1].contains("do it"));
}

#[test]
fn driver_resumes_its_session() {
    let sandbox = Sandbox::new()
        .agent(
            "x-cli",
            "say {\"kind\":\"text\",\"text\":\"more\",\"session_id\":\"s-42\"}",
        )
        .file(
            "project/.ralph/drivers/x.sh",
            format!("{COMPLETE_DRIVER}\n{FILTER}"),
        )
        .file("project/.ralphrc", "PLATFORM_DRIVER=x\nSESSION_CONTINUITY=true\n");
    let done = sandbox.ralph(&["run", "-p", "do it", "-n", "2"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(!sandbox.argv(1).contains(&"--resume".to_owned()));
    assert_eq!(sandbox.argv(2)[2..], ["--resume", "s-42"]);
}

#[test]
fn driver_of_a_built_in_agent_uses_its_transcript_format() {
    let script = r#"say {"type":"system","subtype":"init","session_id":"s","model":"m"}
say {"type":"assistant","message":{"id":"a","content":[{"type":"text","text":"LOOP_COMPLETE"}],"usage":{"input_tokens":7,"output_tokens":5}}}
say {"type":"result","subtype":"success","is_error":false,"result":"LOOP_COMPLETE","num_turns":1,"total_cost_usd":0.25,"usage":{"input_tokens":7,"output_tokens":5},"permission_denials":[{"tool_name":"Bash","tool_use_id":"t","tool_input":{}}]}"#;
    let sandbox = Sandbox::new().agent("claude", script);
    let done = sandbox.ralph(&[
        "run",
        "--agent",
        "driver:claude-code",
        "-p",
        "x",
        "-n",
        "1",
        "--json",
    ]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("\"cost_usd\":0.25"), "{done:?}");
    assert!(done.stdout.contains("Claude Code was refused a tool"), "{done:?}");
    let argv = sandbox.argv(1);
    assert!(
        argv.contains(&"stream-json".to_owned()) && argv.contains(&"--verbose".to_owned()),
        "{argv:?}"
    );
}

#[test]
fn invalid_driver_filter_shows_raw_lines() {
    let sandbox = Sandbox::new()
        .agent("x-cli", "say plain words\nsay LOOP_COMPLETE")
        .file(
            "project/.ralph/drivers/x.sh",
            format!("{COMPLETE_DRIVER}\ndriver_stream_filter() {{ echo '.a |'; }}"),
        );
    let done = sandbox.ralph(&["run", "--agent", "driver:x", "-p", "x", "-n", "1"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.stderr.contains("line 1, column 5") && done.stdout.contains("plain words"),
        "{done:?}"
    );
}

#[test]
fn driver_errors_are_reported() {
    let run = |backend: &str, sandbox: Sandbox| {
        let done = sandbox.ralph(&["run", "--agent", backend, "-p", "x"]);
        (done.code, sandbox.redact(&done.stderr))
    };
    let (code, stderr) = run("driver:nosuch", Sandbox::new());
    assert_eq!(code, 2);
    insta::assert_snapshot!(stderr, @"
    error: driver `nosuch` not found
      searched /box/project/.ralph/drivers
      searched /box/project/ralph/drivers
    hint: built-in drivers: claude-code, codex, copilot, cursor, opencode
    hint: to create one: ralph drivers new NAME
    ");
    let (code, stderr) = run("driver:../x", Sandbox::new());
    assert_eq!(
        (code, stderr.contains("invalid driver name")),
        (2, true),
        "{stderr}"
    );
    let (code, stderr) = run(
        "driver:x",
        Sandbox::new().file("project/.ralph/drivers/x.sh", COMPLETE_DRIVER),
    );
    assert_eq!(
        (code, stderr.contains("`x-cli`, required by driver x")),
        (4, true),
        "{stderr}"
    );
}

#[test]
fn unknown_tools_are_passed_on_with_a_warning_and_mcp_tools_without() {
    let sandbox = Sandbox::new().agent("claude", "").file(
        "project/.ralphrc",
        "ALLOWED_TOOLS=\"Read,Wriet,mcp__files__read\"\n",
    );
    let done = sandbox.ralph(&["run", "-p", "x", "--dry-run", "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stderr.contains("lists no tool `Wriet`"), "{done:?}");
    assert!(!done.stderr.contains("mcp__files__read"), "{done:?}");
    // A .ralphrc without PLATFORM_DRIVER means claude-code, which gets the tools unchanged.
    for tool in ["Wriet", "mcp__files__read"] {
        assert!(done.stdout.contains(&format!("\"{tool}\"")), "{done:?}");
    }
}

#[test]
fn dry_run_shows_the_driver_command() {
    let sandbox = Sandbox::new().agent("x-cli", "").file(
        "project/.ralph/drivers/x.sh",
        format!("{COMPLETE_DRIVER}\n{FILTER}"),
    );
    let done = sandbox.ralph(&["run", "--agent", "driver:x", "-p", "do it", "--dry-run", "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.stdout.contains("\"--prompt\"") && done.stdout.contains("\"transcript\": \"jq\""),
        "{done:?}"
    );
    assert!(!sandbox.was_called());
}

#[test]
fn custom_agent_with_a_jq_filter() {
    let sandbox = Sandbox::new().agent("mine", "say {\"t\":\"LOOP_\"}\nsay {\"t\":\"COMPLETE\"}");
    let done = sandbox.ralph(&[
        "run",
        "--agent-cmd",
        "mine",
        "--jq-filter",
        ".t",
        "-p",
        "x",
        "-n",
        "1",
    ]);
    assert_eq!(done.code, 0, "{done:?}");
    let wrong = sandbox.ralph(&[
        "run",
        "--agent-cmd",
        "mine",
        "--transcript",
        "jq",
        "--jq-filter",
        ".t |",
        "-p",
        "x",
    ]);
    assert_eq!(wrong.code, 2);
    insta::assert_snapshot!(wrong.stderr, @"
    error: invalid jq filter at line 1, column 5: expected term, found end of filter
    hint: an example of a valid filter: --jq-filter '.text // empty'
    ");
    let configured = sandbox.file("project/ralph.yml", "cli: {command: mine, jq_filter: .t}\n");
    assert_eq!(configured.ralph(&["run", "-p", "x", "-n", "1"]).code, 0);
    let plain = configured.ralph(&["run", "--transcript", "plain", "-p", "x", "-n", "1"]);
    assert!(plain.stderr.contains("cli.jq_filter has no effect"), "{plain:?}");
    let sandbox = configured.file("project/ralph.yml", "");
    let none = sandbox.ralph(&["run", "--agent-cmd", "mine", "--transcript", "jq", "-p", "x"]);
    assert_eq!(
        (none.code, none.stderr.contains("--jq-filter")),
        (2, true),
        "{none:?}"
    );
}

#[test]
fn new_driver_passes_its_check() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.ralph(&["drivers", "new", "mine"]).code, 0);
    let again = sandbox.ralph(&["drivers", "new", "mine"]);
    assert_eq!(again.code, 1, "the file is not overwritten: {again:?}");
    let checked = sandbox.ralph(&["drivers", "check", "mine"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    assert!(checked.stdout.contains("`mine` is not available"), "{checked:?}");
    assert_eq!(sandbox.ralph(&["drivers", "new", "../x"]).code, 2);
    let listed = sandbox.ralph(&["drivers", "list", "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let names: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["claude-code", "codex", "copilot", "cursor", "mine", "opencode"]
    );
    assert_eq!(rows[4]["embedded"], false);
    let all = sandbox.ralph(&["drivers", "check"]);
    assert_eq!(all.code, 0, "{all:?}");
}

#[test]
fn broken_driver_fails_its_check_and_doctor() {
    let sandbox = Sandbox::new()
        .file("project/.ralph/drivers/x.sh", "driver_name() { echo x; }")
        .file("project/.ralphrc", "PLATFORM_DRIVER=x\n");
    let checked = sandbox.ralph(&["drivers", "check"]);
    assert_eq!(
        (checked.code, checked.stdout.contains("driver_cli_binary")),
        (1, true),
        "{checked:?}"
    );
    let doctor = sandbox.ralph(&["doctor"]);
    assert_eq!(
        (doctor.code, doctor.stdout.contains("driver_cli_binary")),
        (1, true),
        "{doctor:?}"
    );
}

const CODEX: &str = r#"say {"type":"thread.started","thread_id":"t1"}
say {"type":"item.completed","item":{"type":"command_execution","command":"ls","aggregated_output":"a"}}
say {"type":"item.completed","item":{"type":"agent_message","text":"fixed the bug"}}
say {"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":2}}"#;

#[test]
fn as_claude_runs_codex() {
    let sandbox = Sandbox::new()
        .agent("codex", &format!("read-stdin\n{CODEX}"))
        .set("CODEX_MODEL", "o9");
    let done = sandbox.ralph(&[
        "as-claude",
        "--dangerously-skip-permissions",
        "--agent",
        "codex",
        "--verbose",
        "--output-format",
        "stream-json",
        "-p",
        "- go",
    ]);
    assert_eq!(done.code, 0, "{done:?}");
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{done:?}");
    let text: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    let expected = serde_json::json!({"type":"content_block_delta","delta":{"type":"text_delta","text":"fixed the bug\n"}});
    assert_eq!(text, expected);
    let result: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
    assert_eq!(
        (&result["type"], &result["is_error"]),
        (&"result".into(), &false.into())
    );
    assert_eq!(
        sandbox.argv(1),
        [
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--sandbox",
            "danger-full-access",
            "--model",
            "o9",
            "-"
        ]
    );
    assert_eq!(
        std::fs::read_to_string(sandbox.path("agent/1.stdin")).unwrap(),
        "- go"
    );
}

#[test]
fn as_claude_reads_stdin_and_prints_commands_if_verbose() {
    let sandbox = Sandbox::new()
        .agent("codex", CODEX)
        .set("CODEX_VERBOSE", "1")
        .set("CODEX_SANDBOX", "read-only");
    let done = sandbox.ralph_with_stdin("from stdin", &["as-claude", "--agent", "codex"]);
    assert_eq!((done.code, done.stdout.lines().count()), (0, 4), "{done:?}");
    assert!(sandbox.argv(1).contains(&"read-only".to_owned()));
}

#[test]
fn as_claude_reports_failures() {
    let last = |done: &super::sandbox::Finished| -> serde_json::Value {
        serde_json::from_str(done.stdout.lines().last().expect("a result")).unwrap()
    };
    let failing = Sandbox::new().agent("codex", "err no network\nexit 7");
    let done = failing.ralph(&["as-claude", "--agent", "codex", "-p", "x"]);
    let result = last(&done);
    assert_eq!((done.code, &result["is_error"]), (1, &true.into()), "{done:?}");
    assert!(
        result["result"].as_str().unwrap().contains("no network"),
        "{done:?}"
    );
    for (args, code) in [
        (&["as-claude", "--agent", "nosuch", "-p", "x"][..], 2),
        (&["as-claude", "--agent", "gemini", "-p", "x"], 4),
        (&["as-claude", "-p", "x"], 2),
        (&["as-claude", "--agent", "codex", "-p", ""], 2),
    ] {
        let done = Sandbox::new().ralph(args);
        assert_eq!(
            (done.code, &last(&done)["is_error"]),
            (code, &true.into()),
            "{args:?}: {done:?}"
        );
    }
}

#[test]
fn as_claude_wraps_a_custom_agent() {
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let wrap = format!("#!/bin/sh\nexec {ralph} as-claude --agent custom --config custom.yml \"$@\"\n");
    let sandbox = Sandbox::new()
        .agent("mine", "say hello\nsay LOOP_COMPLETE")
        .program("project/wrap.sh", &wrap)
        .file("project/custom.yml", "cli: {backend: custom, command: mine}\n")
        .file("project/ralph.yml", "cli: {claude_command: ./wrap.sh}\n");
    let done = sandbox.ralph(&["run", "-p", "do it", "-n", "1"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("hello"), "{done:?}");
    assert!(sandbox.argv(1)[0].contains("do it"));
}

#[test]
fn as_claude_does_not_call_itself_recursively() {
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let sandbox = Sandbox::new()
        .program(
            "bin/mine",
            &format!("#!/bin/sh\nexec {ralph} as-claude --agent custom -p x\n"),
        )
        .file("project/ralph.yml", "cli: {backend: custom, command: mine}\n");
    let done = sandbox.ralph(&["as-claude", "--agent", "custom", "-p", "x"]);
    assert_ne!(done.code, 0, "{done:?}");
}

#[test]
fn config_show_prints_origins() {
    let sandbox = Sandbox::new()
        .file(
            "home/.config/ralphex/config",
            "# mine\nclaude_command = other\niteration_delay_ms = 1500\n",
        )
        .file(
            "project/.ralphrc",
            "# c\nPLATFORM_DRIVER=\"codex\"\nCLAUDE_TIMEOUT_MINUTES=15\nMAX_CALLS_PER_HOUR=100\nNOPE=1\n",
        )
        .file("project/ralph.yml", "event_loop: {max_iterations: 7}\n")
        .set("CLAUDE_ALLOWED_TOOLS", "Read");
    let done = sandbox.ralph(&["config", "show", "--origin", "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    let shown: serde_json::Value = serde_json::from_str(&sandbox.redact(&done.stdout)).unwrap();
    for (key, value, origin) in [
        (
            "cli.claude_command",
            serde_json::json!("other"),
            "/box/home/.config/ralphex/config:2",
        ),
        (
            "event_loop.cooldown_seconds",
            2.into(),
            "/box/home/.config/ralphex/config:3",
        ),
        ("cli.backend", "driver:codex".into(), "/box/project/.ralphrc:2"),
        ("adapters.codex.timeout", 900.into(), "/box/project/.ralphrc:3"),
        ("driver.allowed_tools", "Read".into(), "$CLAUDE_ALLOWED_TOOLS"),
        ("event_loop.max_iterations", 7.into(), "/box/project/ralph.yml:1"),
        ("event_loop.max_runtime_seconds", 14400.into(), "default"),
    ] {
        assert_eq!(
            (&shown[key]["value"], &shown[key]["origin"]),
            (&value, &origin.into()),
            "{key}"
        );
    }
    insta::assert_snapshot!(sandbox.redact(&done.stderr), @"
    warning: /box/project/.ralphrc:5: unknown variable `NOPE`
    warning: /box/project/.ralphrc: ignoring unsupported settings: MAX_CALLS_PER_HOUR
    ");
    let text = sandbox.ralph(&["config", "show", "--origin"]);
    assert!(sandbox.redact(&text.stdout).contains(".ralphrc:2"), "{text:?}");
}

#[test]
fn converted_file_has_the_same_settings() {
    let sandbox = Sandbox::new()
        .file("project/.ralph/.ralphrc", "PLATFORM_DRIVER=opencode\nALLOWED_TOOLS='Bash(git *), Read'\nSESSION_CONTINUITY=false\nCB_AUTO_RESET=1\n")
        .file("project/.ralph/PROMPT.md", "go\n");
    let before = sandbox.ralph(&["config", "show", "--json"]);
    let converted = sandbox.ralph(&["config", "convert", "--from", "ralphrc"]);
    assert_eq!(converted.code, 0, "{converted:?}");
    insta::assert_snapshot!(sandbox.redact(&converted.stdout), @r#"
    # Converted from /box/project/.ralph/.ralphrc.
    # Not converted: /box/project/.ralph/.ralphrc: ignoring unsupported settings: CB_AUTO_RESET
    cli:
      backend: "driver:opencode"
    driver:
      allowed_tools: "Bash(git *), Read"
    event_loop:
      completion_status_block: true
      prompt_file: ".ralph/PROMPT.md"
    session: "fresh"
    "#);
    std::fs::remove_file(sandbox.path("project/.ralph/.ralphrc")).unwrap();
    let sandbox = sandbox.file("project/ralph.yml", &converted.stdout);
    let after = sandbox.ralph(&["config", "show", "--json"]);
    assert_eq!(before.stdout, after.stdout, "{after:?}");
    assert_eq!(
        Sandbox::new()
            .ralph(&["config", "convert", "--from", "ralphex"])
            .code,
        2
    );
}

#[test]
fn agents_test_supports_drivers() {
    let filter = "driver_stream_filter() { echo '.text // empty'; }";
    let sandbox = Sandbox::new()
        .agent("x-cli", r#"say {"text":"pelican4711"}"#)
        .file(
            "project/.ralph/drivers/x.sh",
            format!("{COMPLETE_DRIVER}\n{filter}\n"),
        );
    let tested = sandbox.ralph(&["agents", "test", "driver:x"]);
    assert_eq!(tested.code, 0, "{tested:?}");
    assert!(
        tested.stdout.contains("✓ transcript       parsed as jq"),
        "{}",
        tested.stdout
    );
    assert!(
        tested.stdout.contains("The X: works (prompt sent once)"),
        "{}",
        tested.stdout
    );
    let file = &sandbox.argv(1)[1];
    assert!(!std::path::Path::new(file).exists(), "{file} was not removed");
}
