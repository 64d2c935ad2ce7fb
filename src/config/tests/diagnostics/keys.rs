//! Unknown keys and keys in the wrong section.

use super::*;

#[test]
fn unknown_top_level_key() {
    insta::assert_snapshot!(error_for("clii:\n  model: x\n"), @r"
    `clii`: unknown key
     --> /tmp/x/project/ralph.yml:1:1
      |
    1 | clii:
      | ^^^^
      |
      = help: did you mean `cli`?
    ");
}

#[test]
fn unknown_key_in_a_section() {
    insta::assert_snapshot!(error_for("event_loop:\n  max_iteration: 5\n"), @r"
    `event_loop.max_iteration`: unknown key
     --> /tmp/x/project/ralph.yml:2:3
      |
    2 |   max_iteration: 5
      |   ^^^^^^^^^^^^^
      |
      = help: did you mean `max_iterations`?
    ");
}

#[test]
fn unknown_key_in_an_adapter() {
    insta::assert_snapshot!(error_for("adapters:\n  claude:\n    timout: 5\n"), @r"
    `adapters.claude.timout`: unknown key
     --> /tmp/x/project/ralph.yml:3:5
      |
    3 |     timout: 5
      |     ^^^^^^
      |
      = help: did you mean `timeout`?
    ");
}

#[test]
fn unknown_key_in_a_gate() {
    insta::assert_snapshot!(error_for("gates:\n  - name: tests\n    runs: make test\n"), @r"
    `gates[0].runs`: unknown key
     --> /tmp/x/project/ralph.yml:3:5
      |
    3 |     runs: make test
      |     ^^^^
      |
      = help: did you mean `run`?
    ");
}

#[test]
fn unknown_key_in_a_hat() {
    insta::assert_snapshot!(error_for("hats:\n  builder:\n    trigger: [plan]\n"), @r"
    `hats.builder.trigger`: unknown key
     --> /tmp/x/project/ralph.yml:3:5
      |
    3 |     trigger: [plan]
      |     ^^^^^^^
      |
      = help: did you mean `triggers`?
    ");
}

#[test]
fn unknown_key_without_a_similar_key() {
    insta::assert_snapshot!(error_for("cli:\n  banana: 1\n"), @"
    `cli.banana`: unknown key
     --> /tmp/x/project/ralph.yml:2:3
      |
    2 |   banana: 1
      |   ^^^^^^
      |
      = help: expected one of: backend, command, args, prompt_mode, prompt_flag, default_mode, idle_timeout_secs, transcript, jq_filter, pty_mode, driver_dir, claude_command, claude_args, model, fallback, fallback_after
    ");
}

#[test]
fn known_key_in_the_wrong_section() {
    insta::assert_snapshot!(error_for("max_iterations: 5\n"), @r"
    `max_iterations`: unknown key
     --> /tmp/x/project/ralph.yml:1:1
      |
    1 | max_iterations: 5
      | ^^^^^^^^^^^^^^
      |
      = help: `max_iterations` belongs under `event_loop:`
    ");
}

#[test]
fn unknown_agent_under_adapters() {
    insta::assert_snapshot!(error_for("adapters:\n  claud:\n    enabled: false\n"), @r"
    `adapters.claud`: unknown agent
     --> /tmp/x/project/ralph.yml:2:3
      |
    2 |   claud:
      |   ^^^^^
      |
      = help: did you mean `claude`?
    ");
}

#[test]
fn all_problems_of_a_file_are_reported_at_once() {
    let text = "event_loop:\n  max_iteration: 3\n  max_iterations: many\n  cooldown_seconds: 5x\nhats: [a]\nextra: 1\n";
    let fixture = ConfigFixture::new().write("project/ralph.yml", text);
    let Err(crate::config::ConfigError::Diagnostics(problems)) = fixture.load() else {
        panic!("several problems");
    };
    let mut lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
    lines.sort_unstable();
    assert_eq!(lines, [2, 3, 4, 5, 6]);
}
