//! The status line on a terminal: current activity, elapsed time, tokens and cost.

use std::time::Duration;

use jiff::Timestamp;

use super::renderer::PlainRenderer;
use crate::ui::units;

/// The current activity of the run.
#[derive(Debug, Default)]
pub(super) enum PlainActivity {
    #[default]
    Idle,
    Agent,
    Gate {
        name: String,
        since: Timestamp,
    },
    Waiting {
        /// The reason in words.
        why: String,
        /// `None` if it is unknown how long the wait takes.
        until: Option<Timestamp>,
    },
    Stopping {
        since: Timestamp,
    },
}

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How often the spinner and the countdown are redrawn.
const SPINNER_INTERVAL: Duration = Duration::from_millis(250);
const COUNTDOWN_INTERVAL: Duration = Duration::from_secs(1);

impl PlainActivity {
    /// The time until the line must be redrawn.
    pub(super) fn next_tick(&self) -> Option<Duration> {
        match self {
            Self::Idle => None,
            Self::Waiting { .. } => Some(COUNTDOWN_INTERVAL),
            Self::Agent | Self::Gate { .. } | Self::Stopping { .. } => Some(SPINNER_INTERVAL),
        }
    }
}

impl PlainRenderer {
    /// The text of the status line; `None` if the run is idle.
    pub(super) fn status_line(&self, now: Timestamp) -> Option<String> {
        let step = now.as_millisecond().unsigned_abs() / SPINNER_INTERVAL.as_millis() as u64;
        let frame = FRAMES[step as usize % FRAMES.len()];
        let with_spinner = |since, what: &str| {
            let elapsed = units::countdown(units::since(since, now));
            format!("{frame} {elapsed} · {what}{}", self.usage_suffix())
        };
        match &self.activity {
            PlainActivity::Idle => None,
            PlainActivity::Agent => Some(with_spinner(self.iteration.started, &self.agent_status())),
            PlainActivity::Gate { name, since } => Some(with_spinner(*since, &format!("gate {name}"))),
            PlainActivity::Stopping { since } => {
                Some(with_spinner(*since, "stopping · Ctrl-C again to kill"))
            }
            PlainActivity::Waiting { why, until: None } => Some(format!("waiting: {why} · Ctrl-C to stop")),
            PlainActivity::Waiting {
                why,
                until: Some(until),
            } => Some(format!(
                "{why}: {} left, resumes {} · Ctrl-C to stop",
                units::countdown(units::since(now, *until)),
                units::clock(*until, now, &self.zone),
            )),
        }
    }

    fn agent_status(&self) -> String {
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

    /// ` · 46.2k tokens · $0.12`: tokens and cost of this iteration.
    fn usage_suffix(&self) -> String {
        let usage = &self.iteration.usage;
        let tokens = usage
            .tokens()
            .map(|tokens| format!(" · {} tokens", units::tokens(tokens)));
        let cost = usage.cost_usd.map(|cost| format!(" · {}", units::dollars(cost)));
        tokens.unwrap_or_default() + &cost.unwrap_or_default()
    }
}
