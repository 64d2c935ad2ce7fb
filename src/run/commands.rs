//! The sources of the commands of a run: keys, answers on stdin, signals such as Ctrl-C, and the loss of the terminal.

use std::sync::mpsc::Sender;

use jiff::Timestamp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use crate::event::{Command, CommandNotSent, CommandSender, Interrupt};
use crate::ui::CloseReason;

use super::queue::Message;

/// Part of the ids of the commands from one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandSource {
    /// A front end, or a key typed into an agent's screen.
    Key,
    /// An answer on stdin.
    Stdin,
    Signal,
    /// The terminal, when it is closed.
    Terminal,
}

impl CommandSource {
    fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Stdin => "stdin",
            Self::Signal => "signal",
            Self::Terminal => "terminal",
        }
    }
}

/// Creates a sender that puts commands into the queue of a run. The time makes its ids unique among all processes of the
/// run.
pub(super) fn sender(queue: Sender<Message>, source: CommandSource) -> CommandSender {
    let id_prefix = format!("{}-{}", source.name(), Timestamp::now().as_nanosecond());
    CommandSender::new(&id_prefix, move |request| {
        queue.send(Message::Command(request)).map_err(CommandNotSent::new)
    })
}

/// The command that a signal causes.
pub(super) fn of_signal(signal: i32) -> Option<Command> {
    let by = match signal {
        SIGINT => Interrupt::Int,
        SIGTERM => Interrupt::Term,
        SIGHUP => Interrupt::Hup,
        SIGUSR1 => return Some(Command::Wake),
        _ => return None,
    };
    Some(Command::Stop { by })
}

/// The command that the closing of a front end causes.
pub(super) fn of_close(reason: CloseReason) -> Option<Command> {
    match reason {
        CloseReason::ByUser => None,
        CloseReason::TerminalLost => Some(Command::Stop { by: Interrupt::Hup }),
    }
}

/// The source of the interrupt, if the command ends the run.
pub(super) fn interrupt_of(command: &Command) -> Option<Interrupt> {
    match command {
        Command::Stop { by } => Some(*by),
        Command::Kill => Some(Interrupt::Quit),
        Command::Message { .. }
        | Command::Publish { .. }
        | Command::AnswerQuestion { .. }
        | Command::Pause
        | Command::Resume
        | Command::Wake
        | Command::StopIteration
        | Command::Answer { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::SIGWINCH;
    use std::sync::mpsc;

    #[test]
    fn signals_are_commands() {
        let stop = |by| Some(Command::Stop { by });
        assert_eq!(of_signal(SIGINT), stop(Interrupt::Int));
        assert_eq!(of_signal(SIGTERM), stop(Interrupt::Term));
        assert_eq!(of_signal(SIGHUP), stop(Interrupt::Hup));
        assert_eq!(of_signal(SIGUSR1), Some(Command::Wake));
        assert_eq!(of_signal(SIGWINCH), None);
    }

    #[test]
    fn sender_reports_that_the_run_is_over() {
        let (queue, messages) = mpsc::channel();
        let sender = sender(queue, CommandSource::Key);
        sender.send_command(Command::Pause).unwrap();
        let Ok(Message::Command(request)) = messages.recv() else {
            panic!("no command was sent");
        };
        assert_eq!(request.command, Command::Pause);
        assert!(request.id.starts_with("key-"), "{}", request.id);
        drop(messages);
        assert!(sender.send_command(Command::Pause).is_err());
    }
}
