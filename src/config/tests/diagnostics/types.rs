//! Values of the wrong type.

use super::*;

#[test]
fn string_instead_of_a_number() {
    insta::assert_snapshot!(error_for("event_loop:\n  max_iterations: ten # or so\n"), @r"
    `event_loop.max_iterations`: expected an integer, found `ten`
     --> /tmp/x/project/ralph.yml:2:19
      |
    2 |   max_iterations: ten # or so
      |                   ^^^
    ");
}

#[test]
fn fraction_instead_of_an_integer() {
    insta::assert_snapshot!(error_for("event_loop:\n  max_iterations: 1.5\n"), @r"
    `event_loop.max_iterations`: expected an integer, found `1.5`
     --> /tmp/x/project/ralph.yml:2:19
      |
    2 |   max_iterations: 1.5
      |                   ^^^
    ");
}

#[test]
fn list_instead_of_a_number() {
    insta::assert_snapshot!(error_for("event_loop:\n  max_iterations: [1, 2]\n"), @r"
    `event_loop.max_iterations`: expected an integer, found a list
     --> /tmp/x/project/ralph.yml:2:19
      |
    2 |   max_iterations: [1, 2]
      |                   ^^^^^^
      |
      = help: write a single value
    ");
}

#[test]
fn list_instead_of_a_mapping() {
    insta::assert_snapshot!(error_for("event_loop: [a]\n"), @r"
    `event_loop`: expected a mapping, found a list
     --> /tmp/x/project/ralph.yml:1:13
      |
    1 | event_loop: [a]
      |             ^^^
      |
      = help: write `key: value` lines
    ");
}

#[test]
fn block_list_instead_of_a_mapping() {
    insta::assert_snapshot!(error_for("adapters:\n  - claude\n  - codex\n"), @r"
    `adapters`: expected a mapping, found a list
     --> /tmp/x/project/ralph.yml:1:1
      |
    1 | adapters:
      | ^^^^^^^^
      |
      = help: write `key: value` lines
    ");
}

#[test]
fn scalar_instead_of_a_mapping() {
    insta::assert_snapshot!(error_for("adapters:\n  claude: true\n"), @r"
    `adapters.claude`: expected a mapping, found `true`
     --> /tmp/x/project/ralph.yml:2:11
      |
    2 |   claude: true
      |           ^^^^
      |
      = help: write `key: value` lines
    ");
}

#[test]
fn string_instead_of_a_list() {
    insta::assert_snapshot!(error_for("cli:\n  args: --headless\n"), @r#"
    `cli.args`: expected a list, found `--headless`
     --> /tmp/x/project/ralph.yml:2:9
      |
    2 |   args: --headless
      |         ^^^^^^^^^^
      |
      = help: write `["--headless"]`, or one `- item` per line
    "#);
}

#[test]
fn mapping_instead_of_a_list() {
    insta::assert_snapshot!(error_for("gates:\n  tests: make test\n"), @r"
    `gates`: expected a list, found a mapping
     --> /tmp/x/project/ralph.yml:1:1
      |
    1 | gates:
      | ^^^^^
      |
      = help: write each item as `- name: …`
    ");
}

#[test]
fn list_instead_of_a_string() {
    insta::assert_snapshot!(error_for("cli:\n  model: [opus]\n"), @r"
    `cli.model`: expected a string, found a list
     --> /tmp/x/project/ralph.yml:2:10
      |
    2 |   model: [opus]
      |          ^^^^^^
      |
      = help: write a single value
    ");
}

#[test]
fn number_instead_of_a_marker() {
    insta::assert_snapshot!(error_for("event_loop:\n  completion_promise: 5\n"), @r"
    `event_loop`: a value below this key has the wrong type
     --> /tmp/x/project/ralph.yml:1:1
      |
    1 | event_loop:
      | ^^^^^^^^^^
      |
      = help: quote strings that look like a number or a boolean
    ");
}

#[test]
fn empty_list_item() {
    insta::assert_snapshot!(error_for("cli:\n  args:\n    - --headless\n    -\n"), @r"
    `cli.args[1]`: missing value
     --> /tmp/x/project/ralph.yml:4:6
      |
    4 |     -
      |      ^
      |
      = help: set a value, or remove the key
    ");
}

#[test]
fn list_at_the_top_level() {
    insta::assert_snapshot!(error_for("- cli\n- gates\n"), @r"
    expected a mapping at the top level, found a list
     --> /tmp/x/project/ralph.yml:1:1
      |
    1 | - cli
      | ^
      |
      = help: write `key: value` lines
    ");
}

#[test]
fn string_at_the_top_level() {
    insta::assert_snapshot!(error_for("just do it\n"), @r"
    expected a mapping at the top level, found a string
     --> /tmp/x/project/ralph.yml:1:1
      |
    1 | just do it
      | ^^^^^^^^^^
      |
      = help: write `key: value` lines
    ");
}

#[test]
fn unknown_word() {
    insta::assert_snapshot!(error_for("cli:\n  prompt_mode: argg\n"), @r"
    `cli.prompt_mode`: expected `arg` or `stdin`, found `argg`
     --> /tmp/x/project/ralph.yml:2:16
      |
    2 |   prompt_mode: argg
      |                ^^^^
      |
      = help: did you mean `arg`?
    ");
}

#[test]
fn unknown_word_without_a_similar_word() {
    insta::assert_snapshot!(error_for("session: forever\n"), @r"
    `session`: expected `fresh` or `continue`, found `forever`
     --> /tmp/x/project/ralph.yml:1:10
      |
    1 | session: forever
      |          ^^^^^^^
    ");
}

#[test]
fn list_instead_of_a_word() {
    insta::assert_snapshot!(error_for("cli:\n  prompt_mode: [arg]\n"), @r"
    `cli.prompt_mode`: expected a single word, found a list
     --> /tmp/x/project/ralph.yml:2:16
      |
    2 |   prompt_mode: [arg]
      |                ^^^^^
      |
      = help: write a single value
    ");
}

#[test]
fn unknown_transcript() {
    insta::assert_snapshot!(error_for("cli:\n  transcript: claud\n"), @r"
    `cli.transcript`: expected a transcript format, found `claud`
     --> /tmp/x/project/ralph.yml:2:15
      |
    2 |   transcript: claud
      |               ^^^^^
      |
      = help: did you mean `claude`?
    ");
}
