//! Values that are out of range or have a unit, a sign or another spelling.

use super::*;

#[test]
fn negative_number() {
    insta::assert_snapshot!(error_for("event_loop:\n  max_iterations: -5\n"), @r"
    `event_loop.max_iterations`: expected an integer, found `-5`
     --> /tmp/x/project/ralph.yml:2:19
      |
    2 |   max_iterations: -5
      |                   ^^
      |
      = help: the value must not be negative
    ");
}

#[test]
fn zero_where_at_least_one_is_needed() {
    insta::assert_snapshot!(error_for("event_loop:\n  max_iterations: 0\n"), @r"
    `event_loop.max_iterations`: expected at least 1, found `0`
     --> /tmp/x/project/ralph.yml:2:19
      |
    2 |   max_iterations: 0
      |                   ^
      |
      = help: omit it to use the default
    ");
}

#[test]
fn zero_timeout() {
    insta::assert_snapshot!(error_for("adapters:\n  codex:\n    timeout: 0\n"), @r"
    `adapters.codex.timeout`: expected at least 1, found `0`
     --> /tmp/x/project/ralph.yml:3:14
      |
    3 |     timeout: 0
      |              ^
      |
      = help: omit it to use the default
    ");
}

#[test]
fn number_too_large_for_an_integer() {
    insta::assert_snapshot!(error_for("event_loop:\n  max_tokens: 99999999999999999999\n"), @r"
    `event_loop.max_tokens`: expected an integer, found `99999999999999999999`
     --> /tmp/x/project/ralph.yml:2:15
      |
    2 |   max_tokens: 99999999999999999999
      |               ^^^^^^^^^^^^^^^^^^^^
      |
      = help: the maximum is 18446744073709551615
    ");
}

#[test]
fn time_longer_than_a_year() {
    insta::assert_snapshot!(error_for("event_loop:\n  max_runtime_seconds: 99999999999\n"), @r"
    `event_loop.max_runtime_seconds`: expected at most 31536000 seconds (one year), found `99999999999`
     --> /tmp/x/project/ralph.yml:2:24
      |
    2 |   max_runtime_seconds: 99999999999
      |                        ^^^^^^^^^^^
    ");
}

#[test]
fn leading_zero() {
    insta::assert_snapshot!(error_for("event_loop:\n  max_iterations: 010\n"), @r"
    `event_loop.max_iterations`: expected an integer, found `010`
     --> /tmp/x/project/ralph.yml:2:19
      |
    2 |   max_iterations: 010
      |                   ^^^
      |
      = help: remove the leading zero: `10`
    ");
}

#[test]
fn negative_cost() {
    insta::assert_snapshot!(error_for("event_loop:\n  max_cost_usd: -1\n"), @r"
    `event_loop.max_cost_usd`: expected a finite number greater than 0, found `-1`
     --> /tmp/x/project/ralph.yml:2:17
      |
    2 |   max_cost_usd: -1
      |                 ^^
      |
      = help: omit it for no cost limit
    ");
}

#[test]
fn infinite_cost() {
    insta::assert_snapshot!(error_for("event_loop:\n  max_cost_usd: .inf\n"), @r"
    `event_loop.max_cost_usd`: expected a finite number greater than 0, found `inf`
     --> /tmp/x/project/ralph.yml:2:17
      |
    2 |   max_cost_usd: .inf
      |                 ^^^^
      |
      = help: omit it for no cost limit
    ");
}

#[test]
fn cost_with_a_currency_sign() {
    insta::assert_snapshot!(error_for("event_loop:\n  max_cost_usd: $20\n"), @r"
    `event_loop.max_cost_usd`: expected a number, found `$20`
     --> /tmp/x/project/ralph.yml:2:17
      |
    2 |   max_cost_usd: $20
      |                 ^^^
      |
      = help: write the number without a currency sign
    ");
}

#[test]
fn duration_with_an_unknown_unit() {
    insta::assert_snapshot!(error_for("adapters:\n  claude:\n    timeout: 5min\n"), @r"
    `adapters.claude.timeout`: expected a duration such as `90s`, `5m`, `1h30m`, or a number of seconds, found `5min`
     --> /tmp/x/project/ralph.yml:3:14
      |
    3 |     timeout: 5min
      |              ^^^^
      |
      = help: write `5m`
    ");
}

#[test]
fn off_instead_of_false() {
    insta::assert_snapshot!(error_for("adapters:\n  claude:\n    enabled: off\n"), @r"
    `adapters.claude.enabled`: expected `true` or `false`, found `off`
     --> /tmp/x/project/ralph.yml:3:14
      |
    3 |     enabled: off
      |              ^^^
      |
      = help: write `false`
    ");
}

#[test]
fn yes_instead_of_true() {
    insta::assert_snapshot!(error_for("cli:\n  pty_mode: yes\n"), @r"
    `cli.pty_mode`: expected `true` or `false`, found `yes`
     --> /tmp/x/project/ralph.yml:2:13
      |
    2 |   pty_mode: yes
      |             ^^^
      |
      = help: write `true`
    ");
}

#[test]
fn word_instead_of_a_boolean() {
    insta::assert_snapshot!(error_for("cli:\n  pty_mode: maybe\n"), @r"
    `cli.pty_mode`: expected `true` or `false`, found `maybe`
     --> /tmp/x/project/ralph.yml:2:13
      |
    2 |   pty_mode: maybe
      |             ^^^^^
    ");
}

#[test]
fn key_without_a_value() {
    insta::assert_snapshot!(error_for("event_loop:\n  max_cost_usd:\n  max_iterations: 5\n"), @r"
    `event_loop.max_cost_usd`: missing value
     --> /tmp/x/project/ralph.yml:2:3
      |
    2 |   max_cost_usd:
      |   ^^^^^^^^^^^^
      |
      = help: set a value, or remove the key
    ");
}
