//! Answers from the keyboard, line by line: from a question on, until the terminal is needed for something else.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::sync::mpsc::Sender;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::engine::Answer;
use crate::panic_hook;

use super::queue::Message;

/// Somebody listens to the keyboard; dropped, nobody does any more.
#[derive(Debug)]
pub(super) struct Answers {
    _until_closed: PipeWriter,
}

impl Answers {
    pub(super) fn begin(sender: Sender<Message>) -> io::Result<Self> {
        let (closed, until_closed) = io::pipe()?;
        std::thread::Builder::new()
            .name("answers".into())
            .spawn(move || on_output(&closed, &sender))?;
        Ok(Self {
            _until_closed: until_closed,
        })
    }
}

fn on_output(closed: &PipeReader, sender: &Sender<Message>) {
    let mut typed = Vec::new();
    let mut bytes = [0; 1024];
    panic_hook::failpoint("answers");
    loop {
        let stdin = rustix::stdio::stdin();
        let mut fds = [
            PollFd::from_borrowed_fd(stdin, PollFlags::IN),
            PollFd::from_borrowed_fd(closed.as_fd(), PollFlags::IN),
        ];
        let waited = poll(&mut fds, None);
        if !fds[1].revents().is_empty() {
            return;
        }
        let count = match waited.and_then(|_| rustix::io::read(stdin, &mut bytes)) {
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(_) => 0,
        };
        typed.extend_from_slice(&bytes[..count]);
        let ended = count == 0;
        while let Some(end) = typed.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = typed.drain(..=end).collect();
            if let Some(answer) = meaning(&String::from_utf8_lossy(&line))
                && (sender.send(Message::Answer(answer)).is_err() || answer == Answer::Quit)
            {
                return;
            }
        }
        if ended {
            // Who is gone does not want to go on.
            let _ = sender.send(Message::Answer(Answer::Quit));
            return;
        }
    }
}

fn meaning(line: &str) -> Option<Answer> {
    match line.trim() {
        "" | "y" | "yes" => Some(Answer::GoOn),
        "a" | "all" => Some(Answer::GoOnWithoutAsking),
        "d" | "done" => Some(Answer::Done),
        "q" | "quit" | "n" | "no" => Some(Answer::Quit),
        _ => None,
    }
}
