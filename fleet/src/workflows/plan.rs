//! The workflow of a plan: passes inputs to `Plan::step` and carries out its actions.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, SystemTime};

use futures::FutureExt;
use ralph::fleet::{Action, Input, ParkReason, Plan, PlanEvent, PlanOutcome, TaskEnd, TaskStart, TaskState};
use temporalio_common::RetryPolicy;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::workflows::select;
use temporalio_sdk::{
    ActivityOptions, ChildWorkflowOptions, SyncWorkflowContext, WorkflowContext, WorkflowContextView,
    WorkflowResult,
};

use super::TaskRun;
use super::task::report_end;
use crate::activities::Worker;
use crate::types::{
    MergeSpec, MergeTask, PlanMessage, PlanSpec, PlanStatus, TaskMessage, TaskRow, TaskSpec, run_id,
    task_branch, task_id,
};

/// How many events a query returns.
const SHOWN_EVENTS: usize = 200;
/// A merge that takes longer is started again.
const MERGE_TIMEOUT: Duration = Duration::from_secs(4 * 3600);

#[workflow]
pub(crate) struct PlanRun {
    spec: PlanSpec,
    plan: Plan,
    inbox: VecDeque<PlanMessage>,
    /// Ids of the commands that were applied.
    applied: BTreeSet<String>,
    events: VecDeque<PlanEvent>,
    merge: Option<Vec<String>>,
    outcome: Option<PlanOutcome>,
}

#[workflow_methods]
impl PlanRun {
    #[init]
    fn new(_ctx: &WorkflowContextView, spec: PlanSpec) -> Self {
        Self {
            plan: Plan::new(spec.options.clone()),
            spec,
            inbox: VecDeque::new(),
            applied: BTreeSet::new(),
            events: VecDeque::new(),
            merge: None,
            outcome: None,
        }
    }

    #[run]
    pub(crate) async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<PlanStatus> {
        let started = ctx.workflow_time().unwrap_or(SystemTime::UNIX_EPOCH);
        let tasks = ctx.state(|state| state.spec.tasks.clone());
        Self::step(ctx, started, Input::TasksRead { tasks }).await;
        let mut merging = None;
        loop {
            if ctx.state(|state| state.outcome.is_some()) {
                return Ok(ctx.state(Self::describe));
            }
            if let Some(tasks) = ctx.state_mut(|state| state.merge.take()) {
                merging = Some(Box::pin(Self::merge(ctx.clone(), tasks).fuse()));
            }
            let input = match merging.as_mut() {
                None => {
                    Self::wait(ctx, started).await;
                    Self::next(ctx)
                }
                Some(mut merge) => {
                    let merged = select! {
                        input = merge => Some(input),
                        arrived = ctx.wait_condition(|state| !state.inbox.is_empty()) => {
                            Self::interrupt_if(ctx, arrived.is_err());
                            None
                        },
                    };
                    match merged {
                        Some(input) => {
                            merging = None;
                            Some(input)
                        }
                        None => Self::next(ctx),
                    }
                }
            };
            if let Some(input) = input {
                Self::step(ctx, started, input).await;
            }
        }
    }

    #[signal]
    pub(crate) fn message(&mut self, _ctx: &mut SyncWorkflowContext<Self>, message: PlanMessage) {
        self.inbox.push_back(message);
    }

    #[query]
    pub(crate) fn status(&self, _ctx: &WorkflowContextView) -> PlanStatus {
        self.describe()
    }
}

fn since(ctx: &WorkflowContext<PlanRun>, started: SystemTime) -> Duration {
    let now = ctx.workflow_time().unwrap_or(started);
    now.duration_since(started).unwrap_or_default()
}

impl PlanRun {
    /// Waits for a message, the deadline of the plan, or its cancellation.
    async fn wait(ctx: &mut WorkflowContext<Self>, started: SystemTime) {
        let due = ctx.state(|state| state.plan.deadline());
        let now = since(ctx, started);
        let cancelled = match due {
            Some(due) => select! {
                arrived = ctx.wait_condition(|state| !state.inbox.is_empty()) => arrived.is_err(),
                _ = ctx.timer(due.saturating_sub(now).max(Duration::from_secs(1))) => false,
            },
            None => ctx.wait_condition(|state| !state.inbox.is_empty()).await.is_err(),
        };
        Self::interrupt_if(ctx, cancelled);
    }

    /// Tasks end as on `ralph plan stop`, and the workflow with them.
    fn interrupt_if(ctx: &WorkflowContext<Self>, cancelled: bool) {
        if cancelled {
            let by = ralph::fleet::Interrupt::Quit;
            let input = Input::Interrupted { by };
            ctx.state_mut(|state| state.inbox.push_back(PlanMessage::Input { input }));
        }
    }

    /// The input of the next message; `None` for a command that was applied before.
    fn next(ctx: &WorkflowContext<Self>) -> Option<Input> {
        let message = ctx.state_mut(|state| state.inbox.pop_front());
        match message {
            None => Some(Input::Tick),
            Some(PlanMessage::Input { input }) => Some(input),
            Some(PlanMessage::Command { id, command }) => ctx.state_mut(|state| {
                let is_new = state.applied.insert(id.clone());
                is_new.then(|| {
                    let command_received = command.clone();
                    state.remember(PlanEvent::CommandReceived {
                        id,
                        command: command_received,
                    });
                    let commands = vec![command];
                    Input::Commands { commands }
                })
            }),
        }
    }

    async fn step(ctx: &mut WorkflowContext<Self>, started: SystemTime, input: Input) {
        let at = since(ctx, started);
        let actions = ctx.state_mut(|state| state.plan.step(at, input));
        for action in actions {
            match action {
                Action::Emit(event) => ctx.state_mut(|state| state.remember(event)),
                Action::Start(start) => Self::start(ctx, *start).await,
                Action::Stop { task } => Self::stop(ctx, &task).await,
                Action::Merge { tasks } => ctx.state_mut(|state| state.merge = Some(tasks)),
                // The merge ends by itself; its result is recorded.
                Action::StopMerge | Action::Mark { .. } => {}
                Action::End { outcome } => ctx.state_mut(|state| state.outcome = Some(outcome)),
            }
        }
    }

    async fn start(ctx: &mut WorkflowContext<Self>, start: TaskStart) {
        let spec = ctx.state(|state| TaskSpec {
            rules: state.spec.rules.clone(),
            run_id: run_id(&state.spec.stamp, &state.spec.plan, &start.task.id, start.attempt),
            source: state.spec.source.clone(),
            start: start.clone(),
        });
        let id = task_id(&spec.rules.plan, &start.task.id);
        let options = ChildWorkflowOptions::workflow_id(id);
        if let Err(error) = ctx.start_child_workflow(TaskRun::run, spec, options).await {
            let end = TaskEnd::Failed {
                reason: format!("the task could not be started: {error}"),
            };
            let input = Input::RunEnded {
                task: start.task.id,
                end,
                cost_usd: 0.0,
            };
            ctx.state_mut(|state| state.inbox.push_back(PlanMessage::Input { input }));
        }
    }

    async fn stop(ctx: &mut WorkflowContext<Self>, task: &str) {
        let id = ctx.state(|state| task_id(&state.spec.plan, task));
        let handle = ctx.external_workflow(id, None);
        // A task that has ended has reported it.
        let _ = handle
            .signal(TaskRun::message, TaskMessage::Stop, detached())
            .await;
    }

    /// Merges tasks on a worker.
    async fn merge(ctx: WorkflowContext<Self>, tasks: Vec<String>) -> Input {
        let spec = ctx.state(|state| state.merge_spec(&tasks));
        let options = ActivityOptions::with_start_to_close_timeout(MERGE_TIMEOUT)
            .task_queue(spec.rules.work_queue())
            .heartbeat_timeout(spec.rules.heartbeat())
            .retry_policy(RetryPolicy::builder().maximum_attempts(5).build())
            .build();
        match ctx.execute_activity(Worker::merge, spec, options).await {
            Ok(input) => input,
            Err(error) => Input::MergeRejected {
                tasks,
                why: ralph::fleet::Rejection::Failed {
                    reason: report_end(&error),
                },
                gates: Duration::ZERO,
            },
        }
    }

    fn merge_spec(&self, tasks: &[String]) -> MergeSpec {
        let tasks = tasks
            .iter()
            .filter_map(|id| self.plan.task(id))
            .map(|planned| MergeTask {
                id: planned.task.id.clone(),
                title: planned.task.title.clone(),
                branch: task_branch(&self.spec.plan, &planned.task.id, planned.attempts),
                gates: planned.task.gates.clone(),
            });
        MergeSpec {
            rules: self.spec.rules.clone(),
            tasks: tasks.collect(),
        }
    }

    fn remember(&mut self, event: PlanEvent) {
        self.events.push_back(event);
        if self.events.len() > SHOWN_EVENTS {
            self.events.pop_front();
        }
    }

    fn describe(&self) -> PlanStatus {
        let tasks = self.plan.tasks().iter().map(|planned| {
            let (state, why) = words_of(&planned.state);
            TaskRow {
                id: planned.task.id.clone(),
                title: planned.task.title.clone(),
                state: state.to_owned(),
                why,
                attempt: planned.attempts,
                cost_usd: planned.cost_usd,
                branch: task_branch(&self.spec.plan, &planned.task.id, planned.attempts),
            }
        });
        PlanStatus {
            plan: self.spec.plan.clone(),
            repo: self.spec.rules.repo.clone(),
            branch: self.spec.rules.branch.clone(),
            outcome: self.outcome.clone(),
            spent_usd: self.plan.spent(),
            max_cost_usd: self.spec.options.max_cost_usd,
            tasks: tasks.collect(),
            events: self.events.iter().cloned().collect(),
        }
    }
}

/// Options of a signal that is sent even if this workflow is being cancelled.
pub(super) fn detached() -> temporalio_sdk::SignalWorkflowOptions {
    temporalio_sdk::SignalWorkflowOptions::builder()
        .cancellation_token(temporalio_sdk::WorkflowCancellationToken::new())
        .build()
}

fn words_of(state: &TaskState) -> (&'static str, Option<String>) {
    match state {
        TaskState::Waiting => ("waiting", None),
        TaskState::Running => ("running", None),
        TaskState::Verified => ("verified", None),
        TaskState::Merging => ("merging", None),
        TaskState::Done => ("done", None),
        TaskState::Skipped => ("skipped", None),
        TaskState::Removed => ("removed", None),
        TaskState::Parked { why } => ("parked", Some(park_reason(why))),
    }
}

fn park_reason(why: &ParkReason) -> String {
    match why {
        ParkReason::Failed { reason } => reason.clone(),
        ParkReason::Need { need } => format!("needs {need}"),
        ParkReason::Rejected { .. } => "rejected too often by the merge".to_owned(),
        ParkReason::Stopped => "stopped".to_owned(),
    }
}
