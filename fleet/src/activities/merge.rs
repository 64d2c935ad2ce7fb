//! The activity `merge`: merges the branches of tasks into the integration branch, runs the gates, and moves the branch with a lease.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ralph::fleet::{Input, Rejection};
use temporalio_sdk::activities::ActivityContext;
use tokio::process::Command;

use super::Shared;
use crate::provision::{self, Git, Provisioned, TaskSource};
use crate::types::{MergeGate, MergeSpec, MergeTask};

const BEAT: Duration = Duration::from_millis(500);
/// Maximum length of a gate's output in the next prompt.
const MAX_OUTPUT: usize = 8000;
/// The time that a gate of a task has.
const GATE_SECONDS: u64 = 600;

/// The merged tree before its gates.
struct Merged {
    place: Provisioned,
    /// The head of the integration branch before; empty if the branch does not exist.
    before: String,
    commit: String,
}

pub(super) async fn merge(
    worker: Arc<Shared>,
    ctx: ActivityContext,
    spec: MergeSpec,
) -> Result<Input, String> {
    if let Some(reason) = worker.trust.refusal(&spec.rules, "submitter").await {
        return Ok(rejected(&spec, Rejection::Failed { reason }, Duration::ZERO));
    }
    let (shared, own) = (Arc::clone(&worker), spec.clone());
    let merging = tokio::task::spawn_blocking(move || merge_branches(&shared, &own));
    let merged = match beat_while(&ctx, merging).await?? {
        Ok(merged) => merged,
        Err(why) => return Ok(rejected(&spec, why, Duration::ZERO)),
    };
    let since = Instant::now();
    for gate in gates(&spec) {
        let workspace = merged.place.copy.workspace.clone();
        let name = gate.name.clone();
        let running = tokio::spawn(async move { run_gate(&gate, &workspace).await });
        if let Err(output) = beat_while(&ctx, running).await? {
            let why = Rejection::GateFailed { gate: name, output };
            remove(&merged.place);
            return Ok(rejected(&spec, why, since.elapsed()));
        }
    }
    let gates = since.elapsed();
    let (own, commit) = (spec.clone(), merged.commit.clone());
    let pushing = tokio::task::spawn_blocking(move || {
        let pushed = push(&merged, &own);
        remove(&merged.place);
        pushed
    });
    match beat_while(&ctx, pushing).await?? {
        Pushed::Yes => Ok(Input::Merged {
            tasks: names(&spec),
            commit,
            gates,
        }),
        Pushed::Moved => Ok(rejected(&spec, Rejection::Moved, gates)),
    }
}

fn names(spec: &MergeSpec) -> Vec<String> {
    spec.tasks.iter().map(|task| task.id.clone()).collect()
}

fn rejected(spec: &MergeSpec, why: Rejection, gates: Duration) -> Input {
    Input::MergeRejected {
        tasks: names(spec),
        why,
        gates,
    }
}

async fn beat_while<T>(ctx: &ActivityContext, work: tokio::task::JoinHandle<T>) -> Result<T, String> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            result = &mut work => return result.map_err(|error| error.to_string()),
            () = tokio::time::sleep(BEAT) => drop(ctx.record_heartbeat(()).await),
        }
    }
}

/// The gates of the project and of the tasks.
fn gates(spec: &MergeSpec) -> Vec<MergeGate> {
    let of_tasks = spec.tasks.iter().flat_map(|task| {
        task.gates.iter().enumerate().map(|(index, run)| MergeGate {
            name: format!("task gate {} of {}", index + 1, task.id),
            run: run.clone(),
            directory: String::new(),
            seconds: GATE_SECONDS,
        })
    });
    spec.rules.gates.iter().cloned().chain(of_tasks).collect()
}

fn merge_branches(worker: &Shared, spec: &MergeSpec) -> Result<Result<Merged, Rejection>, String> {
    let text = |error: provision::ProvisionError| error.to_string();
    let rules = &spec.rules;
    let name = format!("{}.merge/queue", rules.plan);
    let source = TaskSource {
        remote: &rules.repo,
        name: &name,
        branch: &rules.branch,
        integration: Some(&rules.branch),
        base: &rules.base,
        run_id: "merge",
        ship: &[],
        worker: &worker.host,
        attempt: 0,
    };
    let place = provision::prepare(&worker.root, &source).map_err(text)?;
    let git = Git::new(&place.copy.workspace);
    let before = place
        .copy
        .refs
        .get(&place.copy.branch_ref())
        .cloned()
        .unwrap_or_default();
    for task in &spec.tasks {
        if let Err(why) = merge_task(&git, task, &rules.repo)? {
            remove(&place);
            return Ok(Err(why));
        }
    }
    let commit = git.run(&["rev-parse", "HEAD"]).map_err(text)?;
    Ok(Ok(Merged {
        place,
        before,
        commit,
    }))
}

fn merge_task(git: &Git, task: &MergeTask, repo: &str) -> Result<Result<(), Rejection>, String> {
    let text = |error: provision::ProvisionError| error.to_string();
    let branch = format!("refs/heads/{}", task.branch);
    git.run(&["fetch", "--quiet", "--no-tags", repo, &branch])
        .map_err(text)?;
    let message = format!("{}\n\nRalph-Task: {}\n", task.title, task.id);
    let (ok, output) = git
        .try_run(&["merge", "--quiet", "--no-ff", "-m", &message, "FETCH_HEAD"])
        .map_err(text)?;
    if ok {
        return Ok(Ok(()));
    }
    let files = git
        .run(&["diff", "--name-only", "--diff-filter=U"])
        .map_err(text)?;
    if files.is_empty() {
        return Err(format!(
            "git merge: {}",
            output.lines().last().unwrap_or_default()
        ));
    }
    Ok(Err(Rejection::Conflict {
        task: task.id.clone(),
        files: files.lines().map(str::to_owned).collect(),
    }))
}

/// Runs a gate; the error is the end of its output.
async fn run_gate(gate: &MergeGate, workspace: &Path) -> Result<(), String> {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &format!("exec 2>&1\n{}", gate.run)])
        .current_dir(workspace.join(&gate.directory))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let ended = tokio::time::timeout(Duration::from_secs(gate.seconds), shell.output()).await;
    match ended {
        Err(_) => Err(format!("timed out after {} s", gate.seconds)),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let surplus = text.len().saturating_sub(MAX_OUTPUT);
            let start = (surplus..text.len()).find(|at| text.is_char_boundary(*at));
            Err(text[start.unwrap_or_default()..].to_owned())
        }
    }
}

enum Pushed {
    Yes,
    Moved,
}

/// Moves the integration branch, unless it has moved since.
fn push(merged: &Merged, spec: &MergeSpec) -> Result<Pushed, String> {
    let git = Git::new(&merged.place.copy.workspace);
    let name = merged.place.copy.branch_ref();
    let lease = format!("--force-with-lease={name}:{}", merged.before);
    let new = format!("{}:{name}", merged.commit);
    let (ok, output) = git
        .try_run(&["push", "--quiet", &lease, &spec.rules.repo, &new])
        .map_err(|error| error.to_string())?;
    match ok {
        true => Ok(Pushed::Yes),
        false if output.contains("stale info") || output.contains("[rejected]") => Ok(Pushed::Moved),
        false => Err(provision::redacted(output.lines().last().unwrap_or_default())),
    }
}

/// Removes the workspace of a merge.
fn remove(place: &Provisioned) {
    let directory: Option<PathBuf> = place.file.parent().map(Path::to_owned);
    if let Some(directory) = directory {
        // It is removed with the worker's directory otherwise.
        let _ = std::fs::remove_dir_all(directory);
    }
}
