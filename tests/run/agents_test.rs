//! Tests of `ralph agents test`.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::sandbox::{CommandOutput, DEADLINE, Sandbox, claude, split_arguments};

/// Replaces times and paths, which differ from call to call.
fn shown(sandbox: &Sandbox, output: &CommandOutput) -> String {
    let text = sandbox.redact_paths(&output.stdout);
    let lines = text.lines().map(|line| match line.split_once(", after ") {
        Some((before, _)) => format!("{before}, after T s"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a custom agent: a script for `sh` whose first argument is the prompt.
fn custom_agent(script: &str) -> Sandbox {
    Sandbox::new().with_file("agent.sh", script)
}

const TEST: &[&str] = &["agents", "test", "custom", "--agent-cmd", "sh agent.sh"];

fn test(sandbox: &Sandbox, more: &[&str]) -> CommandOutput {
    sandbox.ralph(&[TEST, more].concat())
}

fn json(output: &CommandOutput) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Returns the state of one finding.
fn state<'a>(report: &'a Value, subject: &str) -> &'a str {
    let findings = report["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["subject"] == subject);
    found
        .and_then(|finding| finding["state"].as_str())
        .unwrap_or("missing")
}

const ANSWERS: &str = "case \"$1\" in *pelican*4711*) echo 'Pelican4711.' ;; esac\n";

#[test]
fn a_good_command_works() {
    let sandbox = custom_agent(ANSWERS);
    let output = test(&sandbox, &[]).exits_with(0);
    insta::assert_snapshot!(shown(&sandbox, &output), @"
    Calling sh as `ralph run` would, with a prompt of 166 bytes; without an answer, up to two more calls follow.
    Timeout per call: 1m.

    findings
      ✓ program          [SANDBOX]/bin/sh
      ✓ end              exit code 0, after T s
      ✓ stdin            empty; the agent does not wait for it
      ✓ terminal         not required
      ✓ prompt           received and answered
      ✓ transcript       parsed as plain
      · session          reports no id; `session: continue` is not supported
      · used             not reported

    sh: works (prompt sent once)
    ");
    assert_eq!(output.stderr, "");
    let report = json(&test(&sandbox, &["--json"]).exits_with(0));
    assert_eq!(report["verdict"], "works");
    assert_eq!(report["calls"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_agent_that_reads_its_prompt_from_stdin_is_detected() {
    let script = "read -r line\ncase \"$line\" in *pelican*) echo pelican4711 ;; *) echo 'no prompt' >&2; exit 1 ;; esac\n";
    let sandbox = custom_agent(script);
    let output = test(&sandbox, &[]).exits_with(1);
    insta::assert_snapshot!(shown(&sandbox, &output), @"
    Calling sh as `ralph run` would, with a prompt of 166 bytes; without an answer, up to two more calls follow.
    Timeout per call: 1m.

    findings
      ✓ program          [SANDBOX]/bin/sh
      ✗ end              exit code 1: no prompt
                         → run it by hand: [SANDBOX]/bin/sh agent.sh hello
      ✗ stdin            the agent reads its prompt from stdin, but receives it as an argument
                         → in ralph.yml: cli.prompt_mode: stdin
      · terminal         unknown
      ✓ prompt           received and answered when sent on stdin
      ✓ transcript       parsed as plain
      · session          reports no id; `session: continue` is not supported
      · used             not reported

    sh: does not work as configured (prompt sent 2 times)
    ");
    let sandbox = sandbox.with_file(
        "ralph.yml",
        "cli: {backend: custom, command: sh, args: [agent.sh], prompt_mode: stdin}\n",
    );
    let report = json(&sandbox.ralph(&["agents", "test", "--json"]).exits_with(0));
    assert_eq!(
        (&report["agent"], state(&report, "stdin")),
        (&Value::from("custom"), "good")
    );
}

#[test]
fn an_agent_that_uses_an_empty_stdin_as_its_prompt_is_detected() {
    let sandbox = custom_agent("echo \"You said: $(cat)\"\n");
    let report = json(&test(&sandbox, &["--json"]).exits_with(1));
    assert_eq!(state(&report, "stdin"), "broken");
    assert_eq!(state(&report, "terminal"), "good");
}

#[test]
fn an_agent_that_needs_a_terminal_is_detected() {
    let sandbox = custom_agent(&format!(
        "test -t 1 || {{ echo 'stdout is not a terminal' >&2; exit 1; }}\n{ANSWERS}"
    ));
    let output = test(&sandbox, &[]).exits_with(1);
    insta::assert_snapshot!(shown(&sandbox, &output), @"
    Calling sh as `ralph run` would, with a prompt of 166 bytes; without an answer, up to two more calls follow.
    Timeout per call: 1m.

    findings
      ✓ program          [SANDBOX]/bin/sh
      ✗ end              exit code 1: stdout is not a terminal
                         → run it by hand: [SANDBOX]/bin/sh agent.sh hello
      ✓ stdin            empty; the agent does not wait for it
      ✗ terminal         works only with a terminal
                         → in ralph.yml: cli.pty_mode: true
      ✓ prompt           received and answered when run on a terminal
      ✓ transcript       parsed as plain
      · session          reports no id; `session: continue` is not supported
      · used             not reported

    sh: does not work as configured (prompt sent 3 times)
    ");
    let sandbox = sandbox.with_file(
        "ralph.yml",
        "cli: {backend: custom, command: sh, args: [agent.sh], pty_mode: true}\n",
    );
    sandbox.ralph(&["agents", "test"]).exits_with(0);
}

#[test]
fn an_agent_that_never_exits_is_stopped_with_its_children() {
    let sandbox = Sandbox::new()
        .with_agent("my-agent")
        .with_script("default", "ignore TERM\nfork-setsid 1000\nhang\n");
    let start = Instant::now();
    let output = sandbox.ralph(&[
        "agents",
        "test",
        "custom",
        "--agent-cmd",
        "my-agent",
        "--timeout",
        "1",
    ]);
    let output = output.exits_with(1);
    assert!(start.elapsed() < DEADLINE / 2, "{:?}", start.elapsed());
    insta::assert_snapshot!(shown(&sandbox, &output), @"
    Calling my-agent as `ralph run` would, with a prompt of 166 bytes; without an answer, up to two more calls follow.
    Timeout per call: 1s.

    findings
      ✓ program          [SANDBOX]/bin/my-agent
      ✗ end              timed out after 1s
                         → find its flag for headless use, or increase --timeout
      ✓ stdin            empty; not the cause of the timeout
      · terminal         a terminal makes no difference
      ✗ prompt           no output on stdout
                         → find the flag that makes it print its answer; without one every iteration fails
      · transcript       no output
      · session          reports no id; `session: continue` is not supported
      · used             not reported

    my-agent: does not work as configured (prompt sent 2 times)
    ");
    sandbox.wait_until_processes_exit(Duration::from_secs(2));
}

#[test]
fn an_agent_that_answers_and_never_exits_does_not_work() {
    let sandbox = custom_agent(&format!("{ANSWERS}exec sleep 1000\n"));
    let output = test(&sandbox, &["--timeout", "1"]).exits_with(1);
    assert!(
        output.stdout.contains("timed out after 1s (it had answered)"),
        "{}",
        output.stdout
    );
}

#[test]
fn an_agent_that_prints_nothing_on_stdout_is_detected() {
    let sandbox = custom_agent("echo 'I am on stderr' >&2\n");
    let output = test(&sandbox, &[]).exits_with(1);
    insta::assert_snapshot!(shown(&sandbox, &output), @"
    Calling sh as `ralph run` would, with a prompt of 166 bytes; without an answer, up to two more calls follow.
    Timeout per call: 1m.

    findings
      ✓ program          [SANDBOX]/bin/sh
      ✓ end              exit code 0, after T s
      ✓ stdin            empty; the agent does not wait for it
      · terminal         a terminal makes no difference
      ✗ prompt           no output on stdout; stderr: I am on stderr
                         → find the flag that makes it print its answer; without one every iteration fails
      · transcript       no output
      · session          reports no id; `session: continue` is not supported
      · used             not reported

    sh: does not work as configured (prompt sent 3 times)
    ");
}

#[test]
fn an_agent_that_ignores_its_prompt_is_unproven() {
    let sandbox = custom_agent("echo hello\n");
    let output = test(&sandbox, &[]).exits_with(1);
    insta::assert_snapshot!(shown(&sandbox, &output), @"
    Calling sh as `ralph run` would, with a prompt of 166 bytes; without an answer, up to two more calls follow.
    Timeout per call: 1m.

    findings
      ✓ program          [SANDBOX]/bin/sh
      ✓ end              exit code 0, after T s
      ✓ stdin            empty; the agent does not wait for it
      ✓ terminal         not required
      ! prompt           no sign that it arrived; it printed: hello
                         → check how the agent takes its prompt: cli.prompt_mode, cli.prompt_flag
      ✓ transcript       parsed as plain
      · session          reports no id; `session: continue` is not supported
      · used             not reported

    sh: inconclusive: it did not give the requested answer (prompt sent 2 times)
    ");
    let report = json(&test(&sandbox, &["--json"]).exits_with(1));
    assert_eq!(report["verdict"], "unproven");
}

#[test]
fn an_echo_of_the_prompt_is_no_answer() {
    let sandbox = custom_agent("echo \"You said: $1\"\n");
    let output = test(&sandbox, &[]).exits_with(1);
    assert!(
        output.stdout.contains("received and echoed, but not answered"),
        "{output:?}"
    );
    let report = json(&test(&sandbox, &["--json"]).exits_with(1));
    assert_eq!(report["verdict"], "unproven");
    // The events of the agent are not shown, but its answer is.
    let script = format!("{}{}", claude::init(), claude::message("m1", "How can I help?"));
    let sandbox = Sandbox::new().with_agent("claude").with_script(
        "default",
        &format!("{script}{}", claude::result("How can I help?")),
    );
    let output = sandbox.ralph(&["agents", "test"]).exits_with(1);
    assert!(
        output.stdout.contains("it printed: How can I help?"),
        "{output:?}"
    );
    assert!(!output.stdout.contains("{\""), "{output:?}");
}

#[test]
fn a_login_prompt_is_named() {
    let script =
        "say No API key found. Starting login flow...\nsay When prompted, paste your code here:\nhang\n";
    let sandbox = Sandbox::new().with_agent("amp").with_script("default", script);
    let test = ["agents", "test", "amp", "--timeout", "1"];
    let output = sandbox.ralph(&test).exits_with(1);
    let lines: Vec<&str> = output.stdout.lines().map(str::trim).collect();
    assert!(
        lines.contains(&"✗ end              timed out after 1s: it asks a person to log in")
            && lines.contains(&"→ Run `amp login`, or set AMP_API_KEY."),
        "{output:?}"
    );
}

#[test]
fn a_missing_agent_is_named() {
    let sandbox = Sandbox::new();
    let output = sandbox.ralph(&["agents", "test", "custom", "--agent-cmd", "nowhere"]);
    insta::assert_snapshot!(shown(&sandbox, &output.exits_with(4)), @"
    findings
      ✗ program          custom command `nowhere` not found
                         → check the spelling, or use its full path

    custom: does not work as configured (not called)
    ");
    let output = sandbox
        .ralph(&["agents", "test", "codex", "--json"])
        .exits_with(4);
    assert_eq!(state(&json(&output), "program"), "broken");
    let output = sandbox.ralph(&["agents", "test", "claud"]).exits_with(2);
    insta::assert_snapshot!(output.stderr, @"
    error: unknown agent `claud`
    hint: did you mean `claude`?
    hint: known agents: auto, claude, kiro, agy, gemini, codex, amp, opencode, copilot, cursor, qwen, pi, kimi, vibe, cline, custom, acp
    ");
}

#[test]
fn the_output_is_compared_with_the_known_formats() {
    let sandbox = Sandbox::new()
        .with_agent("my-agent")
        .with_script("default", &claude::session("pelican4711"));
    let test = ["agents", "test", "custom", "--agent-cmd", "my-agent"];
    let output = sandbox.ralph(&test).exits_with(0);
    insta::assert_snapshot!(shown(&sandbox, &output), @"
    Calling my-agent as `ralph run` would, with a prompt of 166 bytes; without an answer, up to two more calls follow.
    Timeout per call: 1m.

    findings
      ✓ program          [SANDBOX]/bin/my-agent
      ✓ end              exit code 0, after T s
      ✓ stdin            empty; the agent does not wait for it
      ✓ terminal         not required
      ✓ prompt           received and answered
      ! transcript       parsed as plain, but looks like claude
                         → in ralph.yml: cli.transcript: claude
      · session          reports no id; `session: continue` is not supported
      · used             not reported

    my-agent: works (prompt sent once)
    ");
    let better = [&test[..], &["--transcript", "claude", "--json"]].concat();
    let report = json(&sandbox.ralph(&better).exits_with(0));
    assert_eq!(
        ["transcript", "session", "used"].map(|subject| state(&report, subject)),
        ["good"; 3]
    );
}

#[test]
fn a_built_in_agent_is_called_once_like_in_a_run() {
    let script = format!("{}fork-setsid 1000\n", claude::session("pelican4711"));
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &script);
    let output = sandbox.ralph(&["agents", "test", "claude"]).exits_with(0);
    insta::assert_snapshot!(shown(&sandbox, &output), @"
    Calling Claude Code as `ralph run` would, with a prompt of 166 bytes.
    Timeout per call: 1m.

    findings
      ✓ program          [SANDBOX]/bin/claude, fake-agent 9.9.9
      ✓ end              exit code 0, after T s
      ✓ stdin            empty; the agent does not wait for it
      ✓ terminal         stdout is a terminal
      ✓ prompt           received and answered
      ✓ transcript       parsed as claude
      ✓ session          reports its id
      ! leftovers        left 1 process running; stopped, as in every run
      ✓ used             110 tokens, $0.0100

    Claude Code: works (prompt sent once)
    ");
    let recorded = sandbox.recorded("1.argv");
    let argv = split_arguments(&recorded);
    assert_eq!(argv[..2], ["--dangerously-skip-permissions", "--output-format"]);
    assert!(!sandbox.path("agent").join("2.argv").exists(), "called once");
    sandbox.wait_until_processes_exit(Duration::from_secs(2));
}

#[test]
fn a_built_in_agent_without_a_login_gets_a_hint() {
    let failed = serde_json::json!({
        "type": "result", "subtype": "success", "is_error": true, "num_turns": 1, "session_id": "s-1",
        "api_error_status": 401, "result": "Invalid API key · Please run /login",
    });
    let script = format!("{}{}exit 1\n", claude::init(), claude::print_json(&failed));
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &script);
    let output = sandbox.ralph(&["agents", "test"]).exits_with(1);
    insta::assert_snapshot!(shown(&sandbox, &output), @"
    Calling Claude Code as `ralph run` would, with a prompt of 166 bytes.
    Timeout per call: 1m.

    findings
      ✓ program          [SANDBOX]/bin/claude, fake-agent 9.9.9
      ✗ end              exit code 1: Invalid API key · Please run /login
                         → Run `claude` once and log in, or set ANTHROPIC_API_KEY.
      ✓ stdin            empty; the agent does not wait for it
      ✓ terminal         stdout is a terminal
      · prompt           unknown, because the agent failed
      ✓ transcript       parsed as claude
      ✓ session          reports its id
      · used             not reported

    Claude Code: does not work as configured (prompt sent once)
    ");
}

#[test]
fn escape_sequences_of_an_agent_are_not_printed() {
    let sandbox = custom_agent("printf '\\033[31mred\\033]0;title\\007\\n'; exit 3\n");
    let output = test(&sandbox, &[]).exits_with(1);
    assert!(!output.stdout.contains('\u{1b}'), "{:?}", output.stdout);
}

#[test]
fn without_a_subcommand_the_agents_are_listed() {
    let sandbox = Sandbox::new().with_agent("codex");
    let plain = sandbox.ralph(&["agents"]).exits_with(0);
    assert!(plain.stdout.contains("→  codex"), "{}", plain.stdout);
    sandbox
        .ralph(&["agents", "--agent", "codex", "--json"])
        .exits_with(0);
}
