//! What the user did to the run, and what the run asks the user.

use jiff::Timestamp;

use super::face::{Face, labels};
use super::status::Activity;
use crate::event::{Order, RunHeader, Usage};
use crate::ui::words;

impl Face {
    pub(super) fn run_resumed(
        &mut self,
        header: &RunHeader,
        iteration: u64,
        (usage, changed): (&Usage, &[String]),
        at: Timestamp,
    ) {
        self.run_started(header, at);
        self.used = usage.clone();
        self.note(labels::NOTE, &format!("going on with iteration {iteration}"));
        for change in changed {
            self.note(labels::NOTE, &format!("changed: {change}"));
        }
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
            let iterations = words::count(unchanged, "iteration");
            self.note(
                labels::WARN,
                &format!("nothing has changed in the last {iterations}"),
            );
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
