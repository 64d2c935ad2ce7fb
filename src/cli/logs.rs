//! `ralph logs`: prints a run's output, follows it, or prints the agent's raw output.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::{Record, RunEvent, Sink, Tag, TranscriptEvent};
use crate::run::{self, FollowEnd, Host, LeftOut, Pace, ReplayEnd, RunError};
use crate::store::{Journal, JournalTail, id_from_path, raw_outputs};
use crate::ui::{FrontEnd, Terminal, Verbosity};

use super::args::{LogsArguments, TagName};
use super::common::{ignore_broken_pipe, replay_warnings};
use super::error::CliError;
use super::exit::Exit;
use super::run_lookup::resolve_run;

pub(super) fn logs(arguments: &LogsArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let run = resolve_run(arguments.run.as_deref())?;
    if arguments.raw {
        return print_raw(&run, arguments.iteration, terminal);
    }
    let verbosity = match arguments.verbose {
        true => Verbosity::Verbose,
        false => Verbosity::Normal,
    };
    let mut front_end = FilteredOutput {
        front_end: match arguments.json {
            true => terminal.json_front_end(),
            false => terminal.plain_front_end(verbosity),
        },
        arguments,
        last_iteration: 0,
        found: false,
    };
    let journal = run.join("events.jsonl");
    let result = match arguments.follow {
        true => {
            let mut tail = JournalTail::open(&journal)?;
            run::follow(host, &run, &mut tail, &mut front_end, &|| {
                terminal.stdout_is_open()
            })
        }
        false => run::replay(host, Journal::entries(&journal)?, Pace::AtOnce, &mut front_end)
            .map(|(end, left_out)| (follow_end(end), left_out)),
    };
    let (end, left_out) = match result {
        Ok(result) => result,
        Err(RunError::FrontEnd(error)) => return ignore_broken_pipe(error),
        Err(error) => return Err(error.into()),
    };
    let (found, iterations) = (front_end.found, front_end.last_iteration);
    drop(front_end);
    if let Some(iteration) = arguments
        .iteration
        .filter(|_| !found && end == FollowEnd::Finished)
    {
        let id = id_from_path(&run);
        return Err(CliError::NoIteration {
            id,
            iteration,
            iterations,
        });
    }
    finish(end, &left_out, &run, terminal)
}

fn follow_end(end: ReplayEnd) -> FollowEnd {
    match end {
        ReplayEnd::Finished => FollowEnd::Finished,
        ReplayEnd::Left => FollowEnd::OutputClosed,
        ReplayEnd::Interrupted(by) => FollowEnd::Interrupted(by),
    }
}

fn finish(end: FollowEnd, left_out: &LeftOut, run: &Path, terminal: &Terminal) -> Result<Exit, CliError> {
    let mut warnings = replay_warnings(left_out, &run.join("events.jsonl"));
    if end == FollowEnd::Died {
        warnings.push(format!(
            "ralph died (process gone); to resume: ralph run --continue {}",
            id_from_path(run)
        ));
    }
    warnings
        .iter()
        .try_for_each(|warning| terminal.warn(warning))
        .map_err(CliError::Output)?;
    Ok(match end {
        FollowEnd::Finished | FollowEnd::Died | FollowEnd::OutputClosed => Exit::Success,
        FollowEnd::Interrupted(by) => Exit::from(by),
    })
}

/// Prints the agent's raw output, in order of iterations.
fn print_raw(run: &Path, iteration: Option<u64>, terminal: &Terminal) -> Result<Exit, CliError> {
    let outputs = raw_outputs(run);
    if let Some(iteration) =
        iteration.filter(|number| outputs.iter().all(|output| output.iteration != *number))
    {
        return Err(CliError::NoIteration {
            id: id_from_path(run),
            iteration,
            iterations: outputs.last().map_or(0, |output| output.iteration),
        });
    }
    for output in outputs {
        if iteration.is_some_and(|number| output.iteration != number) {
            continue;
        }
        let mut file = File::open(&output.path).map_err(|source| CliError::InputUnreadable {
            path: output.path.clone(),
            source,
        })?;
        if let Err(error) = terminal.print_raw(&mut file) {
            return ignore_broken_pipe(error);
        }
    }
    Ok(Exit::Success)
}

/// A front end that receives only the requested iteration and tags.
struct FilteredOutput<'a> {
    front_end: Box<dyn FrontEnd>,
    arguments: &'a LogsArguments,
    last_iteration: u64,
    found: bool,
}

impl FilteredOutput<'_> {
    fn is_requested(&self, event: &RunEvent) -> bool {
        let requested = self.arguments.iteration;
        if requested.is_some() && event.iteration() != requested {
            return false;
        }
        let tags = &self.arguments.tag;
        if tags.is_empty() {
            return true;
        }
        match event {
            RunEvent::Transcript { event, .. } => tag_of(event).is_some_and(|tag| tags.contains(&tag)),
            // A heading for human readers.
            RunEvent::IterationStarted { .. } => !self.arguments.json,
            _ => false,
        }
    }
}

impl Sink for FilteredOutput<'_> {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        let iteration = record.event.iteration();
        self.last_iteration = iteration.unwrap_or(0).max(self.last_iteration);
        self.found |= iteration == self.arguments.iteration;
        match self.is_requested(&record.event) {
            true => self.front_end.accept(record),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.front_end.flush()
    }
}

impl FrontEnd for FilteredOutput<'_> {
    fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        self.front_end.tick(now)
    }

    fn next_tick(&self) -> Option<Duration> {
        self.front_end.next_tick()
    }
}

/// Returns the tag of an event.
fn tag_of(event: &TranscriptEvent) -> Option<TagName> {
    match event {
        TranscriptEvent::Text { tag, .. } => Some(match tag {
            Tag::Ai => TagName::Ai,
            Tag::Think => TagName::Think,
            Tag::Sys => TagName::Sys,
            Tag::Tool => TagName::Tool,
            Tag::Prompt => TagName::Prompt,
            Tag::User => TagName::User,
        }),
        TranscriptEvent::ToolStart { .. }
        | TranscriptEvent::ToolOutput { .. }
        | TranscriptEvent::ToolEnd { .. } => Some(TagName::Tool),
        TranscriptEvent::Meta { .. } => Some(TagName::Sys),
        TranscriptEvent::Usage { .. } => None,
    }
}
