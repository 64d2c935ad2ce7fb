//! Renders pauses and prompts, and the state of a resumed run.

use jiff::{SignedDuration, Timestamp};

use super::renderer::{PlainRenderer, labels};
use super::status::PlainActivity;
use crate::event::Resumption;

impl PlainRenderer {
    pub(super) fn run_resumed(&mut self, resumption: &Resumption, at: Timestamp) {
        self.run_started(&resumption.header, at);
        // Counts the time of earlier processes, but not the time between them.
        let elapsed = SignedDuration::from_millis(i64::try_from(resumption.elapsed_ms).unwrap_or(0));
        self.run_started = at.checked_sub(elapsed).unwrap_or(at);
        self.used = resumption.usage.clone();
    }

    pub(super) fn paused(&mut self) {
        self.activity = PlainActivity::Idle;
        self.note(labels::WAIT, "paused; to resume: ralph tell --resume");
    }

    pub(super) fn asking(&mut self) {
        self.activity = PlainActivity::Idle;
        self.note(
            labels::WAIT,
            "continue? Enter: yes · a: yes, do not ask again · q: quit",
        );
    }

    pub(super) fn question_asked(&mut self, question: &str) {
        self.activity = PlainActivity::Idle;
        self.note(
            labels::WAIT,
            &format!("the agent asks: {question}\nto answer: ralph tell --answer TEXT, or type it here"),
        );
    }
}
