//! Plans without `--jobs`: one task after the other in the user's workspace.

use std::fs;

use crate::sandbox::Sandbox;

const PLAN: &str = "# Work\r\n\
- [ ] Write a.txt one\n  - gate: test -f a.txt\n\
- [ ] Fail now\n\
- [ ] Write c.txt\n  - needs: Fail now\n\
- [ ] Write b.txt two\n  - gate: grep -q two b.txt\n  - gate: test -f a.txt\n\
```\n- [ ] in a fence\n```\n";

#[test]
fn only_what_the_gates_prove_is_marked_although_the_agent_marks_everything() {
    let sandbox = Sandbox::with_plan(PLAN, "gates: [{name: project, run: test -f PLAN.md}]\n");
    let output = sandbox.plan(&["run", "PLAN.md"]).exits_with(1);
    insta::assert_snapshot!(output.text(), @"
    To run a parked task again: ralph plan retry TASK, then ralph plan run --continue
    ▸ Plan PLAN.md: one task after the other, in this directory
    ▸ write-a-txt-one-b622 · Write a.txt one
    ✓ write-a-txt-one-b622 · Write a.txt one
    ▸ fail-now-b39d · Fail now
    ✗ fail-now-b39d · parked: Failed: the iteration failed (max_consecutive_failures: 1).
    ✗ write-c-txt-3cd3 · parked: it needs fail-now-b39d
    ▸ write-b-txt-two-f212 · Write b.txt two
    ✓ write-b-txt-two-f212 · Write b.txt two
    ✗ The plan is not complete: 2 of 4 tasks done, 2 parked
    ");
    // The agent marks the box in the fence too. It is not a task, so it stays as the agent left it.
    let expected = PLAN
        .replace("- [ ] Write a.txt", "- [x] Write a.txt")
        .replace("- [ ] Write b.txt", "- [x] Write b.txt")
        .replace("- [ ] in a fence", "- [x] in a fence");
    assert_eq!(sandbox.plan_text(), expected);
    let states: Vec<String> = sandbox
        .task_states()
        .into_iter()
        .map(|(_, state)| state)
        .collect();
    assert_eq!(states, ["done", "parked", "parked", "done"]);
    let runs = fs::read_dir(sandbox.runs()).expect("runs").count();
    assert_eq!(runs, 3, "each task is an ordinary run of the project");
}

#[test]
fn failed_gate_leaves_the_task_open_and_a_retry_finishes_it() {
    let plan = "- [ ] Write a.txt one\n  - gate: test -f ok\n- [ ] Write b.txt two\n";
    let sandbox = Sandbox::with_plan(plan, "");
    let output = sandbox.plan(&["run", "PLAN.md"]).exits_with(1);
    assert!(output.stderr.contains("1 task without a gate"), "{output:?}");
    assert_eq!(sandbox.plan_text(), plan.replace("[ ] Write b", "[x] Write b"));
    fs::write(sandbox.work().join("ok"), "").expect("a file");
    sandbox.plan(&["retry", "nothing"]).exits_with(2);
    let output = sandbox.plan(&["retry", "write-a"]).exits_with(0);
    assert!(
        output.stdout.contains("will run again when the plan is resumed"),
        "{output:?}"
    );
    let output = sandbox.plan(&["run", "--continue"]).exits_with(0);
    assert!(
        output.stderr.contains("The plan is complete: 2 of 2 tasks done"),
        "{output:?}"
    );
    assert_eq!(sandbox.plan_text(), plan.replace("[ ]", "[x]"));
    assert_eq!(
        sandbox.prompts_of("Write b.txt").len(),
        1,
        "a finished task does not run again"
    );
}

#[test]
fn skipped_tasks_do_not_block_others_and_selected_tasks_run_alone() {
    let plan = "- [ ] Fail first\n- [ ] Write a.txt one\n  - needs: Fail first\n- [ ] Write b.txt two\n";
    let sandbox = Sandbox::with_plan(plan, "");
    let listed = sandbox.plan(&["check", "PLAN.md", "--json"]).exits_with(0).json();
    let id = listed[2]["id"].as_str().expect("an id").to_owned();
    sandbox.plan(&["run", "PLAN.md", "--only", &id]).exits_with(0);
    assert_eq!(sandbox.plan_text(), plan.replace("[ ] Write b", "[x] Write b"));
    sandbox
        .plan(&["run", "PLAN.md", "--only", "nothing"])
        .exits_with(2);
    sandbox.plan(&["run", "PLAN.md"]).exits_with(1);
    sandbox.plan(&["skip", "fail-first"]).exits_with(0);
    let output = sandbox.plan(&["run", "--continue"]).exits_with(0);
    assert!(output.stderr.contains("2 of 3 tasks done"), "{output:?}");
    assert!(sandbox.work().join("a.txt").exists());
}

#[test]
fn commands_of_a_cloned_plan_need_consent() {
    let plan = "- [ ] Write a.txt one\n  - gate: touch gate-ran\n";
    let sandbox = Sandbox::with_plan(plan, "");
    sandbox.plan_git(&["remote", "add", "origin", "https://example.com/x.git"]);
    let output = sandbox.ralph(&["plan", "run", "PLAN.md"]).exits_with(2);
    assert!(output.stderr.contains("agent.sh"), "{output:?}");
    sandbox.ralph(&["trust"]).exits_with(0);
    let output = sandbox.ralph(&["plan", "run", "PLAN.md"]).exits_with(2);
    assert!(
        output.stderr.contains("touch gate-ran") && output.stderr.contains("to allow them"),
        "{output:?}"
    );
    assert!(!sandbox.work().join("gate-ran").exists());
    sandbox
        .ralph(&["plan", "run", "PLAN.md", "--trust"])
        .exits_with(0);
    assert!(sandbox.work().join("gate-ran").exists());
}

#[test]
fn records_are_printed_as_json_lines() {
    let sandbox = Sandbox::with_plan("- [ ] Write a.txt one\n  - gate: test -f a.txt\n", "");
    let output = sandbox.plan(&["run", "PLAN.md", "--json"]).exits_with(0);
    let types: Vec<String> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a record"))
        .map(|record| record["type"].as_str().unwrap_or_default().to_owned())
        .collect();
    let expected = [
        "plan_started",
        "tasks_read",
        "task_chosen",
        "task_run",
        "task_verified",
        "task_done",
        "plan_ended",
    ];
    assert_eq!(types, expected);
    assert_eq!(output.stderr, "");
}
