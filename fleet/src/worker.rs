//! `ralph worker`: serves the engine's queues until it receives a signal to end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use temporalio_client::Client;
use temporalio_sdk::runtime::worker_tuner::{FixedSizeSlotSupplier, TunerHolder};
use temporalio_sdk::{Runtime, Worker as EngineWorker, WorkerOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::activities::{Shared, Trust, Worker};
use crate::engine::{self, EngineUrl};
use crate::types::{CONTROL_QUEUE, work_queue};
use crate::workflows::{Account, PlanRun, TaskRun};

/// How often the connection to the engine is checked.
const CHECK: Duration = Duration::from_secs(1);
/// Cancellations arrive with the answer to a heartbeat.
const THROTTLE: Duration = Duration::from_millis(400);

/// What the command line says.
#[derive(Debug, Clone)]
pub(crate) struct WorkerSettings {
    pub(crate) engine: EngineUrl,
    pub(crate) slots: usize,
    pub(crate) labels: Vec<String>,
    pub(crate) root: PathBuf,
    pub(crate) ralph: PathBuf,
    pub(crate) name: Option<String>,
    pub(crate) trust: Trust,
    /// The worker drains by itself after this time.
    pub(crate) drain_after: Option<Duration>,
    /// How long an iteration may take after the request to drain.
    pub(crate) patience: Duration,
}

/// Serves until SIGTERM or SIGINT, and returns when all its tasks are saved.
pub(crate) async fn run(settings: WorkerSettings) -> Result<(), String> {
    // First of all: a process with the number 1 ignores signals without a handler.
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    let client = engine::connect(&settings.engine).await?;
    let (drain, draining) = watch::channel(None);
    let host = settings.name.clone().unwrap_or_else(engine::host_name);
    let stamp = jiff::Timestamp::now().as_nanosecond();
    let queue = format!("ralph@{host}-{}-{stamp}", std::process::id());
    let worker = Arc::new(Shared {
        root: settings.root.clone(),
        host: host.clone(),
        queue: queue.clone(),
        ralph: settings.ralph.clone(),
        own: std::env::current_exe().map_err(|error| error.to_string())?,
        trust: settings.trust.clone(),
        drain: draining,
        answered: Mutex::new(Instant::now()),
        running: Mutex::new(BTreeMap::new()),
    });
    let runtime = Runtime::from_current_tokio(Default::default()).map_err(|error| error.to_string())?;
    let mut workers = Vec::new();
    workers.push(control(&runtime, &client)?);
    for labels in label_sets(&settings.labels) {
        workers.push(activities(
            &runtime,
            &client,
            &worker,
            &work_queue(&labels),
            settings.slots,
        )?);
    }
    workers.push(activities(&runtime, &client, &worker, &queue, 16)?);
    eprintln!(
        "worker {host} serves {} with {} slots",
        settings.engine, settings.slots
    );
    let stops: Vec<_> = workers.iter().map(EngineWorker::shutdown_handle).collect();
    let checking = tokio::spawn(check_connection(client, Arc::clone(&worker)));
    let by_itself = async {
        match settings.drain_after {
            Some(after) => tokio::time::sleep(after).await,
            None => std::future::pending().await,
        }
    };
    let patience = settings.patience;
    let waiting = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = by_itself => {}
        }
        eprintln!(
            "draining: tasks end after their iteration, or in {} s",
            patience.as_secs()
        );
        // Runs stop first; the queues are served until their tasks have been returned.
        let _ = drain.send(Some(Instant::now() + patience));
        stops.iter().for_each(|stop| stop());
        std::future::pending::<()>().await;
    };
    let serving = futures::future::try_join_all(workers.iter_mut().map(EngineWorker::run));
    let result = tokio::select! {
        result = serving => result.map(drop).map_err(|error| error.to_string()),
        () = waiting => Ok(()),
    };
    checking.abort();
    result
}

/// The worker of workflows. They must move on fast when another worker's machine is gone.
fn control(runtime: &Runtime, client: &Client) -> Result<EngineWorker, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let options = WorkerOptions::new(CONTROL_QUEUE)
        .sticky_queue_schedule_to_start_timeout(Duration::from_secs(1))
        .register_workflow::<PlanRun>()
        .and_then(|options| options.register_workflow::<TaskRun>())
        .and_then(|options| options.register_workflow::<Account>())
        .map_err(|error| text(&error))?
        .build();
    EngineWorker::new(runtime, client.clone(), options).map_err(|error| text(&error))
}

fn activities(
    runtime: &Runtime,
    client: &Client,
    worker: &Arc<Shared>,
    queue: &str,
    slots: usize,
) -> Result<EngineWorker, String> {
    let tuner = TunerHolder::builder()
        .workflow_task_slot_supplier(FixedSizeSlotSupplier::new(2))
        .activity_task_slot_supplier(FixedSizeSlotSupplier::new(slots))
        .local_activity_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .nexus_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .build();
    let options = WorkerOptions::new(queue)
        .max_heartbeat_throttle_interval(THROTTLE)
        .default_heartbeat_throttle_interval(THROTTLE)
        .tuner(tuner)
        .register_activities(Worker(Arc::clone(worker)))
        .build();
    EngineWorker::new(runtime, client.clone(), options).map_err(|error| error.to_string())
}

/// The label sets whose tasks the worker can run: all subsets, because a task names what it needs.
fn label_sets(labels: &[String]) -> Vec<Vec<String>> {
    let mut sets = vec![Vec::new()];
    for label in labels {
        let with: Vec<Vec<String>> = sets
            .iter()
            .map(|set: &Vec<String>| set.iter().cloned().chain([label.clone()]).collect())
            .collect();
        sets.extend(with);
    }
    sets
}

/// Notes when the engine answered last. Without an answer, the worker's tasks may already run elsewhere.
async fn check_connection(client: Client, worker: Arc<Shared>) {
    loop {
        let asked = client.count_workflows("WorkflowId = 'ralph-worker'", Default::default());
        if let Ok(Ok(_)) = tokio::time::timeout(CHECK * 2, asked).await {
            worker.engine_answered();
        }
        tokio::time::sleep(CHECK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_serves_every_set_of_its_labels() {
        let labels = ["gpu".to_owned(), "linux".to_owned()];
        let queues: Vec<String> = label_sets(&labels).iter().map(|set| work_queue(set)).collect();
        assert_eq!(queues, ["ralph", "ralph.gpu", "ralph.linux", "ralph.gpu.linux"]);
    }
}
