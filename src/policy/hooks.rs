//! Hooks: the user's commands that run on events of a run.

use serde::Serialize;

use super::Seconds;

/// Commands that run on events of a run. They receive a JSON document on stdin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hooks {
    pub on_start: Option<String>,
    pub on_iteration: Option<String>,
    pub on_complete: Option<String>,
    pub on_fail: Option<String>,
    pub on_rate_limit: Option<String>,
    /// Maximum duration of a hook.
    pub timeout: Seconds,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            on_start: None,
            on_iteration: None,
            on_complete: None,
            on_fail: None,
            on_rate_limit: None,
            timeout: Seconds(30),
        }
    }
}
