//! One call of an agent, as a process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::{AgentError, Invocation, ResolvedAgent, StdinSource, Terminal};
use crate::process::{Environment, ProcessSpec, Size, Stdin, Transport};

use super::{CommandJob, JobSandbox};

/// Wide enough that no program wraps its lines.
const TERMINAL_SIZE: Size = Size {
    rows: 50,
    columns: 500,
};

/// One call of an agent: its prompt, session and terminal.
pub struct AgentJob {
    pub agent: Arc<ResolvedAgent>,
    pub prompt: String,
    /// Contains the prompt.
    pub prompt_file: PathBuf,
    /// The agent session to resume.
    pub session: Option<String>,
    pub environment: Environment,
    pub directory: PathBuf,
    /// The size of the user's terminal, for an interactive agent.
    pub screen: Option<Size>,
    pub sandbox: Option<JobSandbox>,
}

impl AgentJob {
    /// The process that the call starts, and its sandbox. For a driver, this runs the script, which takes a moment.
    pub(super) fn command(self) -> Result<CommandJob, AgentError> {
        let invocation =
            self.agent
                .invocation_in_session(&self.prompt, &self.prompt_file, self.session.as_deref())?;
        let mut spec = process_spec(invocation, self.environment, &self.directory);
        if let (Transport::Screen(size), Some(screen)) = (&mut spec.stdout, self.screen) {
            *size = screen;
        }
        Ok(CommandJob {
            spec,
            sandbox: self.sandbox,
        })
    }
}

/// The process of an agent's invocation.
pub fn process_spec(invocation: Invocation, environment: Environment, directory: &Path) -> ProcessSpec {
    let Size { rows, columns } = TERMINAL_SIZE;
    ProcessSpec {
        program: invocation.program,
        args: invocation.args,
        environment,
        cwd: directory.to_owned(),
        stdin: match invocation.stdin {
            StdinSource::Null => Stdin::Null,
            StdinSource::PromptFile(path) => Stdin::File(path),
            StdinSource::Terminal => Stdin::Screen,
            StdinSource::Protocol => Stdin::Pipe,
        },
        stdout: match invocation.terminal {
            Terminal::Pipe => Transport::Pipe,
            Terminal::Pty => Transport::Pty { rows, columns },
            Terminal::Interactive => Transport::Screen(TERMINAL_SIZE),
        },
        confinement: None,
    }
}
