//! Errors as a user meets them, word for word.

use std::fs;

use crate::sandbox::{Running, Sandbox};

/// What `ralph` prints when it refuses, with its exit code.
fn refusal(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let told = sandbox.ralph(arguments);
    assert_eq!(told.stdout, "", "a refusal says nothing on stdout");
    assert!(
        !sandbox.work().join(".agent").exists(),
        "a refusal leaves nothing behind"
    );
    format!(
        "{}[exit {}]",
        sandbox.without_places(&told.stderr),
        told.code().unwrap_or(-1)
    )
}

#[test]
fn no_agent_at_all() {
    insta::assert_snapshot!(refusal(&Sandbox::new(), &["run", "-p", "x"]), @"
    error: no usable agent was found
      these were looked for:
        claude    not found in PATH  (https://docs.claude.com/en/docs/claude-code)
        kiro      not found in PATH  (https://kiro.dev/docs/cli)
        gemini    not found in PATH  (https://github.com/google-gemini/gemini-cli)
        codex     not found in PATH  (https://github.com/openai/codex)
        amp       not found in PATH  (https://ampcode.com/manual)
        opencode  not found in PATH  (https://opencode.ai/docs)
        copilot   not found in PATH  (https://docs.github.com/copilot/how-tos/copilot-cli)
        cursor    not found in PATH  (https://cursor.com/cli)
      install one of them, or bring your own: ralph run --agent-cmd 'my-agent --headless'
      to see ralph work without any agent: ralph demo
    [exit 4]
    ");
}

#[test]
fn no_agent_that_works() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_agent("gemini")
        .playing("version", "exit 3\n")
        .with_file("ralph.yml", "adapters:\n  gemini:\n    enabled: false\n");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x"]), @"
    error: no usable agent was found
      these were looked for:
        claude    `--version` ended with exit code 3  (https://docs.claude.com/en/docs/claude-code)
        kiro      not found in PATH  (https://kiro.dev/docs/cli)
        gemini    disabled in the configuration  (https://github.com/google-gemini/gemini-cli)
        codex     not found in PATH  (https://github.com/openai/codex)
        amp       not found in PATH  (https://ampcode.com/manual)
        opencode  not found in PATH  (https://opencode.ai/docs)
        copilot   not found in PATH  (https://docs.github.com/copilot/how-tos/copilot-cli)
        cursor    not found in PATH  (https://cursor.com/cli)
      install one of them, or bring your own: ralph run --agent-cmd 'my-agent --headless'
      to see ralph work without any agent: ralph demo
    [exit 4]
    ");
}

#[test]
fn a_named_agent_that_is_missing() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "cli:\n  backend: gemini\n");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x"]), @"
    error: Gemini CLI was requested (backend: gemini) but `gemini` is not in PATH
      install it: https://github.com/google-gemini/gemini-cli
      or use another agent: ralph agents lists what is there
    [exit 4]
    ");
}

#[test]
fn a_named_agent_that_is_disabled() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "adapters:\n  claude:\n    enabled: false\n");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x", "--agent", "claude"]), @"
    error: claude was requested but is disabled (adapters.claude.enabled: false)
      remove `enabled: false` from adapters.claude, or choose another agent
    [exit 2]
    ");
}

#[test]
fn a_misspelt_agent() {
    insta::assert_snapshot!(refusal(&Sandbox::new(), &["run", "-p", "x", "--agent", "cluade"]), @"
    error: unknown agent `cluade`
      did you mean `claude`?
      known agents: auto, claude, kiro, gemini, codex, amp, opencode, copilot, cursor, custom
    [exit 2]
    ");
}

#[test]
fn a_custom_agent_without_a_command() {
    let sandbox = Sandbox::new().with_file("ralph.yml", "cli:\n  backend: custom\n");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x"]), @"
    error: backend: custom needs a command
      name it in ralph.yml: cli.command
      or on the command line: --agent-cmd 'my-agent --headless'
    [exit 2]
    ");
}

#[test]
fn a_custom_command_that_does_not_exist() {
    insta::assert_snapshot!(refusal(&Sandbox::new(), &["run", "-p", "x", "--agent-cmd", "my-ai --headless"]), @"
    error: the custom command `my-ai` was not found
      check its spelling, or give its full path
    [exit 4]
    ");
    insta::assert_snapshot!(refusal(&Sandbox::new(), &["run", "-p", "x", "--agent-cmd", "my-ai 'half"]), @r#"
    error: --agent-cmd has a single quote that is never closed
      quote it as for a shell: --agent-cmd 'my-agent --system "be brief"'
    [exit 2]
    "#);
}

#[test]
fn no_prompt_an_empty_one_and_a_missing_file() {
    let sandbox = Sandbox::new().with_agent("claude");
    insta::assert_snapshot!(refusal(&sandbox, &["run"]), @r#"
    error: there is no prompt
      give it on the command line: ralph run -p "make the tests pass"
      or in a file: write PROMPT.md here, or name one with -P FILE
      or in ralph.yml: event_loop.prompt, event_loop.prompt_file
    [exit 2]
    "#);
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-P", "TASK.md"]), @"
    error: cannot read the prompt file [WORKSPACE]/TASK.md: No such file or directory (os error 2)
      check the path, or give the prompt with -p TEXT
    [exit 2]
    ");
    let sandbox = sandbox.with_file("PROMPT.md", " \n\n");
    insta::assert_snapshot!(refusal(&sandbox, &["run"]), @"
    error: the prompt file [WORKSPACE]/PROMPT.md is empty
      say what the agent is to do
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
    error: `event_loop.max_iteration` is not a known key
     --> [WORKSPACE]/ralph.yml:2:3
      |
    2 |   max_iteration: 5
      |   ^^^^^^^^^^^^^
      |
      = help: did you mean `max_iterations`?
    [exit 2]
    ");
    insta::assert_snapshot!(refused("adapters:\n  claud:\n    enabled: false\n"), @"
    error: `adapters.claud` is not a known agent
     --> [WORKSPACE]/ralph.yml:2:3
      |
    2 |   claud:
      |   ^^^^^
      |
      = help: did you mean `claude`?
    [exit 2]
    ");
    insta::assert_snapshot!(refused("event_loop:\n  max_iterations: many\n"), @"
    error: `event_loop.max_iterations` must be a whole number, but is `many`
     --> [WORKSPACE]/ralph.yml:2:19
      |
    2 |   max_iterations: many
      |                   ^^^^
      correct the line; what every key takes: ralph schema config
    [exit 2]
    ");
    insta::assert_snapshot!(refused("cli:\n  prompt_mode: pipe\n"), @"
    error: `cli.prompt_mode` must be `arg` or `stdin`, but is `pipe`
     --> [WORKSPACE]/ralph.yml:2:16
      |
    2 |   prompt_mode: pipe
      |                ^^^^
      correct the line; what every key takes: ralph schema config
    [exit 2]
    ");
    insta::assert_snapshot!(refused("cli: [\n"), @"
    error: `cli` must be a section of `key: value` lines, but is a list
     --> [WORKSPACE]/ralph.yml:1:6
      |
    1 | cli: [
      |      ^
      correct the line; what every key takes: ralph schema config
    [exit 2]
    ");
    let sandbox = Sandbox::new().with_agent("claude");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x", "--config", "other.yml"]), @"
    error: configuration file [WORKSPACE]/other.yml does not exist
      check its path, or leave it out
    [exit 2]
    ");
}

#[test]
fn a_mistake_on_the_command_line_and_in_the_environment() {
    let sandbox = Sandbox::new().with_agent("claude");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x", "-n", "0"]), @"
    error: `event_loop.max_iterations` on the command line must be at least 1, but is `0`
      = help: leave it out for the default
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "-p", "x", "--transcript", "cluade"]), @"
    error: `cli.transcript` on the command line must be a transcript format, but is `cluade`
      = help: did you mean `claude`?
    [exit 2]
    ");
    let mut command = sandbox.command(&["run", "-p", "x"]);
    let told = Running::start(command.env("RALPH_MAX_ITERATIONS", "ten"))
        .finish()
        .exits_with(2);
    insta::assert_snapshot!(told.stderr, @"
    error: environment variable `RALPH_MAX_ITERATIONS` must be a whole number, but is `ten`
      correct it, or: unset RALPH_MAX_ITERATIONS
    ");
}

#[test]
fn a_prompt_over_the_agents_own_limit_is_refused_before_it_starts() {
    let sandbox = Sandbox::new()
        .with_agent("codex")
        .with_file("PROMPT.md", &"x".repeat(1_048_577))
        .with_file("ralph.yml", "event_loop:\n  max_consecutive_failures: 1\n");
    let told = sandbox.ralph(&["run"]).exits_with(2);
    insta::assert_snapshot!(sandbox.without_places(&told.stderr), @"
    error: the prompt is too long for OpenAI Codex: 1048826 characters, and the limit is 1048576 characters
      shorten it: put the details in files, and let the prompt name them
    ");
    assert!(sandbox.pids().is_empty(), "nothing was started");
}

#[test]
fn a_working_directory_that_is_gone() {
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
    let told = Running::start(&mut command).finish().exits_with(1);
    insta::assert_snapshot!(sandbox.without_places(&told.stderr), @"
    error: the working directory [WORKSPACE]/gone is not accessible: No such file or directory (os error 2)
      change to a directory that exists, and that you may enter
    ");
}

#[test]
fn an_unwritable_workspace() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file(".agent", "a file in the way");
    let told = sandbox.ralph(&["run", "-p", "x"]).exits_with(1);
    insta::assert_snapshot!(sandbox.without_places(&told.stderr), @"
    error: cannot create [WORKSPACE]/.agent/runs: Not a directory (os error 20)
      check free space and permissions; what was written before is still there
    ");
}
