//! Folds the records of a run into spans: run → iteration → agent → tool and gate.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::conventions::{
    AGENT_NAME, CONVERSATION_ID, EXECUTE_TOOL, INVOKE_AGENT, INVOKE_WORKFLOW, OPERATION, REQUEST_MODEL,
    SPAN_KIND_INTERNAL, STATUS_ERROR, STATUS_OK, TOOL_CALL_ID, TOOL_NAME, document, nanoseconds, number,
    text, usage_attributes,
};
use crate::event::trace_ids::{agent_span, span_id, trace_id};
use crate::event::{
    AgentEnd, GateResult, IterationOutcome, Meta, Record, RunEvent, RunHeader, ToolStatus, TranscriptEvent,
    Usage,
};
use crate::ui::{iteration_label, run_verdict};

/// The spans of a run.
#[derive(Debug)]
pub struct Spans {
    run_id: String,
    agent: String,
    /// Spans that have ended and were not taken yet.
    ended: Vec<Value>,
    run: Option<OpenSpan>,
    iteration: Option<OpenSpan>,
    /// The running agent with its usage so far.
    running: Option<OpenSpan>,
    attempt: (u64, u64),
    tools: HashMap<String, OpenSpan>,
    gate: Option<OpenSpan>,
    /// Number of spans, for unique ids of tools and gates.
    count: u64,
    last: Timestamp,
}

/// A span that has started.
#[derive(Debug)]
struct OpenSpan {
    id: String,
    parent: Option<String>,
    name: String,
    start: Timestamp,
    attributes: Vec<Value>,
    error: Option<String>,
}

impl Spans {
    pub fn new(run_id: &str) -> Self {
        Self {
            run_id: run_id.to_owned(),
            agent: String::new(),
            ended: Vec::new(),
            run: None,
            iteration: None,
            running: None,
            attempt: (0, 0),
            tools: HashMap::new(),
            gate: None,
            count: 0,
            last: Timestamp::UNIX_EPOCH,
        }
    }

    /// Ends what is still open.
    pub fn end(&mut self) {
        let at = self.last;
        self.close_agent(at);
        let open = [self.gate.take(), self.iteration.take(), self.run.take()];
        for span in open.into_iter().flatten() {
            self.close(span, at);
        }
    }

    /// The number of spans that have ended and were not taken yet.
    pub fn ended(&self) -> usize {
        self.ended.len()
    }

    /// Returns the spans that have ended since the last call, as a request of OTLP/JSON.
    pub fn take(&mut self) -> Value {
        document(&std::mem::take(&mut self.ended))
    }

    fn open(&self, span: &str, parent: Option<&OpenSpan>, name: String, attributes: Vec<Value>) -> OpenSpan {
        OpenSpan {
            id: span_id(&self.run_id, span),
            parent: parent.map(|parent| parent.id.clone()),
            name,
            start: self.last,
            attributes,
            error: None,
        }
    }

    fn close(&mut self, span: OpenSpan, at: Timestamp) {
        let status = match &span.error {
            Some(message) => json!({"code": STATUS_ERROR, "message": message}),
            None => json!({"code": STATUS_OK}),
        };
        let mut value = json!({
            "traceId": trace_id(&self.run_id),
            "spanId": span.id,
            "name": span.name,
            "kind": SPAN_KIND_INTERNAL,
            "startTimeUnixNano": nanoseconds(span.start),
            "endTimeUnixNano": nanoseconds(at.max(span.start)),
            "attributes": span.attributes,
            "status": status,
        });
        if let Some(parent) = span.parent {
            value["parentSpanId"] = parent.into();
        }
        self.ended.push(value);
    }

    fn run_started(&mut self, header: &RunHeader) {
        self.run_id.clone_from(&header.run_id);
        self.agent.clone_from(&header.agent);
        let attributes = vec![
            text(OPERATION, INVOKE_WORKFLOW),
            text("ralph.run.id", &header.run_id),
            text("ralph.workspace", &header.workspace),
        ];
        self.run = Some(self.open("run", None, format!("ralph run {}", header.run_id), attributes));
    }

    fn iteration_started(&mut self, iteration: u64, attempt: u64, hat: Option<&String>) {
        self.attempt = (iteration, attempt);
        let mut attributes = vec![
            number("ralph.iteration", iteration),
            number("ralph.attempt", attempt),
        ];
        attributes.extend(hat.map(|hat| text("ralph.hat", hat)));
        let span = format!("iteration {iteration}.{attempt}");
        let name = format!("iteration {iteration}");
        self.iteration = Some(self.open(&span, self.run.as_ref(), name, attributes));
    }

    fn agent_started(&mut self) {
        let attributes = vec![text(OPERATION, INVOKE_AGENT), text(AGENT_NAME, &self.agent)];
        let (iteration, attempt) = self.attempt;
        let name = format!("invoke_agent {}", self.agent);
        self.running = Some(self.open(
            &agent_span(iteration, attempt),
            self.iteration.as_ref(),
            name,
            attributes,
        ));
    }

    fn close_agent(&mut self, at: Timestamp) {
        let tools = std::mem::take(&mut self.tools);
        for tool in tools.into_values() {
            self.close(tool, at);
        }
        if let Some(agent) = self.running.take() {
            self.close(agent, at);
        }
    }

    fn transcript(&mut self, event: &TranscriptEvent) {
        match event {
            TranscriptEvent::ToolStart { tool } => {
                self.count += 1;
                let attributes = vec![
                    text(OPERATION, EXECUTE_TOOL),
                    text(TOOL_NAME, &tool.name),
                    text(TOOL_CALL_ID, &tool.id),
                ];
                let (iteration, attempt) = self.attempt;
                let span = format!("tool {iteration}.{attempt}.{}", self.count);
                let name = format!("execute_tool {}", tool.name);
                let span = self.open(&span, self.running.as_ref(), name, attributes);
                self.tools.insert(tool.id.clone(), span);
            }
            TranscriptEvent::ToolEnd { tool } => {
                if let Some(mut span) = self.tools.remove(&tool.id) {
                    span.error = (tool.status == ToolStatus::Fail).then(|| "the tool failed".to_owned());
                    self.close(span, self.last);
                }
            }
            TranscriptEvent::Meta {
                meta: Meta::Session {
                    session_id, model, ..
                },
            } => {
                if let Some(agent) = &mut self.running {
                    agent.attributes.push(text(CONVERSATION_ID, session_id));
                    let model = model.as_ref().map(|model| text(REQUEST_MODEL, model));
                    agent.attributes.extend(model);
                }
            }
            TranscriptEvent::Text { .. }
            | TranscriptEvent::ToolOutput { .. }
            | TranscriptEvent::Usage { .. }
            | TranscriptEvent::Meta { .. } => {}
        }
    }

    fn iteration_ended(&mut self, outcome: &IterationOutcome, usage: &Usage) {
        if let Some(mut span) = self.iteration.take() {
            span.attributes
                .push(text("ralph.outcome", iteration_label(outcome)));
            span.attributes.extend(usage_attributes(usage));
            let is_good = matches!(
                outcome,
                IterationOutcome::Completed { .. } | IterationOutcome::Continued { .. }
            );
            span.error = (!is_good).then(|| iteration_label(outcome).to_owned());
            self.close(span, self.last);
        }
    }
}

impl Spans {
    pub fn apply(&mut self, record: &Record) {
        self.last = record.at.max(self.last);
        match &record.event {
            RunEvent::RunStarted(header) => self.run_started(header),
            RunEvent::RunResumed(resumption) if self.run.is_none() => self.run_started(&resumption.header),
            RunEvent::IterationStarted {
                iteration,
                attempt,
                hat,
                ..
            } => {
                // A killed attempt has no end.
                self.close_agent(self.last);
                if let Some(open) = self.iteration.take() {
                    self.close(open, self.last);
                }
                self.iteration_started(*iteration, *attempt, hat.as_ref());
            }
            RunEvent::AgentStarted { .. } => self.agent_started(),
            RunEvent::Transcript { event, .. } => self.transcript(event),
            RunEvent::AgentEnded { end, .. } => {
                if let Some(agent) = &mut self.running {
                    agent.error = (!end.success()).then(|| agent_error(end));
                }
                self.close_agent(self.last);
            }
            RunEvent::GateStarted { name, .. } => {
                self.count += 1;
                let (iteration, attempt) = self.attempt;
                let span = format!("gate {iteration}.{attempt}.{}", self.count);
                let attributes = vec![text("ralph.gate", name)];
                self.gate =
                    Some(self.open(&span, self.iteration.as_ref(), format!("gate {name}"), attributes));
            }
            RunEvent::GateEnded { result, .. } => {
                if let Some(mut gate) = self.gate.take() {
                    gate.error = (*result != GateResult::Passed).then(|| "the gate failed".to_owned());
                    self.close(gate, self.last);
                }
            }
            RunEvent::IterationEnded { outcome, usage, .. } => self.iteration_ended(outcome, usage),
            RunEvent::RunEnded { outcome, usage, .. } => {
                let verdict = run_verdict(outcome, &crate::ui::PassedGates::default());
                if let Some(run) = &mut self.run {
                    run.attributes.extend(usage_attributes(usage));
                    let is_complete = matches!(outcome, crate::event::RunOutcome::Complete { .. });
                    run.error = (!is_complete).then_some(verdict.sentence);
                }
            }
            _ => {}
        }
    }
}

fn agent_error(end: &AgentEnd) -> String {
    match end {
        AgentEnd::Exited { code } => format!("exit code {code}"),
        AgentEnd::Signaled { signal } => format!("signal {signal}"),
        AgentEnd::Lost { reason } => reason.clone(),
    }
}
