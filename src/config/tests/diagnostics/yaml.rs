//! YAML syntax errors and duplicate keys.

use super::*;

#[test]
fn duplicate_key() {
    insta::assert_snapshot!(error_for("cli:\n  backend: claude\n  model: opus\n  backend: codex\n"), @r"
    `cli.backend`: duplicate key
     --> /tmp/x/project/ralph.yml:4:3
      |
    4 |   backend: codex
      |   ^^^^^^^
      |
      = help: the key is already set on line 2; remove one of the two
    ");
}

#[test]
fn duplicate_section() {
    insta::assert_snapshot!(error_for("cli:\n  backend: claude\nsession: fresh\ncli:\n  model: opus\n"), @r"
    `cli`: duplicate key
     --> /tmp/x/project/ralph.yml:4:1
      |
    4 | cli:
      | ^^^
      |
      = help: the key is already set on line 1; remove one of the two
    ");
}

#[test]
fn syntax_error() {
    insta::assert_snapshot!(error_for("cli:\n  model: opus\n backend: claude\n"), @r"
    invalid YAML: while parsing a block mapping, did not find expected key
     --> /tmp/x/project/ralph.yml:3:2
      |
    3 |  backend: claude
      |  ^
      |
      = help: check for an unclosed quote, and compare the indentation with the lines around it
    ");
}

#[test]
fn unclosed_quote() {
    insta::assert_snapshot!(error_for("cli:\n  model: \"opus\n"), @r#"
    invalid YAML: invalid indentation in multiline quoted scalar
     --> /tmp/x/project/ralph.yml:2:15
      |
    2 |   model: "opus
      |               ^
      |
      = help: check for an unclosed quote, and compare the indentation with the lines around it
    "#);
}

#[test]
fn special_character_that_needs_quotes() {
    insta::assert_snapshot!(error_for("cli:\n  model: @opus\n"), @r"
    invalid YAML: unexpected character: `@'
     --> /tmp/x/project/ralph.yml:2:10
      |
    2 |   model: @opus
      |          ^
      |
      = help: quote strings that contain `: ` or ` #`, or that start with a special character
    ");
}

#[test]
fn colon_that_needs_quotes() {
    insta::assert_snapshot!(error_for("gates:\n  - name: tests\n    run: echo a: b\n"), @r"
    invalid YAML: mapping values are not allowed in this context
     --> /tmp/x/project/ralph.yml:3:16
      |
    3 |     run: echo a: b
      |                ^
      |
      = help: quote strings that contain `: ` or ` #`, or that start with a special character
    ");
}

#[test]
fn tab_indentation() {
    insta::assert_snapshot!(error_for("cli:\n\tmodel: opus\n"), @r"
    invalid YAML: the line is indented with a tab
     --> /tmp/x/project/ralph.yml:2:1
      |
    2 |     model: opus
      | ^^^^
      |
      = help: indent with spaces
    ");
}

#[test]
fn two_documents() {
    insta::assert_snapshot!(error_for("session: fresh\n---\nsession: continue\n"), @r"
    invalid YAML: expected a single document, found another
     --> /tmp/x/project/ralph.yml:3:1
      |
    3 | session: continue
      | ^
      |
      = help: remove the `---` and everything after it
    ");
}

#[test]
fn alias_to_nothing() {
    insta::assert_snapshot!(error_for("session: *later\n"), @r"
    invalid YAML: alias references unknown anchor
     --> /tmp/x/project/ralph.yml:1:10
      |
    1 | session: *later
      |          ^
      |
      = help: quote strings that start with `*`
    ");
}
