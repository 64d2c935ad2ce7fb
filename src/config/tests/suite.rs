//! Tests of the tasks file of a benchmark and its error messages.

use std::fs;
use std::path::Path;

use crate::config::{CellLimits, ConfigError, Suite, SuiteAgent, load_suite};

fn load(text: &str) -> Result<Suite, ConfigError> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tasks.yml");
    fs::write(&file, text).unwrap();
    load_suite(&file, &["claude", "codex"], &["plain", "rtf1"])
}

/// The error message, without the directory of the file.
fn error_for(text: &str) -> String {
    let error = load(text).unwrap_err().to_string();
    let lines = error.lines().map(|line| match line.split_once("--> ") {
        Some((gutter, path)) => {
            let name = Path::new(path).file_name().unwrap_or_default();
            format!("{gutter}--> {}\n", name.to_string_lossy())
        }
        None => format!("{line}\n"),
    });
    lines.collect()
}

const TASK: &str = "tasks:\n  - name: one\n    prompt: p\n    verify: 'true'\n";

#[test]
fn paths_are_relative_to_the_file_and_limits_are_merged() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tasks.yml");
    fs::create_dir(directory.path().join("repo")).unwrap();
    let text = "limits: {max_iterations: 7, max_cost_usd: 2}\nagents:\n  - {name: own, command: bin/own.sh}\n  \
                - {name: other, command: own}\ntasks:\n  - {name: a, prompt_file: a.md, copy: src, verify: t, limits: \
                {max_cost_usd: 1}}\n  - {name: b, prompt: p, clone: repo, ref: v1, verify: t}\n  - {name: c, prompt: p, \
                clone: 'https://example.invalid/r.git', verify: t}\n";
    fs::write(&file, text).unwrap();
    let suite = load_suite(&file, &[], &[]).unwrap();
    let [a, b, c] = &suite.tasks[..] else {
        panic!("{suite:?}");
    };
    assert_eq!(a.prompt_file, Some(directory.path().join("a.md")));
    assert_eq!(a.copy, Some(directory.path().join("src")));
    assert_eq!(b.clone.as_deref(), directory.path().join("repo").to_str());
    assert_eq!(c.clone.as_deref(), Some("https://example.invalid/r.git"));
    assert_eq!(
        suite.agents[0].command.as_deref(),
        directory.path().join("bin/own.sh").to_str()
    );
    assert_eq!(
        suite.agents[1].command.as_deref(),
        Some("own"),
        "looked up in PATH"
    );
    let limits = CellLimits {
        max_iterations: Some(7),
        max_cost_usd: Some(1.0),
        ..CellLimits::default()
    };
    assert_eq!(a.limits.or(suite.limits), limits);
}

#[test]
fn backend_defaults_to_custom_or_the_name() {
    let backend = |agent: SuiteAgent| agent.to_settings(&["claude"]).cli.backend.unwrap();
    let agent = SuiteAgent {
        name: "claude".into(),
        args: vec!["--fast".into()],
        ..SuiteAgent::default()
    };
    let adapters = agent.to_settings(&["claude"]).adapters;
    assert_eq!(adapters["claude"].args, Some(vec!["--fast".to_owned()]));
    assert_eq!(backend(agent.clone()), "claude");
    let own = SuiteAgent {
        command: Some("x".into()),
        ..agent.clone()
    };
    assert_eq!(
        own.to_settings(&["claude"]).cli.args,
        Some(vec!["--fast".to_owned()])
    );
    assert_eq!(backend(own), "custom");
    let named = SuiteAgent::named("claude@opus");
    assert_eq!(named.to_settings(&["claude"]).cli.model.as_deref(), Some("opus"));
    assert_eq!(backend(named), "claude");
    assert_eq!(backend(SuiteAgent::named("driver:own")), "driver:own");
}

#[test]
fn unknown_key_has_a_suggestion() {
    insta::assert_snapshot!(error_for(&format!("{TASK}    verfy: x\n")), @"
    `tasks[0].verfy`: unknown key
     --> tasks.yml:5:5
      |
    5 |     verfy: x
      |     ^^^^^
      |
      = help: did you mean `verify`?
    ");
    insta::assert_snapshot!(error_for(&format!("{TASK}    max_iterations: 3\n")), @"
    `tasks[0].max_iterations`: unknown key
     --> tasks.yml:5:5
      |
    5 |     max_iterations: 3
      |     ^^^^^^^^^^^^^^
      |
      = help: `max_iterations` belongs under `limits:`
    ");
}

#[test]
fn value_of_the_wrong_type_is_reported_with_the_expected_type() {
    insta::assert_snapshot!(error_for("tasks: one\n"), @r#"
    `tasks`: expected a list, found `one`
     --> tasks.yml:1:8
      |
    1 | tasks: one
      |        ^^^
      |
      = help: write `["one"]`, or one `- item` per line
    "#);
    insta::assert_snapshot!(error_for("tasks:\n  - one\n"), @"
    `tasks[0]`: expected a mapping, found `one`
     --> tasks.yml:2:5
      |
    2 |   - one
      |     ^^^
      |
      = help: write `key: value` lines
    ");
    insta::assert_snapshot!(error_for(&format!("repeat: often\n{TASK}")), @"
    `repeat`: expected an integer, found `often`
     --> tasks.yml:1:9
      |
    1 | repeat: often
      |         ^^^^^
    ");
    insta::assert_snapshot!(error_for(&format!("{TASK}    timeout: soon\n")), @"
    `tasks[0].timeout`: expected a duration such as `90s`, `5m`, `1h30m`, or a number of seconds, found `soon`
     --> tasks.yml:5:14
      |
    5 |     timeout: soon
      |              ^^^^
    ");
    insta::assert_snapshot!(error_for(&format!("{TASK}    limits:\n      max_cost_usd: $2\n")), @"
    `tasks[0].limits.max_cost_usd`: expected a number, found `$2`
     --> tasks.yml:6:21
      |
    6 |       max_cost_usd: $2
      |                     ^^
      |
      = help: write the number without a currency sign
    ");
}

#[test]
fn missing_key_is_named() {
    insta::assert_snapshot!(error_for(""), @"
    `tasks`: expected at least one task, found none
     --> tasks.yml:1:1
      |
    1 | 
      | ^
      |
      = help: a task needs `name`, `prompt` and `verify`
    ");
    insta::assert_snapshot!(error_for("tasks:\n"), @"
    `tasks`: missing value
     --> tasks.yml:1:1
      |
    1 | tasks:
      | ^^^^^
      |
      = help: set a value, or remove the key
    ");
    insta::assert_snapshot!(error_for("tasks:\n  - name: one\n    prompt: p\n"), @"
    `tasks[0]`: missing required key `verify`
     --> tasks.yml:3:5
      |
    3 |     prompt: p
      |     ^^^^^^
      |
      = help: add `verify: …`
    ");
    insta::assert_snapshot!(error_for("tasks:\n  - name: one\n    verify: 'true'\n"), @"
    `tasks[0]`: missing required key `prompt`
     --> tasks.yml:2:5
      |
    2 |   - name: one
      |     ^
      |
      = help: add `prompt: …`, or `prompt_file: …` to read it from a file
    ");
    insta::assert_snapshot!(error_for(&format!("agents:\n  - model: opus\n{TASK}")), @"
    `agents[0]`: missing required key `name`
     --> tasks.yml:2:5
      |
    2 |   - model: opus
      |     ^^^^^
      |
      = help: add `name: …`
    ");
}

#[test]
fn names_are_plain_and_unique() {
    insta::assert_snapshot!(error_for(&format!("{TASK}  - name: One\n    prompt: p\n    verify: x\n")), @"
    `tasks[1].name`: duplicate name `One`, already used by `tasks[0]`
     --> tasks.yml:5:11
      |
    5 |   - name: One
      |           ^^^
      |
      = help: rename one of the two
    ");
    insta::assert_snapshot!(error_for("tasks:\n  - name: ../up\n    prompt: p\n    verify: x\n"), @"
    `tasks[0].name`: expected letters, digits, `.`, `_` and `-`, found `../up`
     --> tasks.yml:2:11
      |
    2 |   - name: ../up
      |           ^^^^^
      |
      = help: use a short name such as `fix-the-parser`
    ");
}

#[test]
fn value_out_of_range_is_reported_at_its_location() {
    insta::assert_snapshot!(error_for(&format!("jobs: 0\n{TASK}")), @"
    `jobs`: expected at least 1, found `0`
     --> tasks.yml:1:7
      |
    1 | jobs: 0
      |       ^
    ");
    insta::assert_snapshot!(error_for(&format!("max_cost_usd: -1\n{TASK}")), @"
    `max_cost_usd`: expected a finite number greater than 0, found `-1`
     --> tasks.yml:1:15
      |
    1 | max_cost_usd: -1
      |               ^^
      |
      = help: omit it for no cost limit
    ");
    insta::assert_snapshot!(error_for(&format!("{TASK}    limits: {{max_iterations: 0}}\n")), @"
    `tasks[0].limits.max_iterations`: expected at least 1, found `0`
     --> tasks.yml:5:30
      |
    5 |     limits: {max_iterations: 0}
      |                              ^
      |
      = help: omit it to use the default
    ");
}

#[test]
fn conflicting_keys_are_reported() {
    insta::assert_snapshot!(error_for(&format!("{TASK}    prompt_file: p.md\n")), @"
    `tasks[0].prompt_file`: cannot be combined with `tasks[0].prompt`
     --> tasks.yml:5:5
      |
    5 |     prompt_file: p.md
      |     ^^^^^^^^^^^
      |
      = help: remove one of the two
    ");
    insta::assert_snapshot!(error_for(&format!("{TASK}    ref: main\n")), @"
    `tasks[0].ref`: requires `clone`
     --> tasks.yml:5:5
      |
    5 |     ref: main
      |     ^^^
      |
      = help: set `clone` to a repository, or remove `ref`
    ");
    insta::assert_snapshot!(error_for(&format!("{TASK}    copy: a\n    clone: b\n")), @"
    `tasks[0].clone`: cannot be combined with `tasks[0].copy`
     --> tasks.yml:6:5
      |
    6 |     clone: b
      |     ^^^^^
      |
      = help: remove one of the two
    ");
}

#[test]
fn agents_and_gates_are_checked_like_those_in_ralph_yml() {
    insta::assert_snapshot!(error_for(&format!("agents: [{{name: a, transcript: rtf2}}]\n{TASK}")), @"
    `agents[0].transcript`: expected a transcript format, found `rtf2`
     --> tasks.yml:1:32
      |
    1 | agents: [{name: a, transcript: rtf2}]
      |                                ^^^^
      |
      = help: did you mean `rtf1`?
    ");
    insta::assert_snapshot!(error_for(&format!("{TASK}    gates:\n      - name: g\n        run: ' '\n")), @"
    `tasks[0].gates[0].run`: must not be empty
     --> tasks.yml:7:14
      |
    7 |         run: ' '
      |              ^^^
    ");
}
