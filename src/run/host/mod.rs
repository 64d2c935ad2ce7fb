//! `Host`: the resources of the process that runs share, as one value. `main` creates it and passes it down.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::debug_log::{DebugLog, InvalidLevels, LogLevels, LogStart};
use crate::event::Secrets;
use crate::panic_hook::{AfterPanic, PanicScope};
use crate::process::{OrphanRule, Supervisors};
use crate::signals::Signals;
use crate::ui::{StdoutShutdown, UiHost};

use super::clock::Clock;

/// Signals, supervisors, environment, clock, stdout and panic hook. Clones share all of them.
#[derive(Clone)]
pub struct Host {
    panics: PanicScope,
    signals: Signals,
    supervisors: Supervisors,
    stdout: StdoutShutdown,
    /// The log of the program, if `RALPH_LOG` is set.
    log: Option<DebugLog>,
}

impl Host {
    /// The host of the `ralph` program, which owns the process. Installs the panic hook.
    pub fn of_program() -> Self {
        let panics = PanicScope::install(AfterPanic::ExitProcess);
        let signals = Signals::of_process(&panics);
        let supervisors = Supervisors::current(OrphanRule::AllForeign);
        Self::new(panics, signals, supervisors)
    }

    /// A host within a process that also does other things. Runs receive only signals that the caller delivers.
    #[cfg_attr(
        not(all(test, debug_assertions)),
        expect(dead_code, reason = "for programs that drive several runs")
    )]
    pub fn embedded(supervisor: impl Into<PathBuf>) -> Self {
        let panics = PanicScope::install(AfterPanic::KeepProcess);
        Self::new(panics, Signals::manual(), Supervisors::at(supervisor))
    }

    fn new(panics: PanicScope, signals: Signals, supervisors: Supervisors) -> Self {
        Self {
            supervisors: supervisors.with_panics(&panics),
            panics,
            signals,
            stdout: StdoutShutdown::default(),
            log: None,
        }
    }

    /// A host for one of several runs: its panics, signals and supervisors concern no other run.
    #[must_use]
    pub fn for_run(&self) -> Self {
        let panics = self.panics.for_run();
        Self {
            supervisors: self.supervisors.separate().with_panics(&panics),
            panics,
            signals: Signals::manual(),
            stdout: self.stdout.clone(),
            log: None,
        }
    }

    /// The same host with a log, if `RALPH_LOG` asks for one.
    pub fn with_log(&self, start: LogStart) -> Result<Self, InvalidLevels> {
        let levels = LogLevels::from_environment(self.environment())?;
        let log = levels.requested.then(|| {
            let (log, secrets) = (DebugLog::new(&levels, start), self.secrets());
            log.redact_with(move |line| secrets.redact_text(line));
            log
        });
        Ok(Self { log, ..self.clone() })
    }

    pub fn log(&self) -> Option<&DebugLog> {
        self.log.as_ref()
    }

    /// The log for a run: the program's, or a new one.
    pub(super) fn log_of_run(&self) -> DebugLog {
        // Invalid levels were reported when the program started.
        let levels = || LogLevels::from_environment(self.environment()).unwrap_or_default();
        let log = self.log.clone();
        log.unwrap_or_else(|| DebugLog::new(&levels(), LogStart::Memory))
    }

    /// A host whose child processes also have these variables.
    #[must_use]
    pub fn with_variables(&self, variables: Vec<(OsString, OsString)>) -> Self {
        Self {
            supervisors: self.supervisors.with_variables(variables),
            ..self.clone()
        }
    }

    pub fn panics(&self) -> &PanicScope {
        &self.panics
    }

    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    pub fn supervisors(&self) -> &Supervisors {
        &self.supervisors
    }

    pub fn stdout(&self) -> &StdoutShutdown {
        &self.stdout
    }

    /// A clock that shows `elapsed` now.
    pub(super) fn start_clock(&self, elapsed: Duration) -> Clock {
        Clock::start_at(elapsed)
    }

    /// The environment of the process when it started.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        self.supervisors.environment()
    }

    /// The secrets in the environment.
    pub fn secrets(&self) -> Secrets {
        Secrets::from_env(self.environment().iter().cloned())
    }

    /// The part that front ends use.
    pub fn ui(&self) -> UiHost {
        UiHost {
            panics: self.panics.clone(),
            signals: self.signals.clone(),
            stdout: self.stdout.clone(),
        }
    }
}
