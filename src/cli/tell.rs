//! `ralph tell`: writes a message or command to a run's inbox.

use jiff::Timestamp;

use crate::event::{Answer, Command, CommandRequest, Interrupt, RunOutcome};
use crate::store::{Inbox, LATEST, RunEntry, RunState, id_from_path, is_running};
use crate::ui::Terminal;

use super::args::TellArguments;
use super::context::current_project;
use super::error::CliError;
use super::exit::Exit;

pub(super) fn tell(arguments: &TellArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let (run, command) = parse_command(arguments)?;
    let run = current_project()?.find_run(run.as_deref().unwrap_or(LATEST))?;
    let id = id_from_path(&run);
    let state = RunEntry::read(&run).state;
    if let RunState::Ended(ending) = state
        && let RunOutcome::Complete { .. } = ending.outcome
    {
        return Err(CliError::RunCompleted { id });
    }
    let is_running = is_running(&run);
    if command.expires() && !is_running {
        return Err(CliError::RunInactive { id });
    }
    let when = match (is_running, &command) {
        (false, _) => "the run is not active; it will be delivered by: ralph run --continue",
        (true, Command::Stop { .. }) => "the agent is asked to exit, then the run ends",
        (true, Command::Kill) => "the agent is killed, then the run ends",
        (true, _) => "messages are added to the next prompt",
    };
    let inbox = Inbox::new(&run);
    let request = match &arguments.id {
        Some(id) => CommandRequest {
            id: id.clone(),
            command,
        },
        None => inbox.sender("tell").request(command),
    };
    inbox.put(request, Timestamp::now())?;
    terminal
        .print(&format!("Sent to run {id}; {when}.\n"))
        .map_err(CliError::Output)?;
    Ok(Exit::Success)
}

/// Returns the run, if given, and the command. With a command flag, the only argument is the run.
fn parse_command(arguments: &TellArguments) -> Result<(Option<String>, Command), CliError> {
    let flags = [
        (arguments.pause, Command::Pause),
        (arguments.resume, Command::Resume),
        (arguments.wake, Command::Wake),
        (arguments.stop_iteration, Command::StopIteration),
        (arguments.stop, Command::Stop { by: Interrupt::Quit }),
        (arguments.kill, Command::Kill),
    ];
    if let Some(text) = &arguments.answer {
        return Ok((arguments.words.first().cloned(), answer_of(text)?));
    }
    if let Some((_, command)) = flags.into_iter().find(|(is_set, _)| *is_set) {
        return Ok((arguments.words.first().cloned(), command));
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

/// The answer to a question of ralph, if the text is one; else the answer to a question of the agent.
fn answer_of(text: &str) -> Result<Command, CliError> {
    let answer = match text.trim() {
        "" => return Err(CliError::EmptyCommand),
        "continue" => Answer::Continue,
        "always" => Answer::ContinueWithoutAsking,
        "done" => Answer::Done,
        "quit" => Answer::Quit,
        text => {
            return Ok(Command::AnswerQuestion {
                text: text.to_owned(),
            });
        }
    };
    Ok(Command::Answer { answer })
}
