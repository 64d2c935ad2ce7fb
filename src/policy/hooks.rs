//! Hooks: the user's commands that run on events of a run.

use super::{Seconds, section::section};

section! {
    /// Commands that run on events of a run. They receive a JSON document on stdin.
    Hooks, PartialHooks, "hooks" {
        /// Runs when the run starts or resumes.
        #[check(length(min = 1))]
        on_start: String,
        /// Runs after each iteration.
        #[check(length(min = 1))]
        on_iteration: String,
        /// Runs when the task is done.
        #[check(length(min = 1))]
        on_complete: String,
        /// Runs when the run ends without completing the task.
        #[check(length(min = 1))]
        on_fail: String,
        /// Runs when the agent reaches its usage limit.
        #[check(length(min = 1))]
        on_rate_limit: String,
        /// Runs when the agent asks the user a question.
        #[check(length(min = 1))]
        on_ask: String,
        /// Maximum duration of a hook.
        #[check(extend("minimum" = 1))]
        timeout: Seconds = Seconds(30),
    }
}
