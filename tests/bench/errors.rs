//! Error messages of `ralph bench`.

use std::fs;

use crate::bench::fake;
use crate::sandbox::Sandbox;

const ONE: &str = "tasks:\n  - {name: one, prompt: p, verify: 'true'}\n";

fn refusal(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.bench(arguments);
    assert_eq!(output.stdout, "", "stdout is empty");
    let benches = sandbox.path("state/bench");
    assert!(!benches.exists(), "no bench is created");
    format!("{}[exit {}]", sandbox.redact_paths(&output.stderr), output.exit())
}

#[test]
fn missing_items_are_reported_with_a_hint() {
    let sandbox = fake("", ONE);
    insta::assert_snapshot!(refusal(&sandbox, &["run", "task.yml"]), @"
    error: tasks file not found: [WORKSPACE]/task.yml
    hint: check the path; for the format, see docs/bench.md
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "tasks.yml", "--only", "two"]), @"
    error: no task named `two`
    hint: known tasks: one
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "tasks.yml", "--agent", "cluade"]), @"
    error: unknown agent `cluade`
    hint: did you mean `claude`?
    hint: known agents: auto, claude, kiro, agy, gemini, codex, amp, opencode, copilot, cursor, qwen, pi, kimi, vibe, cline, custom, acp
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "tasks.yml", "--agent", "gemini"]), @"
    error: cannot use Gemini CLI (backend: gemini): `gemini` not found in PATH
    hint: install it: https://github.com/google-gemini/gemini-cli
    hint: to list other agents: ralph agents
    [exit 4]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "tasks.yml", "--agent", "fake,fake"]), @"
    error: agent `fake` is listed twice
    hint: list each agent once; for more attempts, use --repeat N; for another model, NAME@MODEL
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "--continue"]), @"
    error: no benches found in [SANDBOX]/state/bench
    hint: start one: ralph bench run tasks.yml
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "--continue", "tasks.yml"]), @"
    error: no bench of [WORKSPACE]/tasks.yml found
    hint: to start one, remove --continue; to list the benches: ralph bench list
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["report"]), @"
    error: no benches found in [SANDBOX]/state/bench
    hint: start one: ralph bench run tasks.yml
    [exit 2]
    ");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "tasks.yml", "--max-cost", "0"]), @"
    error: invalid value '0' for '--max-cost <USD>': expected a number of dollars greater than 0, such as 2.50

    For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn errors_in_the_file_are_reported_with_their_position() {
    let sandbox = fake("", "tasks:\n  - {name: one, promt: p, verify: 'true'}\n");
    insta::assert_snapshot!(refusal(&sandbox, &["run", "tasks.yml"]), @"
    error: `tasks[0].promt`: unknown key
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
    error: task `one`: cannot read the prompt file [WORKSPACE]/p.md: No such file or directory (os error 2)
    hint: check the path; it is relative to the tasks file
    [exit 2]
    ");
    let nothing = fake(
        "",
        "tasks:\n  - {name: one, prompt: p, copy: from, verify: 'true'}\n",
    );
    insta::assert_snapshot!(refusal(&nothing, &["run", "tasks.yml"]), @"
    error: task `one`: directory to copy not found: [WORKSPACE]/from
    hint: check `copy`; it is relative to the tasks file
    [exit 2]
    ");
}

#[test]
fn an_untrusted_tasks_file_needs_to_be_allowed_once() {
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
    error: the files of this repository would run these commands:
      [WORKSPACE]/tasks.yml (tracked, in a repository with a remote)
        agent own: [WORKSPACE]/own.sh
        setup of one: make ready
        verify of one: true
      [WORKSPACE]/own.sh (tracked, in a repository with a remote)
        the program itself, as an agent
    hint: other people may have written these files; nothing was started
    hint: to allow them until they change: ralph trust --tasks tasks.yml
    hint: to allow them once, or in CI: --trust or RALPH_TRUST=1
    [exit 2]
    ");
    let allowed = sandbox.ralph(&["trust", "--tasks", "tasks.yml"]).exits_with(0);
    assert!(allowed.stdout.contains("allowed 2 files"), "{}", allowed.stdout);
    let output = sandbox.bench(&["run", "tasks.yml"]);
    assert!(
        !output.stderr.contains("would run these commands"),
        "{}",
        output.stderr
    );
    fs::write(sandbox.work().join("own.sh"), "#!/bin/sh\necho other\n").expect("a script");
    sandbox.bench(&["run", "tasks.yml"]).exits_with(2);
}

#[test]
fn help_fits_a_screen_and_has_an_example() {
    for command in ["run", "report", "list"] {
        let output = Sandbox::new().bench(&[command, "--help"]).exits_with(0);
        assert!(output.stdout.contains("Example"), "{}", output.stdout);
        assert!(
            output.stdout.lines().count() <= 40,
            "{command}: {}",
            output.stdout
        );
    }
}
