//! `ralph logs`: what a run showed, or shows right now, or what its agent printed.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::{Record, RunEvent, Sink, Tag, TranscriptEvent};
use crate::run::{self, FollowEnd, LeftOut, Pace, ReplayEnd, RunError};
use crate::store::{Journal, Tail, id_of, raw_outputs};
use crate::ui::{FrontEnd, Terminal, Verbosity};

use super::args::{LogsArguments, TagName};
use super::error::CliError;
use super::exit::Exit;
use super::replay::warnings;
use super::show::resolve_run;
use super::transcript::ignore_broken_pipe;

pub(super) fn logs(arguments: &LogsArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let run = resolve_run(arguments.run.as_deref())?;
    if arguments.raw {
        return raw(&run, arguments.iteration, terminal);
    }
    let verbosity = match arguments.verbose {
        true => Verbosity::Verbose,
        false => Verbosity::Normal,
    };
    let mut front_end = FilteredOutput {
        front_end: match arguments.json {
            true => terminal.json_face(),
            false => terminal.plain_face(verbosity),
        },
        arguments,
        last_iteration: 0,
        found: false,
    };
    let journal = run.join("events.jsonl");
    let told = match arguments.follow {
        true => {
            let mut tail = Tail::open(&journal)?;
            run::follow(&run, &mut tail, &mut front_end, &|| terminal.is_read())
        }
        false => run::replay(Journal::entries(&journal)?, Pace::AtOnce, &mut front_end)
            .map(|(end, left_out)| (followed(end), left_out)),
    };
    let (end, left_out) = match told {
        Ok(told) => told,
        Err(RunError::FrontEnd(error)) => return ignore_broken_pipe(error),
        Err(error) => return Err(error.into()),
    };
    let (found, iterations) = (front_end.found, front_end.last_iteration);
    drop(front_end);
    if let Some(iteration) = arguments.iteration.filter(|_| !found && end == FollowEnd::Told) {
        let id = id_of(&run);
        return Err(CliError::NoIteration {
            id,
            iteration,
            iterations,
        });
    }
    finish(end, &left_out, &run, terminal)
}

fn followed(end: ReplayEnd) -> FollowEnd {
    match end {
        ReplayEnd::Told => FollowEnd::Told,
        ReplayEnd::Left => FollowEnd::NobodyReads,
        ReplayEnd::Interrupted(by) => FollowEnd::Interrupted(by),
    }
}

fn finish(end: FollowEnd, left_out: &LeftOut, run: &Path, terminal: &Terminal) -> Result<Exit, CliError> {
    let mut warnings = warnings(left_out, &run.join("events.jsonl"));
    if end == FollowEnd::Died {
        warnings.push(format!(
            "the run has no end, and nobody drives it; to go on: ralph run --continue {}",
            id_of(run)
        ));
    }
    warnings
        .iter()
        .try_for_each(|warning| terminal.warn(warning))
        .map_err(CliError::Output)?;
    Ok(match end {
        FollowEnd::Told | FollowEnd::Died | FollowEnd::NobodyReads => Exit::Success,
        FollowEnd::Interrupted(by) => Exit::from(by),
    })
}

/// What the agent printed, in the order of the iterations.
fn raw(run: &Path, iteration: Option<u64>, terminal: &Terminal) -> Result<Exit, CliError> {
    let outputs = raw_outputs(run);
    if let Some(iteration) =
        iteration.filter(|number| outputs.iter().all(|output| output.iteration != *number))
    {
        return Err(CliError::NoIteration {
            id: id_of(run),
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

/// A face that is told only what was asked for.
struct FilteredOutput<'a> {
    front_end: Box<dyn FrontEnd>,
    arguments: &'a LogsArguments,
    last_iteration: u64,
    found: bool,
}

impl FilteredOutput<'_> {
    fn wants(&self, event: &RunEvent) -> bool {
        let wanted = self.arguments.iteration;
        if wanted.is_some() && iteration_of(event) != wanted {
            return false;
        }
        let tags = &self.arguments.tag;
        if tags.is_empty() {
            return true;
        }
        match event {
            RunEvent::Transcript { event, .. } => tag_of(event).is_some_and(|tag| tags.contains(&tag)),
            // For people, what stands under it.
            RunEvent::IterationStarted { .. } => !self.arguments.json,
            _ => false,
        }
    }
}

impl Sink for FilteredOutput<'_> {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        let iteration = iteration_of(&record.event);
        self.last_iteration = iteration.unwrap_or(0).max(self.last_iteration);
        self.found |= iteration == self.arguments.iteration;
        match self.wants(&record.event) {
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

    fn wants_tick(&self) -> Option<Duration> {
        self.front_end.wants_tick()
    }
}

/// The tag under which something was said, or done.
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

/// The iteration that a record belongs to.
fn iteration_of(event: &RunEvent) -> Option<u64> {
    match event {
        RunEvent::IterationStarted { iteration, .. }
        | RunEvent::AgentStarted { iteration, .. }
        | RunEvent::Transcript { iteration, .. }
        | RunEvent::Stderr { iteration, .. }
        | RunEvent::MarkerIgnored { iteration, .. }
        | RunEvent::Topic { iteration, .. }
        | RunEvent::TopicRerouted { iteration, .. }
        | RunEvent::AgentEnded { iteration, .. }
        | RunEvent::GateStarted { iteration, .. }
        | RunEvent::GateEnded { iteration, .. }
        | RunEvent::IterationEnded { iteration, .. }
        | RunEvent::Progress { iteration, .. } => Some(*iteration),
        RunEvent::RunStarted(_)
        | RunEvent::RunResumed(_)
        | RunEvent::Waiting { .. }
        | RunEvent::WaitEnded
        | RunEvent::CommandReceived { .. }
        | RunEvent::Paused
        | RunEvent::Asking
        | RunEvent::Stopping { .. }
        | RunEvent::Notice { .. }
        | RunEvent::RunEnded { .. } => None,
    }
}
