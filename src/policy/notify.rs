//! Built-in notifications: when and where a run tells its user about events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::section::section;

section! {
    /// Notifications on your desktop or phone.
    Notify, PartialNotify, "notify" {
        /// Show notifications on the desktop.
        desktop: bool = false,
        /// The address of an [ntfy](https://ntfy.sh) topic.
        #[check(length(min = 1), extend("format" = "url"))]
        ntfy: String,
        /// An address that receives a JSON document for each notification.
        #[check(length(min = 1), extend("format" = "url"))]
        webhook: String,
        /// The events that cause a notification.
        on: Vec<NotifyEvent> = NotifyEvent::ALL.to_vec(),
    }
}

/// An event that causes a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotifyEvent {
    /// The task is done.
    Done,
    /// The run ended without completing the task.
    Failed,
    /// The agent asks a question.
    Ask,
    /// The run waits for a usage limit.
    Limit,
}

impl NotifyEvent {
    pub const ALL: [Self; 4] = [Self::Done, Self::Failed, Self::Ask, Self::Limit];

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Ask => "ask",
            Self::Limit => "limit",
        }
    }
}

impl Notify {
    /// Whether this event causes a notification.
    pub fn includes(&self, event: NotifyEvent) -> bool {
        let has_target = self.desktop || self.ntfy.is_some() || self.webhook.is_some();
        has_target && self.on.contains(&event)
    }
}
