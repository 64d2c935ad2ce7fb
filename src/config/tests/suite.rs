//! The tasks file of a bench: what it can say, and how its mistakes are explained.

use std::fs;
use std::path::Path;

use crate::config::{CellLimits, ConfigError, Suite, SuiteAgent, load_suite};

fn load(text: &str) -> Result<Suite, ConfigError> {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("tasks.yml");
    fs::write(&file, text).unwrap();
    load_suite(&file, &["claude", "codex"], &["plain", "rtf1"])
}

/// What is said about a mistake, without the place of the file.
fn complaint(text: &str) -> String {
    let said = load(text).unwrap_err().to_string();
    let lines = said.lines().map(|line| match line.split_once("--> ") {
        Some((gutter, place)) => {
            let name = Path::new(place).file_name().unwrap_or_default();
            format!("{gutter}--> {}\n", name.to_string_lossy())
        }
        None => format!("{line}\n"),
    });
    lines.collect()
}

const TASK: &str = "tasks:\n  - name: one\n    prompt: p\n    verify: 'true'\n";

#[test]
fn paths_are_relative_to_the_file_and_limits_are_laid_over_each_other() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("tasks.yml");
    fs::create_dir(place.path().join("repo")).unwrap();
    let text = "limits: {max_iterations: 7, max_cost_usd: 2}\nagents:\n  - {name: own, command: bin/own.sh}\n  \
                - {name: other, command: own}\ntasks:\n  - {name: a, prompt_file: a.md, copy: src, verify: t, limits: \
                {max_cost_usd: 1}}\n  - {name: b, prompt: p, clone: repo, ref: v1, verify: t}\n  - {name: c, prompt: p, \
                clone: 'https://example.invalid/r.git', verify: t}\n";
    fs::write(&file, text).unwrap();
    let suite = load_suite(&file, &[], &[]).unwrap();
    let [a, b, c] = &suite.tasks[..] else {
        panic!("{suite:?}");
    };
    assert_eq!(a.prompt_file, Some(place.path().join("a.md")));
    assert_eq!(a.copy, Some(place.path().join("src")));
    assert_eq!(b.clone.as_deref(), place.path().join("repo").to_str());
    assert_eq!(c.clone.as_deref(), Some("https://example.invalid/r.git"));
    assert_eq!(
        suite.agents[0].command.as_deref(),
        place.path().join("bin/own.sh").to_str()
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
fn an_agent_is_its_backend_its_command_or_its_name() {
    let backend = |agent: SuiteAgent| agent.wishes(&["claude"]).cli.backend.unwrap();
    let agent = SuiteAgent {
        name: "claude".into(),
        args: vec!["--fast".into()],
        ..SuiteAgent::default()
    };
    let adapters = agent.wishes(&["claude"]).adapters;
    assert_eq!(adapters["claude"].args, Some(vec!["--fast".to_owned()]));
    assert_eq!(backend(agent.clone()), "claude");
    let own = SuiteAgent {
        command: Some("x".into()),
        ..agent.clone()
    };
    assert_eq!(own.wishes(&["claude"]).cli.args, Some(vec!["--fast".to_owned()]));
    assert_eq!(backend(own), "custom");
    let named = SuiteAgent::named("claude@opus");
    assert_eq!(named.wishes(&["claude"]).cli.model.as_deref(), Some("opus"));
    assert_eq!(backend(named), "claude");
    assert_eq!(backend(SuiteAgent::named("driver:own")), "driver:own");
}

#[test]
fn an_unknown_key_is_shown_with_what_was_meant() {
    insta::assert_snapshot!(complaint(&format!("{TASK}    verfy: x\n")), @"
    `tasks[0].verfy` is not a known key
     --> tasks.yml:5:5
      |
    5 |     verfy: x
      |     ^^^^^
      |
      = help: did you mean `verify`?
    ");
    insta::assert_snapshot!(complaint(&format!("{TASK}    max_iterations: 3\n")), @"
    `tasks[0].max_iterations` is not a known key
     --> tasks.yml:5:5
      |
    5 |     max_iterations: 3
      |     ^^^^^^^^^^^^^^
      |
      = help: `max_iterations` belongs under `limits:`
    ");
}

#[test]
fn a_value_of_the_wrong_kind_is_shown_with_what_it_must_be() {
    insta::assert_snapshot!(complaint("tasks: one\n"), @r#"
    `tasks` must be a list, but is `one`
     --> tasks.yml:1:8
      |
    1 | tasks: one
      |        ^^^
      |
      = help: a list is written `["one"]`, or as lines that begin with `- `
    "#);
    insta::assert_snapshot!(complaint("tasks:\n  - one\n"), @"
    `tasks[0]` must be a section of `key: value` lines, but is `one`
     --> tasks.yml:2:5
      |
    2 |   - one
      |     ^^^
    ");
    insta::assert_snapshot!(complaint(&format!("repeat: often\n{TASK}")), @"
    `repeat` must be a whole number, but is `often`
     --> tasks.yml:1:9
      |
    1 | repeat: often
      |         ^^^^^
    ");
    insta::assert_snapshot!(complaint(&format!("{TASK}    timeout: 5m\n")), @"
    `tasks[0].timeout` must be a whole number of seconds, but is `5m`
     --> tasks.yml:5:14
      |
    5 |     timeout: 5m
      |              ^^
      |
      = help: times are given in seconds, without a unit: write `300`
    ");
    insta::assert_snapshot!(complaint(&format!("{TASK}    limits:\n      max_cost_usd: $2\n")), @"
    `tasks[0].limits.max_cost_usd` must be a number, but is `$2`
     --> tasks.yml:6:21
      |
    6 |       max_cost_usd: $2
      |                     ^^
      |
      = help: write the number alone, without a currency sign
    ");
}

#[test]
fn what_is_missing_is_named() {
    insta::assert_snapshot!(complaint(""), @"
    `tasks` must hold at least one task
     --> tasks.yml:1:1
      |
    1 | 
      | ^
      |
      = help: a task has a `name`, a `prompt` and a `verify`
    ");
    insta::assert_snapshot!(complaint("tasks:\n"), @"
    `tasks` has no value
     --> tasks.yml:1:1
      |
    1 | tasks:
      | ^^^^^
      |
      = help: give it one, or remove the line
    ");
    insta::assert_snapshot!(complaint("tasks:\n  - name: one\n    prompt: p\n"), @"
    `tasks[0]` has no `verify`
     --> tasks.yml:3:5
      |
    3 |     prompt: p
      |     ^^^^^^
    ");
    insta::assert_snapshot!(complaint("tasks:\n  - name: one\n    verify: 'true'\n"), @"
    `tasks[0]` has no prompt
     --> tasks.yml:2:5
      |
    2 |   - name: one
      |     ^
      |
      = help: say what is to be done with `prompt`, or in a file with `prompt_file`
    ");
    insta::assert_snapshot!(complaint(&format!("agents:\n  - model: opus\n{TASK}")), @"
    `agents[0]` has no `name`
     --> tasks.yml:2:5
      |
    2 |   - model: opus
      |     ^^^^^
    ");
}

#[test]
fn names_are_plain_and_unique() {
    insta::assert_snapshot!(complaint(&format!("{TASK}  - name: One\n    prompt: p\n    verify: x\n")), @"
    `tasks[1].name` must be unique, but `One` is also the name of `tasks[0]`
     --> tasks.yml:5:11
      |
    5 |   - name: One
      |           ^^^
      |
      = help: give one of the two another name
    ");
    insta::assert_snapshot!(complaint("tasks:\n  - name: ../up\n    prompt: p\n    verify: x\n"), @"
    `tasks[0].name` must be made of letters, digits, `.`, `_` and `-`, but is `../up`
     --> tasks.yml:2:11
      |
    2 |   - name: ../up
      |           ^^^^^
      |
      = help: a short word, such as `fix-the-parser`
    ");
}

#[test]
fn what_makes_no_sense_is_said_where_it_stands() {
    insta::assert_snapshot!(complaint(&format!("jobs: 0\n{TASK}")), @"
    `jobs` must be at least 1, but is `0`
     --> tasks.yml:1:7
      |
    1 | jobs: 0
      |       ^
    ");
    insta::assert_snapshot!(complaint(&format!("max_cost_usd: -1\n{TASK}")), @"
    `max_cost_usd` must be more than 0 and finite, but is `-1`
     --> tasks.yml:1:15
      |
    1 | max_cost_usd: -1
      |               ^^
      |
      = help: leave it out for no limit on the cost
    ");
    insta::assert_snapshot!(complaint(&format!("{TASK}    limits: {{max_iterations: 0}}\n")), @"
    `tasks[0].limits.max_iterations` must be at least 1, but is `0`
     --> tasks.yml:5:30
      |
    5 |     limits: {max_iterations: 0}
      |                              ^
      |
      = help: leave it out for the default
    ");
}

#[test]
fn what_cannot_stand_together_is_said() {
    insta::assert_snapshot!(complaint(&format!("{TASK}    prompt_file: p.md\n")), @"
    `tasks[0].prompt_file` cannot be given together with `tasks[0].prompt`
     --> tasks.yml:5:5
      |
    5 |     prompt_file: p.md
      |     ^^^^^^^^^^^
      |
      = help: keep one of the two
    ");
    insta::assert_snapshot!(complaint(&format!("{TASK}    ref: main\n")), @"
    `tasks[0].ref` has no meaning without `clone`
     --> tasks.yml:5:5
      |
    5 |     ref: main
      |     ^^^
      |
      = help: name the repository with `clone`, or remove it
    ");
    insta::assert_snapshot!(complaint(&format!("{TASK}    copy: a\n    clone: b\n")), @"
    `tasks[0].clone` cannot be given together with `tasks[0].copy`
     --> tasks.yml:6:5
      |
    6 |     clone: b
      |     ^^^^^
      |
      = help: keep one of the two
    ");
}

#[test]
fn agents_and_gates_are_checked_as_those_of_ralph_yml_are() {
    insta::assert_snapshot!(complaint(&format!("agents: [{{name: a, transcript: rtf2}}]\n{TASK}")), @"
    `agents[0].transcript` must be a transcript format, but is `rtf2`
     --> tasks.yml:1:32
      |
    1 | agents: [{name: a, transcript: rtf2}]
      |                                ^^^^
      |
      = help: did you mean `rtf1`?
    ");
    insta::assert_snapshot!(complaint(&format!("{TASK}    gates:\n      - name: g\n        run: ' '\n")), @"
    `tasks[0].gates[0].run` must not be empty
     --> tasks.yml:7:14
      |
    7 |         run: ' '
      |              ^^^
    ");
}
