//! What the user did to the run, and what the run asks the user.

use jiff::{SignedDuration, Timestamp};

use super::renderer::{PlainRenderer, labels};
use super::status::Activity;
use crate::event::{Command, Resumption};
use crate::ui::units;

impl PlainRenderer {
    pub(super) fn run_resumed(&mut self, resumption: &Resumption, at: Timestamp) {
        self.run_started(&resumption.header, at);
        // What it took before counts, and the time in between does not.
        let before = SignedDuration::from_millis(i64::try_from(resumption.elapsed_ms).unwrap_or(0));
        self.run_started = at.checked_sub(before).unwrap_or(at);
        self.used = resumption.usage.clone();
        let iteration = resumption.iteration;
        self.note(labels::NOTE, &format!("going on with iteration {iteration}"));
        for change in &resumption.changed {
            self.note(labels::NOTE, &format!("changed: {change}"));
        }
    }

    pub(super) fn paused(&mut self) {
        self.activity = Activity::Nothing;
        self.note(labels::WAIT, "paused; to go on: ralph tell --resume");
    }

    pub(super) fn told(&mut self, order: &Command) {
        match order {
            Command::Message { text } => self.note(labels::USER, text),
            Command::Pause => self.note(labels::USER, "pause after this iteration"),
            Command::Resume => self.note(labels::USER, "go on"),
            Command::Wake => self.note(labels::USER, "wait no longer"),
            Command::StopIteration => self.note(labels::USER, "stop this iteration, go on with the next"),
        }
    }

    /// Worth a line only when nothing moves.
    pub(super) fn progress(&mut self, unchanged: u64) {
        if unchanged > 0 {
            let iterations = match unchanged {
                1 => "iteration".to_owned(),
                more => units::count(more, "iteration"),
            };
            let text = format!("nothing has changed in the last {iterations}");
            self.note(labels::WARN, &text);
        }
    }

    pub(super) fn asking(&mut self) {
        self.activity = Activity::Nothing;
        self.note(
            labels::WAIT,
            "go on? Enter: yes · a: yes, and do not ask again · q: quit",
        );
    }
}
