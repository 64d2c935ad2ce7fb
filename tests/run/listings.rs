//! `agents`, `doctor`, `--dry-run`, completions: what they say, for people and for programs.

use serde_json::Value;

use crate::cli::steady;
use crate::sandbox::Sandbox;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn agents_lists_what_is_there_and_how_each_would_be_called() {
    let sandbox = Sandbox::new().with_agent("codex");
    let told = sandbox.ralph(&["agents"]).exits_with(0);
    insta::assert_snapshot!(sandbox.without_places(&told.stdout), @"
       AGENT     STATUS             TRANSCRIPT  TELLS
       claude    not found in PATH  claude      roles tools usage sessions prompt
       kiro      not found in PATH  plain       text only
       gemini    not found in PATH  gemini      roles tools usage sessions prompt
    →  codex     fake-agent 9.9.9   codex       roles tools usage sessions prompt
       amp       not found in PATH  amp         roles tools usage sessions prompt
       opencode  not found in PATH  opencode    roles tools usage sessions
       copilot   not found in PATH  copilot     roles tools usage sessions prompt
       cursor    not found in PATH  cursor      roles tools usage sessions prompt

    How each is called:
      claude --dangerously-skip-permissions --output-format stream-json --verbose -p PROMPT
      kiro-cli chat --no-interactive --trust-all-tools PROMPT   (from its documentation, not tested)
      gemini --yolo --skip-trust -o stream-json -p PROMPT
      codex exec --dangerously-bypass-approvals-and-sandbox --json PROMPT
      amp --dangerously-allow-all --stream-json -x PROMPT   (from its documentation, not tested)
      opencode run --auto --format json --thinking   < PROMPT
      copilot --allow-all --no-ask-user --output-format json --usage-output-file FILE -p PROMPT
      cursor-agent -p --force --trust --output-format stream-json PROMPT   (from its documentation, not tested)
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
fn a_program_that_is_too_old_is_told_of() {
    let sandbox = Sandbox::new()
        .with_agent("gemini")
        .playing("version", "say 0.1.5\n");
    let told = sandbox.ralph(&["agents"]).exits_with(0);
    assert!(told.stdout.contains("0.1.5; needs 0."), "{}", told.stdout);
    let rows = json(&sandbox.ralph(&["agents", "--json"]).exits_with(0).stdout);
    let outdated = |row: &&Value| row["outdated"] == true;
    let outdated: Vec<&Value> = rows.as_array().expect("rows").iter().filter(outdated).collect();
    assert_eq!(
        (outdated.len(), &outdated[0]["name"]),
        (1, &Value::from("gemini"))
    );
    let told = sandbox.ralph(&["doctor"]).exits_with(0);
    assert!(
        told.stdout.contains("! gemini           0.1.5; ralph needs 0."),
        "{}",
        told.stdout
    );
}

#[test]
fn doctor_is_content_with_one_agent_and_says_what_is_broken_without() {
    let sandbox = Sandbox::new().with_agent("claude");
    let told = sandbox.ralph(&["doctor"]).exits_with(0);
    insta::assert_snapshot!(steady(&sandbox, &told.stdout), @"
    configuration
      · ralph.yml        none found; the defaults are used

    agents
      ✓ claude           fake-agent 9.9.9
      · kiro             not found in PATH
      · gemini           not found in PATH
      · codex            not found in PATH
      · amp              not found in PATH
      · opencode         not found in PATH
      · copilot          not found in PATH
      · cursor           not found in PATH
      ✓ an agent to run  claude can be used

    trust
      ✓ commands         nothing here has ralph run anything but the agent

    workspace
      ✓ directory        [WORKSPACE]
      · git              not a repository
      ✓ lock             free

    terminal
      · screen           none: runs are told line by line
      · locale           not set: signs may be shown wrongly

    disk
      ✓ free space       [VARIES]
      ✓ runs kept        0 runs, 0 B

    clock
      ✓ time             [VARIES]
    ");
    let told = Sandbox::new().ralph(&["doctor"]).exits_with(1);
    assert!(told.stdout.contains("✗ an agent to run"), "{}", told.stdout);
}

#[test]
fn doctor_shows_a_mistake_in_the_configuration() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "cli:\n  bakend: claude\n");
    let told = sandbox.ralph(&["doctor"]).exits_with(1);
    insta::assert_snapshot!(steady(&sandbox, &told.stdout), @"
    configuration
      ✗ ralph.yml        `cli.bakend` is not a known key
           --> [WORKSPACE]/ralph.yml:2:3
            |
          2 |   bakend: claude
            |   ^^^^^^
            |
            = help: did you mean `backend`?
                         → correct the file; `ralph doctor` tells when it is right

    agents
      ✓ claude           fake-agent 9.9.9
      · kiro             not found in PATH
      · gemini           not found in PATH
      · codex            not found in PATH
      · amp              not found in PATH
      · opencode         not found in PATH
      · copilot          not found in PATH
      · cursor           not found in PATH
      ✓ an agent to run  claude can be used

    workspace
      ✓ directory        [WORKSPACE]
      · git              not a repository
      ✓ lock             free

    terminal
      · screen           none: runs are told line by line
      · locale           not set: signs may be shown wrongly

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

/// Root, and only root, is given one variable more.
fn without_what_root_needs(shown: &str) -> String {
    let of_root = "IS_SANDBOX=1\n             ";
    assert_eq!(shown.contains(of_root), rustix::process::geteuid().is_root());
    shown.replace(of_root, "")
}

#[test]
fn a_dry_run_shows_the_exact_call_and_starts_nothing() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "gates:\n  - {name: t, run: make test}\n");
    let call = "run|--dry-run|-p|fix it|--agent|claude|--model|opus|--|--add-dir|..";
    let call: Vec<&str> = call.split('|').collect();
    let told = sandbox.ralph(&call).exits_with(0);
    let shown = sandbox.without_places(&told.stdout);
    insta::assert_snapshot!(without_what_root_needs(&shown), @r"
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
    limits       100 iterations, runtime 14400 s, 5 failures in a row, 5 without progress, wall none, idle 600 s, idle in a tool 3600 s
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
    assert!(!sandbox.work().join(".agent").exists());
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let told = Sandbox::new().ralph(&["completions", shell]).exits_with(0);
        assert!(told.stdout.contains("ralph"), "{shell}");
    }
}
