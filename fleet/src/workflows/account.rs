//! The workflow of an account: passes what its tasks report to `AccountState::step`.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::workflows::select;
use temporalio_sdk::{
    ContinueAsNewOptions, SyncWorkflowContext, WorkflowContext, WorkflowContextView, WorkflowResult,
};

use super::TaskRun;
use super::plan::detached;
use crate::account::{AccountAction, AccountInput, AccountState};
use crate::types::TaskMessage;

/// A new history starts after this many messages.
const MESSAGES: u32 = 2000;

/// The input of the workflow. The state is that of its predecessor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AccountSpec {
    pub(crate) name: String,
    pub(crate) max_parallel: usize,
    pub(crate) state: Option<AccountState>,
    /// The time that the state counts.
    pub(crate) elapsed: Duration,
}

/// A signal from a task; `task` is the id of its workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum AccountMessage {
    Wanted {
        task: String,
    },
    Released {
        task: String,
    },
    Limited {
        task: String,
        resets_in_seconds: Option<u64>,
    },
    Worked {
        task: String,
    },
    Resumed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AccountStatus {
    pub(crate) name: String,
    pub(crate) is_limited: bool,
    pub(crate) working: usize,
    pub(crate) waiting: usize,
}

#[workflow]
pub(crate) struct Account {
    spec: AccountSpec,
    state: AccountState,
    inbox: VecDeque<AccountMessage>,
}

#[workflow_methods]
impl Account {
    #[init]
    fn new(_ctx: &WorkflowContextView, spec: AccountSpec) -> Self {
        let state = spec.state.clone();
        Self {
            state: state.unwrap_or_else(|| AccountState::new(spec.max_parallel)),
            spec,
            inbox: VecDeque::new(),
        }
    }

    #[run]
    pub(crate) async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let started = ctx.workflow_time().unwrap_or(SystemTime::UNIX_EPOCH);
        let before = ctx.state(|account| account.spec.elapsed);
        let mut messages = 0;
        loop {
            let elapsed = |ctx: &WorkflowContext<Self>| {
                let now = ctx.workflow_time().unwrap_or(started);
                before + now.duration_since(started).unwrap_or_default()
            };
            let due = ctx.state(|account| account.state.deadline());
            let now = elapsed(ctx);
            let cancelled = match due {
                Some(due) => select! {
                    arrived = ctx.wait_condition(|account| !account.inbox.is_empty()) => arrived.is_err(),
                    _ = ctx.timer(due.saturating_sub(now).max(Duration::from_millis(500))) => false,
                },
                None => ctx
                    .wait_condition(|account| !account.inbox.is_empty())
                    .await
                    .is_err(),
            };
            if cancelled {
                return Ok(());
            }
            let message = ctx.state_mut(|account| account.inbox.pop_front());
            let input = message.map_or(AccountInput::Tick, input_of);
            let now = elapsed(ctx);
            let actions = ctx.state_mut(|account| account.state.step(now, input));
            for action in actions {
                let (task, message) = match action {
                    AccountAction::Grant { task } => (task, TaskMessage::Granted),
                    AccountAction::Pause { task } => (task, TaskMessage::Pause),
                };
                let handle = ctx.external_workflow(task.clone(), None);
                if handle
                    .signal(TaskRun::message, message, detached())
                    .await
                    .is_err()
                {
                    // The task has ended without giving its place back.
                    ctx.state_mut(|account| account.inbox.push_back(AccountMessage::Released { task }));
                }
            }
            messages += 1;
            if messages >= MESSAGES && ctx.state(|account| account.inbox.is_empty()) {
                let spec = ctx.state(|account| AccountSpec {
                    state: Some(account.state.clone()),
                    elapsed: elapsed(ctx),
                    ..account.spec.clone()
                });
                ctx.continue_as_new(spec, ContinueAsNewOptions::default())?;
            }
        }
    }

    #[signal]
    pub(crate) fn message(&mut self, _ctx: &mut SyncWorkflowContext<Self>, message: AccountMessage) {
        self.inbox.push_back(message);
    }

    #[query]
    pub(crate) fn status(&self, _ctx: &WorkflowContextView) -> AccountStatus {
        AccountStatus {
            name: self.spec.name.clone(),
            is_limited: self.state.is_limited(),
            working: self.state.working(),
            waiting: self.state.waiting(),
        }
    }
}

fn input_of(message: AccountMessage) -> AccountInput {
    match message {
        AccountMessage::Wanted { task } => AccountInput::Wanted { task },
        AccountMessage::Released { task } => AccountInput::Released { task },
        AccountMessage::Limited {
            task,
            resets_in_seconds,
        } => AccountInput::Limited {
            task,
            resets_in: resets_in_seconds.map(Duration::from_secs),
        },
        AccountMessage::Worked { task } => AccountInput::Worked { task },
        AccountMessage::Resumed => AccountInput::Resumed,
    }
}
