//! Runs a coding agent in a loop until its work is verifiably done.
//!
//! An *agent* is a program such as Claude Code or Codex that works on a repository without supervision. `ralph` starts it with a
//! prompt, reads its output, and starts it again until it reports that the work is done and every *gate* (a command of the user,
//! such as `cargo test`) confirms it, or until a limit on iterations, time or cost is reached.
//!
//! # How a run works
//!
//! ```text
//! command line, ralph.yml ──► config::Settings ──► run ──► outcome and exit code
//!
//!   agent output ──┐
//!   commands ──────┼──► queue ──► engine ──► actions: start or stop the agent, run a gate, …
//!   timers ────────┘                └──────► run events ──► journal, terminal, JSON, hooks
//! ```
//!
//! - [`run`] owns the queue. It passes each input to the engine and carries out the actions that the engine returns.
//! - [`engine`] makes every decision. It is a pure state machine: it never reads the clock, a file or a process.
//! - [`process`] starts the agent, reads its output and stops its process tree. [`transcript`] parses that output into
//!   [`event::TranscriptEvent`]s, with one adapter per format.
//! - Everything that happens is an [`event::RunEvent`]. [`store`] writes it to the journal of the run, and [`ui`] shows it.
//!
//! # Modules
//!
//! In dependency order: a module uses only modules above it. `tests/architecture.rs` lists the exact dependencies.
//!
//! - [`debug_log`] writes the debug log: what ralph does, and the errors after which it continues.
//! - [`panic_hook`] reports a panic in one line and notifies the run that it concerns.
//! - [`signals`] forwards signals to subscribers.
//! - [`files`] reads files that other programs can replace, without blocking and up to a limit.
//! - [`event`] defines what can happen in a run, as plain data: transcript events, run events, commands, outcomes, records.
//! - [`policy`] defines the rules that several modules share: limits, durations, gates, hats, hooks, prices, sandbox, sessions.
//! - [`config`] merges `ralph.yml`, environment variables and flags into `Settings`, and reports errors with file and line.
//! - [`process`] starts child processes on pipes or a PTY, reads their output, feeds their stdin, confines and stops process trees.
//! - [`transcript`] parses the output of agents into transcript events, without any I/O.
//! - [`agent`] lists the known agents, detects the installed ones and builds their command lines.
//! - [`gate_output`] finds failed tests and compiler errors in the output of gates, without any I/O.
//! - [`engine`] decides what a run does next: limits, hats, markers, gates, retries, waits.
//! - [`store`] stores each run on disk: journal, raw output, lock, index.
//! - [`ui`] shows runs as plain text, JSON, TUI or exported files. No other module prints.
//! - [`trust`] decides which commands of a repository may run.
//! - [`runner`] starts agents and gates, and reports their output and their end.
//! - [`snapshot`] records the files of a project before and after each iteration, compares and restores them.
//! - [`run`] drives one run: it connects the queue, the engine, child processes, the journal and the user interface.
//! - [`mod@plan`] runs a list of tasks: dependencies, worktrees, merge queue.
//! - [`mod@bench`] runs each task of a file with each agent in workspaces of their own, and compares the results.
//! - [`mod@serve`] serves the web page and the HTTP API for the runs of all projects.
//! - [`doctor`] checks the environment and the configuration, and explains how to fix each problem.
//! - [`cli`] parses arguments, runs the subcommand and returns the exit code.
//!
//! `docs/architecture.md` describes the design and `docs/glossary.md` defines the terms. `CONTRIBUTING.md` explains how to add an
//! agent, a transcript format, a subcommand, a configuration key or an event.
//!
//! This library exists for the `ralph` program, its tests and its benchmarks. Its API is not stable. Only [`cli`] is public. The
//! feature `test-support` makes the modules public that tests, benchmarks and fuzz targets use; without it, they are private, so that
//! the compiler reports dead code. `cargo doc --document-private-items` documents all modules.
#![expect(
    rustdoc::private_intra_doc_links,
    reason = "the links resolve in `cargo doc --document-private-items`"
)]
#![cfg_attr(
    not(any(feature = "serve", feature = "test-support")),
    expect(
        dead_code,
        unused_imports,
        reason = "only `serve` uses some functions of other modules"
    )
)]

pub(crate) mod debug_log;

pub(crate) mod panic_hook;

pub(crate) mod signals;

pub mod files;

#[deny(clippy::disallowed_methods)]
#[cfg(feature = "test-support")]
pub mod event;
#[deny(clippy::disallowed_methods)]
#[cfg(not(feature = "test-support"))]
pub(crate) mod event;

#[deny(clippy::disallowed_methods)]
#[cfg(feature = "test-support")]
pub mod policy;
#[deny(clippy::disallowed_methods)]
#[cfg(not(feature = "test-support"))]
pub(crate) mod policy;

#[cfg(feature = "test-support")]
pub mod config;
#[cfg(not(feature = "test-support"))]
pub(crate) mod config;

#[cfg(feature = "test-support")]
pub mod process;
#[cfg(not(feature = "test-support"))]
pub(crate) mod process;

#[deny(clippy::disallowed_methods)]
#[cfg(feature = "test-support")]
pub mod transcript;
#[deny(clippy::disallowed_methods)]
#[cfg(not(feature = "test-support"))]
pub(crate) mod transcript;

#[cfg(feature = "test-support")]
pub mod agent;
#[cfg(not(feature = "test-support"))]
pub(crate) mod agent;

#[deny(clippy::disallowed_methods)]
pub(crate) mod gate_output;

#[deny(clippy::disallowed_methods)]
#[cfg(feature = "test-support")]
pub mod engine;
#[deny(clippy::disallowed_methods)]
#[cfg(not(feature = "test-support"))]
pub(crate) mod engine;

#[cfg(feature = "test-support")]
pub mod store;
#[cfg(not(feature = "test-support"))]
pub(crate) mod store;

pub(crate) mod ui;

pub(crate) mod trust;

pub(crate) mod runner;

#[cfg(feature = "test-support")]
pub mod snapshot;
#[cfg(not(feature = "test-support"))]
pub(crate) mod snapshot;

pub(crate) mod run;

pub(crate) mod plan;

pub(crate) mod bench;

#[cfg(feature = "serve")]
pub(crate) mod serve;

pub(crate) mod doctor;

pub mod cli;

/// The decisions of plans and the place of runs, for the package `ralph-fleet`, which runs plans on many machines.
#[cfg(feature = "fleet")]
pub mod fleet {
    pub use crate::event::Interrupt;
    pub use crate::plan::{
        Action, Budget, Grant, Input, Integration, ListedTask, ParkReason, Plan, PlanCommand, PlanEvent,
        PlanOptions, PlanOutcome, PlannedTask, ReadTask, Rejection, Task, TaskEnd, TaskStart, TaskState,
        task_prompt,
    };
    pub use crate::store::StateDirectory;
}
