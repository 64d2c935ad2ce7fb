//! Reads the user's answers from stdin, line by line, from the first question until the terminal is needed otherwise.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::event::{Answer, Command, CommandSender};
use crate::failpoint;
use crate::panic_hook::PanicScope;

/// What the next line answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionKind {
    /// Whether the run continues.
    Continue,
    /// A question of the agent. The line is the answer.
    OfAgent,
}

/// The thread that reads answers. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct AnswerReader {
    _closer: PipeWriter,
    is_question_of_agent: Arc<AtomicBool>,
}

impl AnswerReader {
    pub(super) fn start(commands: CommandSender, panics: &PanicScope) -> io::Result<Self> {
        let (closed, closer) = io::pipe()?;
        let scope = panics.clone();
        let is_question_of_agent = Arc::new(AtomicBool::new(false));
        let of_agent = Arc::clone(&is_question_of_agent);
        panics.spawn("answers", move || {
            read_answers(&closed, &commands, &of_agent, &scope)
        })?;
        Ok(Self {
            _closer: closer,
            is_question_of_agent,
        })
    }

    /// Sets what the next lines answer.
    pub(super) fn expect(&self, kind: QuestionKind) {
        self.is_question_of_agent
            .store(kind == QuestionKind::OfAgent, Ordering::Relaxed);
    }
}

/// Sends each answer as a command. The end of stdin counts as `Quit`, except when the agent asks.
fn read_answers(closed: &PipeReader, commands: &CommandSender, of_agent: &AtomicBool, panics: &PanicScope) {
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
            let line = String::from_utf8_lossy(&line);
            if of_agent.load(Ordering::Relaxed) {
                let text = line.trim().to_owned();
                if !text.is_empty() && commands.send_command(Command::AnswerQuestion { text }).is_err() {
                    return;
                }
            } else if let Some(answer) = parse_answer(&line) {
                let sent = commands.send_command(Command::Answer { answer });
                if sent.is_err() || answer == Answer::Quit {
                    return;
                }
            }
        }
        if count == 0 && of_agent.load(Ordering::Relaxed) {
            return;
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
