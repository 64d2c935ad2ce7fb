//! The plans of all projects. A request names a plan by the directory of its project and its own name, both of which are looked up
//! among those that exist.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Server;
use super::response::{ApiError, ApiResult};
use crate::plan::{PlanStatus, StoredPlan};
use crate::store::Project;

/// The most records of a plan that are shown.
const MAX_EVENTS: usize = 300;

/// A plan in the list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ListedPlan {
    /// The directory of the project in the state directory, which identifies it.
    project_id: String,
    project: String,
    project_root: String,
    began: Option<Timestamp>,
    /// The time of the last record.
    last: Option<Timestamp>,
    #[serde(flatten)]
    status: PlanStatus,
}

/// A plan with its last records.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PlanDetails {
    #[serde(flatten)]
    plan: ListedPlan,
    events: Vec<Value>,
}

/// What the page can request of a plan.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum PlanRequestBody {
    /// Run a parked or skipped task again.
    Retry { task: String },
    /// Never run a task.
    Skip { task: String },
    /// Stop a task, or the whole plan.
    Stop { task: Option<String> },
}

/// All plans, those that run first, then the most recent ones.
pub(super) fn list(server: &Server) -> Vec<ListedPlan> {
    let mut plans: Vec<ListedPlan> = Vec::new();
    for project in server.state.projects() {
        let stored = StoredPlan::all(&project);
        plans.extend(stored.iter().map(|plan| listed(&project, plan)));
    }
    plans.sort_by_key(|plan| std::cmp::Reverse((plan.status.is_running, plan.last)));
    plans
}

pub(super) fn show(server: &Server, project_id: &str, name: &str) -> ApiResult<PlanDetails> {
    let (project, plan) = find(server, project_id, name)?;
    Ok(PlanDetails {
        events: plan.last_records(MAX_EVENTS),
        plan: listed(&project, &plan),
    })
}

/// Adds a command to the inbox of the plan, as `ralph plan retry`, `skip` and `stop` do.
pub(super) fn send(server: &Server, project_id: &str, name: &str, body: &PlanRequestBody) -> ApiResult<()> {
    let (_, plan) = find(server, project_id, name)?;
    let sent = match body {
        PlanRequestBody::Retry { task } => plan.retry(task).map(drop),
        PlanRequestBody::Skip { task } => plan.skip(task).map(drop),
        PlanRequestBody::Stop { task } => plan.stop(task.as_deref()).map(drop),
    };
    sent.map_err(|error| ApiError::bad_request(error.to_string()))
}

fn find(server: &Server, project_id: &str, name: &str) -> ApiResult<(Project, StoredPlan)> {
    let missing = || ApiError::not_found("plan");
    let projects = server.state.projects().into_iter();
    let project = projects.into_iter().find(|project| id_of(project) == project_id);
    let project = project.ok_or_else(missing)?;
    let mut plans = StoredPlan::all(&project).into_iter();
    let plan = plans.find(|plan| plan.name() == name).ok_or_else(missing)?;
    Ok((project, plan))
}

fn listed(project: &Project, plan: &StoredPlan) -> ListedPlan {
    let (began, last) = plan.times();
    ListedPlan {
        project_id: id_of(project),
        project: project.name(),
        project_root: project.root().display().to_string(),
        began,
        last,
        status: plan.status(),
    }
}

fn id_of(project: &Project) -> String {
    let directory = project.directory().file_name().unwrap_or_default();
    directory.to_string_lossy().into_owned()
}
