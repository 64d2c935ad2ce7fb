//! Plans with `--jobs`: worktrees, the merge queue, and the user's own checkout, which stays as it is.

use std::collections::BTreeSet;
use std::fs;

use crate::sandbox::Sandbox;

#[test]
fn conflicting_task_runs_again_with_both_diffs_and_the_checkout_stays_untouched() {
    let plan = "- [ ] Append log.txt one\n  - gate: grep -q one log.txt\n- [ ] Append log.txt two\n  - gate: grep -q two log.txt\n";
    let sandbox = Sandbox::with_plan(plan, "gates: [{name: both, run: test -f log.txt}]\n");
    let before = sandbox.checkout();
    let output = sandbox.plan(&["run", "PLAN.md", "--jobs", "2"]).exits_with(0);
    assert!(
        output.stderr.contains("runs again: conflict in log.txt"),
        "{output:?}"
    );
    assert!(
        output.stdout.contains("To take the result: git merge ralph/plan"),
        "{output:?}"
    );
    assert_eq!(sandbox.checkout(), before);
    let log = sandbox.plan_git(&["show", "ralph/plan:log.txt"]);
    let lines: BTreeSet<&str> = log.lines().collect();
    assert_eq!(lines, BTreeSet::from(["one", "two"]));
    let again: Vec<String> = [
        sandbox.prompts_of("Append log.txt one"),
        sandbox.prompts_of("Append log.txt two"),
    ]
    .concat();
    let again = again
        .iter()
        .find(|prompt| prompt.contains("could not be merged"))
        .expect("a second attempt");
    assert!(
        again.contains("+one") && again.contains("+two"),
        "both diffs: {again}"
    );
    assert_eq!(
        sandbox.plan_git(&["show", "ralph/plan:PLAN.md"]) + "\n",
        plan.replace("[ ]", "[x]")
    );
    // No worktree is left, and the branch of the rejected attempt keeps its commits.
    assert_eq!(sandbox.plan_git(&["worktree", "list"]).lines().count(), 1);
    let branches = sandbox.plan_git(&["branch", "--list", "ralph/plan.tasks/*"]);
    assert_eq!(branches.lines().count(), 1, "{branches}");

    sandbox
        .plan(&["run", "PLAN.md", "--continue", "--merge"])
        .exits_with(0);
    assert_eq!(sandbox.plan_text(), plan.replace("[ ]", "[x]"));
    assert_eq!(
        sandbox.plan_git(&["rev-parse", "HEAD"]),
        sandbox.plan_git(&["rev-parse", "ralph/plan"])
    );
}

#[test]
fn every_commit_of_the_branch_passes_the_gates_even_if_tasks_break_each_other() {
    // Each task is green alone; together they are red.
    let gate = "! { grep -q x a.txt && grep -q x b.txt; }";
    let config = format!("gates: [{{name: exclusive, run: '{gate}'}}]\n");
    let plan = "- [ ] Write a.txt x\n- [ ] Write b.txt x\n- [ ] Write c.txt y\n";
    let sandbox = Sandbox::with_plan(plan, &config);
    for name in ["a.txt", "b.txt"] {
        fs::write(sandbox.work().join(name), "o\n").expect("a file");
    }
    sandbox.commit_all("files");
    let output = sandbox.plan(&["run", "PLAN.md", "--jobs", "3"]).exits_with(1);
    assert!(
        output
            .stderr
            .contains("runs again: gate exclusive failed on the merged work"),
        "{output:?}"
    );
    assert!(output.stderr.contains("parked"), "{output:?}");
    let commits = sandbox.plan_git(&["rev-list", "--first-parent", "main..ralph/plan"]);
    assert_eq!(commits.lines().count(), 2, "{commits}");
    for commit in commits.lines() {
        let show = |file: &str| sandbox.plan_git(&["show", &format!("{commit}:{file}")]);
        assert!(!(show("a.txt") == "x" && show("b.txt") == "x"), "{commit}");
    }
    // Another execution must not discard work that is not part of the user's branch.
    let output = sandbox.plan(&["run", "PLAN.md", "--jobs", "2"]).exits_with(2);
    assert!(
        output.stderr.contains("ralph/plan has work of an earlier plan"),
        "{output:?}"
    );
}

#[test]
fn worktrees_are_made_ready_and_have_their_own_ports() {
    let plan = "- [ ] Write a.txt one\n- [ ] Write b.txt two\n";
    let config = "gates: [{name: ready, run: test -f .env && test -f made && ! test -f other.log}]\nworktree: {setup: 'touch made'}\n";
    let sandbox = Sandbox::with_plan(plan, config);
    for (name, text) in [
        (".gitignore", ".env\n*.log\nmade\n"),
        (".worktreeinclude", ".env\nmade-up\n"),
        (".env", "KEY=1\n"),
        ("other.log", ""),
    ] {
        fs::write(sandbox.work().join(name), text).expect("a file");
    }
    sandbox.commit_all("files");
    sandbox.plan(&["run", "PLAN.md", "--jobs", "2"]).exits_with(0);
    let ports: BTreeSet<u64> = fs::read_dir(sandbox.path("agent"))
        .expect("the agent's files")
        .flatten()
        .filter(|entry| {
            entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "port")
        })
        .map(|entry| {
            fs::read_to_string(entry.path())
                .expect("a port")
                .trim()
                .parse()
                .expect("a number")
        })
        .collect();
    assert_eq!(ports.len(), 2, "{ports:?}");
    let sandbox = Sandbox::with_plan(plan, "worktree: {setup: 'echo no network; exit 3'}\n");
    let output = sandbox.plan(&["run", "PLAN.md", "--jobs", "2"]).exits_with(1);
    assert!(
        output
            .stderr
            .contains("worktree.setup failed with exit code 3: no network"),
        "{output:?}"
    );
}

#[test]
fn commits_follow_the_policy() {
    let log = |policy: &str, title: &str, code: i32| {
        let config = format!("worktree: {{commit: {policy}, co_author: 'Bot <bot@example.com>'}}\n");
        let sandbox = Sandbox::with_plan(
            &format!("- [ ] {title}\n  - id: t\n  - gate: test -f a.txt\n"),
            &config,
        );
        sandbox.plan(&["run", "PLAN.md", "--jobs", "1"]).exits_with(code);
        sandbox.plan_git(&[
            "log",
            "--format=%s|%(trailers:separator=%x2C)",
            "main..ralph/plan",
        ])
    };
    let trailers = "|Ralph-Task: t,Co-authored-by: Bot <bot@example.com>";
    let written = format!("Write a.txt one{trailers}");
    let committed = format!("Commit a.txt one{trailers}\nby the agent|");
    assert_eq!(
        log("ralph", "Write a.txt one", 0),
        format!("{written}\n{written}")
    );
    assert_eq!(
        log("ralph", "Commit a.txt one", 0),
        committed,
        "the marks of the agent are not committed"
    );
    assert_eq!(
        log("squash", "Commit a.txt one", 0),
        format!("Commit a.txt one{trailers}")
    );
    assert_eq!(log("agent", "Commit a.txt one", 0), committed);
    assert_eq!(
        log("agent", "Write a.txt one", 1),
        "",
        "uncommitted changes are not done"
    );
}

#[test]
fn a_task_cannot_weaken_the_gates_of_others() {
    let plan = "- [ ] Write ralph.yml {}\n- [ ] Write a.txt one\n  - needs: Write ralph.yml {}\n";
    let sandbox = Sandbox::with_plan(plan, "gates: [{name: strict, run: '! test -f a.txt'}]\n");
    sandbox.plan(&["run", "PLAN.md", "--jobs", "2"]).exits_with(1);
    let states: Vec<String> = sandbox
        .task_states()
        .into_iter()
        .map(|(_, state)| state)
        .collect();
    assert_eq!(states, ["done", "parked"]);
}
