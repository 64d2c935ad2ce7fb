//! What `ralph bench` refuses, word for word.

use std::fs;

use crate::bench::fake;
use crate::sandbox::Sandbox;

const ONE: &str = "tasks:\n  - {name: one, prompt: p, verify: 'true'}\n";

fn refusal(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let told = sandbox.bench(arguments);
    assert_eq!(told.stdout, "", "a refusal says nothing on stdout");
    let benches = sandbox.path("home").join(".local/state/ralph/bench");
    assert!(!benches.exists(), "a refusal leaves nothing behind");
    format!("{}[exit {}]", sandbox.without_places(&told.stderr), told.exit())
}

#[test]
fn what_is_not_there_is_named_with_a_remedy() {
    let sandbox = fake("", ONE);
    insta::assert_snapshot!(refusal(&sandbox, &["run", "task.yml"]), @"
    error: there is no tasks file [WORKSPACE]/task.yml
      check the path; docs/bench.md shows how such a file is written
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "tasks.yml", "--only", "two"]), @"
    error: there is no task `two`
      there are: one
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "tasks.yml", "--agent", "cluade"]), @"
    error: unknown agent `cluade`
      did you mean `claude`?
      known agents: auto, claude, kiro, gemini, codex, amp, opencode, copilot, cursor, custom
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "tasks.yml", "--agent", "gemini"]), @"
    error: Gemini CLI was requested (backend: gemini) but `gemini` is not in PATH
      install it: https://github.com/google-gemini/gemini-cli
      or use another agent: ralph agents lists what is there
    [exit 4]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "tasks.yml", "--agent", "fake,fake"]), @"
    error: agent `fake` is given twice
      name each agent once; to try it more often: --repeat N; another model: NAME@MODEL
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "--continue"]), @"
    error: there is no bench in [SANDBOX]/home/.local/state/ralph/bench
      begin one: ralph bench run tasks.yml
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "--continue", "tasks.yml"]), @"
    error: [WORKSPACE]/tasks.yml has not been benched yet
      leave --continue out to begin; to see the benches: ralph bench list
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["report"]), @"
    error: there is no bench in [SANDBOX]/home/.local/state/ralph/bench
      begin one: ralph bench run tasks.yml
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "tasks.yml", "--max-cost", "0"]), @"
    error: invalid value '0' for '--max-cost <USD>': expected a number of dollars greater than 0, such as 2.50

    For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn mistakes_in_the_file_are_shown_where_they_are() {
    let sandbox = fake("", "tasks:\n  - {name: one, promt: p, verify: 'true'}\n");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "tasks.yml"]), @"
    error: `tasks[0].promt` is not a known key
     --> [WORKSPACE]/tasks.yml:7:17
      |
    7 |   - {name: one, promt: p, verify: 'true'}
      |                 ^^^^^
      |
      = help: did you mean `prompt`?
    [exit 2]
    ");
    let missing = fake("", "tasks:\n  - {name: one, prompt_file: p.md, verify: 'true'}\n");
    insta::assert_snapshot!(refusal(&missing, &["run", "tasks.yml"]), @"
    error: task `one`: cannot read its prompt file [WORKSPACE]/p.md: No such file or directory (os error 2)
      check the path; it is relative to the tasks file
    [exit 2]
    ");
    let nothing = fake(
        "",
        "tasks:\n  - {name: one, prompt: p, copy: from, verify: 'true'}\n",
    );
    insta::assert_snapshot!(refusal(&nothing, &["run", "tasks.yml"]), @"
    error: task `one`: there is no directory [WORKSPACE]/from to copy
      check `copy`; it is relative to the tasks file
    [exit 2]
    ");
}

#[test]
fn somebody_elses_tasks_file_is_asked_about_once() {
    let sandbox = Sandbox::new()
        .with_file(
            "tasks.yml",
            "agents:\n  - {name: own, command: ./own.sh}\ntasks:\n  - {name: one, prompt: p, setup: make ready, verify: 'true'}\n",
        )
        .with_file("own.sh", "#!/bin/sh\necho LOOP_COMPLETE\n");
    sandbox.git(&["init", "--quiet"]);
    sandbox.git(&["remote", "add", "origin", "https://example.invalid/x.git"]);
    sandbox.git(&["add", "."]);
    insta::assert_snapshot!(refusal(&sandbox, &["run", "tasks.yml"]), @"
    error: This repository's files would have ralph run:
      [WORKSPACE]/tasks.yml (tracked, in a repository with a remote)
        agent own: [WORKSPACE]/own.sh
        setup of one: make ready
        verify of one: true
      [WORKSPACE]/own.sh (tracked, in a repository with a remote)
        itself, as an agent
      they can come from somebody else, so nothing of it was started
      to allow it, until one byte of it changes: ralph trust --tasks tasks.yml
      for one call, or in CI: --trust, or RALPH_TRUST=1
    [exit 2]
    ");
    let allowed = sandbox.ralph(&["trust", "--tasks", "tasks.yml"]).exits_with(0);
    assert!(allowed.stdout.contains("allowed 2 files"), "{}", allowed.stdout);
    let told = sandbox.bench(&["run", "tasks.yml"]);
    assert!(!told.stderr.contains("would have ralph run"), "{}", told.stderr);
    fs::write(sandbox.work().join("own.sh"), "#!/bin/sh\necho other\n").expect("a script");
    sandbox.bench(&["run", "tasks.yml"]).exits_with(2);
}

#[test]
fn help_is_under_a_screen_and_has_an_example() {
    for command in ["run", "report", "list"] {
        let told = Sandbox::new().bench(&[command, "--help"]).exits_with(0);
        assert!(told.stdout.contains("Example"), "{}", told.stdout);
        assert!(told.stdout.lines().count() <= 40, "{command}: {}", told.stdout);
    }
}
