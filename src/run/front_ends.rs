//! The end of front ends: one that fails, and the wait for all of them after the run.

use std::io;
use std::time::Duration;

use crate::event::{Command, Interrupt, NoticeLevel, RunEvent, RunOutcome};
use crate::ui::CloseReason;

use super::broadcast::{FrontEndId, RecordsEnd};
use super::queue::Message;
use super::{Driver, RunError, commands};

impl Driver<'_> {
    /// Ends the run if no front end is left.
    pub(super) fn front_end_ended(
        &mut self,
        id: FrontEndId,
        error: Option<io::Error>,
    ) -> Result<(), RunError> {
        self.recorder.broadcast.remove(id);
        let Some(error) = error else { return Ok(()) };
        tracing::warn!(front_end = ?id, %error, "a front end has ended");
        if error.kind() == io::ErrorKind::TimedOut {
            // The reader did not read after a signal; the signal itself ends the run.
            return Ok(());
        }
        if self.recorder.broadcast.is_empty() {
            self.command(Command::Stop { by: Interrupt::Hup });
            return Ok(());
        }
        let text = match id {
            FrontEndId::Visible => format!("the run is no longer shown: {error}"),
            FrontEndId::RecordFile => format!("records are no longer written to the file: {error}"),
            FrontEndId::Traces => format!("traces are no longer sent: {error}"),
        };
        let level = NoticeLevel::Warning;
        self.emit(RunEvent::Notice { level, text })
    }

    /// Waits until the front ends have shown all records. A command that stops the run limits the wait to front ends that
    /// still accept records; a second one limits it in any case.
    pub(super) fn end_front_ends(&mut self, result: &Result<RunOutcome, RunError>) {
        self.terminal.interactive = None;
        let (end, is_stopped) = match result {
            Ok(RunOutcome::Interrupted { .. }) => (RecordsEnd::RunEnded, true),
            Ok(_) => (RecordsEnd::RunEnded, false),
            Err(_) => (RecordsEnd::Aborted, true),
        };
        self.recorder.broadcast.end(end);
        let mut shutdown = is_stopped.then(|| self.recorder.broadcast.shutdown());
        while !self.recorder.broadcast.is_empty() {
            let time_left = shutdown
                .as_mut()
                .map(|shutdown| shutdown.time_left(&self.recorder.broadcast));
            if time_left == Some(Duration::ZERO) {
                return;
            }
            let stops = match self.queue.wait(time_left) {
                Some(Message::FrontEndEnded { front_end, .. }) => {
                    self.recorder.broadcast.remove(front_end);
                    continue;
                }
                Some(Message::Command(request)) => commands::interrupt_of(&request.command).is_some(),
                Some(Message::FrontEndClosed(CloseReason::TerminalLost) | Message::Panicked) => true,
                _ => continue,
            };
            match &mut shutdown {
                Some(shutdown) if stops => shutdown.ignore_progress(),
                None if stops => shutdown = Some(self.recorder.broadcast.shutdown()),
                Some(_) | None => {}
            }
        }
    }
}
