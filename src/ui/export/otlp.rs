//! Exports a run as an OpenTelemetry trace in OTLP/JSON: run → iteration → agent → tool and gate. The attributes follow the semantic
//! conventions for generative AI in the version of `SCHEMA`.

use std::collections::HashMap;
use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ExportHeader;
use crate::event::trace_ids::{agent_span, span_id, trace_id};
use crate::event::{
    AgentEnd, GateResult, IterationOutcome, Meta, Record, RunEvent, RunHeader, Sink, ToolStatus,
    TranscriptEvent, Usage,
};
use crate::ui::{iteration_label, run_verdict};

const SCHEMA: &str = "https://opentelemetry.io/schemas/1.37.0";
const SPAN_KIND_INTERNAL: u8 = 1;
const STATUS_OK: u8 = 1;
const STATUS_ERROR: u8 = 2;

/// Collects the spans of a run and writes them at its end.
pub struct Otlp<W: Write> {
    writer: W,
    run_id: String,
    agent: String,
    spans: Vec<Value>,
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
struct OpenSpan {
    id: String,
    parent: Option<String>,
    name: String,
    start: Timestamp,
    attributes: Vec<Value>,
    error: Option<String>,
}

impl<W: Write> Otlp<W> {
    pub fn begin(writer: W, header: &ExportHeader) -> Self {
        Self {
            writer,
            run_id: header.id.to_owned(),
            agent: String::new(),
            spans: Vec::new(),
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

    /// Ends what is still open, and writes the trace.
    pub fn end(mut self) -> io::Result<()> {
        let at = self.last;
        self.close_agent(at);
        let open = [self.gate.take(), self.iteration.take(), self.run.take()];
        for span in open.into_iter().flatten() {
            self.close(span, at);
        }
        let resource = [
            text("service.name", "ralph"),
            text("service.version", env!("CARGO_PKG_VERSION")),
        ];
        let trace = json!({"resourceSpans": [{
            "resource": {"attributes": resource},
            "scopeSpans": [{"scope": {"name": "ralph"}, "schemaUrl": SCHEMA, "spans": self.spans}],
            "schemaUrl": SCHEMA,
        }]});
        serde_json::to_writer(&mut self.writer, &trace)?;
        self.writer.write_all(b"\n")?;
        self.writer.flush()
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
        self.spans.push(value);
    }

    fn run_started(&mut self, header: &RunHeader) {
        self.run_id.clone_from(&header.run_id);
        self.agent.clone_from(&header.agent);
        let attributes = vec![
            text("gen_ai.operation.name", "invoke_workflow"),
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
        let attributes = vec![
            text("gen_ai.operation.name", "invoke_agent"),
            text("gen_ai.agent.name", &self.agent),
        ];
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
                    text("gen_ai.operation.name", "execute_tool"),
                    text("gen_ai.tool.name", &tool.name),
                    text("gen_ai.tool.call.id", &tool.id),
                ];
                let span = format!("tool {}", self.count);
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
                    agent.attributes.push(text("gen_ai.conversation.id", session_id));
                    let model = model.as_ref().map(|model| text("gen_ai.request.model", model));
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

impl<W: Write> Sink for Otlp<W> {
    fn accept(&mut self, record: &Record) -> io::Result<()> {
        self.last = record.at.max(self.last);
        match &record.event {
            RunEvent::RunStarted(header) => self.run_started(header),
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
                let span = format!("gate {}", self.count);
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
        Ok(())
    }
}

fn usage_attributes(usage: &Usage) -> Vec<Value> {
    let tokens = [
        ("gen_ai.usage.input_tokens", usage.prompt_tokens),
        ("gen_ai.usage.output_tokens", usage.completion_tokens),
    ];
    let mut attributes: Vec<Value> = tokens
        .into_iter()
        .filter_map(|(name, count)| Some(number(name, count?)))
        .collect();
    attributes.extend(
        usage
            .model
            .as_ref()
            .map(|model| text("gen_ai.response.model", model)),
    );
    attributes.extend(
        usage
            .cost_usd
            .map(|cost| json!({"key": "ralph.cost_usd", "value": {"doubleValue": f64::from(cost)}})),
    );
    attributes
}

fn agent_error(end: &AgentEnd) -> String {
    match end {
        AgentEnd::Exited { code } => format!("exit code {code}"),
        AgentEnd::Signaled { signal } => format!("signal {signal}"),
        AgentEnd::Lost { reason } => reason.clone(),
    }
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// OTLP/JSON writes 64-bit integers as strings.
fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn nanoseconds(at: Timestamp) -> String {
    at.as_nanosecond().max(0).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spans of the golden journal.
    fn spans() -> Vec<Value> {
        let header = ExportHeader {
            id: "20261115-204501-k3f9",
            verdict: run_verdict(
                &crate::event::RunOutcome::Failed { reason: "x".into() },
                &crate::ui::PassedGates::default(),
            ),
            facts: Vec::new(),
            prompt: None,
            attempts: &[],
            final_message: "",
        };
        let mut bytes = Vec::new();
        let mut otlp = Otlp::begin(&mut bytes, &header);
        for line in include_str!("../../../tests/golden/events.v1.jsonl").lines() {
            otlp.accept(&serde_json::from_str(line).unwrap()).unwrap();
        }
        otlp.end().unwrap();
        let trace: Value = serde_json::from_slice(&bytes).unwrap();
        trace["resourceSpans"][0]["scopeSpans"][0]["spans"]
            .as_array()
            .unwrap()
            .clone()
    }

    #[test]
    fn every_span_has_its_parent_in_the_trace_and_an_id_of_its_own() {
        let spans = spans();
        let ids: std::collections::BTreeSet<&str> = spans
            .iter()
            .map(|span| span["spanId"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), spans.len());
        let roots = spans.iter().filter(|span| span.get("parentSpanId").is_none());
        assert_eq!(roots.count(), 1, "only the run has no parent");
        for span in &spans {
            let parent = span["parentSpanId"].as_str();
            assert!(parent.is_none_or(|parent| ids.contains(parent)), "{span}");
            let time = |key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
            assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
        }
    }

    #[test]
    fn run_iteration_agent_tool_and_gate_are_spans() {
        let spans = spans();
        let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
        for prefix in ["ralph run", "iteration", "invoke_agent", "execute_tool", "gate"] {
            assert!(
                names.iter().any(|name| name.starts_with(prefix)),
                "{prefix}: {names:?}"
            );
        }
    }
}
