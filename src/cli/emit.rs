//! `ralph emit`: publishes an event into the run that calls it. Agents call it; the run is known from the environment.

use std::path::PathBuf;

use jiff::Timestamp;

use crate::event::{Command, TopicEvent};
use crate::store::{Inbox, id_from_path, is_running};
use crate::ui::Terminal;

use super::args::{EmitArguments, WaveArguments, WaveCommand};
use super::context::current_project;
use super::emit_error::{EmitError, MAX_PAYLOAD_BYTES, MAX_TOPIC_CHARS};
use super::error::CliError;
use super::exit::Exit;

pub(super) fn emit(arguments: &EmitArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let event = TopicEvent {
        topic: arguments.topic.clone(),
        target: arguments.target.clone(),
        payload: arguments.payload.clone(),
    };
    publish(vec![event], terminal)
}

/// Publishes one event for each payload. The hat that takes them gets all of them at once.
pub(super) fn wave(arguments: &WaveArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let WaveCommand::Emit { topic, payloads } = &arguments.command;
    let event = |payload: &String| TopicEvent {
        topic: topic.clone(),
        target: None,
        payload: payload.clone(),
    };
    publish(payloads.iter().map(event).collect(), terminal)
}

fn publish(events: Vec<TopicEvent>, terminal: &Terminal) -> Result<Exit, CliError> {
    for event in &events {
        check(event)?;
    }
    // A sandbox shows only this directory of the run.
    let inbox = match std::env::var_os("RALPH_INBOX") {
        Some(directory) => Inbox::at(directory.into()),
        None => Inbox::new(&calling_run()?),
    };
    let sender = inbox.sender("emit");
    let iteration = std::env::var("RALPH_ITERATION").ok();
    let iteration = iteration.and_then(|number| number.parse().ok());
    let mut text = String::new();
    for event in events {
        text.push_str(&format!("Published {}.\n", event.topic));
        let request = sender.request(Command::Publish { event, iteration });
        inbox.put(request, Timestamp::now())?;
    }
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

fn check(event: &TopicEvent) -> Result<(), EmitError> {
    let topic = event.topic.as_str();
    let is_topic = !topic.trim().is_empty()
        && topic.chars().count() <= MAX_TOPIC_CHARS
        && !topic.chars().any(|c| c.is_control() || c.is_whitespace());
    if !is_topic {
        return Err(EmitError::InvalidTopic {
            topic: topic.escape_debug().take(MAX_TOPIC_CHARS).collect(),
        });
    }
    match event.payload.len() {
        bytes if bytes > MAX_PAYLOAD_BYTES => Err(EmitError::PayloadTooLong { bytes }),
        _ => Ok(()),
    }
}

/// The directory of the run whose agent is the caller.
fn calling_run() -> Result<PathBuf, CliError> {
    let id = std::env::var("RALPH_RUN_ID").ok().filter(|id| !id.is_empty());
    let id = id.ok_or(EmitError::NotInRun)?;
    let run = current_project()?.find_run(&id)?;
    if id_from_path(&run) == id && is_running(&run) {
        return Ok(run);
    }
    Err(CliError::RunInactive { id })
}
