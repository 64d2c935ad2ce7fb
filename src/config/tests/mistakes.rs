//! One picture for each mistake that people make.

use std::fs;
use std::path::PathBuf;

use super::{Place, complaint_about};
use crate::config::ConfigError;

#[test]
fn unknown_top_level_key() {
    insta::assert_snapshot!(complaint_about("clii:\n  model: x\n"), @r"
    `clii` is not a known key
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
    insta::assert_snapshot!(complaint_about("event_loop:\n  max_iteration: 5\n"), @r"
    `event_loop.max_iteration` is not a known key
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
    insta::assert_snapshot!(complaint_about("adapters:\n  claude:\n    timout: 5\n"), @r"
    `adapters.claude.timout` is not a known key
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
    insta::assert_snapshot!(complaint_about("gates:\n  - name: tests\n    runs: make test\n"), @r"
    `gates[0].runs` is not a known key
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
    insta::assert_snapshot!(complaint_about("hats:\n  builder:\n    trigger: [plan]\n"), @r"
    `hats.builder.trigger` is not a known key
     --> /tmp/x/project/ralph.yml:3:5
      |
    3 |     trigger: [plan]
      |     ^^^^^^^
      |
      = help: did you mean `triggers`?
    ");
}

#[test]
fn unknown_key_that_resembles_nothing() {
    insta::assert_snapshot!(complaint_about("cli:\n  banana: 1\n"), @"
    `cli.banana` is not a known key
     --> /tmp/x/project/ralph.yml:2:3
      |
    2 |   banana: 1
      |   ^^^^^^
      |
      = help: known here: backend, command, args, prompt_mode, prompt_flag, default_mode, idle_timeout_secs, transcript, jq_filter, pty_mode, driver_dir, claude_command, claude_args, model
    ");
}

#[test]
fn known_key_in_the_wrong_place() {
    insta::assert_snapshot!(complaint_about("max_iterations: 5\n"), @r"
    `max_iterations` is not a known key
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
    insta::assert_snapshot!(complaint_about("adapters:\n  claud:\n    enabled: false\n"), @r"
    `adapters.claud` is not a known agent
     --> /tmp/x/project/ralph.yml:2:3
      |
    2 |   claud:
      |   ^^^^^
      |
      = help: did you mean `claude`?
    ");
}

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

#[test]
fn negative_number() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  max_iterations: -5\n"), @r"
    `event_loop.max_iterations` must be a whole number, but is `-5`
     --> /tmp/x/project/ralph.yml:2:19
      |
    2 |   max_iterations: -5
      |                   ^^
      |
      = help: it cannot be negative
    ");
}

#[test]
fn zero_where_at_least_one_is_needed() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  max_iterations: 0\n"), @r"
    `event_loop.max_iterations` must be at least 1, but is `0`
     --> /tmp/x/project/ralph.yml:2:19
      |
    2 |   max_iterations: 0
      |                   ^
      |
      = help: leave it out for the default
    ");
}

#[test]
fn zero_timeout() {
    insta::assert_snapshot!(complaint_about("adapters:\n  codex:\n    timeout: 0\n"), @r"
    `adapters.codex.timeout` must be at least 1, but is `0`
     --> /tmp/x/project/ralph.yml:3:14
      |
    3 |     timeout: 0
      |              ^
      |
      = help: leave it out for the default
    ");
}

#[test]
fn number_beyond_all_numbers() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  max_tokens: 99999999999999999999\n"), @r"
    `event_loop.max_tokens` must be a whole number, but is `99999999999999999999`
     --> /tmp/x/project/ralph.yml:2:15
      |
    2 |   max_tokens: 99999999999999999999
      |               ^^^^^^^^^^^^^^^^^^^^
      |
      = help: the largest number possible is 18446744073709551615
    ");
}

#[test]
fn time_longer_than_a_year() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  max_runtime_seconds: 99999999999\n"), @r"
    `event_loop.max_runtime_seconds` must be at most 31536000 seconds (a year), but is `99999999999`
     --> /tmp/x/project/ralph.yml:2:24
      |
    2 |   max_runtime_seconds: 99999999999
      |                        ^^^^^^^^^^^
    ");
}

#[test]
fn leading_zero() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  max_iterations: 010\n"), @r"
    `event_loop.max_iterations` must be a whole number, but is `010`
     --> /tmp/x/project/ralph.yml:2:19
      |
    2 |   max_iterations: 010
      |                   ^^^
      |
      = help: write it without the leading zero: `10`
    ");
}

#[test]
fn negative_cost() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  max_cost_usd: -1\n"), @r"
    `event_loop.max_cost_usd` must be more than 0 and finite, but is `-1`
     --> /tmp/x/project/ralph.yml:2:17
      |
    2 |   max_cost_usd: -1
      |                 ^^
      |
      = help: leave it out for no limit on the cost
    ");
}

#[test]
fn infinite_cost() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  max_cost_usd: .inf\n"), @r"
    `event_loop.max_cost_usd` must be more than 0 and finite, but is `inf`
     --> /tmp/x/project/ralph.yml:2:17
      |
    2 |   max_cost_usd: .inf
      |                 ^^^^
      |
      = help: leave it out for no limit on the cost
    ");
}

#[test]
fn cost_with_a_currency_sign() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  max_cost_usd: $20\n"), @r"
    `event_loop.max_cost_usd` must be a number, but is `$20`
     --> /tmp/x/project/ralph.yml:2:17
      |
    2 |   max_cost_usd: $20
      |                 ^^^
      |
      = help: write the number alone, without a currency sign
    ");
}

#[test]
fn minutes_for_seconds() {
    insta::assert_snapshot!(complaint_about("adapters:\n  claude:\n    timeout: 5m\n"), @r"
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
fn off_for_false() {
    insta::assert_snapshot!(complaint_about("adapters:\n  claude:\n    enabled: off\n"), @r"
    `adapters.claude.enabled` must be `true` or `false`, but is `off`
     --> /tmp/x/project/ralph.yml:3:14
      |
    3 |     enabled: off
      |              ^^^
      |
      = help: write `false`
    ");
}

#[test]
fn yes_for_true() {
    insta::assert_snapshot!(complaint_about("cli:\n  pty_mode: yes\n"), @r"
    `cli.pty_mode` must be `true` or `false`, but is `yes`
     --> /tmp/x/project/ralph.yml:2:13
      |
    2 |   pty_mode: yes
      |             ^^^
      |
      = help: write `true`
    ");
}

#[test]
fn word_for_a_boolean() {
    insta::assert_snapshot!(complaint_about("cli:\n  pty_mode: maybe\n"), @r"
    `cli.pty_mode` must be `true` or `false`, but is `maybe`
     --> /tmp/x/project/ralph.yml:2:13
      |
    2 |   pty_mode: maybe
      |             ^^^^^
    ");
}

#[test]
fn key_without_a_value() {
    insta::assert_snapshot!(complaint_about("event_loop:\n  max_cost_usd:\n  max_iterations: 5\n"), @r"
    `event_loop.max_cost_usd` has no value
     --> /tmp/x/project/ralph.yml:2:3
      |
    2 |   max_cost_usd:
      |   ^^^^^^^^^^^^
      |
      = help: give it one, or remove the line
    ");
}

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
fn file_that_is_not_utf8() {
    insta::assert_snapshot!(complaint_about(b"cli:\n  model: caf\xe9 noir\n"), @r"
    the file is not UTF-8 text
     --> /tmp/x/project/ralph.yml:2:13
      |
    2 |   model: caf� noir
      |             ^
      |
      = help: save it as UTF-8; other encodings are not read
    ");
}

#[test]
fn file_that_is_a_directory() {
    let place = Place::new();
    fs::create_dir(place.path("project/ralph.yml")).unwrap();
    insta::assert_snapshot!(place.complaint(), @r"
    cannot read configuration file /tmp/x/project/ralph.yml: Is a directory (os error 21)
    ");
}

#[test]
fn file_that_leads_nowhere() {
    let place = Place::new();
    std::os::unix::fs::symlink("gone.yml", place.path("project/ralph.yml")).unwrap();
    insta::assert_snapshot!(place.complaint(), @r"
    cannot read configuration file /tmp/x/project/ralph.yml: No such file or directory (os error 2)
    ");
}

#[test]
fn file_that_is_far_too_large() {
    let place = Place::new().write("project/ralph.yml", "#".repeat(2 << 20));
    insta::assert_snapshot!(place.complaint(), @r"
    configuration file /tmp/x/project/ralph.yml is larger than 1048576 bytes
    ");
}

#[test]
fn named_file_that_does_not_exist() {
    let mut place = Place::new().write("project/ralph.yml", "session: fresh\n");
    place.file = Some(PathBuf::from("nightly.yml"));
    insta::assert_snapshot!(place.complaint(), @r"
    configuration file /tmp/x/project/nightly.yml does not exist
    ");
}

#[test]
fn alias_bomb() {
    let many = format!("cli:\n  args: [&x aaaa{}]\n", ", *x".repeat(500));
    insta::assert_snapshot!(complaint_about(many), @r"
    not valid YAML: it is too long, too deep, or repeats too much
     --> /tmp/x/project/ralph.yml:2:419
      |
    2 | …x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *…
      |                                                             ^^
      |
      = help: write the values out instead of using aliases
    ");
}

#[test]
fn nested_alias_bomb_is_not_unfolded() {
    let mut text = String::from("hats:\n  h0: &h0 {triggers: &t0 [x, x, x, x, x, x, x, x]}\n");
    for level in 1..30 {
        let below = vec![format!("*t{}", level - 1); 8].join(", ");
        text.push_str(&format!(
            "  h{level}: &h{level} {{triggers: &t{level} [{below}]}}\n"
        ));
    }
    let complaint = complaint_about(text);
    assert!(
        complaint.starts_with("`hats.h1.triggers[0]` must be text, but is `*t0`"),
        "{complaint}"
    );
}

#[test]
fn mistake_in_the_users_own_file() {
    let place = Place::new()
        .write("home/ralph.yml", "sesion: fresh\n")
        .write("project/ralph.yml", "session: fresh\n");
    insta::assert_snapshot!(place.complaint(), @r"
    `sesion` is not a known key
     --> /tmp/x/home/ralph.yml:1:1
      |
    1 | sesion: fresh
      | ^^^^^^
      |
      = help: did you mean `session`?
    ");
}

#[test]
fn variable_that_is_no_number() {
    insta::assert_snapshot!(
        Place::new().set("RALPH_MAX_ITERATIONS", "ten").complaint(), @r"
    environment variable `RALPH_MAX_ITERATIONS` must be a whole number, but is `ten`
    ");
}

#[test]
fn variable_with_a_unit() {
    insta::assert_snapshot!(
        Place::new().set("RALPH_MAX_RUNTIME_SECONDS", "8h").complaint(), @r"
    environment variable `RALPH_MAX_RUNTIME_SECONDS` must be a whole number of seconds, but is `8h`
      = help: times are given in seconds, without a unit: write `28800`
    ");
}

#[test]
fn variable_out_of_range() {
    insta::assert_snapshot!(
        Place::new().set("RALPH_MAX_COST_USD", "NaN").complaint(), @r"
    environment variable `RALPH_MAX_COST_USD` must be more than 0 and finite, but is `NaN`
      = help: leave it out for no limit on the cost
    ");
}

#[test]
fn variable_with_an_unknown_name() {
    insta::assert_snapshot!(
        Place::new().set("RALPH_TRANSCRIPT", "codex_text").complaint(), @r"
    environment variable `RALPH_TRANSCRIPT` must be a transcript format, but is `codex_text`
      = help: did you mean `codex-text`?
    ");
}

#[test]
fn variable_with_an_open_quote() {
    insta::assert_snapshot!(
        Place::new().set("RALPH_AGENT_CMD", "agent 'x").complaint(), @r"
    environment variable `RALPH_AGENT_CMD` has a single quote that is never closed
    ");
}

#[test]
fn variable_that_names_no_command() {
    insta::assert_snapshot!(
        Place::new().set("RALPH_AGENT_CMD", "  ").complaint(), @r"
    environment variable `RALPH_AGENT_CMD` names no command
    ");
}

#[test]
fn flag_out_of_range() {
    let mut place = Place::new();
    place.flags.event_loop.max_iterations = Some(0);
    insta::assert_snapshot!(place.complaint(), @r"
    `event_loop.max_iterations` on the command line must be at least 1, but is `0`
      = help: leave it out for the default
    ");
}

#[test]
fn a_mistake_can_be_read_by_a_program() {
    let place = Place::new().write("project/ralph.yml", "cli:\n  modle: x\n");
    let Err(ConfigError::Mistake(mistake)) = place.load() else {
        panic!("{}", place.complaint());
    };
    assert_eq!((mistake.line, mistake.column), (2, 3));
    assert_eq!(mistake.file, place.path("project/ralph.yml"));
    assert_eq!(mistake.help.as_deref(), Some("did you mean `model`?"));
}

proptest::proptest! {
    /// Whatever a file holds, the answer is settings or a message.
    #[test]
    fn no_text_makes_it_panic(text in r#"([a-z_]{1,4}|cli|gates|event_loop|max_iterations|[:\-\[\]{}&*!|>"'#%@,?]|\n|\t|  | |é|漢|[0-9]){0,40}"#) {
        let document = crate::config::yaml::Document::new(std::path::Path::new("ralph.yml"), &text);
        if let Err(mistake) = document.read::<crate::config::Partial>() {
            proptest::prop_assert!(mistake.to_string().contains(" --> ralph.yml:"));
        }
    }
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
