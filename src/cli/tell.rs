//! `ralph tell`: words for a run under way, or a small order. They lie in its inbox until it takes them.

use jiff::Timestamp;

use crate::event::{Command, RunOutcome};
use crate::store::{DIRECTORY, Inbox, LATEST, Lock, RunIndex, State, find_run, id_of};
use crate::ui::Terminal;

use super::args::TellArguments;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;

pub(super) fn tell(arguments: &TellArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let (run, order) = order(arguments)?;
    let run = find_run(&context.cwd, run.as_deref().unwrap_or(LATEST))?;
    let id = id_of(&run);
    let state = RunIndex::of(&context.cwd).entry(&id).state;
    if let State::Ended(ending) = state
        && let RunOutcome::Complete { .. } = ending.outcome
    {
        return Err(CliError::RunCompleted { id });
    }
    Inbox::of(&run).put(order, Timestamp::now())?;
    let at_work = Lock::holder(&context.cwd.join(DIRECTORY).join("lock")).is_some();
    let when = if at_work {
        "it is taken in within a second, and goes into the next prompt if it is a message"
    } else {
        "no ralph is at work here now; it waits for: ralph run --continue"
    };
    terminal
        .print(&format!("Told run {id}; {when}.\n"))
        .map_err(CliError::Output)?;
    Ok(Exit::Success)
}

/// One word is the message, two are the run and the message; an order needs no message.
fn order(arguments: &TellArguments) -> Result<(Option<String>, Command), CliError> {
    let orders = [
        (arguments.pause, Command::Pause),
        (arguments.resume, Command::Resume),
        (arguments.wake, Command::Wake),
        (arguments.stop_iteration, Command::StopIteration),
    ];
    if let Some((_, order)) = orders.into_iter().find(|(wanted, _)| *wanted) {
        return Ok((arguments.words.first().cloned(), order));
    }
    let (run, text) = match &arguments.words[..] {
        [text] => (None, text),
        [run, text] => (Some(run.clone()), text),
        _ => return Err(CliError::EmptyCommand),
    };
    if text.trim().is_empty() {
        return Err(CliError::EmptyCommand);
    }
    Ok((run, Command::Message { text: text.clone() }))
}
