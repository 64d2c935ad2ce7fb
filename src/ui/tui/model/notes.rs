//! What the run did, in one line each.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::block::Note;
use crate::event::{Command, GateResult, Level, Pause, ProcessEnd, Resumption, RunEvent, TopicEvent, Usage};
use crate::ui::plain::one_line;
use crate::ui::{PassedGates, Tone, Verdict, describe, iteration_verdict, run_verdict, units};

/// The note for something that the run did; nothing for what has a form of its own, or is not worth a line.
pub(super) fn of_run(event: &RunEvent, at: Timestamp, zone: &TimeZone, gates: &PassedGates) -> Option<Note> {
    match event {
        RunEvent::MarkerIgnored { marker, reason, .. } => Some(Note::new(
            "!",
            Tone::Warning,
            format!("{marker} does not count: {reason}"),
        )),
        RunEvent::Topic { event, .. } => Some(of_topic(event)),
        RunEvent::AgentEnded {
            end,
            duration_ms,
            swept,
            ..
        } => of_exit(*end, *duration_ms, *swept),
        RunEvent::IterationEnded {
            outcome,
            duration_ms,
            usage,
            ..
        } => {
            let verdict = iteration_verdict(outcome, at, zone);
            Some(of_iteration(&verdict, *duration_ms, usage))
        }
        RunEvent::Waiting { why, wait_ms } => {
            let wait = Duration::from_millis(*wait_ms);
            let until = units::clock(later(at, wait), at, zone);
            Some(of_wait(*why, wait, &until))
        }
        RunEvent::TopicRerouted {
            topic, hat, reason, ..
        } => {
            let hat = hat.as_ref().map(|hat| format!(" → {hat}")).unwrap_or_default();
            Some(Note::new("»", Tone::Warning, format!("{topic}{hat}  {reason}")))
        }
        RunEvent::RunResumed(resumption) => Some(of_resumption(resumption)),
        RunEvent::CommandReceived { order, .. } => Some(of_order(order)),
        RunEvent::Progress { unchanged, .. } => of_progress(*unchanged),
        RunEvent::Paused => Some(Note::new("‖", Tone::Warning, "paused")),
        RunEvent::Asking => Some(Note::new(
            "‖",
            Tone::Warning,
            "go on? (you are asked between iterations)",
        )),
        RunEvent::Stopping { reason } => Some(Note::new("!", Tone::Warning, format!("stopping: {reason}"))),
        RunEvent::Notice { level, text } => Some(of_notice(*level, text)),
        RunEvent::RunEnded { outcome, .. } => {
            let verdict = run_verdict(outcome, gates);
            Some(Note::new(verdict.mark, verdict.tone, verdict.sentence))
        }
        RunEvent::RunStarted(_)
        | RunEvent::IterationStarted { .. }
        | RunEvent::AgentStarted { .. }
        | RunEvent::Transcript { .. }
        | RunEvent::Stderr { .. }
        | RunEvent::GateStarted { .. }
        | RunEvent::GateEnded { .. }
        | RunEvent::WaitEnded => None,
    }
}

fn of_wait(why: Pause, wait: Duration, until: &str) -> Note {
    let (why, wait) = (describe::pause_words(why), units::duration(wait));
    let text = format!("{why}: waiting {wait}, until {until}");
    Note::new("◷", Tone::Warning, text)
}

fn of_resumption(resumption: &Resumption) -> Note {
    let mut text = format!("the run goes on with iteration {}", resumption.iteration);
    if resumption.attempt > 1 {
        text += &format!(", attempt {}", resumption.attempt);
    }
    for change in &resumption.changed {
        text += &format!("\nchanged: {change}");
    }
    Note::new("·", Tone::Strong, text)
}

fn of_order(order: &Command) -> Note {
    let text = match order {
        Command::Message { text } => return Note::new("✉", Tone::Strong, format!("you: {text}")),
        Command::Pause => "you: pause after this iteration",
        Command::Resume => "you: go on",
        Command::Wake => "you: wait no longer",
        Command::StopIteration => "you: stop this iteration, go on with the next",
    };
    Note::new("✉", Tone::Plain, text)
}

/// Worth a line only when nothing moves.
fn of_progress(unchanged: u64) -> Option<Note> {
    let iterations = match unchanged {
        0 => return None,
        1 => "iteration".to_owned(),
        more => units::count(more, "iteration"),
    };
    let text = format!("nothing has changed in the last {iterations}");
    Some(Note::new("!", Tone::Warning, text))
}

fn of_topic(event: &TopicEvent) -> Note {
    let target = event.target.as_ref().map(|target| format!(" → {target}"));
    let payload = one_line(&event.payload, 400).0;
    let text = format!("{}{}  {payload}", event.topic, target.unwrap_or_default());
    Note::new("»", Tone::Accent, text)
}

fn of_exit(end: ProcessEnd, duration_ms: u64, swept: u64) -> Option<Note> {
    let mut text = Vec::new();
    if !end.success() {
        text.push(format!(
            "{} after {}",
            describe::end_words(end),
            millis(duration_ms)
        ));
    }
    match swept {
        0 => {}
        1 => text.push("one process left behind, stopped".to_owned()),
        more => text.push(format!("{more} processes left behind, stopped")),
    }
    (!text.is_empty()).then(|| Note::new("·", Tone::Faint, text.join("; ")))
}

fn of_iteration(verdict: &Verdict, duration_ms: u64, usage: &Usage) -> Note {
    let tokens = usage
        .tokens()
        .map(|tokens| format!("{} tokens", units::tokens(tokens)));
    let cost = usage.cost_usd.map(units::dollars);
    let figures = [Some(millis(duration_ms)), tokens, cost].into_iter().flatten();
    let figures: Vec<String> = figures.collect();
    let text = format!("{}  ({})", verdict.sentence, figures.join(" · "));
    Note::new(verdict.mark, verdict.tone, text)
}

fn of_notice(level: Level, text: &str) -> Note {
    match level {
        Level::Info => Note::new("·", Tone::Plain, text),
        Level::Warning => Note::new("!", Tone::Warning, text),
        Level::Error => Note::new("✗", Tone::Bad, text),
    }
}

/// What the list of events has besides: where iterations begin, processes, gates.
pub(super) fn of_course(event: &RunEvent) -> Option<Note> {
    match event {
        RunEvent::RunStarted(header) => Some(Note::new(
            "·",
            Tone::Faint,
            format!("run {} with {}", header.run_id, header.agent),
        )),
        RunEvent::IterationStarted {
            iteration,
            attempt,
            hat,
            ..
        } => {
            let again = if *attempt > 1 {
                format!(", attempt {attempt}")
            } else {
                String::new()
            };
            let hat = hat.as_ref().map(|hat| format!(", hat {hat}")).unwrap_or_default();
            Some(Note::new(
                "▸",
                Tone::Strong,
                format!("iteration {iteration}{again}{hat}"),
            ))
        }
        RunEvent::AgentStarted { pid, command, .. } => {
            let command = one_line(&command.join(" "), 300).0;
            Some(Note::new("·", Tone::Faint, format!("process {pid}: {command}")))
        }
        RunEvent::GateEnded {
            name,
            result,
            duration_ms,
            ..
        } => Some(of_gate(name, *result, *duration_ms)),
        RunEvent::GateStarted { .. }
        | RunEvent::Transcript { .. }
        | RunEvent::Stderr { .. }
        | RunEvent::MarkerIgnored { .. }
        | RunEvent::Topic { .. }
        | RunEvent::TopicRerouted { .. }
        | RunEvent::RunResumed(_)
        | RunEvent::CommandReceived { .. }
        | RunEvent::Progress { .. }
        | RunEvent::Paused
        | RunEvent::Asking
        | RunEvent::AgentEnded { .. }
        | RunEvent::IterationEnded { .. }
        | RunEvent::Waiting { .. }
        | RunEvent::WaitEnded
        | RunEvent::Stopping { .. }
        | RunEvent::Notice { .. }
        | RunEvent::RunEnded { .. } => None,
    }
}

fn of_gate(name: &str, result: GateResult, duration_ms: u64) -> Note {
    let took = millis(duration_ms);
    match describe::gate_words(result) {
        None => Note::new("✓", Tone::Good, format!("gate {name}  ({took})")),
        Some(why) => Note::new("✗", Tone::Bad, format!("gate {name}  ({took}, {why})")),
    }
}

pub(super) fn later(at: Timestamp, wait: Duration) -> Timestamp {
    let longest = SignedDuration::from_hours(24 * 365);
    at + SignedDuration::try_from(wait).unwrap_or(longest).min(longest)
}

pub(super) fn millis(millis: u64) -> String {
    units::duration(Duration::from_millis(millis))
}
