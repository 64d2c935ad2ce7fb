//! `ralph plan run FILE --engine URL`: reads the plan with ralph, and starts its workflow.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::Args;
use ralph::fleet::{Integration, PlanOptions, ReadTask, Task};
use serde::Deserialize;
use temporalio_client::{Client, WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowStartOptions};
use tokio::process::Command;

use super::{ralph_program, status, version_of};
use crate::activities::NAMESPACE;
use crate::provision::{Git, redacted};
use crate::types::{MAX_SPEC_BYTES, MergeGate, PlanSpec, TaskRules, VERSION, account_id, plan_id};
use crate::workflows::{Account, AccountSpec, PlanRun};

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The plan: a Markdown file, prd.json or another source of `ralph plan`
    plan: String,
    /// How many tasks run at once on all workers
    #[arg(short, long, value_name = "N", default_value_t = 16)]
    jobs: usize,
    /// Run only these tasks
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Stop when the plan has cost this many dollars
    #[arg(long, value_name = "USD")]
    max_cost: Option<f64>,
    /// The repository that workers clone [default: the remote `origin`]
    #[arg(long, value_name = "URL")]
    repo: Option<String>,
    /// The name of the plan [default: the name of its file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The account whose usage limit all tasks share
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// How many tasks of the account run at once
    #[arg(long, value_name = "N", default_value_t = 6)]
    account_parallel: usize,
    /// What workers must offer
    #[arg(long, value_name = "LABEL,…", value_delimiter = ',')]
    needs: Vec<String>,
    /// Variables that a worker must have; only the names are sent
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    secrets: Vec<String>,
    /// Ignored files that must travel with a task, as patterns (repeatable)
    #[arg(long, value_name = "PATTERN")]
    ship: Vec<String>,
    /// A command that prepares each workspace, also after a move
    #[arg(long, value_name = "COMMAND")]
    setup: Option<String>,
    /// Sign the plan with this key of ssh-keygen
    #[arg(long, value_name = "FILE")]
    sign: Option<PathBuf>,
    /// Replace a worker that has been silent for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    heartbeat: u64,
    /// Submit the plan and return
    #[arg(long)]
    detach: bool,
    /// The agent of tasks that name none
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Command line of a custom agent
    #[arg(long, value_name = "COMMAND")]
    agent_cmd: Option<String>,
    /// Format of the agent's output
    #[arg(long, value_name = "FORMAT")]
    transcript: Option<String>,
    /// The model for the agent to use
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Maximum number of iterations of a task
    #[arg(short = 'n', long, value_name = "N")]
    max_iterations: Option<u64>,
}

/// A task as `ralph plan check --json` prints it.
#[derive(Debug, Deserialize)]
struct ListedTask {
    #[serde(flatten)]
    task: Task,
    state: String,
}

pub(super) async fn run(client: &Client, arguments: RunArguments) -> Result<u8, String> {
    let spec = spec(&arguments).await?;
    let size = serde_json::to_vec(&spec).map_or(0, |bytes| bytes.len());
    if size > MAX_SPEC_BYTES {
        return Err(format!(
            "the plan has {size} bytes; the engine takes {MAX_SPEC_BYTES}. Split it"
        ));
    }
    if let Some(account) = &spec.rules.account {
        start_account(client, account, arguments.account_parallel).await?;
    }
    let name = spec.plan.clone();
    let options = WorkflowStartOptions::new(crate::types::CONTROL_QUEUE, plan_id(&name))
        .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
        .id_reuse_policy(WorkflowIdReusePolicy::AllowDuplicate)
        .build();
    client
        .start_workflow(PlanRun::run, spec, options)
        .await
        .map_err(|error| format!("the plan was not submitted: {error}"))?;
    println!("Submitted {name}. To watch it: ralph plan status {name} --watch");
    match arguments.detach {
        true => Ok(0),
        false => status::follow(client, &name).await,
    }
}

async fn start_account(client: &Client, account: &str, max_parallel: usize) -> Result<(), String> {
    let options = WorkflowStartOptions::new(crate::types::CONTROL_QUEUE, account_id(account))
        .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
        .build();
    let spec = AccountSpec {
        name: account.to_owned(),
        max_parallel,
        state: None,
        elapsed: std::time::Duration::ZERO,
    };
    let started = client.start_workflow(Account::run, spec, options).await;
    started
        .map(drop)
        .map_err(|error| format!("account {account}: {error}"))
}

async fn spec(arguments: &RunArguments) -> Result<PlanSpec, String> {
    let ralph = ralph_program();
    let tasks = read_tasks(&ralph, &arguments.plan).await?;
    let known: Vec<&str> = tasks.iter().map(|read| read.task.id.as_str()).collect();
    if let Some(unknown) = arguments.only.iter().find(|id| !known.contains(&id.as_str())) {
        return Err(format!(
            "the plan has no task {unknown}; its tasks: {}",
            known.join(", ")
        ));
    }
    let plan = arguments.name.clone().unwrap_or_else(|| name_of(&arguments.plan));
    let here = Git::new(Path::new("."));
    let repo = match &arguments.repo {
        Some(repo) => repo.clone(),
        None => here
            .run(&["remote", "get-url", "origin"])
            .map_err(|_| "no repository: add a remote `origin`, or pass --repo URL".to_owned())?,
    };
    if redacted(&repo) != repo && repo.contains("://") && !repo.starts_with("ssh://") {
        return Err(
            "the URL of the repository contains a password; use a credential helper on the workers"
                .to_owned(),
        );
    }
    let base = base_of(&here, &repo)?;
    let mut rules = TaskRules {
        branch: format!("ralph/{plan}"),
        plan: plan.clone(),
        gates: project_gates(&ralph, &here).await?,
        repo,
        base,
        setup: arguments.setup.clone(),
        ship: arguments.ship.clone(),
        arguments: run_arguments(arguments),
        account: arguments.account.clone(),
        labels: arguments.needs.clone(),
        secrets: arguments.secrets.clone(),
        heartbeat_seconds: arguments.heartbeat,
        max_attempts: 5,
        signature: None,
    };
    if let Some(key) = &arguments.sign {
        rules.signature = Some(sign(key, &rules.signed_text()).await?);
    }
    Ok(PlanSpec {
        version: VERSION,
        source: arguments.plan.clone(),
        stamp: jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string(),
        options: PlanOptions {
            jobs: arguments.jobs.max(1),
            integration: Integration::MergeQueue,
            max_cost_usd: arguments.max_cost,
            only: arguments.only.iter().cloned().collect(),
        },
        plan,
        tasks,
        rules,
        submitted_by: crate::engine::host_name(),
    })
}

/// The commit that the remote has for the current one.
fn base_of(here: &Git, repo: &str) -> Result<String, String> {
    let head = here
        .run(&["rev-parse", "HEAD"])
        .map_err(|error| error.to_string())?;
    let refs = here
        .run(&["ls-remote", "--heads", repo])
        .map_err(|error| error.to_string())?;
    let has_head = refs.lines().any(|line| line.starts_with(&head));
    let is_below = || {
        let contained = here.run(&["branch", "--remotes", "--contains", &head, "--format=%(refname)"]);
        contained.is_ok_and(|names| !names.is_empty())
    };
    match has_head || is_below() {
        true => Ok(head),
        false => Err(format!(
            "{} does not have your commit {}; push it first",
            redacted(repo),
            &head[..12]
        )),
    }
}

fn name_of(source: &str) -> String {
    let stem = Path::new(source)
        .file_stem()
        .map_or_else(|| source.to_owned(), |stem| stem.to_string_lossy().into_owned());
    stem.to_lowercase()
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        })
        .collect()
}

async fn output_of(ralph: &Path, words: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new(ralph)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|error| format!("cannot start {}: {error}", ralph.display()))?;
    if let Some(version) = version_of(ralph).filter(|version| version != env!("CARGO_PKG_VERSION")) {
        return Err(format!(
            "ralph {version} and ralph-fleet {} differ",
            env!("CARGO_PKG_VERSION")
        ));
    }
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(String::from_utf8_lossy(&output.stderr)
            .trim()
            .trim_start_matches("error: ")
            .to_owned()),
    }
}

async fn read_tasks(ralph: &Path, plan: &str) -> Result<Vec<ReadTask>, String> {
    let text = output_of(ralph, &["plan", "check", "--json", plan]).await?;
    let tasks: Vec<ListedTask> = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    Ok(tasks
        .into_iter()
        .map(|listed| ReadTask {
            done: listed.state == "done",
            task: listed.task,
        })
        .collect())
}

/// The gates of the submitter's ralph.yml, for merges: what a task changes there cannot weaken them.
async fn project_gates(ralph: &Path, here: &Git) -> Result<Vec<MergeGate>, String> {
    let text = output_of(ralph, &["gates", "--json"]).await?;
    let top = here
        .run(&["rev-parse", "--show-toplevel"])
        .map_err(|error| error.to_string())?;
    let gates: serde_json::Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let gates = gates.as_array().cloned().unwrap_or_default();
    let text_of = |gate: &serde_json::Value, key: &str| gate[key].as_str().unwrap_or_default().to_owned();
    Ok(gates
        .iter()
        .map(|gate| MergeGate {
            name: text_of(gate, "name"),
            run: text_of(gate, "run"),
            directory: text_of(gate, "cwd")
                .strip_prefix(&top)
                .unwrap_or_default()
                .trim_start_matches('/')
                .to_owned(),
            seconds: gate["timeout"].as_u64().unwrap_or(600),
        })
        .collect())
}

fn run_arguments(arguments: &RunArguments) -> Vec<String> {
    let iterations = arguments.max_iterations.map(|most| most.to_string());
    let options = [
        ("--agent", &arguments.agent),
        ("--agent-cmd", &arguments.agent_cmd),
        ("--transcript", &arguments.transcript),
        ("--model", &arguments.model),
        ("-n", &iterations),
    ];
    let given = options
        .into_iter()
        .filter_map(|(name, value)| Some([name.to_owned(), value.clone()?]));
    given.flatten().collect()
}

async fn sign(key: &Path, text: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("ssh-keygen: {error}");
    let file = std::env::temp_dir().join(format!("ralph-plan-{}", std::process::id()));
    std::fs::write(&file, text).map_err(failed)?;
    let status = Command::new("ssh-keygen")
        .args(["-Y", "sign", "-q", "-n", NAMESPACE, "-f"])
        .arg(key)
        .arg(&file)
        .stderr(Stdio::inherit())
        .status()
        .await
        .map_err(failed)?;
    let signature = file.with_extension("sig");
    let signed = std::fs::read_to_string(&signature).map_err(failed);
    // Both files are temporary.
    let _ = std::fs::remove_file(&file);
    let _ = std::fs::remove_file(&signature);
    match status.success() {
        true => signed,
        false => Err("the plan could not be signed".to_owned()),
    }
}
