//! Several runs in one process: an interrupt or a panic of one does not affect the others.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use signal_hook::consts::SIGINT;
use tempfile::TempDir;

use crate::cli::context::{Context, settings_of};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::run_plan::RunPlan;
use crate::event::{Record, RunEvent, RunOutcome, Sink};
use crate::panic_hook::{AfterPanic, Failpoint, PanicScope};
use crate::run::{FrontEnds, Host, RunError};
use crate::store::StateDirectory;
use crate::ui::FrontEnd;

/// Longer than any step needs, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// The program of the supervisors is this test binary: the argument of a supervisor selects this test.
#[test]
fn __supervisor() {
    let _ = crate::process::supervise_if_requested(&PanicScope::install(AfterPanic::KeepProcess));
}

/// Sends every record to the test.
struct Recorder(Sender<Record>);

impl Sink for Recorder {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        // The test may have failed already.
        let _ = self.0.send(record.clone());
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FrontEnd for Recorder {}

/// A run on its own thread and in its own workspace.
struct TestRun {
    host: Host,
    workspace: TempDir,
    records: Receiver<Record>,
    thread: JoinHandle<Result<Exit, CliError>>,
}

impl TestRun {
    fn start(host: Host, script: &str) -> Self {
        let workspace = TempDir::new().expect("a workspace");
        let config = format!(
            "cli: {{ backend: custom, command: sh, args: [-c, '{script}'], prompt_mode: stdin, transcript: plain }}\n\
             event_loop: {{ prompt: x, max_iterations: 1, max_no_progress: 0 }}\n"
        );
        std::fs::write(workspace.path().join("ralph.yml"), config).expect("a configuration");
        let (sender, records) = mpsc::channel();
        let (cwd, host_of_run) = (workspace.path().to_owned(), host.clone());
        let thread = thread::spawn(move || {
            let settings = settings_of(&cwd.join("ralph.yml"))?;
            let context = Context {
                state: Some(StateDirectory::at(cwd.join("state"))),
                cwd,
                host: host_of_run,
            };
            let front_ends = FrontEnds {
                visible: Box::new(Recorder(sender)),
                record_file: None,
                traces: None,
            };
            RunPlan::new(&context, settings)?.execute(&context, front_ends)
        });
        Self {
            host,
            workspace,
            records,
            thread,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.workspace.path().join(name)
    }

    /// Waits for an event for which `find` returns a value.
    fn wait_for<T>(&self, find: impl Fn(&RunEvent) -> Option<T>) -> T {
        loop {
            let record = self.records.recv_timeout(DEADLINE).expect("the event");
            if let Some(found) = find(&record.event) {
                return found;
            }
        }
    }

    fn outcome(&self) -> RunOutcome {
        self.wait_for(|event| match event {
            RunEvent::RunEnded { outcome, .. } => Some(outcome.clone()),
            _ => None,
        })
    }

    fn result(self) -> Result<Exit, CliError> {
        self.thread.join().expect("a result")
    }
}

fn wait_for_file(path: &Path) {
    let deadline = std::time::Instant::now() + DEADLINE;
    while !path.exists() {
        assert!(std::time::Instant::now() < deadline, "no {}", path.display());
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_interrupt_or_a_panic_of_one_run_does_not_affect_the_others() {
    let process = Host::embedded(std::env::current_exe().expect("this program"));
    let waits = "touch started; while [ ! -e go ]; do sleep 0.05; done; echo LOOP_COMPLETE";
    let completed = TestRun::start(process.for_run(), waits);
    wait_for_file(&completed.path("started"));

    let interrupted = TestRun::start(process.for_run(), "touch started; sleep 600");
    wait_for_file(&interrupted.path("started"));
    interrupted.host.signals().deliver(SIGINT);
    let outcome = interrupted.outcome();
    assert!(matches!(outcome, RunOutcome::Interrupted { .. }), "{outcome:?}");
    assert!(matches!(interrupted.result(), Ok(Exit::Interrupted)));

    let host = process.for_run();
    host.panics().arm(Failpoint::Output);
    let panicked = TestRun::start(host.clone(), "echo hello; sleep 600");
    let outcome = panicked.outcome();
    assert!(
        matches!(&outcome, RunOutcome::Failed { reason } if reason.contains("failpoint Output")),
        "{outcome:?}"
    );
    assert!(matches!(
        panicked.result(),
        Err(CliError::Run(RunError::Panicked))
    ));
    assert!(host.panics().first_panic().is_some());

    std::fs::write(completed.path("go"), "").expect("a file");
    let outcome = completed.outcome();
    assert!(matches!(outcome, RunOutcome::Complete { .. }), "{outcome:?}");
    assert_eq!(completed.host.panics().first_panic(), None);
    assert!(matches!(completed.result(), Ok(Exit::Success)));
    assert_eq!(process.panics().first_panic(), None);
}
