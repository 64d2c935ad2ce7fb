//! Sandboxes whose agent is read from a pipe or from a terminal, and the hook `on_fail`.

use std::fs;

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

/// A hook that stores the document that it receives.
pub(super) const ON_FAIL: &str = "hooks: {on_fail: 'cat > failed'}\n";

/// Returns the reason in the document that the hook `on_fail` received.
pub(super) fn reason_for_on_fail(sandbox: &Sandbox) -> String {
    let document = fs::read_to_string(sandbox.work().join("failed")).expect("on_fail ran");
    let document: serde_json::Value = serde_json::from_str(&document).expect("a document");
    document["record"]["reason"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
