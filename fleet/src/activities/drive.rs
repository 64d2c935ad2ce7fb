//! The activity `drive`: makes the workspace, runs ralph in it, saves checkpoints, and reports how the run ended.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use temporalio_client::WorkflowSignalOptions;
use temporalio_sdk::activities::ActivityContext;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

use super::Shared;
use super::process::{self, RalphProcess};
use crate::provision::{self, Copy, JournalSummary, ProvisionError, Provisioned, TaskSource};
use crate::types::{
    DriveEnd, DriveReport, DriveSpec, Progress, TaskMessage, account_id, checkpoint_name, task_branch,
    task_id,
};
use crate::workflows::{Account, AccountMessage, TaskRun};

/// Time between two heartbeats.
const BEAT: Duration = Duration::from_millis(500);
/// How long a checkpoint that cannot be saved is tried again before the worker gives up.
const PATIENCE: Duration = Duration::from_secs(600);
/// Maximum length of the last words in a heartbeat.
const MAX_WORDS: usize = 200;

/// Why the worker stops a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopCause {
    /// The workflow has cancelled the activity.
    Cancelled,
    Draining,
    /// The engine does not answer, so another worker may take over.
    Disconnected,
}

/// The state of one execution.
struct Drive {
    worker: Arc<Shared>,
    ctx: ActivityContext,
    spec: DriveSpec,
    place: Provisioned,
    progress: Progress,
    summary: JournalSummary,
    /// The checkpoint that was reported to the workflow.
    reported: u64,
    /// Whether the account has been notified that this task works.
    worked: bool,
    stopped: Option<StopCause>,
}

pub(super) async fn drive(
    worker: Arc<Shared>,
    ctx: ActivityContext,
    spec: DriveSpec,
) -> Result<DriveReport, String> {
    let rules = &spec.task.rules;
    if let Some(reason) = worker.trust.refusal(rules, "submitter").await {
        return Ok(DriveReport {
            end: DriveEnd::Failed { reason },
            iteration: 0,
            cost_usd: 0.0,
        });
    }
    let mut progress = Progress {
        host: worker.host.clone(),
        state: "preparing".to_owned(),
        ..Progress::default()
    };
    let preparing = tokio::task::spawn_blocking({
        let (worker, spec) = (Arc::clone(&worker), spec.clone());
        move || prepare(&worker, &spec)
    });
    let place = beat_while(&ctx, &progress, preparing)
        .await?
        .map_err(|error| error.to_string())?;
    let summary = place.copy.summary.clone();
    (progress.iteration, progress.seq, progress.cost_usd) =
        (summary.iteration, summary.seq, summary.cost_usd);
    let running = (place.copy.workspace.clone(), place.state.clone());
    let run_id = spec.task.run_id.clone();
    lock(&worker).insert(run_id.clone(), running);
    let drive = Drive {
        reported: summary.seq,
        worker: Arc::clone(&worker),
        ctx,
        spec,
        place,
        progress,
        summary,
        worked: false,
        stopped: None,
    };
    let result = drive.run().await;
    lock(&worker).remove(&run_id);
    result
}

type Running = std::collections::BTreeMap<String, (std::path::PathBuf, std::path::PathBuf)>;

fn lock(worker: &Shared) -> std::sync::MutexGuard<'_, Running> {
    worker.running.lock().unwrap_or_else(PoisonError::into_inner)
}

fn prepare(worker: &Shared, spec: &DriveSpec) -> Result<Provisioned, ProvisionError> {
    let (rules, start) = (&spec.task.rules, &spec.task.start);
    let source = TaskSource {
        remote: &rules.repo,
        name: &checkpoint_name(&rules.plan, &start.task.id, start.attempt),
        branch: &task_branch(&rules.plan, &start.task.id, start.attempt),
        integration: Some(&rules.branch),
        base: &rules.base,
        run_id: &spec.task.run_id,
        ship: &rules.ship,
        worker: &worker.host,
        attempt: spec.attempt,
    };
    provision::prepare(&worker.root, &source)
}

/// Sends heartbeats until the work has ended.
async fn beat_while<T>(
    ctx: &ActivityContext,
    progress: &Progress,
    work: tokio::task::JoinHandle<T>,
) -> Result<T, String> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            result = &mut work => return result.map_err(|error| error.to_string()),
            () = tokio::time::sleep(BEAT) => beat(ctx, progress).await,
        }
    }
}

async fn beat(ctx: &ActivityContext, progress: &Progress) {
    // The details are plain data, so they can always be encoded.
    let _ = ctx.record_heartbeat(progress.clone()).await;
}

impl Drive {
    async fn run(mut self) -> Result<DriveReport, String> {
        self.signal(TaskMessage::Started {
            host: self.worker.host.clone(),
            queue: self.worker.queue.clone(),
            attempt: self.spec.attempt,
            iteration: self.summary.iteration,
            cost_usd: self.summary.cost_usd,
        })
        .await;
        if let Some(reason) = self.set_up().await? {
            return Ok(self.report(DriveEnd::Failed { reason }));
        }
        let process = process::start(&self.worker, &self.spec, &self.place)?;
        let (code, errors) = self.follow(process).await?;
        let end = self.end_of(code, &errors);
        if end == DriveEnd::Complete {
            self.commit()?;
        }
        match self.save_last().await? {
            Some(ProvisionError::Fenced) => Ok(self.report(DriveEnd::Fenced)),
            Some(error) => Err(error.to_string()),
            None => {
                self.report_saved().await;
                Ok(self.report(end))
            }
        }
    }

    fn report(&self, end: DriveEnd) -> DriveReport {
        DriveReport {
            end,
            iteration: self.summary.iteration,
            cost_usd: self.summary.cost_usd.max(self.progress.cost_usd),
        }
    }

    /// Runs the set-up command; returns why it failed.
    async fn set_up(&mut self) -> Result<Option<String>, String> {
        let Some(command) = self.spec.task.rules.setup.clone() else {
            return Ok(None);
        };
        self.progress.state = "setting up".to_owned();
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &command])
            .current_dir(&self.place.copy.workspace)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let ended = tokio::spawn(async move { shell.output().await });
        let output = beat_while(&self.ctx, &self.progress, ended)
            .await?
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stderr);
        let line = text.lines().last().unwrap_or_default().to_owned();
        Ok((!output.status.success()).then(|| format!("the set-up failed ({}): {line}", output.status)))
    }

    /// Follows the run to its end; returns its exit code and what it printed on stderr.
    async fn follow(&mut self, process: RalphProcess) -> Result<(Option<i32>, String), String> {
        let RalphProcess { mut child, lifeline } = process;
        self.progress.state = "working".to_owned();
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let mut stderr = child.stderr.take().ok_or("no stderr")?;
        let errors = tokio::spawn(async move {
            let mut text = Vec::new();
            // A run that is killed leaves no more to read.
            let _ = stderr.read_to_end(&mut text).await;
            String::from_utf8_lossy(&text).into_owned()
        });
        let mut lines = BufReader::new(stdout).split(b'\n');
        let mut ticks = tokio::time::interval(BEAT);
        let mut drain = self.worker.drain.clone();
        loop {
            let cancelled = self.stopped.is_none();
            tokio::select! {
                line = lines.next_segment() => match line {
                    Ok(Some(line)) => self.on_line(&line),
                    Ok(None) | Err(_) => break,
                },
                () = self.ctx.cancelled(), if cancelled => self.stop(&child, StopCause::Cancelled),
                _ = ticks.tick() => {
                    beat(&self.ctx, &self.progress).await;
                    self.report_saved().await;
                    self.stop_if_due(&child, *drain.borrow_and_update());
                }
            }
        }
        let status = child.wait().await.map_err(|error| error.to_string())?;
        drop(lifeline);
        let errors = errors.await.unwrap_or_default();
        Ok((status.code(), errors))
    }

    fn on_line(&mut self, line: &[u8]) {
        let Ok(record) = serde_json::from_slice::<Value>(line) else {
            return;
        };
        self.summary.add_record(&record);
        self.progress.seq = self.summary.seq;
        self.progress.cost_usd = self.summary.cost_usd;
        match record["type"].as_str() {
            Some("iteration_started") => {
                self.progress.iteration = record["iteration"].as_u64().unwrap_or_default();
                self.progress.state = "working".to_owned();
            }
            Some("waiting") => self.progress.state = "waiting".to_owned(),
            Some("paused") => self.progress.state = "paused".to_owned(),
            _ => {}
        }
        if let Some(text) = record["text"].as_str().filter(|text| !text.trim().is_empty()) {
            self.progress.last_words = text.trim().chars().take(MAX_WORDS / 4).collect();
        }
    }

    /// Asks the run to end. A draining worker lets the iteration end first.
    fn stop(&mut self, child: &tokio::process::Child, cause: StopCause) {
        self.stopped = Some(cause);
        self.progress.state = "stopping".to_owned();
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = id.and_then(rustix::process::Pid::from_raw) {
            // It may have ended in the meantime.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }

    fn stop_if_due(&mut self, child: &tokio::process::Child, drain_at: Option<Instant>) {
        if self.stopped.is_some() {
            return;
        }
        let lease = self.spec.task.rules.heartbeat().mul_f64(0.8);
        if !self.worker.is_connected(lease) {
            self.stop(child, StopCause::Disconnected);
        } else if let Some(at) = drain_at {
            // The checkpoint command of the current iteration ends the run.
            let _ = std::fs::write(self.place.file.with_file_name("drain"), "");
            if at <= Instant::now() {
                self.stop(child, StopCause::Draining);
            }
        }
    }

    /// Reports a checkpoint that the barrier has saved, with the commands that it contains.
    async fn report_saved(&mut self) {
        let Ok(copy) = Copy::read(&self.place.file) else {
            return;
        };
        if copy.summary.seq <= self.reported {
            return;
        }
        self.reported = copy.summary.seq;
        self.signal(TaskMessage::Saved {
            iteration: copy.summary.iteration,
            cost_usd: copy.summary.cost_usd,
            received: copy.summary.received,
        })
        .await;
        if !self.worked && copy.summary.iteration > 0 {
            self.worked = true;
            self.tell_account().await;
        }
    }

    /// The account's other tasks may follow.
    async fn tell_account(&self) {
        let Some(account) = &self.spec.task.rules.account else {
            return;
        };
        let task = self.task_id();
        let handle = self
            .ctx
            .client()
            .get_workflow_handle::<Account>(account_id(account));
        let message = AccountMessage::Worked { task };
        // The next task reports it to the account again.
        let _ = handle
            .signal(Account::message, message, WorkflowSignalOptions::default())
            .await;
    }

    fn task_id(&self) -> String {
        task_id(&self.spec.task.rules.plan, &self.spec.task.start.task.id)
    }

    async fn signal(&self, message: TaskMessage) {
        let handle = self.ctx.client().get_workflow_handle::<TaskRun>(self.task_id());
        let sent = handle.signal(TaskRun::message, message, WorkflowSignalOptions::default());
        // Without a connection, the lease ends soon.
        let _ = tokio::time::timeout(self.spec.task.rules.heartbeat(), sent).await;
    }

    /// What the end of the process means.
    fn end_of(&self, code: Option<i32>, errors: &str) -> DriveEnd {
        let ended = self.summary.ended.clone().unwrap_or_default();
        let text = |key: &str| ended[key].as_str().unwrap_or_default().to_owned();
        match (self.stopped, ended["outcome"].as_str(), code) {
            (_, Some("complete"), _) => DriveEnd::Complete,
            (Some(StopCause::Cancelled), ..) => DriveEnd::Stopped,
            (Some(StopCause::Draining | StopCause::Disconnected), ..) => DriveEnd::Yielded,
            (None, Some("rate_limited"), _) => DriveEnd::Limited {
                resets_in_seconds: seconds_until(&text("resets_at")),
                message: text("message"),
            },
            (None, Some("checkpoint_refused"), _) if self.place.file.with_file_name("drain").exists() => {
                DriveEnd::Yielded
            }
            (None, Some("checkpoint_refused"), _) => DriveEnd::Fenced,
            (None, Some("auth_required"), _) => DriveEnd::AgentUnusable {
                reason: text("message"),
            },
            (None, Some("limit_reached"), _) if ended["limit"]["limit"] == "cost" => {
                match self.spec.task.start.max_cost_usd == self.spec.task.start.task.limits.max_cost_usd {
                    true => DriveEnd::Failed {
                        reason: "its cost limit is reached".to_owned(),
                    },
                    false => DriveEnd::OutOfBudget,
                }
            }
            (None, Some("limit_reached"), _) => DriveEnd::Failed {
                reason: format!("a limit was reached: {}", ended["limit"]),
            },
            (None, Some("failed" | "misconfigured"), _) => DriveEnd::Failed {
                reason: text("reason"),
            },
            (None, Some("interrupted"), _) => DriveEnd::Stopped,
            (None, _, Some(4)) => DriveEnd::AgentUnusable {
                reason: last_line(errors),
            },
            (None, _, _) => DriveEnd::Failed {
                reason: last_line(errors),
            },
        }
    }

    /// Commits what the agent has left uncommitted, as a plan on one machine does.
    fn commit(&self) -> Result<(), String> {
        let git = provision::Git::new(&self.place.copy.workspace);
        let task = &self.spec.task.start.task;
        let run = |args: &[&str]| git.run(args).map_err(|error| error.to_string());
        run(&["add", "--all", "--", "."])?;
        if run(&["diff", "--cached", "--name-only"])?.is_empty() {
            return Ok(());
        }
        let message = format!("{}\n\nRalph-Task: {}\n", task.title, task.id);
        run(&["commit", "--quiet", "-m", &message]).map(drop)
    }

    /// Saves the state after the end of the run. A remote that cannot be reached is tried again.
    async fn save_last(&mut self) -> Result<Option<ProvisionError>, String> {
        self.progress.state = "saving".to_owned();
        let (since, mut wait) = (Instant::now(), Duration::from_secs(1));
        loop {
            let file = self.place.file.clone();
            let saving = tokio::task::spawn_blocking(move || provision::save(&file));
            match beat_while(&self.ctx, &self.progress, saving).await? {
                Ok(saved) => {
                    self.summary = saved.summary;
                    return Ok(None);
                }
                Err(ProvisionError::NotSaved { .. }) if since.elapsed() < PATIENCE && self.may_wait() => {
                    let pause = tokio::spawn(tokio::time::sleep(wait));
                    beat_while(&self.ctx, &self.progress, pause).await?;
                    wait = (wait * 3 / 2).min(Duration::from_secs(60));
                }
                Err(error) => return Ok(Some(error)),
            }
        }
    }

    /// A worker without a connection to the engine has lost the task.
    fn may_wait(&self) -> bool {
        self.stopped != Some(StopCause::Disconnected)
    }
}

/// The time until a stated reset, by the clock with which it is compared.
fn seconds_until(reset: &str) -> Option<u64> {
    let reset: jiff::Timestamp = reset.parse().ok()?;
    let left = reset.duration_since(jiff::Timestamp::now());
    Some(u64::try_from(left.as_secs()).unwrap_or_default())
}

fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|line| line.starts_with("error"));
    let line = line.or_else(|| text.lines().rev().find(|line| !line.trim().is_empty()));
    line.unwrap_or("ralph ended without a result").trim().to_owned()
}

/// `ralph-fleet checkpoint FILE`, which ralph runs between two iterations; returns its exit code.
pub(crate) fn checkpoint(file: &Path) -> (u8, String) {
    let deadline = Instant::now() + PATIENCE / 2;
    let mut wait = Duration::from_secs(1);
    loop {
        match provision::save(file) {
            Ok(_) if file.with_file_name("drain").exists() => {
                return (1, "the worker is draining".to_owned());
            }
            Ok(_) => return (0, String::new()),
            Err(error @ ProvisionError::NotSaved { .. }) if Instant::now() + wait >= deadline => {
                return (1, error.to_string());
            }
            Err(ProvisionError::NotSaved { .. }) => {
                std::thread::sleep(wait);
                wait = (wait * 3 / 2).min(Duration::from_secs(30));
            }
            Err(error) => return (1, error.to_string()),
        }
    }
}
