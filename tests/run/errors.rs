//! Snapshots of error messages.

use std::fs;

use crate::sandbox::{Running, Sandbox};

/// Returns the error message and the exit code of a refused command.
fn refusal(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.ralph(arguments);
    assert_eq!(output.stdout, "", "a refusal prints nothing on stdout");
    assert!(
        !sandbox.work().join(".agent").exists() && !sandbox.path("state").exists(),
        "a refusal creates no files"
    );
    format!(
        "{}[exit {}]",
        sandbox.redact_paths(&output.stderr),
        output.code().unwrap_or(-1)
    )
}

#[test]
fn no_agent_at_all() {
    insta::assert_snapshot!(refusal(&Sandbox::new(), &["run", "-p", "x"]), @"
    error: no usable agent found
      claude    not found in PATH  (https://docs.claude.com/en/docs/claude-code)
      kiro      not found in PATH  (https://kiro.dev/docs/cli)
      agy       not found in PATH  (https://antigravity.google/docs/cli/overview)
      gemini    not found in PATH  (https://github.com/google-gemini/gemini-cli)
      codex     not found in PATH  (https://github.com/openai/codex)
      amp       not found in PATH  (https://ampcode.com/manual)
      opencode  not found in PATH  (https://opencode.ai/docs)
      copilot   not found in PATH  (https://docs.github.com/copilot/how-tos/copilot-cli)
      cursor    not found in PATH  (https://cursor.com/cli)
      qwen      not found in PATH  (https://qwenlm.github.io/qwen-code-docs)
      pi        not found in PATH  (https://pi.dev/docs)
      kimi      not found in PATH  (https://www.kimi.com/code/docs)
      vibe      not found in PATH  (https://docs.mistral.ai/mistral-vibe)
      cline     not found in PATH  (https://docs.cline.bot/cline-cli)
    hint: install one of them, or use your own: ralph run --agent-cmd 'my-agent --headless'
    hint: to try ralph without an agent: ralph demo
    [exit 4]
    ");
}

#[test]
fn no_working_agent() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_agent("gemini")
        .with_script("version", "exit 3\n")
        .with_file("ralph.yml", "adapters:\n  gemini:\n    enabled: false\n");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x"]), @"
    error: no usable agent found
      claude    `--version` failed with exit code 3  (https://docs.claude.com/en/docs/claude-code)
      kiro      not found in PATH  (https://kiro.dev/docs/cli)
      agy       not found in PATH  (https://antigravity.google/docs/cli/overview)
      gemini    disabled in the configuration  (https://github.com/google-gemini/gemini-cli)
      codex     not found in PATH  (https://github.com/openai/codex)
      amp       not found in PATH  (https://ampcode.com/manual)
      opencode  not found in PATH  (https://opencode.ai/docs)
      copilot   not found in PATH  (https://docs.github.com/copilot/how-tos/copilot-cli)
      cursor    not found in PATH  (https://cursor.com/cli)
      qwen      not found in PATH  (https://qwenlm.github.io/qwen-code-docs)
      pi        not found in PATH  (https://pi.dev/docs)
      kimi      not found in PATH  (https://www.kimi.com/code/docs)
      vibe      not found in PATH  (https://docs.mistral.ai/mistral-vibe)
      cline     not found in PATH  (https://docs.cline.bot/cline-cli)
    hint: install one of them, or use your own: ralph run --agent-cmd 'my-agent --headless'
    hint: to try ralph without an agent: ralph demo
    [exit 4]
    ");
}

#[test]
fn a_requested_agent_that_is_missing() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "cli:\n  backend: gemini\n");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x"]), @"
    error: cannot use Gemini CLI (backend: gemini): `gemini` not found in PATH
    hint: install it: https://github.com/google-gemini/gemini-cli
    hint: to list other agents: ralph agents
    [exit 4]
    ");
}

#[test]
fn a_requested_agent_that_is_disabled() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "adapters:\n  claude:\n    enabled: false\n");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x", "--agent", "claude"]), @"
    error: agent `claude` is disabled (adapters.claude.enabled: false)
    hint: remove `enabled: false` from adapters.claude, or choose another agent
    [exit 2]
    ");
}

#[test]
fn a_misspelt_agent() {
    insta::assert_snapshot!(refusal(&Sandbox::new(), &["run", "-p", "x", "--agent", "cluade"]), @"
    error: unknown agent `cluade`
    hint: did you mean `claude`?
    hint: known agents: auto, claude, kiro, agy, gemini, codex, amp, opencode, copilot, cursor, qwen, pi, kimi, vibe, cline, custom, acp
    [exit 2]
    ");
}

#[test]
fn a_custom_agent_without_a_command() {
    let sandbox = Sandbox::new().with_file("ralph.yml", "cli:\n  backend: custom\n");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x"]), @"
    error: `backend: custom` requires a command
    hint: set cli.command in ralph.yml, or pass it: --agent-cmd 'my-agent --headless'
    [exit 2]
    ");
}

#[test]
fn a_custom_command_that_does_not_exist() {
    insta::assert_snapshot!(refusal(&Sandbox::new(), &["run", "-p", "x", "--agent-cmd", "my-ai --headless"]), @"
    error: custom command `my-ai` not found
    hint: check the spelling, or use its full path
    [exit 4]
    ");
    insta::assert_snapshot!(refusal(&Sandbox::new(), &["run", "-p", "x", "--agent-cmd", "my-ai 'half"]), @r#"
    error: --agent-cmd: unclosed single quote
    hint: quote it as in a shell: --agent-cmd 'my-agent --system "be brief"'
    [exit 2]
    "#);
}

#[test]
fn no_prompt_an_empty_one_and_a_missing_file() {
    let sandbox = Sandbox::new().with_agent("claude");
    insta::assert_snapshot!(refusal(&sandbox, &["run"]), @r#"
    error: no prompt given
    hint: pass it on the command line: ralph run -p "make the tests pass"
    hint: write it to PROMPT.md, or pass another file with -P FILE
    hint: set event_loop.prompt or event_loop.prompt_file in ralph.yml
    [exit 2]
    "#);
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-P", "TASK.md"]), @"
    error: cannot read the prompt file [WORKSPACE]/TASK.md: No such file or directory (os error 2)
    hint: check the path, or pass the prompt with -p TEXT
    [exit 2]
    ");
    let sandbox = sandbox.with_file("PROMPT.md", " \n\n");
    insta::assert_snapshot!(refusal(&sandbox, &["run"]), @"
    error: the prompt file [WORKSPACE]/PROMPT.md is empty
    hint: describe the task for the agent
    [exit 2]
    ");
}

#[test]
fn mistakes_in_the_configuration() {
    let refused = |text: &str| {
        let sandbox = Sandbox::new().with_agent("claude").with_file("ralph.yml", text);
        refusal(&sandbox, &["run", "-p", "x"])
    };
    insta::assert_snapshot!(refused("event_loop:\n  max_iteration: 5\n"), @"
    error: `event_loop.max_iteration`: unknown key
     --> [WORKSPACE]/ralph.yml:2:3
      |
    2 |   max_iteration: 5
      |   ^^^^^^^^^^^^^
      |
      = help: did you mean `max_iterations`?
    [exit 2]
    ");
    insta::assert_snapshot!(refused("adapters:\n  claud:\n    enabled: false\n"), @"
    error: `adapters.claud`: unknown agent
     --> [WORKSPACE]/ralph.yml:2:3
      |
    2 |   claud:
      |   ^^^^^
      |
      = help: did you mean `claude`?
    [exit 2]
    ");
    insta::assert_snapshot!(refused("event_loop:\n  max_iterations: many\n"), @"
    error: `event_loop.max_iterations`: expected an integer, found `many`
     --> [WORKSPACE]/ralph.yml:2:19
      |
    2 |   max_iterations: many
      |                   ^^^^
    hint: fix the line; for all keys and values: ralph schema config
    [exit 2]
    ");
    insta::assert_snapshot!(refused("cli:\n  prompt_mode: pipe\n"), @"
    error: `cli.prompt_mode`: expected `arg` or `stdin`, found `pipe`
     --> [WORKSPACE]/ralph.yml:2:16
      |
    2 |   prompt_mode: pipe
      |                ^^^^
    hint: fix the line; for all keys and values: ralph schema config
    [exit 2]
    ");
    insta::assert_snapshot!(refused("cli: [\n"), @"
    error: `cli`: expected a mapping, found a list
     --> [WORKSPACE]/ralph.yml:1:6
      |
    1 | cli: [
      |      ^
      |
      = help: write `key: value` lines
    [exit 2]
    ");
    let sandbox = Sandbox::new().with_agent("claude");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x", "--config", "other.yml"]), @"
    error: configuration file [WORKSPACE]/other.yml does not exist
    hint: check the path, or remove the option
    [exit 2]
    ");
}

#[test]
fn a_mistake_on_the_command_line_and_in_the_environment() {
    let sandbox = Sandbox::new().with_agent("claude");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x", "-n", "0"]), @"
    error: `event_loop.max_iterations` (command line): expected at least 1, found `0`
      = help: omit it to use the default
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x", "--transcript", "cluade"]), @"
    error: `cli.transcript` (command line): expected a transcript format, found `cluade`
      = help: did you mean `claude`?
    [exit 2]
    ");
    let mut command = sandbox.command(&["run", "-p", "x"]);
    let output = Running::start(command.env("RALPH_MAX_ITERATIONS", "ten"))
        .finish()
        .exits_with(2);
    insta::assert_snapshot!(output.stderr, @"
    error: environment variable `RALPH_MAX_ITERATIONS`: expected an integer, found `ten`
    hint: fix it, or: unset RALPH_MAX_ITERATIONS
    ");
}

#[test]
fn a_prompt_over_the_agents_limit_is_refused_before_it_starts() {
    let sandbox = Sandbox::new()
        .with_agent("codex")
        .with_file("PROMPT.md", &"x".repeat(1_048_577))
        .with_file("ralph.yml", "event_loop:\n  max_consecutive_failures: 1\n");
    let output = sandbox.ralph(&["run"]).exits_with(2);
    insta::assert_snapshot!(sandbox.redact_paths(&output.stderr), @"
    error: prompt too long for OpenAI Codex: 1048826 characters (limit: 1048576 characters)
    hint: shorten it: move details to files, and refer to them in the prompt
    ");
    assert!(sandbox.pids().is_empty(), "nothing was started");
}

#[test]
fn a_removed_working_directory() {
    let sandbox = Sandbox::new().with_agent("claude");
    let gone = sandbox.work().join("gone");
    fs::create_dir(&gone).expect("a directory");
    // The directory is removed between the start of the shell and the start of ralph.
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", "rmdir \"$PWD\" && exec \"$RALPH\" run -p x"])
        .current_dir(&gone)
        .env("RALPH", env!("CARGO_BIN_EXE_ralph"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let output = Running::start(&mut command).finish().exits_with(1);
    insta::assert_snapshot!(sandbox.redact_paths(&output.stderr), @"
    error: cannot access the working directory [WORKSPACE]/gone: No such file or directory (os error 2)
    hint: change to an existing directory that you may enter
    ");
}

#[test]
fn an_unwritable_state_directory() {
    let sandbox = Sandbox::new().with_agent("claude");
    fs::write(sandbox.path("state"), "a file in the way").expect("a file");
    let output = sandbox.ralph(&["run", "-p", "x"]).exits_with(1);
    insta::assert_snapshot!(sandbox.redact_paths(&output.stderr), @"
    warning: no gates are configured, so ralph cannot verify that the work is done (see docs/gates.md)
    error: cannot use the state directory [SANDBOX]/state: File exists (os error 17)
    hint: to store runs elsewhere, set RALPH_STATE_DIR to the absolute path of a writable directory
    ");
}
