//! Logs what happens in a run. The lines contain neither prompts nor output of the agent.

use jiff::Timestamp;
use tracing::{Level, Span, debug, enabled, info, info_span, trace};

use crate::debug_log::variant_name as name;
use crate::engine::{Action, Input};
use crate::event::{DescribeContext, PassedGates, RunEvent};
use crate::ui::local_time_zone;

/// The spans of the run: the run, the iteration, and the attempt of the agent.
pub(super) struct RunLog {
    run: Span,
    iteration: Option<Span>,
    agent: Option<Span>,
}

impl RunLog {
    /// The log of the run of the current span.
    pub(super) fn new() -> Self {
        Self {
            run: Span::current(),
            iteration: None,
            agent: None,
        }
    }

    /// The innermost span.
    pub(super) fn span(&self) -> Span {
        let inner = self.agent.as_ref().or(self.iteration.as_ref());
        inner.unwrap_or(&self.run).clone()
    }

    pub(super) fn start_agent(&mut self, attempt: u64) {
        let iteration = self.iteration.as_ref().unwrap_or(&self.run);
        self.agent = Some(info_span!(parent: iteration, "agent", attempt));
    }

    #[expect(clippy::unused_self, reason = "the methods of a log belong together")]
    pub(super) fn input(&self, input: &Input) {
        trace!(target: "ralph::engine", input = name(input));
    }

    pub(super) fn action(&self, action: &Action) {
        match action {
            // Logged as an event.
            Action::Emit(_) => {}
            action => debug!(target: "ralph::engine", parent: &self.span(), action = name(action)),
        }
    }

    pub(super) fn event(&mut self, event: &RunEvent, at: Timestamp, gates: &PassedGates) {
        if let RunEvent::IterationStarted { iteration, .. } = event {
            self.iteration = Some(info_span!(parent: &self.run, "iteration", number = iteration));
        }
        self.write(event, at, gates);
        match event {
            RunEvent::AgentEnded { .. } => self.agent = None,
            RunEvent::IterationEnded { .. } => (self.agent, self.iteration) = (None, None),
            _ => {}
        }
    }

    fn write(&self, event: &RunEvent, at: Timestamp, gates: &PassedGates) {
        match event {
            RunEvent::Transcript { event, .. } | RunEvent::ReviewTranscript { event, .. } => {
                trace!(event = name(event));
            }
            RunEvent::Stderr { text, .. } => trace!(event = name(event), bytes = text.len()),
            _ if !enabled!(Level::INFO) => {}
            RunEvent::CommandReceived { id, command } => {
                info!(parent: &self.span(), event = name(event), id, command = name(command));
            }
            RunEvent::RunStarted(header) => {
                let (version, format) = (header.agent_version.as_deref(), &header.transcript);
                info!(
                    event = name(event),
                    ralph = header.ralph,
                    agent = header.agent,
                    version,
                    format
                );
            }
            // The arguments may contain the prompt.
            RunEvent::AgentStarted { pid, command, .. } => {
                info!(parent: &self.span(), event = name(event), pid, program = command.first());
            }
            RunEvent::Topic { event: topic, .. } => {
                info!(parent: &self.span(), event = name(event), topic = topic.topic);
            }
            event => {
                let zone = local_time_zone();
                let context = DescribeContext {
                    at,
                    zone: &zone,
                    gates,
                };
                let text = event.describe(&context).map(|description| description.text);
                info!(parent: &self.span(), event = name(event), text);
            }
        }
    }
}
