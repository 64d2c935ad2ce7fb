//! Drives a plan: takes a message from the queue, calls `Plan::step`, and carries out the actions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use signal_hook::consts::{SIGHUP, SIGINT};

use super::children::ChildProcesses;
use super::error::PlanError;
use super::integration::Integrated;
use super::job::{Attempt, AttemptEnd, CommittedWork, Place, WorktreePlace, task_gates};
use super::merge::{MergeJob, MergeTask};
use super::plan_file::PlanFile;
use super::request::{PlanCommandFile, PlanRequest};
use super::screen::PlanScreen;
use super::step::{Action, Input, Plan, PlanCommand, PlanEvent, PlanOutcome, PlanRecord, TaskEnd, TaskStart};
use super::task_front_end::RunNews;
use super::worktree::port_base;
use crate::event::Interrupt;
use crate::run::Host;
use crate::signals::{STOP_SIGNALS, Signals};
use crate::store::PlanFiles;

/// How often the inbox and the source are checked, and the screen is drawn.
const TICK: Duration = Duration::from_millis(250);

/// A message to the driver.
enum Message {
    News {
        task: String,
        news: RunNews,
    },
    Ended {
        task: String,
        end: Box<AttemptEnd>,
    },
    /// The thread of a task ended without a result.
    Lost {
        task: String,
    },
    Merge(Box<MergeMessage>),
    Signal(i32),
}

enum MergeMessage {
    /// The branch is about to move. The merge waits for the answer.
    Prepared(PlanEvent, Sender<Result<(), String>>),
    Ended(Input),
}

/// A running task.
pub(super) struct RunningTask {
    pub(super) since: Instant,
    pub(super) iteration: u64,
    pub(super) cost_usd: f64,
    slot: usize,
    signals: Signals,
    /// The run has started, so it receives signals.
    has_started: bool,
    is_stopping: bool,
}

pub(super) struct PlanDriver<'a> {
    host: &'a Host,
    request: &'a PlanRequest,
    files: PlanFiles,
    integrated: Option<Integrated>,
    plan_file: PlanFile,
    plan: Plan,
    screen: PlanScreen,
    children: Arc<ChildProcesses>,
    running: BTreeMap<String, RunningTask>,
    /// The committed work of tasks that are not merged yet, or were rejected.
    work: BTreeMap<String, CommittedWork>,
    /// The last run of each task.
    runs: BTreeMap<String, PathBuf>,
    seq: u64,
    began: Instant,
    /// Ids of the commands that were applied.
    applied: BTreeSet<String>,
    sender: Sender<Message>,
    messages: Receiver<Message>,
}

/// Reports the end of a task's thread, even if it panics.
struct EndNotifier {
    task: String,
    sender: Sender<Message>,
    end: Option<Box<AttemptEnd>>,
}

impl Drop for EndNotifier {
    fn drop(&mut self) {
        let task = self.task.clone();
        let message = match self.end.take() {
            Some(end) => Message::Ended { task, end },
            None => Message::Lost { task },
        };
        // The driver may have ended.
        let _ = self.sender.send(message);
    }
}

/// What an earlier process has recorded.
#[derive(Default)]
pub(super) struct History {
    pub(super) records: Vec<PlanRecord>,
}

/// What a driver works with.
pub(super) struct DriverParts {
    pub(super) files: PlanFiles,
    pub(super) integrated: Option<Integrated>,
    pub(super) plan_file: PlanFile,
    pub(super) screen: PlanScreen,
}

impl<'a> PlanDriver<'a> {
    pub(super) fn new(
        host: &'a Host,
        request: &'a PlanRequest,
        parts: DriverParts,
        history: &History,
    ) -> Self {
        let DriverParts {
            files,
            integrated,
            plan_file,
            screen,
        } = parts;
        let (sender, messages) = mpsc::channel();
        let events = history.records.iter().map(|record| &record.event);
        let plan = Plan::restored(request.options(), plan_file.read_tasks(), events.clone());
        let mut driver = Self {
            host,
            request,
            files,
            integrated,
            plan_file,
            plan,
            screen,
            children: Arc::new(ChildProcesses::new(host.supervisors().separate())),
            running: BTreeMap::new(),
            work: BTreeMap::new(),
            runs: BTreeMap::new(),
            seq: history.records.last().map_or(0, |record| record.seq),
            began: Instant::now(),
            applied: BTreeSet::new(),
            sender,
            messages,
        };
        events.for_each(|event| driver.remember(event));
        driver
    }

    /// Stores what later actions need.
    fn remember(&mut self, event: &PlanEvent) {
        match event {
            PlanEvent::TaskRun { task, run, .. } => drop(self.runs.insert(task.clone(), PathBuf::from(run))),
            // The task runs again, even if its last run was complete.
            PlanEvent::TaskRejected { task, .. } | PlanEvent::TaskReopened { task } => {
                drop(self.runs.remove(task))
            }
            PlanEvent::TaskCommitted {
                task, branch, commit, ..
            } => {
                let (branch, commit) = (branch.clone(), commit.clone());
                self.work.insert(task.clone(), CommittedWork { branch, commit });
            }
            PlanEvent::CommandReceived { id, .. } => drop(self.applied.insert(id.clone())),
            _ => {}
        }
    }

    /// Runs the plan until it ends; no run, merge or other child is left then.
    pub(super) fn run(
        mut self,
        first: Vec<PlanEvent>,
    ) -> Result<(PlanOutcome, Option<Integrated>), PlanError> {
        let sender = self.sender.clone();
        let on_signal = move |signal| drop(sender.send(Message::Signal(signal)));
        let subscription = self.host.signals().subscribe(STOP_SIGNALS, on_signal);
        let subscription = subscription.map_err(PlanError::Signals)?;
        let result = self.run_to_end(first);
        if result.is_err() {
            self.stop_everything();
        }
        drop(subscription);
        self.screen.finish();
        self.children.shut_down();
        Ok((result?, self.integrated))
    }

    fn run_to_end(&mut self, first: Vec<PlanEvent>) -> Result<PlanOutcome, PlanError> {
        for event in first {
            self.emit(event)?;
        }
        let commands = self.new_commands()?;
        let tasks = self.plan_file.read_tasks();
        // Commands that were sent while no process ran the plan come first: without them, it may be at its end.
        let commands = (!commands.is_empty()).then_some(Input::Commands { commands });
        for input in commands.into_iter().chain([Input::TasksRead { tasks }]) {
            if let Some(outcome) = self.step(input)? {
                return Ok(outcome);
            }
        }
        loop {
            self.screen.draw(&self.plan, &self.running, self.began.elapsed());
            let input = match self.messages.recv_timeout(TICK) {
                Ok(message) => self.input_of(message)?,
                Err(_) => None,
            };
            for input in input.into_iter().chain(self.due_inputs()?) {
                if let Some(outcome) = self.step(input)? {
                    return Ok(outcome);
                }
            }
        }
    }

    /// Inputs that no message announces: commands, edits of the source, deadlines.
    fn due_inputs(&mut self) -> Result<Vec<Input>, PlanError> {
        let commands = self.new_commands()?;
        let mut inputs = Vec::new();
        if !commands.is_empty() {
            inputs.push(Input::Commands { commands });
        }
        if self.plan_file.has_changed() {
            inputs.extend(self.reread()?);
        }
        if self
            .plan
            .deadline()
            .is_some_and(|due| due <= self.began.elapsed())
        {
            inputs.push(Input::Tick);
        }
        Ok(inputs)
    }

    /// The commands in the inbox that have not been applied.
    fn new_commands(&mut self) -> Result<Vec<PlanCommand>, PlanError> {
        let mut commands = Vec::new();
        for (name, PlanCommandFile { id, command }) in self.files.commands::<PlanCommandFile>() {
            if self.applied.insert(id.clone()) {
                let event = PlanEvent::CommandReceived {
                    id,
                    command: command.clone(),
                };
                self.emit(event)?;
                commands.push(command);
            }
            self.files.remove_command(&name);
        }
        Ok(commands)
    }

    /// Reads the source again, and removes marks that ralph did not set.
    fn reread(&mut self) -> Result<Option<Input>, PlanError> {
        match self.plan_file.reread(&self.plan.done()) {
            Ok(read) => {
                for text in read.warnings {
                    self.emit(PlanEvent::Warning { text })?;
                }
                Ok(read.changed.then(|| Input::TasksRead {
                    tasks: self.plan_file.read_tasks(),
                }))
            }
            Err(text) => {
                self.emit(PlanEvent::Warning { text })?;
                Ok(None)
            }
        }
    }

    fn input_of(&mut self, message: Message) -> Result<Option<Input>, PlanError> {
        Ok(match message {
            Message::News { task, news } => self.on_news(task, news),
            Message::Ended { task, end } => Some(self.on_ended(task, *end)?),
            Message::Lost { task } => {
                self.running.remove(&task);
                let end = TaskEnd::Failed {
                    reason: "ralph has a bug: the task's thread ended".to_owned(),
                };
                let cost_usd = 0.0;
                Some(Input::RunEnded { task, end, cost_usd })
            }
            Message::Merge(message) => match *message {
                MergeMessage::Prepared(event, answer) => {
                    let recorded = self.emit(event).map_err(|error| error.to_string());
                    // The merge may have been stopped.
                    let _ = answer.send(recorded);
                    None
                }
                MergeMessage::Ended(input) => Some(input),
            },
            Message::Signal(signal) => Some(self.on_signal(signal)),
        })
    }

    fn on_news(&mut self, task: String, news: RunNews) -> Option<Input> {
        let running = self.running.get_mut(&task)?;
        match news {
            RunNews::Started(run) => {
                running.has_started = true;
                if running.is_stopping {
                    running.signals.deliver(SIGINT);
                }
                self.runs.insert(task.clone(), run.clone());
                let run = run.display().to_string();
                Some(Input::RunStarted { task, run })
            }
            RunNews::Iteration(iteration) => {
                running.iteration = iteration;
                None
            }
            RunNews::Cost(cost) => {
                running.cost_usd = f64::from(cost);
                None
            }
            RunNews::Limited(wait) => Some(Input::Limited { task, wait }),
        }
    }

    fn on_ended(&mut self, task: String, end: AttemptEnd) -> Result<Input, PlanError> {
        self.running.remove(&task);
        if let Some(work) = end.work {
            let attempt = self.plan.task(&task).map_or(1, |task| task.attempts);
            self.emit(PlanEvent::TaskCommitted {
                task: task.clone(),
                attempt,
                branch: work.branch,
                commit: work.commit,
            })?;
        }
        // The agent may have changed the source. What it marked does not count.
        if let Some(input) = self.reread()? {
            let _ = self.step(input)?;
        }
        let (end, cost_usd) = (end.end, end.cost_usd);
        Ok(Input::RunEnded { task, end, cost_usd })
    }

    fn on_signal(&mut self, signal: i32) -> Input {
        let by = match signal {
            SIGINT => Interrupt::Int,
            SIGHUP => Interrupt::Hup,
            _ => Interrupt::Term,
        };
        if self.children.are_stopping() {
            self.children.kill();
            for running in self.running.values() {
                running.signals.deliver(SIGINT);
            }
        } else {
            self.screen.print_stopping();
            self.children.stop();
        }
        Input::Interrupted { by }
    }

    /// Passes an input to the plan and carries out its actions; returns the outcome if the plan has ended.
    fn step(&mut self, input: Input) -> Result<Option<PlanOutcome>, PlanError> {
        let mut ended = None;
        for action in self.plan.step(self.began.elapsed(), input) {
            match action {
                Action::Emit(event) => self.emit(event)?,
                Action::Start(start) => self.start(*start)?,
                Action::Stop { task } => self.stop(&task),
                Action::Merge { tasks } => self.merge(&tasks)?,
                Action::StopMerge => self.children.stop(),
                Action::Mark { task } => self.mark(&task)?,
                Action::End { outcome } => ended = Some(outcome),
            }
        }
        Ok(ended)
    }

    fn emit(&mut self, event: PlanEvent) -> Result<(), PlanError> {
        self.seq += 1;
        let record = PlanRecord {
            seq: self.seq,
            at: Timestamp::now(),
            event,
        };
        self.files.append(&record)?;
        self.remember(&record.event);
        self.screen.show(&record, &self.plan).map_err(PlanError::Output)
    }

    fn free_slot(&self) -> usize {
        let used: BTreeSet<usize> = self.running.values().map(|running| running.slot).collect();
        // Slot 0 is the merge queue's.
        (1..).find(|slot| !used.contains(slot)).unwrap_or_default()
    }

    fn start(&mut self, start: TaskStart) -> Result<(), PlanError> {
        let slot = self.free_slot();
        let id = start.task.id.clone();
        let port = port_base(self.files.directory(), slot);
        let variables = vec![
            ("RALPH_PORT_BASE".into(), port.to_string().into()),
            ("RALPH_PLAN_TASK".into(), id.clone().into()),
        ];
        let host = self.host.for_run().with_variables(variables);
        let attempt = Attempt {
            place: self.place(&start)?,
            earlier_run: self.runs.get(&id).cloned(),
            start,
            plan: self.request.shown_source.clone(),
            run_task: Arc::clone(&self.request.run_task),
            children: Arc::clone(&self.children),
        };
        self.running.insert(
            id.clone(),
            RunningTask {
                since: Instant::now(),
                iteration: 0,
                cost_usd: 0.0,
                slot,
                signals: host.signals().clone(),
                has_started: false,
                is_stopping: false,
            },
        );
        let notifier = EndNotifier {
            task: id.clone(),
            sender: self.sender.clone(),
            end: None,
        };
        let news_sender = self.sender.clone();
        let news = Arc::new(move |news| {
            let task = id.clone();
            // The driver may have ended.
            let _ = news_sender.send(Message::News { task, news });
        });
        let run = move || {
            let mut notifier = notifier;
            notifier.end = Some(Box::new(attempt.run(&host, news)));
        };
        self.host
            .panics()
            .for_run()
            .spawn("task", run)
            .map_err(PlanError::Thread)?;
        Ok(())
    }

    fn place(&self, start: &TaskStart) -> Result<Place, PlanError> {
        let Some(integrated) = &self.integrated else {
            return Ok(Place::InPlace(self.request.workspace.clone()));
        };
        let id = &start.task.id;
        let name = format!("{id}-{}", start.attempt);
        let rejected_commit = start.rejection.as_ref().and_then(|_| self.work.get(id));
        Ok(Place::Worktree(Box::new(WorktreePlace {
            repository: integrated.repository.clone(),
            worktrees: Arc::clone(&integrated.worktrees),
            branch: integrated.task_branch(id, start.attempt),
            name,
            integration: integrated.branch.clone(),
            below: integrated.below.clone(),
            commit: self.request.worktree.commit,
            tracked: integrated.tracked.clone(),
            co_author: self.request.worktree.co_author.clone(),
            rejected_commit: rejected_commit.map(|work| work.commit.clone()),
        })))
    }

    fn stop(&mut self, task: &str) {
        if let Some(running) = self.running.get_mut(task) {
            running.is_stopping = true;
            if running.has_started {
                running.signals.deliver(SIGINT);
            }
        }
    }

    fn merge(&mut self, tasks: &[String]) -> Result<(), PlanError> {
        let Some(integrated) = &self.integrated else {
            return Ok(());
        };
        let merged = tasks.iter().filter_map(|id| {
            let task = &self.plan.task(id)?.task;
            Some(MergeTask {
                id: id.clone(),
                title: task.title.clone(),
                commit: self.work.get(id)?.commit.clone(),
                gates: task_gates(&task.gates),
            })
        });
        let job = MergeJob {
            repository: integrated.repository.clone(),
            branch: integrated.branch.clone(),
            tasks: merged.collect(),
            gates: integrated.gates.clone(),
            plan: integrated.tracked_plan(&self.plan.done()),
            style: integrated.style,
            trailers: self
                .request
                .worktree
                .co_author
                .as_ref()
                .map_or_else(String::new, |author| format!("Co-authored-by: {author}\n")),
            port_base: port_base(self.files.directory(), 0),
        };
        let (worktrees, children) = (Arc::clone(&integrated.worktrees), Arc::clone(&self.children));
        let sender = self.sender.clone();
        let send = move |message| {
            // The driver may have ended.
            let _ = sender.send(Message::Merge(Box::new(message)));
        };
        let run = move || {
            let record = |event| {
                let (answer, recorded) = mpsc::channel();
                send(MergeMessage::Prepared(event, answer));
                recorded
                    .recv()
                    .unwrap_or_else(|_| Err("the plan has ended".to_owned()))
            };
            let input = job.run(&worktrees, &children, record);
            send(MergeMessage::Ended(input));
        };
        self.host
            .panics()
            .spawn("merge", run)
            .map_err(PlanError::Thread)?;
        Ok(())
    }

    /// Marks a finished task where the source keeps it, and removes what is not needed any more.
    fn mark(&mut self, id: &str) -> Result<(), PlanError> {
        let mut done = self.plan.done();
        done.insert(id.to_owned());
        if let Some(integrated) = &self.integrated {
            let attempt = self.plan.task(id).map_or(1, |task| task.attempts);
            integrated.clean_up(id, attempt, self.work.get(id));
            if integrated.tracks_plan() {
                return self.close(id);
            }
        }
        if let Err(text) = self.plan_file.mark(&done) {
            self.emit(PlanEvent::Warning { text })?;
        }
        self.close(id)
    }

    /// Closes the task in its tracker, if the user allowed it.
    fn close(&mut self, id: &str) -> Result<(), PlanError> {
        let Some(words) = self.request.close_command(id) else {
            return Ok(());
        };
        let closed = super::read::run_words(&words, self.host.supervisors(), &self.request.workspace);
        match closed {
            Ok(_) => Ok(()),
            Err(why) => self.emit(PlanEvent::Warning {
                text: format!("cannot close {id}: {why}"),
            }),
        }
    }

    /// Stops all runs and the merge after an error, and waits for them.
    fn stop_everything(&mut self) {
        self.children.stop();
        let tasks: Vec<String> = self.running.keys().cloned().collect();
        tasks.iter().for_each(|task| self.stop(task));
        while !self.running.is_empty() {
            match self.messages.recv_timeout(Duration::from_secs(30)) {
                Ok(Message::Ended { task, .. } | Message::Lost { task }) => drop(self.running.remove(&task)),
                Ok(Message::News { task, news }) => drop(self.on_news(task, news)),
                Ok(Message::Merge(_) | Message::Signal(_)) => {}
                Err(_) => return,
            }
        }
    }
}
