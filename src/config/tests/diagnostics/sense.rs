//! What can be read and makes no sense.

use super::*;

#[test]
fn gate_without_a_command() {
    insta::assert_snapshot!(complaint_about("gates:\n  - name: tests\n"), @r"
    `gates[0]` has no `run`
     --> /tmp/x/project/ralph.yml:2:5
      |
    2 |   - name: tests
      |     ^^^^
    ");
}

#[test]
fn gate_with_an_empty_command() {
    insta::assert_snapshot!(complaint_about("gates:\n  - name: tests\n    run: \"\"\n"), @r#"
    `gates[0].run` must not be empty
     --> /tmp/x/project/ralph.yml:3:10
      |
    3 |     run: ""
      |          ^^
    "#);
}

#[test]
fn duplicate_gate_name() {
    insta::assert_snapshot!(complaint_about("gates:\n  - {name: tests, run: a}\n  - {name: lint, run: b}\n  - {name: tests, run: c}\n"), @r"
    `gates[2].name` must be unique, but `tests` is also the name of `gates[0]`
     --> /tmp/x/project/ralph.yml:4:12
      |
    4 |   - {name: tests, run: c}
      |            ^^^^^
    ");
}

#[test]
fn prompt_and_prompt_file() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  prompt: do it\n  prompt_file: PROMPT.md\n"), @r"
    `event_loop.prompt_file` cannot be given together with `event_loop.prompt`
     --> /tmp/x/project/ralph.yml:3:3
      |
    3 |   prompt_file: PROMPT.md
      |   ^^^^^^^^^^^
      |
      = help: keep one of the two
    ");
}

#[test]
fn empty_marker() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  completion_promise: [DONE, \" \"]\n"), @r#"
    `event_loop.completion_promise[1]` must not be empty
     --> /tmp/x/project/ralph.yml:2:30
      |
    2 |   completion_promise: [DONE, " "]
      |                              ^^^
    "#);
}

#[test]
fn marker_on_two_lines() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  completion_promise: |\n    ALL\n    DONE\n"), @r"
    `event_loop.completion_promise[0]` must fit on one line, because an agent says it on one line
     --> /tmp/x/project/ralph.yml:3:5
      |
    3 |     ALL
      |     ^^^
    ");
}

#[test]
fn empty_command() {
    insta::assert_snapshot!(complaint_about("cli:\n  command: ''\n"), @r"
    `cli.command` must not be empty
     --> /tmp/x/project/ralph.yml:2:12
      |
    2 |   command: ''
      |            ^^
    ");
}

#[test]
fn extra_args_in_a_file() {
    insta::assert_snapshot!(complaint_about("cli:\n  extra_args: [x]\n"), @"
    `cli.extra_args` is not a known key
     --> /tmp/x/project/ralph.yml:2:3
      |
    2 |   extra_args: [x]
      |   ^^^^^^^^^^
      |
      = help: known here: backend, command, args, prompt_mode, prompt_flag, default_mode, idle_timeout_secs, transcript, jq_filter, pty_mode, driver_dir, claude_command, claude_args, model
    ");
}

#[test]
fn mistake_behind_an_alias() {
    insta::assert_snapshot!(complaint_about("adapters:\n  claude: &all\n    timeout: 5m\n  codex: *all\n"), @r"
    `adapters.claude.timeout` must be a whole number of seconds, but is `5m`
     --> /tmp/x/project/ralph.yml:3:14
      |
    3 |     timeout: 5m
      |              ^^
      |
      = help: times are given in seconds, without a unit: write `300`
    ");
}

#[test]
fn alias_in_the_wrong_place() {
    insta::assert_snapshot!(complaint_about("cli: &all\n  model: opus\nevent_loop: *all\n"), @r"
    `event_loop.model` is not a known key
     --> /tmp/x/project/ralph.yml:3:13
      |
    3 | event_loop: *all
      |             ^^^^
      |
      = help: `model` belongs under `cli:`
    ");
}

#[test]
fn alias_of_the_wrong_kind() {
    insta::assert_snapshot!(complaint_about("cli:\n  args: &all [a]\n  model: *all\n"), @r#"
    `cli.model` must be text, but is `*all`
     --> /tmp/x/project/ralph.yml:3:10
      |
    3 |   model: *all
      |          ^^^^
      |
      = help: to mean the text, put it in quotes: `"*all"`
    "#);
}

#[test]
fn blank_topic_of_a_hat() {
    insta::assert_snapshot!(complaint_about("hats:\n  builder:\n    triggers: [plan.ready, \" \"]\n"), @r#"
    `hats.builder.triggers[1]` must not be empty
     --> /tmp/x/project/ralph.yml:3:28
      |
    3 |     triggers: [plan.ready, " "]
      |                            ^^^
    "#);
}

#[test]
fn a_pattern_of_paths_that_is_none() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  allowed_paths: [\"src/**\", \"a[b\"]\n"), @r#"
    `event_loop.allowed_paths[1]` must be a pattern of paths, but `a[b` is none: unclosed character class; missing ']'
     --> /tmp/x/project/ralph.yml:2:29
      |
    2 |   allowed_paths: ["src/**", "a[b"]
      |                             ^^^^^
    "#);
}

#[test]
fn a_pattern_of_paths_outside_of_the_workspace() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  allowed_paths:\n    - ../other/**\n"), @"
    `event_loop.allowed_paths[0]` must be relative to the workspace, without `.` or `..`, but is `../other/**`
     --> /tmp/x/project/ralph.yml:3:7
      |
    3 |     - ../other/**
      |       ^^^^^^^^^^^
      |
      = help: write `src/**`, or `docs/*.md`
    ");
}

#[test]
fn patterns_of_paths_that_are_no_list() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  allowed_paths: src\n"), @r#"
    `event_loop.allowed_paths` must be a list, but is `src`
     --> /tmp/x/project/ralph.yml:2:18
      |
    2 |   allowed_paths: src
      |                  ^^^
      |
      = help: a list is written `["src"]`, or as lines that begin with `- `
    "#);
}

#[test]
fn a_hook_that_does_not_exist() {
    insta::assert_snapshot!(complaint_about("hooks:\n  on_failure: mail me\n"), @"
    `hooks.on_failure` is not a known key
     --> /tmp/x/project/ralph.yml:2:3
      |
    2 |   on_failure: mail me
      |   ^^^^^^^^^^
      |
      = help: did you mean `on_fail`?
    ");
}

#[test]
fn a_hook_without_a_command_and_one_without_time() {
    insta::assert_snapshot!(complaint_about("hooks:\n  on_fail: ' '\n"), @"
    `hooks.on_fail` must not be empty
     --> /tmp/x/project/ralph.yml:2:12
      |
    2 |   on_fail: ' '
      |            ^^^
    ");
    insta::assert_snapshot!(complaint_about("hooks:\n  timeout: 0\n"), @"
    `hooks.timeout` must be at least 1, but is `0`
     --> /tmp/x/project/ralph.yml:2:12
      |
    2 |   timeout: 0
      |            ^
      |
      = help: leave it out for the default
    ");
}
