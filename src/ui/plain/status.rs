//! The status line of a live face: what is going on, for how long, and what it has cost so far.

use std::time::Duration;

use jiff::Timestamp;

use super::renderer::PlainRenderer;
use crate::event::Pause;
use crate::ui::{describe, units};

/// What the run is doing right now.
#[derive(Debug, Default)]
pub(super) enum Activity {
    #[default]
    Nothing,
    Agent,
    Gate {
        name: String,
        since: Timestamp,
    },
    Waiting {
        why: Pause,
        until: Timestamp,
    },
    Stopping {
        since: Timestamp,
    },
}

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How often a spinner turns, and how often a countdown counts.
const SPIN: Duration = Duration::from_millis(250);
const COUNT: Duration = Duration::from_secs(1);

impl Activity {
    /// How soon the line is out of date.
    pub(super) fn wants_tick(&self) -> Option<Duration> {
        match self {
            Self::Nothing => None,
            Self::Waiting { .. } => Some(COUNT),
            Self::Agent | Self::Gate { .. } | Self::Stopping { .. } => Some(SPIN),
        }
    }
}

impl PlainRenderer {
    /// The line as it reads at this moment; `None` when nothing is going on.
    pub(super) fn status_line(&self, now: Timestamp) -> Option<String> {
        let turn = now.as_millisecond().unsigned_abs() / SPIN.as_millis() as u64;
        let frame = FRAMES[turn as usize % FRAMES.len()];
        let spinning = |since, what: &str| {
            let elapsed = units::countdown(units::since(since, now));
            format!("{frame} {elapsed} · {what}{}", self.used_so_far())
        };
        match &self.activity {
            Activity::Nothing => None,
            Activity::Agent => Some(spinning(self.iteration.started, &self.agent_words())),
            Activity::Gate { name, since } => Some(spinning(*since, &format!("gate {name}"))),
            Activity::Stopping { since } => Some(spinning(*since, "stopping · Ctrl-C again kills")),
            Activity::Waiting { why, until } => Some(format!(
                "{}: {} left, resumes {} · Ctrl-C stops",
                describe::pause_words(*why),
                units::countdown(units::since(now, *until)),
                units::clock(*until, now, &self.zone),
            )),
        }
    }

    fn agent_words(&self) -> String {
        match self.iteration.tools.open.split_last() {
            None => "working".into(),
            Some((tool, others)) => {
                let argument = super::one_line::one_line(&tool.argument, 40).0;
                let more = match others.len() {
                    0 => String::new(),
                    count => format!(" +{count}"),
                };
                format!("running {} {argument}", tool.name).trim_end().to_owned() + &more
            }
        }
    }

    /// Tokens and dollars of this iteration.
    fn used_so_far(&self) -> String {
        let usage = &self.iteration.usage;
        let tokens = usage
            .tokens()
            .map(|tokens| format!(" · {} tokens", units::tokens(tokens)));
        let cost = usage.cost_usd.map(|cost| format!(" · {}", units::dollars(cost)));
        tokens.unwrap_or_default() + &cost.unwrap_or_default()
    }
}
