//! Calls an agent once, as a run would or with a variation, for `ralph agents test`. `doctor` evaluates the result.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::agent::{AgentError, NESTED_SESSION, ResolvedAgent, StdinSource, Terminal};
use crate::event::{ProcessEnd, TranscriptEvent};
use crate::process::{self, Environment, LineSplitter, ProcessError, Supervisors};
use crate::transcript::jq::{self, Filter};
use crate::transcript::{AdapterContext, Format};

use super::acp_trial::{self, AcpCallLimits};
use super::agent_output::{read_line, read_usage};
use crate::runner::{AgentJob, StartError, process_spec};

/// The maximum size of each stream; a small prompt has a small answer.
const MOST_BYTES: usize = 4 << 20;
/// The time between SIGTERM and SIGKILL after a timeout.
const GRACE: Duration = Duration::from_secs(2);

/// The name of the file with the prompt.
const PROMPT_FILE: &str = "prompt.md";

/// The call to make.
pub struct Trial<'a> {
    pub agent: &'a ResolvedAgent,
    pub format: &'static Format,
    pub filter: Option<&'a Filter>,
    pub prompt: &'a str,
    pub workspace: PathBuf,
    pub supervisors: Supervisors,
    pub timeout: Duration,
    /// Further environment variables.
    pub variables: Vec<(OsString, OsString)>,
}

/// A variation of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallMode {
    /// As in an iteration.
    AsConfigured,
    /// With the prompt on stdin instead of as an argument.
    OnStdin,
    /// With a terminal as stdout.
    OnTerminal,
}

/// The result of one call.
#[derive(Debug, Clone)]
pub struct TrialOutput {
    pub mode: CallMode,
    pub command: Vec<String>,
    pub stdin: StdinSource,
    pub terminal: Terminal,
    /// `None` if the call timed out.
    pub end: Option<ProcessEnd>,
    pub took: Duration,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// The events parsed from its stdout.
    pub events: Vec<TranscriptEvent>,
    /// The number of processes that it left running and that were stopped.
    pub swept: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("cannot write the prompt to {}: {source}", path.display())]
    Scratch { path: PathBuf, source: io::Error },
}

impl Trial<'_> {
    /// Calls the agent once and waits until it ends or times out. No process of it is left running.
    pub fn call(&self, mode: CallMode) -> Result<TrialOutput, TrialError> {
        let agent = match mode {
            CallMode::AsConfigured => self.agent.clone(),
            CallMode::OnStdin => self
                .agent
                .with_stdin_prompt()
                .unwrap_or_else(|| self.agent.clone()),
            CallMode::OnTerminal => {
                let mut agent = self.agent.clone();
                agent.terminal = Terminal::Pty;
                agent
            }
        };
        let unwritable = |source| TrialError::Scratch {
            path: std::env::temp_dir(),
            source,
        };
        let scratch = crate::process::scratch("ralph-").map_err(unwritable)?;
        let file = scratch.path().join(PROMPT_FILE);
        let prompt = agent.escape_prompt(self.prompt);
        std::fs::File::create_new(&file)
            .and_then(|mut file| file.write_all(prompt.as_bytes()))
            .map_err(unwritable)?;
        if agent.acp_usage().is_some() {
            return self.call_acp(mode, agent, &prompt, scratch.path());
        }
        let call = agent.invocation(&prompt, &file)?;
        let command = std::iter::once(call.program.display().to_string())
            .chain(call.args.iter().map(|arg| arg.to_string_lossy().into_owned()))
            .collect();
        let (stdin, terminal, usage_file) = (call.stdin.clone(), call.terminal, call.usage_file.clone());
        let spec = process_spec(call, self.environment(&agent, scratch.path()), &self.workspace);
        let bounds = process::Bounds {
            timeout: self.timeout,
            grace: GRACE,
            max_bytes: MOST_BYTES,
        };
        let began = Instant::now();
        let captured = process::capture(&self.supervisors, &spec, bounds)?;
        let events = self.events(&captured.stdout, &prompt, usage_file.as_deref());
        Ok(TrialOutput {
            mode,
            command,
            stdin,
            terminal,
            end: captured.end,
            took: began.elapsed(),
            stdout: captured.stdout,
            stderr: captured.stderr,
            events,
            swept: captured.swept,
        })
    }

    fn call_acp(
        &self,
        mode: CallMode,
        agent: ResolvedAgent,
        prompt: &str,
        scratch: &Path,
    ) -> Result<TrialOutput, TrialError> {
        let job = AgentJob {
            prompt: prompt.to_owned(),
            prompt_file: scratch.join(PROMPT_FILE),
            session: None,
            environment: self.environment(&agent, scratch),
            directory: self.workspace.clone(),
            screen: None,
            sandbox: None,
            agent: Arc::new(agent),
        };
        let limits = AcpCallLimits {
            timeout: self.timeout,
            grace: GRACE,
            max_bytes: MOST_BYTES,
        };
        let began = Instant::now();
        let call = acp_trial::call(job, &self.supervisors, &limits)?;
        Ok(TrialOutput {
            mode,
            command: call.command,
            stdin: StdinSource::Protocol,
            terminal: Terminal::Pipe,
            end: call.end,
            took: began.elapsed(),
            events: self.events(&call.stdout, prompt, None),
            stdout: call.stdout,
            stderr: call.stderr,
            swept: call.swept,
        })
    }

    fn environment(&self, agent: &ResolvedAgent, scratch: &Path) -> Environment {
        let mut environment = environment(agent, scratch);
        environment.set.extend(self.variables.iter().cloned());
        environment
    }

    fn events(&self, stdout: &[u8], prompt: &str, usage_file: Option<&Path>) -> Vec<TranscriptEvent> {
        let context = AdapterContext {
            prompt,
            usage: self.agent.acp_usage().unwrap_or_default(),
        };
        let mut adapter = jq::open_adapter(self.format, self.filter, &context);
        let mut lines = LineSplitter::new(MOST_BYTES);
        let mut events = Vec::new();
        lines.feed(stdout, |line| {
            read_line(adapter.as_mut(), line.bytes, line.cut, &mut events);
        });
        lines.finish(|line| read_line(adapter.as_mut(), line.bytes, line.cut, &mut events));
        read_usage(usage_file, adapter.as_mut(), &mut events);
        adapter.flush(&mut events);
        events
    }
}

/// The environment of an iteration, with a placeholder as the run id.
fn environment(agent: &ResolvedAgent, scratch: &Path) -> Environment {
    let own = agent.environment.iter();
    let mut set: Vec<_> = own.map(|(name, value)| (name.into(), value.into())).collect();
    set.push(("RALPH_RUN_ID".into(), "test".into()));
    set.push(("RALPH_ITERATION".into(), "1".into()));
    if let Ok(ralph) = std::env::current_exe() {
        set.push(("RALPH_BIN".into(), ralph.into()));
    }
    set.push(("TMPDIR".into(), scratch.into()));
    let removed = NESTED_SESSION.iter().copied().chain(["RALPH_HAT"]);
    Environment {
        remove: removed.map(Into::into).collect(),
        set,
    }
}
