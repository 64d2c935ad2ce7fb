//! Values out of range, and words that mean something else.

use super::*;

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
