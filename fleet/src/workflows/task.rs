//! The workflow of a task: starts the activity `drive` until the run has ended, delivers commands, and asks the account.

use std::time::Duration;

use ralph::fleet::{Input, TaskEnd};
use temporalio_common::RetryPolicy;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::workflows::select;
use temporalio_sdk::{
    ActivityCancellationType, ActivityExecutionError, ActivityOptions, SyncWorkflowContext, WorkflowContext,
    WorkflowContextView, WorkflowResult,
};

use super::account::{Account, AccountMessage};
use super::plan::{PlanRun, detached};
use crate::activities::Worker;
use crate::types::{
    Delivery, DriveEnd, DriveReport, DriveSpec, PlanMessage, TaskCommand, TaskMessage, TaskSpec, TaskStatus,
    account_id, plan_id, task_id,
};

/// The longest time that one worker works on a task without a break.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How long a worker has to pick up a command before it is delivered again.
const DELIVERY: Duration = Duration::from_secs(10);
/// The wait for a usage limit without a stated reset, without an account.
const UNKNOWN_RESET: Duration = Duration::from_secs(300);

#[workflow]
pub(crate) struct TaskRun {
    spec: TaskSpec,
    status: TaskStatus,
    /// Commands that no checkpoint contains yet, and whether this worker has them.
    commands: Vec<(TaskCommand, Delivered)>,
    /// Starts in a row without a new checkpoint.
    fruitless: u32,
    last_start: Option<u64>,
    spent_before: Option<f64>,
    granted: bool,
    stop: bool,
    pause: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivered {
    No,
    Yes,
}

/// Why the activity was interrupted, if it was.
enum Next {
    Ended(Box<Result<DriveReport, ActivityExecutionError>>),
    Deliver,
    Stop,
}

#[workflow_methods]
impl TaskRun {
    #[init]
    fn new(_ctx: &WorkflowContextView, spec: TaskSpec) -> Self {
        Self {
            spec,
            status: TaskStatus::default(),
            commands: Vec::new(),
            fruitless: 0,
            last_start: None,
            spent_before: None,
            granted: false,
            stop: false,
            pause: false,
        }
    }

    #[run]
    pub(crate) async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let end = loop {
            if ctx.state(|state| state.stop) {
                break TaskEnd::Stopped;
            }
            if !Self::ask_account(ctx).await {
                break TaskEnd::Stopped;
            }
            let result = Self::drive(ctx).await;
            if let Some(end) = Self::judge(ctx, result).await {
                break end;
            }
        };
        Self::tell_account(ctx, |task| AccountMessage::Released { task }).await;
        Self::report(ctx, end).await;
        Ok(())
    }

    #[signal]
    pub(crate) fn message(&mut self, _ctx: &mut SyncWorkflowContext<Self>, message: TaskMessage) {
        match message {
            TaskMessage::Started {
                host,
                queue,
                attempt,
                iteration,
                cost_usd,
            } => self.started(host, queue, attempt, iteration, cost_usd),
            TaskMessage::Saved {
                iteration,
                cost_usd,
                received,
            } => {
                self.commands
                    .retain(|(command, _)| !received.contains(&command.id));
                (self.status.saved_iteration, self.status.cost_usd) = (iteration, cost_usd);
            }
            TaskMessage::Command(command) => {
                if self.commands.iter().all(|(known, _)| known.id != command.id) {
                    self.commands.push((command, Delivered::No));
                }
            }
            TaskMessage::Stop => self.stop = true,
            TaskMessage::Granted => self.granted = true,
            TaskMessage::Pause => self.pause = true,
        }
    }

    #[query]
    pub(crate) fn status(&self, _ctx: &WorkflowContextView) -> TaskStatus {
        TaskStatus {
            pending: self
                .commands
                .iter()
                .map(|(command, _)| command.id.clone())
                .collect(),
            ..self.status.clone()
        }
    }
}

impl TaskRun {
    /// A worker has the workspace. It may be another one, so commands that no checkpoint contains are delivered again.
    fn started(&mut self, host: String, queue: String, attempt: u32, iteration: u64, cost_usd: f64) {
        let has_advanced = self.last_start.is_some_and(|last| iteration > last);
        self.fruitless = match has_advanced {
            true => 1,
            false => self.fruitless + 1,
        };
        self.last_start = Some(iteration);
        self.spent_before.get_or_insert(cost_usd);
        self.commands
            .iter_mut()
            .for_each(|(_, delivered)| *delivered = Delivered::No);
        self.status = TaskStatus {
            host: Some(host),
            queue: Some(queue),
            attempt,
            saved_iteration: iteration,
            cost_usd,
            waits_for: None,
            pending: Vec::new(),
        };
    }

    fn undelivered(&self) -> Option<(String, TaskCommand)> {
        let queue = self.status.queue.clone()?;
        let mut commands = self.commands.iter();
        let (command, _) = commands.find(|(_, delivered)| *delivered == Delivered::No)?;
        Some((queue, command.clone()))
    }

    /// Runs the activity, and meanwhile delivers commands. A stop of the user cancels it; the worker saves a checkpoint first.
    async fn drive(ctx: &mut WorkflowContext<Self>) -> Result<DriveReport, ActivityExecutionError> {
        ctx.state_mut(|state| {
            state.status.attempt += 1;
            state.pause = false;
        });
        let spec = ctx.state(|state| DriveSpec {
            task: state.spec.clone(),
            attempt: state.status.attempt,
            spent_before_usd: state.spent_before,
        });
        let token = ctx.cancellation_token().child_token();
        let options = ActivityOptions::with_start_to_close_timeout(LONGEST)
            .task_queue(spec.task.rules.work_queue())
            .heartbeat_timeout(spec.task.rules.heartbeat())
            .cancellation_type(ActivityCancellationType::WaitCancellationCompleted)
            .cancellation_token(token.clone())
            // The workflow decides what follows a lost worker.
            .retry_policy(RetryPolicy::builder().maximum_attempts(1).build())
            .build();
        let worker = ctx.clone();
        let mut running = Box::pin(worker.execute_activity(Worker::drive, spec, options));
        loop {
            let next = select! {
                result = running => Next::Ended(Box::new(result)),
                _ = ctx.wait_condition(|state| state.stop && !token.is_cancelled()) => Next::Stop,
                _ = ctx.wait_condition(|state| state.undelivered().is_some() || state.pause) => Next::Deliver,
            };
            match next {
                Next::Ended(result) => {
                    ctx.state_mut(|state| state.status.queue = None);
                    return *result;
                }
                Next::Stop => token.cancel(),
                Next::Deliver => Self::deliver(ctx).await,
            }
        }
    }

    /// Delivers one command to the worker's own queue. It counts as received when a checkpoint contains it.
    async fn deliver(ctx: &mut WorkflowContext<Self>) {
        let pause = ctx.state_mut(|state| std::mem::take(&mut state.pause));
        let next = ctx.state(|state| match (pause, &state.status.queue) {
            (true, Some(queue)) => {
                let id = format!("account-{}", state.status.attempt);
                let words = vec!["--pause".to_owned()];
                Some((queue.clone(), TaskCommand { id, words }))
            }
            _ => state.undelivered(),
        });
        let Some((queue, command)) = next else { return };
        let id = command.id.clone();
        let run_id = ctx.state(|state| state.spec.run_id.clone());
        let options = ActivityOptions::with_start_to_close_timeout(DELIVERY)
            .task_queue(queue.clone())
            .schedule_to_start_timeout(DELIVERY)
            .retry_policy(RetryPolicy::builder().maximum_attempts(3).build())
            .build();
        let delivered = ctx
            .execute_activity(Worker::deliver, Delivery { run_id, command }, options)
            .await;
        ctx.state_mut(|state| {
            let known = state.commands.iter_mut().find(|(command, _)| command.id == id);
            if let Some((_, state)) = known {
                *state = Delivered::Yes;
            }
            // The worker is gone; its successor receives the command.
            if delivered.is_err() && state.status.queue.as_ref() == Some(&queue) {
                state.status.queue = None;
            }
        });
    }

    /// What follows the end of the activity; `None` starts it again.
    async fn judge(
        ctx: &mut WorkflowContext<Self>,
        result: Result<DriveReport, ActivityExecutionError>,
    ) -> Option<TaskEnd> {
        let report = match result {
            Ok(report) => report,
            Err(ActivityExecutionError::Cancelled(_)) => return Some(TaskEnd::Stopped),
            Err(error) => {
                let most = ctx.state(|state| state.spec.rules.max_attempts);
                let fruitless = ctx.state_mut(|state| {
                    // A worker that died before it reported the start counts, too.
                    if state.status.host.is_none() {
                        state.fruitless += 1;
                    }
                    state.fruitless
                });
                if fruitless >= most {
                    let why = report_end(&error);
                    let reason =
                        format!("{fruitless} starts in a row ended without a checkpoint; the last: {why}");
                    return Some(TaskEnd::Failed { reason });
                }
                let _ = ctx.timer(Duration::from_secs(1)).await;
                return None;
            }
        };
        ctx.state_mut(|state| state.status.cost_usd = report.cost_usd);
        match report.end {
            DriveEnd::Complete => Some(TaskEnd::Verified),
            DriveEnd::Failed { reason } => Some(TaskEnd::Failed { reason }),
            DriveEnd::AgentUnusable { reason } => Some(TaskEnd::AgentUnusable { reason }),
            DriveEnd::OutOfBudget => Some(TaskEnd::OutOfBudget),
            DriveEnd::Stopped => Some(TaskEnd::Stopped),
            DriveEnd::Yielded | DriveEnd::Fenced => None,
            DriveEnd::Limited {
                resets_in_seconds, ..
            } => {
                Self::limited(ctx, resets_in_seconds).await;
                None
            }
        }
    }

    /// The account decides when the task continues; without an account, the reset does.
    async fn limited(ctx: &mut WorkflowContext<Self>, resets_in_seconds: Option<u64>) {
        let wait = resets_in_seconds.map_or(UNKNOWN_RESET, Duration::from_secs);
        let task = ctx.state(|state| state.spec.start.task.id.clone());
        Self::tell_plan(ctx, Input::Limited { task, wait }).await;
        if ctx.state(|state| state.spec.rules.account.is_some()) {
            ctx.state_mut(|state| state.granted = false);
            Self::tell_account(ctx, |task| AccountMessage::Limited {
                task,
                resets_in_seconds,
            })
            .await;
            return;
        }
        ctx.state_mut(|state| state.status.waits_for = Some("the usage limit to reset".to_owned()));
        select! {
            _ = ctx.timer(wait + Duration::from_secs(1)) => {},
            _ = ctx.wait_condition(|state| state.stop) => {},
        };
    }

    /// Waits until the account allows the task to start; returns false if the task is stopped.
    async fn ask_account(ctx: &mut WorkflowContext<Self>) -> bool {
        if ctx.state(|state| state.spec.rules.account.is_none() || state.granted) {
            return true;
        }
        ctx.state_mut(|state| state.status.waits_for = Some("the account".to_owned()));
        Self::tell_account(ctx, |task| AccountMessage::Wanted { task }).await;
        let arrived = ctx.wait_condition(|state| state.granted || state.stop).await;
        arrived.is_ok() && !ctx.state(|state| state.stop)
    }

    async fn tell_account(ctx: &mut WorkflowContext<Self>, message: impl FnOnce(String) -> AccountMessage) {
        let Some(account) = ctx.state(|state| state.spec.rules.account.clone()) else {
            return;
        };
        let task = ctx.state(|state| task_id(&state.spec.rules.plan, &state.spec.start.task.id));
        let handle = ctx.external_workflow(account_id(&account), None);
        // Without the account's workflow nothing limits the task, and the submitter has been warned.
        let _ = handle.signal(Account::message, message(task), detached()).await;
    }

    async fn report(ctx: &mut WorkflowContext<Self>, end: TaskEnd) {
        let (task, cost_usd) = ctx.state(|state| {
            let cost = state.status.cost_usd - state.spent_before.unwrap_or_default();
            (state.spec.start.task.id.clone(), cost.max(0.0))
        });
        Self::tell_plan(ctx, Input::RunEnded { task, end, cost_usd }).await;
    }

    async fn tell_plan(ctx: &mut WorkflowContext<Self>, input: Input) {
        let plan = ctx.state(|state| plan_id(&state.spec.rules.plan));
        let handle = ctx.external_workflow(plan, None);
        // The plan may have been terminated.
        let _ = handle
            .signal(PlanRun::message, PlanMessage::Input { input }, detached())
            .await;
    }
}

/// The innermost cause of a failed activity.
pub(super) fn report_end(error: &ActivityExecutionError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        text = source.to_string();
        cause = source.source();
    }
    text
}
