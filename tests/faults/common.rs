//! Sandboxes whose agent is read from a pipe or from a terminal.

use crate::sandbox::Sandbox;

/// What ralph connects to the agent's stdout.
#[derive(Debug, Clone, Copy)]
pub(super) enum AgentStdout {
    Pipe,
    Terminal,
}

pub(super) const BOTH: [AgentStdout; 2] = [AgentStdout::Pipe, AgentStdout::Terminal];

/// Returns a sandbox whose agent prints Claude's stream format.
pub(super) fn claude_stream_on(stdout: AgentStdout) -> Sandbox {
    match stdout {
        AgentStdout::Pipe => Sandbox::new()
            .with_agent("my-ai")
            .with_file("ralph.yml", "cli:\n  command: my-ai\n  transcript: claude\n"),
        // Claude itself loses output on a pipe, so it is given a terminal.
        AgentStdout::Terminal => Sandbox::new().with_agent("claude"),
    }
}
