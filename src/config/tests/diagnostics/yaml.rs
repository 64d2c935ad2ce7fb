//! What is no YAML, or not what it seems.

use super::*;

#[test]
fn duplicate_key() {
    insta::assert_snapshot!(complaint_about("cli:\n  backend: claude\n  model: opus\n  backend: codex\n"), @r"
    `cli.backend` is given twice
     --> /tmp/x/project/ralph.yml:4:3
      |
    4 |   backend: codex
      |   ^^^^^^^
      |
      = help: it is already given in line 2; keep one of the two
    ");
}

#[test]
fn duplicate_section() {
    insta::assert_snapshot!(complaint_about("cli:\n  backend: claude\nsession: fresh\ncli:\n  model: opus\n"), @r"
    `cli` is given twice
     --> /tmp/x/project/ralph.yml:4:1
      |
    4 | cli:
      | ^^^
      |
      = help: it is already given in line 1; keep one of the two
    ");
}

#[test]
fn syntax_error() {
    insta::assert_snapshot!(complaint_about("cli:\n  model: opus\n backend: claude\n"), @r"
    not valid YAML: while parsing a block mapping, did not find expected key
     --> /tmp/x/project/ralph.yml:3:2
      |
    3 |  backend: claude
      |  ^
      |
      = help: is every quote closed, and is this line indented like its neighbours?
    ");
}

#[test]
fn open_quote() {
    insta::assert_snapshot!(complaint_about("cli:\n  model: \"opus\n"), @r#"
    not valid YAML: invalid indentation in multiline quoted scalar
     --> /tmp/x/project/ralph.yml:2:15
      |
    2 |   model: "opus
      |               ^
      |
      = help: is every quote closed, and is this line indented like its neighbours?
    "#);
}

#[test]
fn sign_that_needs_quotes() {
    insta::assert_snapshot!(complaint_about("cli:\n  model: @opus\n"), @r"
    not valid YAML: unexpected character: `@'
     --> /tmp/x/project/ralph.yml:2:10
      |
    2 |   model: @opus
      |          ^
      |
      = help: YAML is read strictly: put a text in quotes when it holds `: ` or ` #`, or begins with a sign
    ");
}

#[test]
fn colon_that_needs_quotes() {
    insta::assert_snapshot!(complaint_about("gates:\n  - name: tests\n    run: echo a: b\n"), @r"
    not valid YAML: mapping values are not allowed in this context
     --> /tmp/x/project/ralph.yml:3:16
      |
    3 |     run: echo a: b
      |                ^
      |
      = help: YAML is read strictly: put a text in quotes when it holds `: ` or ` #`, or begins with a sign
    ");
}

#[test]
fn tab_indentation() {
    insta::assert_snapshot!(complaint_about("cli:\n\tmodel: opus\n"), @r"
    not valid YAML: the line is indented with a tab
     --> /tmp/x/project/ralph.yml:2:1
      |
    2 |     model: opus
      | ^^^^
      |
      = help: indent with spaces; YAML does not allow tabs here
    ");
}

#[test]
fn two_documents() {
    insta::assert_snapshot!(complaint_about("session: fresh\n---\nsession: continue\n"), @r"
    not valid YAML: a second document begins
     --> /tmp/x/project/ralph.yml:3:1
      |
    3 | session: continue
      | ^
      |
      = help: one file holds one set of wishes: remove the `---` and what follows
    ");
}

#[test]
fn alias_to_nothing() {
    insta::assert_snapshot!(complaint_about("session: *later\n"), @r"
    not valid YAML: alias references unknown anchor
     --> /tmp/x/project/ralph.yml:1:10
      |
    1 | session: *later
      |          ^
      |
      = help: a text that begins with `*` must be put in quotes
    ");
}
