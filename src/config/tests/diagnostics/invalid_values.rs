//! Values that are well-formed but invalid.

use super::*;

#[test]
fn gate_without_a_command() {
    insta::assert_snapshot!(error_for("gates:\n  - name: tests\n"), @r"
    `gates[0]`: missing required key `run`
     --> /tmp/x/project/ralph.yml:2:5
      |
    2 |   - name: tests
      |     ^
      |
      = help: add `run: …`, or `agent: …` for a review
    ");
}

#[test]
fn gate_with_an_empty_command() {
    insta::assert_snapshot!(error_for("gates:\n  - name: tests\n    run: \"\"\n"), @r#"
    `gates[0].run`: must not be empty
     --> /tmp/x/project/ralph.yml:3:10
      |
    3 |     run: ""
      |          ^^
    "#);
}

#[test]
fn duplicate_gate_name() {
    insta::assert_snapshot!(error_for("gates:\n  - {name: tests, run: a}\n  - {name: lint, run: b}\n  - {name: tests, run: c}\n"), @r"
    `gates[2].name`: duplicate name `tests`, already used by `gates[0]`
     --> /tmp/x/project/ralph.yml:4:12
      |
    4 |   - {name: tests, run: c}
      |            ^^^^^
      |
      = help: rename one of the two
    ");
}

#[test]
fn prompt_and_prompt_file() {
    insta::assert_snapshot!(error_for("event_loop:\n  prompt: do it\n  prompt_file: PROMPT.md\n"), @r"
    `event_loop.prompt_file`: cannot be combined with `event_loop.prompt`
     --> /tmp/x/project/ralph.yml:3:3
      |
    3 |   prompt_file: PROMPT.md
      |   ^^^^^^^^^^^
      |
      = help: remove one of the two
    ");
}

#[test]
fn empty_marker() {
    insta::assert_snapshot!(error_for("event_loop:\n  completion_promise: [DONE, \" \"]\n"), @r#"
    `event_loop.completion_promise[1]`: must not be empty
     --> /tmp/x/project/ralph.yml:2:30
      |
    2 |   completion_promise: [DONE, " "]
      |                              ^^^
    "#);
}

#[test]
fn marker_on_two_lines() {
    insta::assert_snapshot!(error_for("event_loop:\n  completion_promise: |\n    ALL\n    DONE\n"), @r"
    `event_loop.completion_promise[0]`: expected one line, found several
     --> /tmp/x/project/ralph.yml:3:5
      |
    3 |     ALL
      |     ^^^
      |
      = help: a completion marker must fit on one line
    ");
}

#[test]
fn empty_command() {
    insta::assert_snapshot!(error_for("cli:\n  command: ''\n"), @r"
    `cli.command`: must not be empty
     --> /tmp/x/project/ralph.yml:2:12
      |
    2 |   command: ''
      |            ^^
    ");
}

#[test]
fn extra_args_in_a_file() {
    insta::assert_snapshot!(error_for("cli:\n  extra_args: [x]\n"), @"
    `cli.extra_args`: unknown key
     --> /tmp/x/project/ralph.yml:2:3
      |
    2 |   extra_args: [x]
      |   ^^^^^^^^^^
      |
      = help: expected one of: backend, command, args, prompt_mode, prompt_flag, default_mode, idle_timeout_secs, transcript, jq_filter, pty_mode, driver_dir, claude_command, claude_args, model, fallback, fallback_after
    ");
}

#[test]
fn error_in_an_anchor() {
    insta::assert_snapshot!(error_for("adapters:\n  claude: &all\n    timeout: 5 min\n  codex: *all\n"), @r"
    `adapters.claude.timeout`: expected a duration such as `90s`, `5m`, `1h30m`, or a number of seconds, found `5 min`
     --> /tmp/x/project/ralph.yml:3:14
      |
    3 |     timeout: 5 min
      |              ^^^^^
      |
      = help: write `5m`
    ");
}

#[test]
fn alias_in_the_wrong_section() {
    insta::assert_snapshot!(error_for("cli: &all\n  model: opus\nevent_loop: *all\n"), @r"
    `event_loop.model`: unknown key
     --> /tmp/x/project/ralph.yml:3:13
      |
    3 | event_loop: *all
      |             ^^^^
      |
      = help: `model` belongs under `cli:`
    ");
}

#[test]
fn alias_of_the_wrong_type() {
    insta::assert_snapshot!(error_for("cli:\n  args: &all [a]\n  model: *all\n"), @r#"
    `cli.model`: expected a string, found `*all`
     --> /tmp/x/project/ralph.yml:3:10
      |
    3 |   model: *all
      |          ^^^^
      |
      = help: quote the string: `"*all"`
    "#);
}

#[test]
fn blank_topic_of_a_hat() {
    insta::assert_snapshot!(error_for("hats:\n  builder:\n    triggers: [plan.ready, \" \"]\n"), @r#"
    `hats.builder.triggers[1]`: must not be empty
     --> /tmp/x/project/ralph.yml:3:28
      |
    3 |     triggers: [plan.ready, " "]
      |                            ^^^
    "#);
}

#[test]
fn invalid_path_pattern() {
    insta::assert_snapshot!(error_for("event_loop:\n  allowed_paths: [\"src/**\", \"a[b\"]\n"), @r#"
    `event_loop.allowed_paths[1]`: invalid path pattern `a[b`: unclosed character class; missing ']'
     --> /tmp/x/project/ralph.yml:2:29
      |
    2 |   allowed_paths: ["src/**", "a[b"]
      |                             ^^^^^
    "#);
}

#[test]
fn path_pattern_outside_the_workspace() {
    insta::assert_snapshot!(error_for("event_loop:\n  allowed_paths:\n    - ../other/**\n"), @"
    `event_loop.allowed_paths[0]`: expected a path relative to the workspace, without `.` or `..`, found `../other/**`
     --> /tmp/x/project/ralph.yml:3:7
      |
    3 |     - ../other/**
      |       ^^^^^^^^^^^
      |
      = help: write for example `src/**` or `docs/*.md`
    ");
}

#[test]
fn path_patterns_that_are_not_a_list() {
    insta::assert_snapshot!(error_for("event_loop:\n  allowed_paths: src\n"), @r#"
    `event_loop.allowed_paths`: expected a list, found `src`
     --> /tmp/x/project/ralph.yml:2:18
      |
    2 |   allowed_paths: src
      |                  ^^^
      |
      = help: write `["src"]`, or one `- item` per line
    "#);
}

#[test]
fn unknown_hook() {
    insta::assert_snapshot!(error_for("hooks:\n  on_failure: mail me\n"), @"
    `hooks.on_failure`: unknown key
     --> /tmp/x/project/ralph.yml:2:3
      |
    2 |   on_failure: mail me
      |   ^^^^^^^^^^
      |
      = help: did you mean `on_fail`?
    ");
}

#[test]
fn hook_without_a_command_and_with_a_zero_timeout() {
    insta::assert_snapshot!(error_for("hooks:\n  on_fail: ' '\n"), @"
    `hooks.on_fail`: must not be empty
     --> /tmp/x/project/ralph.yml:2:12
      |
    2 |   on_fail: ' '
      |            ^^^
    ");
    insta::assert_snapshot!(error_for("hooks:\n  timeout: 0\n"), @"
    `hooks.timeout`: expected at least 1, found `0`
     --> /tmp/x/project/ralph.yml:2:12
      |
    2 |   timeout: 0
      |            ^
      |
      = help: omit it to use the default
    ");
}
