//! What the watcher of the screen wants, as it comes in, and what it means to the engine.

use std::sync::mpsc::Sender;

use jiff::Timestamp;

use crate::engine::{Answer, Input};
use crate::event::{Interrupt, Order};
use crate::ui::tui::{Door, Wish, WishKind};

use super::queue::Message;

/// The door by which a face's wishes come in.
pub(super) struct WishDoor {
    to_inbox: Sender<Message>,
}

impl WishDoor {
    pub(super) fn new(to_inbox: Sender<Message>) -> Self {
        Self { to_inbox }
    }
}

impl Door for WishDoor {
    fn send(&self, wish: Wish) -> Result<(), String> {
        // The run is over when nobody listens any more.
        let _ = self.to_inbox.send(Message::Wish(wish));
        Ok(())
    }

    fn understands(&self, kind: WishKind) -> bool {
        match kind {
            WishKind::Pause
            | WishKind::Resume
            | WishKind::StopIteration
            | WishKind::Wake
            | WishKind::Tell
            | WishKind::GoOn
            | WishKind::GoOnWithoutAsking => true,
        }
    }
}

/// What a wish means to the engine. An order is journaled as one from the inbox on disk is.
pub(super) fn meaning(wish: Wish) -> Option<Input> {
    let order = match wish {
        Wish::Pause => Order::Pause,
        Wish::Resume => Order::Resume,
        Wish::StopIteration => Order::StopIteration,
        Wish::Wake => Order::Wake,
        Wish::Tell(text) => Order::Message { text },
        Wish::GoOn => return Some(Input::Answered(Answer::GoOn)),
        Wish::GoOnWithoutAsking => return Some(Input::Answered(Answer::GoOnWithoutAsking)),
        Wish::Interrupt => return Some(Input::Interrupted(Interrupt::Int)),
        Wish::Quit => return Some(Input::Interrupted(Interrupt::Quit)),
        Wish::Gone => return Some(Input::Interrupted(Interrupt::Hup)),
        Wish::Left => return None,
    };
    let id = format!("key-{}", Timestamp::now().as_nanosecond());
    Some(Input::Command { id, order })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_an_order_an_answer_or_an_interrupt() {
        let order = |wish| match meaning(wish) {
            Some(Input::Command { order, .. }) => order,
            other => panic!("{other:?} is no order"),
        };
        assert_eq!(order(Wish::Pause), Order::Pause);
        assert_eq!(order(Wish::Tell("a".into())), Order::Message { text: "a".into() });
        assert!(matches!(
            meaning(Wish::Quit),
            Some(Input::Interrupted(Interrupt::Quit))
        ));
        assert!(matches!(
            meaning(Wish::Gone),
            Some(Input::Interrupted(Interrupt::Hup))
        ));
        assert!(matches!(meaning(Wish::GoOn), Some(Input::Answered(Answer::GoOn))));
        assert!(meaning(Wish::Left).is_none());
    }
}
