//! What made other Ralphs lose events, hang, or leave an agent behind: one test for each row of that table, most on a
//! pipe and on a terminal, since an agent may be on either.

mod processes;
mod streams;

use crate::sandbox::Sandbox;

/// How ralph reads the agent that plays claude.
#[derive(Debug, Clone, Copy)]
enum On {
    Pipe,
    Terminal,
}

const EITHER: [On; 2] = [On::Pipe, On::Terminal];

/// A workspace whose agent speaks as claude does.
fn speaking_claude(on: On) -> Sandbox {
    match on {
        On::Pipe => Sandbox::new()
            .with_agent("my-ai")
            .with_file("ralph.yml", "cli:\n  command: my-ai\n  transcript: claude\n"),
        // Claude itself loses output on a pipe, so it is given a terminal.
        On::Terminal => Sandbox::new().with_agent("claude"),
    }
}
