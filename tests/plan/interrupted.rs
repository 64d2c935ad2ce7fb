//! Interrupted plans: no process, lock or half worktree is left, and `--continue` finishes them.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use crate::process::helpers::wait_until;
use crate::sandbox::{DEADLINE, Sandbox};

const PLAN: &str = "- [ ] Write a.txt one\n  - gate: test -f a.txt\n- [ ] Once more\n- [ ] Write b.txt two\n  - needs: Once more\n";

fn is_done(sandbox: &Sandbox, title: &str) -> bool {
    sandbox
        .task_states()
        .contains(&(title.to_owned(), "done".to_owned()))
}

#[test]
fn stopped_plan_leaves_nothing_and_continues() {
    for signal in [Signal::INT, Signal::TERM] {
        let sandbox = Sandbox::with_plan(PLAN, "");
        let running = sandbox.start_plan(&["run", "PLAN.md", "--jobs", "2"]);
        wait_until("the hanging task", DEADLINE, || {
            sandbox.path("agent/once").exists() && is_done(&sandbox, "Write a.txt one")
        });
        running.signal(signal);
        let output = running
            .finish()
            .exits_with(if signal == Signal::INT { 130 } else { 143 });
        assert!(
            output.stdout.contains("To resume: ralph plan run --continue"),
            "{output:?}"
        );
        sandbox.wait_until_processes_exit(Duration::from_secs(5));
        let before = sandbox.checkout();
        let output = sandbox.plan(&["run", "--continue"]).exits_with(0);
        assert!(output.stderr.contains("3 of 3 tasks done"), "{output:?}");
        assert_eq!(sandbox.checkout(), before);
        assert_eq!(sandbox.prompts_of("Write a.txt").len(), 1);
        assert_eq!(sandbox.prompts_of("Once").len(), 2);
    }
}

#[test]
fn killed_plan_leaves_no_process_and_continues() {
    let sandbox = Sandbox::with_plan(PLAN, "");
    let running = sandbox.start_plan(&["run", "PLAN.md", "--jobs", "2"]);
    wait_until("the hanging task", DEADLINE, || {
        sandbox.path("agent/once").exists() && is_done(&sandbox, "Write a.txt one")
    });
    running.kill();
    sandbox.wait_until_processes_exit(Duration::from_secs(20));
    let states: Vec<String> = sandbox
        .task_states()
        .into_iter()
        .map(|(_, state)| state)
        .collect();
    assert_eq!(states, ["done", "interrupted", "waiting"]);
    // A worktree that was being created when ralph was killed.
    let worktrees = sandbox.path("home/.cache/ralph/worktrees");
    let project = fs::read_dir(&worktrees)
        .expect("worktrees")
        .flatten()
        .next()
        .expect("a project");
    fs::create_dir(project.path().join("plan/half-1")).expect("half a worktree");
    sandbox.plan(&["run", "--continue"]).exits_with(0);
    let prompts = sandbox.prompts_of("Once");
    assert!(
        prompts[1].contains("An earlier run of this task was interrupted"),
        "{prompts:?}"
    );
    assert_eq!(sandbox.plan_git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(
        fs::read_dir(project.path().join("plan"))
            .expect("worktrees")
            .count(),
        0
    );
}

#[test]
fn commands_reach_a_running_plan() {
    let plan = "- [ ] Hang here\n- [ ] Write a.txt one\n  - needs: Hang here\n";
    let sandbox = Sandbox::with_plan(plan, "");
    let running = sandbox.start_plan(&["run", "PLAN.md"]);
    sandbox.wait_for_processes(1);
    sandbox.plan(&["run", "PLAN.md"]).exits_with(5);
    wait_until("the run", DEADLINE, || {
        sandbox.plan(&["tell", "hang", "hello"]).exit() == 0
    });
    sandbox.plan(&["skip", "hang-here"]).exits_with(0);
    let output = running.finish().exits_with(0);
    assert!(output.stderr.contains("skipped"), "{output:?}");
    assert!(sandbox.work().join("a.txt").exists());
    assert_eq!(sandbox.plan(&["tell", "hang", "hello"]).exit(), 2);
    let plan = plan.replace("Write", "Hang");
    fs::write(sandbox.work().join("PLAN.md"), plan).expect("a plan");
    let running = sandbox.start_plan(&["run", "PLAN.md"]);
    sandbox.wait_for_processes(3);
    sandbox.plan(&["stop"]).exits_with(0);
    running.finish().exits_with(130);
    sandbox.wait_until_processes_exit(Duration::from_secs(5));
}

#[test]
fn marks_that_an_agent_left_before_a_kill_do_not_count_in_a_new_execution() {
    let sandbox = Sandbox::with_plan(PLAN, "");
    let running = sandbox.start_plan(&["run", "PLAN.md"]);
    wait_until("the hanging task", DEADLINE, || {
        sandbox.path("agent/once").exists()
    });
    running.kill();
    sandbox.wait_until_processes_exit(Duration::from_secs(20));
    assert!(
        !sandbox.plan_text().contains("[ ]"),
        "the agent has marked everything"
    );
    let output = sandbox.plan(&["run", "PLAN.md"]).exits_with(0);
    assert!(output.stderr.contains("3 of 3 tasks done"), "{output:?}");
    assert_eq!(sandbox.prompts_of("Write b.txt").len(), 1);
}
