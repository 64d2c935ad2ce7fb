//! Conversations with a plan, and properties that hold whatever happens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::plan::task::Task;

fn task(id: &str, needs: &[&str]) -> ReadTask {
    ReadTask {
        task: Task {
            id: id.to_owned(),
            title: id.to_uppercase(),
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            ..Task::default()
        },
        done: false,
    }
}

fn plan(jobs: usize, integration: Integration) -> Plan {
    Plan::new(PlanOptions {
        jobs,
        integration,
        max_cost_usd: None,
        only: BTreeSet::new(),
    })
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The actions of a step, in short.
fn brief(actions: &[Action]) -> Vec<String> {
    let short = |action: &Action| match action {
        Action::Start(start) => {
            let budget = start
                .max_cost_usd
                .map(|max| format!(" ${max}"))
                .unwrap_or_default();
            let again = if start.rejection.is_some() { " again" } else { "" };
            Some(format!(
                "start {}{}{budget}{again}",
                start.task.id,
                ".".repeat(start.attempt as usize - 1)
            ))
        }
        Action::Stop { task } => Some(format!("stop {task}")),
        Action::Merge { tasks } => Some(format!("merge {}", tasks.join("+"))),
        Action::StopMerge => Some("stop merge".to_owned()),
        Action::Mark { task } => Some(format!("mark {task}")),
        Action::Emit(PlanEvent::TaskParked { task, why, .. }) => Some(match why {
            ParkReason::Need { need } => format!("park {task} (needs {need})"),
            ParkReason::Failed { reason } => format!("park {task} ({reason})"),
            ParkReason::Rejected { .. } => format!("park {task} (rejected)"),
            ParkReason::Stopped => format!("park {task} (stopped)"),
        }),
        Action::Emit(PlanEvent::TaskReopened { task }) => Some(format!("reopen {task}")),
        Action::Emit(PlanEvent::TaskRemoved { task }) => Some(format!("removed {task}")),
        Action::Emit(_) => None,
        Action::End { outcome } => Some(format!("end {outcome:?}")),
    };
    actions.iter().filter_map(short).collect()
}

trait Talk {
    fn reads(&mut self, tasks: Vec<ReadTask>) -> Vec<String>;
    fn ends(&mut self, task: &str, end: TaskEnd, cost: f64) -> Vec<String>;
    fn is_merged(&mut self, tasks: &[&str], gates: u64) -> Vec<String>;
    fn rejected(&mut self, tasks: &[&str], why: Rejection) -> Vec<String>;
    fn receives(&mut self, command: PlanCommand) -> Vec<String>;
}

fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

impl Talk for Plan {
    fn reads(&mut self, tasks: Vec<ReadTask>) -> Vec<String> {
        brief(&self.step(secs(0), Input::TasksRead { tasks }))
    }

    fn ends(&mut self, task: &str, end: TaskEnd, cost_usd: f64) -> Vec<String> {
        let task = task.to_owned();
        brief(&self.step(secs(1), Input::RunEnded { task, end, cost_usd }))
    }

    fn is_merged(&mut self, tasks: &[&str], gates: u64) -> Vec<String> {
        let (tasks, commit, gates) = (owned(tasks), "c".to_owned(), secs(gates));
        brief(&self.step(secs(2), Input::Merged { tasks, commit, gates }))
    }

    fn rejected(&mut self, tasks: &[&str], why: Rejection) -> Vec<String> {
        let (tasks, gates) = (owned(tasks), secs(60));
        brief(&self.step(secs(2), Input::MergeRejected { tasks, why, gates }))
    }

    fn receives(&mut self, command: PlanCommand) -> Vec<String> {
        brief(&self.step(
            secs(3),
            Input::Commands {
                commands: vec![command],
            },
        ))
    }
}

fn red() -> Rejection {
    Rejection::GateFailed {
        gate: "test".into(),
        output: "1 failed".into(),
    }
}

fn conflict(task: &str) -> Rejection {
    Rejection::Conflict {
        task: task.to_owned(),
        files: vec!["a".into()],
    }
}

fn failed() -> TaskEnd {
    TaskEnd::Failed {
        reason: "gave up".into(),
    }
}

#[test]
fn tasks_run_in_order_in_place() {
    let mut plan = plan(1, Integration::InPlace);
    let mut first = task("b", &[]);
    first.task.priority = Some(1);
    assert_eq!(
        plan.reads(vec![task("a", &[]), first, task("c", &["a"])]),
        ["start b"]
    );
    assert_eq!(plan.ends("b", TaskEnd::Verified, 0.1), ["mark b", "start a"]);
    assert_eq!(plan.ends("a", TaskEnd::Verified, 0.1), ["mark a", "start c"]);
    assert_eq!(plan.ends("c", TaskEnd::Verified, 0.1), ["mark c", "end Complete"]);
}

#[test]
fn dependents_of_a_failed_task_are_parked_and_others_continue() {
    let mut plan = plan(2, Integration::MergeQueue);
    let tasks = vec![
        task("a", &[]),
        task("b", &["a"]),
        task("c", &["b"]),
        task("d", &[]),
        task("e", &[]),
    ];
    assert_eq!(plan.reads(tasks), ["start a", "start d"]);
    assert_eq!(
        plan.ends("a", failed(), 0.0),
        [
            "park a (gave up)",
            "park b (needs a)",
            "park c (needs b)",
            "start e"
        ]
    );
    assert_eq!(
        plan.receives(PlanCommand::Retry { task: "a".into() }),
        ["reopen a", "reopen b", "reopen c"]
    );
    assert_eq!(plan.ends("d", TaskEnd::Verified, 0.0), ["merge d", "start a"]);
    assert_eq!(plan.ends("e", TaskEnd::Verified, 0.0), [""; 0]);
    assert_eq!(plan.is_merged(&["d"], 1), ["mark d", "merge e"]);
    assert_eq!(
        plan.ends("a", failed(), 0.0),
        ["park a (gave up)", "park b (needs a)", "park c (needs b)"]
    );
    assert_eq!(plan.is_merged(&["e"], 1), ["mark e", "end Incomplete"]);
}

#[test]
fn tasks_that_touch_the_same_files_do_not_run_at_the_same_time() {
    let mut plan = plan(3, Integration::MergeQueue);
    let touching = |id: &str, pattern: &str| {
        let mut task = task(id, &[]);
        task.task.touches = vec![pattern.to_owned()];
        task
    };
    let tasks = vec![
        touching("a", "src/**"),
        touching("b", "src/x.rs"),
        touching("c", "docs/**"),
    ];
    assert_eq!(plan.reads(tasks), ["start a", "start c"]);
    assert_eq!(
        plan.ends("a", TaskEnd::Verified, 0.0),
        ["merge a"],
        "b waits for the merge"
    );
    assert_eq!(plan.is_merged(&["a"], 0), ["mark a", "start b"]);
}

#[test]
fn rejected_task_runs_again_twice_and_is_then_parked() {
    let mut plan = plan(1, Integration::MergeQueue);
    assert_eq!(plan.reads(vec![task("a", &[]), task("b", &["a"])]), ["start a"]);
    for again in ["start a. again", "start a.. again"] {
        assert_eq!(plan.ends("a", TaskEnd::Verified, 0.0), ["merge a"]);
        assert_eq!(plan.rejected(&["a"], conflict("a")), [again]);
    }
    assert_eq!(plan.ends("a", TaskEnd::Verified, 0.0), ["merge a"]);
    assert_eq!(
        plan.rejected(&["a"], red()),
        ["park a (rejected)", "park b (needs a)", "end Incomplete"]
    );
}

#[test]
fn slow_gates_run_once_for_several_tasks_and_a_failed_batch_is_halved() {
    let mut plan = plan(8, Integration::MergeQueue);
    let ids = ["a", "b", "c", "d", "e"];
    plan.reads(ids.iter().map(|id| task(id, &[])).collect());
    assert_eq!(plan.ends("a", TaskEnd::Verified, 0.0), ["merge a"]);
    for id in &ids[1..] {
        assert_eq!(plan.ends(id, TaskEnd::Verified, 0.0), [""; 0]);
    }
    assert_eq!(plan.is_merged(&["a"], 60), ["mark a", "merge b+c+d+e"]);
    assert_eq!(plan.rejected(&["b", "c", "d", "e"], red()), ["merge b+c"]);
    assert_eq!(plan.is_merged(&["b", "c"], 60), ["mark b", "mark c", "merge d+e"]);
    assert_eq!(plan.rejected(&["d", "e"], red()), ["merge d"]);
    assert_eq!(plan.rejected(&["d"], red()), ["merge e", "start d. again"]);
    assert_eq!(plan.is_merged(&["e"], 60), ["mark e"]);
}

#[test]
fn conflict_in_a_batch_rejects_only_its_task() {
    let mut plan = plan(8, Integration::MergeQueue);
    plan.reads(["a", "b", "c"].map(|id| task(id, &[])).to_vec());
    plan.ends("a", TaskEnd::Verified, 0.0);
    plan.ends("b", TaskEnd::Verified, 0.0);
    plan.ends("c", TaskEnd::Verified, 0.0);
    assert_eq!(plan.is_merged(&["a"], 60), ["mark a", "merge b+c"]);
    assert_eq!(
        plan.rejected(&["b", "c"], conflict("b")),
        ["merge c", "start b. again"]
    );
    assert_eq!(plan.rejected(&["c"], Rejection::Moved), ["merge c"]);
    let full = Rejection::Failed {
        reason: "disk full".into(),
    };
    assert_eq!(plan.rejected(&["c"], full), ["park c (disk full)"]);
}

#[test]
fn budget_is_shared_and_its_end_stops_new_tasks() {
    let mut plan = plan(2, Integration::MergeQueue);
    plan.options.max_cost_usd = Some(3.0);
    plan.budget = Budget::new(Some(3.0), 0.0);
    assert_eq!(
        plan.reads(["a", "b", "c"].map(|id| task(id, &[])).to_vec()),
        ["start a $1.5", "start b $1.5"]
    );
    assert_eq!(
        plan.ends("a", TaskEnd::Verified, 1.0),
        ["merge a", "start c $0.5"]
    );
    assert_eq!(plan.ends("c", TaskEnd::OutOfBudget, 0.5), [""; 0]);
    assert_eq!(plan.ends("b", TaskEnd::Verified, 1.5), [""; 0]);
    assert_eq!(
        plan.is_merged(&["a"], 0),
        ["mark a", "end OutOfBudget"],
        "b is merged when the plan is resumed"
    );
}

#[test]
fn agent_that_waits_for_a_usage_limit_gets_no_further_task() {
    let mut plan = plan(2, Integration::InPlace);
    let mut other = task("c", &[]);
    other.task.agent = Some("codex".into());
    plan.reads(vec![task("a", &[])]);
    let wait = secs(100);
    assert_eq!(
        brief(&plan.step(
            secs(5),
            Input::Limited {
                task: "a".into(),
                wait
            }
        )),
        [""; 0]
    );
    let tasks = vec![task("a", &[]), task("b", &[]), other];
    assert_eq!(
        brief(&plan.step(secs(6), Input::TasksRead { tasks })),
        ["start c"]
    );
    assert_eq!(plan.deadline(), Some(secs(105)));
    let (task, end) = ("c".to_owned(), TaskEnd::Verified);
    assert_eq!(
        brief(&plan.step(
            secs(9),
            Input::RunEnded {
                task,
                end,
                cost_usd: 0.0
            }
        )),
        ["mark c"]
    );
    assert_eq!(brief(&plan.step(secs(105), Input::Tick)), ["start b"]);
}

#[test]
fn unusable_agent_parks_its_tasks_and_no_others() {
    let mut plan = plan(1, Integration::InPlace);
    let mut other = task("c", &[]);
    other.task.agent = Some("codex".into());
    plan.reads(vec![task("a", &[]), task("b", &[]), other]);
    let end = TaskEnd::AgentUnusable {
        reason: "not logged in".into(),
    };
    assert_eq!(
        plan.ends("a", end, 0.0),
        ["park a (not logged in)", "park b (not logged in)", "start c"]
    );
}

#[test]
fn interrupt_stops_everything_and_the_plan_ends_when_all_have_ended() {
    let mut plan = plan(2, Integration::MergeQueue);
    plan.reads(["a", "b", "c"].map(|id| task(id, &[])).to_vec());
    plan.ends("a", TaskEnd::Verified, 0.0);
    let by = Interrupt::Int;
    assert_eq!(
        brief(&plan.step(secs(1), Input::Interrupted { by })),
        ["stop b", "stop c", "stop merge"]
    );
    assert_eq!(plan.ends("b", TaskEnd::Stopped, 0.0), [""; 0]);
    assert_eq!(plan.rejected(&["a"], Rejection::Stopped), [""; 0]);
    assert_eq!(
        plan.ends("c", TaskEnd::Verified, 0.0),
        ["end Interrupted { by: Int }"]
    );
    assert_eq!(plan.step(secs(9), Input::Tick), [], "nothing follows the end");
}

#[test]
fn user_can_skip_and_stop_tasks() {
    let mut plan = plan(1, Integration::InPlace);
    plan.reads(vec![task("a", &[]), task("b", &["a"]), task("c", &["b"])]);
    assert_eq!(plan.receives(PlanCommand::Skip { task: "b".into() }), [""; 0]);
    assert_eq!(
        plan.receives(PlanCommand::Stop {
            task: Some("a".into())
        }),
        ["stop a"]
    );
    // Its dependent was skipped, and so c is free.
    assert_eq!(
        plan.ends("a", TaskEnd::Stopped, 0.0),
        ["park a (stopped)", "start c"]
    );
    assert_eq!(plan.receives(PlanCommand::Skip { task: "c".into() }), ["stop c"]);
    assert_eq!(plan.ends("c", TaskEnd::Stopped, 0.0), ["end Incomplete"]);
}

#[test]
fn edits_of_the_source_are_taken_over_except_gates_and_marks() {
    let mut plan = plan(1, Integration::InPlace);
    let mut gated = task("b", &[]);
    gated.task.gates = vec!["cargo test".into()];
    plan.reads(vec![task("a", &[]), gated, task("c", &[])]);
    let mut weaker = task("b", &[]);
    weaker.task.gates = vec!["true".into()];
    weaker.task.title = "New title".into();
    weaker.done = true;
    // The running task was deleted too; it is finished.
    assert_eq!(plan.reads(vec![weaker, task("d", &[])]), ["removed c"]);
    let updated = plan.task("b").expect("the task");
    assert_eq!(
        (&updated.task.gates[..], updated.task.title.as_str()),
        (&["cargo test".into()][..], "New title")
    );
    assert_eq!(plan.ends("a", TaskEnd::Verified, 0.0), ["mark a", "start b"]);
    assert_eq!(plan.ends("b", TaskEnd::Verified, 0.0), ["mark b", "start d"]);
    assert_eq!(plan.ends("d", TaskEnd::Verified, 0.0), ["mark d", "end Complete"]);
}

#[test]
fn restored_plan_continues_where_the_journal_ends() {
    let tasks = || ["a", "b", "c", "d"].map(|id| task(id, &[])).to_vec();
    let mut original = plan(4, Integration::MergeQueue);
    let mut journal: Vec<PlanEvent> = Vec::new();
    let mut step = |plan: &mut Plan, input: Input| {
        let actions = plan.step(secs(0), input);
        journal.extend(actions.iter().filter_map(|action| match action {
            Action::Emit(event) => Some(event.clone()),
            _ => None,
        }));
    };
    step(&mut original, Input::TasksRead { tasks: tasks() });
    for id in ["a", "b", "c"] {
        let (task, end) = (id.to_owned(), TaskEnd::Verified);
        step(
            &mut original,
            Input::RunEnded {
                task,
                end,
                cost_usd: 0.5,
            },
        );
    }
    let (commit, gates) = ("1".to_owned(), secs(0));
    step(
        &mut original,
        Input::Merged {
            tasks: owned(&["a"]),
            commit,
            gates,
        },
    );
    step(
        &mut original,
        Input::MergeRejected {
            tasks: owned(&["b"]),
            why: conflict("b"),
            gates,
        },
    );
    journal.push(PlanEvent::TaskCommitted {
        task: "c".into(),
        attempt: 1,
        branch: "x".into(),
        commit: "2".into(),
    });
    let mut restored = Plan::restored(original.options.clone(), tasks(), &journal);
    assert_eq!(restored.spent(), 1.5);
    assert_eq!(
        brief(&restored.step(secs(0), Input::Tick)),
        ["merge c", "start b. again", "start d"],
        "d was interrupted and continues its attempt"
    );
    let text = serde_json::to_string(&restored).expect("a state that can be stored");
    assert_eq!(serde_json::from_str::<Plan>(&text).expect("the state"), restored);
}

/// A random graph: each task needs some of the earlier ones.
fn graphs() -> impl Strategy<Value = Vec<ReadTask>> {
    let one = (
        proptest::collection::vec(any::<prop::sample::Index>(), 0..3),
        0..4_usize,
        1..4_i64,
    );
    proptest::collection::vec(one, 1..14).prop_map(|tasks| {
        let tasks = tasks
            .into_iter()
            .enumerate()
            .map(|(n, (needs, files, priority))| {
                let needs: BTreeSet<String> = match n {
                    0 => BTreeSet::new(),
                    n => needs.iter().map(|need| format!("t{}", need.index(n))).collect(),
                };
                let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
                let mut task = task(&format!("t{n}"), &needs);
                task.task.priority = Some(priority);
                // Some tasks name no files.
                task.task.touches = if files == 0 {
                    vec![]
                } else {
                    vec![format!("dir{files}/**")]
                };
                task
            });
        tasks.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// An environment that answers at random. An independent record of what happened checks every action.
    #[test]
    fn every_plan_ends_and_keeps_its_promises(
        tasks in graphs(),
        jobs in 1..4_usize,
        in_place in any::<bool>(),
        answers in proptest::collection::vec((any::<prop::sample::Index>(), 0..12_u8), 400),
    ) {
        let integration = if in_place { Integration::InPlace } else { Integration::MergeQueue };
        let mut plan = plan(jobs, integration);
        let needs: BTreeMap<String, Vec<String>> =
            tasks.iter().map(|read| (read.task.id.clone(), read.task.needs.clone())).collect();
        let touches: BTreeMap<String, Vec<String>> =
            tasks.iter().map(|read| (read.task.id.clone(), read.task.touches.clone())).collect();
        let (mut running, mut merging) = (Vec::<String>::new(), Option::<Vec<String>>::None);
        let (mut in_progress, mut marked, mut parked) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut attempts: BTreeMap<String, u64> = BTreeMap::new();
        let mut actions = plan.step(secs(0), Input::TasksRead { tasks: tasks.clone() });
        let mut answers = answers.into_iter();
        let mut outcome = None;
        loop {
            for action in actions.drain(..) {
                prop_assert!(outcome.is_none(), "an action after the end");
                match action {
                    Action::Start(start) => {
                        let id = start.task.id.clone();
                        prop_assert!(needs[&id].iter().all(|need| marked.contains(need)), "{id} started too early");
                        let files = &touches[&id];
                        prop_assert!(files.is_empty() || in_progress.iter().all(|other: &String| &touches[other] != files));
                        let attempt = attempts.entry(id.clone()).or_default();
                        prop_assert!(start.attempt > *attempt && start.attempt <= 1 + MAX_REJECTIONS);
                        *attempt = start.attempt;
                        prop_assert!(in_progress.insert(id.clone()));
                        running.push(id);
                        prop_assert!(running.len() <= jobs);
                    }
                    Action::Merge { tasks } => {
                        prop_assert!(merging.is_none() && !in_place);
                        merging = Some(tasks);
                    }
                    Action::Mark { task } => {
                        in_progress.remove(&task);
                        prop_assert!(!parked.contains(&task));
                        prop_assert!(marked.insert(task), "marked twice");
                    }
                    Action::Emit(PlanEvent::TaskParked { task, .. }) => {
                        in_progress.remove(&task);
                        parked.insert(task);
                    }
                    Action::Emit(PlanEvent::TaskRejected { task, .. }) => drop(in_progress.remove(&task)),
                    Action::Emit(_) | Action::Stop { .. } | Action::StopMerge => {}
                    Action::End { outcome: end } => outcome = Some(end),
                }
            }
            if outcome.is_some() {
                break;
            }
            let (which, what) = answers.next().expect("the plan does not end");
            let merge_first = merging.is_some() && (running.is_empty() || what % 2 == 0);
            prop_assert!(merge_first || !running.is_empty(), "nothing happens, and the plan has not ended");
            let input = if merge_first {
                let tasks = merging.take().unwrap_or_default();
                let gates = secs(if what > 5 { 60 } else { 0 });
                match what {
                    0 => Input::MergeRejected { why: conflict(&tasks[which.index(tasks.len())]), tasks, gates },
                    2 => Input::MergeRejected { why: red(), tasks, gates },
                    4 => Input::MergeRejected { why: Rejection::Moved, tasks, gates },
                    _ => Input::Merged { tasks, commit: "c".into(), gates },
                }
            } else {
                let task = running.remove(which.index(running.len()));
                let end = if what == 1 { failed() } else { TaskEnd::Verified };
                Input::RunEnded { task, end, cost_usd: 0.0 }
            };
            actions = plan.step(secs(1), input);
        }
        prop_assert_eq!(marked.len() + parked.len(), needs.len(), "every task is done or parked");
        for (id, needs) in &needs {
            prop_assert!(!needs.iter().any(|need| parked.contains(need)) || parked.contains(id), "{}", id);
        }
        let complete = parked.is_empty();
        prop_assert_eq!(outcome, Some(if complete { PlanOutcome::Complete } else { PlanOutcome::Incomplete }));
    }

    #[test]
    fn cost_never_exceeds_the_budget(
        costs in proptest::collection::vec(0.0..1.0_f64, 1..20),
        limit in 0.5..5.0_f64,
        jobs in 1..5_usize,
    ) {
        let mut plan = plan(jobs, Integration::InPlace);
        plan.budget = Budget::new(Some(limit), 0.0);
        let tasks = (0..costs.len()).map(|n| task(&format!("t{n}"), &[])).collect();
        let mut actions = plan.step(secs(0), Input::TasksRead { tasks });
        let (mut spent, mut running) = (0.0, Vec::new());
        loop {
            for action in actions.drain(..) {
                if let Action::Start(start) = action {
                    running.push((start.task.id, start.max_cost_usd.expect("a limit")));
                }
            }
            let Some((task, granted)) = running.pop() else { break };
            let number: usize = task[1..].parse().expect("a number");
            let cost_usd = granted.min(costs[number]);
            let end = if costs[number] >= granted { TaskEnd::OutOfBudget } else { TaskEnd::Verified };
            spent += cost_usd;
            actions = plan.step(secs(1), Input::RunEnded { task, end, cost_usd });
        }
        prop_assert!(spent <= limit + 1e-6, "{} of {}", spent, limit);
    }
}
