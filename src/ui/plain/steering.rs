//! What the user did to the run, and what the run asks the user.

use jiff::{SignedDuration, Timestamp};

use super::renderer::{Face, labels};
use super::status::Activity;
use crate::event::{Order, Resumption};
use crate::ui::units;

impl Face {
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

    pub(super) fn told(&mut self, order: &Order) {
        match order {
            Order::Message { text } => self.note(labels::USER, text),
            Order::Pause => self.note(labels::USER, "pause after this iteration"),
            Order::Resume => self.note(labels::USER, "go on"),
            Order::Wake => self.note(labels::USER, "wait no longer"),
            Order::StopIteration => self.note(labels::USER, "stop this iteration, go on with the next"),
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
