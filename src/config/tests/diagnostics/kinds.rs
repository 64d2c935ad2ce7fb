//! One kind of thing where another belongs.

use super::*;

#[test]
fn text_for_a_number() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  max_iterations: ten # or so\n"), @r"
    `event_loop.max_iterations` must be a whole number, but is `ten`
     --> /tmp/x/project/ralph.yml:2:19
      |
    2 |   max_iterations: ten # or so
      |                   ^^^
    ");
}

#[test]
fn fraction_for_a_whole_number() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  max_iterations: 1.5\n"), @r"
    `event_loop.max_iterations` must be a whole number, but is `1.5`
     --> /tmp/x/project/ralph.yml:2:19
      |
    2 |   max_iterations: 1.5
      |                   ^^^
    ");
}

#[test]
fn list_for_a_number() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  max_iterations: [1, 2]\n"), @r"
    `event_loop.max_iterations` must be a whole number, but is a list
     --> /tmp/x/project/ralph.yml:2:19
      |
    2 |   max_iterations: [1, 2]
      |                   ^^^^^^
    ");
}

#[test]
fn list_for_a_section() {
    insta::assert_snapshot!(complaint_about("event_loop: [a]\n"), @r"
    `event_loop` must be a section of `key: value` lines, but is a list
     --> /tmp/x/project/ralph.yml:1:13
      |
    1 | event_loop: [a]
      |             ^^^
    ");
}

#[test]
fn block_list_for_a_section() {
    insta::assert_snapshot!(complaint_about("adapters:\n  - claude\n  - codex\n"), @r"
    `adapters` must be a section of `key: value` lines, but is a list
     --> /tmp/x/project/ralph.yml:1:1
      |
    1 | adapters:
      | ^^^^^^^^
    ");
}

#[test]
fn scalar_for_a_section() {
    insta::assert_snapshot!(complaint_about("adapters:\n  claude: true\n"), @r"
    `adapters.claude` must be a section of `key: value` lines, but is `true`
     --> /tmp/x/project/ralph.yml:2:11
      |
    2 |   claude: true
      |           ^^^^
    ");
}

#[test]
fn text_for_a_list() {
    insta::assert_snapshot!(complaint_about("cli:\n  args: --headless\n"), @r#"
    `cli.args` must be a list, but is `--headless`
     --> /tmp/x/project/ralph.yml:2:9
      |
    2 |   args: --headless
      |         ^^^^^^^^^^
      |
      = help: a list is written `["--headless"]`, or as lines that begin with `- `
    "#);
}

#[test]
fn section_for_a_list() {
    insta::assert_snapshot!(complaint_about("gates:\n  tests: make test\n"), @r"
    `gates` must be a list, but is a section
     --> /tmp/x/project/ralph.yml:1:1
      |
    1 | gates:
      | ^^^^^
    ");
}

#[test]
fn list_for_text() {
    insta::assert_snapshot!(complaint_about("cli:\n  model: [opus]\n"), @r"
    `cli.model` must be text, but is a list
     --> /tmp/x/project/ralph.yml:2:10
      |
    2 |   model: [opus]
      |          ^^^^^^
    ");
}

#[test]
fn number_for_a_marker() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  completion_promise: 5\n"), @r"
    `event_loop` must be a section of `key: value` lines, but is a section
     --> /tmp/x/project/ralph.yml:1:1
      |
    1 | event_loop:
      | ^^^^^^^^^^
    ");
}

#[test]
fn nothing_in_a_list() {
    insta::assert_snapshot!(complaint_about("cli:\n  args:\n    - --headless\n    -\n"), @r"
    `cli.args[1]` has no value
     --> /tmp/x/project/ralph.yml:4:6
      |
    4 |     -
      |      ^
      |
      = help: give it one, or remove the line
    ");
}

#[test]
fn list_as_the_whole_file() {
    insta::assert_snapshot!(complaint_about("- cli\n- gates\n"), @r"
    the file must be a section of `key: value` lines, but is a list
     --> /tmp/x/project/ralph.yml:1:1
      |
    1 | - cli
      | ^
    ");
}

#[test]
fn text_as_the_whole_file() {
    insta::assert_snapshot!(complaint_about("just do it\n"), @r"
    the file must be a section of `key: value` lines, but is a single text
     --> /tmp/x/project/ralph.yml:1:1
      |
    1 | just do it
      | ^^^^^^^^^^
    ");
}

#[test]
fn unknown_word() {
    insta::assert_snapshot!(complaint_about("cli:\n  prompt_mode: argg\n"), @r"
    `cli.prompt_mode` must be `arg` or `stdin`, but is `argg`
     --> /tmp/x/project/ralph.yml:2:16
      |
    2 |   prompt_mode: argg
      |                ^^^^
      |
      = help: did you mean `arg`?
    ");
}

#[test]
fn unknown_word_that_resembles_nothing() {
    insta::assert_snapshot!(complaint_about("session: forever\n"), @r"
    `session` must be `fresh` or `continue`, but is `forever`
     --> /tmp/x/project/ralph.yml:1:10
      |
    1 | session: forever
      |          ^^^^^^^
    ");
}

#[test]
fn list_for_a_word() {
    insta::assert_snapshot!(complaint_about("cli:\n  prompt_mode: [arg]\n"), @r"
    `cli.prompt_mode` must be a single word, but is a list
     --> /tmp/x/project/ralph.yml:2:16
      |
    2 |   prompt_mode: [arg]
      |                ^^^^^
    ");
}

#[test]
fn unknown_transcript() {
    insta::assert_snapshot!(complaint_about("cli:\n  transcript: claud\n"), @r"
    `cli.transcript` must be a transcript format, but is `claud`
     --> /tmp/x/project/ralph.yml:2:15
      |
    2 |   transcript: claud
      |               ^^^^^
      |
      = help: did you mean `claude`?
    ");
}
