//! Sandboxes whose agent is read from a pipe or from a terminal.

use crate::sandbox::Sandbox;

/// Transport through which ralph reads the fake Claude.
#[derive(Debug, Clone, Copy)]
pub(super) enum On {
    Pipe,
    Terminal,
}

pub(super) const EITHER: [On; 2] = [On::Pipe, On::Terminal];

/// Returns a sandbox whose agent prints Claude's stream format.
pub(super) fn speaking_claude(on: On) -> Sandbox {
    match on {
        On::Pipe => Sandbox::new()
            .with_agent("my-ai")
            .with_file("ralph.yml", "cli:\n  command: my-ai\n  transcript: claude\n"),
        // Claude itself loses output on a pipe, so it is given a terminal.
        On::Terminal => Sandbox::new().with_agent("claude"),
    }
}
