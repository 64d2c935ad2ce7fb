//! What the watcher of the screen wants, as it comes in, and what it means to the engine.

use std::sync::mpsc::Sender;

use jiff::Timestamp;

use crate::engine::{Answer, Input};
use crate::event::{Command, Interrupt};
use crate::ui::tui::{CommandSender, UserCommand, UserCommandKind};

use super::queue::Message;

/// The door by which a face's wishes come in.
pub(super) struct QueueCommandSender {
    to_inbox: Sender<Message>,
}

impl QueueCommandSender {
    pub(super) fn new(to_inbox: Sender<Message>) -> Self {
        Self { to_inbox }
    }
}

impl CommandSender for QueueCommandSender {
    fn send(&self, command: UserCommand) -> Result<(), String> {
        // The run is over when nobody listens any more.
        let _ = self.to_inbox.send(Message::UserCommand(command));
        Ok(())
    }

    fn understands(&self, kind: UserCommandKind) -> bool {
        match kind {
            UserCommandKind::Pause
            | UserCommandKind::Resume
            | UserCommandKind::StopIteration
            | UserCommandKind::Wake
            | UserCommandKind::Tell
            | UserCommandKind::GoOn
            | UserCommandKind::GoOnWithoutAsking => true,
        }
    }
}

/// What a wish means to the engine. An order is journaled as one from the inbox on disk is.
pub(super) fn meaning(command: UserCommand) -> Option<Input> {
    let order = match command {
        UserCommand::Pause => Command::Pause,
        UserCommand::Resume => Command::Resume,
        UserCommand::StopIteration => Command::StopIteration,
        UserCommand::Wake => Command::Wake,
        UserCommand::Tell(text) => Command::Message { text },
        UserCommand::GoOn => return Some(Input::Answered(Answer::GoOn)),
        UserCommand::GoOnWithoutAsking => return Some(Input::Answered(Answer::GoOnWithoutAsking)),
        UserCommand::Interrupt => return Some(Input::Interrupted(Interrupt::Int)),
        UserCommand::Quit => return Some(Input::Interrupted(Interrupt::Quit)),
        UserCommand::Gone => return Some(Input::Interrupted(Interrupt::Hup)),
        UserCommand::Left => return None,
    };
    let id = format!("key-{}", Timestamp::now().as_nanosecond());
    Some(Input::Command { id, order })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_an_order_an_answer_or_an_interrupt() {
        let order = |command| match meaning(command) {
            Some(Input::Command { order, .. }) => order,
            other => panic!("{other:?} is no order"),
        };
        assert_eq!(order(UserCommand::Pause), Command::Pause);
        assert_eq!(
            order(UserCommand::Tell("a".into())),
            Command::Message { text: "a".into() }
        );
        assert!(matches!(
            meaning(UserCommand::Quit),
            Some(Input::Interrupted(Interrupt::Quit))
        ));
        assert!(matches!(
            meaning(UserCommand::Gone),
            Some(Input::Interrupted(Interrupt::Hup))
        ));
        assert!(matches!(
            meaning(UserCommand::GoOn),
            Some(Input::Answered(Answer::GoOn))
        ));
        assert!(meaning(UserCommand::Left).is_none());
    }
}
