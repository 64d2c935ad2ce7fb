//! What the submitter, the workflows and the workers exchange. None of it contains a secret.

use std::time::Duration;

use ralph::fleet::{Input, PlanCommand, PlanEvent, PlanOptions, PlanOutcome, ReadTask, TaskStart};
use serde::{Deserialize, Serialize};

/// The version of these types.
pub(crate) const VERSION: u32 = 1;
/// The queue of workflows and short activities; every worker serves it.
pub(crate) const CONTROL_QUEUE: &str = "ralph-control";
/// The queue of tasks that need no label.
pub(crate) const WORK_QUEUE: &str = "ralph";
/// Maximum size of a plan's specification. The engine refuses more than 2 MB.
pub(crate) const MAX_SPEC_BYTES: usize = 256 << 10;

/// A plan as it was submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlanSpec {
    pub(crate) version: u32,
    pub(crate) plan: String,
    /// The source, as given on the command line.
    pub(crate) source: String,
    /// `20261115-204501`: the start of the runs' ids.
    pub(crate) stamp: String,
    pub(crate) tasks: Vec<ReadTask>,
    pub(crate) options: PlanOptions,
    pub(crate) rules: TaskRules,
    pub(crate) submitted_by: String,
}

/// What all tasks of a plan have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskRules {
    pub(crate) plan: String,
    pub(crate) repo: String,
    /// The commit from which the integration branch starts.
    pub(crate) base: String,
    /// The integration branch.
    pub(crate) branch: String,
    /// The gates of the project, for merges.
    pub(crate) gates: Vec<MergeGate>,
    pub(crate) setup: Option<String>,
    pub(crate) ship: Vec<String>,
    /// Options of `ralph run`: agent, model, transcript.
    pub(crate) arguments: Vec<String>,
    pub(crate) account: Option<String>,
    pub(crate) labels: Vec<String>,
    /// Names of variables that a worker must have.
    pub(crate) secrets: Vec<String>,
    pub(crate) heartbeat_seconds: u64,
    /// How many starts in a row may end without a new checkpoint.
    pub(crate) max_attempts: u32,
    /// Signature of the rules by `ssh-keygen -Y sign`, if the submitter signed.
    pub(crate) signature: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MergeGate {
    pub(crate) name: String,
    pub(crate) run: String,
    /// Relative to the root of the repository.
    pub(crate) directory: String,
    pub(crate) seconds: u64,
}

impl TaskRules {
    pub(crate) fn heartbeat(&self) -> Duration {
        Duration::from_secs(self.heartbeat_seconds.max(2))
    }

    /// The queue of the workers that have all labels and secrets.
    pub(crate) fn work_queue(&self) -> String {
        work_queue(&self.labels)
    }

    /// What a signature covers: what a worker executes, and where.
    pub(crate) fn signed_text(&self) -> String {
        let unsigned = Self {
            signature: None,
            ..self.clone()
        };
        serde_json::to_string(&unsigned).unwrap_or_default()
    }
}

/// `ralph`, or `ralph.gpu.linux` for tasks with these labels.
pub(crate) fn work_queue(labels: &[String]) -> String {
    let mut labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    labels.sort_unstable();
    labels.insert(0, WORK_QUEUE);
    labels.join(".")
}

pub(crate) fn plan_id(plan: &str) -> String {
    format!("ralph/{plan}")
}

pub(crate) fn task_id(plan: &str, task: &str) -> String {
    format!("ralph/{plan}/{task}")
}

pub(crate) fn account_id(account: &str) -> String {
    format!("ralph-account/{account}")
}

/// The branch of an attempt, named as in a plan on one machine.
pub(crate) fn task_branch(plan: &str, task: &str, attempt: u64) -> String {
    match attempt {
        0 | 1 => format!("ralph/{plan}.tasks/{task}"),
        attempt => format!("ralph/{plan}.tasks/{task}+{attempt}"),
    }
}

/// The name of an attempt's checkpoints.
pub(crate) fn checkpoint_name(plan: &str, task: &str, attempt: u64) -> String {
    match attempt {
        0 | 1 => format!("{plan}/{task}"),
        attempt => format!("{plan}/{task}+{attempt}"),
    }
}

/// The run id of an attempt; lowercase, as ralph requires.
pub(crate) fn run_id(stamp: &str, plan: &str, task: &str, attempt: u64) -> String {
    let name: String = format!("{plan}-{task}-{attempt}")
        .to_lowercase()
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        })
        .collect();
    // The end is what distinguishes the tasks of a plan.
    let name = name.trim_start_matches('-');
    let surplus = name.len().saturating_sub(80);
    format!("{stamp}-{}", name[surplus..].trim_start_matches('-'))
}

/// A signal to the workflow of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum PlanMessage {
    /// From a task or a merge.
    Input { input: Input },
    /// From the user. A command with the id of an earlier one is ignored.
    Command { id: String, command: PlanCommand },
}

/// What `status` shows of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlanStatus {
    pub(crate) plan: String,
    pub(crate) repo: String,
    pub(crate) branch: String,
    pub(crate) outcome: Option<PlanOutcome>,
    pub(crate) spent_usd: f64,
    pub(crate) max_cost_usd: Option<f64>,
    pub(crate) tasks: Vec<TaskRow>,
    /// The newest events.
    pub(crate) events: Vec<PlanEvent>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskRow {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) state: String,
    pub(crate) why: Option<String>,
    pub(crate) attempt: u64,
    pub(crate) cost_usd: f64,
    pub(crate) branch: String,
}

/// A task as its workflow receives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskSpec {
    pub(crate) rules: TaskRules,
    pub(crate) start: TaskStart,
    pub(crate) source: String,
    pub(crate) run_id: String,
}

/// A command for the run of a task: the options and the text of `ralph tell`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskCommand {
    pub(crate) id: String,
    pub(crate) words: Vec<String>,
}

/// A signal to the workflow of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum TaskMessage {
    /// A worker has the workspace.
    Started {
        host: String,
        /// The worker's own queue.
        queue: String,
        attempt: u32,
        /// The last iteration of the checkpoint.
        iteration: u64,
        cost_usd: f64,
    },
    /// A checkpoint is saved, with the journal up to these commands.
    Saved {
        iteration: u64,
        cost_usd: f64,
        received: Vec<String>,
    },
    Command(TaskCommand),
    /// The user stops the task.
    Stop,
    /// The account allows the task to start.
    Granted,
    /// The account is limited: stop after the iteration.
    Pause,
}

/// What `status` shows of a task that runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskStatus {
    pub(crate) host: Option<String>,
    pub(crate) queue: Option<String>,
    pub(crate) attempt: u32,
    pub(crate) saved_iteration: u64,
    pub(crate) cost_usd: f64,
    pub(crate) waits_for: Option<String>,
    /// Commands that no checkpoint contains yet.
    pub(crate) pending: Vec<String>,
}

/// The progress of a run, sent with each heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) host: String,
    pub(crate) iteration: u64,
    pub(crate) seq: u64,
    pub(crate) cost_usd: f64,
    pub(crate) state: String,
    /// At most 200 bytes.
    pub(crate) last_words: String,
}

/// The input of the activity `drive`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DriveSpec {
    pub(crate) task: TaskSpec,
    pub(crate) attempt: u32,
    /// The cost of the run when the task was started; the grant is added to it.
    pub(crate) spent_before_usd: Option<f64>,
}

/// The result of the activity `drive`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DriveReport {
    pub(crate) end: DriveEnd,
    pub(crate) iteration: u64,
    pub(crate) cost_usd: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub(crate) enum DriveEnd {
    /// All gates passed, and the branch at the remote has the work.
    Complete,
    Failed {
        reason: String,
    },
    AgentUnusable {
        reason: String,
    },
    /// The run reached the cost that the plan granted.
    OutOfBudget,
    /// The account's usage limit is reached.
    Limited {
        resets_in_seconds: Option<u64>,
        message: String,
    },
    /// The worker gave the task back.
    Yielded,
    /// Another copy has saved a checkpoint.
    Fenced,
    /// The user stopped the task.
    Stopped,
}

/// The input of the activity `deliver`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) run_id: String,
    pub(crate) command: TaskCommand,
}

/// The input of the activity `merge`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MergeSpec {
    pub(crate) rules: TaskRules,
    pub(crate) tasks: Vec<MergeTask>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MergeTask {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) branch: String,
    pub(crate) gates: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_is_valid_and_keeps_the_task_and_the_attempt() {
        assert_eq!(
            run_id("20261115-204501", "night", "US-001", 2),
            "20261115-204501-night-us-001-2"
        );
        let long = run_id("20261115-204501", &"plan".repeat(30), "task", 1);
        assert!(long.len() <= 96 && long.ends_with("-task-1"), "{long}");
    }

    #[test]
    fn the_queue_of_a_set_of_labels_does_not_depend_on_their_order() {
        let labels = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(work_queue(&labels(&["linux", "gpu"])), "ralph.gpu.linux");
        assert_eq!(work_queue(&[]), "ralph");
    }
}
