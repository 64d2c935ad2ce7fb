//! Random plans whose tasks conflict, with `kill -9` of the plan and `--continue`: every merge is green, nothing is lost, and the
//! user's checkout stays as it is.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::sandbox::Sandbox;

/// Every line of the shared file must be there once, and two of the files exclude each other.
const GATES: &str = "gates:\n  - {name: unique, run: 'PATH=/usr/bin:/bin; test ! -f log.txt || test -z \"$(sort log.txt | uniq -d)\"'}\n  - {name: exclusive, run: '! { test -f x1.txt && test -f x2.txt; }'}\n";

fn random_plan(tasks: usize, random: &mut fastrand::Rng) -> String {
    let mut plan = String::from("# Random\n");
    for n in 0..tasks {
        let title = match random.u32(..10) {
            0..=3 => format!("Append log.txt line{n}"),
            4 => format!("Write x1.txt task{n}"),
            5 => format!("Write x2.txt task{n}"),
            _ => format!("Write file{n}.txt text"),
        };
        plan.push_str(&format!("- [ ] {title}\n  - id: t{n}\n"));
        if n > 0 && random.u32(..3) == 0 {
            plan.push_str(&format!("  - needs: t{}\n", random.usize(..n)));
        }
    }
    plan
}

fn run_with_kills(seed: u64, tasks: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let plan = random_plan(tasks, &mut random);
    let sandbox = Sandbox::with_plan(&plan, GATES);
    let before = sandbox.checkout();
    let mut first = vec!["run", "PLAN.md", "--jobs", "3"];
    for _ in 0..3 {
        let mut running = sandbox.start_plan(&first);
        if running.has_ended_within(Duration::from_millis(random.u64(300..2500))) {
            break;
        }
        running.kill();
        sandbox.wait_until_processes_exit(Duration::from_secs(20));
        // A process that was killed before its first record has no plan to resume.
        let has_started = sandbox.plan(&["status"]).exit() == 0;
        first = if has_started {
            vec!["run", "--continue"]
        } else {
            first
        };
    }
    let output = sandbox.plan(&["run", "PLAN.md", "--continue"]);
    assert!([0, 1].contains(&output.exit()), "seed {seed}: {output:?}");
    assert_eq!(sandbox.checkout(), before, "seed {seed}");
    check_commits(&sandbox, seed);
    let marked = sandbox.plan_git(&["show", "ralph/plan:PLAN.md"]);
    let status = sandbox.plan(&["status", "--json"]).exits_with(0).json();
    for task in status["tasks"].as_array().expect("tasks") {
        let (id, state) = (
            task["id"].as_str().expect("an id"),
            task["state"].as_str().expect("a state"),
        );
        assert!(
            ["done", "parked"].contains(&state),
            "seed {seed}: {id} is {state}: {output:?}"
        );
        let entry = marked.split("- [").find(|entry| {
            entry.contains(&format!("id: {id}\n")) || entry.trim_end().ends_with(&format!("id: {id}"))
        });
        let is_marked = entry.expect("the task").starts_with("x]");
        assert_eq!(is_marked, state == "done", "seed {seed}: {id}");
    }
    // Every commit that a task made is on a branch.
    let journal = sandbox.plan_journal();
    let reachable = sandbox.plan_git(&["rev-list", "--all"]);
    let reachable: BTreeSet<&str> = reachable.lines().collect();
    for record in journal.iter().filter(|record| record["type"] == "task_committed") {
        let commit = record["commit"].as_str().expect("a commit");
        assert!(reachable.contains(commit), "seed {seed}: {record}");
    }
}

/// Runs the gates again on every merge.
fn check_commits(sandbox: &Sandbox, seed: u64) {
    let commits = sandbox.plan_git(&["rev-list", "--first-parent", "main..ralph/plan"]);
    for commit in commits.lines() {
        let files = sandbox.plan_git(&["ls-tree", "--name-only", commit]);
        let files: BTreeSet<&str> = files.lines().collect();
        assert!(
            !(files.contains("x1.txt") && files.contains("x2.txt")),
            "seed {seed}: {commit}"
        );
        if files.contains("log.txt") {
            let log = sandbox.plan_git(&["show", &format!("{commit}:log.txt")]);
            let unique: BTreeSet<&str> = log.lines().collect();
            assert_eq!(unique.len(), log.lines().count(), "seed {seed}: {commit}");
        }
    }
}

#[test]
fn killed_plans_with_conflicts_stay_green_and_lose_nothing() {
    for seed in 1..=2 {
        run_with_kills(seed, 6);
    }
}

#[test]
#[ignore = "takes more than an hour: cargo test --release two_hundred_killed_plans -- --ignored"]
fn two_hundred_killed_plans_with_conflicts_stay_green_and_lose_nothing() {
    for seed in 1..=200 {
        run_with_kills(seed, 10);
    }
}
