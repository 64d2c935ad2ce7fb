//! `ralph plan … --engine URL`: submits a plan, shows it and controls it.

mod status;
mod submit;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use ralph::fleet::{PlanCommand, PlanOutcome};
use temporalio_client::{Client, WorkflowHandle, WorkflowQueryOptions, WorkflowSignalOptions};

use crate::EngineArguments;
use crate::engine;
use crate::provision::Git;
use crate::types::{PlanMessage, PlanStatus, TaskCommand, TaskMessage, checkpoint_name, plan_id, task_id};
use crate::workflows::{Account, AccountMessage, PlanRun, TaskRun};

/// How often `--watch` and `--wait` ask.
const INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    engine: EngineArguments,
    #[command(subcommand)]
    command: PlanAction,
}

#[derive(Debug, Subcommand)]
enum PlanAction {
    /// Submit a plan and wait for its end; Ctrl-C leaves it running
    Run(Box<submit::RunArguments>),
    /// Show the state of each task
    Status(StatusArguments),
    /// Send a message or a command to the agent of a task
    Tell(TellArguments),
    /// Run a parked or skipped task again
    Retry(TaskArguments),
    /// Do not run a task; tasks that need it run without it
    Skip(TaskArguments),
    /// Stop a task and park it; without a task, stop the plan
    Stop(StopArguments),
    /// Print the journal of a task, up to its last checkpoint
    Logs(LogsArguments),
    /// End the wait of an account for its usage limit
    Resume(ResumeArguments),
}

#[derive(Debug, Args)]
struct StatusArguments {
    /// The name of the plan
    plan: String,
    /// Print it again whenever it changes, until the plan ends
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct TellArguments {
    /// The task
    task: String,
    /// The message, which is added to the agent's next prompt
    #[arg(required_unless_present_any = ["pause", "resume", "wake", "stop_iteration"])]
    text: Option<String>,
    /// The name of the plan
    #[arg(long)]
    plan: String,
    /// Pause after the current iteration
    #[arg(long, group = "command")]
    pause: bool,
    /// Resume after a pause
    #[arg(long, group = "command")]
    resume: bool,
    /// End the current wait
    #[arg(long, group = "command")]
    wake: bool,
    /// Stop the current iteration and start the next
    #[arg(long, group = "command")]
    stop_iteration: bool,
    /// Wait until a checkpoint contains the command
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Args)]
struct TaskArguments {
    /// The task
    task: String,
    /// The name of the plan
    #[arg(long)]
    plan: String,
}

#[derive(Debug, Args)]
struct StopArguments {
    /// The task [default: the whole plan]
    task: Option<String>,
    /// The name of the plan
    #[arg(long)]
    plan: String,
}

#[derive(Debug, Args)]
struct LogsArguments {
    /// The task
    task: String,
    /// The name of the plan
    #[arg(long)]
    plan: String,
}

#[derive(Debug, Args)]
struct ResumeArguments {
    /// The account
    account: String,
}

pub(crate) async fn plan(arguments: PlanArguments) -> Result<u8, String> {
    let client = engine::connect(&arguments.engine.url()?).await?;
    match arguments.command {
        PlanAction::Run(arguments) => submit::run(&client, *arguments).await,
        PlanAction::Status(arguments) => {
            status::show(&client, &arguments.plan, arguments.watch, arguments.json).await
        }
        PlanAction::Tell(arguments) => tell(&client, arguments).await,
        PlanAction::Retry(TaskArguments { task, plan }) => {
            send(
                &client,
                &plan,
                PlanCommand::Retry { task },
                "the task will run again",
            )
            .await
        }
        PlanAction::Skip(TaskArguments { task, plan }) => {
            send(
                &client,
                &plan,
                PlanCommand::Skip { task },
                "the task will be skipped",
            )
            .await
        }
        PlanAction::Stop(StopArguments { task, plan }) => {
            send(
                &client,
                &plan,
                PlanCommand::Stop { task },
                "stopping; the work is saved first",
            )
            .await
        }
        PlanAction::Logs(LogsArguments { task, plan }) => logs(&client, &plan, &task).await,
        PlanAction::Resume(ResumeArguments { account }) => {
            let handle = client.get_workflow_handle::<Account>(crate::types::account_id(&account));
            let sent = handle.signal(
                Account::message,
                AccountMessage::Resumed,
                WorkflowSignalOptions::default(),
            );
            sent.await
                .map_err(|error| format!("account {account}: {error}"))?;
            println!("The tasks of {account} start again.");
            Ok(0)
        }
    }
}

fn handle(client: &Client, plan: &str) -> WorkflowHandle<Client, PlanRun> {
    client.get_workflow_handle::<PlanRun>(plan_id(plan))
}

/// The state of a plan, also after its end.
async fn status_of(client: &Client, plan: &str) -> Result<PlanStatus, String> {
    let handle = handle(client, plan);
    let asked = handle.query(PlanRun::status, (), WorkflowQueryOptions::default());
    match tokio::time::timeout(Duration::from_secs(30), asked).await {
        Ok(Ok(status)) => Ok(status),
        Ok(Err(error)) => Err(format!("plan {plan}: {error}")),
        Err(_) => Err(format!(
            "plan {plan}: no worker answers; start one with: ralph worker"
        )),
    }
}

/// An id that no other command has.
fn command_id() -> String {
    format!(
        "fleet-{}-{}",
        jiff::Timestamp::now().as_nanosecond(),
        std::process::id()
    )
}

/// The plan must have this task.
async fn require_task(client: &Client, plan: &str, task: &str) -> Result<PlanStatus, String> {
    let status = status_of(client, plan).await?;
    match status.tasks.iter().any(|row| row.id == task) {
        true => Ok(status),
        false => {
            let known: Vec<&str> = status.tasks.iter().map(|row| row.id.as_str()).collect();
            Err(format!(
                "plan {plan} has no task {task}; its tasks: {}",
                known.join(", ")
            ))
        }
    }
}

async fn send(client: &Client, plan: &str, command: PlanCommand, what: &str) -> Result<u8, String> {
    if let PlanCommand::Retry { task } | PlanCommand::Skip { task } | PlanCommand::Stop { task: Some(task) } =
        &command
    {
        require_task(client, plan, task).await?;
    }
    let message = PlanMessage::Command {
        id: command_id(),
        command,
    };
    let sent = handle(client, plan)
        .signal(PlanRun::message, message, WorkflowSignalOptions::default())
        .await;
    sent.map_err(|error| format!("plan {plan}: {error}"))?;
    println!("{plan}: {what}.");
    Ok(0)
}

async fn tell(client: &Client, arguments: TellArguments) -> Result<u8, String> {
    let TellArguments { task, text, plan, .. } = &arguments;
    require_task(client, plan, task).await?;
    let flags = [
        (arguments.pause, "--pause"),
        (arguments.resume, "--resume"),
        (arguments.wake, "--wake"),
        (arguments.stop_iteration, "--stop-iteration"),
    ];
    let flag = flags
        .into_iter()
        .find(|(is_set, _)| *is_set)
        .map(|(_, flag)| flag.to_owned());
    let id = command_id();
    let words = flag.or_else(|| text.clone()).into_iter().collect();
    let command = TaskCommand {
        id: id.clone(),
        words,
    };
    let handle = client.get_workflow_handle::<TaskRun>(task_id(plan, task));
    let sent = handle
        .signal(
            TaskRun::message,
            TaskMessage::Command(command),
            WorkflowSignalOptions::default(),
        )
        .await;
    sent.map_err(|_| format!("{task} is not running, so it cannot receive commands"))?;
    println!("Sent to {task} as {id}; it is delivered until a checkpoint contains it.");
    while arguments.wait {
        tokio::time::sleep(INTERVAL).await;
        let status = handle
            .query(TaskRun::status, (), WorkflowQueryOptions::default())
            .await;
        let status = status.map_err(|error| error.to_string())?;
        if !status.pending.contains(&id) {
            println!("A checkpoint contains it.");
            break;
        }
    }
    Ok(0)
}

/// Prints the journal as the last checkpoint at the remote has it.
async fn logs(client: &Client, plan: &str, task: &str) -> Result<u8, String> {
    let status = require_task(client, plan, task).await?;
    let attempt = status
        .tasks
        .iter()
        .find(|row| row.id == task)
        .map_or(1, |row| row.attempt);
    let name = crate::provision::state_ref(&checkpoint_name(plan, task, attempt), "state");
    let directory = std::env::temp_dir().join(format!("ralph-fleet-logs-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let git = Git::new(&directory);
    let read = || {
        git.run(&["init", "--quiet", "--bare", "."])?;
        git.run(&["fetch", "--quiet", "--no-tags", "--depth=1", &status.repo, &name])?;
        let listing = git.run(&["ls-tree", "-r", "FETCH_HEAD", "journal/"])?;
        let blobs = listing.lines().filter_map(|line| line.split_whitespace().nth(2));
        let mut journal = Vec::new();
        for blob in blobs {
            journal.extend(git.bytes(&["cat-file", "blob", blob])?);
        }
        Ok(journal)
    };
    let journal: Result<Vec<u8>, crate::provision::ProvisionError> = read();
    // The directory is temporary.
    let _ = std::fs::remove_dir_all(&directory);
    let journal = journal.map_err(|error| format!("{task} has no checkpoint yet ({error})"))?;
    use std::io::Write;
    std::io::stdout()
        .write_all(&journal)
        .map_err(|error| error.to_string())?;
    Ok(0)
}

/// The exit code of an ended plan.
fn exit_code(outcome: &PlanOutcome) -> u8 {
    match outcome {
        PlanOutcome::Complete => 0,
        PlanOutcome::Incomplete => 1,
        PlanOutcome::OutOfBudget => 3,
        PlanOutcome::Interrupted { .. } => 130,
    }
}

/// `ralph` beside this program, or on PATH.
pub(crate) fn ralph_program() -> PathBuf {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|own| Some(own.parent()?.join("ralph")));
    match std::env::var_os("RALPH_BIN") {
        Some(path) => PathBuf::from(path),
        None => beside
            .filter(|path| path.exists())
            .unwrap_or_else(|| PathBuf::from("ralph")),
    }
}

/// What `PROGRAM --version` prints after the name.
pub(crate) fn version_of(program: &Path) -> Option<String> {
    let output = std::process::Command::new(program)
        .arg("--version")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().nth(1).map(str::to_owned)
}
