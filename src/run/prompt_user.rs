//! Reads the user's answers from stdin, line by line, from the first question until the terminal is needed otherwise.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::event::{Answer, Command, CommandSender};
use crate::failpoint;
use crate::panic_hook::PanicScope;

/// The thread that reads answers. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct AnswerReader {
    _closer: PipeWriter,
}

impl AnswerReader {
    pub(super) fn start(commands: CommandSender, panics: &PanicScope) -> io::Result<Self> {
        let (closed, closer) = io::pipe()?;
        let scope = panics.clone();
        panics.spawn("answers", move || read_answers(&closed, &commands, &scope))?;
        Ok(Self { _closer: closer })
    }
}

/// Sends each answer as a command. The end of stdin counts as `Quit`.
fn read_answers(closed: &PipeReader, commands: &CommandSender, panics: &PanicScope) {
    let mut typed = Vec::new();
    let mut bytes = [0; 1024];
    failpoint!(panics, Answers);
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
        while let Some(end) = typed.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = typed.drain(..=end).collect();
            if let Some(answer) = parse_answer(&String::from_utf8_lossy(&line)) {
                let sent = commands.send_command(Command::Answer { answer });
                if sent.is_err() || answer == Answer::Quit {
                    return;
                }
            }
        }
        if count == 0 {
            let answer = Answer::Quit;
            // Sending fails only if the run is over.
            let _ = commands.send_command(Command::Answer { answer });
            return;
        }
    }
}

fn parse_answer(line: &str) -> Option<Answer> {
    match line.trim() {
        "" | "y" | "yes" => Some(Answer::Continue),
        "a" | "all" => Some(Answer::ContinueWithoutAsking),
        "d" | "done" => Some(Answer::Done),
        "q" | "quit" | "n" | "no" => Some(Answer::Quit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_answers_are_ignored() {
        assert_eq!(parse_answer("\n"), Some(Answer::Continue));
        assert_eq!(parse_answer(" all\n"), Some(Answer::ContinueWithoutAsking));
        assert_eq!(parse_answer("no\n"), Some(Answer::Quit));
        assert_eq!(parse_answer("maybe\n"), None);
    }
}
