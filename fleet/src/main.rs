//! `ralph-fleet`: runs the plans of ralph on many machines with Temporal. `ralph` starts it for `ralph worker`, `ralph fleet` and
//! `ralph plan … --engine`.

mod account;
mod activities;
mod client;
mod doctor;
mod engine;
mod provision;
mod types;
mod worker;
mod workflows;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use activities::Trust;
use engine::EngineUrl;
use worker::WorkerSettings;

/// Runs the plans of ralph on many machines with Temporal.
#[derive(Debug, Parser)]
#[command(name = "ralph-fleet", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Work on tasks until SIGTERM, which gives them back
    Worker(Box<WorkerArguments>),
    /// Run a plan on the workers of an engine, and control it
    Plan(client::PlanArguments),
    /// Check the engine, the workers and a git remote
    Doctor(DoctorArguments),
    /// Save the copy that a file describes; ralph runs this between two iterations
    #[command(hide = true)]
    Checkpoint { file: PathBuf },
}

/// Where the engine is.
#[derive(Debug, Clone, Args)]
struct EngineArguments {
    /// The engine: temporal://HOST:PORT/NAMESPACE
    #[arg(long, env = "RALPH_FLEET_ENGINE", value_name = "URL", global = true)]
    engine: Option<EngineUrl>,
}

impl EngineArguments {
    fn url(&self) -> Result<EngineUrl, String> {
        let missing = "no engine: pass --engine temporal://HOST:PORT/NAMESPACE, or set RALPH_FLEET_ENGINE";
        self.engine.clone().ok_or_else(|| missing.to_owned())
    }
}

#[derive(Debug, Args)]
struct WorkerArguments {
    #[command(flatten)]
    engine: EngineArguments,
    /// How many tasks to work on at once
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    slots: u64,
    /// What this machine offers, such as gpu,linux; tasks that need it come here
    #[arg(long, value_name = "LABEL,…", value_delimiter = ',')]
    labels: Vec<String>,
    /// The directory for workspaces [default: ~/.cache/ralph-fleet]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// The name of this worker [default: the name of the machine]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Run only tasks of repositories that match; * stands for any text (repeatable)
    #[arg(long = "allow-repo", value_name = "PATTERN")]
    allow_repo: Vec<String>,
    /// Run only plans that one of these signers has signed (a file of ssh-keygen)
    #[arg(long, value_name = "FILE")]
    signers: Option<PathBuf>,
    /// Give all tasks back and end after this many seconds
    #[arg(long, value_name = "SECONDS")]
    drain_after: Option<u64>,
    /// How long an iteration may take after SIGTERM, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    drain_patience: u64,
}

#[derive(Debug, Args)]
struct DoctorArguments {
    #[command(flatten)]
    engine: EngineArguments,
    /// A git remote that must accept checkpoints
    #[arg(long, value_name = "URL")]
    repo: Option<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Command::Checkpoint { file } = &arguments.command {
        let (code, message) = activities::checkpoint(file);
        if !message.is_empty() {
            println!("{message}");
        }
        return ExitCode::from(code);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(arguments.command)) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<u8, String> {
    match command {
        Command::Worker(arguments) => {
            let settings = settings(&arguments)?;
            worker::run(settings).await.map(|()| 0)
        }
        Command::Plan(arguments) => client::plan(arguments).await,
        Command::Doctor(arguments) => doctor::run(&arguments.engine.url()?, arguments.repo.as_deref()).await,
        Command::Checkpoint { .. } => Ok(0),
    }
}

fn settings(arguments: &WorkerArguments) -> Result<WorkerSettings, String> {
    let root = match (&arguments.root, std::env::var_os("HOME")) {
        (Some(root), _) => root.clone(),
        (None, Some(home)) => PathBuf::from(home).join(".cache/ralph-fleet"),
        (None, None) => return Err("no directory for workspaces: pass --root".to_owned()),
    };
    if arguments.labels.len() > 6 {
        return Err("a worker has at most 6 labels".to_owned());
    }
    std::fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    Ok(WorkerSettings {
        engine: arguments.engine.url()?,
        slots: usize::try_from(arguments.slots).unwrap_or(1),
        labels: arguments.labels.clone(),
        root: root.canonicalize().unwrap_or(root),
        ralph: client::ralph_program(),
        name: arguments.name.clone(),
        trust: Trust {
            repositories: arguments.allow_repo.clone(),
            signers: arguments.signers.clone(),
        },
        drain_after: arguments.drain_after.map(Duration::from_secs),
        patience: Duration::from_secs(arguments.drain_patience),
    })
}
