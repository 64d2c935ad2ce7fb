//! Tests of the output of `agents`, `doctor`, `--dry-run` and `completions`.

use serde_json::Value;

use crate::cli::redact_varying_lines;
use crate::sandbox::Sandbox;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn agents_lists_the_installed_agents_and_their_calls() {
    let sandbox = Sandbox::new().with_agent("codex");
    let output = sandbox.ralph(&["agents"]).exits_with(0);
    insta::assert_snapshot!(sandbox.redact_paths(&output.stdout), @"
       AGENT     STATUS             TRANSCRIPT  REPORTS
       claude    not found in PATH  claude      roles tools usage sessions prompt
       kiro      not found in PATH  plain       text only
       agy       not found in PATH  agy         roles tools usage sessions prompt
       gemini    not found in PATH  gemini      roles tools usage sessions prompt
    →  codex     fake-agent 9.9.9   codex       roles tools usage sessions prompt
       amp       not found in PATH  amp         roles tools usage sessions prompt
       opencode  not found in PATH  opencode    roles tools usage sessions
       copilot   not found in PATH  copilot     roles tools usage sessions prompt
       cursor    not found in PATH  cursor      roles tools usage sessions prompt
       qwen      not found in PATH  qwen        roles tools usage sessions prompt
       pi        not found in PATH  pi          roles tools usage sessions prompt
       kimi      not found in PATH  kimi        roles tools sessions prompt
       vibe      not found in PATH  vibe        roles tools sessions prompt
       cline     not found in PATH  cline       roles tools usage sessions prompt

    Command lines:
      claude --dangerously-skip-permissions --output-format stream-json --verbose -p PROMPT   (tested with 2.1.327)
      kiro-cli chat --no-interactive --trust-all-tools PROMPT   (from documentation, not tested)
      agy --dangerously-skip-permissions --print-timeout 24h --output-format stream-json -p PROMPT   (from documentation, not tested)
      gemini --yolo --skip-trust -o stream-json -p PROMPT   (tested with 0.61.0)
      codex exec --dangerously-bypass-approvals-and-sandbox --json PROMPT   (tested with 0.169.0)
      amp --dangerously-allow-all --stream-json -x PROMPT   (from documentation, not tested)
      opencode run --auto --format json --thinking   < PROMPT   (tested with 1.18.33)
      copilot --allow-all --no-ask-user --output-format json --usage-output-file FILE -p PROMPT   (tested with 1.0.102)
      cursor-agent -p --force --trust --output-format stream-json PROMPT   (from documentation, not tested)
      qwen --yolo -o stream-json   < PROMPT   (tested with 0.24.4)
      pi -p --mode json   < PROMPT   (tested with 0.87.1)
      kimi --output-format stream-json -p PROMPT   (tested with 2.1.0)
      vibe --auto-approve --trust --output streaming -p   < PROMPT   (output tested with 3.0.2; command from documentation)
      cline --json PROMPT   (output tested with 3.0.65; command from documentation)
    ");
    let rows = json(&sandbox.ralph(&["agents", "--json"]).exits_with(0).stdout);
    let codex = rows
        .as_array()
        .expect("rows")
        .iter()
        .find(|row| row["name"] == "codex")
        .expect("codex");
    assert_eq!(
        (&codex["found"], &codex["selected"]),
        (&Value::Bool(true), &Value::Bool(true))
    );
    assert_eq!(codex["version"], "fake-agent 9.9.9");
}

#[test]
fn an_outdated_program_is_reported() {
    let sandbox = Sandbox::new()
        .with_agent("gemini")
        .with_script("version", "say 0.1.5\n");
    let output = sandbox.ralph(&["agents"]).exits_with(0);
    assert!(output.stdout.contains("0.1.5; needs 0."), "{}", output.stdout);
    let rows = json(&sandbox.ralph(&["agents", "--json"]).exits_with(0).stdout);
    let outdated = |row: &&Value| row["outdated"] == true;
    let outdated: Vec<&Value> = rows.as_array().expect("rows").iter().filter(outdated).collect();
    assert_eq!(
        (outdated.len(), &outdated[0]["name"]),
        (1, &Value::from("gemini"))
    );
    let output = sandbox.ralph(&["doctor"]).exits_with(0);
    assert!(
        output
            .stdout
            .contains("! gemini           0.1.5; ralph requires 0."),
        "{}",
        output.stdout
    );
}

#[test]
fn doctor_succeeds_with_one_agent_and_fails_without() {
    let sandbox = Sandbox::new().with_agent("claude");
    let output = sandbox.ralph(&["doctor"]).exits_with(0);
    insta::assert_snapshot!(redact_varying_lines(&sandbox, &output.stdout), @"
    configuration
      · ralph.yml        not found; using the defaults

    agents
      ✓ claude           fake-agent 9.9.9
      · kiro             not found in PATH
      · agy              not found in PATH
      · gemini           not found in PATH
      · codex            not found in PATH
      · amp              not found in PATH
      · opencode         not found in PATH
      · copilot          not found in PATH
      · cursor           not found in PATH
      · qwen             not found in PATH
      · pi               not found in PATH
      · kimi             not found in PATH
      · vibe             not found in PATH
      · cline            not found in PATH
      ✓ an agent to run  claude is available

    trust
      ✓ commands         no gates, hooks or custom commands configured

    workspace
      ✓ directory        [WORKSPACE]
      · git              not a repository
      ✓ lock             free
      ✓ state            [SANDBOX]/state

    terminal
      · screen           no terminal: output will be plain text
      · locale           not set: some characters may be shown incorrectly

    disk
      ✓ free space       [VARIES]
      ✓ runs kept        0 runs, 0 B

    clock
      ✓ time             [VARIES]
    ");
    let output = Sandbox::new().ralph(&["doctor"]).exits_with(1);
    assert!(output.stdout.contains("✗ an agent to run"), "{}", output.stdout);
}

#[test]
fn doctor_shows_a_mistake_in_the_configuration() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "cli:\n  bakend: claude\n");
    let output = sandbox.ralph(&["doctor"]).exits_with(1);
    insta::assert_snapshot!(redact_varying_lines(&sandbox, &output.stdout), @"
    configuration
      ✗ ralph.yml        `cli.bakend`: unknown key
           --> [WORKSPACE]/ralph.yml:2:3
            |
          2 |   bakend: claude
            |   ^^^^^^
            |
            = help: did you mean `backend`?
                         → fix the file, then run ralph doctor again

    agents
      ✓ claude           fake-agent 9.9.9
      · kiro             not found in PATH
      · agy              not found in PATH
      · gemini           not found in PATH
      · codex            not found in PATH
      · amp              not found in PATH
      · opencode         not found in PATH
      · copilot          not found in PATH
      · cursor           not found in PATH
      · qwen             not found in PATH
      · pi               not found in PATH
      · kimi             not found in PATH
      · vibe             not found in PATH
      · cline            not found in PATH
      ✓ an agent to run  claude is available

    workspace
      ✓ directory        [WORKSPACE]
      · git              not a repository
      ✓ lock             free
      ✓ state            [SANDBOX]/state

    terminal
      · screen           no terminal: output will be plain text
      · locale           not set: some characters may be shown incorrectly

    disk
      ✓ free space       [VARIES]
      ✓ runs kept        0 runs, 0 B

    clock
      ✓ time             [VARIES]
    ");
    let findings = json(&sandbox.ralph(&["doctor", "--json"]).exits_with(1).stdout);
    assert!(
        findings
            .as_array()
            .expect("findings")
            .iter()
            .any(|finding| finding["state"] == "broken")
    );
}

/// Removes the variable that is only set for root.
fn without_root_variable(shown: &str) -> String {
    let variable = "IS_SANDBOX=1\n             ";
    assert_eq!(shown.contains(variable), rustix::process::geteuid().is_root());
    shown.replace(variable, "")
}

#[test]
fn a_dry_run_prints_the_call_and_starts_nothing() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "gates:\n  - {name: t, run: make test}\n");
    let call = "run|--dry-run|-p|fix it|--agent|claude|--model|opus|--|--add-dir|..";
    let call: Vec<&str> = call.split('|').collect();
    let output = sandbox.ralph(&call).exits_with(0);
    let shown = sandbox.redact_paths(&output.stdout);
    insta::assert_snapshot!(without_root_variable(&shown), @r"
    agent        claude
    program      [SANDBOX]/bin/claude
                 --dangerously-skip-permissions
                 --output-format
                 stream-json
                 --verbose
                 --model
                 opus
                 --add-dir
                 ..
                 -p
                 $'fix it\n\n(From ralph, which runs you in a loop: when the whole task is done and checked, and only then, end your final message with a line that contains nothing but LOOP_COMPLETE. If work remains, leave it out; you will be called again with the same task. ralph then runs these checks itself: `make test`.)'
    cwd          [WORKSPACE]
    stdin        /dev/null
    stdout       pty
    set          RALPH_RUN_ID=RUN
                 RALPH_ITERATION=1
                 RALPH_BIN=(this program)
                 TMPDIR=(a fresh directory)
    unset        CLAUDECODE CLAUDE_CODE_CHILD_SESSION CLAUDE_CODE_SESSION_ID CLAUDE_CODE_MESSAGING_SOCKET CLAUDE_CODE_MESSAGING_TOKEN CLAUDE_CODE_BRIDGE_SESSION_ID CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_EXECPATH CLAUDE_PID CLAUDE_EFFORT
    transcript   claude
    session      fresh
    prompt       given (305 bytes)
    limits       100 iterations, runtime 4h, 5 failures in a row, 5 iterations without progress, 10m without output, 1h without output in a tool
    paths        any file may change
    gates        make test
    ");
    let described = json(
        &sandbox
            .ralph(&["run", "--dry-run", "--json", "-p", "-x"])
            .exits_with(0)
            .stdout,
    );
    assert_eq!(described["stdout"], "pty");
    assert!(
        described["stdin"]
            .as_str()
            .is_some_and(|stdin| stdin.ends_with("prompt.md")),
        "{described}"
    );
    assert!(sandbox.pids().is_empty());
    assert!(!sandbox.work().join(".agent").exists() && !sandbox.path("state").exists());
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let output = Sandbox::new().ralph(&["completions", shell]).exits_with(0);
        assert!(output.stdout.contains("ralph"), "{shell}");
    }
}
