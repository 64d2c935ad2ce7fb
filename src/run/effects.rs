//! The thread that carries out actions which may block: it reads files, scans the workspace, starts agents and gates,
//! and asks drivers. Results come back through the queue, so the loop itself never waits for any of this.

use std::any::Any;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

use tempfile::TempDir;
use tracing::Span;

use crate::agent::ResolvedAgent;
use crate::engine::{GateEnd, GateVersion, Input};
use crate::event::{DeniedAccess, ProcessEnd, SnapshotMoment, StreamName};
use crate::failpoint;
use crate::files::free_space;
use crate::ok_or_log;
use crate::policy::Gate;
use crate::process::{Environment, Size, scratch};
use crate::runner::{
    AcpRunner, AgentJob, CommandJob, ProcessRunner, Runner, RunnerEvent, RunnerEvents, StartError, Started,
};
use crate::snapshot::{SnapshotId, SnapshotRules};
use crate::store::{IterationFiles, RawOutput, Run};

use super::accounts::{AccountEffect, Accounts};
use super::clean_gate::RunSnapshots;
use super::gate::GateRun;
use super::host::Host;
use super::queue::{Generation, Message};
use super::review::EarlierRounds;
use super::sandbox::{RunSandbox, SandboxJob, SandboxSetup};
use super::setup::PromptSource;
use super::snapshots;
use super::workspace::{Watched, Workspace};
use super::{RunAccounts, RunError};

/// Work for the thread. Effects are carried out in order.
pub(super) enum Effect {
    ScanWorkspace,
    ReadPrompt,
    StartAgent(AgentStart),
    StartGate {
        generation: Generation,
        gate: Box<Gate>,
        version: GateVersion,
        environment: Environment,
        span: Span,
    },
    /// Collects what the gate that has ended left behind.
    FinishGate {
        end: Option<ProcessEnd>,
        output: String,
    },
    /// Prepares the checkout of a review. The snapshots are those of the first and of the last round.
    PrepareReview {
        gate: Box<Gate>,
        earlier: [Option<String>; 2],
    },
    /// Compares the checkout with the snapshot after a reviewer.
    CheckReview,
    /// Compares the project with the snapshot that the gates checked.
    CheckTree {
        tree: Option<String>,
    },
    TakeSnapshot {
        iteration: u64,
        moment: SnapshotMoment,
    },
    CheckDisk,
    /// Restores the files of a snapshot and records them.
    RestoreSnapshot {
        iteration: u64,
        id: String,
    },
    CheckPaths,
    /// Uses the account of an agent.
    Account(AccountEffect),
    ResolveSession {
        agent: Arc<ResolvedAgent>,
        /// The file with the agent's output.
        output: Option<PathBuf>,
        reported: Option<String>,
    },
    /// Removes files with which a confined agent could redirect git.
    RemovePlantedFiles,
    /// A value whose removal may take a while, such as a directory.
    Discard(Box<dyn Any + Send>),
}

/// One attempt of the agent.
pub(super) struct AgentStart {
    pub(super) generation: Generation,
    pub(super) agent: Arc<ResolvedAgent>,
    pub(super) iteration: u64,
    pub(super) attempt: u64,
    pub(super) prompt: String,
    pub(super) session: Option<String>,
    pub(super) role: AgentRole,
    pub(super) environment: Environment,
    pub(super) hat: Option<String>,
    pub(super) screen: Option<Size>,
    /// The span in which the agent's threads log.
    pub(super) span: Span,
}

/// Where an agent works, and where its files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentRole {
    /// In the workspace.
    Worker,
    /// In the checkout of the review.
    Reviewer {
        /// The number of the reviewer in the attempt.
        number: u64,
    },
}

/// The result of starting an agent or a gate.
pub(super) struct StartResult {
    pub(super) generation: Generation,
    pub(super) started: Result<Started, StartError>,
    /// `None` for a gate.
    pub(super) files: Option<AttemptFiles>,
}

/// The files of one attempt.
pub(super) struct AttemptFiles {
    pub(super) files: IterationFiles,
    pub(super) prompt_file: PathBuf,
    /// The agent's directory for temporary files.
    pub(super) scratch: Option<TempDir>,
}

/// The resources of the thread.
pub(super) struct EffectContext {
    pub(super) run: Arc<Run>,
    pub(super) prompt: PromptSource,
    pub(super) workspace: PathBuf,
    pub(super) host: Host,
    pub(super) watched: Watched,
    pub(super) snapshots: SnapshotRules,
    /// All gates of the run.
    pub(super) gates: Vec<Gate>,
    pub(super) accounts: RunAccounts,
    /// PATH of agents and gates, if it differs from that of this process.
    pub(super) path: Option<OsString>,
    pub(super) sandbox: SandboxSetup,
}

fn no_scratch(error: &io::Error) -> StartError {
    StartError(format!("cannot create a directory for temporary files: {error}"))
}

impl EffectContext {
    fn with_path(&self, mut environment: Environment) -> Environment {
        let path = self.path.iter().map(|path| ("PATH".into(), path.clone()));
        environment.set.extend(path);
        environment
    }
}

/// Starts the thread. It ends when the returned sender is dropped, after the effect that it carries out.
pub(super) fn spawn(context: EffectContext, queue: Sender<Message>) -> io::Result<Sender<Effect>> {
    let (sender, effects) = mpsc::channel();
    let panics = context.host.panics().clone();
    let work = move || {
        let panics = context.host.panics().clone();
        let host = &context.host;
        let runner = ProcessRunner::new(host.supervisors().clone());
        let acp_runner = AcpRunner::new(host.supervisors().clone());
        let accounts = Accounts::new(&context.run, context.accounts.clone());
        let sandbox = RunSandbox::new(
            context.sandbox.clone(),
            &context.run,
            &context.workspace,
            &context.gates,
        );
        let mut worker = Worker {
            accounts,
            workspace: None,
            gate: None,
            snapshots: None,
            sandbox,
            context,
            runner,
            acp_runner,
            queue,
        };
        for effect in effects {
            failpoint!(panics, Effects);
            match worker.execute(effect) {
                Ok(Some(message)) => drop(worker.queue.send(message)),
                Ok(None) => {}
                Err(error) => drop(worker.queue.send(Message::Failed(error))),
            }
        }
    };
    panics.spawn("effects", work)?;
    Ok(sender)
}

struct Worker {
    accounts: Accounts,
    context: EffectContext,
    sandbox: RunSandbox,
    runner: ProcessRunner,
    acp_runner: AcpRunner,
    queue: Sender<Message>,
    /// Opened by the first scan.
    workspace: Option<Workspace>,
    /// The gate that was started last.
    gate: Option<GateRun>,
    /// Prepared by the first snapshot.
    snapshots: Option<RunSnapshots>,
}

impl Worker {
    fn execute(&mut self, effect: Effect) -> Result<Option<Message>, RunError> {
        let input = match effect {
            Effect::ScanWorkspace => Input::WorkspaceScanned {
                fingerprint: self.workspace().scan(),
            },
            Effect::ReadPrompt => Input::Prompt(self.context.prompt.read()),
            Effect::StartAgent(start) => {
                self.snapshots().agents_started += u64::from(start.role == AgentRole::Worker);
                return self.start_agent(start).map(Some);
            }
            Effect::StartGate {
                generation,
                gate,
                version,
                environment,
                span,
            } => {
                let _span = span.entered();
                return Ok(Some(self.start_gate(generation, *gate, version, environment)));
            }
            Effect::FinishGate { end, output } => Input::GateEnded(self.finish_gate(end, output)),
            Effect::PrepareReview { gate, earlier } => self.prepare_review(&gate, earlier),
            Effect::CheckReview => {
                let altered = self.snapshots().check_review();
                Input::ReviewChecked { altered }
            }
            Effect::CheckTree { tree } => Input::TreeChecked(self.snapshots().check_tree(tree.as_deref())),
            Effect::TakeSnapshot { iteration, moment } => self.take_snapshot(iteration, moment),
            Effect::CheckDisk => match self.free_disk_bytes() {
                Some(free_bytes) => Input::DiskChecked { free_bytes },
                None => return Ok(None),
            },
            Effect::RestoreSnapshot { iteration, id } => self.restore_snapshot(iteration, &id),
            Effect::CheckPaths => Input::PathsChecked(self.workspace().violations()),
            Effect::Account(effect) => {
                let input = self.use_account(effect)?;
                return Ok(input.map(|input| Message::Effect(Box::new(input))));
            }
            Effect::ResolveSession {
                agent,
                output,
                reported,
            } => {
                let found = agent.driver().zip(output);
                let found =
                    found.and_then(|(driver, output)| driver.session_id_of(&output, reported.as_deref()));
                Input::SessionResolved(found)
            }
            Effect::RemovePlantedFiles => {
                self.remove_planted_files();
                return Ok(None);
            }
            Effect::Discard(value) => {
                drop(value);
                return Ok(None);
            }
        };
        Ok(Some(Message::Effect(Box::new(input))))
    }

    fn take_snapshot(&mut self, iteration: u64, moment: SnapshotMoment) -> Input {
        let taken = self.snapshots().taker.take();
        let taken = snapshots::record(iteration, moment, taken);
        Input::SnapshotTaken { moment, taken }
    }

    fn restore_snapshot(&mut self, iteration: u64, id: &str) -> Input {
        let restored = self.snapshots().restore(id);
        let restored = snapshots::record(iteration, SnapshotMoment::Restored, restored);
        Input::SnapshotRestored(restored)
    }

    /// The least free space of the disks that a run writes to; `None` if it cannot be determined.
    fn free_disk_bytes(&self) -> Option<u64> {
        let run = &self.context.run;
        let places = [run.project().root(), run.directory()];
        let free = places
            .into_iter()
            .filter_map(|path| ok_or_log!(free_space(path), "determine the free disk space"));
        free.min()
    }

    /// The ids of the snapshots of the first and of the last round are those that the journal contains.
    fn prepare_review(&mut self, gate: &Gate, earlier: [Option<String>; 2]) -> Input {
        let [first, last] = earlier.map(|id| id.as_deref().and_then(SnapshotId::parse));
        Input::ReviewPrepared(
            self.snapshots()
                .prepare_review(gate, EarlierRounds { first, last }),
        )
    }

    /// The directory in which an agent works, and the environment for it.
    fn place_of(&self, role: AgentRole, environment: Environment) -> (PathBuf, Environment) {
        let workspace = &self.context.workspace;
        match (role, &self.snapshots) {
            (AgentRole::Reviewer { .. }, Some(snapshots)) => {
                let directory = snapshots.review_directory().unwrap_or(workspace);
                (directory.to_owned(), snapshots.outside_environment(environment))
            }
            (AgentRole::Worker, _) | (AgentRole::Reviewer { .. }, None) => (workspace.clone(), environment),
        }
    }

    fn files_of(&self, role: AgentRole, iteration: u64, attempt: u64) -> Result<IterationFiles, RunError> {
        let run = &self.context.run;
        Ok(match role {
            AgentRole::Worker => run.create_iteration(iteration, attempt)?,
            AgentRole::Reviewer { number } => run.create_review(iteration, attempt, number)?,
        })
    }

    fn finish_gate(&mut self, end: Option<ProcessEnd>, output: String) -> GateEnd {
        match self.gate.take() {
            Some(gate_run) => gate_run.ended(end, output),
            None => GateEnd {
                end,
                output,
                ..GateEnd::default()
            },
        }
    }

    fn use_account(&self, effect: AccountEffect) -> Result<Option<Input>, RunError> {
        let accounts = &self.accounts;
        match effect {
            AccountEffect::Request { agent, urgency } => {
                return Ok(Some(Input::PlaceAnswered(accounts.request(agent, urgency)?)));
            }
            AccountEffect::Release { agent, end } => accounts.release(agent, end),
            AccountEffect::Limit { agent, report } => accounts.limit(agent, report),
            AccountEffect::Wait(wait) => accounts.wait(wait),
            AccountEffect::Spend { agent, usd } => {
                return Ok(accounts.add_spend(agent, usd)?.map(Input::SpendRead));
            }
        }
        Ok(None)
    }

    fn remove_planted_files(&self) {
        for path in self.sandbox.remove_planted_files() {
            let path = DeniedAccess::Path(path.display().to_string());
            drop(self.queue.send(Message::Denied(path)));
        }
    }

    fn workspace(&mut self) -> &mut Workspace {
        let context = &self.context;
        self.workspace.get_or_insert_with(|| {
            Workspace::open(
                context.run.project().root(),
                context.host.supervisors(),
                &context.watched,
            )
        })
    }

    fn snapshots(&mut self) -> &mut RunSnapshots {
        let context = &self.context;
        self.snapshots.get_or_insert_with(|| {
            RunSnapshots::new(&context.run, &context.host, &context.snapshots, &context.gates)
        })
    }

    fn start_gate(
        &mut self,
        generation: Generation,
        gate: Gate,
        version: GateVersion,
        environment: Environment,
    ) -> Message {
        let environment = self.context.with_path(environment);
        let started = match self.prepare_gate(gate, version, environment) {
            Ok(job) => self.runner.start(job, self.plain_events(generation)),
            Err(reason) => Err(StartError(reason)),
        };
        Message::Started(Box::new(StartResult {
            generation,
            started,
            files: None,
        }))
    }

    /// Prepares the directory of a gate and returns its command.
    fn prepare_gate(
        &mut self,
        gate: Gate,
        version: GateVersion,
        environment: Environment,
    ) -> Result<CommandJob, String> {
        self.gate = None;
        let (gate_run, mut environment) = match gate.runs_clean() {
            false => (GateRun::new(gate, &self.context.workspace), environment),
            true => {
                let (prepared, environment) = self.snapshots().prepare(&gate, version, environment)?;
                (GateRun::clean(gate, prepared), environment)
            }
        };
        let sandbox = SandboxJob::Gate {
            gate: gate_run.gate(),
            checkout: gate_run.checkout(),
        };
        let sandbox = self.sandbox.confine(&sandbox, None, &mut environment);
        let spec = self.gate.insert(gate_run).spec(environment);
        Ok(CommandJob { spec, sandbox })
    }

    /// Creates the attempt's files, then starts the agent. A missing workspace and a file that cannot be created end the run; an agent that
    /// cannot be started fails the iteration.
    fn start_agent(&self, start: AgentStart) -> Result<Message, RunError> {
        let AgentStart {
            generation,
            agent,
            iteration,
            attempt,
            prompt,
            session,
            role,
            environment,
            hat,
            screen,
            span,
        } = start;
        let _span = span.entered();
        let (directory, mut environment) = self.place_of(role, self.context.with_path(environment));
        if !directory.is_dir() {
            return Err(RunError::WorkspaceMissing { path: directory });
        }
        let files = self.files_of(role, iteration, attempt)?;
        let prompt_file = files.write_prompt(&prompt)?;
        let raw = RawFiles {
            stdout: files.raw_stdout()?,
            stderr: files.raw_stderr(),
        };
        let (scratch, started) = match scratch("ralph-") {
            Ok(scratch) => {
                let confined = SandboxJob::Agent {
                    agent: &agent,
                    hat: hat.as_deref(),
                    files: files.directory(),
                    checkout: Some(&*directory).filter(|path| *path != self.context.workspace),
                };
                let temporary = Some(scratch.path());
                let sandbox = self.sandbox.confine(&confined, temporary, &mut environment);
                let job = AgentJob {
                    agent,
                    prompt,
                    prompt_file: prompt_file.clone(),
                    session,
                    environment,
                    directory,
                    screen,
                    sandbox,
                };
                let events = self.stored_events(generation, raw);
                (Some(scratch), self.start_job(job, events))
            }
            Err(error) => (None, Err(no_scratch(&error))),
        };
        Ok(Message::Started(Box::new(StartResult {
            generation,
            started,
            files: Some(AttemptFiles {
                files,
                prompt_file,
                scratch,
            }),
        })))
    }

    fn start_job(&self, job: AgentJob, events: RunnerEvents) -> Result<Started, StartError> {
        match job.agent.acp_usage() {
            Some(_) => self.acp_runner.start(job, events),
            None => self.runner.start(job, events),
        }
    }

    fn plain_events(&self, generation: Generation) -> RunnerEvents {
        let queue = self.queue.clone();
        Arc::new(move |event| drop(queue.send(Message::Runner { generation, event })))
    }

    /// Passes the events to the loop and stores the agent's output.
    fn stored_events(&self, generation: Generation, raw: RawFiles) -> RunnerEvents {
        let (queue, panics) = (self.queue.clone(), self.context.host.panics().clone());
        Arc::new(move |event| {
            failpoint!(panics, Reader);
            let output = match &event {
                RunnerEvent::Output { stream, bytes } => Some((*stream, bytes.clone())),
                RunnerEvent::Denied { .. } | RunnerEvent::Ended { .. } => None,
            };
            // Sending fails only if the run has ended.
            drop(queue.send(Message::Runner { generation, event }));
            // After sending, so that front ends do not wait for the file.
            if let Some((stream, bytes)) = output
                && let Err(error) = raw.append(stream, &bytes)
            {
                drop(queue.send(Message::Failed(RunError::Raw(error))));
            }
        })
    }
}

/// The files that store an agent's output byte for byte.
struct RawFiles {
    stdout: RawOutput,
    stderr: RawOutput,
}

impl RawFiles {
    fn append(&self, stream: StreamName, bytes: &[u8]) -> io::Result<()> {
        match stream {
            StreamName::Stdout => self.stdout.append(bytes),
            StreamName::Stderr => self.stderr.append(bytes),
        }
    }
}
